//! Items of the Responses API, as Codex writes them, to steps.

use super::super::json::{Value, json};
use super::super::{action, chat, field, json as lenient, session};
use crate::trajectory::{Role, Step, ToolCall};

/// What one item is.
pub enum Item {
    /// A part of an answer: reasoning, text, a call.
    Part(Step),
    /// Anything that ends the answer: a result, a message of a person.
    Other(Step),
    /// Nothing for a reader.
    Bookkeeping,
    /// Not known.
    Unknown,
}

/// Reads an item.
pub fn read(item: &Value) -> Item {
    let kind = field::str(item, "type").unwrap_or(if item.get("role").is_some() { "message" } else { "" });
    let id = || field::text(item, "id").map(Into::into);
    match kind {
        "message" => {
            let text = field::get(item, "content").map(session::text_of).unwrap_or_default();
            match chat::role_of(item) {
                Role::Assistant => Item::Part(Step { id: id(), ..session::answer(text, None, Vec::new()) }),
                Role::User if is_context(&text) => Item::Other(Step { id: id(), ..Step::new(Role::Meta, text) }),
                role => Item::Other(Step { id: id(), ..Step::new(role, text) }),
            }
        }
        "reasoning" => {
            let parts = ["summary", "content"].map(|k| field::get(item, k).map(session::text_of).unwrap_or_default());
            let text = parts.into_iter().find(|t| !t.is_empty());
            Item::Part(session::answer(String::new(), text, Vec::new()))
        }
        "function_call"
        | "custom_tool_call"
        | "local_shell_call"
        | "web_search_call"
        | "tool_search_call"
        | "image_generation_call" => Item::Part(call(kind, item)),
        "function_call_output" | "custom_tool_call_output" | "tool_search_output" => Item::Other(output(item)),
        "compaction" | "compaction_summary" | "context_compaction" => {
            Item::Other(session::note("compaction", &field::text(item, "message").unwrap_or_default()))
        }
        "ghost_snapshot" => Item::Bookkeeping,
        _ => Item::Unknown,
    }
}

/// What the program tells the model about its surroundings, written as a person's message.
pub fn is_context(text: &str) -> bool {
    let starts = [
        "<environment_context>",
        "<user_instructions>",
        "<permissions instructions>",
        "<turn_aborted>",
        "<skill>",
        "<INSTRUCTIONS>",
        "# AGENTS.md instructions",
    ];
    let text = text.trim_start();
    starts.iter().any(|s| text.starts_with(s))
}

fn call(kind: &str, item: &Value) -> Step {
    let named = match kind {
        "local_shell_call" => "local_shell",
        "web_search_call" => "web_search",
        "tool_search_call" => "tool_search",
        "image_generation_call" => "image_generation",
        _ => "",
    };
    let arguments = ["arguments", "action"].iter().find_map(|k| field::get(item, k));
    // What a custom tool gets is any text: as a member it can be shown and read like the arguments of the others.
    let arguments = arguments.map(field::json_text);
    let arguments = arguments.or_else(|| Some(json!({"input": field::get(item, "input")?}).to_string()));
    let call = ToolCall {
        id: field::text(item, "call_id").or_else(|| field::text(item, "id")).unwrap_or_default(),
        name: field::text(item, "name").unwrap_or_else(|| named.to_owned()),
        arguments: arguments.unwrap_or_default(),
    };
    let id = Some(call.id.clone()).filter(|id| !id.is_empty()).map(Into::into);
    let action = shown(&call);
    Step { id, action: Some(action), ..session::answer(String::new(), None, vec![call]) }
}

/// What a call does: a patch by the files it touches, then the patch itself; a shell by its command.
pub fn shown(call: &ToolCall) -> String {
    let parsed = lenient::parse(call.arguments.as_bytes()).ok().map(|p| p.value);
    let inside =
        parsed.as_ref().and_then(|v| ["patch", "input"].iter().find_map(|k| field::str(v, k)).or_else(|| v.as_str()));
    let text = inside.unwrap_or(&call.arguments);
    if text.trim_start().starts_with("*** Begin Patch") {
        return format!("{} {}", call.name, text.trim());
    }
    if let Some(words) = parsed.as_ref().and_then(|v| v.get("command")).and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        // `bash -lc "…"` says no more than what it runs.
        return match words.as_slice() {
            [shell, flag, script] if flag.starts_with('-') && shell.ends_with("sh") => (*script).to_owned(),
            _ => words.join(" "),
        };
    }
    action::of_call(call)
}

fn output(item: &Value) -> Step {
    let output = field::get(item, "output").unwrap_or(&Value::Null);
    // Older versions write JSON inside the string: `{"output": …, "metadata": {"exit_code": …}}`.
    let inner = output.as_str().filter(|t| t.starts_with('{')).and_then(|t| lenient::parse(t.as_bytes()).ok());
    let inner = inner.map(|p| p.value).filter(|v| v.get("output").is_some());
    let given = inner.as_ref().unwrap_or(output);
    let body = given.get("output").or_else(|| given.get("content")).unwrap_or(given);
    let mut step = session::result(field::text(item, "call_id"), session::text_of(body), None);
    let code = field::at(given, &["metadata", "exit_code"]).and_then(field::integer);
    step.exit_code = code.or_else(|| session::exit_code_in(&step.text));
    let success = field::get(given, "success").and_then(field::truth);
    step.is_error = step.exit_code.map(|c| c != 0).or(success.map(|s| !s));
    step.id = step.call_id.as_ref().map(|id| format!("result {id}").into());
    step
}

