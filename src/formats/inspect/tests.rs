use std::path::{Path, PathBuf};

use super::super::json::{Value, json};
use super::super::load::{LoadedFile, load, load_bytes};
use super::scores;
use crate::trajectory::Role::{self, Assistant, Meta, System, Tool, User};
use crate::trajectory::{Dataset, Outcome, Tokens, Trajectory};

fn sample(name: &str) -> Dataset {
    load(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats").join(name)], &|_| {})
}

fn log(samples: &Value) -> LoadedFile {
    let root = json!({"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": samples});
    load_bytes(Path::new("log.json"), root.to_string().into_bytes())
}

fn code<'t>(trajectory: &'t Trajectory, code: &str) -> Option<&'t str> {
    trajectory.diagnostics.iter().find(|d| d.code == code).map(|d| d.message.as_str())
}

#[test]
fn a_sample_is_its_messages_with_what_else_happened_behind_them() {
    let data = sample("inspect-eval");
    let t = data.trajectories.iter().find(|t| t.instance_id.as_deref() == Some("o__r-1")).unwrap();
    let roles: Vec<Role> = t.steps.iter().map(|s| s.role).collect();
    let said = [Meta, System, User, Assistant, Tool, Tool, Assistant, Meta];
    assert_eq!(roles[..8], said);
    assert!(roles[8..].iter().all(|r| *r == Meta));
    assert_eq!(t.steps[0].text, "try 1 failed: sandbox died");
    let user = "look at the long text now\n[image]\n[audio]\n[document: a.pdf]\n[data] {\"k\":\"the long text\"}\n[hologram] {\"type\":\"hologram\",\"x\":1}";
    assert_eq!(t.steps[2].text, user);
    assert_eq!(t.steps[3].reasoning.as_deref(), Some("hm\nthinks\n[redacted]"));
    assert_eq!(t.steps[3].text, "I look\n[web_search q → r]");
    assert_eq!(t.steps[3].action.as_deref(), Some("ls\ncat the long text"));
    assert_eq!(t.steps[3].timestamp.as_deref(), Some("t1"));
    assert_eq!(t.steps[3].tokens, Some(Tokens { input: 50, cached: None, output: 10 }));
    assert_eq!((t.steps[4].call_id.as_deref(), t.steps[4].tool_name.as_deref()), (Some("c1"), Some("bash")));
    assert_eq!(t.steps[4].timestamp.as_deref(), Some("t2"));
    assert_eq!((t.steps[5].text.as_str(), t.steps[5].is_error), ("timeout: Command timed out.", Some(true)));
    assert!(t.steps[6].text.contains("attachment://0000"));
    assert!(code(t, "inspect.missing-attachment").unwrap().starts_with("1 texts"));
    let after: Vec<&str> = t.steps[8..].iter().map(|s| s.text.as_str()).collect();
    assert_eq!(
        after[..5],
        [
            "approval: reject: too risky",
            "error: boom",
            "sample_limit: token over 1000",
            "info: a note",
            "input: typed by a person"
        ]
    );
    assert!(after[5].starts_with("score: ") && after[6].starts_with("quantum: {"));
    assert!(after[7].starts_with("score style: 0.5") || after[7].starts_with("score tests: 1.0"));
    assert_eq!(after.len(), 8);
    assert_eq!(
        code(t, "inspect.folded").unwrap(),
        "events that the messages tell already: 1 approval, 1 model, 1 sample_init, 1 score, 1 tool"
    );
    assert_eq!(t.steps[4].raw.pointer.as_ref(), "/messages/3");
    assert!(t.steps[4].raw.file.as_ref().unwrap().ends_with("samples/o__r-1_epoch_1.json"));
}

#[test]
fn a_sample_has_label_patch_totals_and_ending() {
    let data = sample("inspect-eval");
    let t = data.trajectories.iter().find(|t| t.instance_id.as_deref() == Some("o__r-1")).unwrap();
    assert_eq!((t.outcome, t.patch.as_deref()), (Outcome::Resolved, Some("diff --git a/x b/x\n")), "never the target");
    assert_eq!(code(t, "inspect.score"), Some("the label is that of `tests`; `style` says 0.5"));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_cached, t.usage.tokens_out), (Some(135), Some(30), Some(25)));
    assert_eq!((t.exit_status.as_deref(), t.error.as_deref()), (Some("limit: token 1000.0"), None));
    assert_eq!((t.attempt.as_deref(), t.session.as_deref()), (Some("epoch 1"), Some("u-1")));
    assert_eq!((t.agent.as_deref(), t.model.as_deref(), t.tools.len()), (Some("agent"), Some("openai/m"), 1));
}

