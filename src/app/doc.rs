//! A text to read on the screen: lines made safe, with meanings for colours, and a place to read on from.
//!
//! A document is wrapped only where it is looked at. A [`Scroll`] is a line and a byte in it, not a number of rows,
//! so nothing has to be wrapped to know where one is, and a resize keeps the place.

use std::ops::Range;

use crate::text;

use super::highlight::SynClass;

/// Longer lines are cut into lines of this many bytes, so that one row of a huge line costs no more than a small one.
/// The text stays whole: the pieces follow one another.
const LONGEST_LINE: usize = 8192;

/// What a whole line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading of this program's own, between parts of a document.
    Heading,
    /// Something said by this program about the text.
    Note,
    /// Something wrong.
    Error,
    /// Reasoning or thought of the agent.
    Thought,
    /// A command or call of the agent.
    Command,
    /// A line only in the new file.
    Added,
    /// A line only in the old file.
    Removed,
    /// A line on both sides of a diff.
    Context,
    /// The head of a hunk.
    Hunk,
    /// The head of a file in a diff.
    File,
    /// The place where the critic's value is read.
    Mark,
}

impl Tone {
    /// Every tone, for themes and tests.
    pub const ALL: [Self; 12] = [
        Self::Plain,
        Self::Heading,
        Self::Note,
        Self::Error,
        Self::Thought,
        Self::Command,
        Self::Added,
        Self::Removed,
        Self::Context,
        Self::Hunk,
        Self::File,
        Self::Mark,
    ];
}

/// What a piece of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Coloured by the text's own escape sequences.
    Ansi(text::Style),
    /// A syntax class.
    Syntax(SynClass),
    /// A tone other than the line's.
    Tone(Tone),
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocLine {
    /// Text, safe to draw, without a line end.
    pub text: String,
    /// What the line is.
    pub tone: Tone,
    /// Drawn at the left of the line's first row, outside of the text (line numbers, a sign).
    pub gutter: String,
    /// Pieces that differ from the tone: ascending, not overlapping, on character boundaries.
    pub spans: Vec<(Range<usize>, Paint)>,
}

/// A text to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doc {
    /// The lines.
    pub lines: Vec<DocLine>,
    /// Columns that the gutters take; 0 = none.
    pub gutter: usize,
}

/// The place of the first row on the screen: a byte of a line. The row that holds the byte is the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Scroll {
    /// Line.
    pub line: usize,
    /// Byte in its text.
    pub byte: usize,
}

/// One row as it will be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Line.
    pub line: usize,
    /// Bytes of its text.
    pub bytes: Range<usize>,
}

impl Doc {
    /// Appends one line of this program's own.
    pub fn push(&mut self, tone: Tone, text: impl Into<String>) {
        self.lines.push(DocLine { text: text.into(), tone, ..DocLine::default() });
    }

    /// Appends foreign text: made safe, colours kept.
    pub fn push_foreign(&mut self, tone: Tone, raw: &str) {
        for line in text::ansi_spans(raw.trim_end_matches('\n')) {
            self.push_styled(tone, line);
        }
    }

    fn push_styled(&mut self, tone: Tone, line: text::StyledLine) {
        let spans: Vec<(Range<usize>, Paint)> =
            line.spans.into_iter().map(|s| (s.range, Paint::Ansi(s.style))).collect();
        self.push_line(DocLine { text: line.text, tone, gutter: String::new(), spans });
    }

    /// Appends a line, cut into several where it is very long.
    pub fn push_line(&mut self, line: DocLine) {
        if line.text.len() <= LONGEST_LINE {
            self.lines.push(line);
            return;
        }
        let mut gutter = line.gutter;
        let mut start = 0;
        while start < line.text.len() {
            let end = cut_before(&line.text, start + LONGEST_LINE);
            let within = |(range, paint): &(Range<usize>, Paint)| {
                let from = range.start.max(start);
                let to = range.end.min(end);
                (from < to).then(|| (from - start..to - start, *paint))
            };
            let spans = line.spans.iter().filter_map(within).collect();
            let text = line.text.get(start..end).unwrap_or_default().to_owned();
            self.lines.push(DocLine { text, tone: line.tone, gutter: std::mem::take(&mut gutter), spans });
            start = end;
        }
    }

    /// Columns for text when the whole is `width` wide.
    pub fn text_width(&self, width: usize) -> usize {
        width.saturating_sub(self.gutter).max(1)
    }

    /// The rows from `from` on, at most `height` of them. Only what is returned is wrapped.
    pub fn rows(&self, from: Scroll, width: usize, height: usize) -> Vec<Row> {
        let mut rows = Vec::with_capacity(height.min(256));
        let mut skip = from.byte;
        for (line, doc_line) in self.lines.iter().enumerate().skip(from.line) {
            if rows.len() >= height {
                break;
            }
            let wrapped = text::wrap(&doc_line.text, self.text_width(width));
            let first = row_of(&wrapped, std::mem::take(&mut skip));
            let room = height - rows.len();
            rows.extend(wrapped.into_iter().skip(first).take(room).map(|bytes| Row { line, bytes }));
        }
        rows
    }

    /// The place `by` rows further down (negative: up), staying within the document.
    pub fn scrolled(&self, from: Scroll, by: isize, width: usize) -> Scroll {
        let from = self.clamped(from);
        if by >= 0 { self.down(from, by.unsigned_abs(), width) } else { self.up(from, by.unsigned_abs(), width) }
    }

    /// The place from which the last page shows: the last row stands at the bottom of `height` rows.
    pub fn bottom(&self, width: usize, height: usize) -> Scroll {
        let Some(last) = self.lines.len().checked_sub(1) else {
            return Scroll::default();
        };
        let end = Scroll { line: last, byte: self.lines[last].text.len() };
        self.up(end, height.saturating_sub(1), width)
    }

