//! One file's bytes as a document: a JSON value, JSON lines, or something that is named and left alone.
//!
//! The extension is never trusted. Records of JSON lines are parsed one at a time, so a file of gigabytes never
//! stands in memory as values.

mod rows;
pub mod store;

use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;

use super::json::Value;
use rayon::prelude::*;

use self::rows::{RowReader, opening_of};
use self::store::{Bytes, Store};
use super::bytes::lossy;
use super::{json, skim};
use crate::trajectory::{ByteSpan, Diagnostic, Severity};

/// Records looked at to recognise a format.
const HEAD_RECORDS: usize = 60;
/// ... and bytes of them (always at least one record).
const HEAD_BYTES: usize = 8 << 20;
/// Bytes of a file's records read at once.
const BATCH: usize = 1 << 20;
/// Outer form of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape<'a> {
    /// One JSON value, boxed because it can be the whole file.
    Value(Box<Value<'a>>),
    /// JSON lines, or several values one behind the other: the spans of the records.
    Lines(Vec<RecordSpan>),
    /// Not JSON: what it is, in one clause.
    Other(Cow<'static, str>),
}

/// Where a record of JSON lines lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSpan {
    /// Offset of its first byte.
    pub start: usize,
    /// Offset behind its last byte.
    pub end: usize,
    /// 1-based line of its first byte.
    pub line: usize,
}

/// One value of a document that holds several.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The value.
    pub value: &'a Value<'a>,
    /// 0-based number among the values.
    pub record: usize,
    /// Bytes in the decompressed file; empty when it is an element of a larger value.
    pub span: ByteSpan,
}

/// One of the first records of JSON lines, already read.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadRow<'a> {
    /// Its number among the record spans.
    at: usize,
    /// The value.
    pub value: Value<'a>,
    /// Is the value all there is in the record, read without repairs? Then it need not be read again.
    whole: bool,
}

/// A file's content, ready to be recognised and decoded.
#[derive(Debug)]
pub struct Document<'a> {
    /// The decompressed bytes, in memory or in a file.
    store: Store<'a>,
    /// Outer form.
    pub shape: Shape<'a>,
    /// The first values of JSON lines, for recognising.
    pub head: Vec<HeadRow<'a>>,
    /// Remarks about the file as a whole.
    pub diagnostics: Vec<Diagnostic>,
}

impl<'a> Document<'a> {
    /// Finds out what the bytes are.
    pub fn read(bytes: &'a [u8]) -> Self {
        let mut diagnostics = Vec::new();
        let shape = Finder { bytes, diagnostics: &mut diagnostics }.find();
        let head = if let Shape::Lines(spans) = &shape { head_values(bytes, spans) } else { Vec::new() };
        Self { store: Store::Memory(bytes), shape, head, diagnostics }
    }

    /// Bytes that are known to be JSON lines, whatever they look like: one line is one record.
    pub fn lines(bytes: &'a [u8]) -> Self {
        let mut diagnostics = Vec::new();
        let start = Finder { bytes, diagnostics: &mut diagnostics }.skip_prefix();
        let spans = line_spans(bytes, start);
        let head = head_values(bytes, &spans);
        Self { store: Store::Memory(bytes), shape: Shape::Lines(spans), head, diagnostics }
    }

    /// The records of JSON lines that stand in a file at `spans`; only those read at the moment are in memory. `head`
    /// are the first of them, for recognising; empty if that is done.
    pub fn in_file(file: &'a File, spans: Vec<RecordSpan>, head: Vec<HeadRow<'a>>) -> Self {
        Self { store: Store::File(file), shape: Shape::Lines(spans), head, diagnostics: Vec::new() }
    }

    /// The elements, if the document is one list.
    pub fn list(&self) -> Option<&[Value<'a>]> {
        match &self.shape {
            Shape::Value(value) => value.as_array().map(Vec::as_slice),
            _ => None,
        }
    }

