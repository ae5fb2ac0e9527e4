//! Files that OpenHands leaves beside its trajectories: they are named, and hold nothing to show by themselves.

use super::super::field;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Diagnostic, Severity};

/// Settings of an evaluation.
pub const METADATA: Format = Format {
    id: "openhands-metadata",
    name: "OpenHands metadata.json",
    writer: "OpenHands evaluations and benchmarks",
    recognised: "`eval_output_dir` with `agent_class` and `llm_config`, or with `llm` and `critic`",
    kind: Kind::Companion,
    reader: Reader::File { sniff: sniff_metadata, decode: nothing },
};

/// Instances given up.
pub const FAILURES: Format = Format {
    id: "openhands-failures",
    name: "OpenHands failed instances",
    writer: "OpenHands evaluations (`maximum_retries_exceeded.jsonl`, `output_errors.jsonl`)",
    recognised: "rows with `instance_id` and `error`, and nothing that was done",
    kind: Kind::Companion,
    reader: Reader::File { sniff: sniff_failures, decode: decode_failures },
};

/// What a run cost.
pub const COSTS: Format = Format {
    id: "openhands-costs",
    name: "OpenHands cost report",
    writer: "OpenHands benchmarks (`cost_report.jsonl`)",
    recognised: "`main_output`, `critic_files` and a `summary` with `total_cost`",
    kind: Kind::Companion,
    reader: Reader::File { sniff: sniff_costs, decode: nothing },
};

/// How long tools took.
pub const TIMING: Format = Format {
    id: "openhands-timing",
    name: "OpenHands tool timing",
    writer: "evaluations that measure their tools",
    recognised: "rows with `instance_id`, `step_id` and `tool_time`",
    kind: Kind::Companion,
    reader: Reader::File { sniff: sniff_timing, decode: nothing },
};

/// Settings of a Multi-SWE-bench evaluation, which OpenHands writes for its own runs.
pub const MULTI: Format = Format {
    id: "multi-swe-bench-config",
    name: "Multi-SWE-bench config.json",
    writer: "Multi-SWE-bench, OpenHands evaluations of it",
    recognised: "`patch_files`, `dataset_files` and `workdir`",
    kind: Kind::Companion,
    reader: Reader::File { sniff: sniff_multi, decode: nothing },
};

/// The state of a conversation whose events are not there.
pub const STATE: Format = Format {
    id: "openhands-1-state",
    name: "OpenHands V1 base_state.json",
    writer: "software-agent SDK",
    recognised: "`execution_status`, `persistence_dir` and `agent`",
    kind: Kind::Companion,
    reader: Reader::File { sniff: sniff_state, decode: decode_state },
};

fn sniff_metadata(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let has = |keys: &[&str]| keys.iter().all(|k| root.contains_key(k));
    let v0 = has(&["agent_class", "llm_config", "eval_output_dir"]);
    let v1 = has(&["llm", "eval_output_dir"]) && (has(&["critic"]) || has(&["max_iterations"]));
    if v0 || v1 { Match::some(Confidence::Certain, "`eval_output_dir` beside the model's settings") } else { None }
}

fn sniff_failures(sniff: &Sniff<'_>) -> Option<Match> {
    let done = ["history", "test_result", "messages", "trajectory", "steps", "git_patch", "model_patch", "resolved"];
    let failed = sniff.is_rows()
        && sniff.rows.iter().all(|r| field::str(r, "instance_id").is_some() && r.get("error").is_some())
        && !done.iter().any(|k| sniff.has(k));
    if failed { Match::some(Confidence::Likely, "rows with `instance_id` and `error` only") } else { None }
}

fn sniff_costs(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let summed = root.get("summary").is_some_and(|s| s.get("total_cost").is_some());
    let fits = summed && root.contains_key("main_output") && root.contains_key("critic_files");
    if fits { Match::some(Confidence::Certain, "`main_output`, `critic_files` and a `summary` of costs") } else { None }
}

fn sniff_timing(sniff: &Sniff<'_>) -> Option<Match> {
    let rows = sniff.is_rows() && sniff.has_all(&["instance_id", "step_id", "tool_time"]);
    if rows { Match::some(Confidence::Likely, "rows with `step_id` and `tool_time`") } else { None }
}

fn sniff_state(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let fits = ["execution_status", "persistence_dir", "agent"].iter().all(|k| root.contains_key(k));
    if fits { Match::some(Confidence::Certain, "`execution_status` and `persistence_dir`") } else { None }
}

fn sniff_multi(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let fits = ["patch_files", "dataset_files", "workdir"].iter().all(|k| root.contains_key(k));
    if fits { Match::some(Confidence::Certain, "`patch_files` and `dataset_files`") } else { None }
}

fn nothing(_: &Input<'_>) -> Decoded {
    Decoded::default()
}

fn decode_state(_: &Input<'_>) -> Decoded {
    let text = "the state of a conversation whose events are not beside it: there is nothing to show";
    let remark = Diagnostic::new(Severity::Info, "openhands.no-events", text);
    Decoded { diagnostics: vec![remark], ..Decoded::default() }
}

fn decode_failures(input: &Input<'_>) -> Decoded {
    let mut n = 0;
    let mut diagnostics = input.document.rows(|_| n += 1);
    let text = format!("{n} instances were given up: they have no trajectory here");
    diagnostics.push(Diagnostic::new(Severity::Info, "openhands.failures", text));
    Decoded { diagnostics, ..Decoded::default() }
}
