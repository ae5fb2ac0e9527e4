//! Records of JSON lines: parsed one at a time, what is broken skipped and placed.

use super::super::json::Value;
use super::super::json::{self, Repairs};
use super::{RecordSpan, Row};
use crate::trajectory::{ByteSpan, Diagnostic, Severity};

/// Bad records named one by one; more are counted.
const NAMED_BAD_RECORDS: usize = 20;

/// How a record like this one begins: `{"first key"`.
pub(super) fn opening_of(value: &Value) -> Option<Vec<u8>> {
    let key = value.as_object().and_then(|o| o.keys().next());
    key.map(|k| format!("{{\"{k}\"").into_bytes())
}

/// Reads records of JSON lines and collects remarks.
#[derive(Default)]
pub(super) struct RowReader {
    values: usize,
    nulls: Vec<usize>,
    bad: usize,
    repairs: Repairs,
    /// `{"first key"` of the last good record: where to take up again behind a cut one.
    opening: Option<Vec<u8>>,
    diagnostics: Vec<Diagnostic>,
}

impl RowReader {
    /// A reader that knows how records begin.
    pub(super) fn resuming_at(opening: Option<Vec<u8>>) -> Self {
        Self { opening, ..Self::default() }
    }

    /// Reads the record whose bytes are `text`; `last` if none follows in the file.
    pub(super) fn read(&mut self, text: &[u8], span: RecordSpan, last: bool, each: &mut impl FnMut(Row<'_>)) {
        let mut at = 0;
        loop {
            let ahead = text.get(at..).unwrap_or_default();
            let Some(gap) = ahead.iter().position(|b| !json::is_space(*b)) else {
                return;
            };
            at += gap;
            let rest = text.get(at..).unwrap_or_default();
            let strict = json::strict_prefix(rest);
            let Some((value, len)) = strict.map_or_else(|| self.repair(rest), Some) else {
                let place = RecordSpan { start: span.start + at, ..span };
                let Some(skip) = self.resume(rest) else {
                    return self.refuse(place, rest, last);
                };
                self.bad_record(place, "a cut record was skipped up to the next one on the same line");
                at += skip;
                continue;
            };
            let start = (span.start + at) as u64;
            at += len;
            self.give(&value, ByteSpan { start, len: len as u64 }, span.line, each);
        }
    }

    pub(super) fn give(&mut self, value: &Value, span: ByteSpan, line: usize, each: &mut impl FnMut(Row<'_>)) {
        if value.is_null() {
            self.nulls.push(line);
            return;
        }
        if self.opening.is_none() {
            self.opening = opening_of(value);
        }
        each(Row { value, record: self.values, span });
        self.values += 1;
    }

    /// Records that could not be read from the file.
    pub(super) fn lost(&mut self, first: RecordSpan, records: usize, why: &str) {
        self.bad += records;
        let text = format!("{records} records could not be read: {why}; open the file again");
        let remark = Diagnostic::new(Severity::Error, "file.unreadable", text);
        self.diagnostics.push(remark.at_line(first.line).at_byte(first.start as u64));
    }

    /// Takes over what another reader counted, in order.
    pub(super) fn add(&mut self, other: Self) {
        self.values += other.values;
        self.nulls.extend(other.nulls);
        self.bad += other.bad;
        self.repairs.add(&other.repairs);
        let room = NAMED_BAD_RECORDS.saturating_sub(self.diagnostics.len());
        self.diagnostics.extend(other.diagnostics.into_iter().take(room));
    }

    fn repair<'a>(&mut self, rest: &'a [u8]) -> Option<(Value<'a>, usize)> {
        let parsed = json::repair_prefix(rest).ok().filter(|p| !p.repairs.cut)?;
        self.repairs.add(&parsed.repairs);
        Some((parsed.value, parsed.end))
    }

    /// Offset of the next complete record in a broken line.
    fn resume(&self, rest: &[u8]) -> Option<usize> {
        let opening = self.opening.as_deref()?;
        let mut at = 1;
        for _try in 0..64 {
            let ahead = rest.get(at..)?;
            let found = ahead.windows(opening.len()).position(|w| w == opening)?;
            at += found;
            if json::strict_prefix(rest.get(at..)?).is_some() {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    fn refuse(&mut self, span: RecordSpan, rest: &[u8], last: bool) {
        let opens = matches!(rest.first(), Some(b'{' | b'['));
        let cut = opens && json::repair_prefix(rest).is_ok_and(|p| p.repairs.cut);
        let text = match (cut, last) {
            (true, true) => "the last record is incomplete (the writer was killed or is still writing): it was skipped",
            (true, false) => "a cut record was skipped",
            (false, _) => "not a JSON record: the line was skipped",
        };
        self.bad_record(span, text);
    }

    fn bad_record(&mut self, span: RecordSpan, text: &str) {
        self.bad += 1;
        if self.bad <= NAMED_BAD_RECORDS {
            let remark = Diagnostic::new(Severity::Warning, "json.bad-record", text);
            self.diagnostics.push(remark.at_line(span.line).at_byte(span.start as u64));
        }
    }

    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        if self.bad > NAMED_BAD_RECORDS {
            let text = format!("{} records could not be read; the first {NAMED_BAD_RECORDS} are named", self.bad);
            self.diagnostics.push(Diagnostic::new(Severity::Warning, "json.bad-records", text));
        }
        if let Some(first) = self.nulls.first() {
            let n = self.nulls.len();
            let text = format!("{n} null line{} skipped", if n == 1 { "" } else { "s" });
            self.diagnostics.push(Diagnostic::new(Severity::Warning, "json.null-lines", text).at_line(*first));
        }
        if self.repairs.any() {
            let text = self.repairs.describe();
            self.diagnostics.push(Diagnostic::new(Severity::Warning, "json.repaired", text));
        }
        self.diagnostics
    }
}
