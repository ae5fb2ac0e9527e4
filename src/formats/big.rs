//! Files too large to stand in memory: indexed first, then read record by record.
//!
//! Three passes, each in parallel over stretches of the file. The head tells the format. The index finds every record
//! and, where a row is a trajectory, what identifies it ([`Stubs`]): that is what the first screen shows. Then every
//! row is read, counted and let go again, unless there is room for it.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::buffer::Buffer;
use super::document::store::read_at;
use super::document::{Document, RecordSpan};
use super::json;
use super::keep::Keep;
use super::load::{self, LoadedFile};
use super::stub::Stubs;
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::tree::Entry;
use crate::trajectory::{Diagnostic, Trajectory};

/// From this size on a file is indexed instead of read whole.
pub const BIG: u64 = 24 << 20;
/// First bytes that tell the format.
const HEAD: usize = 4 << 20;
/// ... and how far they may grow to hold one whole record.
const LONGEST_HEAD: usize = 512 << 20;
/// Bytes that a thread indexes at a time: a record is seldom longer.
const CHUNK: usize = 8 << 20;
/// Bytes that a thread reads at a time.
const BATCH: usize = 2 << 20;

/// A large file of JSON lines.
struct Big<'a> {
    path: &'a Path,
    file: File,
    len: usize,
    format: &'static Format,
    decode: fn(&Input<'_>) -> Decoded,
    reason: String,
    /// Bytes that a thread indexes at a time.
    chunk: usize,
}

/// What the index knows.
#[derive(Default)]
struct Index {
    spans: Vec<RecordSpan>,
    /// Values before each record.
    values: Vec<usize>,
    stubs: Vec<Trajectory>,
}

/// Reads a large file on disk; `None` if it is not JSON lines and must be read whole. `on_part` gets what is known so
/// far: the trajectories found, then those read.
pub fn load(entry: &Entry, keep: &Keep, on_part: &(dyn Fn(LoadedFile) + Sync)) -> Option<LoadedFile> {
    if entry.len < BIG { None } else { load_by(entry, CHUNK, keep, on_part) }
}

fn load_by(entry: &Entry, chunk: usize, keep: &Keep, on_part: &(dyn Fn(LoadedFile) + Sync)) -> Option<LoadedFile> {
    if !entry.is_on_disk() {
        return None;
    }
    let file = File::open(&entry.path).ok()?;
    let len = usize::try_from(file.metadata().ok()?.len()).ok()?;
    let head = head(&file, len)?;
    let document = Document::lines(&head);
    let (format, seen) = match load::recognise_document(&entry.path, &document) {
        Ok(found) => found,
        Err(file) => return Some(*file),
    };
    let Reader::File { decode, .. } = format.reader else { return None };
    let reason = format!("{}: {}", format.name, seen.reason);
    let input = Input { path: &entry.path, document: &document, format: format.id };
    let mut records = 0;
    drop(document.rows(|_| records += 1));
    let rows = format.kind == Kind::Trajectory && are_rows(&decode(&input).trajectories, records);
    let big = Big { path: &entry.path, file, len, format, decode, reason, chunk };
    Some(if rows { big.rows(keep, on_part) } else { big.whole(keep) })
}

/// The first complete lines; `None` if the first line is no JSON value.
fn head(file: &File, len: usize) -> Option<Vec<u8>> {
    let mut size = HEAD;
    loop {
        let mut head = vec![0; size.min(len)];
        read_at(file, &mut head, 0).ok()?;
        if let Some(end) = memchr::memrchr(b'\n', &head) {
            head.truncate(end + 1);
            return if mostly_records(&head) { Some(head) } else { None };
        }
        if size >= len || size >= LONGEST_HEAD {
            return None;
        }
        size *= 4;
    }
}

/// Does at least every second of the first lines hold a whole record? The very first may be cut, or a run of NULs.
fn mostly_records(head: &[u8]) -> bool {
    let lines = head.split(|b| *b == b'\n').map(|l| l.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(l));
    let lines = lines.filter(|l| l.iter().any(|b| !json::is_space(*b))).take(20);
    let (mut all, mut whole) = (0, 0);
    for line in lines {
        let from = line.iter().position(|b| !json::is_space(*b)).unwrap_or(0);
        let line = line.get(from..).unwrap_or_default();
        let opens = matches!(line.first(), Some(b'{' | b'['));
        let complete =
            opens && (json::strict_len(line).is_some() || json::repair_prefix(line).is_ok_and(|p| !p.repairs.cut));
        all += 1;
        whole += usize::from(complete || line.trim_ascii() == b"null");
    }
    whole > 0 && whole * 2 >= all
}

