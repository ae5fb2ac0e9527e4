//! stdout for data, stderr for remarks.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

/// stdout, buffered. A reader that goes away is not an error (see [`is_broken_pipe`]).
pub struct Out {
    stdout: BufWriter<io::Stdout>,
}

impl Out {
    /// The process's stdout.
    pub fn new() -> Self {
        Self { stdout: BufWriter::new(io::stdout()) }
    }

    /// One line.
    pub fn line(&mut self, line: impl Display) -> io::Result<()> {
        writeln!(self.stdout, "{line}")
    }

    /// One JSON value on a line, handed on at once so that a reader sees results as they come.
    pub fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.stdout, value).map_err(io::Error::from)?;
        self.stdout.write_all(b"\n")?;
        self.stdout.flush()
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)
    }

    /// Hands everything on.
    pub fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Did this fail because nobody reads stdout any more (`… | head`)?
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// A reward for a table: three places, `-` for unscored.
pub fn reward(value: Option<f64>) -> String {
    crate::critic::display::format_reward(value, 3)
}

/// A foreign text for one line of a table.
pub fn safe(text: &str) -> String {
    crate::text::sanitize(text).replace('\n', " ")
}

/// `resolved`, `unresolved` or `unknown`.
pub fn outcome(outcome: crate::trajectory::Outcome) -> &'static str {
    match outcome.as_bool() {
        Some(true) => "resolved",
        Some(false) => "unresolved",
        None => "unknown",
    }
}

/// One line on stderr. Names and texts of foreign files are made safe for the terminal.
pub fn remark(line: &str) {
    // A stderr that is gone (a closed terminal) has no reader to lose anything; `eprintln!` would panic.
    let _gone = writeln!(io::stderr(), "{}", safe(line));
}

/// Is there somebody who wants to see progress?
pub fn wants_progress() -> bool {
    io::stderr().is_terminal()
}
