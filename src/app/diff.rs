//! A candidate patch as a document: line numbers, signs, where each file starts; and the request that gets it its
//! syntax colours.

use crate::patch::{self, BinaryData, FileChange, Hunk, Line, LineKind, PatchState};
use crate::text;

use super::doc::{Doc, DocLine, Paint, Tone};
use super::highlight::{HighlightHunk, HighlightLine, HighlightRequest, HighlightedRow, Side};

/// Columns between tab stops in source text: diffs are narrow here.
const TAB_WIDTH: usize = 4;

/// Longer diffs stay without syntax colours (the plain colours of a diff remain), and say so.
pub const HIGHLIGHT_MAX_LINES: usize = 10_000;

/// A patch laid out for reading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffDoc {
    /// SHA-256 of the exact patch; names the highlight request.
    pub id: String,
    /// The lines.
    pub doc: Doc,
    /// Path and first line of every file, in order.
    pub files: Vec<(String, usize)>,
    /// First line of every hunk, in order.
    pub hunks: Vec<usize>,
    /// Syntax classes have come.
    pub coloured: bool,
}

impl DiffDoc {
    /// Lays out a patch; `None` = there is none.
    pub fn of(raw: Option<&str>) -> Self {
        let mut diff = Self::default();
        let Some(raw) = raw else {
            diff.doc.push(Tone::Note, "no patch: neither the run nor a predictions file gives one");
            return diff;
        };
        let parsed = patch::parse(raw);
        diff.id = patch::sha256(raw);
        match parsed.state() {
            PatchState::Empty => diff.doc.push(Tone::Note, "the patch is empty"),
            PatchState::NotADiff => {
                diff.doc.push(Tone::Error, "not a diff; the text as it stands:");
                diff.doc.push_foreign(Tone::Plain, raw);
            }
            PatchState::Diff => {
                if !parsed.preamble.trim().is_empty() {
                    let lines = parsed.preamble.lines().count();
                    diff.doc.push(Tone::Note, format!("{lines} lines before the first file (a mail's head)"));
                }
                diff.doc.gutter = gutter_width(&parsed.files);
                for file in &parsed.files {
                    diff.push_file(file);
                }
                for note in &parsed.notes {
                    diff.doc.push(Tone::Note, format!("line {}: {}", note.line, text::one_line(&note.message)));
                }
                if parsed.no_final_newline {
                    diff.doc.push(Tone::Note, "the patch has no final line end");
                }
            }
        }
        diff
    }

    /// Line at which the file starts.
    pub fn line_of_file(&self, path: &str) -> Option<usize> {
        self.files.iter().find(|(p, _)| p == path).map(|(_, line)| *line)
    }

    /// What the highlight worker gets; `None` if the patch has no hunks or is too long.
    pub fn highlight_request(&self) -> Option<HighlightRequest> {
        if self.hunks.is_empty() || self.doc.lines.len() > HIGHLIGHT_MAX_LINES {
            return None;
        }
        let ends = self.hunks.iter().skip(1).copied().chain([self.doc.lines.len()]);
        let hunks = self.hunks.iter().zip(ends).map(|(&start, end)| {
            let path = self.files.iter().rev().find(|(_, line)| *line < start).map_or("", |(p, _)| p.as_str());
            let lines = (start + 1..end).filter_map(|row| {
                let line = &self.doc.lines[row];
                let side = match line.tone {
                    Tone::Added => Side::New,
                    Tone::Removed => Side::Old,
                    Tone::Context => Side::Both,
                    _ => return None,
                };
                Some(HighlightLine { row, side, text: line.text.clone() })
            });
            HighlightHunk { path: path.to_owned(), lines: lines.collect() }
        });
        Some(HighlightRequest { id: self.id.clone(), hunks: hunks.collect() })
    }

    /// Takes the syntax classes over. Ranges that do not fit the text are left out: they came from another text.
    pub fn colour(&mut self, rows: &[HighlightedRow]) {
        self.coloured = true;
        for row in rows {
            let Some(line) = self.doc.lines.get_mut(row.row) else { continue };
            let fits = |r: &std::ops::Range<usize>| line.text.get(r.clone()).is_some_and(|t| !t.is_empty());
            let spans = row.spans.iter().filter(|(range, _)| fits(range));
            let spans = spans.map(|(range, class)| (range.clone(), Paint::Syntax(*class))).collect();
            line.spans = spans;
        }
    }

    fn push_file(&mut self, file: &FileChange) {
        let (added, removed) = file.stats();
        let title = text::one_line(&file.title());
        let kind = match file.kind {
            patch::ChangeKind::Modify => String::new(),
            kind => format!(" [{}]", kind.name()),
        };
        self.files.push((text::one_line(file.path()), self.doc.lines.len()));
        self.doc.push(Tone::File, format!("{title}{kind}  +{added} −{removed}"));
        if let Some(binary) = &file.binary {
            self.doc.push(Tone::Note, binary_note(binary.forward));
        }
        for hunk in &file.hunks {
            self.push_hunk(hunk);
        }
    }

