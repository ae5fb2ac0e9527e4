//! Everything about hostile text and columns: what a screen may show of bytes that an agent, a tool or a repository
//! wrote. No terminal library in here; styles are this module's own.
//!
//! Foreign text is made safe once, where it enters the screen, by [`sanitize()`], [`one_line`] or [`ansi_spans`]. The
//! critic and the exporter never get the result: they work on the original bytes.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

#[cfg(test)]
mod cases;
mod images;
mod indent;
mod sanitize;
mod scan;
mod style;
mod width;
mod wrap;

pub use images::fold_images;
pub use indent::indent_json;
pub use sanitize::{TAB_WIDTH, ansi_spans, one_line, sanitize, sanitize_with};
pub use style::{Color, Style, StyleSpan, StyledLine};
pub use width::{display_width, fit, truncate, truncate_start};
pub use wrap::wrap;
