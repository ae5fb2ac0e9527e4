use std::fs;

use super::super::load::load;
use super::*;
use crate::trajectory::Role::{Assistant, System, Tool, User};
use crate::trajectory::{Dataset, join};

fn sample() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats/autocoderover")
}

fn open(dir: &Path) -> Dataset {
    load(&[dir.to_owned()], &|_| {})
}

#[test]
fn a_task_is_one_trajectory_of_its_last_conversations() {
    let dataset = open(&sample());
    let run: Vec<&Trajectory> = dataset.trajectories.iter().map(std::convert::AsRef::as_ref).collect();
    let t = run.iter().find(|t| t.source.path.to_string_lossy().contains("acr-run-1")).unwrap();
    let roles: Vec<Role> = t.steps.iter().map(|s| s.role).collect();
    assert_eq!(roles, [System, User, Assistant, Tool, Assistant, Tool, System, User, Assistant]);
    assert_eq!(t.steps[2].action.as_deref(), Some("search_method(\"half\")"));
    assert_eq!((t.steps[3].is_error, t.steps[5].is_error), (None, Some(true)));
    let raw = &t.steps[8].raw;
    assert!(raw.file.as_ref().unwrap().ends_with("debug_agent_write_patch_2.json"));
    assert_eq!(&*raw.pointer, "/7");
    assert_eq!((t.instance_id.as_deref(), t.model.as_deref()), (Some("o__r-1"), Some("gpt-x")));
    assert_eq!(t.exit_status.as_deref(), Some("applicable_patch"));
    assert_eq!((t.usage.cost, t.usage.tokens_in, t.usage.tokens_out), (Some(0.5), Some(900), Some(100)));
    assert!(t.patch.as_deref().unwrap().contains("+    return n // 2"), "the last one extracted");
    assert!(!t.patch.as_deref().unwrap().contains("GOLD"));
    assert_eq!(t.task.as_deref(), Some("half(3) should be 1\n"));
    let codes: Vec<&str> = t.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["acr.proxy", "acr.calls"]);
}

#[test]
fn outputs_are_attempts_and_runs_too() {
    let dataset = open(&sample());
    let issues = join(&dataset);
    let issue = issues.iter().find(|i| i.name() == "o__r-1").unwrap();
    let names: Vec<&str> = issue.attempts.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names.len(), 3);
    assert!(names.iter().any(|n| n.contains("output_0")) && names.iter().any(|n| n.contains("output_1")), "{names:?}");
    let labels: Vec<Option<bool>> = issue.attempts.iter().map(|a| a.label.outcome.as_bool()).collect();
    assert_eq!(labels[0], Some(true), "the report of the run lies two folders above");
    let second: Vec<_> = issue.attempts[1..].iter().map(|a| a.patch()).collect();
    assert_eq!(second[0], Some(""), "no try could be applied");
    assert!(second[1].is_some_and(|p| p.contains("chosen")));
    assert!(dataset.predictions.is_empty(), "neither the developer's patch nor the extracted ones are predictions");
}

#[test]
fn broken_members_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let task = dir.path().join("o__r-2_2024-04-06_13-30-51");
    fs::create_dir_all(&task).unwrap();
    fs::write(task.join("extract_status.json"), "{\"extract_status\": [\"RAW_PATCH_BUT_UNPARSED\"]}").unwrap();
    fs::write(task.join("conversation_round_0.json"), "{\"no\": 1}").unwrap();
    let dataset = open(dir.path());
    let t = &dataset.trajectories[0];
    assert_eq!((t.instance_id.as_deref(), t.patch.as_deref()), (Some("o__r-2"), Some("")));
    assert_eq!(t.exit_status.as_deref(), Some("RAW_PATCH_BUT_UNPARSED"));
    assert_eq!(t.diagnostics[0].code, "acr.not-a-conversation");
}