/// The call that an item of `codex exec --json` stands for.
pub fn exec_call(id: &str, kind: &str, item: &Value) -> ToolCall {
    let (name, arguments) = match kind {
        "command_execution" => ("shell".to_owned(), json!({"command": item.get("command")})),
        "file_change" => ("apply_patch".to_owned(), json!({"changes": item.get("changes")})),
        "web_search" => ("web_search".to_owned(), json!({"query": item.get("query")})),
        "todo_list" => ("update_plan".to_owned(), json!({"items": item.get("items")})),
        "mcp_tool_call" => {
            let tool = field::str(item, "tool").unwrap_or("mcp");
            let name = field::str(item, "server").map_or(tool.to_owned(), |s| format!("{s}.{tool}"));
            (name, item.get("arguments").cloned().unwrap_or(Value::Null))
        }
        other => (other.to_owned(), item.clone()),
    };
    ToolCall { id: id.to_owned(), name, arguments: field::json_text(&arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(item: &Value) -> Step {
        let Item::Part(step) = read(item) else { unreachable!("{item}") };
        step
    }

    fn other(item: &Value) -> Step {
        let Item::Other(step) = read(item) else { unreachable!("{item}") };
        step
    }

    fn said(role: &str, text: &str) -> Value<'static> {
        json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})
    }

    #[test]
    fn roles_and_surroundings() {
        assert_eq!(other(&said("user", "go")).role, Role::User);
        assert_eq!(other(&said("developer", "rules")).role, Role::System);
        for text in
            ["<environment_context>\n<cwd>/w</cwd>", "# AGENTS.md instructions for /w", "<user_instructions>\nx"]
        {
            assert_eq!(other(&said("user", text)).role, Role::Meta, "{text}");
        }
        assert_eq!(part(&said("assistant", "done")).text, "done");
        let bare =
            json!({"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]});
        assert_eq!(other(&bare).text, "[image]");
    }

    #[test]
    fn results_in_all_their_forms() {
        let result = |output: Value| other(&json!({"type": "function_call_output", "call_id": "c", "output": output}));
        let of = |step: &Step| (step.text.clone(), step.exit_code, step.is_error);
        let older = json!({"output": "a", "metadata": {"exit_code": 2}}).to_string();
        assert_eq!(of(&result(json!(older))), ("a".to_owned(), Some(2), Some(true)));
        assert_eq!(of(&result(json!("Exit code: 0\nOutput:\nx"))).1, Some(0));
        assert_eq!(of(&result(json!("plain"))), ("plain".to_owned(), None, None));
        assert_eq!(of(&result(json!("{\"a\": 1}"))), ("{\"a\": 1}".to_owned(), None, None), "JSON of the tool itself");
        let items = json!([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:"}]);
        assert_eq!(of(&result(items)).0, "a\n[image]");
        let failed = json!({"content": "no", "success": false});
        assert_eq!(of(&result(failed)), ("no".to_owned(), None, Some(true)));
        assert_eq!(result(Value::Null).text, "");
        assert_eq!(result(json!("x")).id.as_deref(), Some("result c"));
    }

    #[test]
    fn calls_in_all_their_forms() {
        let name = |item: Value| {
            let step = part(&item);
            (step.calls[0].name.clone(), step.action.unwrap())
        };
        let shell =
            json!({"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls", "-a"]}});
        assert_eq!(name(shell), ("local_shell".to_owned(), "ls -a".to_owned()));
        let search = json!({"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "sum"}});
        let (named, action) = name(search);
        assert!(named == "web_search" && action.contains("sum"), "{action}");
        let object = json!({"type": "function_call", "name": "apply_patch", "call_id": "c",
            "arguments": {"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}});
        assert!(name(object).1.starts_with("apply_patch *** Begin Patch"));
        let custom =
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c", "input": "*** Begin Patch\n"});
        assert_eq!(part(&custom).calls[0].arguments, r#"{"input":"*** Begin Patch\n"}"#);
        let nothing = json!({"type": "function_call", "name": "wait", "call_id": "c"});
        assert_eq!((part(&nothing).calls[0].arguments.as_str(), name(nothing).1.as_str()), ("", "wait"));
    }

    #[test]
    fn reasoning_may_be_sealed() {
        let sealed = json!({"type": "reasoning", "summary": [], "content": null, "encrypted_content": "gAAA"});
        assert_eq!(part(&sealed).reasoning, None);
        let open = json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]});
        assert_eq!(part(&open).reasoning.as_deref(), Some("hm"));
        assert!(matches!(read(&json!({"type": "ghost_snapshot"})), Item::Bookkeeping));
        assert!(matches!(read(&json!({"type": "new"})), Item::Unknown));
        assert!(matches!(read(&json!(3)), Item::Unknown));
    }

    #[test]
    fn items_of_the_stream_stand_for_calls() {
        let call = |kind: &str, item: Value| {
            let call = exec_call("i", kind, &item);
            (call.name.clone(), shown(&call))
        };
        assert_eq!(call("command_execution", json!({"command": "ls"})), ("shell".to_owned(), "ls".to_owned()));
        assert_eq!(call("web_search", json!({"query": "q"})).0, "web_search");
        assert_eq!(call("mcp_tool_call", json!({"server": "s", "tool": "t"})).0, "s.t");
        assert_eq!(call("mcp_tool_call", json!({})).0, "mcp");
        assert_eq!(call("other", json!({"x": 1})).0, "other");
    }
}
