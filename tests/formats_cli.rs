//! Sessions of coding agents in the corpus: what is read from each, against what is known about it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test; clippy knows only the test functions themselves"
)]

use std::collections::BTreeMap;
use std::path::Path;

use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Dataset, Outcome, Role, Trajectory};

struct Known {
    file: String,
    records: Option<usize>,
    instance: String,
}

fn manifest(shared: &Path, folder: &str) -> Vec<Known> {
    let text = std::fs::read_to_string(shared.join("corpus/MANIFEST.tsv")).unwrap();
    let head: Vec<&str> = text.lines().next().unwrap().split('\t').collect();
    let column = |name: &str| head.iter().position(|h| *h == name).unwrap();
    let (steps, instance) = (column("steps"), column("instance_id"));
    let lines = text.lines().filter(|l| l.starts_with(&format!("{folder}/")));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            Known {
                file: cells[0].to_owned(),
                records: cells[steps].parse().ok(),
                instance: cells[instance].to_owned(),
            }
        })
        .collect()
}

fn open(folder: &str) -> Option<(Vec<Known>, Dataset)> {
    let shared = shared()?;
    let data = load(&[shared.join("corpus").join(folder)], &|_| {});
    Some((manifest(&shared, folder), data))
}

fn of<'a>(data: &'a Dataset, file: &str) -> Vec<&'a Trajectory> {
    data.trajectories.iter().filter(|t| t.source.path.ends_with(file)).map(|t| &**t).collect()
}

fn format_of(data: &Dataset, file: &str) -> Option<&'static str> {
    data.files.iter().find(|f| f.path.ends_with(file)).unwrap_or_else(|| panic!("{file} was not looked at")).format
}

/// Records of a file that hold JSON, as Python reads them, by what `name` makes of each.
fn records(shared: &Path, file: &str, name: impl Fn(&serde_json::Value) -> String) -> BTreeMap<String, usize> {
    let text = std::fs::read(shared.join("corpus").join(file)).unwrap();
    let mut counts = BTreeMap::new();
    for line in String::from_utf8_lossy(&text).lines() {
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(line) {
            *counts.entry(name(&value)).or_insert(0) += 1;
        }
    }
    counts
}

#[test]
fn claude_code_sessions() {
    let Some((known, data)) = open("claude-code") else { return };
    for k in &known {
        assert_eq!(format_of(&data, &k.file), Some("claude-code"), "{}", k.file);
        let read = of(&data, &k.file);
        assert!(!read.is_empty(), "{}", k.file);
        for t in &read {
            // The manifest knows neither patches nor labels of sessions, and there are none.
            assert_eq!((&t.patch, t.outcome), (&None, Outcome::Unknown), "{}", k.file);
        }
        if !k.instance.is_empty() {
            assert_eq!(read[0].instance_id.as_deref(), Some(k.instance.as_str()), "{}", k.file);
        }
        // The manifest counts records, and one answer is several of them: there are at most as many steps.
        let steps: usize = read.iter().map(|t| t.steps.len()).sum();
        assert!(k.records.is_none_or(|n| steps <= n + read.len()), "{}: {steps} of {:?}", k.file, k.records);
    }
}

#[test]
fn claude_code_answers_are_counted_as_the_api_gave_them() {
    let (Some(shared), Some((known, data))) = (shared(), open("claude-code")) else { return };
    for k in known.iter().filter(|k| k.file.contains("swe-context-bench/") || k.file.contains("sample-project/")) {
        let mut answers = records(&shared, &k.file, |r| match r["type"].as_str() {
            Some("assistant") => r["message"]["id"].to_string(),
            _ => String::new(),
        });
        answers.remove("");
        let read = of(&data, &k.file);
        let actions: usize = read.iter().map(|t| t.n_actions()).sum();
        // One session asked again after its first answer broke off: that answer is an abandoned branch.
        let abandoned = usize::from(k.file.ends_with("0c18eb7c.jsonl"));
        assert_eq!(actions + abandoned, answers.len(), "{}", k.file);
        let out: u64 = read.iter().filter_map(|t| t.usage.tokens_out).sum();
        assert!(out > 0, "{}", k.file);
    }
    let file = "fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl";
    let read = of(&data, file);
    assert!(read.len() > 5, "sub-agents are trajectories of their own");
    let main = read[0].session.as_deref();
    assert!(read[1..].iter().all(|t| t.parent.as_deref() == main && t.parent.is_some()));
}

#[test]
fn every_result_stands_behind_its_call() {
    let Some((_, data)) = open("claude-code/swe-context-bench") else { return };
    for t in &data.trajectories {
        let mut calls: Vec<&str> = Vec::new();
        for step in &t.steps {
            match step.role {
                Role::Assistant => calls = step.calls.iter().map(|c| c.id.as_str()).collect(),
                Role::Tool => {
                    let id = step.call_id.as_deref().unwrap();
                    let orphan = t.steps.iter().all(|s| s.calls.iter().all(|c| c.id != id));
                    assert!(orphan || calls.contains(&id), "{}: {id}", t.source.path.display());
                }
                _ => {}
            }
        }
    }
}

