//! Normalised records with outcomes: what the embedded critic is trained on.
//!
//! One JSON line a run: `source, agent, model, instance_id, attempt, resolved, patch, steps[{role, thought, action,
//! observation}]`. The issue texts lie apart, in rows of `instance_id` and `problem_statement`.

use std::collections::{BTreeMap, BTreeSet};

use super::document::Row;
use super::json::Value;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader, numbered};
use super::{field, rows};
use crate::trajectory::{Outcome, RawPlace, Role, Source, Step, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "labelled",
        name: "Labelled steps",
        writer: "the normalised records trajscope trains its critic on",
        recognised: "rows with `instance_id`, `resolved` and `steps` of thought, action, observation",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff, decode },
    },
    Format {
        id: "tasks",
        name: "Issue texts",
        writer: "SWE-bench style data sets",
        recognised: "rows with `instance_id` and `problem_statement` and no steps",
        kind: Kind::Tasks,
        reader: Reader::File { sniff: sniff_tasks, decode: decode_tasks },
    },
];

/// Rows with steps of thought, action and observation.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    if !sniff.is_rows() || !sniff.has_all(&["instance_id", "steps"]) {
        return None;
    }
    let step = sniff.first("steps")?.as_array()?.first()?;
    let fits = step.get("thought").is_some() && step.get("action").is_some() && step.get("observation").is_some();
    if fits { Match::some(Confidence::Certain, "rows with `steps` of thought, action and observation") } else { None }
}

/// Rows that hold issue texts only.
pub fn sniff_tasks(sniff: &Sniff<'_>) -> Option<Match> {
    let steps = ["steps", "history", "messages", "trajectory", "model_patch", "trajectory_steps"];
    if !sniff.is_rows() || !sniff.has_all(&["instance_id", "problem_statement"]) || steps.iter().any(|k| sniff.has(k)) {
        return None;
    }
    Match::some(Confidence::Likely, "rows with `instance_id` and `problem_statement`")
}

/// Reads labelled rows.
pub fn decode(input: &Input<'_>) -> Decoded {
    let (rows, diagnostics) = input.document.map_rows(|row| {
        let fits = row.value.get("steps").is_some();
        if fits { Some(trajectory(input, row)) } else { None }
    });
    let trajectories = numbered(rows);
    // Some sources did not keep the patches at all and write "" everywhere; a resolved run gives that away.
    let mut decoded = Decoded { trajectories, diagnostics, ..Decoded::default() };
    let lost = |t: &&Trajectory| t.outcome == Outcome::Resolved && t.patch.as_deref() == Some("");
    let without: BTreeSet<Option<String>> = decoded.trajectories.iter().filter(lost).map(source_of).collect();
    for trajectory in &mut decoded.trajectories {
        if trajectory.patch.as_deref() == Some("") && without.contains(&source_of(trajectory)) {
            trajectory.patch = None;
        }
    }
    decoded
}

/// Reads issue texts.
pub fn decode_tasks(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut tasks = BTreeMap::new();
    decoded.diagnostics = input.document.rows(|row| {
        let text = field::text(row.value, "problem_statement");
        if let (Some(id), Some(text)) = (field::text(row.value, "instance_id"), text) {
            tasks.insert(id, text);
        }
    });
    decoded.tasks = tasks;
    decoded
}

/// The data set a run came from: what stands before the attempt's number.
fn source_of(trajectory: &Trajectory) -> Option<String> {
    let attempt = trajectory.attempt.as_deref()?;
    Some(attempt.rsplit_once('#').map_or(attempt, |(source, _)| source).to_owned())
}

fn trajectory(input: &Input<'_>, row: Row<'_>) -> Trajectory {
    let value = row.value;
    let source = field::text(value, "source");
    let number = field::get(value, "attempt").and_then(field::scalar_text);
    let at = rows::pointer(row, "steps");
    let attempt = match (&source, number) {
        (Some(source), Some(n)) => Some(format!("{source}#{n}")),
        (source, n) => source.clone().or(n),
    };
    Trajectory {
        source: Source { record: row.record, span: row.span, ..Source::default() },
        format: input.format,
        instance_id: field::text(value, "instance_id"),
        attempt,
        agent: field::text(value, "agent"),
        model: field::text(value, "model"),
        task: field::text(value, "problem_statement"),
        steps: field::list(value, "steps")
            .iter()
            .enumerate()
            .flat_map(|(i, s)| steps(s, &RawPlace::element(&at, i)))
            .collect(),
        patch: field::str(value, "patch").map(str::to_owned),
        exit_status: field::get(value, "exit_status").and_then(field::scalar_text).filter(|s| !s.is_empty()),
        outcome: Outcome::from_bool(field::get(value, "resolved").and_then(field::truth)),
        ..Trajectory::default()
    }
}

