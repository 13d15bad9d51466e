//! SSH and SFTP with host-key verification.