#[test]
fn codex_rollouts() {
    let (Some(shared), Some((known, data))) = (shared(), open("codex")) else { return };
    for k in &known {
        assert_eq!(format_of(&data, &k.file), Some("codex-rollout"), "{}", k.file);
        assert_eq!(of(&data, &k.file).len(), 1, "{}", k.file);
        // The manifest counts records of all kinds, of which most are events: not what is counted here.
        let kinds = records(&shared, &k.file, |r| {
            r["payload"]["type"].as_str().or(r["payload"]["role"].as_str()).unwrap_or_default().to_owned()
        });
        let t = of(&data, &k.file)[0];
        let calls: usize = t.steps.iter().map(|s| s.calls.len()).sum();
        assert_eq!(calls, kinds.get("function_call").copied().unwrap_or(0), "{}", k.file);
        assert_eq!(t.patch, None);
    }
    let t = of(&data, "rollout-2025-11-17T15-30-28-019a93b9-f380-7600-98ff-940e6b99603c.jsonl")[0];
    assert_eq!((t.n_actions(), t.usage.api_calls), (39, Some(39)));
    let totals = (t.usage.tokens_in, t.usage.tokens_cached, t.usage.tokens_out);
    assert_eq!(totals, (Some(1_099_261), Some(1_027_328), Some(22305)));
    let users: Vec<&str> = t.steps.iter().filter(|s| s.role == Role::User).map(|s| s.text.as_str()).collect();
    assert!(users.len() == 1 && users[0].starts_with("finish up"));
    let sub = of(&data, "traex/rollout_subagent.jsonl")[0];
    assert_eq!(sub.parent.as_deref(), Some("019fbc4a-48b9-7472-a0da-6d92901383db"));
    assert_eq!(sub.steps.iter().find_map(|s| s.reasoning.as_deref()), Some("Plan the exploration."));
}

#[test]
fn packed_rollouts_are_read_as_far_as_they_go() {
    let Some(shared) = shared() else { return };
    for name in ["codex-rollout.jsonl.zst", "codex-rollout-multiframe.jsonl.zst"] {
        let data = load(&[shared.join("corpus/_derived-malformed").join(name)], &|_| {});
        assert_eq!(data.files[0].format, Some("codex-rollout"), "{name}: {}", data.files[0].reason);
        assert!(data.trajectories[0].n_actions() > 0, "{name}");
    }
}

#[test]
fn malformed_sessions_keep_their_good_records() {
    let Some(shared) = shared() else { return };
    let sound = load(&[shared.join("corpus/claude-code/claude-code-viewer")], &|_| {});
    let whole = of(&sound, "1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl")[0].clone();
    let dir = shared.join("corpus/_derived-malformed");
    for name in ["blank-lines-crlf", "bom", "invalid-utf8", "lone-surrogate", "nul-run", "spliced-no-newline"] {
        let data = load(&[dir.join(format!("claude-{name}.jsonl"))], &|_| {});
        assert_eq!(data.files[0].format, Some("claude-code"), "{name}");
        assert_eq!(data.trajectories[0].steps.len(), whole.steps.len(), "{name}");
    }
    for name in ["truncated-last-line", "truncated-mid-file", "cut-then-next-record"] {
        let data = load(&[dir.join(format!("claude-{name}.jsonl"))], &|_| {});
        let lost = whole.steps.len() - data.trajectories[0].steps.len();
        assert!(lost <= 1, "{name}: {lost} steps lost");
        assert!(!data.files[0].diagnostics.is_empty(), "{name}");
    }
}

#[test]
fn gemini_sessions() {
    let Some((known, data)) = open("gemini-cli") else { return };
    for k in &known {
        assert_eq!(format_of(&data, &k.file), Some("gemini-cli"), "{}", k.file);
        let t = of(&data, &k.file)[0];
        // The manifest counts messages, in the one file it counts any.
        assert!(k.records.is_none_or(|n| n == t.steps.len()), "{}", k.file);
    }
    let t = of(&data, "tool_calls_with_results.json")[0];
    let results: Vec<_> = t.steps.iter().filter(|s| s.role == Role::Tool).map(|s| s.tool_name.as_deref()).collect();
    assert_eq!((t.n_actions(), results), (1, vec![Some("read_file"), Some("run_command")]));
    let t = of(&data, "standard_session.json")[0];
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out), (Some(3500), Some(650)));
}

