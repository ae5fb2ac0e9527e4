//! The table of formats: one row each, nothing about a format is written anywhere else.

use std::collections::BTreeMap;
use std::path::Path;

use super::document::Document;
use super::sniff::{Match, Sniff};
use super::{chat, labelled, mini, openhands, predictions, reports, sweagent};
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
}

impl Kind {
    /// Lower-case name, as shown by `trajscope formats`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trajectory => "trajectory",
            Self::Prediction => "prediction",
            Self::Report => "report",
            Self::Tasks => "tasks",
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
    /// Does it look like this format?
    pub sniff: fn(&Sniff<'_>) -> Option<Match>,
    /// Reads it. Never fails: what cannot be read is a diagnostic.
    pub decode: fn(&Input<'_>) -> Decoded,
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

/// Every format this program reads, the more special before the more general.
pub static FORMATS: &[Format] = &[
    Format {
        id: "openhands-0",
        name: "OpenHands V0 output.jsonl",
        writer: "OpenHands (OpenDevin) evaluations to 2025, and its issue resolver",
        recognised: "rows with `instance_id` (or `issue`) and a `history` of actions and observations, flat or in pairs",
        kind: Kind::Trajectory,
        sniff: openhands::sniff_v0,
        decode: openhands::decode_rows,
    },
    Format {
        id: "openhands-1",
        name: "OpenHands V1 output.jsonl",
        writer: "OpenHands benchmarks on the software-agent SDK",
        recognised: "rows with `instance_id` and a `history` of events with `kind`",
        kind: Kind::Trajectory,
        sniff: openhands::sniff_v1,
        decode: openhands::decode_rows,
    },
    Format {
        id: "openhands-0-events",
        name: "OpenHands V0 event list",
        writer: "OpenHands user interface, \"download trajectory\"",
        recognised: "a list of events with `action` or `observation`",
        kind: Kind::Trajectory,
        sniff: openhands::sniff_v0_events,
        decode: openhands::decode_events,
    },
    Format {
        id: "openhands-1-events",
        name: "OpenHands V1 event list",
        writer: "software-agent SDK",
        recognised: "a list of events with `kind`",
        kind: Kind::Trajectory,
        sniff: openhands::sniff_v1_events,
        decode: openhands::decode_events,
    },
    Format {
        id: "sweagent-0",
        name: "SWE-agent 0.x trajectory",
        writer: "SWE-agent, March to December 2024",
        recognised: "an object with a list `trajectory` of actions and observations, without the model's input per step",
        kind: Kind::Trajectory,
        sniff: sweagent::sniff_v0,
        decode: sweagent::decode,
    },
    Format {
        id: "sweagent-1",
        name: "SWE-agent 1.x trajectory",
        writer: "SWE-agent since 2025, SWE-smith",
        recognised: "as 0.x, with `replay_config`, or `query` or `messages` in the steps; or a list `attempts`",
        kind: Kind::Trajectory,
        sniff: sweagent::sniff_v1,
        decode: sweagent::decode,
    },
    Format {
        id: "mini-swe-agent-1",
        name: "mini-swe-agent v1 trajectory",
        writer: "mini-swe-agent 1.x, July 2025 to 2026, and its critic fork",
        recognised: "`trajectory_format` mini-swe-agent-1, or `messages` beside `info`, or a bare list with return codes",
        kind: Kind::Trajectory,
        sniff: mini::sniff_v1,
        decode: mini::decode,
    },
    Format {
        id: "mini-swe-agent-2",
        name: "mini-swe-agent v2 trajectory",
        writer: "mini-swe-agent 2.x since 2026, Live-SWE-agent",
        recognised: "`trajectory_format` mini-swe-agent-1.1 and above",
        kind: Kind::Trajectory,
        sniff: mini::sniff_v2,
        decode: mini::decode,
    },
    Format {
        id: "labelled",
        name: "Labelled steps",
        writer: "the normalised records trajscope trains its critic on",
        recognised: "rows with `instance_id`, `resolved` and `steps` of thought, action, observation",
        kind: Kind::Trajectory,
        sniff: labelled::sniff,
        decode: labelled::decode,
    },
    Format {
        id: "tasks",
        name: "Issue texts",
        writer: "SWE-bench style data sets",
        recognised: "rows with `instance_id` and `problem_statement` and no steps",
        kind: Kind::Tasks,
        sniff: labelled::sniff_tasks,
        decode: labelled::decode_tasks,
    },
    Format {
        id: "predictions",
        name: "Predictions",
        writer: "SWE-agent, mini-swe-agent, OpenHands and everybody who submits to SWE-bench",
        recognised: "rows with `instance_id` and `model_patch`, or a dictionary of patches by instance id",
        kind: Kind::Prediction,
        sniff: predictions::sniff,
        decode: predictions::decode,
    },
    Format {
        id: "report-instance",
        name: "SWE-bench report of an instance",
        writer: "SWE-bench harness, sb-cli, SWE-smith",
        recognised: "`patch_successfully_applied` and `resolved`, flat or below the instance id",
        kind: Kind::Report,
        sniff: reports::sniff_instance,
        decode: reports::decode_instance,
    },
    Format {
        id: "report-run",
        name: "SWE-bench report of a run",
        writer: "SWE-bench harness of every generation, sb-cli, SWE-smith, SWE-bench-Pro",
        recognised: "lists of resolved instance ids among others, or outcomes by instance id",
        kind: Kind::Report,
        sniff: reports::sniff_run,
        decode: reports::decode_run,
    },
    Format {
        id: "chat",
        name: "Chat messages",
        writer: "OpenAI-style exports and training sets",
        recognised: "`messages` (or a bare list) of role and content",
        kind: Kind::Trajectory,
        sniff: chat::sniff,
        decode: chat::decode,
    },
];
