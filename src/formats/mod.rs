//! Bytes to trajectories: one table of formats, detection by content, tolerant decoders.
//!
//! [`load()`] walks the paths given, recognises each file by what is in it ([`formats()`]), decodes in parallel and
//! returns a [`Dataset`](crate::trajectory::Dataset) in order of the paths. A file that is not understood is listed
//! with the reason. Adding a format is one module
//! that brings its rows of the table, with functions that recognise and read it.
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod action;
mod agentless;
mod agents;
mod aider;
mod archive;
mod atif;
mod autocoderover;
mod big;
mod branches;
mod buffer;
mod bytes;
mod cast;
mod chat;
mod checks;
mod claude;
mod codex;
mod companions;
mod copilot;
mod document;
mod field;
mod gemini;
mod harbor;
mod harness;
mod inspect;
mod json;
mod keep;
mod labelled;
mod load;
mod mini;
mod moatless;
mod names;
mod open;
mod opencode;
mod openhands;
mod otel;
mod patches;
mod pi;
mod predictions;
mod replay;
mod reports;
mod rewarded;
mod rows;
mod session;
mod sft;
mod skim;
mod sniff;
mod stub;
mod sweagent;
mod table;
mod tasks;
mod terminal_bench;
mod terminus;
mod trae;
mod tree;
mod trial;
mod walk;

pub use document::{Document, Row, Shape};
pub use load::{LoadedFile, load, load_bytes, load_within, recognise};
pub use names::instance_of;
pub use open::{open, raw};
pub use replay::{CONTINUES, mark_again};
pub use sniff::{Confidence, Match, Sniff};
pub use table::{Decoded, Format, Input, Kind, Reader, formats};
pub use tree::{Claim, Entry, Folder, FolderInput};
