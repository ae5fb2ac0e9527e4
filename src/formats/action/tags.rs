//! Calls in tags: OpenHands and what copied it, Hermes and Qwen, GLM, the tags of Anthropic, SWE-agent's XML.

use super::super::json::{Map, Value};
use super::super::{field, json};
use crate::trajectory::ToolCall;

/// `<function=NAME>` with `<parameter=KEY>VALUE</parameter>`, as OpenHands, SWE-smith, R2E-Gym and Qwen's coder write
/// calls. Values are not escaped, so one ends where the next parameter begins; the closing tags may be missing.
pub fn functions(text: &str) -> Vec<ToolCall> {
    let parts = text.split("<function=").skip(1);
    let calls = parts.filter_map(|part| {
        let (name, rest) = part.split_once('>')?;
        let body = before_last(rest, "</function");
        let values = body.split("<parameter=").skip(1).filter_map(|parameter| {
            let (key, value) = parameter.split_once('>')?;
            Some((key, before_last(value, "</parameter")))
        });
        call(name, values)
    });
    calls.collect()
}

/// `<invoke name="NAME">` with `<parameter name="KEY">VALUE</parameter>`.
pub fn invokes(text: &str) -> Vec<ToolCall> {
    let parts = text.split("<invoke name=\"").skip(1);
    let calls = parts.filter_map(|part| {
        let (name, rest) = part.split_once("\">")?;
        let body = before_last(rest, "</invoke");
        let values = body.split("<parameter name=\"").skip(1).filter_map(|parameter| {
            let (key, value) = parameter.split_once('>')?;
            // Some add `string="true"` behind the name.
            Some((key.split('"').next().unwrap_or(key), before_last(value, "</parameter")))
        });
        call(name, values)
    });
    calls.collect()
}

/// `<tool_call>` with a JSON object (Hermes, Qwen), or with a name and pairs of `<arg_key>` and `<arg_value>` (GLM).
pub fn tool_calls(text: &str) -> Vec<ToolCall> {
    let parts = text.split("<tool_call>").skip(1);
    parts.filter_map(|part| json_call(part).or_else(|| keyed_call(part))).collect()
}

fn keyed_call(part: &str) -> Option<ToolCall> {
    let body = part.split("</tool_call>").next().unwrap_or(part);
    let (name, _) = body.split_once("<arg_key>").unwrap_or((body, ""));
    let pairs = body.split("<arg_key>").skip(1).filter_map(|pair| {
        let (key, rest) = pair.split_once("</arg_key>")?;
        let (_, value) = rest.split_once("<arg_value>")?;
        Some((key, before_last(value, "</arg_value>")))
    });
    call(name, pairs)
}

/// A call as a JSON object at the beginning of `text`: broken JSON is repaired, what follows does not matter.
pub fn json_call(text: &str) -> Option<ToolCall> {
    let text = text.trim_start();
    if !text.starts_with('{') {
        return None;
    }
    let strict = json::strict_prefix(text.as_bytes()).map(|(v, _)| v);
    let value = strict.or_else(|| json::repair_prefix(text.as_bytes()).ok().map(|p| p.value))?;
    of_json(&value)
}

/// A call as a JSON object.
pub fn of_json(value: &Value) -> Option<ToolCall> {
    let name = field::text(value, "name")?;
    let arguments = ["arguments", "parameters"].iter().find_map(|k| field::get(value, k));
    Some(ToolCall { id: String::new(), name, arguments: arguments.map(field::json_text).unwrap_or_default() })
}

/// The last `<command>` of SWE-agent's XML form.
pub fn command(text: &str) -> Option<&str> {
    let (_, rest) = text.rsplit_once("<command>")?;
    Some(rest.split_once("</command>")?.0.trim_matches('\n')).filter(|c| !c.trim().is_empty())
}

/// A call of a name and texts; `None` if the name is none.
fn call<'a>(name: &str, values: impl Iterator<Item = (&'a str, &'a str)>) -> Option<ToolCall> {
    let name = name.trim();
    let named = !name.is_empty() && name.len() <= 128 && !name.contains(['\n', '<', ' ']);
    if !named {
        return None;
    }
    let trimmed = |value: &'a str| {
        let value = value.strip_prefix('\n').unwrap_or(value);
        value.strip_suffix('\n').unwrap_or(value)
    };
    let arguments: Map<'_> = values.map(|(key, value)| (key.trim(), Value::from(trimmed(value)))).collect();
    Some(ToolCall { id: String::new(), name: name.to_owned(), arguments: Value::Object(arguments).to_string() })
}

/// Everything before the last closing tag; all of it where there is none.
fn before_last<'a>(text: &'a str, tag: &str) -> &'a str {
    text.rsplit_once(tag).map_or(text, |(before, _)| before)
}
