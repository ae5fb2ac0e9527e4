//! Every format by its own sample, and any input at all: nothing panics, everything is listed.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test; clippy knows only the test functions")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use proptest::prelude::*;
use serde_json::{Value, json};
use trajscope::formats::{FORMATS, Kind, load, load_bytes, recognise};
use trajscope::trajectory::join;

/// One small file of every format in the table, with its name.
fn samples() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let steps = json!([{"action": "ls", "observation": "x", "response": "r", "thought": "t"}]);
    let messages = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "```bash\nls\n```"}, {"role": "user", "content": "<returncode>0</returncode>"}]);
    let event = json!({"id": 0, "source": "agent", "action": "run", "args": {"command": "ls"}});
    let kind = json!({"kind": "ActionEvent", "source": "agent", "tool_name": "t", "tool_call_id": "c", "action": {"command": "ls"}});
    let report = json!({"patch_successfully_applied": true, "resolved": true});
    let all = vec![
        (
            "openhands-0",
            "output.jsonl",
            json!({"instance_id": "o__r-1", "history": [event], "test_result": {"git_patch": "P"}, "metrics": null}),
        ),
        ("openhands-1", "output.jsonl", json!({"instance_id": "o__r-1", "history": [kind], "test_result": {}})),
        ("openhands-0-events", "export.json", json!([event])),
        ("openhands-1-events", "events.json", json!([kind])),
        (
            "sweagent-0",
            "o__r-1.traj",
            json!({"trajectory": steps, "history": [], "info": {"submission": "P", "exit_status": "submitted"}}),
        ),
        ("sweagent-1", "o__r-1.traj", json!({"trajectory": steps, "history": [], "info": {}, "replay_config": "{}"})),
        (
            "mini-swe-agent-1",
            "o__r-1.traj.json",
            json!({"trajectory_format": "mini-swe-agent-1", "messages": messages, "info": {"submission": "P"}}),
        ),
        (
            "mini-swe-agent-2",
            "o__r-1.traj.json",
            json!({"trajectory_format": "mini-swe-agent-1.1", "messages": messages, "info": {}}),
        ),
        (
            "labelled",
            "runs.jsonl",
            json!({"instance_id": "o__r-1", "resolved": true, "patch": "P", "steps": [{"role": "assistant", "thought": "t", "action": "a", "observation": "o"}]}),
        ),
        ("tasks", "instances.jsonl", json!({"instance_id": "o__r-1", "problem_statement": "broken"})),
        (
            "predictions",
            "preds.json",
            json!({"o__r-1": {"model_name_or_path": "m", "instance_id": "o__r-1", "model_patch": "P"}}),
        ),
        ("report-instance", "o__r-1/report.json", json!({"o__r-1": report})),
        (
            "report-run",
            "results.json",
            json!({"resolved_ids": ["o__r-1"], "unresolved_ids": [], "submitted_ids": ["o__r-1"]}),
        ),
        ("chat", "chat.json", json!({"messages": messages, "instance_id": "o__r-1"})),
    ];
    all.into_iter().map(|(id, name, value)| (id, name, value.to_string().into_bytes())).collect()
}

#[test]
fn every_format_of_the_table_reads_its_sample() {
    let samples = samples();
    for format in FORMATS {
        for text in [format.id, format.name, format.writer, format.recognised, format.kind.name()] {
            assert!(!text.is_empty() && !text.contains('\n'), "{}", format.id);
        }
        assert_eq!(FORMATS.iter().filter(|f| f.id == format.id).count(), 1, "{} twice", format.id);
        let (_, name, bytes) =
            samples.iter().find(|(id, ..)| *id == format.id).unwrap_or_else(|| panic!("no sample of {}", format.id));
        let seen = recognise(Path::new(name), bytes.clone()).unwrap();
        assert_eq!(seen[0].0.id, format.id, "{:?}", seen.iter().map(|(f, m)| (f.id, &m.reason)).collect::<Vec<_>>());
        // The extension decides nothing.
        let file = load_bytes(Path::new("no-extension"), bytes.clone());
        assert_eq!(file.report.format, Some(format.id), "{}", file.report.reason);
        assert!(file.report.reason.starts_with(format.name));
        let held = [file.trajectories.len(), file.predictions.len(), file.reports.len()];
        let expected = match format.kind {
            Kind::Trajectory => [1, 0, 0],
            Kind::Prediction => [0, 1, 0],
            Kind::Report => [0, 0, 1],
            Kind::Tasks => [0, 0, 0],
        };
        assert_eq!(held, expected, "{}", format.id);
        for trajectory in &file.trajectories {
            assert_eq!(trajectory.format, format.id);
            assert!(trajectory.n_actions() > 0);
            assert_eq!(trajectory.source.path, Path::new("no-extension"));
        }
    }
}

