//! What a log says of all its samples.

use super::super::json::Value;
use super::super::{field, names};
use super::scores;
use crate::trajectory::{Diagnostic, RunReport, Severity};

/// Everything but the samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// Task, without the package it comes from.
    pub task: Option<String>,
    /// Model evaluated.
    pub model: Option<String>,
    /// The solver: the agent.
    pub agent: Option<String>,
    /// `started`, `success`, `cancelled` or `error`; `None` where there is no header.
    pub status: Option<String>,
    /// Error of the whole evaluation.
    pub error: Option<String>,
    /// Samples the results were computed from.
    samples: Option<u64>,
}

impl Header {
    /// Of a log's root, its `header.json` or its `_journal/start.json`.
    pub fn of(root: &Value) -> Self {
        let eval = field::get(root, "eval").unwrap_or(&Value::Null);
        let plan = field::at(root, &["plan", "steps"]).and_then(Value::as_array);
        let solver = || plan.and_then(|steps| steps.iter().rev().find_map(|s| field::text(s, "solver")));
        let last = |name: String| name.rsplit('/').next().unwrap_or_default().to_owned();
        Self {
            task: field::text(eval, "task").map(last),
            model: field::text(eval, "model"),
            agent: field::text(eval, "solver").or_else(solver).map(last),
            status: field::text(root, "status"),
            error: field::str_at(root, &["error", "message"]).map(str::to_owned),
            samples: field::at(root, &["results", "total_samples"]).and_then(field::count),
        }
    }

    /// The instance a sample is: what its metadata says, an id that is one, else its id within the task.
    pub fn instance(&self, id: &Value, metadata: &Value) -> Option<String> {
        let said = field::text(metadata, "instance_id");
        let id = || {
            let id = field::scalar_text(id)?;
            let whole = names::looks_like_instance(&id) || self.task.is_none();
            Some(if whole { id } else { format!("{}/{id}", self.task.as_deref().unwrap_or_default()) })
        };
        said.or_else(id)
    }

    /// Remarks about the log as a whole.
    pub fn remarks(&self, here: usize) -> Vec<Diagnostic> {
        let mut remarks = Vec::new();
        let mut say = |severity, code, text: String| remarks.push(Diagnostic::new(severity, code, text));
        match self.status.as_deref() {
            None | Some("started") => {
                let text = "the evaluation is still running, or was killed: what is finished of it is shown";
                say(Severity::Warning, "inspect.running", text.to_owned());
            }
            Some("success") => {}
            Some(status) => {
                let error = self.error.as_ref().map(|e| format!(": {}", first_line(e))).unwrap_or_default();
                say(Severity::Warning, "inspect.status", format!("the evaluation ended with status {status}{error}"));
            }
        }
        if let Some(all) = self.samples.filter(|all| *all > here as u64) {
            let text = format!("the results are those of {all} samples, of which {here} are in this log");
            say(Severity::Info, "inspect.missing-samples", text);
        }
        remarks
    }

    /// Outcomes of a log that was written without its samples.
    pub fn reductions(&self, reductions: &[Value]) -> Option<RunReport> {
        let mut report = RunReport::default();
        for reduction in reductions {
            for sample in field::list(reduction, "samples") {
                let Some(id) = sample.get("sample_id").and_then(|id| self.instance(id, &Value::Null)) else { continue };
                let value = sample.get("value").unwrap_or(&Value::Null);
                match scores::verdict(value) {
                    Ok(resolved) => {
                        report.outcomes.insert(id, crate::trajectory::Outcome::from_bool(Some(resolved)));
                    }
                    Err(reason) => {
                        report.reasons.insert(id, reason);
                    }
                }
            }
        }
        if report.outcomes.is_empty() && report.reasons.is_empty() { None } else { Some(report) }
    }
}

/// The first line of a text that may have many.
pub fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
