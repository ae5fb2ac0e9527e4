//! One line of text cut into display rows.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::width::{grapheme_width, is_plain};

/// The display rows of `line` at `width` columns, as ranges of bytes: together the whole line, in order, at least one
/// row. A row ends after a blank where that leaves it at least half full, else wherever it is full. No grapheme is
/// split: one that is wider than `width` gets a row of its own. `width` 0 counts as 1.
pub fn wrap(line: &str, width: usize) -> Vec<Range<usize>> {
    let width = width.max(1);
    if is_plain(line) {
        if line.len() <= width {
            return std::iter::once(0..line.len()).collect();
        }
        let graphemes = line.bytes().enumerate().map(|(at, byte)| Piece { at, columns: 1, blank: byte == b' ' });
        return rows(graphemes, line.len(), width);
    }
    let graphemes = line.grapheme_indices(true).map(|(at, grapheme)| Piece {
        at,
        columns: grapheme_width(grapheme),
        blank: grapheme == " ",
    });
    rows(graphemes, line.len(), width)
}

struct Piece {
    at: usize,
    columns: usize,
    blank: bool,
}

fn rows(pieces: impl Iterator<Item = Piece>, len: usize, width: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let (mut start, mut columns) = (0, 0);
    // Where the row may end after its last blank, and the columns up to there.
    let mut after_blank: Option<(usize, usize)> = None;
    let mut blank_before = false;
    for piece in pieces {
        if blank_before && columns >= width.div_ceil(2) {
            after_blank = Some((piece.at, columns));
        }
        if columns + piece.columns > width && piece.at > start {
            let (end, taken) = after_blank.take().unwrap_or((piece.at, columns));
            rows.push(start..end);
            start = end;
            columns -= taken;
            // What moved to the new row can still leave no room when a wide grapheme follows it.
            if columns + piece.columns > width && piece.at > start {
                rows.push(start..piece.at);
                (start, columns) = (piece.at, 0);
            }
        }
        columns += piece.columns;
        blank_before = piece.blank;
    }
    rows.push(start..len);
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::display_width;

    fn wrapped(line: &str, width: usize) -> Vec<&str> {
        wrap(line, width).into_iter().map(|row| &line[row]).collect()
    }

    #[test]
    fn rows_end_after_blanks() {
        assert_eq!(wrapped("the quick brown fox", 10), ["the quick ", "brown fox"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("a bcdefgh", 6), ["a bcde", "fgh"], "a blank in the first half does not end a row");
    }

    #[test]
    fn wide_graphemes_are_not_split() {
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("日本", 1), ["日", "本"]);
        assert_eq!(wrapped("ab", 0), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn rows_are_the_line_and_fit(line in "[a-z 日é👩\u{200d}🔬\u{301}]{0,80}", width in 0_usize..30) {
            let rows = wrap(&line, width);
            let mut at = 0;
            for row in &rows {
                prop_assert_eq!(row.start, at);
                at = row.end;
                let text = &line[row.clone()];
                let graphemes = unicode_segmentation::UnicodeSegmentation::graphemes(text, true).count();
                prop_assert!(display_width(text) <= width.max(1) || graphemes == 1);
                prop_assert!(rows.len() == 1 || !text.is_empty());
            }
            prop_assert_eq!(at, line.len());
            let columns: usize = rows.iter().map(|row| display_width(&line[row.clone()])).sum();
            prop_assert_eq!(columns, display_width(&line));
        }
    }
}
