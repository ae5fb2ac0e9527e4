use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::json::{Value, json};
use super::super::load::{LoadedFile, load, load_bytes};
use crate::trajectory::{Dataset, Role, Tokens, Trajectory};

fn sample(format: &str) -> Dataset {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats").join(format);
    load(&[root], &|_| {})
}

fn only(data: &Dataset, format: &str) -> Arc<Trajectory> {
    assert_eq!(data.trajectories.len(), 1, "{}", data.files[0].reason);
    assert_eq!(data.trajectories[0].format, format);
    Arc::clone(&data.trajectories[0])
}

fn bytes(path: &str, text: &str) -> LoadedFile {
    load_bytes(Path::new(path), text.as_bytes().to_vec())
}

fn roles(t: &Trajectory) -> String {
    t.steps.iter().map(|s| format!("{:?}", s.role).chars().next().unwrap()).collect()
}

fn remarks(data: &Dataset) -> Vec<String> {
    data.files.iter().flat_map(|f| &f.diagnostics).map(|d| d.message.clone()).collect()
}

/// Prompt, cached, completion.
fn tokens(of: &crate::trajectory::Step) -> (u64, Option<u64>, u64) {
    of.tokens.map(|Tokens { input, cached, output }| (input, cached, output)).unwrap()
}

#[test]
fn amp_has_results_that_name_their_call() {
    let data = sample("amp");
    let t = only(&data, "amp");
    assert_eq!(roles(&t), "UATTM");
    assert_eq!((t.steps[1].reasoning.as_deref(), tokens(&t.steps[1])), (Some("read"), (15, Some(10), 3)));
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].tool_name.as_deref()), ("return 0", Some("Read")));
    assert_eq!((t.steps[3].exit_code, t.steps[3].is_error), (Some(1), Some(true)));
    assert_eq!((t.session.as_deref(), t.model.as_deref()), (Some("T-demo"), Some("model-a")));
    assert!(remarks(&data)[0].contains("`narrator`"));
}

#[test]
fn cline_calls_tools_by_tags_and_writes_costs_beside() {
    let data = sample("cline");
    let t = only(&data, "cline");
    assert_eq!(roles(&t), "UATAT");
    assert_eq!(t.steps[1].action.as_deref(), Some("pytest"));
    assert_eq!((t.steps[1].cost, tokens(&t.steps[1])), (Some(0.5), (16, Some(10), 2)));
    assert_eq!(t.steps[2].tool_name.as_deref(), Some("execute_command"));
    assert_eq!(t.steps[3].action.as_deref(), Some("read_file ledger.py"));
    assert_eq!((t.usage.cost, t.session.as_deref()), (Some(0.75), Some("17000")));
    assert!(t.steps[1].raw.file.as_deref().unwrap().ends_with("api_conversation_history.json"));
}

#[test]
fn cursor_writes_lines_or_text() {
    let t = only(&sample("cursor-jsonl"), "cursor-jsonl");
    assert_eq!(roles(&t), "UAM");
    assert_eq!((t.steps[0].text.as_str(), t.steps[1].action.as_deref()), ("Sum the rows.", Some("Read ledger.py")));
    let t = only(&sample("cursor-text"), "cursor-text");
    assert_eq!(roles(&t), "UATAU");
    let first = &t.steps[1];
    assert_eq!(
        (first.reasoning.as_deref(), first.action.as_deref()),
        (Some("read first\nand think"), Some("pytest\n  -q"))
    );
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].tool_name.as_deref()), ("1 failed", Some("Shell")));
    assert_eq!((t.steps[0].text.as_str(), t.steps[3].text.as_str()), ("Sum the rows.", "It fails."));
}

#[test]
fn exports_of_chats_are_paths_through_trees_and_lists() {
    let data = sample("chat-export");
    assert_eq!(data.trajectories.len(), 2);
    let gpt = &data.trajectories[0];
    assert_eq!(roles(gpt), "UATA");
    assert_eq!((gpt.steps[1].calls[0].name.as_str(), gpt.steps[1].action.as_deref()), ("python", Some("1+1")));
    assert_eq!((gpt.steps[2].tool_name.as_deref(), gpt.steps[3].text.as_str()), (Some("python"), "Two."));
    assert!(gpt.steps[3].raw.pointer.ends_with("/mapping/n~14"));
    assert_eq!((gpt.session.as_deref(), gpt.model.as_deref()), (Some("x-1"), Some("model-x")));
    let claude = &data.trajectories[1];
    assert_eq!((roles(claude).as_str(), claude.source.record), ("UAT", 1));
    assert_eq!((claude.steps[1].reasoning.as_deref(), claude.steps[2].text.as_str()), (Some("hm"), "2"));
}