/// Is every record a trajectory of its own?
fn are_rows(trajectories: &[Trajectory], records: usize) -> bool {
    !trajectories.is_empty()
        && trajectories.iter().all(|t| t.source.span.len > 0)
        && trajectories.len() * 2 >= records
        && trajectories.len() <= records
}

impl Big<'_> {
    /// Each record is a trajectory.
    fn rows(&self, keep: &Keep, on_part: &(dyn Fn(LoadedFile) + Sync)) -> LoadedFile {
        let index = self.index(&|part| on_part(self.part(part)));
        let batches = index.batches();
        let read = |batch: &Range<usize>| {
            let mut decoded = self.read(&index, batch.clone());
            for trajectory in &mut decoded.trajectories {
                keep.settle(trajectory);
            }
            on_part(self.part(decoded.trajectories.clone()));
            decoded
        };
        let parts: Vec<Decoded> = batches.par_iter().map(read).collect();
        let mut all = Decoded::default();
        for part in parts {
            all.trajectories.extend(part.trajectories);
            all.diagnostics.extend(part.diagnostics);
        }
        all.diagnostics = merged(all.diagnostics);
        load::loaded(self.path, self.format, &self.reason, all)
    }

    /// The records belong together (a session), or are no trajectories.
    fn whole(&self, keep: &Keep) -> LoadedFile {
        let index = self.spans();
        let document = Document::in_file(&self.file, index.spans, Vec::new());
        let mut decoded = (self.decode)(&Input { path: self.path, document: &document, format: self.format.id });
        load::finish(self.path, self.len as u64, true, &mut decoded);
        let mut file = load::loaded(self.path, self.format, &self.reason, decoded);
        keep.settle_file(&mut file);
        file
    }

    fn read(&self, index: &Index, batch: Range<usize>) -> Decoded {
        let first = index.values.get(batch.start).copied().unwrap_or(0);
        let spans = index.spans.get(batch).unwrap_or_default().to_vec();
        let document = Document::in_file(&self.file, spans, Vec::new());
        let mut decoded = (self.decode)(&Input { path: self.path, document: &document, format: self.format.id });
        load::finish(self.path, 0, false, &mut decoded);
        for trajectory in &mut decoded.trajectories {
            trajectory.source.record += first;
        }
        for remark in &mut decoded.diagnostics {
            remark.at.record = remark.at.record.map(|record| record + first);
        }
        decoded
    }

    fn part(&self, trajectories: Vec<Trajectory>) -> LoadedFile {
        load::loaded(self.path, self.format, &self.reason, Decoded { trajectories, ..Decoded::default() })
    }

    /// Every record, and what identifies its trajectory; `on_part` gets the trajectories as they are found.
    fn index(&self, on_part: &(dyn Fn(Vec<Trajectory>) + Sync)) -> Index {
        self.scan(true, on_part)
    }

    /// Every record.
    fn spans(&self) -> Index {
        self.scan(false, &|_| {})
    }

    fn scan(&self, stubs: bool, on_part: &(dyn Fn(Vec<Trajectory>) + Sync)) -> Index {
        let starts: Vec<usize> = (0..self.len).step_by(self.chunk).collect();
        // A group of chunks at a time, so that the first rows are known before the last are looked for, and record
        // numbers are known as soon as their group is done.
        let mut index = Index::default();
        let (mut lines, mut records) = (0, 0);
        for group in starts.chunks(rayon::current_num_threads() * 2) {
            let scanned: Vec<Scanned> = group.par_iter().map(|start| self.chunk(*start, stubs)).collect();
            let known = index.stubs.len();
            for mut chunk in scanned {
                for span in &mut chunk.spans {
                    span.line += lines;
                }
                for stub in &mut chunk.stubs {
                    stub.source.record += records;
                }
                lines += chunk.lines;
                index.spans.extend(chunk.spans);
                for n in chunk.values {
                    index.values.push(records);
                    records += n as usize;
                }
                index.stubs.extend(chunk.stubs);
            }
            if stubs {
                on_part(index.stubs.get(known..).unwrap_or_default().to_vec());
            }
        }
        index
    }

    /// The records that begin in one chunk.
    fn chunk(&self, start: usize, with_stubs: bool) -> Scanned {
        let end = (start + self.chunk).min(self.len);
        let Some((bytes, from)) = self.whole_lines(start, end) else { return Scanned::default() };
        let mut scanned = Scanned::default();
        let mut stubs = Stubs::default();
        let mut at = from;
        while at < end - start && at < bytes.len() {
            let rest = bytes.get(at..).unwrap_or_default();
            let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest.get(..len).unwrap_or_default();
            let text = |b: &u8| !json::is_space(*b);
            if let (Some(first), Some(last)) = (line.iter().position(text), line.iter().rposition(text)) {
                let bom = if start == 0 && line.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
                let (first, last) = (at + first.max(bom), at + last + 1);
                let span = RecordSpan { start: start + first, end: start + last, line: scanned.lines + 1 };
                if with_stubs {
                    stubs.add(bytes.get(first..last).unwrap_or_default(), span);
                }
                scanned.spans.push(span);
            }
            scanned.lines += 1;
            at += len + 1;
        }
        if with_stubs {
            scanned.stubs = stubs.decode(|document| {
                let input = Input { path: self.path, document, format: self.format.id };
                let mut decoded = (self.decode)(&input);
                load::finish(self.path, 0, false, &mut decoded);
                decoded
            });
            scanned.values = stubs.values;
        } else {
            scanned.values = vec![1; scanned.spans.len()];
        }
        scanned
    }

    /// The bytes from `start` on to the end of the last line that begins before `end`, and where in them the first
    /// line begins.
    fn whole_lines(&self, start: usize, end: usize) -> Option<(Buffer, usize)> {
        let mut bytes = Buffer::of(end - start);
        read_at(&self.file, &mut bytes, start as u64).ok()?;
        let mut before = [b'\n'];
        if start > 0 {
            read_at(&self.file, &mut before, start as u64 - 1).ok()?;
        }
        let from = if before == [b'\n'] { 0 } else { memchr::memchr(b'\n', &bytes)? + 1 };
        if from >= bytes.len() {
            return None;
        }
        let mut more = 1 << 18;
        let mut seen = bytes.len() - 1;
        while memchr::memchr(b'\n', bytes.get(seen..).unwrap_or_default()).is_none() && start + bytes.len() < self.len {
            seen = bytes.len();
            let to = (start + seen + more).min(self.len);
            bytes.grow(to - start);
            read_at(&self.file, bytes.get_mut(seen..)?, (start + seen) as u64).ok()?;
            more *= 2;
        }
        Some((bytes, from))
    }
}

