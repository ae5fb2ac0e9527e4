//! How many columns a text takes, and texts cut or padded to a number of columns.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns of one grapheme cluster. The same rule as ratatui's, so that what is computed here is what is drawn.
pub(super) fn grapheme_width(grapheme: &str) -> usize {
    if grapheme.chars().any(char::is_control) { 0 } else { grapheme.width() }
}

/// Columns that `s` takes on a screen. Control characters take none: they are never drawn.
pub fn display_width(s: &str) -> usize {
    if is_plain(s) {
        return s.len();
    }
    s.graphemes(true).map(grapheme_width).sum()
}

/// Printable ASCII only: one byte, one column.
pub(super) fn is_plain(s: &str) -> bool {
    s.bytes().all(|b| (b' '..=b'~').contains(&b))
}

/// The longest head of `s` (whole graphemes) that fits `width` columns, in bytes, and its columns.
fn head(s: &str, width: usize) -> (usize, usize) {
    let mut columns = 0;
    for (at, grapheme) in s.grapheme_indices(true) {
        let wide = grapheme_width(grapheme);
        if columns + wide > width {
            return (at, columns);
        }
        columns += wide;
    }
    (s.len(), columns)
}

/// `s` within `width` columns, ending in `…` if something was cut off. Never splits a grapheme; may be a column
/// short where a wide one does not fit.
pub fn truncate(s: &str, width: usize) -> Cow<'_, str> {
    if head(s, width).0 == s.len() {
        return Cow::Borrowed(s);
    }
    let Some(room) = width.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let kept = s.get(..head(s, room).0).unwrap_or_default();
    Cow::Owned(format!("{kept}…"))
}

/// `s` within `width` columns, its beginning cut off behind a `…`: for paths, whose end says more.
pub fn truncate_start(s: &str, width: usize) -> Cow<'_, str> {
    if head(s, width).0 == s.len() {
        return Cow::Borrowed(s);
    }
    let Some(room) = width.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let (mut columns, mut from) = (0, s.len());
    for (at, grapheme) in s.grapheme_indices(true).rev() {
        columns += grapheme_width(grapheme);
        if columns > room {
            break;
        }
        from = at;
    }
    Cow::Owned(format!("…{}", s.get(from..).unwrap_or_default()))
}

/// `s` in exactly `width` columns: cut as by [`truncate`], or padded with spaces on the right.
pub fn fit(s: &str, width: usize) -> String {
    let mut fitted = truncate(s, width).into_owned();
    let missing = width.saturating_sub(display_width(&fitted));
    fitted.extend(std::iter::repeat_n(' ', missing));
    fitted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn widths_of_scripts_and_emoji() {
        let widths = ["abc", "é", "e\u{301}", "日本", "👩\u{200d}🔬", "❄\u{fe0f}", "", "a\u{7}b"].map(display_width);
        assert_eq!(widths, [3, 1, 1, 4, 2, 2, 0, 2]);
    }

    #[test]
    fn cuts_at_graphemes() {
        assert_eq!(truncate("日本語", 5), "日本…");
        assert_eq!(truncate("日本語", 4), "日…");
        assert_eq!(truncate("日本語", 6), "日本語");
        assert_eq!(truncate("abc", 0), "");
        assert_eq!(truncate("", 0), "");
        assert_eq!(truncate("日", 1), "…");
        assert_eq!(truncate_start("src/app/mod.rs", 8), "…/mod.rs");
        assert_eq!(truncate_start("日本語", 4), "…語");
        assert_eq!(truncate_start("abc", 0), "");
    }

    #[test]
    fn pads_to_exact_columns() {
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!(fit("日本語", 4), "日… ");
    }

    proptest! {
        #[test]
        fn cut_texts_fit(s in "(?s).{0,60}", width in 0_usize..70) {
            prop_assert!(display_width(&truncate(&s, width)) <= width);
            prop_assert!(display_width(&truncate_start(&s, width)) <= width);
            if display_width(&s) <= width {
                prop_assert_eq!(truncate(&s, width), s.as_str());
            }
        }

        #[test]
        fn fitted_texts_fit_exactly(s in "[a-z日é👩\u{200d}🔬 ]{0,40}", width in 0_usize..50) {
            prop_assert_eq!(display_width(&fit(&s, width)), width);
        }
    }
}
