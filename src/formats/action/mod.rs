//! Short command texts for display, from native calls and from the dialects agents write inside their text.

mod fence;
mod tags;
mod tokens;

use super::json::{Map, Value};

pub use self::fence::last_fence;

use crate::trajectory::ToolCall;

/// Longest argument text shown of a call whose tool is not known.
const ARGUMENTS: usize = 200;

/// What a step's native calls do, one a line; `None` without calls.
pub fn of_calls(calls: &[ToolCall]) -> Option<String> {
    if calls.is_empty() {
        return None;
    }
    Some(calls.iter().map(of_call).collect::<Vec<_>>().join("\n"))
}

/// What one call does: the command of a shell, the verb and path of an editor, else name and arguments.
pub fn of_call(call: &ToolCall) -> String {
    match super::json::parse(call.arguments.as_bytes()).map(|p| p.value) {
        Ok(Value::Object(arguments)) => of_arguments(&call.name, &arguments),
        _ if call.arguments.trim().is_empty() => call.name.clone(),
        _ => format!("{} {}", call.name, clip(&call.arguments)).trim().to_owned(),
    }
}

fn of_arguments(name: &str, arguments: &Map<'_>) -> String {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let path = text("path").or_else(|| text("file_path")).or_else(|| text("filename")).or_else(|| text("file"));
    if let (Some(verb), Some(path)) = (text("command"), path) {
        return format!("{verb} {path}{}", lines(arguments));
    }
    let shell = text("command").or_else(|| text("cmd")).or_else(|| text("code")).or_else(|| text("keystrokes"));
    if let Some(command) = shell {
        return command.to_owned();
    }
    if let Some(Value::Array(words)) = arguments.get("command") {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return words.join(" ");
    }
    if let Some(path) = path {
        return format!("{name} {path}{}", lines(arguments));
    }
    if arguments.is_empty() || matches!(name, "think" | "finish" | "submit") {
        return name.to_owned();
    }
    format!("{name} {}", clip(&Value::Object(arguments.clone()).to_string()))
}

fn lines(arguments: &Map<'_>) -> String {
    match arguments.get("view_range").and_then(Value::as_array).map(Vec::as_slice) {
        Some([from, to]) => format!(" [{from}, {to}]"),
        _ => String::new(),
    }
}

fn clip(text: &str) -> String {
    super::field::clipped(text, ARGUMENTS)
}

/// The command inside an assistant's text in one of the dialects that are unmistakable: calls in tags or between a
/// model's special tokens, Terminus' JSON and XML, a shell fence, SWE-agent's `<command>`, Codex' patches.
pub fn in_text(text: &str) -> Option<String> {
    // What a model merely thought of is no command, unless it never stopped thinking.
    let said = text.rsplit_once("</think>").map_or(text, |(_, said)| said);
    found(said).or_else(|| if said.len() < text.len() { found(text) } else { None })
}

fn found(text: &str) -> Option<String> {
    if text.contains('<') || text.contains("[TOOL_CALLS]") {
        let dialects = [tags::functions, tags::tool_calls, tags::invokes, tokens::calls];
        if let Some(calls) = dialects.iter().map(|read| read(text)).find(|calls| !calls.is_empty()) {
            return of_calls(&calls);
        }
    }
    super::terminus::answer(text)
        .map(|answer| answer.action)
        .or_else(|| fence::last_shell(text).map(str::to_owned))
        .or_else(|| tags::command(text).map(str::to_owned))
        .or_else(|| patch(text).map(|patch| format!("apply_patch {patch}")))
        // SWE-agent's own prompt asks for this heading and a fence without a language.
        .or_else(|| last_fence(text).filter(|_| text.trim_start().starts_with("DISCUSSION")).map(str::to_owned))
}

/// A patch in the form of Codex, from its first to its last line.
fn patch(text: &str) -> Option<&str> {
    const END: &str = "*** End Patch";
    let from = text.find("*** Begin Patch\n")?;
    let rest = text.get(from..)?;
    // Generation may stop before the last line.
    let to = rest.find(END).map_or(rest.len(), |at| at + END.len());
    rest.get(..to).map(str::trim_end)
}

#[cfg(test)]
mod tests;
