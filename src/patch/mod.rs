//! Candidate patches: read whatever an agent submitted, compare candidates, name what is odd about them.
//!
//! [`parse()`] never fails: it returns the files and hunks it could read, the text it could not, and notes with line
//! numbers. All texts are original; they go through `crate::text` where they enter a screen.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

#[cfg(test)]
mod cases;
mod compare;
mod header;
mod model;
mod parse;
mod paths;

pub use compare::{FileUse, Likeness, Twin, likeness, normalize, overlap, sha256, twins};
pub use model::{Binary, BinaryData, ChangeKind, FileChange, Hunk, Line, LineKind, Note, Patch, PatchState};
pub use parse::parse;
pub use paths::{PathClass, classify};
