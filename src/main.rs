//! The `trajscope` binary: a thin shell over the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    trajscope::cli::main(std::env::args_os())
}