/// One record step is an action and what came of it.
fn steps(value: &Value, raw: &RawPlace) -> Vec<Step> {
    let thought = field::str(value, "thought").unwrap_or_default();
    let action = field::str(value, "action").unwrap_or_default();
    let role = match field::str(value, "role").unwrap_or("assistant") {
        "system" => Role::System,
        "user" => Role::User,
        "tool" => Role::Tool,
        // "assistant", "assistant_try2", and the names of an agent's nodes.
        _ => Role::Assistant,
    };
    let between = if thought.is_empty() || action.is_empty() { "" } else { "\n\n" };
    let mut step = Step { raw: raw.clone(), ..Step::new(role, format!("{thought}{between}{action}")) };
    if role == Role::Assistant {
        step.action = Some(action.to_owned()).filter(|a| !a.is_empty());
        step.thought = Some(thought.to_owned()).filter(|t| !t.is_empty());
    }
    let observation = field::get(value, "observation").map(super::chat::content_text);
    let answer = observation.map(|text| Step { raw: raw.clone(), ..Step::new(Role::Tool, text) });
    std::iter::once(step).chain(answer).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::load::load_bytes;
    use super::*;

    const ROWS: &str = concat!(
        r#"{"source":"s","agent":"a","model":"m","instance_id":"o__r-1","attempt":2,"resolved":true,"patch":"diff --git a/x b/x\n","#,
        r#""steps":[{"role":"assistant","thought":"look","action":"ls","observation":"x"},"#,
        r#"{"role":"assistant_try2","thought":"","action":"submit","observation":null}],"exit_status":"submitted"}"#,
        "\n",
        r#"{"source":"s","instance_id":"o__r-2","attempt":1,"resolved":false,"patch":"","steps":[{"thought":"t","action":"","observation":""}]}"#,
        "\n",
        r#"{"source":"lost","instance_id":"o__r-3","attempt":1,"resolved":true,"patch":"","steps":[]}"#,
        "\n",
        r#"{"source":"lost","instance_id":"o__r-4","attempt":1,"resolved":false,"patch":"","steps":[]}"#,
    );

    #[test]
    fn rows_become_trajectories() {
        let file = load_bytes(Path::new("l.jsonl"), ROWS.as_bytes().to_vec());
        assert_eq!(file.report.format, Some("labelled"));
        let first = &file.trajectories[0];
        assert_eq!(first.instance_id.as_deref(), Some("o__r-1"));
        assert_eq!(first.attempt.as_deref(), Some("s#2"));
        assert_eq!(first.outcome, Outcome::Resolved);
        assert_eq!(first.patch.as_deref(), Some("diff --git a/x b/x\n"));
        assert_eq!(first.exit_status.as_deref(), Some("submitted"));
        let roles: Vec<Role> = first.steps.iter().map(|s| s.role).collect();
        assert_eq!(roles, [Role::Assistant, Role::Tool, Role::Assistant]);
        assert_eq!(first.steps[0].text, "look\n\nls");
        assert_eq!(first.steps[0].action.as_deref(), Some("ls"));
        assert_eq!(first.steps[0].thought.as_deref(), Some("look"));
        assert_eq!(first.steps[2].text, "submit");
        let places: Vec<&str> = first.steps.iter().map(|s| s.raw.pointer.as_ref()).collect();
        assert_eq!(places, ["/steps/0", "/steps/0", "/steps/1"]);
    }

    #[test]
    fn an_empty_patch_is_empty_unless_the_source_lost_them_all() {
        let file = load_bytes(Path::new("l.jsonl"), ROWS.as_bytes().to_vec());
        let patches: Vec<Option<&str>> = file.trajectories.iter().map(|t| t.patch.as_deref()).collect();
        assert_eq!(patches, [Some("diff --git a/x b/x\n"), Some(""), None, None]);
        let outcomes: Vec<Outcome> = file.trajectories.iter().map(|t| t.outcome).collect();
        assert_eq!(outcomes[1], Outcome::Unresolved);
        assert_eq!(file.trajectories[1].steps.len(), 2);
    }

    #[test]
    fn issue_texts_are_read() {
        let file = b"{\"instance_id\":\"o__r-1\",\"problem_statement\":\"broken\"}\n{\"instance_id\":\"o__r-2\",\"problem_statement\":null}";
        let document = super::super::Document::read(file);
        let tasks = decode_tasks(&Input { path: Path::new("i"), document: &document, format: "tasks" }).tasks;
        assert_eq!(tasks.into_iter().collect::<Vec<_>>(), [("o__r-1".to_owned(), "broken".to_owned())]);
        let file = load_bytes(Path::new("i.jsonl"), file.to_vec());
        assert_eq!(file.report.format, Some("tasks"));
        assert!(file.trajectories.is_empty());
    }
}
