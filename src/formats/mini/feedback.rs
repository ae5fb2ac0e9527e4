//! The critic fork of mini-swe-agent: a supervisor (a process reward model) reads along and writes feedback.
//!
//! Its messages stand among the agent's as user messages; those it kept back, because they repeated the last, stand
//! in a log only. Both are shown as Meta steps behind the step they speak of: they are no actions.

use std::path::Path;

use super::super::field;
use super::super::json::Value;
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Step, Trajectory};

/// Is this a message of the supervisor?
pub fn is_supervisor(message: &Value) -> bool {
    field::get(message, "_supervisor").and_then(field::truth) == Some(true)
}

/// Its text, with a line on what the agent saw of it.
pub fn said(message: &Value, text: &str) -> String {
    let after = field::get(message, "_prm_after_step").and_then(field::count);
    let active = field::get(message, "_supervisor_active").and_then(field::truth);
    let seen = match active {
        Some(true) => ", the last one the agent was shown",
        Some(false) => ", no longer shown to the agent",
        None => "",
    };
    let step = after.map_or_else(String::new, |n| format!(" after step {n}"));
    format!("supervisor{step}{seen}:\n{text}")
}

/// Adds what only `info` knows: the feedback that was kept back, and what the supervisor cost.
pub fn add(info: &Value, at: &str, out: &mut Trajectory) {
    let Some(stats) = field::get(info, "prm_stats") else {
        return;
    };
    let log = field::list(stats, "prm_feedback_log");
    // From the end, so that the places found before stay right.
    for (i, entry) in log.iter().enumerate().rev() {
        let Some(text) = kept_back(entry) else { continue };
        let place = RawPlace::element(&format!("{at}/prm_stats/prm_feedback_log"), i);
        let step = Step { raw: place, ..Step::new(Role::Meta, text) };
        let after = field::get(entry, "after_step").and_then(field::count).unwrap_or(u64::MAX);
        let at = behind(&out.steps, after);
        out.steps.insert(at, step);
    }
    if let Some(text) = cost(info, stats, log) {
        out.diagnostics.push(Diagnostic::new(Severity::Info, "mini.supervisor", text));
    }
}

/// Feedback that never became a message.
fn kept_back(entry: &Value) -> Option<String> {
    if field::get(entry, "suppressed").and_then(field::truth) != Some(true) {
        return None;
    }
    let text = field::text(entry, "original_feedback").or_else(|| field::text(entry, "feedback")).unwrap_or_default();
    let after = field::get(entry, "after_step").and_then(field::scalar_text).unwrap_or_else(|| "?".to_owned());
    let like = field::get(entry, "dedup_similarity").and_then(field::number);
    let like = like.map_or_else(String::new, |s| format!(", {s:.2} like the one before"));
    Some(format!("supervisor after step {after}, kept back{like}:\n{text}"))
}

/// The place behind the agent's step number `after` (from 1) and what came of it.
fn behind(steps: &[Step], after: u64) -> usize {
    let mut seen = 0;
    for (i, step) in steps.iter().enumerate() {
        if step.is_action() {
            seen += 1;
            if seen > after {
                return i;
            }
        }
    }
    steps.len()
}

/// What the supervisor did and cost, which is not part of the agent's cost.
fn cost(info: &Value, stats: &Value, log: &[Value]) -> Option<String> {
    let count = |key: &str| field::get(stats, key).and_then(field::count);
    let own = field::get(stats, "prm_cost").and_then(field::number);
    let cost = own.or_else(|| field::at(info, &["prm_model_stats", "prm_model_cost"]).and_then(field::number));
    let calls = count("prm_invocations").or_else(|| count("prm_api_calls")).or(Some(log.len() as u64))?;
    let back = log.iter().filter(|e| kept_back(e).is_some()).count();
    let model = field::str_at(info, &["config", "prm_model", "model_name"])
        .or_else(|| field::str_at(info, &["config", "prm_model"]))
        .map_or_else(String::new, |m| format!(" {m}"));
    let cost =
        cost.filter(|c| *c > 0.0).map_or_else(|| "its cost is unknown".to_owned(), |c| format!("it cost ${c:.2}"));
    Some(format!("a supervisor{model} spoke {calls} times, {back} of them kept back; {cost}, not part of the agent's"))
}

/// The run a path names: `<settings>_k<interval>_<run>_<agent>_prm_<critic>`, below `…_steps_prefix` where the run
/// went on from the beginning of another.
pub fn run_of(path: &Path) -> Option<String> {
    let folders: Vec<&str> = path.ancestors().skip(1).filter_map(|a| a.file_name()?.to_str()).collect();
    let name = folders.iter().find(|name| name.contains("_prm_"))?;
    let (settings, _) = name.split_once("_prm_")?;
    let parts: Vec<&str> = settings.split('_').collect();
    let interval = parts
        .iter()
        .position(|p| p.strip_prefix('k').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())))?;
    let run = parts.get(interval + 1).filter(|n| n.bytes().all(|b| b.is_ascii_digit()))?;
    let prefix = folders.iter().any(|name| name.ends_with("_prefix"));
    Some(format!("run {run}{}", if prefix { " (from a prefix)" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_by_their_folder() {
        let of = |path: &str| run_of(Path::new(path));
        let base = "results_x_steps/temp0_k5_1_cwm_prm_qwen/o__r-1/o__r-1.traj.json";
        assert_eq!(of(base).as_deref(), Some("run 1"));
        let prefix = "results_x_steps_prefix/temp0_k5_0_cwm_prm_qwen/o__r-1/o__r-1.traj.json";
        assert_eq!(of(prefix).as_deref(), Some("run 0 (from a prefix)"));
        assert_eq!(of("runs/o__r-1/o__r-1.traj.json"), None);
        assert_eq!(of("a_prm_b/o__r-1/x.json"), None);
    }
}