    /// Does anything lie below the page that starts at `from`?
    pub fn has_more(&self, from: Scroll, width: usize, height: usize) -> bool {
        let rows = self.rows(from, width, height + 1);
        rows.len() > height
    }

    fn clamped(&self, from: Scroll) -> Scroll {
        match self.lines.get(from.line) {
            Some(line) => Scroll { byte: from.byte.min(line.text.len()), ..from },
            None => Scroll { line: self.lines.len().saturating_sub(1), byte: 0 },
        }
    }

    fn down(&self, from: Scroll, by: usize, width: usize) -> Scroll {
        let mut at = from;
        let mut left = by;
        while let Some(line) = self.lines.get(at.line) {
            let wrapped = text::wrap(&line.text, self.text_width(width));
            let row = row_of(&wrapped, at.byte);
            if let Some(target) = wrapped.get(row + left) {
                return Scroll { line: at.line, byte: target.start };
            }
            if at.line + 1 >= self.lines.len() {
                return Scroll { line: at.line, byte: wrapped.last().map_or(0, |r| r.start) };
            }
            left -= wrapped.len() - row;
            at = Scroll { line: at.line + 1, byte: 0 };
        }
        from
    }

    fn up(&self, from: Scroll, by: usize, width: usize) -> Scroll {
        let mut at = from;
        let mut left = by;
        while let Some(line) = self.lines.get(at.line) {
            let wrapped = text::wrap(&line.text, self.text_width(width));
            let row = row_of(&wrapped, at.byte);
            if row >= left {
                return Scroll { line: at.line, byte: wrapped.get(row - left).map_or(0, |r| r.start) };
            }
            let Some(before) = at.line.checked_sub(1) else {
                return Scroll::default();
            };
            left -= row + 1;
            at = Scroll { line: before, byte: self.lines[before].text.len() };
        }
        Scroll::default()
    }
}

/// The row that holds `byte`; the last one for a byte at or behind the end.
fn row_of(rows: &[Range<usize>], byte: usize) -> usize {
    rows.iter().position(|r| byte < r.end).unwrap_or(rows.len().saturating_sub(1))
}

/// The largest character boundary at or before `at`, beyond the character that starts before it.
fn cut_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn doc(lines: &[&str]) -> Doc {
        let mut doc = Doc::default();
        for line in lines {
            doc.push(Tone::Plain, *line);
        }
        doc
    }

    fn texts(doc: &Doc, from: Scroll, width: usize, height: usize) -> Vec<String> {
        doc.rows(from, width, height).into_iter().map(|r| doc.lines[r.line].text[r.bytes].to_owned()).collect()
    }

    #[test]
    fn scrolls_by_rows_through_wrapped_lines() {
        let doc = doc(&["abcdef", "", "xy"]);
        assert_eq!(texts(&doc, Scroll::default(), 4, 9), ["abcd", "ef", "", "xy"]);
        let at = doc.scrolled(Scroll::default(), 1, 4);
        assert_eq!(texts(&doc, at, 4, 2), ["ef", ""]);
        assert_eq!(doc.scrolled(at, -5, 4), Scroll::default());
        assert_eq!(texts(&doc, doc.scrolled(at, 99, 4), 4, 9), ["xy"]);
        assert_eq!(texts(&doc, doc.bottom(4, 2), 4, 2), ["", "xy"]);
        assert!(doc.has_more(Scroll::default(), 4, 3));
        assert!(!doc.has_more(Scroll::default(), 4, 4));
    }

    #[test]
    fn a_resize_keeps_the_place() {
        let doc = doc(&["abcdefgh"]);
        let at = doc.scrolled(Scroll::default(), 2, 2);
        assert_eq!(at.byte, 4);
        assert_eq!(texts(&doc, at, 8, 1), ["abcdefgh"], "the row that holds the byte is shown");
    }

    #[test]
    fn a_huge_line_is_cut_without_losing_text_or_colour() {
        let raw = format!("\x1b[31m{}\x1b[0m", "é".repeat(LONGEST_LINE));
        let mut doc = Doc::default();
        doc.push_foreign(Tone::Plain, &raw);
        assert!(doc.lines.len() > 1);
        let whole: String = doc.lines.iter().map(|l| l.text.as_str()).collect();
        assert_eq!(whole, "é".repeat(LONGEST_LINE));
        assert!(doc.lines.iter().all(|l| l.spans.len() == 1 && l.spans[0].0 == (0..l.text.len())));
    }

    #[test]
    fn an_empty_document_has_no_rows() {
        let doc = Doc::default();
        assert!(doc.rows(Scroll::default(), 10, 10).is_empty());
        assert_eq!(doc.scrolled(Scroll::default(), 3, 10), Scroll::default());
        assert_eq!(doc.bottom(10, 3), Scroll::default());
    }

    proptest! {
        #[test]
        fn down_then_up_comes_back(
            lines in proptest::collection::vec("[a-zé日 ]{0,30}", 1..8), width in 1_usize..12, by in 0_isize..40,
        ) {
            let doc = doc(&lines.iter().map(String::as_str).collect::<Vec<_>>());
            let all = doc.rows(Scroll::default(), width, 10_000).len() as isize;
            let down = doc.scrolled(Scroll::default(), by, width);
            let expected = all - by.min(all - 1);
            prop_assert_eq!(doc.rows(down, width, 10_000).len() as isize, expected);
            prop_assert_eq!(doc.scrolled(down, -by, width), Scroll::default());
        }
    }
}
