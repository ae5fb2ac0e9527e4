//! One trial of a Harbor job.

use std::collections::BTreeSet;

use super::super::json::Value;
use super::super::table::{Decoded, Input};
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::super::{field, trial};
use super::verdict::{self, Verdict};
use crate::trajectory::{Diagnostic, Outcome, Role, RunReport, Severity, Step, Trajectory};

/// A folder with the result (or at least the settings) of a trial beside what the agent or the verifier left.
pub fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let result = folder.find("result.json").or_else(|| folder.find("config.json"))?.1;
    let parts = ["agent", "verifier", "steps", "artifacts"];
    if !parts.iter().any(|part| !folder.files_below(part).is_empty()) {
        return None;
    }
    let value = result.value()?;
    let fits = value.get("trial_name").is_some() && (value.get("task_name").is_some() || value.get("task").is_some());
    if !fits {
        return None;
    }
    let members = (0..folder.entries.len()).collect();
    Some(Claim { members, reason: "a folder with the result of a trial and its logs".into() })
}

/// What `result.json` (and `config.json`) say of a trial.
struct Trial {
    result: Value<'static>,
    task: Option<String>,
    attempt: Option<String>,
    verdict: Verdict,
}

impl Trial {
    fn of(result: Value<'static>, config: &Value, input: Option<&FolderInput<'_>>) -> Self {
        let first = |key: &str| field::text(&result, key).or_else(|| field::text(config, key));
        let name = first("trial_name");
        let path = || field::str_at(config, &["task", "path"]).and_then(|p| p.trim_end_matches('/').rsplit('/').next());
        let task = first("task_name").or_else(|| path().map(str::to_owned));
        let attempt = name.map(|n| n.rsplit_once("__").map_or(n.as_str(), |(_, suffix)| suffix).to_owned());
        let verdict = Verdict::of(&result, input);
        Self { result, task, attempt, verdict }
    }

    /// Gives an attempt what the trial knows.
    fn describe(&self, t: &mut Trajectory) {
        let result = &self.result;
        let at = |path: &[&str]| field::str_at(result, path).filter(|s| !s.is_empty()).map(str::to_owned);
        t.instance_id = self.task.clone().or_else(|| t.instance_id.take());
        t.attempt.clone_from(&self.attempt);
        t.outcome = self.verdict.outcome();
        let agent = at(&["agent_info", "name"]).or_else(|| at(&["config", "agent", "name"]));
        let version = at(&["agent_info", "version"]).filter(|v| v != "unknown");
        let agent = agent.map(|a| version.map(|v| format!("{a} {v}")).unwrap_or(a));
        t.agent = agent.or_else(|| t.agent.take());
        let model = at(&["config", "agent", "model_name"]).or_else(|| at(&["agent_info", "model_info", "name"]));
        t.model = model.or_else(|| t.model.take());
        if let Some(kind) = at(&["exception_info", "exception_type"]) {
            let message = at(&["exception_info", "exception_message"]).map(|m| format!(": {m}")).unwrap_or_default();
            t.error = Some(format!("{kind}{message}"));
            t.exit_status = Some(kind);
        }
        let count = |key: &str| field::at(result, &["agent_result", key]).and_then(field::count).filter(|n| *n > 0);
        t.usage.tokens_in = count("n_input_tokens").or(t.usage.tokens_in);
        t.usage.tokens_out = count("n_output_tokens").or(t.usage.tokens_out);
        let cost = field::at(result, &["agent_result", "cost_usd"]).and_then(field::number);
        t.usage.cost = field::honest_cost(cost, true).or(t.usage.cost);
        if let Some(reason) = self.verdict.reason() {
            let text = format!("the verifier's rewards: {reason}");
            t.diagnostics.push(Diagnostic::new(Severity::Info, "harbor.rewards", text));
        }
    }

    /// The verdict without a trajectory.
    fn report(&self) -> RunReport {
        let mut report = RunReport { per_instance: true, attempt: self.attempt.clone(), ..RunReport::default() };
        let Some(task) = &self.task else {
            return report;
        };
        let outcome = self.verdict.outcome();
        if outcome != Outcome::Unknown {
            report.outcomes.insert(task.clone(), outcome);
        }
        let exception = || field::str_at(&self.result, &["exception_info", "exception_type"]).map(str::to_owned);
        if let Some(reason) = self.verdict.reason().or_else(exception) {
            report.reasons.insert(task.clone(), reason);
        }
        report
    }
}