#[test]
fn a_folder_of_everything_opens_and_comes_together() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (i, (_, name, bytes)) in samples().into_iter().enumerate() {
        let path = root.join(format!("{i:02}")).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join(".git/x.json"), b"{}").unwrap();
    fs::write(root.join("weights.bin"), [7u8, 0, 1, 2, 3, 250, 9]).unwrap();
    fs::write(root.join("empty.json"), b"").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(root, root.join("loop")).unwrap();
    let seen: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let paths = [root.to_path_buf(), root.join("00"), root.join("missing")];
    let dataset = load(&paths, &|file| seen.lock().unwrap().push(file.report.path));
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    let mut listed: Vec<PathBuf> = dataset.files.iter().map(|f| f.path.clone()).collect();
    assert!(listed[..16].is_sorted(), "in order of the paths");
    listed.sort();
    assert_eq!(seen, listed, "every file is reported once");
    assert_eq!(dataset.files.len(), 17, "14 samples, 2 unreadable ones, 1 missing");
    let reason = |name: &str| dataset.files.iter().find(|f| f.path.ends_with(name)).unwrap().reason.clone();
    assert_eq!(reason("weights.bin"), "binary data, not text");
    assert_eq!(reason("empty.json"), "empty file");
    assert_eq!(reason("missing"), "no such file or folder");
    assert_eq!(dataset.trajectories.len(), 10);
    let issues = join(&dataset);
    let names: Vec<String> = issues.iter().map(trajscope::trajectory::Issue::name).collect();
    assert_eq!(names, ["o__r-1", "export.json", "events.json"]);
    let mut attempts: Vec<&str> = issues[0].attempts.iter().map(|a| a.name.as_str()).collect();
    attempts.sort_unstable();
    attempts.dedup();
    assert_eq!(attempts.len(), issues[0].attempts.len(), "names are unique");
    let again = load(&paths, &|_| {});
    assert_eq!(again.trajectories, dataset.trajectories, "the result does not depend on the threads");
    assert_eq!(again.files, dataset.files);
}

#[test]
fn gzip_is_read_as_what_is_in_it() {
    use std::io::Write;
    for (id, name, bytes) in samples() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).unwrap();
        let file = load_bytes(Path::new(name), encoder.finish().unwrap());
        assert_eq!(file.report.format, Some(id));
    }
}

/// Any JSON value, with the keys formats look for.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2i64..300).prop_map(|n| json!(n)),
        "[a-z<>=`{}\\[\\]\"\\\\ \n]{0,20}".prop_map(Value::String),
        Just(json!("diff --git a/a b/a\n")),
        Just(json!("o__r-1")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(KEYS), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

const KEYS: &[&str] = &[
    "action",
    "observation",
    "source",
    "args",
    "extras",
    "content",
    "message",
    "role",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "kind",
    "history",
    "trajectory",
    "info",
    "submission",
    "steps",
    "messages",
    "instance_id",
    "model_patch",
    "test_result",
    "report",
    "resolved",
    "resolved_ids",
    "choices",
    "model_response",
    "tool_call_metadata",
    "metadata",
    "id",
    "type",
    "output",
    "object",
    "extra",
    "thought",
    "response",
];

/// A sample with one of its values, at any depth, replaced.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    (0..samples().len(), any::<prop::sample::Index>(), values()).prop_map(|(which, place, new)| {
        let (_, _, bytes) = &samples()[which];
        let mut value: Value = serde_json::from_slice(bytes).unwrap();
        let places = count(&value);
        let mut at = place.index(places);
        replace(&mut value, &mut at, &new);
        value.to_string().into_bytes()
    })
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

fn replace(value: &mut Value, at: &mut usize, new: &Value) -> bool {
    if *at == 0 {
        *value = new.clone();
        return true;
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|v| replace(v, at, new)),
        Value::Object(members) => members.values_mut().any(|v| replace(v, at, new)),
        _ => false,
    }
}

/// Loads and joins, and checks what must hold of anything read.
fn survives(bytes: Vec<u8>) {
    let len = bytes.len() as u64;
    let file = load_bytes(Path::new("x/o__r-1/run.json"), bytes);
    assert!(!file.report.reason.is_empty() && !file.report.reason.contains('\n'));
    for trajectory in &file.trajectories {
        assert!(FORMATS.iter().any(|f| f.id == trajectory.format));
        assert!(trajectory.source.span.start + trajectory.source.span.len <= len);
        assert!(trajectory.usage.cost.is_none_or(f64::is_finite));
    }
    let dataset = trajscope::trajectory::Dataset {
        trajectories: file.trajectories,
        predictions: file.predictions,
        reports: file.reports,
        files: vec![file.report],
    };
    for issue in join(&dataset) {
        assert!(issue.attempts.iter().all(|a| !a.name.is_empty()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        survives(bytes);
    }

    #[test]
    fn no_value_panics(value in values()) {
        survives(value.to_string().into_bytes());
    }

    #[test]
    fn no_rows_panic(rows in prop::collection::vec(values(), 1..5)) {
        let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
        survives(lines.join("\n").into_bytes());
    }

    #[test]
    fn no_mutated_sample_panics(bytes in mutated()) {
        survives(bytes);
    }

    #[test]
    fn no_cut_sample_panics(which in 0..14usize, place: prop::sample::Index) {
        let (_, _, bytes) = &samples()[which];
        survives(bytes[..place.index(bytes.len())].to_vec());
    }
}
