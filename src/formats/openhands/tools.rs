//! Tool calls written from an event's arguments, for files that do not hold the model's own answer.

use super::super::field;
use super::super::json::{Map, Value};
use crate::trajectory::ToolCall;

/// The call that an action event stands for, by the tool names CodeAct gives them; `None` if the action is no call.
///
/// run → `execute_bash`, run_ipython → `execute_ipython_cell`, read and edit → `str_replace_editor` (an edit by line
/// range → `edit_file`), browse → `web_read`, browse_interactive → `browser`, call_tool_mcp → the tool it names.
pub fn call_of(action: &str, event: &Value) -> Option<ToolCall> {
    let args = field::get(event, "args").filter(|a| a.is_object()).unwrap_or(event);
    let take = |keys: &[&str]| members(args, keys);
    let (name, arguments) = match action {
        "run" => ("execute_bash", run(args)),
        "run_ipython" => ("execute_ipython_cell", take(&["code"])),
        "read" => ("str_replace_editor", read(args)),
        "edit" => edit(args),
        "write" => ("str_replace_editor", write(args)),
        "browse" => ("web_read", take(&["url"])),
        "browse_interactive" => ("browser", renamed(args, "browser_actions", "code")),
        "think" => ("think", take(&["thought"])),
        "finish" => ("finish", renamed(args, "final_thought", "message")),
        "reject" => ("reject", take(&["outputs"])),
        "delegate" => ("delegate", take(&["agent", "inputs"])),
        "task_tracking" => ("task_tracker", take(&["command", "task_list"])),
        "call_tool_mcp" => {
            let arguments = field::object(args, "arguments").cloned().unwrap_or_default();
            return Some(call(field::str(args, "name").unwrap_or("call_tool_mcp"), arguments));
        }
        _ => return None,
    };
    Some(call(name, arguments))
}

/// A call of an action this program does not know, by its own name.
pub fn unknown_call(action: &str, event: &Value) -> ToolCall {
    let mut arguments = field::object(event, "args").cloned().unwrap_or_default();
    arguments.remove("thought");
    call(action, arguments)
}

fn call(name: &str, arguments: Map<'_>) -> ToolCall {
    ToolCall { id: String::new(), name: name.to_owned(), arguments: Value::Object(arguments).to_string() }
}

/// Members that are there, not null and not empty text.
fn members<'a>(args: &'a Value<'a>, keys: &[&str]) -> Map<'a> {
    let given = keys.iter().filter_map(|k| Some(((*k).to_owned(), field::get(args, k)?.clone())));
    given.filter(|(_, v)| v.as_str() != Some("")).collect()
}

fn renamed<'a>(args: &'a Value<'a>, from: &str, to: &str) -> Map<'a> {
    field::get(args, from).filter(|v| v.as_str() != Some("")).map(|v| (to.to_owned(), v.clone())).into_iter().collect()
}

fn run<'a>(args: &'a Value<'a>) -> Map<'a> {
    let mut arguments = members(args, &["command"]);
    if field::get(args, "is_input").and_then(field::truth) == Some(true) {
        arguments.insert("is_input", Value::from("true"));
    }
    arguments
}

fn verb<'a>(verb: &'a str, mut rest: Map<'a>) -> Map<'a> {
    let mut arguments = Map::new();
    arguments.insert("command", Value::from(verb));
    arguments.append(&mut rest);
    arguments
}

fn read<'a>(args: &'a Value<'a>) -> Map<'a> {
    verb("view", members(args, &["path", "view_range"]))
}

fn write<'a>(args: &'a Value<'a>) -> Map<'a> {
    let mut rest = members(args, &["path"]);
    rest.extend(renamed(args, "content", "file_text"));
    verb("create", rest)
}

fn edit<'a>(args: &'a Value<'a>) -> (&'static str, Map<'a>) {
    match field::str(args, "command").filter(|c| !c.is_empty()) {
        Some(command) => {
            let keys = ["path", "file_text", "old_str", "new_str", "insert_line"];
            ("str_replace_editor", verb(command, members(args, &keys)))
        }
        None => ("edit_file", members(args, &["path", "content", "start", "end", "code"])),
    }
}
