//! What `update` asks the driver to do. The state never does it itself.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::trajectory::{SharedTrajectory, TrajectoryKey};

use super::highlight::HighlightRequest;

/// How soon a person needs the answer; smaller is sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// The trajectory on the screen.
    Selected,
    /// A sibling of it: another attempt at the issue on the screen.
    Visible,
    /// Anything else that is loaded.
    Background,
}

/// One prediction to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportEntry {
    /// `instance_id`.
    pub instance_id: String,
    /// `model_name_or_path`.
    pub model: String,
    /// `model_patch`, the exact bytes of the candidate.
    pub patch: Arc<str>,
}

/// One thing to do.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Leave the program.
    Quit,
    /// Score a trajectory. A request for the same trajectory that still waits is replaced (its priority changes).
    Score {
        /// The trajectory's name, given back with every answer.
        key: TrajectoryKey,
        /// Given back with every answer; answers of another generation are ignored.
        generation: u64,
        /// What to score.
        trajectory: SharedTrajectory,
        /// How soon.
        priority: Priority,
    },
    /// Work out what the critic reads for this trajectory, ahead of scoring.
    Inspect {
        /// The trajectory's name.
        key: TrajectoryKey,
        /// Given back with the answer.
        generation: u64,
        /// What to inspect.
        trajectory: SharedTrajectory,
    },
    /// Bring the steps of a trajectory that are not in memory. Latest wins.
    OpenRun {
        /// Its name, given back with the answer.
        key: TrajectoryKey,
        /// What is known of it.
        trajectory: SharedTrajectory,
    },
    /// Read the raw records of some steps from the file. Latest wins.
    ReadRaw {
        /// The trajectory's name, given back with the answer.
        key: TrajectoryKey,
        /// The trajectory, whole.
        trajectory: SharedTrajectory,
        /// The steps.
        steps: Range<usize>,
    },
    /// Find the syntax classes of these diffs' rows, the first one first. Latest wins: what still waits of an older
    /// effect may be dropped; it is asked for again when it is wanted again.
    Highlight(Vec<HighlightRequest>),
    /// Write predictions (SWE-bench's shape, by the file name's ending). Written beside and renamed.
    Export {
        /// Where.
        path: PathBuf,
        /// May an existing file be replaced? If not, answer with `ExportFailed { exists: true, .. }`.
        overwrite: bool,
        /// What.
        entries: Vec<ExportEntry>,
    },
}
