//! Everything that can happen to the state. The driver turns terminal events, results of the loader, the critic
//! and the other workers into these; `update` is the only reader.

use std::ops::Range;

use crate::critic::{ActionScore, CriticInfo, CriticInput, ScoreError, Scores};
use crate::trajectory::{Dataset, SharedTrajectory, TrajectoryKey};

use super::highlight::HighlightedRow;
use super::key::KeyInput;

/// The record of one step, exactly as its file holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRecord {
    /// Where it stands: file and bytes.
    pub place: String,
    /// The record, or one line why it cannot be read.
    pub text: Result<String, String>,
}

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Msg {
    /// A key was pressed (repeats count, releases do not).
    Key(KeyInput),
    /// Text was pasted; only prompts take it.
    Paste(String),
    /// The terminal has this size in columns and rows.
    Resize(u16, u16),
    /// One more file was read: what it holds, as a data set of its own (with its one [`FileReport`]).
    ///
    /// [`FileReport`]: crate::trajectory::FileReport
    FileLoaded(Box<Dataset>),
    /// Every file was read: the whole data set in its final, deterministic order. Replaces what
    /// [`Msg::FileLoaded`] brought so far.
    Loaded(Box<Dataset>),
    /// Files that have grown or changed on disk, read again.
    FilesChanged(Box<Dataset>),
    /// The critic is open and takes requests.
    CriticReady(Box<CriticInfo>),
    /// The critic could not be opened, or died: one line for a person.
    CriticFailed(String),
    /// One reward of a trajectory that is being scored.
    Partial {
        /// The trajectory.
        key: TrajectoryKey,
        /// Generation of the request.
        generation: u64,
        /// The reward.
        score: ActionScore,
    },
    /// A trajectory is scored.
    Done {
        /// The trajectory.
        key: TrajectoryKey,
        /// Generation of the request.
        generation: u64,
        /// All rewards.
        scores: Box<Scores>,
    },
    /// A trajectory could not be scored.
    Failed {
        /// The trajectory.
        key: TrajectoryKey,
        /// Generation of the request.
        generation: u64,
        /// Why.
        error: ScoreError,
    },
    /// The critic's input for a trajectory, as asked for by [`Effect::Inspect`](super::Effect::Inspect).
    Inspected {
        /// The trajectory.
        key: TrajectoryKey,
        /// Generation of the request.
        generation: u64,
        /// The input, or why there is none.
        input: Result<Box<CriticInput>, ScoreError>,
    },
    /// The steps of a trajectory, as asked for by [`Effect::OpenRun`](super::Effect::OpenRun).
    Opened {
        /// The trajectory's name.
        key: TrajectoryKey,
        /// The trajectory with its steps, or one line why they cannot be read.
        run: Result<SharedTrajectory, String>,
    },
    /// Raw records, as asked for by [`Effect::ReadRaw`](super::Effect::ReadRaw).
    RawRead {
        /// The trajectory's name.
        key: TrajectoryKey,
        /// The steps.
        steps: Range<usize>,
        /// A record a step, or one line why it cannot be read.
        records: Vec<RawRecord>,
    },
    /// Syntax classes for the rows of a diff, as asked for by [`Effect::Highlight`](super::Effect::Highlight).
    Highlighted {
        /// Id of the request.
        id: String,
        /// Classes of some or all rows; a request may be answered in parts.
        rows: Vec<HighlightedRow>,
    },
    /// Predictions were written.
    ExportDone {
        /// Where.
        path: String,
        /// How many.
        written: usize,
    },
    /// Predictions were not written; nothing on disk changed.
    ExportFailed {
        /// Where they should have gone.
        path: String,
        /// The file is already there and `overwrite` was not set: the person is asked.
        exists: bool,
        /// One line for a person.
        error: String,
    },
    /// Something the driver has to say (a warning of the start, a configuration that was not understood).
    Note(String),
}
