//! What a trial's verifier said.

use super::super::json::Value;
use super::super::tree::FolderInput;
use super::super::{field, trial};
use crate::trajectory::{Outcome, Role, Step};

/// Failed tests named at most.
const FAILED: usize = 20;

/// The rewards of a trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// Name and value, as written.
    pub rewards: Vec<(String, f64)>,
}

impl Verdict {
    /// Of a `result.json`, or of the verifier's own file where that says nothing.
    pub fn of(result: &Value, input: Option<&FolderInput<'_>>) -> Self {
        let rewards = field::at(result, &["verifier_result", "rewards"]).map(rewards).unwrap_or_default();
        if !rewards.is_empty() {
            return Self { rewards };
        }
        Self { rewards: input.map(|input| Self::of_files(input, "verifier")).unwrap_or_default() }
    }

    /// Of `reward.txt` or `reward.json` in a folder of the trial.
    fn of_files(input: &FolderInput<'_>, folder: &str) -> Vec<(String, f64)> {
        let number = |text: String| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let plain = input.find(&format!("{folder}/reward.txt")).and_then(trial::text).and_then(number);
        let named = || input.find(&format!("{folder}/reward.json")).and_then(super::super::tree::Entry::value);
        plain.map(|n| vec![("reward".to_owned(), n)]).or_else(|| named().map(|v| rewards(&v))).unwrap_or_default()
    }

    /// Of the files alone.
    pub fn of_folder(input: &FolderInput<'_>, folder: &str) -> Self {
        Self { rewards: Self::of_files(input, folder) }
    }

    /// 1 is resolved, anything less is not. Rewards of other names are not guessed at.
    pub fn outcome(&self) -> Outcome {
        let reward = self.rewards.iter().find(|(name, _)| name == "reward").map(|(_, value)| *value);
        match reward {
            Some(1.0) => Outcome::Resolved,
            Some(part) if (0.0..1.0).contains(&part) => Outcome::Unresolved,
            _ => Outcome::Unknown,
        }
    }

    /// `reward 0.5, style 1`; `None` without rewards.
    pub fn text(&self) -> Option<String> {
        let all: Vec<String> = self.rewards.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if all.is_empty() { None } else { Some(all.join(", ")) }
    }

    /// The finer reason where the outcome alone does not say it.
    pub fn reason(&self) -> Option<String> {
        let whole = |value: f64| value.abs() < f64::EPSILON || (value - 1.0).abs() < f64::EPSILON;
        let plain = matches!(self.rewards.as_slice(), [(name, value)] if name == "reward" && whole(*value));
        if plain { None } else { self.text() }
    }
}

fn rewards(value: &Value) -> Vec<(String, f64)> {
    match value {
        Value::Object(all) => all.iter().filter_map(|(name, v)| Some((name.to_owned(), field::number(v)?))).collect(),
        other => field::number(other).map(|n| ("reward".to_owned(), n)).into_iter().collect(),
    }
}

/// A step that says what the verifier found: rewards and tests.
pub fn step(verdict: &Verdict, input: &FolderInput<'_>) -> Option<Step> {
    let report = input.find("verifier/ctrf.json");
    let tests = report.and_then(|e| tests(&e.value()?));
    let lines: Vec<String> = verdict.text().map(|t| format!("verifier: {t}")).into_iter().chain(tests).collect();
    if lines.is_empty() {
        return None;
    }
    let mut step = Step::new(Role::Meta, lines.join("\n"));
    let from = report.or_else(|| input.find("result.json")).or_else(|| input.find("verifier/reward.txt"));
    step.raw = from.map(|e| trial::whole_file(&e.path)).unwrap_or_default();
    Some(step)
}

/// Numbers of tests, and the names of those that failed. Names may be there twice.
fn tests(ctrf: &Value) -> Option<String> {
    let results = field::get(ctrf, "results")?;
    let counts = ["passed", "failed", "skipped", "pending", "other"].iter().filter_map(|kind| {
        let n = field::at(results, &["summary", kind]).and_then(field::count).filter(|n| *n > 0)?;
        Some(format!("{n} {kind}"))
    });
    let counts: Vec<String> = counts.collect();
    let failed: Vec<&str> = field::list(results, "tests")
        .iter()
        .filter(|t| field::str(t, "status") == Some("failed"))
        .filter_map(|t| field::str(t, "name"))
        .collect();
    let mut text = format!("tests: {}", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") });
    for name in failed.iter().take(FAILED) {
        text.push_str("\nfailed: ");
        text.push_str(name);
    }
    if failed.len() > FAILED {
        text.push_str(&format!("\n… and {} more", failed.len() - FAILED));
    }
    Some(text)
}