    fn push_hunk(&mut self, hunk: &Hunk) {
        self.hunks.push(self.doc.lines.len());
        let section = text::one_line(&hunk.section);
        let range = format!("@@ −{},{} +{},{} @@", hunk.old_start, hunk.old_len, hunk.new_start, hunk.new_len);
        self.doc.push(Tone::Hunk, format!("{range} {section}").trim_end());
        for line in &hunk.lines {
            let digits = self.doc.gutter.saturating_sub(3);
            self.doc.push_line(diff_line(line, digits));
            if line.no_newline {
                self.doc.push(Tone::Note, "no line end at the end of the file");
            }
        }
    }
}

fn binary_note(data: Option<BinaryData>) -> String {
    match data {
        Some(BinaryData::Literal(size)) => format!("binary file, {size} bytes"),
        Some(BinaryData::Delta(size)) => format!("binary file, changed by a delta of {size} bytes"),
        None => "binary file; the patch does not hold its content".to_owned(),
    }
}

/// `"  12 + "`: the number on the side the line is on, and a sign that does not rely on colour.
fn diff_line(line: &Line, digits: usize) -> DocLine {
    let (tone, sign, number) = match line.kind {
        LineKind::Context => (Tone::Context, ' ', line.new),
        LineKind::Add => (Tone::Added, '+', line.new),
        LineKind::Remove => (Tone::Removed, '−', line.old),
    };
    let number = number.map_or_else(String::new, |n| n.to_string());
    let mut text = text::sanitize_with(&line.text, TAB_WIDTH);
    if line.crlf {
        text.push_str("^M");
    }
    DocLine { text, tone, gutter: format!("{number:>digits$} {sign} "), spans: Vec::new() }
}

fn gutter_width(files: &[FileChange]) -> usize {
    let lines = files.iter().flat_map(|f| &f.hunks).flat_map(|h| &h.lines);
    let largest = lines.filter_map(|l| l.old.max(l.new)).max().unwrap_or(0);
    largest.to_string().len() + 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::highlight::SynClass;

    const PATCH: &str = "diff --git a/lib/jar.py b/lib/jar.py\n--- a/lib/jar.py\n+++ b/lib/jar.py\n\
        @@ -8,3 +8,3 @@ class Jar:\n def lid(self):\n-\treturn 0\n+\treturn 1\n \n\
        diff --git a/notes.txt b/notes.txt\nnew file mode 100644\n--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+jam\n";

    #[test]
    fn files_hunks_and_numbers_are_where_the_patch_has_them() {
        let diff = DiffDoc::of(Some(PATCH));
        assert_eq!(diff.files.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), ["lib/jar.py", "notes.txt"]);
        assert_eq!(diff.hunks.len(), 2);
        assert_eq!(diff.line_of_file("notes.txt"), Some(diff.files[1].1));
        let added: Vec<_> = diff.doc.lines.iter().filter(|l| l.tone == Tone::Added).collect();
        assert_eq!(added[0].text, "    return 1");
        assert_eq!(added[0].gutter, " 9 + ");
        assert!(diff.doc.lines[diff.files[1].1].text.contains("[add]"));
    }

    #[test]
    fn highlighting_is_asked_for_by_hunk_and_laid_over_the_right_rows() {
        let mut diff = DiffDoc::of(Some(PATCH));
        let request = diff.highlight_request().unwrap();
        assert_eq!(request.hunks.len(), 2);
        assert_eq!(request.hunks[0].path, "lib/jar.py");
        assert_eq!(request.hunks[1].path, "notes.txt");
        let line = request.hunks[0].lines.iter().find(|l| l.side == Side::New).unwrap();
        let spans = vec![(4..10, SynClass::Keyword), (90..99, SynClass::String)];
        diff.colour(&[HighlightedRow { row: line.row, spans }, HighlightedRow { row: 9999, spans: Vec::new() }]);
        assert_eq!(diff.doc.lines[line.row].spans, [(4..10, Paint::Syntax(SynClass::Keyword))]);
    }

    #[test]
    fn what_is_no_diff_is_still_shown() {
        let shown = |raw: Option<&str>| {
            let diff = DiffDoc::of(raw);
            assert!(diff.highlight_request().is_none());
            diff.doc.lines.iter().map(|l| l.text.clone()).collect::<Vec<_>>().join("|")
        };
        assert!(shown(None).contains("no patch"));
        assert!(shown(Some("")).contains("empty"));
        assert!(shown(Some("I could not do it")).contains("I could not do it"));
    }
}