#[test]
fn goose_wraps_calls_and_results() {
    let data = sample("goose");
    let t = only(&data, "goose");
    assert_eq!(roles(&t), "UATTMA");
    assert_eq!((t.steps[1].reasoning.as_deref(), t.steps[1].action.as_deref()), (Some("read"), Some("pytest")));
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].is_error), ("1 failed", Some(false)));
    assert_eq!((t.steps[3].text.as_str(), t.steps[3].is_error), ("no such tool", Some(true)));
    assert_eq!((t.steps[4].text.as_str(), t.steps[5].id.as_deref()), ("goose: compacted", Some("m5")));
    assert!(t.steps[5].text.starts_with("Done.\npart: {"));
    let export = json!({"id": "g", "accumulated_input_tokens": 9, "accumulated_output_tokens": 2, "conversation": [
        {"role": "user", "created": 1, "content": [{"type": "text", "text": "go"}]}]});
    let file = bytes("x.json", &export.to_string());
    let t = &file.trajectories[0];
    assert_eq!((t.format, t.session.as_deref(), t.usage.tokens_in), ("goose", Some("g"), Some(9)));
}

#[test]
fn gptme_knows_what_each_answer_cost() {
    let t = only(&sample("gptme"), "gptme");
    assert_eq!(roles(&t), "SUAT");
    assert_eq!((t.steps[2].action.as_deref(), tokens(&t.steps[2])), (Some("pytest"), (10, Some(7), 2)));
    assert_eq!((t.usage.cost, t.model.as_deref()), (Some(0.5), Some("model-a")));
}

#[test]
fn grok_builds_an_answer_of_reasoning_search_and_text() {
    let data = sample("grok-build");
    let t = only(&data, "grok-build");
    assert_eq!(roles(&t), "SMUATM");
    let answer = &t.steps[3];
    assert_eq!((answer.reasoning.as_deref(), answer.text.as_str(), answer.calls.len()), (Some("look"), "I read.", 2));
    assert_eq!(t.steps[4].tool_name.as_deref(), Some("read_file"));
    assert_eq!((t.session.as_deref(), t.model.as_deref()), (Some("g-1"), Some("model-g")));
    assert!(remarks(&data).contains(&"forked from session g-0".to_owned()));
    assert_eq!(roles(&only(&sample("grok-chat"), "grok-chat")), "SMUATM");
}

#[test]
fn kimi_sends_pieces() {
    let data = sample("kimi");
    let t = only(&data, "kimi");
    assert_eq!(roles(&t), "UATAMMUAT");
    let first = &t.steps[1];
    assert_eq!((first.text.as_str(), first.reasoning.as_deref()), ("I run.", Some("read")));
    assert_eq!((first.action.as_deref(), tokens(first)), (Some("pytest"), (13, Some(10), 4)));
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].is_error), ("1 failed", Some(true)));
    assert_eq!((t.steps[7].text.as_str(), t.steps[7].action.as_deref()), ("I read.", Some("ReadFile a.py")));
    assert_eq!((t.steps[8].text.as_str(), t.steps[8].tool_name.as_deref()), ("0", Some("ReadFile")));
    assert_eq!((t.model.as_deref(), t.usage.tokens_out), (Some("model-k"), Some(5)));
    assert!(remarks(&data).iter().any(|r| r.contains("`Comet`")));
}

#[test]
fn kiro_payloads_are_turns() {
    let data = sample("kiro");
    let t = only(&data, "kiro");
    assert_eq!(roles(&t), "UATAUM");
    assert_eq!((t.steps[1].action.as_deref(), t.steps[1].id.as_deref()), (Some("pytest"), Some("a1")));
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].is_error), ("1 failed\nend", Some(true)));
    assert!(remarks(&data)[0].contains("`Dream`"));
}

#[test]
fn posit_leaves_branches_out_that_are_not_in_use() {
    let data = sample("posit-assistant");
    assert_eq!(data.trajectories.len(), 2);
    let t = &data.trajectories[0];
    assert_eq!(roles(t), "UAT");
    assert_eq!((tokens(&t.steps[1]), t.steps[2].text.as_str()), ((8, Some(4), 2), "1,2"));
    assert_eq!((t.session.as_deref(), t.model.as_deref()), (Some("c-1"), Some("model-p")));
    let sub = &data.trajectories[1];
    assert_eq!((roles(sub).as_str(), sub.parent.as_deref()), ("AM", Some("c-1")));
    assert!(remarks(&data).contains(&"1 messages of abandoned branches are left out".to_owned()));
}

