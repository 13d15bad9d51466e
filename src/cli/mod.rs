//! Arguments and headless commands.
