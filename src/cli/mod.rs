//! The command line: what was typed (`args`), what it means, and the commands.
//!
//! stdout holds data, stderr remarks and (only on a terminal) progress. Exit codes: 0 all well, 1 there are
//! findings (something could not be read or scored), 2 the command could not do its work.

mod args;
mod bench;
mod bench_random;
mod cache;
mod doctor;
mod export;
mod inspect;
mod joins;
mod lists;
mod load;
mod open;
mod out;
mod picture;
mod rank;
mod score;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use out::Out;

/// How a command ended when it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Exit 0.
    Clean,
    /// Exit 1: there is something the user should look at.
    Findings,
}

impl Verdict {
    fn findings_if(any: bool) -> Self {
        if any { Self::Findings } else { Self::Clean }
    }
}

/// Parses `argv`, runs the command, says what went wrong in one line, and gives the exit code.
pub fn main(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(argv) {
        Ok(args) => args,
        Err(error) => {
            let code = error.exit_code();
            // Only a closed stdout or stderr makes this fail, and then nobody is listening.
            let _closed = error.print();
            return ExitCode::from(u8::try_from(code).unwrap_or(2));
        }
    };
    let mut out = Out::new();
    let result = run(args, &mut out).and_then(|verdict| out.flush().map(|()| verdict).map_err(Into::into));
    match result {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Findings) => ExitCode::from(1),
        Err(error) if out::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out::remark(&format!("trajscope: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn run(args: Args, out: &mut Out) -> anyhow::Result<Verdict> {
    match args.command {
        None => open::run(&args.open),
        Some(Command::Score(a)) => score::run(&a, out),
        Some(Command::Rank(a)) => rank::run(&a, out),
        Some(Command::Export(a)) => export::run(&a, out),
        Some(Command::Inspect(a)) => inspect::run(&a, out),
        Some(Command::Joins(a)) => joins::run(&a, out),
        Some(Command::Critics(a)) => lists::critics(&a, out),
        Some(Command::Formats(a)) => lists::formats(&a, out),
        Some(Command::Cache(a)) => cache::run(&a, out),
        Some(Command::Bench(a)) => bench::run(&a, out),
        Some(Command::Doctor(a)) => doctor::run(&a, out),
        Some(Command::Verify(a)) => verify::run(&a, out),
        Some(Command::Picture(a)) => picture::run(&a, out),
    }
}