#[test]
fn qwenpaw_and_vibe_are_read() {
    let t = only(&sample("qwenpaw"), "qwenpaw");
    assert_eq!((roles(&t).as_str(), t.session.as_deref()), ("UAT", Some("main")));
    assert_eq!((t.steps[1].reasoning.as_deref(), t.steps[2].tool_name.as_deref()), (Some("read"), Some("read_file")));
    let data = sample("vibe");
    let t = only(&data, "vibe");
    assert_eq!((roles(&t).as_str(), t.session.as_deref(), t.usage.tokens_in), ("UAT", Some("v-1"), Some(10)));
    assert_eq!((t.steps[1].action.as_deref(), t.steps[2].role), (Some("read_file a.py"), Role::Tool));
    assert!(remarks(&data).contains(&"continues session v-0".to_owned()));
}

#[test]
fn what_only_looks_alike_is_not_taken() {
    let chat = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n";
    assert_eq!(bytes("x.jsonl", chat).report.format, Some("chat"));
    assert_eq!(bytes("notes.md", "# Notes\n\n#### user\n").report.format, None);
    assert_eq!(bytes("x.txt", "user: hello\nassistant: hi\n").report.format, None);
}

#[test]
fn a_database_is_named_with_what_to_do() {
    let file = load_bytes(Path::new("opencode.db"), b"SQLite format 3\0\x10\0".to_vec());
    assert_eq!(file.report.format, None);
    assert!(file.report.reason.starts_with("a SQLite database") && file.report.reason.contains("opencode export"));
}

