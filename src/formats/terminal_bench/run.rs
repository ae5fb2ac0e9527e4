//! Results of trials and runs.

use std::collections::BTreeMap;

use super::super::field;
use super::super::json::Value;
use super::super::table::{Decoded, Input};
use crate::trajectory::{Diagnostic, Outcome, RunReport, Severity};

/// What `results.json` says of one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// The task.
    pub task: Option<String>,
    /// Which attempt, and of which run: `1-of-5.run-7`.
    pub attempt: Option<String>,
    /// `is_resolved`; null is unknown.
    pub outcome: Outcome,
    /// `failure_mode`, where it says anything.
    pub failure: Option<String>,
    /// Tests, by what became of them.
    pub tests: Vec<(String, String)>,
}

impl Verdict {
    /// Reads one.
    pub fn of(result: &Value) -> Self {
        let task = field::text(result, "task_id");
        let name = field::text(result, "trial_name");
        // `<task>.<i>-of-<n>[.<run>]`, where the task may hold dots itself.
        let attempt = name.map(|name| {
            let after = task.as_deref().and_then(|t| name.strip_prefix(t)?.strip_prefix('.'));
            after.map_or(name.clone(), str::to_owned)
        });
        let failure = field::text(result, "failure_mode").filter(|f| !matches!(f.as_str(), "unset" | "none"));
        let outcome = Outcome::from_bool(field::get(result, "is_resolved").and_then(field::truth));
        let tests = field::object(result, "parser_results").into_iter().flatten();
        let tests = tests.map(|(name, said)| (name.to_owned(), field::json_text(said))).collect();
        Self { task, attempt, outcome, failure, tests }
    }

    /// A report about this trial alone.
    pub fn report(&self) -> RunReport {
        let mut report = RunReport { per_instance: true, attempt: self.attempt.clone(), ..RunReport::default() };
        let Some(task) = &self.task else {
            return report;
        };
        if self.outcome != Outcome::Unknown {
            report.outcomes.insert(task.clone(), self.outcome);
        }
        if let Some(failure) = &self.failure {
            report.reasons.insert(task.clone(), failure.clone());
        }
        report
    }

    /// `tests: 1 passed, 1 failed` and the names of those that did not pass; `None` without tests.
    pub fn tests_text(&self) -> Option<String> {
        if self.tests.is_empty() {
            return None;
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, said) in &self.tests {
            *counts.entry(said).or_default() += 1;
        }
        let counts: Vec<String> = counts.iter().rev().map(|(said, n)| format!("{n} {said}")).collect();
        let mut text = format!("tests: {}", counts.join(", "));
        for (name, said) in self.tests.iter().filter(|(_, said)| said != "passed").take(20) {
            text.push_str(&format!("\n{said}: {name}"));
        }
        Some(text)
    }
}

/// Reads results of single trials whose logs are not there.
pub fn decode_trials(input: &Input<'_>) -> Decoded {
    let mut reports = Vec::new();
    let mut diagnostics = input.document.rows(|row| {
        if row.value.get("task_id").is_some() {
            reports.push(Verdict::of(row.value).report());
        }
    });
    let text = "only the outcome: neither the agent's log nor a recording lies beside it";
    diagnostics.push(Diagnostic::new(Severity::Info, "terminal-bench.no-log", text));
    Decoded { reports, diagnostics, ..Decoded::default() }
}

/// Reads the result of a run: what the trials of a task agree on is the task's outcome.
pub fn decode_run(input: &Input<'_>) -> Decoded {
    let mut report = RunReport::default();
    let diagnostics = input.document.rows(|row| {
        let mut tasks: BTreeMap<String, Vec<Verdict>> = BTreeMap::new();
        for trial in field::list(row.value, "results").iter().map(Verdict::of) {
            if let Some(task) = trial.task.clone() {
                tasks.entry(task).or_default().push(trial);
            }
        }
        for (task, trials) in &tasks {
            settle(&mut report, task, trials);
        }
        // Without the trials there are only the names. `unresolved_ids` also holds trials nobody could evaluate.
        if tasks.is_empty() {
            for id in field::list(row.value, "resolved_ids").iter().filter_map(Value::as_str) {
                report.outcomes.insert(id.to_owned(), Outcome::Resolved);
            }
            for id in field::list(row.value, "unresolved_ids").iter().filter_map(Value::as_str) {
                report.outcomes.entry(id.to_owned()).or_insert(Outcome::Unresolved);
            }
        }
    });
    Decoded { reports: vec![report], diagnostics, ..Decoded::default() }
}

fn settle(report: &mut RunReport, task: &str, trials: &[Verdict]) {
    let first = trials.first().map(|t| t.outcome).unwrap_or_default();
    if first != Outcome::Unknown && trials.iter().all(|t| t.outcome == first) {
        report.outcomes.insert(task.to_owned(), first);
    }
    let reason = match trials {
        [only] => only.failure.clone(),
        several => {
            let resolved = several.iter().filter(|t| t.outcome == Outcome::Resolved).count();
            Some(format!("{resolved} of {} trials resolved", several.len()))
        }
    };
    report.reasons.extend(reason.map(|reason| (task.to_owned(), reason)));
}