    /// All rows at once, with the remarks about those that could not be read.
    pub fn all_rows(&self) -> (Cow<'_, [Value<'a>]>, Vec<Diagnostic>) {
        if let Some(items) = self.list() {
            return (Cow::Borrowed(items), Vec::new());
        }
        let mut items = Vec::new();
        let diagnostics = self.rows(|row| items.push(row.value.clone().into_owned()));
        (Cow::Owned(items), diagnostics)
    }

    /// Calls `each` with every row: the records of JSON lines, the elements of a list, or the one object. Returns the
    /// remarks about records that could not be read.
    pub fn rows(&self, mut each: impl FnMut(Row<'_>)) -> Vec<Diagnostic> {
        let mut reader = RowReader::default();
        match &self.shape {
            Shape::Value(value) => self.values(value, &mut each),
            Shape::Lines(spans) => {
                for batch in batches(spans) {
                    self.batch(&mut reader, spans, batch, &mut each);
                }
            }
            Shape::Other(_) => {}
        }
        reader.finish()
    }

    /// Like [`rows`](Self::rows), on all threads of the pool: what `map` makes of each row, in order. A record is
    /// parsed, mapped and forgotten, so that a large file never stands in memory as values.
    pub fn map_rows<T: Send>(&self, map: impl Fn(Row<'_>) -> T + Sync) -> (Vec<T>, Vec<Diagnostic>) {
        let Shape::Lines(spans) = &self.shape else {
            let mut mapped = Vec::new();
            let diagnostics = self.rows(|row| mapped.push(map(row)));
            return (mapped, diagnostics);
        };
        let opening = self.head.first().and_then(|row| opening_of(&row.value));
        let read = |batch: Range<usize>| {
            let mut reader = RowReader::resuming_at(opening.clone());
            let mut mapped = Vec::new();
            self.batch(&mut reader, spans, batch, &mut |row| mapped.push(map(row)));
            (mapped, reader)
        };
        let parts: Vec<(Vec<T>, RowReader)> = batches(spans).into_par_iter().map(read).collect();
        let mut all = RowReader::default();
        let mut mapped = Vec::with_capacity(parts.len());
        for (part, reader) in parts {
            mapped.extend(part);
            all.add(reader);
        }
        (mapped, all.finish())
    }

    fn values(&self, value: &Value, each: &mut impl FnMut(Row<'_>)) {
        let (start, spans) = self.places(value);
        let Value::Array(items) = value else {
            each(Row { value, record: 0, span: ByteSpan { start, len: self.size() - start } });
            return;
        };
        for (record, value) in items.iter().enumerate() {
            let span = spans.get(record).copied().unwrap_or_default();
            each(Row { value, record, span });
        }
    }

    /// Where the value of the document begins, and where the elements of a list stand; none if that cannot be told.
    fn places(&self, value: &Value) -> (u64, Vec<ByteSpan>) {
        let Store::Memory(bytes) = &self.store else { return (0, Vec::new()) };
        let start = bytes.iter().position(|b| matches!(b, b'{' | b'[')).unwrap_or(0);
        let mut spans = Vec::new();
        let Some(items) = value.as_array() else { return (start as u64, spans) };
        let whole = skim::elements(bytes.get(start..).unwrap_or_default(), |range| {
            spans.push(ByteSpan { start: (start + range.start) as u64, len: range.len() as u64 });
            true
        });
        // A list that had to be repaired may look otherwise than it was read.
        if whole.is_none() || spans.len() != items.len() {
            spans.clear();
        }
        (start as u64, spans)
    }

    /// Some records of JSON lines: from the head if they were read there, else from the bytes.
    fn batch(&self, reader: &mut RowReader, spans: &[RecordSpan], batch: Range<usize>, each: &mut impl FnMut(Row<'_>)) {
        let these = spans.get(batch.clone()).unwrap_or_default();
        let (Some(first), Some(last)) = (these.first(), these.last()) else { return };
        let bytes = match self.store.get(first.start..last.end) {
            Ok(bytes) => bytes,
            Err(why) => return reader.lost(*first, these.len(), &why),
        };
        for (at, span) in batch.zip(these) {
            let known = self.head.binary_search_by_key(&at, |row| row.at).ok().and_then(|i| self.head.get(i));
            if let Some(row) = known.filter(|row| row.whole) {
                let bytes = ByteSpan { start: span.start as u64, len: (span.end - span.start) as u64 };
                reader.give(&row.value, bytes, span.line, each);
                continue;
            }
            let text = bytes.get(span.start - first.start..span.end - first.start).unwrap_or_default();
            reader.read(text, *span, at + 1 == spans.len(), each);
        }
    }

    /// At most so many bytes from the beginning; fewer if the document is shorter.
    pub fn beginning(&self, most: usize) -> Cow<'_, [u8]> {
        let len = usize::try_from(self.size()).unwrap_or(usize::MAX).min(most);
        match self.store.get(0..len) {
            Ok(Bytes::Given(bytes)) => Cow::Borrowed(bytes),
            Ok(Bytes::Read(bytes)) => Cow::Owned(bytes.to_vec()),
            Err(_) => Cow::default(),
        }
    }

    /// The whole document as text, invalid UTF-8 replaced: for what is no JSON.
    pub fn text(&self) -> String {
        lossy(&self.beginning(usize::MAX)).into_owned()
    }

    /// The lines of a text with their ends, invalid UTF-8 replaced, each with its bytes in the document.
    pub fn text_lines(&self) -> Vec<(ByteSpan, String)> {
        let bytes = self.beginning(usize::MAX);
        let mut start = 0;
        let line = |line: &[u8]| {
            let span = ByteSpan { start, len: line.len() as u64 };
            start += span.len;
            (span, lossy(line).into_owned())
        };
        bytes.split_inclusive(|b| *b == b'\n').map(line).collect()
    }

    /// Size of the document in bytes, unpacked.
    pub fn size(&self) -> u64 {
        self.store.len()
    }
}

/// Neighbouring records to be read together.
fn batches(spans: &[RecordSpan]) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let mut start = 0;
    for (at, span) in spans.iter().enumerate() {
        let first = spans.get(start).map_or(0, |s| s.start);
        if at > start && span.end.saturating_sub(first) > BATCH {
            batches.push(start..at);
            start = at;
        }
    }
    if start < spans.len() {
        batches.push(start..spans.len());
    }
    batches
}

/// Finds out what the bytes of a document are.
struct Finder<'a, 'd> {
    bytes: &'a [u8],
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl<'a> Finder<'a, '_> {
    fn find(mut self) -> Shape<'a> {
        let start = self.skip_prefix();
        self.find_shape(start)
    }

    /// Skips a byte order mark, white space and NULs; says so where it matters.
    fn skip_prefix(&mut self) -> usize {
        let mut at = 0;
        if self.bytes.starts_with(&[0xEF, 0xBB, 0xBF]) {
            at = 3;
            self.diagnostics
                .push(Diagnostic::new(Severity::Info, "text.bom", "a byte order mark was skipped").at_byte(0));
        }
        let rest = self.bytes.get(at..).unwrap_or_default();
        let skipped = rest.iter().position(|b| !json::is_space(*b)).unwrap_or(rest.len());
        if rest.get(..skipped).unwrap_or_default().contains(&0) {
            let text = "NUL bytes before the first record were skipped (a killed writer leaves them)";
            self.diagnostics.push(Diagnostic::new(Severity::Warning, "text.nul-run", text).at_byte(at as u64));
        }
        at + skipped
    }

    fn find_shape(&mut self, start: usize) -> Shape<'a> {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let Some(&first) = rest.first() else {
            return Shape::Other(Cow::Borrowed(if self.bytes.is_empty() {
                "empty file"
            } else {
                "nothing but white space"
            }));
        };
        if let Some((value, len)) = json::strict_prefix(rest) {
            let structured = value.is_object() || value.is_array();
            let behind = rest.get(len..).unwrap_or_default();
            if behind.iter().all(|b| json::is_space(*b)) {
                return if structured { Shape::Value(Box::new(value)) } else { Shape::Other(scalar(&value)) };
            }
            // One line, one value: JSON lines. A value over several lines with more behind it: several documents, or
            // garbage at the end.
            let one_line = !rest.get(..len).unwrap_or_default().contains(&b'\n');
            if one_line && (structured || value.is_null()) && self.mostly_lines(start) {
                return Shape::Lines(line_spans(self.bytes, start));
            }
            if structured {
                return self.several(start, value, len);
            }
        }
        if self.mostly_lines(start) {
            return Shape::Lines(line_spans(self.bytes, start));
        }
        if matches!(first, b'{' | b'[') { self.repaired(start) } else { Shape::Other(not_json(rest)) }
    }

    /// Do most of the first lines hold an object or a list each?
    fn mostly_lines(&self, start: usize) -> bool {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let lines = rest.split(|b| *b == b'\n').filter(|l| l.iter().any(|b| !json::is_space(*b))).take(HEAD_RECORDS);
        let (mut all, mut good, mut seen) = (0, 0, 0);
        for line in lines {
            all += 1;
            seen += line.len();
            let opens = line.iter().find(|b| !json::is_space(**b)).is_some_and(|b| matches!(b, b'{' | b'['));
            let whole = opens && line_is_complete(line);
            good += usize::from(whole || line.trim_ascii() == b"null");
            if seen > HEAD_BYTES && all > 1 {
                break;
            }
        }
        all > 1 && good * 2 >= all
    }

    /// A value over several lines, and something behind it.
    fn several(&mut self, start: usize, first: Value<'a>, len: usize) -> Shape<'a> {
        let mut spans = Vec::new();
        let (mut at, mut line) = (start, 1 + count_lines(self.bytes.get(..start)));
        let mut end = start + len;
        loop {
            spans.push(RecordSpan { start: at, end, line });
            let rest = self.bytes.get(end..).unwrap_or_default();
            let gap = rest.iter().position(|b| !json::is_space(*b)).unwrap_or(rest.len());
            let next = end + gap;
            let Some((value, len)) = json::strict_prefix(self.bytes.get(next..).unwrap_or_default()) else {
                if next < self.bytes.len() {
                    let text = format!("{} bytes behind the last complete value were ignored", self.bytes.len() - next);
                    let remark = Diagnostic::new(Severity::Warning, "json.trailing-garbage", text);
                    self.diagnostics.push(remark.at_byte(next as u64));
                }
                break;
            };
            if !value.is_object() && !value.is_array() {
                break;
            }
            line += count_lines(self.bytes.get(at..next));
            at = next;
            end = next + len;
        }
        if spans.len() == 1 { Shape::Value(Box::new(first)) } else { Shape::Lines(spans) }
    }

    /// One value that strict JSON refuses.
    fn repaired(&mut self, start: usize) -> Shape<'a> {
        let rest = self.bytes.get(start..).unwrap_or_default();
        match json::repair_prefix(rest) {
            Ok(parsed) => {
                let text = parsed.repairs.describe();
                if !text.is_empty() {
                    self.diagnostics.push(Diagnostic::new(Severity::Warning, "json.repaired", text));
                }
                if parsed.repairs.cut {
                    let text = "the file ends inside a value: what is complete was read; run the writer again, or wait if \
                                it is still writing";
                    let remark = Diagnostic::new(Severity::Warning, "json.cut", text);
                    self.diagnostics.push(remark.at_byte(self.bytes.len() as u64));
                } else if rest.get(parsed.end..).unwrap_or_default().iter().any(|b| !json::is_space(*b)) {
                    let text = format!("{} bytes behind the value were ignored", rest.len() - parsed.end);
                    let remark = Diagnostic::new(Severity::Warning, "json.trailing-garbage", text);
                    self.diagnostics.push(remark.at_byte((start + parsed.end) as u64));
                }
                Shape::Value(Box::new(parsed.value))
            }
            Err(error) => {
                let at = start + error.at;
                let line = 1 + count_lines(self.bytes.get(..at));
                Shape::Other(Cow::Owned(format!("broken JSON: {} (line {line}, byte {at})", error.what)))
            }
        }
    }
}

