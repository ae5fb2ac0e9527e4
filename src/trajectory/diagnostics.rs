//! What was odd about an input: counted, placed, and never fatal.

use std::fmt;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know (a field this program does not use, a value repaired without loss).
    Info,
    /// Something was skipped or replaced; the rest is right.
    Warning,
    /// The file, record or field could not be used.
    Error,
}

impl Severity {
    /// Lower-case name, as in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Where in the input: any part may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// 1-based line.
    pub line: Option<usize>,
    /// 0-based byte offset.
    pub byte: Option<u64>,
    /// 0-based record.
    pub record: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(line) = self.line {
            parts.push(format!("line {line}"));
        }
        if let Some(byte) = self.byte {
            parts.push(format!("byte {byte}"));
        }
        if let Some(record) = self.record {
            parts.push(format!("record {record}"));
        }
        f.write_str(&parts.join(", "))
    }
}

/// One remark. `code` is stable (`"json.bad-line"`); `message` is one sentence: what was found, what was expected,
/// what to do. The file is named by whoever holds the diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad.
    pub severity: Severity,
    /// Stable code, `area.what`.
    pub code: &'static str,
    /// One line for a person.
    pub message: String,
    /// Where.
    pub at: Place,
}

impl Diagnostic {
    /// A remark without a place.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self { severity, code, message: message.into(), at: Place::default() }
    }

    /// The same remark at a 1-based line.
    pub fn at_line(mut self, line: usize) -> Self {
        self.at.line = Some(line);
        self
    }

    /// The same remark at a byte offset.
    pub fn at_byte(mut self, byte: u64) -> Self {
        self.at.byte = Some(byte);
        self
    }

    /// The same remark at a record.
    pub fn at_record(mut self, record: usize) -> Self {
        self.at.record = Some(record);
        self
    }
}
