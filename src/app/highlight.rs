//! The seam to the highlight worker: which rows of a diff it gets, which syntax classes it gives back. No colours
//! here: a class is a meaning, the theme of `ui` gives it a colour.

use std::ops::Range;

/// What a piece of source text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SynClass {
    /// A comment.
    Comment,
    /// A string or character literal.
    String,
    /// A number, `true`, `None`, another constant.
    Constant,
    /// A keyword or storage modifier.
    Keyword,
    /// An operator.
    Operator,
    /// The name of a function where it is defined or called.
    Function,
    /// A type or class name.
    Type,
    /// A variable or parameter name.
    Variable,
    /// A bracket, comma or other mark.
    Punctuation,
    /// A tag or attribute of a markup language, a heading.
    Tag,
}

impl SynClass {
    /// Every class, for themes and tests.
    pub const ALL: [Self; 10] = [
        Self::Comment,
        Self::String,
        Self::Constant,
        Self::Keyword,
        Self::Operator,
        Self::Function,
        Self::Type,
        Self::Variable,
        Self::Punctuation,
        Self::Tag,
    ];
}

/// Which side of a diff a row belongs to; the worker keeps one parser state a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// On both sides.
    Both,
    /// Only in the old file.
    Old,
    /// Only in the new file.
    New,
}

/// One row of a hunk to highlight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HighlightLine {
    /// Number of the row, given back.
    pub row: usize,
    /// Its side.
    pub side: Side,
    /// The source text without the diff's first column, already safe to draw; ranges given back index into it.
    pub text: String,
}

/// One hunk: lines that follow one another in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HighlightHunk {
    /// Path of the file, for finding the syntax.
    pub path: String,
    /// The rows.
    pub lines: Vec<HighlightLine>,
}

/// A diff to highlight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HighlightRequest {
    /// Names the diff (sha256 of the patch); given back.
    pub id: String,
    /// Its hunks.
    pub hunks: Vec<HighlightHunk>,
}

/// Classes of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HighlightedRow {
    /// The row.
    pub row: usize,
    /// Byte ranges of [`HighlightLine::text`] in ascending order, not overlapping; gaps are plain.
    pub spans: Vec<(Range<usize>, SynClass)>,
}
