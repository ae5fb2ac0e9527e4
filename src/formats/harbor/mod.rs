//! Harbor: the folder of a trial, the result of a trial alone, the result of a job.

mod job;
mod trial;
mod verdict;

use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "harbor-trial",
        name: "Harbor trial",
        writer: "Harbor, and Terminal-Bench 2 with it",
        recognised: "a folder with `result.json` of a trial beside `agent/` and `verifier/`",
        kind: Kind::Trajectory,
        reader: Reader::Folder { claim: trial::claim, decode: trial::decode },
    },
    Format {
        id: "harbor-result",
        name: "Harbor trial result",
        writer: "Harbor: `result.json` of a trial whose logs are not there",
        recognised: "`trial_name` and `task_name` beside `verifier_result`",
        kind: Kind::Report,
        reader: Reader::File { sniff: sniff_result, decode: trial::decode_result },
    },
    Format {
        id: "harbor-job",
        name: "Harbor job result",
        writer: "Harbor: `result.json` of a job",
        recognised: "`n_total_trials` beside `stats`",
        kind: Kind::Report,
        reader: Reader::File { sniff: sniff_job, decode: job::decode },
    },
    Format {
        id: "harbor-config",
        name: "Harbor settings",
        writer: "Harbor: `config.json` and `lock.json` of a trial or job",
        recognised: "`trial_name` and `trials_dir`, or `jobs_dir` and `agents`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_config, decode: companion },
    },
];

fn sniff_result(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = sniff.has_all(&["trial_name", "task_name"]) && (sniff.has("verifier_result") || sniff.has("agent_info"));
    if fits && sniff.is_rows() {
        Match::some(Confidence::Certain, "`trial_name` beside `verifier_result`")
    } else {
        None
    }
}

fn sniff_job(sniff: &Sniff<'_>) -> Option<Match> {
    sniff.object()?;
    if sniff.has_all(&["n_total_trials", "stats"]) {
        return Match::some(Confidence::Certain, "`n_total_trials` beside `stats`");
    }
    None
}

fn sniff_config(sniff: &Sniff<'_>) -> Option<Match> {
    sniff.object()?;
    let trial = sniff.has_all(&["trial_name", "trials_dir", "agent"]);
    let job = sniff.has_all(&["jobs_dir", "agents"]);
    if trial || job { Match::some(Confidence::Likely, "settings of a Harbor run") } else { None }
}

fn companion(_: &Input<'_>) -> Decoded {
    Decoded::default()
}

#[cfg(test)]
mod tests;