/// Reads the folder of a trial.
pub fn decode(input: &FolderInput<'_>) -> Decoded {
    let value = |name: &str| input.find(name).and_then(Entry::value).unwrap_or(Value::Null);
    let trial = Trial::of(value("result.json"), &value("config.json"), Some(input));
    let mut decoded = Decoded::default();
    if let Some(log) = trial::log(input, "agent") {
        decoded.trajectories = log.trajectories;
        if let Some(main) = decoded.trajectories.first_mut() {
            trial.describe(main);
            finish(main, &trial, input);
        }
    } else {
        decoded.trajectories = steps_of(input, &trial);
    }
    if decoded.trajectories.is_empty() {
        let mut report = trial.report();
        report.path = input.path.join("result.json");
        decoded.reports.push(report);
        let verdict = trial.verdict.text().unwrap_or_else(|| "no reward either".to_owned());
        let text = format!("the agent left no log that can be read: only the outcome is known ({verdict})");
        decoded.diagnostics.push(Diagnostic::new(Severity::Warning, "harbor.no-log", text));
    }
    for (record, trajectory) in decoded.trajectories.iter_mut().enumerate() {
        trajectory.format = input.format;
        trajectory.source.record = record;
        // A sub-agent's task is none of its own: it does not stand among the attempts at the task.
        if trajectory.parent.is_some() {
            trajectory.instance_id = None;
        }
    }
    decoded
}

/// Patch, exception and verdict at the end of the attempt.
fn finish(main: &mut Trajectory, trial: &Trial, input: &FolderInput<'_>) {
    let (patch, files) = trial::patch(input, &["artifacts", "agent"]);
    if main.patch.is_none() {
        main.patch = patch;
        if files > 1 {
            let text = format!("{files} patches were saved: which one is the candidate is not said");
            main.diagnostics.push(Diagnostic::new(Severity::Warning, "harbor.several-patches", text));
        }
    }
    let place = |pointer: &str| trial::inside_file(&input.path.join("result.json"), pointer);
    if let (Some(error), Some(info)) = (&main.error, field::get(&trial.result, "exception_info")) {
        let text = field::text(info, "exception_traceback").unwrap_or_else(|| error.clone());
        main.steps.push(Step { raw: place("/exception_info"), ..Step::new(Role::Meta, text) });
    }
    main.steps.extend(verdict::step(&trial.verdict, input));
}

/// A task of several steps: each is a trajectory with a verdict of its own.
fn steps_of(input: &FolderInput<'_>, trial: &Trial) -> Vec<Trajectory> {
    let inside = input.members.iter().filter_map(|e| input.relative(e).strip_prefix("steps").ok());
    let names: BTreeSet<String> =
        inside.filter_map(|p| Some(p.components().next()?.as_os_str().to_str()?.to_owned())).collect();
    let mut found = Vec::new();
    for name in names {
        let Some(log) = trial::log(input, &format!("steps/{name}/agent")) else { continue };
        let mut log = log.trajectories;
        if let Some(main) = log.first_mut() {
            trial.describe(main);
            let own = Verdict::of_folder(input, &format!("steps/{name}/verifier"));
            main.outcome = own.outcome();
            main.attempt = Some(trial.attempt.as_ref().map_or(name.clone(), |a| format!("{a}/{name}")));
        }
        found.append(&mut log);
    }
    found
}

/// Reads results of trials whose logs are not there.
pub fn decode_result(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut reports = Vec::new();
    decoded.diagnostics = input.document.rows(|row| {
        reports.push(Trial::of(row.value.clone().into_owned(), &Value::Null, None).report());
    });
    decoded.reports = reports;
    let text = "only the outcome: the agent's log does not lie beside it";
    decoded.diagnostics.push(Diagnostic::new(Severity::Info, "harbor.no-log", text));
    decoded
}