fn line_is_complete(line: &[u8]) -> bool {
    json::strict_len(line.trim_ascii()).is_some() || json::repair_prefix(line).is_ok_and(|p| !p.repairs.cut)
}

fn head_values<'a>(bytes: &'a [u8], spans: &[RecordSpan]) -> Vec<HeadRow<'a>> {
    let (mut head, mut seen) = (Vec::new(), 0);
    for (at, span) in spans.iter().take(HEAD_RECORDS).enumerate() {
        let text = bytes.get(span.start..span.end).unwrap_or_default();
        seen += text.len();
        if seen > HEAD_BYTES && !head.is_empty() {
            break;
        }
        let strict = json::strict_prefix(text);
        let whole = strict.as_ref().is_some_and(|(_, len)| *len == text.len());
        let value = strict.map(|(value, _)| value);
        let value = value.or_else(|| json::repair_prefix(text).ok().filter(|p| !p.repairs.cut).map(|p| p.value));
        head.extend(value.filter(|v| !v.is_null()).map(|value| HeadRow { at, value, whole }));
    }
    head
}

fn line_spans(bytes: &[u8], start: usize) -> Vec<RecordSpan> {
    let mut spans = Vec::new();
    let first = 1 + count_lines(bytes.get(..start));
    let mut at = start;
    for (line, part) in (first..).zip(bytes.get(start..).unwrap_or_default().split(|b| *b == b'\n')) {
        let text = |b: &u8| !json::is_space(*b);
        if let (Some(from), Some(to)) = (part.iter().position(text), part.iter().rposition(text)) {
            spans.push(RecordSpan { start: at + from, end: at + to + 1, line });
        }
        at += part.len() + 1;
    }
    spans
}

fn count_lines(bytes: Option<&[u8]>) -> usize {
    bytes.unwrap_or_default().iter().filter(|b| **b == b'\n').count()
}

fn scalar(value: &Value) -> Cow<'static, str> {
    Cow::Borrowed(match value {
        Value::String(_) => "a single JSON string, not an object or a list",
        Value::Number(_) => "a single JSON number, not an object or a list",
        Value::Bool(_) => "a single JSON boolean, not an object or a list",
        _ => "a single JSON null, not an object or a list",
    })
}

/// What text that is not JSON looks like.
fn not_json(rest: &[u8]) -> Cow<'static, str> {
    let head = String::from_utf8_lossy(rest.get(..4096.min(rest.len())).unwrap_or_default()).to_lowercase();
    let head = head.trim_start();
    let named = [
        ("<!doctype html", "an HTML page, not a trajectory (a download that failed?)"),
        ("<html", "an HTML page, not a trajectory (a download that failed?)"),
        ("<?xml", "an XML document"),
        ("--- ", "a patch or a YAML document"),
    ];
    for (start, what) in named {
        if head.starts_with(start) {
            return Cow::Borrowed(what);
        }
    }
    Cow::Borrowed("text that is not JSON")
}

#[cfg(test)]
mod tests;