/// What a chunk holds. Lines and records count from its first.
#[derive(Default)]
struct Scanned {
    spans: Vec<RecordSpan>,
    lines: usize,
    values: Vec<u32>,
    stubs: Vec<Trajectory>,
}

impl Index {
    /// Neighbouring records to be read together.
    fn batches(&self) -> Vec<Range<usize>> {
        let mut batches = Vec::new();
        let mut start = 0;
        for (at, span) in self.spans.iter().enumerate() {
            let first = self.spans.get(start).map_or(0, |s| s.start);
            if at > start && span.end - first > BATCH {
                batches.push(start..at);
                start = at;
            }
        }
        batches.push(start..self.spans.len());
        batches
    }
}

/// Remarks of the parts of one file: those that only count the same thing are added up.
fn merged(remarks: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut all: Vec<Diagnostic> = Vec::new();
    for remark in remarks {
        let Some((n, what)) = counted(&remark.message) else {
            all.push(remark);
            continue;
        };
        let mut same = all.iter_mut().filter(|a| a.code == remark.code && a.severity == remark.severity);
        let known = same.find_map(|a| Some((counted(&a.message)?.0, a)));
        match known {
            Some((m, a)) => {
                // The plural is what the longer of the two says.
                let what = counted(&a.message).map(|(_, w)| w).filter(|w| w.len() > what.len()).unwrap_or(what);
                let plural = what.replacen(" line ", " lines ", 1);
                a.message = format!("{}{plural}", n + m);
            }
            None => all.push(remark),
        }
    }
    all
}

