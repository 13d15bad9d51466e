//! Arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Two providers are never compiled in, so this fails only where it was done already.
    rustls::crypto::ring::default_provider().install_default().ok();
    muster::cli::run(std::env::args_os().collect())
}