#[test]
fn a_circle_of_parents_ends() {
    let node = |parent: &str| json!({"parent": parent, "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["x"]}}});
    let root = json!({"mapping": {"a": node("b"), "b": node("a")}, "current_node": "a"});
    let file = bytes("conversations.json", &root.to_string());
    assert_eq!((file.trajectories.len(), roles(&file.trajectories[0]).as_str()), (1, "UU"));
    let gone = json!({"mapping": {"a": node("nowhere")}, "current_node": "missing"});
    assert_eq!(bytes("c.json", &gone.to_string()).trajectories[0].steps.len(), 0);
}

#[test]
fn messages_of_chatgpt_that_say_nothing_are_left_out() {
    let node = |parent: &str, role: &str, content: Value| json!({"parent": parent, "message": {"author": {"role": role}, "content": content}});
    let root = json!({"current_node": "d", "mapping": {
        "a": node("", "system", json!({"content_type": "text", "parts": [""]})),
        "b": node("a", "user", json!({"content_type": "text", "parts": ["go", {"content_type": "image_asset_pointer", "text": "[picture]"}]})),
        "c": node("b", "assistant", json!({"content_type": "thoughts", "thoughts": [{"content": "hm"}, {"content": "so"}]})),
        "d": node("c", "assistant", json!({"content_type": "code", "text": "1+1"}))}});
    let file = bytes("c.json", &root.to_string());
    let t = &file.trajectories[0];
    assert_eq!((roles(t).as_str(), t.steps[0].text.as_str()), ("UAA", "go\n[picture]"));
    assert_eq!((t.steps[1].reasoning.as_deref(), t.steps[2].text.as_str()), (Some("hm\nso"), "1+1"));
}

#[test]
fn pieces_without_a_beginning_are_kept_where_they_can_be() {
    let lines = [
        json!({"timestamp": 1, "message": {"type": "ToolCallPart", "payload": {"arguments_part": "lost"}}}),
        json!({"timestamp": 2, "message": {"type": "ToolResult", "payload": {"tool_call_id": "x", "return_value": {"is_error": false, "output": [{"type": "text", "text": "r"}]}}}}),
        json!({"timestamp": 3, "message": {"type": "StatusUpdate", "payload": {"context_usage": 0.5}}}),
        json!({"timestamp": 4, "message": {"type": "ContentPart", "payload": {"type": "text", "text": "a"}}}),
        json!({"timestamp": 5, "message": {"type": "StepBegin", "payload": {"n": 2}}}),
        json!({"timestamp": 6, "message": {"type": "ContentPart", "payload": {"type": "text", "text": "b"}}}),
    ];
    let file = bytes("wire.jsonl", &lines.map(|l| l.to_string()).join("\n"));
    let t = &file.trajectories[0];
    assert_eq!((t.format, roles(t).as_str()), ("kimi", "TAA"), "a new step of the loop is a new answer");
    assert_eq!((t.steps[0].text.as_str(), t.steps[1].timestamp.as_deref()), ("r", Some("4")));
    assert_eq!(t.usage, crate::trajectory::Usage::default(), "no count is no count");
}

#[test]
fn results_of_goose_may_be_wrapped_once_more() {
    let message = |result: Value| json!({"role": "user", "created": 1, "content": [{"type": "toolResponse", "id": "t", "toolResult": result}]});
    let of = |result: Value| {
        let file = bytes("s.jsonl", &message(result).to_string());
        let step = file.trajectories[0].steps[0].clone();
        (step.text, step.is_error)
    };
    let content = json!({"status": "success", "value": {"content": [{"type": "text", "text": "x"}], "isError": true}});
    assert_eq!(of(content), ("x".to_owned(), Some(true)));
    let fine = json!({"status": "success", "value": {"content": [{"type": "text", "text": "x"}], "isError": false}});
    assert_eq!(of(fine), ("x".to_owned(), Some(false)));
    assert_eq!(of(json!({"status": "error", "error": "gone"})), ("gone".to_owned(), Some(true)));
    assert_eq!(of(json!({})).1, None);
}

#[test]
fn results_of_amp_in_all_their_forms() {
    let of = |run: Value| {
        let thread = json!({"v": 1, "id": "T-1", "created": 1, "messages": [
            {"role": "user", "content": [{"type": "tool_result", "toolUseID": "t", "run": run}]}]});
        let file = bytes("t.json", &thread.to_string());
        let step = file.trajectories[0].steps[0].clone();
        (step.text, step.is_error)
    };
    assert_eq!(of(json!({"status": "done", "result": "x"})), ("x".to_owned(), Some(false)));
    assert_eq!(of(json!({"status": "done", "result": [{"type": "text", "text": "y"}]})), ("y".to_owned(), Some(false)));
    assert_eq!(of(json!({"status": "error", "error": {"message": "no"}})), ("no".to_owned(), Some(true)));
    assert_eq!(of(json!({"status": "cancelled"})), ("cancelled".to_owned(), Some(true)));
    assert_eq!(of(json!({"status": "done", "result": {"a": 1}})), ("{\"a\":1}".to_owned(), Some(false)));
}

/// A folder of files made for one test.
fn folder(files: &[(&str, String)]) -> (tempfile::TempDir, Dataset) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let data = load(&[dir.path().to_path_buf()], &|_| {});
    (dir, data)
}

#[test]
fn folders_with_broken_members_still_open() {
    let history = "{\"type\":\"user\",\"content\":\"go\",\"prompt_index\":0}\n{\"type\":\"assistant\",\"content\":\"x\"}\n{\"type\":\"assist";
    let (_dir, data) =
        folder(&[("s/chat_history.jsonl", history.to_owned()), ("s/summary.json", "{broken".to_owned())]);
    let t = only(&data, "grok-build");
    assert_eq!((roles(&t).as_str(), &t.session), ("UA", &None));
    assert!(remarks(&data).iter().any(|r| r.contains("incomplete")), "{:?}", remarks(&data));

    let (_dir, data) =
        folder(&[("t/api_conversation_history.json", "[{\"role\":\"assistant\",\"content\":\"x\"}".to_owned())]);
    assert_eq!(only(&data, "cline").n_actions(), 1);

    let (_dir, data) = folder(&[
        ("v/messages.jsonl", "{\"role\":\"user\",\"content\":\"a\"}\n".to_owned()),
        ("v/meta.json", "[]".to_owned()),
    ]);
    assert!(data.trajectories.iter().all(|t| t.format != "vibe"), "a meta.json of something else");

    let (_dir, data) = folder(&[("p/lm-messages.jsonl", String::new())]);
    assert_eq!((data.trajectories.len(), data.files[0].format), (1, Some("posit-assistant")));
}

#[test]
fn two_tasks_of_cline_are_two_runs() {
    let one =
        |text: &str| json!([{"role": "user", "content": text}, {"role": "assistant", "content": "done"}]).to_string();
    let (_dir, data) = folder(&[
        ("tasks/1/api_conversation_history.json", one("a")),
        ("tasks/1/ui_messages.json", "[]".to_owned()),
        ("tasks/2/api_conversation_history.json", one("b")),
    ]);
    let texts: Vec<&str> = data.trajectories.iter().map(|t| t.steps[0].text.as_str()).collect();
    assert_eq!(texts, ["a", "b"]);
    let sessions: Vec<Option<&str>> = data.trajectories.iter().map(|t| t.session.as_deref()).collect();
    assert_eq!(sessions, [Some("1"), Some("2")]);
}
