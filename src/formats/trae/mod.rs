//! trae-agent: its trajectories (the Python and the Rust program), and the candidates its selector chose from.

use super::document::Row;
use super::json::Value;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{action, chat, field};
use crate::trajectory::{
    Diagnostic, Outcome, Prediction, RawPlace, Role, Severity, Source, Step, Tokens, ToolCall, Trajectory, Usage,
};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "trae",
        name: "trae-agent trajectory",
        writer: "trae-agent (Python and Rust)",
        recognised: "`llm_interactions` with `agent_steps`, or `llm_interaction` with `max_step`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff, decode },
    },
    Format {
        id: "trae-candidates",
        name: "trae-agent patch selection",
        writer: "trae-agent",
        recognised: "rows with `instance_id` and lists `patches` and `success_id`",
        kind: Kind::Prediction,
        reader: Reader::File { sniff: sniff_candidates, decode: decode_candidates },
    },
];

fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    sniff.object()?;
    if sniff.has_all(&["llm_interactions", "agent_steps"]) {
        return Match::some(Confidence::Certain, "`llm_interactions` beside `agent_steps`");
    }
    let rust = sniff.has_all(&["llm_interaction", "max_step"]);
    if rust { Match::some(Confidence::Certain, "`llm_interaction` beside `max_step`") } else { None }
}

fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    decoded.diagnostics = input.document.rows(|row| {
        if row.value.is_object() {
            let mut trajectory = run(row);
            trajectory.format = input.format;
            decoded.trajectories.push(trajectory);
        }
    });
    decoded
}

fn run(row: Row<'_>) -> Trajectory {
    let root = row.value;
    let (key, calls) = match field::list(root, "llm_interactions") {
        [] => ("llm_interaction", field::list(root, "llm_interaction")),
        calls => ("llm_interactions", calls),
    };
    let success = field::get(root, "success").and_then(field::truth);
    let mut out = Trajectory {
        source: Source { span: row.span, record: row.record, ..Source::default() },
        agent: Some("trae-agent".to_owned()),
        model: field::text(root, "model"),
        task: field::text(root, "task"),
        exit_status: success.map(|yes| if yes { "success" } else { "failed" }.to_owned()),
        usage: usage(calls),
        ..Trajectory::default()
    };
    // What the model was told first; later calls repeat all of it and are left alone.
    if let Some(first) = calls.first() {
        let told = field::list(first, "input_messages");
        let before = told.iter().take_while(|m| chat::role_of(m) != Role::Assistant).count();
        let told = told.get(..before).unwrap_or_default();
        out.steps = chat::steps_at(told, &format!("/{key}/0/input_messages"), |_, _| {});
    }
    let steps = ["agent_steps", "steps"].iter().map(|k| (*k, field::list(root, k))).find(|(_, s)| !s.is_empty());
    match steps {
        Some((name, steps)) => {
            for (i, step) in steps.iter().enumerate() {
                agent_step(step, &format!("/{name}/{i}"), &mut out.steps);
            }
        }
        None => nested(calls, key, &mut out),
    }
    if let Some(text) = field::text(root, "final_result") {
        let repeated = out.steps.iter().rev().find(|s| s.is_action()).is_some_and(|s| s.text.trim() == text.trim());
        if !repeated {
            let mut step = Step::new(Role::Meta, format!("final result: {text}"));
            step.raw.pointer = "/final_result".into();
            out.steps.push(step);
        }
    }
    chat::name_tools(&mut out.steps);
    out
}

/// The Rust program nests the steps in the calls; a run that was cut has calls only.
fn nested(calls: &[Value], key: &str, out: &mut Trajectory) {
    let mut bare = 0;
    for (i, call) in calls.iter().enumerate() {
        let steps = field::list(call, "steps");
        for (n, step) in steps.iter().enumerate() {
            agent_step(step, &format!("/{key}/{i}/steps/{n}"), &mut out.steps);
        }
        if let (true, Some(response)) = (steps.is_empty(), field::get(call, "response")) {
            bare += 1;
            let mut step = answer(response, None);
            step.timestamp = time(call);
            step.raw = at(format!("/{key}/{i}/response"));
            out.steps.push(step);
        }
    }
    if bare > 0 {
        let text = format!("{bare} calls of the model have no agent step: what they led to is not known");
        out.diagnostics.push(Diagnostic::new(Severity::Info, "trae.no-steps", text));
    }
}

fn at(pointer: String) -> RawPlace {
    RawPlace { pointer: pointer.into(), ..RawPlace::default() }
}

fn time(value: &Value) -> Option<String> {
    field::get(value, "timestamp").and_then(field::scalar_text)
}