#[test]
fn split_samples_are_put_together() {
    let data = sample("inspect-eval");
    let ids: Vec<&str> = data.trajectories.iter().map(|t| t.instance_id.as_deref().unwrap()).collect();
    assert_eq!(ids, ["fix/10", "fix/a/9", "o__r-1"], "numbers first");
    let t = &data.trajectories[1];
    let steps: Vec<(Role, &str)> = t.steps.iter().map(|s| (s.role, s.text.as_str())).collect();
    let said = [(User, "read kept in a file"), (Assistant, "one"), (Assistant, "two"), (Assistant, "three")];
    assert_eq!(steps[..4], said);
    assert!(steps[4].1.starts_with("interrupt: {") && steps.len() == 5);
    assert!(t.steps[2].raw.file.as_ref().unwrap().ends_with("messages/2.json"));
    assert_eq!(t.steps[2].raw.pointer.as_ref(), "/0");
    assert_eq!((t.attempt.as_deref(), t.outcome), (Some("epoch 2"), Outcome::Unknown));
    let disagree = &data.trajectories[0];
    assert_eq!((disagree.outcome, disagree.source.record), (Outcome::Unknown, 0));
    assert_eq!(code(disagree, "inspect.score"), Some("resolved or not cannot be told: `a` says yes, `b` says no"));
}

#[test]
fn a_log_of_json_is_read_and_says_how_it_ended() {
    let data = sample("inspect-json");
    let seen: Vec<_> =
        data.trajectories.iter().map(|t| (t.instance_id.as_deref(), t.attempt.as_deref(), t.outcome)).collect();
    let expected =
        [(Some("fix/1"), Some("epoch 1"), Outcome::Unresolved), (Some("fix/1"), Some("epoch 2"), Outcome::Unknown)];
    assert_eq!(seen, expected);
    assert_eq!(
        code(&data.trajectories[1], "inspect.score"),
        Some("resolved or not cannot be told: `m` says N (no answer)")
    );
    let file = data.files.iter().flat_map(|f| &f.diagnostics).find(|d| d.code == "inspect.status").unwrap();
    assert_eq!(file.message, "the evaluation ended with status error: RuntimeError");
    assert_eq!(data.trajectories[1].steps[1].raw.pointer.as_ref(), "/samples/1/messages/0");
}

#[test]
fn a_sample_by_itself_keeps_its_id_whatever_is_in_it() {
    let data = sample("inspect-sample");
    let t = &data.trajectories[0];
    assert_eq!((t.instance_id.as_deref(), t.attempt.as_deref()), (Some("x/../y?"), Some("epoch 3")));
    assert_eq!(t.outcome, Outcome::Resolved);
}

#[test]
fn verdicts_are_told_from_values_and_never_guessed() {
    let cases = [
        (json!("C"), Some(true)),
        (json!("I"), Some(false)),
        (json!(1), Some(true)),
        (json!(1.0), Some(true)),
        (json!(0), Some(false)),
        (json!(true), Some(true)),
        (json!("P"), None),
        (json!("N"), None),
        (json!(0.5), None),
        (json!(-1), None),
        (json!([1, 0]), None),
        (json!({"a": 1}), None),
        (json!({"resolved": 0}), Some(false)),
        (json!(null), None),
        (json!("maybe"), None),
    ];
    for (value, expected) in cases {
        assert_eq!(scores::verdict(&value).ok(), expected, "{value}");
    }
    let one = scores::of(&json!({"score": {"value": "C"}}));
    assert_eq!((one.outcome, one.remark), (Outcome::Resolved, None), "the oldest logs");
    let none = scores::of(&json!({"scores": null}));
    assert_eq!((none.outcome, none.remark, none.lines.len()), (Outcome::Unknown, None, 0));
    let store = json!({"store": {"Submit:model_patch": "p"}, "metadata": {"patch": "gold"}, "target": "gold"});
    assert_eq!(scores::patch(&store).as_deref(), Some("p"));
    assert_eq!(scores::patch(&json!({"metadata": {"patch": "gold", "test_patch": "t"}})), None);
}

