//! What the scorers of a sample said.

use super::super::field;
use super::super::json::Value;
use crate::trajectory::{Diagnostic, Outcome, Severity};

/// Names a candidate patch goes by. Never the target's: that is the gold patch.
const PATCHES: [&str; 4] = ["model_patch", "generated_patch", "git_patch", "submission_patch"];

/// Resolved or not; else the reason why that cannot be told from the value.
pub fn verdict(value: &Value) -> Result<bool, String> {
    match value {
        Value::String(letter) if letter == "C" => Ok(true),
        Value::String(letter) if letter == "I" => Ok(false),
        Value::String(letter) if letter == "P" => Err("P (partly correct)".to_owned()),
        Value::String(letter) if letter == "N" => Err("N (no answer)".to_owned()),
        Value::Null => Err("no value".to_owned()),
        Value::Object(all) => match all.get("resolved").and_then(field::truth) {
            Some(resolved) => Ok(resolved),
            None => Err(short(value)),
        },
        other => field::truth(other).ok_or_else(|| short(other)),
    }
}

fn short(value: &Value) -> String {
    let text = field::json_text(value);
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// What all scorers say together.
#[derive(Debug, Default, PartialEq)]
pub struct Scores {
    /// The label.
    pub outcome: Outcome,
    /// What the label does not say.
    pub remark: Option<Diagnostic>,
    /// One line a scorer, for the reader.
    pub lines: Vec<String>,
}

/// Of a sample: the scorers that give a verdict must agree on it.
pub fn of(sample: &Value) -> Scores {
    let mut scores = Scores::default();
    let (mut said, mut reasons): (Vec<(&str, bool)>, Vec<String>) = (Vec::new(), Vec::new());
    for (name, score) in scorers(sample) {
        let value = score.get("value").unwrap_or(score);
        match verdict(value) {
            Ok(resolved) => said.push((name, resolved)),
            Err(reason) => reasons.push(format!("`{name}` says {reason}")),
        }
        scores.lines.push(line(name, value, score));
    }
    let first = said.first().map(|(_, resolved)| *resolved);
    if said.iter().all(|(_, resolved)| Some(*resolved) == first) {
        scores.outcome = Outcome::from_bool(first);
    } else {
        let says = |(name, resolved): &(&str, bool)| format!("`{name}` says {}", if *resolved { "yes" } else { "no" });
        reasons.splice(0..0, said.iter().map(says));
    }
    if scores.outcome == Outcome::Unknown && !reasons.is_empty() {
        let text = format!("resolved or not cannot be told: {}", reasons.join(", "));
        scores.remark = Some(Diagnostic::new(Severity::Info, "inspect.score", text));
    } else if said.len() > 1 || !reasons.is_empty() {
        let names: Vec<String> = said.iter().map(|(name, _)| format!("`{name}`")).collect();
        let others = if reasons.is_empty() { String::new() } else { format!("; {}", reasons.join(", ")) };
        let text = format!("the label is that of {}{others}", names.join(" and "));
        scores.remark = Some(Diagnostic::new(Severity::Info, "inspect.score", text));
    }
    scores
}

fn scorers<'a>(sample: &'a Value<'a>) -> impl Iterator<Item = (&'a str, &'a Value<'a>)> {
    let several = field::object(sample, "scores").into_iter().flatten();
    // The oldest logs have one score without a name.
    let one = field::get(sample, "score").map(|score| ("score", score));
    several.chain(one)
}

fn line(name: &str, value: &Value, score: &Value) -> String {
    let mut line = format!("score {name}: {}", short(value));
    for key in ["answer", "explanation"] {
        if let Some(text) = field::get(score, key).map(field::json_text).filter(|t| !t.trim().is_empty()) {
            line.push_str(&format!("\n{key}: {text}"));
        }
    }
    line
}

/// The candidate patch: where a scorer, the store or the sample keeps it.
pub fn patch(sample: &Value) -> Option<String> {
    let scored = scorers(sample).filter_map(|(_, score)| field::get(score, "metadata"));
    let stored = field::get(sample, "store").into_iter().chain(field::get(sample, "metadata"));
    let places: Vec<&Value> = scored.chain(stored).collect();
    let found = |key: &&str| {
        let ending = format!(":{key}");
        places.iter().find_map(|place| {
            let members = place.as_object()?;
            let named = members.iter().find(|(name, _)| *name == *key || name.ends_with(&ending));
            named.and_then(|(_, patch)| patch.as_str()).map(str::to_owned)
        })
    };
    PATCHES.iter().find_map(found)
}