/// One step: the model's answer, the results of its calls, what it thought of them.
fn agent_step(value: &Value, pointer: &str, steps: &mut Vec<Step>) {
    let calls = field::list(value, "tool_calls");
    let response = field::get(value, "llm_response").or_else(|| field::get(value, "response"));
    if response.is_some() || !calls.is_empty() {
        let mut step = answer(response.unwrap_or(&Value::Null), Some(calls));
        step.timestamp = time(value);
        step.raw = at(pointer.to_owned());
        steps.push(step);
    }
    for (i, result) in field::list(value, "tool_results").iter().enumerate() {
        let said: Vec<String> =
            ["result", "error"].iter().filter_map(|k| field::get(result, k)).map(field::json_text).collect();
        let said: Vec<String> = said.into_iter().filter(|s| !s.is_empty()).collect();
        let mut step = Step::new(Role::Tool, said.join("\n"));
        step.call_id = field::text(result, "call_id");
        step.tool_name = field::text(result, "name");
        step.is_error = field::get(result, "success").and_then(field::truth).map(|ok| !ok);
        step.raw = at(format!("{pointer}/tool_results/{i}"));
        steps.push(step);
    }
    for (key, error) in [("reflection", false), ("error", true)] {
        if let Some(text) = field::text(value, key) {
            let mut step = Step::new(Role::Meta, format!("{key}: {text}"));
            step.is_error = Some(true).filter(|_| error);
            step.raw = at(format!("{pointer}/{key}"));
            steps.push(step);
        }
    }
}

/// An answer of the model; the calls stand in it or beside it.
fn answer(response: &Value, beside: Option<&[Value]>) -> Step {
    let text = field::get(response, "content").map(chat::content_text).unwrap_or_default();
    let mut step = Step::new(Role::Assistant, text);
    let within = field::list(response, "tool_calls");
    let calls = beside.filter(|calls| !calls.is_empty()).unwrap_or(within);
    step.calls = calls
        .iter()
        .map(|call| {
            let id = field::text(call, "call_id");
            let call = chat::tool_call(call);
            ToolCall { id: id.unwrap_or(call.id), ..call }
        })
        .collect();
    step.action = action::of_calls(&step.calls).or_else(|| action::in_text(&step.text));
    step.tokens = field::get(response, "usage").and_then(tokens);
    step
}

fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |key| field::get(usage, key).and_then(field::count);
    let (input, output) = (count("input_tokens")?, count("output_tokens")?);
    if input == 0 && output == 0 {
        return None;
    }
    let cached = count("cache_read_input_tokens");
    // Anthropic counts the cached ones apart.
    let apart = cached.unwrap_or(0) + count("cache_creation_input_tokens").unwrap_or(0);
    Some(Tokens { input: if apart > input { input + apart } else { input }, cached, output })
}

/// The sum over the calls, each counted once.
fn usage(calls: &[Value]) -> Usage {
    let each: Vec<Tokens> =
        calls.iter().filter_map(|c| field::at(c, &["response", "usage"]).and_then(tokens)).collect();
    if each.is_empty() {
        return Usage::default();
    }
    Usage {
        tokens_in: Some(each.iter().map(|t| t.input).sum()),
        tokens_out: Some(each.iter().map(|t| t.output).sum()),
        api_calls: Some(calls.len() as u64),
        ..Usage::default()
    }
}

fn sniff_candidates(sniff: &Sniff<'_>) -> Option<Match> {
    let lists = ["patches", "success_id"].iter().all(|k| sniff.first(k).is_some_and(Value::is_array));
    let fits = sniff.is_rows() && sniff.has("instance_id") && lists;
    if fits { Match::some(Confidence::Certain, "rows with lists `patches` and `success_id`") } else { None }
}

/// Every patch is a candidate with its own label.
fn decode_candidates(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    decoded.diagnostics = input.document.rows(|row| {
        let Some(instance_id) = field::text(row.value, "instance_id") else { return };
        let labels = field::list(row.value, "success_id");
        for (i, patch) in field::list(row.value, "patches").iter().enumerate() {
            decoded.predictions.push(Prediction {
                record: decoded.predictions.len(),
                candidate: Some(format!("candidate {}", i + 1)),
                instance_id: instance_id.clone(),
                patch: patch.as_str().map(str::to_owned),
                outcome: Outcome::from_bool(labels.get(i).and_then(field::truth)),
                ..Prediction::default()
            });
        }
        if let (Some(id), Some(text)) = (field::text(row.value, "instance_id"), field::text(row.value, "issue")) {
            decoded.tasks.insert(id, text);
        }
    });
    decoded
}

#[cfg(test)]
mod tests;
