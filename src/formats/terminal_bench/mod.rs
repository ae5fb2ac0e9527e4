//! Terminal-Bench 1: the folder of a trial, results of trials and runs, and what lies beside them.

mod run;
mod trial;

use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "terminal-bench",
        name: "Terminal-Bench trial",
        writer: "Terminal-Bench 1",
        recognised: "a folder with `results.json` of a trial beside `sessions/`, `panes/` or `agent-logs/`",
        kind: Kind::Trajectory,
        reader: Reader::Folder { claim: trial::claim, decode: trial::decode },
    },
    Format {
        id: "terminal-bench-result",
        name: "Terminal-Bench trial result",
        writer: "Terminal-Bench 1: `results.json` of a trial whose logs are not there",
        recognised: "`task_id` and `is_resolved` beside `parser_results`",
        kind: Kind::Report,
        reader: Reader::File { sniff: sniff_trial, decode: run::decode_trials },
    },
    Format {
        id: "terminal-bench-run",
        name: "Terminal-Bench run result",
        writer: "Terminal-Bench 1: `results.json` of a run",
        recognised: "`results` of trials beside `resolved_ids` or `pass_at_k`",
        kind: Kind::Report,
        reader: Reader::File { sniff: sniff_run, decode: run::decode_run },
    },
    Format {
        id: "terminal-bench-metadata",
        name: "Terminal-Bench run metadata",
        writer: "Terminal-Bench 1: `run_metadata.json` and `tb.lock`",
        recognised: "`run_id` and `agent_name` beside `dataset_name`, or `lockfile_version` beside `harness`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_metadata, decode: companion },
    },
];

fn sniff_trial(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = sniff.has_all(&["task_id", "is_resolved"]) && (sniff.has("parser_results") || sniff.has("trial_name"));
    if fits && sniff.is_rows() { Match::some(Confidence::Certain, "`is_resolved` of a `task_id`") } else { None }
}

fn sniff_run(sniff: &Sniff<'_>) -> Option<Match> {
    let results = sniff.object()?.get("results")?.as_array()?;
    let around = sniff.has("pass_at_k") || sniff.has("resolved_ids") || sniff.has("n_resolved");
    let trials = results.iter().take(5).all(|r| r.get("task_id").is_some());
    if around && trials { Match::some(Confidence::Certain, "`results` of trials") } else { None }
}

fn sniff_metadata(sniff: &Sniff<'_>) -> Option<Match> {
    sniff.object()?;
    let metadata = sniff.has_all(&["agent_name", "dataset_name"]) && (sniff.has("run_id") || sniff.has("accuracy"));
    let lock = sniff.has_all(&["lockfile_version", "harness"]);
    if metadata || lock { Match::some(Confidence::Likely, "about a run of Terminal-Bench") } else { None }
}

fn companion(_: &Input<'_>) -> Decoded {
    Decoded::default()
}

#[cfg(test)]
mod tests;