#[test]
fn pi_sessions() {
    let (Some(shared), Some((known, data))) = (shared(), open("pi")) else { return };
    for k in &known {
        assert_eq!(format_of(&data, &k.file), Some("pi"), "{}", k.file);
        let t = of(&data, &k.file)[0];
        let text = std::fs::read_to_string(shared.join("corpus").join(&k.file)).unwrap();
        let rows = text.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
        let (mut answers, mut broken, mut costs) = (0, 0, 0.0);
        for row in rows.filter(|r| r["message"]["role"] == "assistant") {
            costs += row["message"]["usage"]["cost"]["total"].as_f64().unwrap_or(0.0);
            let stopped = matches!(row["message"]["stopReason"].as_str(), Some("aborted" | "error"));
            let said = row["message"]["content"].as_array().is_some_and(|c| !c.is_empty());
            answers += usize::from(said || !stopped);
            broken += usize::from(said && stopped);
        }
        assert_eq!(t.n_actions(), answers, "{}", k.file);
        assert!((t.usage.cost.unwrap_or(0.0) - costs).abs() < 1e-6, "{}: {:?} for {costs}", k.file, t.usage.cost);
        // The manifest counts records: each is one step at most, and one more where an answer broke off.
        assert!(k.records.is_none_or(|n| t.steps.len() <= n + broken), "{}", k.file);
    }
}

#[test]
fn copilot_sessions() {
    let Some(shared) = shared() else { return };
    let data = load(&[shared.join("corpus/other/agentviz")], &|_| {});
    assert_eq!(format_of(&data, "test-copilot.jsonl"), Some("copilot-cli"));
    assert_eq!(format_of(&data, "test-vscode-chat.json"), Some("vscode-chat"));
    let cli = of(&data, "test-copilot.jsonl")[0];
    assert!(cli.n_actions() > 0 && cli.steps.iter().any(|s| s.role == Role::Tool));
    let chat = of(&data, "test-vscode-chat.json")[0];
    assert!(chat.steps.iter().any(|s| s.role == Role::Tool && s.text.contains("const express = require('express');")));
}

#[test]
fn the_other_agents() {
    let Some((_, data)) = open("other/agentsview") else { return };
    // What belongs together is one attempt, with every file of it named.
    let right = [
        (".aider.chat.history.md", "aider-chat"),
        ("gptme/2026-06-13-write-hello-world/conversation.jsonl", "gptme"),
        ("019f6000-0000-7000-8000-000000000001/chat_history.jsonl", "grok-build"),
        ("019f6000-0000-7000-8000-000000000002/signals.json", "grok-build"),
        ("019f6000-0000-7000-8000-000000000002/source-v1.jsonl", "grok-chat"),
        ("iflow/session-5de701fc-7454-4858-a249-95cac4fd3b51.jsonl", "claude-code"),
        ("kiro_sqlite/standard_payload.json", "kiro"),
        ("kiro_sqlite/overlap_payload.json", "kiro"),
        ("11111111/conversation.json", "posit-assistant"),
        ("22222222/lm-messages.jsonl", "posit-assistant"),
        ("a1b2c3d4/index.json", "posit-index"),
        ("a1b2c3d4/workspace.json", "posit-index"),
        ("sessions/main_main.json", "qwenpaw"),
        ("session_basic/messages.jsonl", "vibe"),
        ("session_with_tools/meta.json", "vibe"),
    ];
    for (file, format) in right {
        assert_eq!(format_of(&data, file), Some(format), "{file}");
    }
    let of = |format: &str| data.trajectories.iter().filter(|t| t.format == format).collect::<Vec<_>>();
    let actions = |format: &str| of(format).iter().map(|t| t.n_actions()).collect::<Vec<_>>();
    // The manifest counts lines of these; a line is one step here too, where its kind is known.
    assert_eq!(actions("aider-chat"), [1, 1], "a heading inside an answer is no prompt");
    assert_eq!((actions("gptme"), of("gptme")[0].steps.len()), (vec![2], 7));
    assert_eq!(actions("grok-build"), [2, 2]);
    assert_eq!(actions("grok-chat"), [2]);
    assert_eq!(actions("vibe"), [3, 2]);
    assert_eq!(actions("posit-assistant"), [3, 1, 1]);
    assert_eq!(actions("qwenpaw"), [1, 2, 1]);
    assert_eq!(actions("kiro"), [1, 2]);
    let cost: f64 = of("gptme")[0].usage.cost.unwrap();
    assert!((cost - 0.002).abs() < 1e-9);
    // Rows of databases, dumped one by one, are no sessions; and a file of nothing is empty.
    assert_eq!(format_of(&data, "omnigent/function_call.json"), None);
    assert_eq!(format_of(&data, "kiro_sqlite/malformed_payload.txt"), None);
    assert_eq!(format_of(&data, "session_empty/messages.jsonl"), None);
}
