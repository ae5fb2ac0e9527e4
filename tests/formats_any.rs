//! Every format by its own sample, and any input at all: nothing panics, everything is listed.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test; clippy knows only the test functions")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use proptest::prelude::*;
use serde_json::{Value, json};
use trajscope::formats::{Kind, Reader, formats, load, load_bytes, recognise};
use trajscope::trajectory::join;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats")
}

/// The samples that are one file: format, name, content. `tests/fixtures/formats/<format id>/` holds a sample of every
/// format in the table, a file or a folder of them, written by us.
fn samples() -> Vec<(String, PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut dirs: Vec<PathBuf> = fs::read_dir(fixtures()).unwrap().map(|e| e.unwrap().path()).collect();
    dirs.sort();
    for dir in dirs {
        if let [file] = files_below(&dir).as_slice() {
            let name = file.strip_prefix(&dir).unwrap().to_path_buf();
            found.push((dir.file_name().unwrap().to_str().unwrap().to_owned(), name, fs::read(file).unwrap()));
        }
    }
    found
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn every_format_of_the_table_reads_its_sample() {
    for format in formats() {
        for text in [format.id, format.name, format.writer, format.recognised, format.kind.name()] {
            assert!(!text.is_empty() && !text.contains('\n'), "{}", format.id);
        }
        assert_eq!(formats().filter(|f| f.id == format.id).count(), 1, "{} twice", format.id);
        let dir = fixtures().join(format.id);
        assert!(dir.is_dir(), "no sample of {}: write one to {}", format.id, dir.display());
        let dataset = load(std::slice::from_ref(&dir), &|_| {});
        let files = || dataset.files.iter();
        let seen: Vec<_> = files().map(|f| (f.format, f.reason.as_str())).collect();
        assert!(files().any(|f| f.format == Some(format.id) && f.reason.starts_with(format.name)), "{seen:?}");
        assert!(files().all(|f| f.format.is_some()), "{}: something in its sample is not read: {seen:?}", format.id);
        let held = match format.kind {
            Kind::Trajectory => dataset.trajectories.iter().any(|t| t.format == format.id && t.n_actions() > 0),
            Kind::Prediction => !dataset.predictions.is_empty(),
            Kind::Report => !dataset.reports.is_empty(),
            Kind::Tasks | Kind::Companion => true,
        };
        assert!(held, "{} holds no {}", format.id, format.kind.name());
        for trajectory in &dataset.trajectories {
            assert!(trajectory.source.path.starts_with(&dir), "{}", trajectory.source.path.display());
        }
    }
}

/// The samples that are folders: every file of each broken in every way a file breaks, one at a time. Whatever is
/// left opens, and every file is listed.
#[test]
fn a_folder_with_a_broken_file_still_opens() {
    let dirs = fs::read_dir(fixtures()).unwrap().map(|e| e.unwrap().path());
    for dir in dirs.filter(|dir| files_below(dir).len() > 1) {
        let folder = tempfile::tempdir().unwrap();
        let files = files_below(&dir);
        let copy = |file: &Path| folder.path().join(file.strip_prefix(fixtures()).unwrap());
        for file in &files {
            fs::create_dir_all(copy(file).parent().unwrap()).unwrap();
            fs::copy(file, copy(file)).unwrap();
        }
        for file in &files {
            let whole = fs::read(file).unwrap();
            let broken: [&[u8]; 6] =
                [b"null", b"[]", b"{}", b"[null, 1, \"x\", {}]", &whole[..whole.len() / 2], &[0xFF, 0, 9]];
            for bytes in broken {
                fs::write(copy(file), bytes).unwrap();
                let dataset = load(&[folder.path().to_path_buf()], &|_| {});
                let listed = |f: &PathBuf| dataset.files.iter().any(|r| r.path == copy(f));
                assert!(files.iter().all(listed), "{}", file.display());
                drop(join(&dataset));
            }
            fs::write(copy(file), &whole).unwrap();
        }
    }
}

#[test]
fn the_extension_decides_nothing() {
    for (id, name, bytes) in samples() {
        if !formats().any(|f| f.id == id && matches!(f.reader, Reader::File { .. })) {
            continue;
        }
        let seen = recognise(&name, bytes.clone()).unwrap();
        assert_eq!(seen[0].0.id, id, "{:?}", seen.iter().map(|(f, m)| (f.id, &m.reason)).collect::<Vec<_>>());
        let file = load_bytes(Path::new("no-extension"), bytes);
        assert_eq!(file.report.format, Some(id.as_str()), "{}", file.report.reason);
    }
}

/// Found by fuzzing: a reason that quotes the file is one line all the same.
#[test]
fn a_reason_is_one_line_whatever_it_quotes() {
    let text = br#"{"info": {}, "messages": [{"role": "system", "content": "s"}], "trajectory_format": "mini-swe-agent-1.1\n\u001b[31m"}"#;
    let reason = load_bytes(Path::new("x"), text.to_vec()).report.reason;
    assert!(reason.contains("mini-swe-agent-1.1") && !reason.contains(char::is_control), "{reason:?}");
    let reason = load_bytes(Path::new("x"), b"{\"what\\n\": 1}".to_vec()).report.reason;
    assert!(!reason.contains(char::is_control), "{reason:?}");
}

/// Found by fuzzing: texts were made valid UTF-8 before their lines were counted, so every place behind the first bad
/// byte was wrong.
#[test]
fn bytes_that_are_no_utf8_move_no_place() {
    let text = b"# aider chat started at 2024-05-01 10:00:00\n\n#### a\xFF\xFE\xFD b  \n\nThe answer.\n";
    let file = load_bytes(Path::new("x"), text.to_vec());
    let answer = file.trajectories[0].steps.iter().find(|s| s.text.starts_with("The answer")).unwrap();
    let span = answer.raw.span;
    assert_eq!(&text[span.start as usize..][..span.len as usize], b"The answer.\n");
    let cursor = b"user:\n\xFF\xFF question\nassistant:\nThe answer.\n";
    let file = load_bytes(Path::new("x"), cursor.to_vec());
    for trajectory in &file.trajectories {
        assert!(trajectory.steps.iter().all(|s| s.raw.span.start + s.raw.span.len <= cursor.len() as u64));
    }
}

/// The samples of the formats a benchmark run leaves behind.
const RUN: [&str; 14] = [
    "openhands-0",
    "openhands-1",
    "openhands-0-events",
    "openhands-1-events",
    "sweagent-0",
    "sweagent-1",
    "mini-swe-agent-1",
    "mini-swe-agent-2",
    "labelled",
    "tasks",
    "predictions",
    "report-instance",
    "report-run",
    "chat",
];

#[test]
fn a_folder_of_everything_opens_and_comes_together() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (id, name, bytes) in samples() {
        let Some(i) = RUN.iter().position(|run| *run == id) else { continue };
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
        let file = load_bytes(&name, encoder.finish().unwrap());
        assert_eq!(file.report.format, Some(id.as_str()));
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

/// A sample with one of its values, at any depth of any record, replaced.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let parsed: Vec<Vec<Value>> = samples()
        .iter()
        .filter_map(|(_, _, bytes)| {
            serde_json::Deserializer::from_slice(bytes).into_iter().collect::<Result<_, _>>().ok()
        })
        .collect();
    (0..parsed.len(), any::<prop::sample::Index>(), values()).prop_map(move |(which, place, new)| {
        let mut records = parsed[which].clone();
        let mut at = place.index(records.iter().map(count).sum());
        let lines = records.iter_mut().fold(String::new(), |mut lines, record| {
            let size = count(record);
            if at < size {
                replace(record, &mut at, &new);
                at = usize::MAX;
            } else if at != usize::MAX {
                at -= size;
            }
            lines.push_str(&record.to_string());
            lines.push('\n');
            lines
        });
        lines.into_bytes()
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
        assert!(formats().any(|f| f.id == trajectory.format));
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
    fn no_cut_sample_panics(which: prop::sample::Index, place: prop::sample::Index) {
        let samples = samples();
        let (_, _, bytes) = &samples[which.index(samples.len())];
        survives(bytes[..place.index(bytes.len())].to_vec());
    }
}
