//! Tool calls written from an event's arguments, for files that do not hold the model's own answer.

use serde_json::{Map, Value};

use super::super::field;
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

fn call(name: &str, arguments: Map<String, Value>) -> ToolCall {
    ToolCall { id: String::new(), name: name.to_owned(), arguments: Value::Object(arguments).to_string() }
}

/// Members that are there, not null and not empty text.
fn members(args: &Value, keys: &[&str]) -> Map<String, Value> {
    let given = keys.iter().filter_map(|k| Some(((*k).to_owned(), field::get(args, k)?.clone())));
    given.filter(|(_, v)| v.as_str() != Some("")).collect()
}

fn renamed(args: &Value, from: &str, to: &str) -> Map<String, Value> {
    field::get(args, from).filter(|v| v.as_str() != Some("")).map(|v| (to.to_owned(), v.clone())).into_iter().collect()
}

fn run(args: &Value) -> Map<String, Value> {
    let mut arguments = members(args, &["command"]);
    if field::get(args, "is_input").and_then(field::truth) == Some(true) {
        arguments.insert("is_input".to_owned(), Value::String("true".to_owned()));
    }
    arguments
}

fn verb(verb: &str, mut rest: Map<String, Value>) -> Map<String, Value> {
    let mut arguments = Map::new();
    arguments.insert("command".to_owned(), Value::String(verb.to_owned()));
    arguments.append(&mut rest);
    arguments
}

fn read(args: &Value) -> Map<String, Value> {
    verb("view", members(args, &["path", "view_range"]))
}

fn write(args: &Value) -> Map<String, Value> {
    let mut rest = members(args, &["path"]);
    rest.extend(renamed(args, "content", "file_text"));
    verb("create", rest)
}

fn edit(args: &Value) -> (&'static str, Map<String, Value>) {
    match field::str(args, "command").filter(|c| !c.is_empty()) {
        Some(command) => {
            let keys = ["path", "file_text", "old_str", "new_str", "insert_line"];
            ("str_replace_editor", verb(command, members(args, &keys)))
        }
        None => ("edit_file", members(args, &["path", "content", "start", "end", "code"])),
    }
}