#[test]
fn messages_that_are_gone_are_put_together_from_the_calls() {
    let pool = json!([{"role": "user", "content": "TASK"}, {"role": "assistant", "content": "one"}, {"role": "user", "content": "short"}]);
    let answer = |text: &str| json!({"choices": [{"message": {"role": "assistant", "content": text}}]});
    let events = json!([
        {"event": "model", "input_refs": [[0, 1]], "output": answer("one")},
        {"event": "compaction"},
        {"event": "model", "input_refs": [[2, 99]], "output": answer("two")},
        {"event": "model", "input": [{"role": "user", "content": "short"}], "output": answer("two")}
    ]);
    let compacted = json!([{"role": "user", "content": "short"}, {"role": "assistant", "content": "two"}]);
    for (messages, why) in [(compacted, "were compacted on the way"), (json!([]), "are not in the log")] {
        let mut sample =
            json!({"id": 1, "epoch": 1, "messages": messages, "events": events, "events_data": {"messages": pool}});
        if why.starts_with("are") {
            sample["events"][1] = json!({"event": "state"});
        }
        let file = log(&json!([sample]));
        let t = &file.trajectories[0];
        let said: Vec<&str> = t.steps.iter().filter(|s| s.role != Meta).map(|s| s.text.as_str()).collect();
        assert_eq!(said, ["TASK", "one", "short", "two"]);
        assert!(code(t, "inspect.from-events").unwrap().contains(why));
    }
    let file = log(&json!([{"id": 1, "epoch": 1, "input": "only asked", "error": {"message": "died"}}]));
    let t = &file.trajectories[0];
    assert_eq!(
        (t.steps[0].text.as_str(), t.error.as_deref(), t.exit_status.as_deref()),
        ("only asked", Some("died"), Some("error"))
    );
}

#[test]
fn a_log_without_samples_still_tells_the_outcomes() {
    let root = json!({"version": 2, "status": "started", "eval": {"task": "t"}, "samples": null,
        "reductions": [{"scorer": "m", "samples": [{"value": 1.0, "sample_id": 1}, {"value": 0.5, "sample_id": 2}]}]});
    let file = load_bytes(Path::new("log.json"), root.to_string().into_bytes());
    assert_eq!(file.reports[0].outcomes["t/1"], Outcome::Resolved);
    assert_eq!(file.reports[0].reasons["t/2"], "0.5");
    assert!(file.report.diagnostics.iter().any(|d| d.code == "inspect.running"));
}

#[test]
fn numbers_json_does_not_know_are_read() {
    let text = r#"{"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [{"id": 1, "epoch": 1,
        "messages": [{"role": "assistant", "content": "x"}], "scores": {"m": {"value": NaN}}, "total_time": Infinity}]}"#;
    let file = load_bytes(&PathBuf::from("log.json"), text.as_bytes().to_vec());
    assert_eq!((file.report.format, file.trajectories[0].outcome), (Some("inspect-json"), Outcome::Unknown));
    assert_eq!(file.trajectories[0].n_actions(), 1);
}

#[test]
fn samples_are_handed_on_one_by_one_and_read_again_alone() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats/inspect-eval");
    let whole = load(std::slice::from_ref(&path), &|_| {});
    let parts = std::sync::Mutex::new(Vec::new());
    let data = super::super::load_within(&[path], Some(0), &|file| parts.lock().unwrap().push(file));
    let parts = parts.into_inner().unwrap();
    assert_eq!(parts.len(), 4, "three samples, then the log");
    let mut handed: Vec<Trajectory> = parts[..3].iter().map(|p| (*p.trajectories[0]).clone()).collect();
    handed.sort_by_key(|t| t.source.record);
    for ((kept, whole), handed) in data.trajectories.iter().zip(&whole.trajectories).zip(&handed) {
        assert!(!kept.is_whole() && kept.steps.is_empty());
        assert_eq!((kept.key(), &kept.diagnostics), (whole.key(), &whole.diagnostics));
        assert_eq!(super::super::open(kept).unwrap().steps, whole.steps);
        assert_eq!((handed.key(), &handed.steps), (whole.key(), &whole.steps));
    }
}
