//! What must hold of every session, whatever is in it: one conversation written in the ways agents write it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test; clippy knows only the test functions")]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use trajscope::formats::{LoadedFile, load, load_bytes};
use trajscope::trajectory::{Role, Step, Trajectory};

/// An answer of the model: what it thinks, says and calls, and what each call returns.
#[derive(Debug, Clone)]
struct Answer {
    thought: Option<String>,
    text: Option<String>,
    /// Result of each call, and whether it failed.
    calls: Vec<(String, bool)>,
    tokens: (u64, u64),
    /// Do the results come in the order of the calls?
    in_order: bool,
}

/// A prompt and the answers to it.
#[derive(Debug, Clone)]
struct Turn {
    prompt: String,
    answers: Vec<Answer>,
}

fn word() -> impl Strategy<Value = String> {
    "[a-z][a-z \"\\\\{}<\n]{0,20}[a-z]"
}

fn answer() -> impl Strategy<Value = Answer> {
    let calls = prop::collection::vec((word(), any::<bool>()), 0..4);
    (prop::option::of(word()), prop::option::of(word()), calls, (1u64..500, 1u64..50), any::<bool>()).prop_map(
        |(thought, text, calls, tokens, in_order)| {
            // An answer of nothing is not written.
            let text = if calls.is_empty() { text.or_else(|| Some("done".to_owned())) } else { text };
            Answer { thought, text, calls, tokens, in_order }
        },
    )
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (word(), prop::collection::vec(answer(), 1..4)).prop_map(|(prompt, answers)| Turn { prompt, answers });
    prop::collection::vec(turn, 1..4)
}

/// Every answer with its number, behind its prompt if it is the first to it.
fn each(turns: &[Turn]) -> impl Iterator<Item = (usize, Option<&str>, &Answer)> {
    let all = turns.iter().flat_map(|turn| {
        turn.answers.iter().enumerate().map(|(i, answer)| (Some(turn.prompt.as_str()).filter(|_| i == 0), answer))
    });
    all.enumerate().map(|(n, (prompt, answer))| (n, prompt, answer))
}

fn call_id(n: usize, call: usize) -> String {
    format!("toolu_{n:08}_{call:08}_of_this_session")
}

/// Numbers of the calls in the order in which their results are written.
fn order(answer: &Answer) -> Vec<usize> {
    let mut order: Vec<usize> = (0..answer.calls.len()).collect();
    if !answer.in_order {
        order.reverse();
    }
    order
}

fn lines(records: &[Value]) -> String {
    records.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

fn read(text: &str) -> LoadedFile {
    load_bytes(Path::new("x/session.jsonl"), text.as_bytes().to_vec())
}

fn only(file: &LoadedFile, format: &str) -> Trajectory {
    assert_eq!(file.report.format, Some(format), "{}", file.report.reason);
    assert_eq!(file.trajectories.len(), 1);
    (*file.trajectories[0]).clone()
}

/// Claude Code: one record for each block, all of one answer under one id, in a chain.
fn claude(turns: &[Turn], session: &str) -> Vec<Value> {
    let mut records: Vec<Value> = Vec::new();
    let mut last: Option<String> = None;
    let push = |records: &mut Vec<Value>,
                last: &mut Option<String>,
                kind: &str,
                parent: Option<String>,
                message: Value| {
        let uuid = format!("00000000-0000-4000-8000-{:012}", records.len());
        records.push(json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": session, "isSidechain": false,
            "version": "2.1.0", "cwd": "/w", "timestamp": format!("2026-01-01T00:00:{:02}.{:03}Z", records.len() / 1000, records.len() % 1000),
            "message": message}));
        *last = Some(uuid);
    };
    for (n, prompt, answer) in each(turns) {
        if let Some(prompt) = prompt {
            let parent = last.clone();
            push(&mut records, &mut last, "user", parent, json!({"role": "user", "content": prompt}));
        }
        let mut blocks = Vec::new();
        blocks.extend(answer.thought.as_ref().map(|t| json!({"type": "thinking", "thinking": t, "signature": ""})));
        blocks.extend(answer.text.as_ref().map(|t| json!({"type": "text", "text": t})));
        for (i, _) in answer.calls.iter().enumerate() {
            blocks
                .push(json!({"type": "tool_use", "id": call_id(n, i), "name": format!("tool{i}"), "input": {"x": i}}));
        }
        let mut of_call = Vec::new();
        let count = blocks.len();
        for (i, block) in blocks.into_iter().enumerate() {
            let is_call = block["type"] == "tool_use";
            // The count grows from block to block; the last one is right.
            let output = if i + 1 == count { answer.tokens.1 } else { 1 };
            let message = json!({"id": format!("msg_{n:020}"), "type": "message", "role": "assistant", "model": "m",
                "content": [block], "usage": {"input_tokens": answer.tokens.0, "output_tokens": output}});
            let parent = last.clone();
            push(&mut records, &mut last, "assistant", parent, message);
            of_call.extend(last.clone().filter(|_| is_call));
        }
        for i in order(answer) {
            let (text, failed) = &answer.calls[i];
            let part =
                json!({"type": "tool_result", "tool_use_id": call_id(n, i), "content": text, "is_error": failed});
            push(&mut records, &mut last, "user", Some(of_call[i].clone()), json!({"role": "user", "content": [part]}));
        }
        // The next record hangs on the result of the last call, as it is written.
        if let Some(id) = of_call.last() {
            let at = records.iter().rposition(|r| r["parentUuid"] == json!(id) && r["type"] == "user").unwrap();
            last = records[at]["uuid"].as_str().map(str::to_owned);
        }
    }
    records
}

