//! Steps of ATIF, and the totals of what they cost.

use std::collections::BTreeMap;

use super::super::json::Value;
use super::super::{action, chat, field, terminus};
use super::segment::Place;
use crate::trajectory::{Role, Step, Tokens, ToolCall, Usage};

/// What is found beside the steps.
#[derive(Debug, Default)]
pub struct Found {
    /// What the steps of this attempt cost.
    pub fresh: Usage,
    /// What the steps copied from elsewhere cost there.
    pub copied: Usage,
    /// Lists of token ids and log probabilities left out.
    pub token_lists: usize,
    /// Unknown values of `source`, counted.
    pub unknown: BTreeMap<String, usize>,
    /// Sub-agents referred to.
    pub refs: Vec<Reference>,
}

/// A sub-agent's trajectory, as a step refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Its `trajectory_id` or `session_id`.
    pub id: Option<String>,
    /// Its file, from the folder of the file that refers to it.
    pub path: Option<String>,
}

/// The steps of a root, and what else they tell.
pub fn read(root: &Value, place: &Place) -> (Vec<Step>, Found) {
    let (mut steps, mut found) = (Vec::new(), Found::default());
    for (at, value) in field::list(root, "steps").iter().enumerate() {
        let copied = field::get(value, "is_copied_context").and_then(field::truth) == Some(true);
        let first = steps.len();
        steps.push(spoken(value, &mut found));
        steps.extend(observed(value, &mut found));
        count(value, copied, &mut found);
        for step in steps.iter_mut().skip(first) {
            step.raw = place.element("/steps", at);
            step.is_demo = copied;
            step.timestamp = step.timestamp.take().or_else(|| field::text(value, "timestamp"));
            if copied {
                step.cost = None;
                step.tokens = None;
            }
        }
    }
    chat::name_tools(&mut steps);
    (steps, found)
}

fn spoken(value: &Value, found: &mut Found) -> Step {
    let source = field::str(value, "source").or_else(|| field::str(value, "role")).unwrap_or_default();
    let role = match source {
        // A remark of the harness with something observed: the model was not told.
        "system" if value.get("observation").is_some_and(|o| !o.is_null()) => Role::Meta,
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "agent" | "assistant" => Role::Assistant,
        "tool" | "environment" => Role::Tool,
        other => {
            *found.unknown.entry(other.chars().take(32).collect()).or_default() += 1;
            Role::Meta
        }
    };
    let mut text =
        field::get(value, "message").or_else(|| field::get(value, "content")).map(text_of).unwrap_or_default();
    if role == Role::Meta && text.is_empty() {
        let excerpt: String = value.to_string().chars().take(200).collect();
        text = format!("{source}: {excerpt}");
    }
    let mut step = Step::new(role, text);
    if role == Role::Assistant {
        step.calls = field::list(value, "tool_calls").iter().map(call).collect();
        step.reasoning = field::text(value, "reasoning_content");
        step.cost = metric(value, "cost_usd").and_then(field::number).filter(|c| *c > 0.0);
        step.tokens = tokens(value);
        let typed: Vec<String> =
            step.calls.iter().map(|c| action::of_call(c).trim_end_matches('\n').to_owned()).collect();
        if let Some(answer) = terminus::answer(&step.text).filter(|_| typed.is_empty()) {
            step.action = Some(answer.action);
            step.thought = answer.thought;
        } else {
            step.action = Some(typed.join("\n")).filter(|_| !typed.is_empty()).or_else(|| action::in_text(&step.text));
        }
    }
    step
}

fn tokens(value: &Value) -> Option<Tokens> {
    let count = |key: &str| metric(value, key).and_then(field::count);
    let (input, output) = (count("prompt_tokens")?, count("completion_tokens")?);
    Some(Tokens { input, cached: count("cached_tokens"), output })
}

fn call(value: &Value) -> ToolCall {
    let first = |keys: &[&str]| keys.iter().find_map(|k| field::text(value, k));
    let plain = chat::tool_call(value);
    ToolCall {
        id: first(&["tool_call_id", "id"]).unwrap_or(plain.id),
        name: first(&["function_name", "name"]).unwrap_or(plain.name),
        arguments: plain.arguments,
    }
}

