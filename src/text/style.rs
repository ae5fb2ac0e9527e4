//! Styles of a piece of text, without any terminal library's types.

use std::ops::Range;

/// A colour as the text asked for it. What it looks like is the theme's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Color {
    /// The terminal's own.
    #[default]
    Default,
    /// One of the 16 named colours, 0 (black) to 15 (bright white).
    Named(u8),
    /// Entry 16 to 255 of the 256-colour table.
    Indexed(u8),
    /// True colour.
    Rgb(u8, u8, u8),
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent attribute of SGR")]
pub struct Style {
    /// Foreground.
    pub fg: Color,
    /// Background.
    pub bg: Color,
    /// SGR 1.
    pub bold: bool,
    /// SGR 2.
    pub dim: bool,
    /// SGR 3.
    pub italic: bool,
    /// SGR 4.
    pub underline: bool,
    /// SGR 7.
    pub reverse: bool,
    /// SGR 9.
    pub strike: bool,
}

/// A range of bytes of a line and its style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyleSpan {
    /// Bytes of the line's text, on character boundaries.
    pub range: Range<usize>,
    /// Their style.
    pub style: Style,
}

/// One line (no `\n` inside) with styles. Text that no span covers has the default style.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StyledLine {
    /// The text.
    pub text: String,
    /// Ascending, not overlapping, within the text.
    pub spans: Vec<StyleSpan>,
}

impl StyledLine {
    /// A line in the default style.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), spans: Vec::new() }
    }

    /// Appends text in a style, joining it to the last span where the style is the same.
    pub fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        let start = self.text.len();
        self.text.push_str(text);
        if style == Style::default() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.range.end == start && last.style == style => last.range.end = self.text.len(),
            _ => self.spans.push(StyleSpan { range: start..self.text.len(), style }),
        }
    }

    /// The pieces of `range` (bytes; one row of [`super::wrap()`], say) in order, each of one style. Together they are
    /// exactly that part of the text. A range that is not on character boundaries gives nothing.
    pub fn pieces(&self, range: Range<usize>) -> Vec<(&str, Style)> {
        let end = range.end.min(self.text.len());
        let mut at = range.start.min(end);
        let mut pieces = Vec::new();
        let first = self.spans.partition_point(|span| span.range.end <= at);
        for span in self.spans.iter().skip(first) {
            if span.range.start >= end {
                break;
            }
            let from = span.range.start.max(at);
            let to = span.range.end.min(end);
            pieces.push((at..from, Style::default()));
            pieces.push((from..to, span.style));
            at = to;
        }
        pieces.push((at..end, Style::default()));
        let text = |(bytes, style)| self.text.get::<Range<usize>>(bytes).map(|piece| (piece, style));
        pieces.into_iter().filter_map(text).filter(|(piece, _)| !piece.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOLD: Style = Style {
        fg: Color::Default,
        bg: Color::Default,
        bold: true,
        dim: false,
        italic: false,
        underline: false,
        reverse: false,
        strike: false,
    };

    #[test]
    fn equal_neighbours_share_a_span() {
        let mut line = StyledLine::default();
        line.push("ab", BOLD);
        line.push("cd", BOLD);
        line.push("", BOLD);
        line.push("e", Style::default());
        line.push("f", BOLD);
        assert_eq!(line.text, "abcdef");
        let ranges: Vec<_> = line.spans.iter().map(|s| s.range.clone()).collect();
        assert_eq!(ranges, [0..4, 5..6]);
    }

    #[test]
    fn pieces_cover_exactly_the_range() {
        let mut line = StyledLine::plain("plain ");
        line.push("bold", BOLD);
        line.push(" tail", Style::default());
        assert_eq!(line.pieces(0..6), [("plain ", Style::default())]);
        assert_eq!(line.pieces(4..12), [("n ", Style::default()), ("bold", BOLD), (" t", Style::default())]);
        assert_eq!(line.pieces(7..9), [("ol", BOLD)]);
        assert_eq!(line.pieces(14..99), [("l", Style::default())]);
        assert_eq!(line.pieces(3..3), []);
    }
}
