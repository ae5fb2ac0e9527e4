//! OpenHands: the samples written for every folder format with exact values, and what lies in the corpus.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test; clippy knows only the test functions")]

use std::path::{Path, PathBuf};

use serde_json::json;
use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Dataset, Role, Trajectory, join};

fn sample(id: &str) -> Dataset {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats").join(id);
    load(&[dir], &|_| {})
}

fn roles(t: &Trajectory) -> Vec<Role> {
    t.steps.iter().map(|s| s.role).collect()
}

fn codes(dataset: &Dataset) -> Vec<&'static str> {
    let own = dataset.trajectories.iter().flat_map(|t| &t.diagnostics);
    dataset.files.iter().flat_map(|f| &f.diagnostics).chain(own).map(|d| d.code).collect()
}

#[test]
fn a_v0_session_is_its_events_in_order_of_their_numbers() {
    let data = sample("openhands-0-session");
    assert_eq!(data.trajectories.len(), 1);
    let t = &data.trajectories[0];
    let expected = [Role::System, Role::User, Role::Meta, Role::Assistant, Role::Tool, Role::Meta, Role::Assistant];
    assert_eq!(roles(t)[..7], expected);
    assert_eq!(t.steps.len(), 8, "event 11 comes from the cache, 5 is broken");
    assert_eq!((t.session.as_deref(), t.model.as_deref()), (Some("0123abcd-demo"), Some("demo-model")));
    assert_eq!((t.usage.cost, t.usage.tokens_in), (Some(0.25), Some(100)));
    assert!(t.source.path.ends_with("0123abcd-demo"));
    let file = t.steps[3].raw.file.as_deref().unwrap();
    assert!(file.ends_with("events/3.json") && t.steps[3].raw.pointer.is_empty());
    let cached = &t.steps[7].raw;
    assert!(cached.file.as_deref().unwrap().ends_with("event_cache/10-13.json"));
    assert_eq!(cached.pointer.as_ref(), "/1");
    let found = codes(&data);
    for code in ["openhands.pickle", "openhands.unreadable-event", "openhands.cached", "openhands.gaps"] {
        assert!(found.contains(&code), "{code} is not in {found:?}");
    }
}

#[test]
fn a_rewound_v1_conversation_is_an_attempt_for_each_end() {
    let data = sample("openhands-1-conversation");
    assert_eq!(data.trajectories.len(), 2);
    let (left, kept) = (&data.trajectories[0], &data.trajectories[1]);
    assert_eq!(join(&data).len(), 1, "attempts at the same thing, whatever it is called");
    assert_eq!((left.attempt.as_deref(), kept.attempt.as_deref()), (Some("fork 1"), Some("fork 2")));
    let action = |t: &Trajectory| t.steps.iter().filter_map(|s| s.action.clone()).collect::<Vec<_>>();
    assert_eq!(action(left), ["ls", "rm -rf build"]);
    assert_eq!(action(kept), ["ls", "make test"]);
    assert_eq!(kept.session.as_deref(), Some("00000000-0000-0000-0000-000000000001"));
    assert_eq!((kept.model.as_deref(), kept.exit_status.as_deref()), (Some("demo-model"), Some("finished")));
    assert_eq!(kept.usage.cost, None, "the conversation's cost is neither way's own");
    let found = codes(&data);
    for code in
        ["openhands.fork", "openhands.critic", "openhands.refinement", "openhands.repeated", "openhands.unknown-kind"]
    {
        assert!(found.contains(&code), "{code} is not in {found:?}");
    }
    assert!(kept.steps.iter().any(|s| s.role == Role::Meta && s.text.starts_with("the critic said 0.250")));
}

#[test]
fn model_calls_are_put_together() {
    let data = sample("llm-completions");
    assert_eq!(data.trajectories.len(), 2, "the agent, and the condenser it asked");
    let t = &data.trajectories[0];
    assert_eq!(
        (t.instance_id.as_deref(), t.session.as_deref(), t.parent.as_deref()),
        (Some("o__r-1"), Some("s-1"), None)
    );
    let texts: Vec<&str> = t.steps.iter().map(|s| s.action.as_deref().unwrap_or(&s.text)).collect();
    let note = "the conversation was condensed: 2 earlier messages are no longer sent to the model";
    let expected =
        ["You fix code.", "fix it", "ls", "a.py", "make", note, "So far: ls and make were run.", "make test"];
    assert_eq!(texts, expected);
    assert_eq!(t.steps[3].tool_name.as_deref(), Some("execute_bash"));
    assert_eq!(t.usage.cost.map(|c| (c * 10.0).round()), Some(3.0));
    assert_eq!((t.usage.tokens_in, t.usage.api_calls), (Some(30), Some(3)));
    assert_eq!((t.agent.as_deref(), t.model.as_deref()), (Some("CodeActAgent"), Some("demo-model")));
    assert!(t.steps[4].raw.file.as_deref().unwrap().ends_with("__mnt__demo-model-1767716263.25.json"));
    assert_eq!(t.steps[4].raw.pointer.as_ref(), "/fncall_response/choices/0/message");
    assert_eq!(data.trajectories[1].parent.as_deref(), Some("s-1"));
    let single = sample("llm-completion");
    assert_eq!(roles(&single.trajectories[0]), [Role::System, Role::User, Role::Assistant]);
    assert_eq!(single.trajectories[0].usage.cost, None, "a model without a price");
}

