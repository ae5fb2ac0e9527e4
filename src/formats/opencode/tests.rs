use std::path::PathBuf;

use super::super::load::{load, load_bytes};
use super::*;

fn roles(t: &Trajectory) -> String {
    t.steps.iter().map(|s| format!("{:?}", s.role).chars().next().unwrap()).collect()
}

fn check(t: &Trajectory) {
    assert_eq!(roles(t), "UATATTAMM");
    assert_eq!(t.steps[0].text, "Sum the rows.\n[file ledger.py]");
    let first = &t.steps[1];
    assert_eq!((first.reasoning.as_deref(), first.action.as_deref()), (Some("read"), Some("pytest")));
    assert_eq!(first.tokens, Some(Tokens { input: 17, cached: Some(10), output: 5 }));
    assert_eq!((first.cost, t.steps[3].cost, t.steps[6].cost), (Some(0.2), Some(0.3), Some(0.25)));
    assert_eq!((t.steps[2].exit_code, t.steps[2].is_error), (Some(1), Some(true)));
    assert_eq!((t.steps[4].text.as_str(), t.steps[4].is_error), ("no match", Some(true)));
    assert_eq!(t.steps[5].is_error, Some(true), "a tool that is not there");
    assert_eq!(t.steps[6].calls.len(), 1, "a call that still runs");
    assert_eq!(t.steps[8].text, "MessageAbortedError: aborted");
    assert_eq!(t.usage.cost, Some(0.75));
    assert_eq!((t.session.as_deref(), t.model.as_deref()), (Some("ses_demo1"), Some("model-a")));
    assert_eq!(t.agent.as_deref(), Some("OpenCode 1.2.0"));
}

#[test]
fn a_storage_folder_is_its_sessions() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats/opencode");
    let data = load(std::slice::from_ref(&root), &|_| {});
    assert_eq!(data.trajectories.len(), 2);
    let t = &data.trajectories[0];
    check(t);
    assert_eq!(t.source.path, root.join("storage"));
    let file = t.steps[2].raw.file.as_deref().unwrap();
    assert!(file.ends_with("part/msg_02/prt_013.json"), "{}", file.display());
    let sub = &data.trajectories[1];
    assert_eq!((roles(sub).as_str(), sub.parent.as_deref(), sub.source.record), ("A", Some("ses_demo1"), 1));
    let remarks: Vec<&str> = data.files[0].diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        remarks,
        [
            "1 record of unknown type `riddle` is shown raw",
            "3 bookkeeping records are counted, not shown: agent 1, patch 1, session_diff 1"
        ]
    );
}

#[test]
fn an_export_holds_the_same() {
    let text = include_str!("../../../tests/fixtures/formats/opencode-export/session.json");
    let file = load_bytes(Path::new("x.json"), text.as_bytes().to_vec());
    assert_eq!(file.report.format, Some("opencode-export"));
    check(&file.trajectories[0]);
    assert_eq!(&*file.trajectories[0].steps[2].raw.pointer, "/messages/1");
}

fn folder(files: &[(&str, serde_json::Value)]) -> (tempfile::TempDir, crate::trajectory::Dataset) {
    let dir = tempfile::tempdir().unwrap();
    for (name, value) in files {
        let path = dir.path().join("storage").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, value.to_string()).unwrap();
    }
    let data = load(&[dir.path().to_path_buf()], &|_| {});
    (dir, data)
}

#[test]
fn messages_without_their_session_are_shown_all_the_same() {
    let (_dir, data) = folder(&[
        ("message/ses_x/msg_2.json", serde_json::json!({"id": "msg_2", "role": "assistant", "time": {"created": 5}})),
        ("message/ses_x/msg_1.json", serde_json::json!({"id": "msg_1", "role": "user", "time": {"created": 9}})),
        ("message/ses_x/msg_3.json", serde_json::json!("broken")),
        ("part/msg_2/prt_1.json", serde_json::json!({"id": "prt_1", "type": "text", "text": "first by its time"})),
        ("part/msg_1/prt_1.json", serde_json::json!({"id": "prt_1", "type": "text", "text": "then this"})),
    ]);
    let t = &data.trajectories[0];
    assert_eq!(t.session.as_deref(), Some("ses_x"));
    let texts: Vec<&str> = t.steps.iter().map(|s| s.text.as_str()).collect();
    assert!(texts.ends_with(&["first by its time", "then this"]), "{texts:?}");
}

#[test]
fn a_folder_of_other_messages_is_left_alone() {
    let (_dir, data) = folder(&[("message/a/note.json", serde_json::json!({"role": "user", "content": "x"}))]);
    assert!(data.files.iter().all(|f| f.format != Some("opencode")));
}

#[test]
fn a_call_that_failed_or_still_runs_is_told_from_one_that_ended() {
    let state = |state: Value| {
        let part = json!({"type": "tool", "tool": "bash", "callID": "c", "state": state});
        tool(&part).1.map(|step| (step.text, step.is_error, step.exit_code))
    };
    let done = json!({"status": "completed", "output": "x", "metadata": {"exit": 0}});
    assert_eq!(state(done), Some(("x".to_owned(), Some(false), Some(0))));
    let failed = json!({"status": "error", "error": "no", "output": "ignored"});
    assert_eq!(state(failed), Some(("no".to_owned(), Some(true), None)));
    assert_eq!(state(json!({"status": "running"})), None);
    assert_eq!(state(json!(null)), None);
    let none = json!({"input": 0, "output": 0, "cache": {"read": 0, "write": 0}});
    assert_eq!(tokens(&none), None, "nobody counted");
}
