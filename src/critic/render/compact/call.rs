//! What an assistant step does: its calls, whatever the syntax of the agent, reduced to a kind, a file and a size.

use serde_json::Value as Json;

use super::shell;
use crate::trajectory::Step;

/// Kind of an action; the discriminant is the row of [`super::words::KINDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Only text.
    Talk,
    /// A call of a thinking tool.
    Think,
    /// A plan or a list of places to change.
    Plan,
    /// Reads a file.
    View,
    /// Looks for files or text.
    Search,
    /// Changes a file.
    Edit,
    /// Writes a new file.
    Create,
    /// Removes files.
    Delete,
    /// Takes a change back.
    Undo,
    /// Runs tests.
    Test,
    /// Runs a program.
    Run,
    /// Installs or builds the environment.
    Install,
    /// Looks at the repository's history or state.
    Git,
    /// Says it is done.
    Submit,
    /// Gives up.
    Reject,
    /// Anything else.
    Other,
}

/// One call, understood as far as the rendering needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Kind.
    pub kind: Kind,
    /// File it is about, as written.
    pub path: Option<String>,
    /// Lines of the payload.
    pub lines: usize,
    /// The whole call, to find repetitions.
    pub raw: String,
    /// A view of a part of a file (line range, single symbol).
    pub partial: bool,
}

/// The calls of an assistant step, in order; empty for a step that only talks.
pub fn calls(step: &Step) -> Vec<Call> {
    if !step.calls.is_empty() {
        return step.calls.iter().map(|c| named(&c.name, &c.arguments)).collect();
    }
    let action = step.action.as_deref().map(str::trim).filter(|a| !a.is_empty());
    if let Some(action) = action {
        return vec![from_action(action)];
    }
    from_text(&step.text)
}

/// The call an extracted action holds: `name {json}`, `(name)` with YAML-like arguments, an edit block, or a command.
fn from_action(action: &str) -> Call {
    if let Some((name, arguments)) = tagged(action) {
        return named(&name, &arguments);
    }
    if let Some(rest) = action.strip_prefix('(')
        && let Some((name, arguments)) = rest.split_once(')')
        && is_name(name)
    {
        return named(name, arguments.trim_start());
    }
    if let Some((name, arguments)) = action.split_once('{')
        && is_name(name.trim())
        && !name.contains('\n')
    {
        return named(name.trim(), action.get(name.len()..).unwrap_or(arguments));
    }
    if let Some(edit) = edit_block(action) {
        return edit;
    }
    if action.starts_with(['[', '{']) {
        return call(Kind::Plan, action, None);
    }
    command(action)
}

/// Calls written inside the text of a step that names no action.
fn from_text(text: &str) -> Vec<Call> {
    if let Some((name, arguments)) = tagged(text) {
        return vec![named(&name, &arguments)];
    }
    if let Some(at) = text.find("tool_calls=[{'name': '") {
        let rest = text.get(at + "tool_calls=[{'name': '".len()..).unwrap_or("");
        let (name, arguments) = rest.split_once('\'').unwrap_or((rest, ""));
        return vec![named(name, arguments)];
    }
    if let Some(edit) = edit_block(text) {
        return vec![edit];
    }
    match last_fence(text) {
        Some(("" | "bash" | "sh" | "shell" | "console", body)) => vec![command(body)],
        _ => Vec::new(),
    }
}

/// `<function=NAME>…`, `<execute_tool>name(args)`, `<execute_bash>…`.
fn tagged(text: &str) -> Option<(String, String)> {
    if let Some(at) = text.find("<function=") {
        let rest = text.get(at + "<function=".len()..)?;
        let (name, arguments) = rest.split_once('>')?;
        return Some((name.to_owned(), arguments.to_owned()));
    }
    if let Some(at) = text.find("<execute_tool>") {
        let rest = text.get(at + "<execute_tool>".len()..)?.trim_start();
        let (name, arguments) = rest.split_once('(')?;
        return Some((name.to_owned(), arguments.to_owned()));
    }
    for tag in ["<execute_bash>", "<execute_ipython>", "<command>"] {
        if let Some(at) = text.find(tag) {
            return Some(("bash".to_owned(), text.get(at + tag.len()..)?.to_owned()));
        }
    }
    None
}

/// Search/replace blocks and patches in the text itself.
fn edit_block(text: &str) -> Option<Call> {
    let block = text.contains("<<<<<<< SEARCH") || text.contains("*** Begin Patch");
    block.then(|| call(Kind::Edit, text, shell::find_path(text)))
}

/// Language tag and body of the last fenced block.
fn last_fence(text: &str) -> Option<(&str, &str)> {
    let mut parts: Vec<&str> = text.split("```").collect();
    if parts.len() < 3 {
        return None;
    }
    // An open fence at the end has no body to run.
    if parts.len().is_multiple_of(2) {
        parts.pop();
    }
    let block = parts.get(parts.len().checked_sub(2)?)?;
    let (tag, body) = block.split_once('\n').unwrap_or(("", block));
    Some((tag.trim(), body))
}

fn is_name(name: &str) -> bool {
    (1..=60).contains(&name.len()) && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '))
}

fn call(kind: Kind, raw: &str, path: Option<String>) -> Call {
    Call { kind, path, lines: raw.lines().count(), raw: raw.trim().to_owned(), partial: false }
}

