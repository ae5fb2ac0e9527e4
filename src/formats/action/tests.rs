//! Commands from calls and from every dialect of text.

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

fn calls(text: &str) -> Vec<(String, String)> {
    let found = [tags::functions(text), tags::tool_calls(text), tags::invokes(text), tokens::calls(text)];
    let first = found.into_iter().find(|c| !c.is_empty()).unwrap_or_default();
    first.into_iter().map(|c| (c.name, c.arguments)).collect()
}

fn shell(command: &str) -> Vec<(String, String)> {
    vec![("bash".to_owned(), serde_json::json!({"command": command}).to_string())]
}

#[test]
fn every_dialect_of_calls_is_read() {
    let argued = r#"{"command":"ls"}"#;
    let dialects = [
        "<function=bash>\n<parameter=command>ls</parameter>\n</function>".to_owned(),
        "<function=bash>\n<parameter=command>\nls".to_owned(),
        "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>".to_owned(),
        format!("<tool_call>\n{{\"name\": \"bash\", \"arguments\": {argued}}}\n</tool_call>"),
        format!("<tool_call>{{\"name\": \"bash\", \"arguments\": {argued},}}"),
        "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>".to_owned(),
        "<invoke name=\"bash\">\n<parameter name=\"command\">ls</parameter>\n</invoke>".to_owned(),
        "<｜DSML｜><invoke name=\"bash\"><parameter name=\"command\" string=\"true\">ls</parameter></invoke>"
            .to_owned(),
        format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{argued}<|tool_call_end|><|tool_calls_section_end|>"
        ),
        format!("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{argued}<｜tool▁call▁end｜>"),
        format!("<｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{argued}\n```<｜tool▁call▁end｜>"),
        format!("<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{argued}<|call|>"),
        format!("<|python_tag|>{{\"name\": \"bash\", \"parameters\": {argued}}}<|eom_id|>"),
        format!("[TOOL_CALLS][{{\"name\": \"bash\", \"arguments\": {argued}}}]"),
    ];
    for text in dialects {
        assert_eq!(calls(&text), shell("ls"), "{text}");
        assert_eq!(in_text(&format!("I look.\n{text}")).as_deref(), Some("ls"), "{text}");
    }
    assert_eq!(in_text("<|python_tag|>print(1)").as_deref(), Some("print(1)"));
}

#[test]
fn raw_values_may_hold_what_looks_like_tags() {
    let text = "<function=edit>\n<parameter=path>/a</parameter>\n<parameter=new_str>x = '</parameter>'\ny = '</function>'</parameter>\n</function>";
    let expected = serde_json::json!({"path": "/a", "new_str": "x = '</parameter>'\ny = '</function>'"}).to_string();
    assert_eq!(calls(text), [("edit".to_owned(), expected)]);
    let two = "<function=a>\n</function>\n<function=b>\n<parameter=k>v</parameter>\n</function>";
    assert_eq!(in_text(two).as_deref(), Some("a\nb {\"k\":\"v\"}"));
}

#[test]
fn commands_without_calls_are_read() {
    assert_eq!(in_text("<discussion>x</discussion>\n<command>\nls -F\n</command>").as_deref(), Some("ls -F"));
    assert_eq!(
        in_text("DISCUSSION\nLook.\n```\nedit 1:2\nx\nend_of_edit\n```").as_deref(),
        Some("edit 1:2\nx\nend_of_edit")
    );
    assert_eq!(in_text("Look.\n```\nls\n```"), None, "any text may hold a fence");
    let patch = "*** Begin Patch\n*** Update File: a.py\n-x\n+y\n*** End Patch";
    assert_eq!(in_text(&format!("So:\n{patch}\nDone.")), Some(format!("apply_patch {patch}")));
    let terminus = r#"{"analysis": "A", "plan": "P", "commands": [{"keystrokes": "ls\n"}]}"#;
    assert_eq!(in_text(terminus).as_deref(), Some("ls"));
}

#[test]
fn what_was_only_thought_of_is_no_command() {
    assert_eq!(in_text("<think>```bash\nrm -rf /\n```</think>\n```bash\nls\n```").as_deref(), Some("ls"));
    assert_eq!(in_text("<think>\n```bash\nls\n```").as_deref(), Some("ls"), "it never stopped thinking");
    for plain in [
        "a < b and <|im_start|>",
        "<tool_call>",
        "<function=>",
        "<invoke name=\"",
        "<command></command>",
        "<tool_call>two words</tool_call>",
    ] {
        assert_eq!(in_text(plain), None, "{plain}");
    }
}
