//! What the threads of this module have to say.

use crate::critic::{ActionScore, CriticInfo, CriticInput, ScoreError, Scores};
use crate::trajectory::{Dataset, TrajectoryKey};

/// One thing that happened on another thread.
#[derive(Debug, Clone)]
pub enum WorkEvent {
    /// Files that were read since the last such event.
    Files(Box<Dataset>),
    /// Everything that was read, in its final order. Replaces all [`WorkEvent::Files`]; only changes follow.
    Loaded(Box<Dataset>),
    /// Files that have grown or changed since they were read, read again: their trajectories as they are now.
    Changed(Box<Dataset>),
    /// Reading stopped early: one line for a person. What was reported so far stands.
    LoadFailed(String),
    /// The critic is open and takes requests.
    CriticReady(Box<CriticInfo>),
    /// The critic could not be opened, or cannot go on: one line for a person. No request will be answered any more.
    CriticFailed(String),
    /// One reward of a trajectory that is being scored. After an interruption the rewards come again from the start.
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
    /// What the critic reads for a trajectory.
    Inspected {
        /// The trajectory.
        key: TrajectoryKey,
        /// Generation of the request.
        generation: u64,
        /// The input, or why there is none.
        input: Result<Box<CriticInput>, ScoreError>,
    },
}
