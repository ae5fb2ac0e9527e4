//! Short command texts for display, from native calls and from the dialects agents write inside their text.

use serde_json::{Map, Value};

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

fn of_arguments(name: &str, arguments: &Map<String, Value>) -> String {
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

fn lines(arguments: &Map<String, Value>) -> String {
    match arguments.get("view_range").and_then(Value::as_array).map(Vec::as_slice) {
        Some([from, to]) => format!(" [{from}, {to}]"),
        _ => String::new(),
    }
}

fn clip(text: &str) -> String {
    let mut short: String = text.chars().take(ARGUMENTS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The command inside an assistant's text in one of the dialects that are unmistakable: `<function=…>`,
/// `<tool_call>{…}`, a shell fence.
pub fn in_text(text: &str) -> Option<String> {
    let calls = function_tags(text);
    if !calls.is_empty() {
        return of_calls(&calls);
    }
    let calls = hermes_calls(text);
    if !calls.is_empty() {
        return of_calls(&calls);
    }
    let fence = fences(text).into_iter().rev().find(|f| is_shell(f.language))?;
    Some(fence.body.to_owned())
}

/// The last fenced block of any language.
pub fn last_fence(text: &str) -> Option<&str> {
    fences(text).last().map(|f| f.body)
}

struct Fence<'a> {
    language: &'a str,
    body: &'a str,
}

fn is_shell(language: &str) -> bool {
    matches!(language, "bash" | "sh" | "shell" | "console" | "mswea_bash_command" | "execute_bash")
}

/// Fenced blocks; one that is not closed does not count.
fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut found = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some(language) = trimmed.strip_prefix("```") {
            open = match open {
                Some((opened, start)) if language.is_empty() => {
                    let body = text.get(start..at).unwrap_or_default();
                    found.push(Fence { language: opened, body: body.strip_suffix('\n').unwrap_or(body) });
                    None
                }
                // A fence with a language inside an open one belongs to the body.
                Some(open) => Some(open),
                None => Some((language, at + line.len())),
            };
        }
        at += line.len();
    }
    found
}

/// `<function=NAME>` with `<parameter=KEY>VALUE</parameter>`, as OpenHands and SWE-smith emulate calls. The closing
/// tags may be missing.
fn function_tags(text: &str) -> Vec<ToolCall> {
    let mut calls = Vec::new();
    for part in text.split("<function=").skip(1) {
        let Some((name, rest)) = part.split_once('>') else {
            continue;
        };
        let body = rest.split("</function").next().unwrap_or(rest);
        let mut arguments = Map::new();
        for parameter in body.split("<parameter=").skip(1) {
            if let Some((key, value)) = parameter.split_once('>') {
                let value = value.split("</parameter>").next().unwrap_or(value);
                let value = value.strip_prefix('\n').unwrap_or(value);
                let value = value.strip_suffix('\n').unwrap_or(value);
                arguments.insert(key.trim().to_owned(), Value::String(value.to_owned()));
            }
        }
        let arguments = Value::Object(arguments).to_string();
        calls.push(ToolCall { id: String::new(), name: name.trim().to_owned(), arguments });
    }
    calls
}

/// `<tool_call>{"name": …, "arguments": …}</tool_call>`, as Hermes and Qwen write calls.
fn hermes_calls(text: &str) -> Vec<ToolCall> {
    let parts = text.split("<tool_call>").skip(1);
    let values = parts.filter_map(|p| super::json::strict_prefix(p.trim_start().as_bytes()).map(|(v, _)| v));
    values
        .filter_map(|v| {
            let name = v.get("name")?.as_str()?.to_owned();
            let arguments = v.get("arguments").map(super::field::json_text).unwrap_or_default();
            Some(ToolCall { id: String::new(), name, arguments })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> String {
        of_call(&ToolCall { id: String::new(), name: name.into(), arguments: arguments.into() })
    }

    #[test]
    fn calls_are_shown_by_what_they_do() {
        assert_eq!(call("bash", r#"{"command": "ls -la"}"#), "ls -la");
        assert_eq!(call("shell", r#"{"command": ["git", "diff"]}"#), "git diff");
        assert_eq!(
            call("str_replace_editor", r#"{"command": "view", "path": "/a.py", "view_range": [1, 20]}"#),
            "view /a.py [1, 20]"
        );
        assert_eq!(call("open", r#"{"path": "/a.py"}"#), "open /a.py");
        assert_eq!(call("execute_ipython_cell", r#"{"code": "1+1"}"#), "1+1");
        assert_eq!(call("finish", r#"{"message": "done"}"#), "finish");
        assert_eq!(call("search", r#"{"query": "x"}"#), r#"search {"query":"x"}"#);
        assert_eq!(call("bash", "not json"), "bash not json");
        assert_eq!(call("submit", ""), "submit");
        assert_eq!(call("x", r#"{"command": "a",}"#), "a");
    }

    #[test]
    fn commands_are_found_in_text() {
        assert_eq!(in_text("look\n```bash\nls\nls -a\n```\n").as_deref(), Some("ls\nls -a"));
        assert_eq!(in_text("```mswea_bash_command\nls\n```").as_deref(), Some("ls"));
        assert_eq!(in_text("```python\nx\n```"), None);
        assert_eq!(in_text("```bash\nunclosed"), None);
        let xml = "I look\n<function=str_replace_editor>\n<parameter=command>view</parameter>\n<parameter=path>/a</parameter>\n</function>";
        assert_eq!(in_text(xml).as_deref(), Some("view /a"));
        assert_eq!(in_text("<function=execute_bash>\n<parameter=command>\nls\n</parameter>").as_deref(), Some("ls"));
        let hermes = "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"pwd\"}}\n</tool_call>";
        assert_eq!(in_text(hermes).as_deref(), Some("pwd"));
        assert_eq!(last_fence("```\na\n```\n```\nb\n```"), Some("b"));
    }
}