/// `"3 null lines skipped"` as 3 and the rest.
fn counted(message: &str) -> Option<(u64, &str)> {
    let digits = message.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = message.split_at_checked(digits)?;
    Some((number.parse().ok()?, rest)).filter(|(_, rest)| rest.starts_with(' ') && !rest.starts_with(" ×"))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::sync::Mutex;

    use super::*;
    use crate::trajectory::Body;

    /// Rows of an evaluation with everything that goes wrong between them.
    fn rows() -> String {
        let mut text = "\u{feff}\n".to_owned();
        for i in 0..40 {
            let history = format!(
                r#"[{{"id":0,"source":"agent","action":"run","args":{{"command":"ls {i}"}}}},{{"id":1,"source":"agent","observation":"run","content":"{}","extras":{{}}}}]"#,
                "x".repeat(i * 7)
            );
            let row = format!(
                r#"{{"instance_id":"o__r-{i}","test_result":{{"git_patch":"P{i}"}},"history":{history},"metrics":{{"accumulated_cost":0.5}},"report":{{"resolved":{}}}}}"#,
                i % 2 == 0
            );
            let end = if i % 5 == 0 { "\r\n" } else { "\n" };
            match i {
                7 => text.push_str("null\n\n"),
                9 => write!(text, "{row}").unwrap(),
                13 => text.push_str("not json\n"),
                _ => {}
            }
            write!(text, "{row}{end}").unwrap();
        }
        text.push_str("{\"instance_id\":\"o__r-cut\",\"history\":[{");
        text
    }

    fn entry(folder: &tempfile::TempDir, text: &str) -> Entry {
        let path = folder.path().join("output.jsonl");
        std::fs::write(&path, text).unwrap();
        Entry::on_disk(path, text.len() as u64)
    }

    #[test]
    fn a_file_read_in_pieces_gives_what_it_gives_whole() {
        let folder = tempfile::tempdir().unwrap();
        let entry = entry(&folder, &rows());
        let whole = load::load_entry(&entry);
        assert_eq!(whole.trajectories.len(), 41);
        for chunk in [64, 500, 3_000, 1 << 20] {
            let parts = Mutex::new(Vec::new());
            let read = load_by(&entry, chunk, &Keep::new(None), &|part| parts.lock().unwrap().push(part)).unwrap();
            assert_eq!(read.trajectories, whole.trajectories, "in chunks of {chunk}");
            assert_eq!(read.report.format, whole.report.format);
            let remarks =
                |f: &LoadedFile| f.report.diagnostics.iter().map(|d| (d.code, d.message.clone())).collect::<Vec<_>>();
            // The mark is skipped without a word where only the records are looked at.
            let without_bom: Vec<_> = remarks(&whole).into_iter().filter(|(code, _)| *code != "text.bom").collect();
            assert_eq!(remarks(&read), without_bom, "in chunks of {chunk}");
            let found = |t: &&std::sync::Arc<Trajectory>| t.body == Body::Found;
            let parts = parts.into_inner().unwrap();
            let stubs: Vec<_> = parts.iter().flat_map(|p| &p.trajectories).filter(found).collect();
            assert_eq!(stubs.len(), whole.trajectories.len(), "every row is found before it is read");
            for (stub, whole) in stubs.iter().zip(&whole.trajectories) {
                assert_eq!(stub.source, whole.source, "in chunks of {chunk}");
                assert_eq!(
                    (&stub.instance_id, &stub.patch, stub.outcome),
                    (&whole.instance_id, &whole.patch, whole.outcome)
                );
                assert_eq!((stub.format, stub.usage.cost), (whole.format, None));
            }
        }
    }

    #[test]
    fn what_was_let_go_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let entry = entry(&folder, &rows());
        let whole = load::load_entry(&entry);
        let read = load_by(&entry, 900, &Keep::new(Some(0)), &|_| {}).unwrap();
        for (kept, whole) in read.trajectories.iter().zip(&whole.trajectories) {
            assert!(!kept.is_whole());
            assert_eq!(kept.known_actions(), whole.known_actions());
            assert_eq!(kept.usage, whole.usage);
            assert_eq!(super::super::open(kept).unwrap(), *whole);
        }
        std::fs::write(&entry.path, "{}").unwrap();
        let why = super::super::open(&read.trajectories[3]).unwrap_err();
        assert!(why.contains("not there any more") && !why.contains('\n'), "{why}");
    }

    #[test]
    fn other_files_are_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["{\n \"a\": 1\n}\n", "plain text\nand more\n", "{\"a\": 1}", ""] {
            let entry = entry(&folder, text);
            assert!(load_by(&entry, 64, &Keep::new(None), &|_| {}).is_none(), "{text}");
        }
        let entry = entry(&folder, "{\"what\": 1}\n{\"what\": 2}\n");
        let refused = load_by(&entry, 64, &Keep::new(None), &|_| {}).unwrap();
        assert!(refused.report.reason.contains("no known format"), "{}", refused.report.reason);
    }

    #[test]
    fn records_that_belong_together_are_streamed() {
        let folder = tempfile::tempdir().unwrap();
        let messages: Vec<String> = (0..50)
            .map(|i| format!(r#"{{"role":"{}","content":"m{i}"}}"#, if i % 2 == 0 { "user" } else { "assistant" }))
            .collect();
        let entry = entry(&folder, &(messages.join("\n") + "\n"));
        let read = load_by(&entry, 100, &Keep::new(None), &|_| {}).unwrap();
        assert_eq!(read.trajectories.len(), 1);
        assert_eq!(read.trajectories[0].n_actions(), 25);
    }

    #[test]
    fn remarks_of_parts_are_added_up() {
        let remark = |text: &str| Diagnostic::new(crate::trajectory::Severity::Warning, "x", text);
        let all = merged(vec![remark("1 null line skipped"), remark("other"), remark("2 null lines skipped")]);
        let texts: Vec<&str> = all.iter().map(|d| d.message.as_str()).collect();
        assert_eq!(texts, ["3 null lines skipped", "other"]);
        let ones = merged(vec![remark("1 null line skipped"), remark("1 null line skipped")]);
        assert_eq!(ones[0].message, "2 null lines skipped");
    }
}