/// One tool step for each result; third-party files write a text or a list instead.
fn observed(value: &Value, found: &mut Found) -> Vec<Step> {
    let Some(observation) = field::get(value, "observation") else {
        return Vec::new();
    };
    let results = observation.get("results").unwrap_or(observation);
    match results {
        Value::Array(results) => results.iter().map(|r| result(r, found)).collect(),
        Value::Null => Vec::new(),
        one => vec![result(one, found)],
    }
}

fn result(value: &Value, found: &mut Found) -> Step {
    let content = if value.is_object() { value.get("content").unwrap_or(&Value::Null) } else { value };
    let mut lines: Vec<String> = Some(text_of(content)).filter(|t| !t.is_empty()).into_iter().collect();
    let refs = match field::get(value, "subagent_trajectory_ref") {
        Some(Value::Array(refs)) => refs.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    for one in refs {
        let first = |keys: &[&str]| keys.iter().find_map(|k| field::text(one, k));
        let reference = Reference { id: first(&["trajectory_id", "session_id"]), path: first(&["trajectory_path"]) };
        let name = reference.id.as_deref().or(reference.path.as_deref()).unwrap_or("without a name");
        let summary = field::str_at(one, &["extra", "summary"]).map(|s| format!(": {s}")).unwrap_or_default();
        lines.push(format!("[sub-agent trajectory {name}{summary}]"));
        found.refs.push(reference);
    }
    let mut step = Step::new(Role::Tool, lines.join("\n"));
    step.call_id = field::text(value, "source_call_id").or_else(|| field::text(value, "tool_call_id"));
    let extra = field::get(value, "extra").unwrap_or(&Value::Null);
    let beside = |key: &str| field::get(value, key).or_else(|| field::get(extra, key));
    step.exit_code = beside("exit_code").and_then(field::integer);
    step.is_error = beside("is_error").and_then(field::truth).or_else(|| step.exit_code.map(|c| c != 0));
    step
}

/// Text of a message: parts joined, images and sounds named by their files.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().map(part).filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n"),
        Value::Object(_) => part(content),
        other => chat::content_text(other),
    }
}

fn part(part: &Value) -> String {
    let kind = field::str(part, "type").unwrap_or("text");
    if !matches!(kind, "image" | "audio") {
        return chat::content_text(part);
    }
    let path = field::str_at(part, &["source", "path"]);
    path.map_or_else(|| format!("[{kind}]"), |path| format!("[{kind}: {path}]"))
}

fn metric<'a>(value: &'a Value<'a>, key: &str) -> Option<&'a Value<'a>> {
    field::at(value, &["metrics", key])
}

fn count(value: &Value, copied: bool, found: &mut Found) {
    let tokens = |key: &str| metric(value, key).and_then(field::count);
    let step = Usage {
        cost: metric(value, "cost_usd").and_then(field::number),
        tokens_in: tokens("prompt_tokens"),
        tokens_out: tokens("completion_tokens"),
        tokens_cached: tokens("cached_tokens"),
        api_calls: field::get(value, "llm_call_count").and_then(field::count),
    };
    let total = if copied { &mut found.copied } else { &mut found.fresh };
    *total = sum(*total, step);
    let lists = ["prompt_token_ids", "completion_token_ids", "logprobs"];
    found.token_lists += lists.iter().filter(|k| metric(value, k).is_some_and(Value::is_array)).count();
}

/// Both totals together; unknown only where both are.
pub fn sum(a: Usage, b: Usage) -> Usage {
    let whole = |a: Option<u64>, b: Option<u64>| a.map(|a| a.saturating_add(b.unwrap_or(0))).or(b);
    Usage {
        cost: a.cost.map(|a| a + b.cost.unwrap_or(0.0)).or(b.cost),
        tokens_in: whole(a.tokens_in, b.tokens_in),
        tokens_out: whole(a.tokens_out, b.tokens_out),
        tokens_cached: whole(a.tokens_cached, b.tokens_cached),
        api_calls: whole(a.api_calls, b.api_calls),
    }
}