/// A shell command (or one of SWE-agent's commands, which look like one).
fn command(text: &str) -> Call {
    let text = text.trim();
    let inner = ["/bin/bash -lc ", "bash -lc ", "bash -c ", "/bin/sh -c "]
        .iter()
        .find_map(|p| text.strip_prefix(p))
        .map_or(text, |rest| rest.trim_matches(['\'', '"']));
    let shell::Command { kind, path, partial } = shell::classify(inner);
    Call { partial, ..call(kind, text, path) }
}

/// A call by name.
fn named(name: &str, arguments: &str) -> Call {
    let lower = name.to_ascii_lowercase();
    let json: Option<Json> = serde_json::from_str(arguments.trim()).ok();
    if let Some(inner) = json.as_ref().and_then(|j| j.get("tool")).and_then(Json::as_str)
        && let Some(given) = json.as_ref().and_then(|j| j.get("arguments"))
    {
        return named(inner, &given.to_string());
    }
    if is_shell(&lower)
        && let Some(text) = argument(json.as_ref(), arguments, &["command", "cmd", "code", "input"])
    {
        return command(&text);
    }
    let sub = argument(json.as_ref(), arguments, &["command"]);
    let kind = sub.as_deref().and_then(editor_command).unwrap_or_else(|| kind_of_name(&lower));
    let path =
        argument(json.as_ref(), arguments, &["path", "file_path", "relative_path", "file", "filename", "target"])
            .filter(|p| p.len() < 200)
            .or_else(|| shell::find_path(arguments));
    let text = argument(json.as_ref(), arguments, &PAYLOADS);
    let lines = text.as_deref().unwrap_or(arguments).lines().count();
    let partial = ["view_range", "start_line", "span", "pattern", "symbol"].iter().any(|k| arguments.contains(k));
    Call { kind, path, lines, raw: format!("{name} {}", arguments.trim()), partial }
}

/// Arguments that hold the new text of an edit.
const PAYLOADS: [&str; 8] =
    ["file_text", "new_str", "new_text", "content", "replacement_code", "with", "code", "instructions"];

fn is_shell(lower: &str) -> bool {
    let last = lower.rsplit([' ', '.']).next().unwrap_or(lower);
    matches!(last, "bash" | "execute_bash" | "shell" | "run_command" | "terminal" | "exec" | "execute" | "cmd")
        || matches!(last, "run_shell_command" | "local_shell" | "exec_command" | "execute_command" | "run_bash")
        || matches!(last, "execute_ipython_cell" | "run_ipython" | "python" | "powershell")
}

/// One string argument: from JSON, from `<parameter=key>`, or from `key: value` lines up to the next key.
fn argument(json: Option<&Json>, raw: &str, keys: &[&str]) -> Option<String> {
    if let Some(Json::Object(map)) = json {
        return keys.iter().find_map(|k| map.get(*k)).map(|v| match v {
            Json::String(s) => s.clone(),
            Json::Array(parts) => parts.iter().filter_map(Json::as_str).next_back().unwrap_or("").to_owned(),
            other => other.to_string(),
        });
    }
    keys.iter().find_map(|key| {
        let tag = format!("<parameter={key}>");
        if let Some(at) = raw.find(&tag) {
            let rest = raw.get(at + tag.len()..)?;
            return Some(rest.split("</parameter>").next().unwrap_or(rest).trim().to_owned());
        }
        let head = format!("{key}: ");
        let at = if raw.starts_with(&head) { 0 } else { raw.find(&format!("\n{head}"))? + 1 };
        let rest = raw.get(at + head.len()..)?;
        Some(rest.split("\ntimeout:").next().unwrap_or(rest).trim().to_owned())
    })
}

/// The sub-command of an editor tool.
fn editor_command(sub: &str) -> Option<Kind> {
    Some(match sub {
        "view" => Kind::View,
        "create" => Kind::Create,
        "str_replace" | "insert" | "edit" => Kind::Edit,
        "undo_edit" => Kind::Undo,
        _ => return None,
    })
}

/// Kind by the words in a tool's name; the first rule that fits decides.
fn kind_of_name(lower: &str) -> Kind {
    const RULES: [(&[&str], Kind); 14] = [
        (&["reject"], Kind::Reject),
        (&["request_for_change", "requestcodechange", "plantocode", "request_code"], Kind::Plan),
        (&["finish", "submit", "complete", "attempt_completion"], Kind::Submit),
        (&["think", "thought"], Kind::Think),
        (&["undo", "revert"], Kind::Undo),
        (&["delete", "remove"], Kind::Delete),
        (&["test"], Kind::Test),
        (&["create", "write_file", "writefile"], Kind::Create),
        (&["search_replace", "replace", "edit", "insert", "apply", "patch", "file_change", "write"], Kind::Edit),
        (&["search", "find", "grep", "glob", "query", "list", "expand_folder", "semantic", "retriev"], Kind::Search),
        (&["view", "open", "read", "get_", "get-", "inspect", "identify", "cat", "expand", "show"], Kind::View),
        (&["plan", "todo", "decide", "clarif", "specify", "locali", "task"], Kind::Plan),
        (&["git", "diff"], Kind::Git),
        (&["run", "exec", "bash", "shell"], Kind::Run),
    ];
    RULES.iter().find(|(words, _)| words.iter().any(|w| lower.contains(w))).map_or(Kind::Other, |(_, kind)| *kind)
}
