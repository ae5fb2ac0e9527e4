//! The table of formats: one row each, nothing about a format is written anywhere else.

use std::collections::BTreeMap;
use std::path::Path;

use super::document::Document;
use super::sniff::{Match, Sniff};
use super::tree::{Claim, Folder, FolderInput};
use super::{
    agentless, agents, aider, atif, autocoderover, cast, chat, claude, codex, companions, copilot, gemini, harbor,
    harness, inspect, labelled, mini, moatless, opencode, openhands, otel, patches, pi, predictions, reports, rewarded,
    sft, sweagent, terminal_bench, trae,
};
use crate::trajectory::{Diagnostic, Prediction, RunReport, Trajectory};

/// What a format holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Trajectories.
    Trajectory,
    /// Candidate patches.
    Prediction,
    /// Outcomes of an evaluation.
    Report,
    /// Issue texts, to be joined with trajectories that have none.
    Tasks,
    /// A file that lies beside the data and holds nothing to show by itself (settings, metadata, costs).
    Companion,
}

impl Kind {
    /// Lower-case name, as shown by `trajscope formats`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trajectory => "trajectory",
            Self::Prediction => "prediction",
            Self::Report => "report",
            Self::Tasks => "tasks",
            Self::Companion => "companion",
        }
    }
}

/// One on-disk format.
pub struct Format {
    /// Stable id, as in JSON output and [`Trajectory::format`].
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// The program that writes it.
    pub writer: &'static str,
    /// By what it is recognised.
    pub recognised: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// How it is recognised and read.
    pub reader: Reader,
}

/// How a format is recognised and read. Decoders never fail: what cannot be read is a diagnostic.
pub enum Reader {
    /// A file by itself.
    File {
        /// Does it look like this format?
        sniff: fn(&Sniff<'_>) -> Option<Match>,
        /// Reads it.
        decode: fn(&Input<'_>) -> Decoded,
    },
    /// Several files of one folder (or archive) together.
    Folder {
        /// Which files below this folder belong together as this format, if any do.
        claim: fn(&Folder<'_>) -> Option<Claim>,
        /// Reads them.
        decode: fn(&FolderInput<'_>) -> Decoded,
    },
}

/// A document to decode.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its content.
    pub document: &'a Document<'a>,
    /// The id of the format it was recognised as.
    pub format: &'static str,
}

/// What a file held.
#[derive(Debug, Clone, Default)]
pub struct Decoded {
    /// Trajectories in file order.
    pub trajectories: Vec<Trajectory>,
    /// Predictions in file order.
    pub predictions: Vec<Prediction>,
    /// Reports.
    pub reports: Vec<RunReport>,
    /// Issue texts by instance id.
    pub tasks: BTreeMap<String, String>,
    /// Remarks about the file as a whole.
    pub diagnostics: Vec<Diagnostic>,
}

/// Trajectories with the number of their record, where some records hold none.
pub fn numbered(rows: Vec<Option<Trajectory>>) -> Vec<Trajectory> {
    let numbered = rows.into_iter().enumerate().filter_map(|(record, row)| {
        let mut trajectory = row?;
        trajectory.source.record = record;
        Some(trajectory)
    });
    numbered.collect()
}

/// Every family of formats, the more special before the more general: one module each, which brings its rows.
static FAMILIES: &[&[Format]] = &[
    autocoderover::FORMATS,
    moatless::FORMATS,
    aider::FORMATS,
    trae::FORMATS,
    agentless::FORMATS,
    rewarded::FORMATS,
    otel::FORMATS,
    openhands::FORMATS,
    sweagent::FORMATS,
    mini::FORMATS,
    inspect::FORMATS,
    harbor::FORMATS,
    terminal_bench::FORMATS,
    cast::FORMATS,
    atif::FORMATS,
    claude::FORMATS,
    codex::FORMATS,
    gemini::FORMATS,
    pi::FORMATS,
    opencode::FORMATS,
    copilot::FORMATS,
    sft::FORMATS,
    agents::FORMATS,
    labelled::FORMATS,
    predictions::FORMATS,
    reports::FORMATS,
    harness::FORMATS,
    patches::FORMATS,
    companions::FORMATS,
    chat::FORMATS,
];

/// Every format this program reads.
pub fn formats() -> impl Iterator<Item = &'static Format> + Clone {
    FAMILIES.iter().flat_map(|family| family.iter())
}
