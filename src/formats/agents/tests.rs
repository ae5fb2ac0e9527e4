use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

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
