//! Calls between a model's special tokens, where a server did not take them out: Kimi, DeepSeek, Llama, Mistral, and
//! Harmony.

use super::super::json;
use super::super::json::Value;
use super::tags::{json_call, of_json};
use crate::trajectory::ToolCall;

/// The calls of whichever of these dialects the text holds.
pub fn calls(text: &str) -> Vec<ToolCall> {
    if !text.contains("<|") && !text.contains("<｜") && !text.contains("[TOOL_CALLS]") {
        return Vec::new();
    }
    [kimi, deepseek, harmony, llama, mistral].iter().map(|read| read(text)).find(|c| !c.is_empty()).unwrap_or_default()
}

fn named(name: &str, arguments: &str) -> Option<ToolCall> {
    let name = name.trim();
    if name.is_empty() || name.contains(['\n', ' ']) {
        return None;
    }
    Some(ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.trim().to_owned() })
}

/// `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`.
fn kimi(text: &str) -> Vec<ToolCall> {
    let parts = text.split("<|tool_call_begin|>").skip(1);
    let calls = parts.filter_map(|part| {
        let (id, rest) = part.split_once("<|tool_call_argument_begin|>")?;
        let name = id.trim().rsplit_once(':').map_or(id, |(name, _)| name);
        let arguments = rest.split("<|tool_call_end|>").next().unwrap_or(rest);
        named(name.trim().strip_prefix("functions.").unwrap_or(name), arguments)
    });
    calls.collect()
}

/// `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`; before 3.1 `function<｜tool▁sep｜>NAME`, a line end and
/// the arguments in a fence.
fn deepseek(text: &str) -> Vec<ToolCall> {
    let parts = text.split("<｜tool▁call▁begin｜>").skip(1);
    let calls = parts.filter_map(|part| {
        let body = part.split("<｜tool▁call▁end｜>").next().unwrap_or(part);
        let (first, rest) = body.split_once("<｜tool▁sep｜>")?;
        if first.trim() != "function" {
            return named(first, rest);
        }
        let (name, fenced) = rest.split_once('\n')?;
        let arguments = fenced.trim().trim_start_matches("```json").trim_end_matches("```");
        named(name, arguments)
    });
    calls.collect()
}

/// `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`.
fn harmony(text: &str) -> Vec<ToolCall> {
    let parts = text.split("to=functions.").skip(1);
    let calls = parts.filter_map(|part| {
        let (head, rest) = part.split_once("<|message|>")?;
        let name = head.split(['<', ' ', '\n']).next()?;
        let ends = ["<|call|>", "<|end|>", "<|start|>"];
        let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        named(name, rest.get(..end)?)
    });
    calls.collect()
}

/// `<|python_tag|>` with calls as JSON, or with code.
fn llama(text: &str) -> Vec<ToolCall> {
    let Some((_, rest)) = text.split_once("<|python_tag|>") else {
        return Vec::new();
    };
    let body = ["<|eom_id|>", "<|eot_id|>"].iter().fold(rest, |body, end| body.split(end).next().unwrap_or(body));
    if let Some(call) = json_call(body) {
        return vec![call];
    }
    let code = body.trim();
    if code.is_empty() {
        return Vec::new();
    }
    let arguments = serde_json::json!({"code": code}).to_string();
    vec![ToolCall { id: String::new(), name: "python".to_owned(), arguments }]
}

/// `[TOOL_CALLS][{"name": …, "arguments": {…}}]`.
fn mistral(text: &str) -> Vec<ToolCall> {
    let Some((_, rest)) = text.split_once("[TOOL_CALLS]") else {
        return Vec::new();
    };
    match json::strict_prefix(rest.trim_start().as_bytes()) {
        Some((Value::Array(calls), _)) => calls.iter().filter_map(of_json).collect(),
        _ => json_call(rest).into_iter().collect(),
    }
}