/// Codex: items, with the events that repeat them if asked for.
fn codex(turns: &[Turn], events: bool) -> Vec<Value> {
    let record =
        |kind: &str, payload: Value| json!({"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload});
    let item = |payload: Value| record("response_item", payload);
    let mut records = vec![record("session_meta", json!({"id": "s-1", "cwd": "/w", "cli_version": "1"}))];
    let (mut input, mut output) = (0, 0);
    for (n, prompt, answer) in each(turns) {
        if let Some(prompt) = prompt {
            records.push(item(
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}),
            ));
            records.extend(events.then(|| record("event_msg", json!({"type": "user_message", "message": prompt}))));
        }
        if let Some(thought) = &answer.thought {
            records.extend(events.then(|| record("event_msg", json!({"type": "agent_reasoning", "text": thought}))));
            records.push(item(
                json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}], "content": null}),
            ));
        }
        if let Some(text) = &answer.text {
            records.push(item(
                json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
            ));
            records.extend(events.then(|| record("event_msg", json!({"type": "agent_message", "message": text}))));
        }
        for (i, _) in answer.calls.iter().enumerate() {
            records.push(item(json!({"type": "function_call", "name": format!("tool{i}"), "arguments": json!({"x": i}).to_string(), "call_id": call_id(n, i)})));
        }
        input += answer.tokens.0;
        output += answer.tokens.1;
        let total = json!({"input_tokens": input, "output_tokens": output, "cached_input_tokens": 0});
        let last = json!({"input_tokens": answer.tokens.0, "output_tokens": answer.tokens.1});
        let counted = record(
            "event_msg",
            json!({"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": last}}),
        );
        records.push(counted.clone());
        for i in order(answer) {
            let (text, failed) = &answer.calls[i];
            let result = json!({"output": text, "metadata": {"exit_code": i64::from(*failed)}}).to_string();
            records.push(item(json!({"type": "function_call_output", "call_id": call_id(n, i), "output": result})));
        }
        // Said once more, as the program does.
        records.extend(events.then_some(counted));
    }
    records
}

/// pi: one record a message; version 1 has no ids.
fn pi(turns: &[Turn], version: u64) -> Vec<Value> {
    let mut records = vec![json!({"type": "session", "version": version, "id": "s-1", "timestamp": "t", "cwd": "/w"})];
    let mut parent = Value::Null;
    let mut push = |records: &mut Vec<Value>, message: Value| {
        let mut record = json!({"type": "message", "timestamp": "t", "message": message});
        if version > 1 {
            let id = json!(format!("e{}", records.len()));
            record["parentId"] = std::mem::replace(&mut parent, id.clone());
            record["id"] = id;
        }
        records.push(record);
    };
    for (n, prompt, answer) in each(turns) {
        if let Some(prompt) = prompt {
            push(&mut records, json!({"role": "user", "content": prompt}));
        }
        let mut parts = Vec::new();
        parts.extend(answer.thought.as_ref().map(|t| json!({"type": "thinking", "thinking": t})));
        parts.extend(answer.text.as_ref().map(|t| json!({"type": "text", "text": t})));
        for (i, _) in answer.calls.iter().enumerate() {
            parts.push(
                json!({"type": "toolCall", "id": call_id(n, i), "name": format!("tool{i}"), "arguments": {"x": i}}),
            );
        }
        let usage = json!({"input": answer.tokens.0, "output": answer.tokens.1, "cacheRead": 0, "cacheWrite": 0,
            "cost": {"total": 0.5}});
        push(&mut records, json!({"role": "assistant", "content": parts, "usage": usage, "stopReason": "stop"}));
        for i in order(answer) {
            let (text, failed) = &answer.calls[i];
            push(
                &mut records,
                json!({"role": "toolResult", "toolCallId": call_id(n, i), "toolName": format!("tool{i}"),
                "content": [{"type": "text", "text": text}], "isError": failed}),
            );
        }
    }
    records
}

