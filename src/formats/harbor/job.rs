//! The result of a whole job.

use std::collections::BTreeMap;

use super::super::field;
use super::super::json::Value;
use super::super::table::{Decoded, Input};
use super::verdict::Verdict;
use crate::trajectory::{Diagnostic, Outcome, RunReport, Severity};

/// Outcomes of the trials of a task.
type Trials = BTreeMap<String, BTreeMap<String, Outcome>>;

/// Reads it: what the trials of a task agree on is the task's outcome; of others it only says how many.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut trials = Trials::new();
    let mut exceptions: BTreeMap<String, String> = BTreeMap::new();
    decoded.diagnostics = input.document.rows(|row| {
        for evaluation in field::at(row.value, &["stats", "evals"]).and_then(Value::as_object).into_iter().flatten() {
            add_rewards(&mut trials, evaluation.1);
            add_exceptions(&mut exceptions, evaluation.1);
        }
        for trial in field::list(row.value, "trial_results") {
            if let (Some(task), Some(name)) = (field::text(trial, "task_name"), field::text(trial, "trial_name")) {
                trials.entry(task).or_default().insert(name, Verdict::of(trial, None).outcome());
            }
        }
        let unfinished = ["n_running_trials", "n_pending_trials"];
        let count = |key: &&str| field::at(row.value, &["stats", key]).and_then(field::count);
        let open: u64 = unfinished.iter().filter_map(count).sum();
        if open > 0 {
            let text = format!("{open} trials of this job have not ended");
            decoded.diagnostics.push(Diagnostic::new(Severity::Info, "harbor.running", text));
        }
    });
    let mut report = RunReport::default();
    for (task, trials) in trials {
        settle(&mut report, task, &trials);
    }
    for (task, exception) in exceptions {
        report.reasons.entry(task).or_insert(exception);
    }
    decoded.reports.push(report);
    decoded
}

/// `reward_stats`: reward name, value as text, names of the trials that got it. Only `reward` is a verdict.
fn add_rewards(trials: &mut Trials, evaluation: &Value) {
    let values = field::at(evaluation, &["reward_stats", "reward"]).and_then(Value::as_object);
    for (value, names) in values.into_iter().flatten() {
        let Ok(reward) = value.trim().parse() else { continue };
        let outcome = Verdict { rewards: vec![("reward".to_owned(), reward)] }.outcome();
        for name in names.as_array().into_iter().flatten().filter_map(Value::as_str) {
            trials.entry(task_of(name)).or_default().insert(name.to_owned(), outcome);
        }
    }
}

fn add_exceptions(exceptions: &mut BTreeMap<String, String>, evaluation: &Value) {
    let kinds = field::object(evaluation, "exception_stats");
    for (kind, names) in kinds.into_iter().flatten() {
        for name in names.as_array().into_iter().flatten().filter_map(Value::as_str) {
            exceptions.insert(task_of(name), kind.to_owned());
        }
    }
}

/// The task a trial is of: its name without the random letters behind it. Long names are cut there.
fn task_of(trial: &str) -> String {
    trial.rsplit_once("__").map_or(trial, |(task, _)| task).to_owned()
}

fn settle(report: &mut RunReport, task: String, trials: &BTreeMap<String, Outcome>) {
    let resolved = trials.values().filter(|o| **o == Outcome::Resolved).count();
    let unresolved = trials.values().filter(|o| **o == Outcome::Unresolved).count();
    let outcome = match (resolved, unresolved) {
        (_, 0) if resolved == trials.len() => Outcome::Resolved,
        (0, _) if unresolved == trials.len() => Outcome::Unresolved,
        _ => Outcome::Unknown,
    };
    if trials.len() > 1 {
        report.reasons.insert(task.clone(), format!("{resolved} of {} trials resolved", trials.len()));
    }
    if outcome != Outcome::Unknown {
        report.outcomes.insert(task, outcome);
    }
}
