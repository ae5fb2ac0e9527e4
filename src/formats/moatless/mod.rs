//! moatless: the state machine of 2024 (`transitions`) and the search trees that followed it.

mod tree;

use super::document::Row;
use super::field;
use super::json::{Map, Value};
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Outcome, RawPlace, Role, Source, Step, Tokens, Trajectory, Usage};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "moatless-0",
        name: "moatless trajectory",
        writer: "moatless-tools 0.x",
        recognised: "`transitions` beside `transition_rules` or `current_transition_id`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff, decode },
    },
    Format {
        id: "moatless-tree",
        name: "moatless search tree",
        writer: "moatless-tree-search, moatless-tools 1.x",
        recognised: "`root` or `nodes` of `node_id`, with `children` or `parent_id`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: tree::sniff, decode: tree::decode },
    },
    Format {
        id: "moatless-eval",
        name: "moatless evaluation of a tree",
        writer: "moatless-tree-search",
        recognised: "`node_results` by node",
        kind: Kind::Report,
        reader: Reader::File { sniff: tree::sniff_eval, decode: tree::decode_eval },
    },
];

fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let transitions = sniff.object()?.get("transitions").is_some_and(Value::is_array);
    let fits = transitions && (sniff.has("transition_rules") || sniff.has("current_transition_id"));
    if fits { Match::some(Confidence::Certain, "`transitions` of a state machine") } else { None }
}

fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    decoded.diagnostics = input.document.rows(|row| {
        if row.value.is_object() {
            let mut trajectory = machine(row);
            trajectory.format = input.format;
            decoded.trajectories.push(trajectory);
        }
    });
    decoded
}

/// One run of the state machine.
fn machine(row: Row<'_>) -> Trajectory {
    let root = row.value;
    let info = field::get(root, "info").unwrap_or(&Value::Null);
    let mut out = Trajectory {
        source: Source { span: row.span, record: row.record, ..Source::default() },
        instance_id: field::text(info, "instance_id"),
        agent: Some("moatless".to_owned()),
        task: field::text(root, "initial_message"),
        patch: field::str(info, "submission").map(str::to_owned),
        exit_status: field::text(info, "status"),
        error: field::text(info, "error"),
        outcome: Outcome::from_bool(field::get(info, "resolved").and_then(field::truth)),
        ..Trajectory::default()
    };
    if let Some(task) = &out.task {
        let mut step = Step::new(Role::User, task.clone());
        step.raw.pointer = "/initial_message".into();
        out.steps.push(step);
    }
    let mut before: Option<u64> = None;
    for (i, transition) in field::list(root, "transitions").iter().enumerate() {
        let id = field::get(transition, "id").and_then(field::count);
        let previous = field::get(transition, "previous_state_id").and_then(field::count);
        out.model = out.model.take().or_else(|| field::str_at(transition, &["properties", "model"]).map(str::to_owned));
        let jumps = previous.filter(|p| before.is_some_and(|b| b != *p));
        state(transition, i, jumps, &mut out.steps);
        before = id.or(before);
    }
    let worked = out.steps.iter().any(Step::is_action);
    let cost = field::get(info, "total_cost").and_then(field::number);
    let tokens: Vec<Tokens> = out.steps.iter().filter_map(|s| s.tokens).collect();
    let sum = |of: fn(&Tokens) -> u64| Some(tokens.iter().map(of).sum()).filter(|_| !tokens.is_empty());
    out.usage = Usage {
        cost: field::honest_cost(cost, worked),
        tokens_in: sum(|t| t.input),
        tokens_out: sum(|t| t.output),
        ..Usage::default()
    };
    out
}

/// What one state did: what the model asked for, and what the machine made of it.
fn state(transition: &Value, index: usize, jumps: Option<u64>, steps: &mut Vec<Step>) {
    let name = field::str(transition, "name").unwrap_or("state");
    let at = |pointer: String| RawPlace { pointer: pointer.into(), ..RawPlace::default() };
    let actions = field::list(transition, "actions");
    if let Some(previous) = jumps {
        let mut step = Step::new(Role::Meta, format!("goes on from state {previous}"));
        step.raw = at(format!("/transitions/{index}"));
        steps.push(step);
    }
    if actions.is_empty() {
        let mut step = Step::new(Role::Meta, format!("state {name}"));
        step.raw = at(format!("/transitions/{index}"));
        steps.push(step);
    }
    for (n, action) in actions.iter().enumerate() {
        let pointer = format!("/transitions/{index}/actions/{n}");
        let mut step = asked(name, field::get(action, "request").unwrap_or(&Value::Null));
        step.tokens = field::at(action, &["completion", "response", "usage"]).and_then(tokens);
        step.raw = at(format!("{pointer}/request"));
        steps.push(step);
        if let Some(response) = field::get(action, "response") {
            let mut step = answered(response);
            step.tool_name = Some(name.to_owned());
            step.raw = at(format!("{pointer}/response"));
            steps.push(step);
        }
    }
}

/// The request of a state: its thoughts, and the rest as the command.
fn asked(name: &str, request: &Value) -> Step {
    let thought = ["scratch_pad", "thoughts", "thought"].iter().find_map(|k| field::text(request, k));
    let rest: Map<'_> = request
        .as_object()
        .map(|o| o.iter().filter(|(k, _)| !matches!(*k, "scratch_pad" | "thoughts" | "thought")))
        .map(|rest| rest.map(|(k, v)| (k, v.clone())).collect())
        .unwrap_or_default();
    let content = rest.get("content").and_then(Value::as_str).filter(|_| rest.len() == 1);
    let written = content.map_or_else(|| Value::Object(rest.clone()).to_string(), str::to_owned);
    let text = match &thought {
        Some(thought) if rest.is_empty() => thought.clone(),
        Some(thought) => format!("{thought}\n\n{written}"),
        None => written.clone(),
    };
    let mut step = Step::new(Role::Assistant, text);
    step.action = Some(if rest.is_empty() { name.to_owned() } else { format!("{name} {written}") });
    step.thought = thought;
    step
}

/// What the machine answered.
fn answered(response: &Value) -> Step {
    let trigger = field::str(response, "trigger").unwrap_or("answer");
    let output = field::get(response, "output").unwrap_or(&Value::Null);
    let said: Vec<String> =
        ["message", "diff", "retry_message"].iter().filter_map(|k| field::text(output, k)).collect();
    let retry = field::text(response, "retry_message");
    let text = match (retry, said.is_empty()) {
        (Some(retry), _) => retry,
        (None, false) => said.join("\n"),
        (None, true) => field::json_text(output),
    };
    let text = if text.is_empty() || text == "{}" { trigger.to_owned() } else { format!("{trigger}: {text}") };
    let mut step = Step::new(Role::Tool, text);
    step.is_error = Some(matches!(trigger, "retry" | "reject"));
    step
}

/// Tokens of one call, under any of their names.
fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |keys: [&str; 2]| keys.iter().find_map(|k| field::get(usage, k).and_then(field::count));
    let input = count(["prompt_tokens", "input_tokens"])?;
    let cached = count(["cached_tokens", "cache_read_tokens"]);
    Some(Tokens { input, cached, output: count(["completion_tokens", "output_tokens"])? })
}

#[cfg(test)]
mod tests;