/// Checks that a trajectory is the conversation: every answer once, every result behind the call it answers.
fn check(read: &Trajectory, turns: &[Turn]) {
    let shown: Vec<&Step> = read.steps.iter().filter(|s| s.role != Role::Meta).collect();
    let mut at = shown.into_iter();
    for (n, prompt, answer) in each(turns) {
        if let Some(prompt) = prompt {
            let step = at.next().unwrap();
            assert_eq!((step.role, step.text.as_str()), (Role::User, prompt));
        }
        let step = at.next().unwrap();
        assert_eq!(step.role, Role::Assistant, "answer {n}");
        assert_eq!(step.text, answer.text.clone().unwrap_or_default());
        assert_eq!(step.reasoning, answer.thought);
        assert_eq!(step.calls.len(), answer.calls.len());
        let mut results: Vec<(String, bool)> = Vec::new();
        let mut right: Vec<(String, bool)> = Vec::new();
        for (i, (text, failed)) in answer.calls.iter().enumerate() {
            let result = at.next().unwrap();
            let name = result.tool_name.clone().unwrap();
            assert!(step.calls.iter().any(|c| Some(&c.id) == result.call_id.as_ref() && c.name == name));
            results.push((format!("{name} {}", result.text), result.is_error.unwrap()));
            right.push((format!("tool{i} {text}"), *failed));
        }
        results.sort();
        right.sort();
        assert_eq!(results, right);
    }
    assert!(at.next().is_none(), "something is there twice");
}