#[test]
fn the_same_attempt_in_two_files_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let row = |attempt: u32, command: &str| {
        let arguments = json!({"command": command}).to_string();
        let run = json!({"id": format!("a{attempt}"), "kind": "ActionEvent", "source": "agent", "thought": [],
            "tool_call": {"id": "c", "name": "terminal", "arguments": arguments}, "llm_response_id": "r"});
        let patch = format!("diff --git a/{command} b/{command}\n");
        let row = json!({"instance_id": "o__r-1", "attempt": attempt, "history": [run], "test_result": {"git_patch": patch}, "metrics": null});
        row.to_string()
    };
    let (first, second) = (row(1, "ls"), row(2, "make"));
    std::fs::write(folder.path().join("output.critic_attempt_1.jsonl"), &first).unwrap();
    std::fs::write(folder.path().join("output.critic_attempt_2.jsonl"), &second).unwrap();
    std::fs::write(folder.path().join("output.jsonl"), &second).unwrap();
    let data = load(&[folder.path().to_path_buf()], &|_| {});
    assert_eq!(data.trajectories.len(), 3, "{:?}", data.files.iter().map(|f| &f.reason).collect::<Vec<_>>());
    let issues = join(&data);
    assert_eq!((issues.len(), issues[0].attempts.len()), (1, 2));
    // Two attempts that failed before their first step look alike.
    for n in [1, 2] {
        let died = json!({"instance_id": "o__r-1", "attempt": n, "history": [], "test_result": {}, "metrics": null, "error": "died"});
        std::fs::write(folder.path().join(format!("output.critic_attempt_{n}.jsonl")), died.to_string()).unwrap();
    }
    std::fs::remove_file(folder.path().join("output.jsonl")).unwrap();
    let issues = join(&load(&[folder.path().to_path_buf()], &|_| {}));
    assert_eq!((issues.len(), issues[0].attempts.len()), (1, 2));
}

