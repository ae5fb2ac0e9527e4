//! Search trees: every finished leaf is an attempt of its own, with the path that leads to it.

use std::collections::BTreeMap;

use super::super::document::Row;
use super::super::json::{Map, Value};
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{action, field, names};
use super::tokens;
use crate::trajectory::{
    Diagnostic, Outcome, RawPlace, Role, RunReport, Severity, Source, Step, ToolCall, Trajectory, Usage,
};

/// A tree (`root` with `children`) or its nodes in one list (`nodes` with `parent_id`).
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    // The nodes of a DARS tree look alike, but are messages.
    let node = |v: &Value| v.get("node_id").is_some() && v.get("role").is_none() && v.get("_depth").is_none();
    if root.get("root").is_some_and(|r| node(r) && r.get("children").is_some_and(Value::is_array)) {
        return Match::some(Confidence::Certain, "`root` of nodes with `node_id` and `children`");
    }
    let nodes = field::list(sniff.rows.first()?, "nodes");
    if !nodes.is_empty() && nodes.iter().all(node) && nodes.iter().any(|n| n.get("parent_id").is_some()) {
        return Match::some(Confidence::Certain, "`nodes` with `node_id` and `parent_id`");
    }
    None
}

/// A node with the way to it.
struct Node<'a> {
    value: &'a Value<'a>,
    parent: Option<usize>,
    pointer: String,
    leaf: bool,
}

/// All nodes, every parent before its children. Not recursive: trees are deep.
fn nodes<'a>(root: &'a Value<'a>) -> Vec<Node<'a>> {
    let mut found: Vec<Node<'_>> = Vec::new();
    if let Some(list) = field::get(root, "nodes").and_then(Value::as_array) {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let id = |v: &Value, key: &str| field::get(v, key).and_then(field::scalar_text);
        for (i, value) in list.iter().enumerate() {
            let parent = id(value, "parent_id").and_then(|p| places.get(&p).copied());
            if let Some(parent) = parent.and_then(|p| found.get_mut(p)) {
                parent.leaf = false;
            }
            places.extend(id(value, "node_id").map(|id| (id, i)));
            found.push(Node { value, parent, pointer: format!("/nodes/{i}"), leaf: true });
        }
        return found;
    }
    let mut open: Vec<(&Value, Option<usize>, String)> =
        field::get(root, "root").map(|r| (r, None, "/root".to_owned())).into_iter().collect();
    while let Some((value, parent, pointer)) = open.pop() {
        let children = field::list(value, "children");
        let at = found.len();
        for (i, child) in children.iter().enumerate().rev() {
            open.push((child, Some(at), format!("{pointer}/children/{i}")));
        }
        found.push(Node { value, parent, pointer, leaf: children.is_empty() });
    }
    found
}

/// One trajectory for every finished leaf; where none is finished, for the deepest.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut found = Vec::new();
    let mut remarks = input.document.rows(|row| {
        if row.value.is_object() {
            found.push(attempts(row));
        }
    });
    for (mut trajectories, left) in found {
        if left > 0 {
            let text = format!("{left} leaves that were not finished are not shown as attempts");
            remarks.push(Diagnostic::new(Severity::Info, "moatless.unfinished", text));
        }
        for trajectory in &mut trajectories {
            trajectory.format = input.format;
            trajectory.instance_id = trajectory.instance_id.take().or_else(|| names::instance_of(input.path));
        }
        decoded.trajectories.extend(trajectories);
    }
    decoded.diagnostics = remarks;
    decoded
}

fn attempts(row: Row<'_>) -> (Vec<Trajectory>, usize) {
    let all = nodes(row.value);
    let leaves: Vec<usize> = (0..all.len()).filter(|i| all.get(*i).is_some_and(|n| n.leaf)).collect();
    let finished: Vec<usize> =
        leaves.iter().copied().filter(|i| all.get(*i).is_some_and(|n| is_finished(n.value))).collect();
    let deepest = || leaves.iter().copied().max_by_key(|i| path(&all, *i).len());
    let chosen = if finished.is_empty() { deepest().into_iter().collect() } else { finished };
    let several = chosen.len() > 1;
    let left = leaves.len() - chosen.len();
    let read = chosen.iter().enumerate().map(|(record, leaf)| {
        let mut trajectory = attempt(row.value, &all, *leaf);
        trajectory.source = Source { span: row.span, record, ..Source::default() };
        trajectory.attempt = all.get(*leaf).filter(|_| several).and_then(|n| node_name(n.value));
        trajectory
    });
    (read.collect(), left)
}