/// Prompt and completion tokens of all answers.
fn tokens(turns: &[Turn]) -> (Option<u64>, Option<u64>) {
    let sums = each(turns).fold((0, 0), |(i, o), (_, _, answer)| (i + answer.tokens.0, o + answer.tokens.1));
    (Some(sums.0), Some(sums.1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn an_answer_in_many_records_is_one_action_and_counted_once(turns in turns()) {
        let t = only(&read(&lines(&claude(&turns, "s-1"))), "claude-code");
        check(&t, &turns);
        prop_assert_eq!((t.usage.tokens_in, t.usage.tokens_out), tokens(&turns));
        prop_assert_eq!(t.usage.cost, None);
    }

    #[test]
    fn records_of_other_kinds_change_nothing(turns in turns(), at in any::<prop::sample::Index>(), kind in "[a-z-]{3,12}") {
        let mut records = claude(&turns, "s-1");
        let place = at.index(records.len() + 1);
        records.insert(place, json!({"type": format!("x-{kind}"), "sessionId": "s-1", "payload": {"text": "?"}}));
        records.insert(place, json!({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}));
        let file = read(&lines(&records));
        check(&only(&file, "claude-code"), &turns);
        let said = |text: &str| file.report.diagnostics.iter().any(|d| d.message.contains(text));
        let unknown = format!("`x-{kind}`");
        prop_assert!(said(&unknown) && said("file-history-snapshot 1"));
    }

    #[test]
    fn going_back_leaves_only_the_branch_that_was_followed(turns in turns(), more in turns()) {
        let mut records = claude(&turns, "s-1");
        // The person goes back behind the first prompt's answers and asks something else.
        let first = records[0]["uuid"].clone();
        let mut branch = claude(&more, "s-1");
        for record in &mut branch {
            let old = record["uuid"].as_str().unwrap().to_owned();
            record["uuid"] = json!(old.replace("-8000-", "-9000-"));
            record["parentUuid"] = match record["parentUuid"].as_str() {
                Some(parent) => json!(parent.replace("-8000-", "-9000-")),
                None => first.clone(),
            };
            if let Some(id) = record["message"]["id"].as_str().map(|id| id.replace("msg_", "msg_again_")) {
                record["message"]["id"] = json!(id);
            }
        }
        records.extend(branch);
        let file = read(&lines(&records));
        let t = only(&file, "claude-code");
        let mut right = vec![Turn { prompt: turns[0].prompt.clone(), answers: Vec::new() }];
        right.extend(more);
        let (first, rest) = (&t.steps[0], Trajectory { steps: t.steps[1..].to_vec(), ..Trajectory::default() });
        prop_assert_eq!(&first.text, &right[0].prompt);
        check(&rest, &right[1..]);
        prop_assert!(file.report.diagnostics.iter().any(|d| d.code == "claude.abandoned"));
    }

    #[test]
    fn a_fork_is_counted_once_over_the_folder(turns in turns(), more in turns(), keep in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let mut both = turns.clone();
        both.extend(more.clone());
        let whole = claude(&both, "s-2");
        let old = claude(&turns, "s-1");
        // The original may have ended before the fork was made, or be the same up to there.
        let kept = old.len() - keep.index(old.len().min(2));
        fs::write(folder.path().join("a.jsonl"), lines(&old[..kept])).unwrap();
        fs::write(folder.path().join("b.jsonl"), lines(&whole)).unwrap();
        let data = load(&[folder.path().to_path_buf()], &|_| {});
        let actions: usize = data.trajectories.iter().map(|t| t.n_actions()).sum();
        prop_assert_eq!(actions, each(&both).count());
        let sum = data.trajectories.iter().filter_map(|t| t.usage.tokens_in).sum::<u64>();
        prop_assert_eq!(Some(sum), tokens(&both).0);
        let remarks = data.trajectories[1].diagnostics.iter().filter(|d| d.code == "session.continues").count();
        prop_assert_eq!(remarks, 1, "the second one is told to be a continuation");
    }

    #[test]
    fn a_session_cut_anywhere_keeps_what_is_whole(turns in turns(), cut in any::<prop::sample::Index>()) {
        let records = claude(&turns, "s-1");
        let text = lines(&records);
        let at = cut.index(text.len());
        let whole = text[..at].matches('\n').count();
        let file = load_bytes(Path::new("x.jsonl"), text.as_bytes()[..at].to_vec());
        if whole > 0 {
            let t = only(&file, "claude-code");
            let right = read(&lines(&records[..whole]));
            let texts = |t: &Trajectory| t.steps.iter().map(|s| s.text.clone()).collect::<Vec<_>>();
            let (got, right) = (texts(&t), texts(&right.trajectories[0]));
            prop_assert!(got.len() >= right.len(), "{} steps of {}", got.len(), right.len());
        }
    }

    #[test]
    fn events_that_repeat_items_change_nothing(turns in turns()) {
        let plain = only(&read(&lines(&codex(&turns, false))), "codex-rollout");
        let doubled = only(&read(&lines(&codex(&turns, true))), "codex-rollout");
        for t in [&plain, &doubled] {
            prop_assert_eq!((t.usage.tokens_in, t.usage.tokens_out), tokens(&turns));
        }
        let texts = |t: &Trajectory| t.steps.iter().map(|s| (s.role, s.text.clone(), s.calls.len())).collect::<Vec<_>>();
        prop_assert_eq!(texts(&plain), texts(&doubled));
        let calls: usize = plain.steps.iter().map(|s| s.calls.len()).sum();
        prop_assert_eq!(calls, each(&turns).map(|(_, _, a)| a.calls.len()).sum::<usize>());
    }

    #[test]
    fn a_tree_without_branches_is_a_line(turns in turns()) {
        let line = only(&read(&lines(&pi(&turns, 1))), "pi");
        let tree = only(&read(&lines(&pi(&turns, 3))), "pi");
        check(&line, &turns);
        check(&tree, &turns);
        prop_assert_eq!((tree.usage.tokens_in, tree.usage.tokens_out), tokens(&turns));
        let cost = 0.5 * each(&turns).count() as f64;
        prop_assert!((tree.usage.cost.unwrap() - cost).abs() < 1e-9);
    }
}