/// A tar archive of these files, as POSIX defines it.
fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, text) in files {
        let mut head = [0u8; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[100..108].copy_from_slice(b"0000644\0");
        head[124..136].copy_from_slice(format!("{:011o}\0", text.len()).as_bytes());
        head[148..156].copy_from_slice(b"        ");
        head[156] = b'0';
        head[257..263].copy_from_slice(b"ustar\0");
        head[263..265].copy_from_slice(b"00");
        let sum: u32 = head.iter().map(|b| u32::from(*b)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(text.as_bytes());
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

#[test]
fn a_packed_conversation_is_named_by_its_archive() {
    let said = json!({"id": "e1", "kind": "MessageEvent", "source": "agent", "llm_message": {"role": "assistant", "content": "done"}});
    let state = json!({"id": "0123456789abcdef", "execution_status": "finished", "persistence_dir": "p", "agent": {"llm": {"model": "m"}}});
    let (said, state) = (said.to_string(), state.to_string());
    let files = [("0123/base_state.json", state.as_str()), ("0123/events/event-00000-abcdef01.json", said.as_str())];
    let folder = tempfile::tempdir().unwrap();
    let conversations = folder.path().join("conversations");
    std::fs::create_dir(&conversations).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, &tar(&files)).unwrap();
    std::fs::write(conversations.join("o__r-1.tar.gz"), gz.finish().unwrap()).unwrap();
    let data = load(&[folder.path().to_path_buf()], &|_| {});
    assert_eq!(data.trajectories.len(), 1, "{:?}", data.files.iter().map(|f| &f.reason).collect::<Vec<_>>());
    let t = &data.trajectories[0];
    assert_eq!((t.instance_id.as_deref(), t.session.as_deref()), (Some("o__r-1"), Some("0123456789abcdef")));
    assert_eq!((t.format, t.n_actions()), ("openhands-1-conversation", 1));
}

/// Corpus folder and what is in it: trajectories and their actions, by the end of the path.
fn corpus(folder: &str) -> Option<(PathBuf, Dataset)> {
    let root = shared()?.join("corpus").join(folder);
    let dataset = load(std::slice::from_ref(&root), &|_| {});
    Some((root, dataset))
}

fn actions(dataset: &Dataset, end: &str) -> (usize, usize) {
    let t = dataset.trajectories.iter().find(|t| t.source.path.ends_with(end)).unwrap();
    (t.steps.len(), t.n_actions())
}

#[test]
fn the_corpus_of_event_stores_is_read() {
    let Some((_, data)) = corpus("openhands-v0-events") else { return };
    // The manifest counts nothing here: each session has as many steps as event files, for no answer made two calls.
    let sessions = [
        ("03601b5e-e1b9-45-91bf22e44a671de", 16),
        ("03ae7de7-007d-4c-1b10b9e1cb80adb", 56),
        ("0a31a14b-bf2f-47-7e7bea08df8da48", 24),
        ("c289bdce-7ab8-4c-ccb493b42769067", 42),
    ];
    for (session, events) in sessions {
        assert_eq!(actions(&data, session).0, events, "{session}");
    }
    assert_eq!(data.trajectories.len(), 4);
    assert!(data.files.iter().all(|f| f.format == Some("openhands-0-session")), "nothing is left over");
    assert!(data.trajectories.iter().all(|t| t.session.is_some() && t.outcome.as_bool().is_none()));
}

#[test]
fn the_corpus_of_model_calls_is_read() {
    let Some((_, data)) = corpus("openhands-v0-llm-completions") else { return };
    let expected = [
        ("psf__requests-863", 30),
        ("pytest-dev__pytest-8365", 17),
        ("scikit-learn__scikit-learn-11040", 5),
        ("scikit-learn__scikit-learn-12471", 4),
    ];
    for (instance, n) in expected {
        let t = data.trajectories.iter().find(|t| t.instance_id.as_deref() == Some(instance)).unwrap();
        assert_eq!(t.n_actions(), n, "{instance}");
        assert!(t.session.is_some() && t.agent.as_deref() == Some("CodeActAgent"));
    }
    let format = |end: &str| data.files.iter().find(|f| f.path.ends_with(end)).unwrap().format;
    // The store of two of these sessions is another folder of the corpus: together they are one attempt each.
    let paths =
        ["openhands-v0-events", "openhands-v0-llm-completions"].map(|d| shared().unwrap().join("corpus").join(d));
    let both = join(&load(&paths, &|_| {}));
    let eleven = both.iter().find(|i| i.name() == "scikit-learn__scikit-learn-11040").unwrap();
    assert_eq!((eleven.attempts.len(), both.len()), (1, 7));
    assert_eq!(format("metadata.json"), Some("openhands-metadata"));
    assert_eq!(format("timing_scikit-learn__scikit-learn-11040.json"), Some("openhands-timing"));
}

#[test]
fn the_corpus_of_conversations_is_read() {
    let Some((_, data)) = corpus("openhands-v1-events") else { return };
    assert_eq!(actions(&data, "cli447_hi_followup_iterative_case_a").1, 6);
    assert_eq!(actions(&data, "cli447_hi_followup_iterative_case_b").1, 2);
    assert_eq!(actions(&data, "38868567ae624dcba5678b534b99575c").1, 2);
    assert_eq!(actions(&data, "fncall-llm-message.json").1, 6);
    assert_eq!(actions(&data, "llm-logs"), (13, 6));
    assert_eq!(actions(&data, "nonfncall-llm-logs").1, 4);
    let a = data.trajectories.iter().find(|t| t.source.path.ends_with("cli447_hi_followup_iterative_case_a")).unwrap();
    let critic: Vec<&str> = a.steps.iter().filter(|s| s.role == Role::Meta).filter_map(|s| s.text.get(..21)).collect();
    assert_eq!(
        critic,
        ["the critic said 0.378", "the critic said 0.822", "the critic said 0.880", "the critic said 0.831"]
    );
    assert!(data.files.iter().all(|f| f.format.is_some()), "everything is named");
    let state = data.files.iter().find(|f| f.path.ends_with("v1_11_5_cli_default/base_state.json")).unwrap();
    assert_eq!(state.format, Some("openhands-1-state"));
    let short = data.trajectories.iter().filter(|t| t.format == "openhands-1-export").count();
    assert_eq!(short, 2);
}
