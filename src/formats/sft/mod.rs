//! Training sets and exports whose rows are no plain chat: R2E-Gym, ADP, Harbor's traces, pydantic-ai.

mod adp;
mod harbor;
mod pydantic;
mod r2e;

use super::table::{Format, Kind, Reader};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "r2e-gym",
        name: "R2E-Gym trajectories",
        writer: "R2E-Gym",
        recognised: "rows with `trajectory_steps` of thought, action and observation",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: r2e::sniff, decode: r2e::decode },
    },
    Format {
        id: "adp",
        name: "ADP standardized rows",
        writer: "Agent Data Protocol",
        recognised: "rows with `content` of parts with `class_`, and `details`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: adp::sniff, decode: adp::decode },
    },
    Format {
        id: "harbor-traces",
        name: "Harbor traces",
        writer: "Harbor `traces export`",
        recognised: "rows with `conversations`, `episode` and `trial_name`, of which each repeats the one before",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: harbor::sniff, decode: harbor::decode },
    },
    Format {
        id: "pydantic-ai",
        name: "pydantic-ai messages",
        writer: "pydantic-ai",
        recognised: "a list of `kind` request or response with `parts` of `part_kind`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: pydantic::sniff, decode: pydantic::decode },
    },
];

#[cfg(test)]
mod tests;