/// `node 12`: what reports call an attempt by.
fn node_name(node: &Value) -> Option<String> {
    field::get(node, "node_id").and_then(field::scalar_text).map(|id| format!("node {id}"))
}

fn is_finished(node: &Value) -> bool {
    let says = |key| field::get(node, key).and_then(field::truth) == Some(true);
    let terminal = field::at(node, &["observation", "terminal"]).and_then(field::truth) == Some(true);
    terminal || says("terminal") || actions(node).iter().any(|(name, _)| matches!(name.as_str(), "Finish" | "Reject"))
}

fn path(all: &[Node<'_>], leaf: usize) -> Vec<usize> {
    let mut path = vec![leaf];
    while let Some(parent) = path.last().and_then(|i| all.get(*i)).and_then(|n| n.parent) {
        // A parent always stands before its children; anything else is broken and would go round for ever.
        if path.last().is_some_and(|last| parent >= *last) {
            break;
        }
        path.push(parent);
    }
    path.reverse();
    path
}

fn attempt(root: &Value, all: &[Node<'_>], leaf: usize) -> Trajectory {
    let mut out = Trajectory {
        instance_id: field::str_at(root, &["metadata", "instance_id"]).map(str::to_owned),
        agent: Some("moatless".to_owned()),
        model: field::str_at(root, &["agent", "completion", "model"])
            .or_else(|| field::str_at(root, &["agent", "completion_model", "model"]))
            .map(str::to_owned),
        ..Trajectory::default()
    };
    if let Some(prompt) = field::str_at(root, &["agent", "system_prompt"]) {
        let mut step = Step::new(Role::System, prompt);
        step.raw.pointer = "/agent/system_prompt".into();
        out.steps.push(step);
    }
    let mut usage = Usage::default();
    let way = path(all, leaf);
    for node in way.iter().filter_map(|i| all.get(*i)) {
        if node.parent.is_none() {
            out.task = field::text(node.value, "message").or_else(|| field::text(node.value, "user_message"));
        }
        steps(node, &mut out.steps);
        add(&mut usage, node.value);
    }
    out.usage = usage;
    let leaf = way.last().and_then(|i| all.get(*i)).map_or(&Value::Null, |n| n.value);
    out.patch = patch(leaf);
    out.outcome = Outcome::from_bool(field::get(leaf, "resolved").and_then(field::truth));
    out.error = field::text(leaf, "error");
    out
}

/// The patches of the files the leaf has open; none of them changed is an empty patch.
fn patch(leaf: &Value) -> Option<String> {
    let context = field::get(leaf, "file_context").filter(|c| c.get("files").is_some())?;
    let patches: Vec<&str> = field::list(context, "files").iter().filter_map(|f| field::str(f, "patch")).collect();
    Some(patches.concat())
}

/// The actions of a node with their observations: newer trees have several.
fn actions<'a>(node: &'a Value<'a>) -> Vec<(String, &'a Value<'a>)> {
    let list = field::list(node, "action_steps");
    let of = |v: &Value| -> Option<String> {
        let class = field::str(v, "action_args_class").or_else(|| field::str(v, "action_class"))?;
        let name = class.rsplit('.').next().unwrap_or(class);
        Some(name.strip_suffix("Args").unwrap_or(name).to_owned())
    };
    let name = |v: &Value| of(v).or_else(|| field::text(v, "name")).unwrap_or_else(|| "action".to_owned());
    if list.is_empty() {
        return field::get(node, "action").map(|a| (name(a), node)).into_iter().collect();
    }
    list.iter().filter_map(|step| Some((name(field::get(step, "action")?), step))).collect()
}

fn steps(node: &Node<'_>, steps: &mut Vec<Step>) {
    let value = node.value;
    let mut push = |mut step: Step, pointer: String| {
        step.raw = RawPlace { pointer: pointer.into(), ..RawPlace::default() };
        steps.push(step);
    };
    for key in ["message", "user_message"] {
        if let Some(text) = field::text(value, key) {
            push(Step::new(Role::User, text), format!("{}/{key}", node.pointer));
        }
    }
    let several = !field::list(value, "action_steps").is_empty();
    for (n, (name, holder)) in actions(value).into_iter().enumerate() {
        let at = if several { format!("{}/action_steps/{n}", node.pointer) } else { node.pointer.clone() };
        let Some(asked) = field::get(holder, "action") else { continue };
        push(assistant(&name, asked, field::text(value, "assistant_message")), format!("{at}/action"));
        if let Some(observed) = field::get(holder, "observation") {
            let text = field::text(observed, "message").unwrap_or_else(|| field::json_text(observed));
            let mut step = Step::new(Role::Tool, text);
            step.tool_name = Some(name);
            step.is_error = field::get(observed, "expect_correction").and_then(field::truth);
            push(step, format!("{at}/observation"));
        }
    }
    if let Some(reward) = field::get(value, "reward").filter(|r| r.is_object()) {
        let number = field::get(reward, "value").and_then(field::scalar_text).unwrap_or_default();
        let why = field::text(reward, "explanation").unwrap_or_default();
        push(Step::new(Role::Meta, format!("reward {number}: {why}")), format!("{}/reward", node.pointer));
    }
    if let Some(feedback) = field::text(value, "feedback") {
        push(Step::new(Role::Meta, format!("feedback: {feedback}")), format!("{}/feedback", node.pointer));
    }
    if let Some(error) = field::text(value, "error") {
        let mut step = Step::new(Role::Meta, error);
        step.is_error = Some(true);
        push(step, format!("{}/error", node.pointer));
    }
}

/// The model's part of a node: its thoughts, and the action as a call.
fn assistant(name: &str, asked: &Value, message: Option<String>) -> Step {
    let own = ["thoughts", "scratch_pad"];
    let thought = own.iter().find_map(|k| field::text(asked, k));
    let not_arguments = |k: &str| own.contains(&k) || matches!(k, "action_args_class" | "action_class" | "is_terminal");
    let arguments: Map<'_> = asked
        .as_object()
        .map(|o| o.iter().filter(|(k, _)| !not_arguments(k)).map(|(k, v)| (k, v.clone())).collect())
        .unwrap_or_default();
    let mut step = Step::new(Role::Assistant, thought.clone().or(message).unwrap_or_default());
    step.thought = thought;
    let arguments = Value::Object(arguments).to_string();
    step.calls = vec![ToolCall { id: String::new(), name: name.to_owned(), arguments }];
    step.action = action::of_calls(&step.calls);
    step
}

/// Adds what the model calls of a node cost.
fn add(usage: &mut Usage, node: &Value) {
    let sum = |a: Option<u64>, b: Option<u64>| if a.is_none() { b } else { a.map(|a| a + b.unwrap_or(0)) };
    let Some(completions) = field::get(node, "completions") else { return };
    let each: Vec<&Value> = match completions {
        Value::Object(all) => all.values().collect(),
        Value::Array(all) => all.iter().collect(),
        _ => Vec::new(),
    };
    for used in each.into_iter().filter_map(|c| field::get(c, "usage")) {
        let tokens = tokens(used);
        usage.tokens_in = sum(usage.tokens_in, tokens.map(|t| t.input));
        usage.tokens_out = sum(usage.tokens_out, tokens.map(|t| t.output));
        usage.api_calls = sum(usage.api_calls, Some(1));
        let cost = field::get(used, "completion_cost").and_then(field::number).filter(|c| *c > 0.0);
        usage.cost = match (usage.cost, cost) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}

/// The evaluation of the leaves of a tree.
pub fn sniff_eval(sniff: &Sniff<'_>) -> Option<Match> {
    let results = sniff.object()?.get("node_results")?.as_object()?;
    let fits = results.values().all(Value::is_object);
    if fits { Match::some(Confidence::Certain, "`node_results` by node") } else { None }
}

/// Reads it: a label for every node.
pub fn decode_eval(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    decoded.diagnostics = input.document.rows(|row| {
        let id = field::text(row.value, "instance_id").or_else(|| names::instance_of(input.path));
        let (Some(id), Some(results)) = (id, field::object(row.value, "node_results")) else { return };
        for (node, result) in results {
            let Some(resolved) = field::get(result, "resolved").and_then(field::truth) else { continue };
            decoded.reports.push(RunReport {
                per_instance: true,
                // A tree with one finished leaf is one attempt without a name.
                attempt: Some(format!("node {node}")).filter(|_| results.len() > 1),
                outcomes: [(id.clone(), Outcome::from_bool(Some(resolved)))].into(),
                ..RunReport::default()
            });
        }
    });
    decoded
}
