use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;

const SESSION: &str = include_str!("../../../tests/fixtures/formats/pi/--w--/2026-05-01T10-00-00-000Z_p-1.jsonl");

fn load(text: &str) -> LoadedFile {
    load_bytes(Path::new("x/s.jsonl"), text.as_bytes().to_vec())
}

fn roles(t: &Trajectory) -> String {
    t.steps.iter().map(|s| format!("{:?}", s.role).chars().next().unwrap()).collect()
}

#[test]
fn the_branch_that_was_followed_is_shown_with_its_costs() {
    let file = load(SESSION);
    assert_eq!(file.report.format, Some("pi"));
    let t = &file.trajectories[0];
    assert_eq!(roles(t), "MUATMUMMAMMUM");
    let action = &t.steps[2];
    assert_eq!((action.text.as_str(), action.reasoning.as_deref()), ("I read.", Some("read")));
    assert_eq!(action.tokens, Some(Tokens { input: 16, cached: Some(5), output: 3 }));
    assert_eq!((action.cost, action.action.as_deref()), (Some(0.25), Some("read ledger.py")));
    assert_eq!(t.steps[3].text, "return 0\n[image image/png]");
    assert_eq!((t.steps[5].text.as_str(), t.steps[5].exit_code), ("$ pytest -q\n1 failed", Some(1)));
    assert_eq!(t.steps[6].text, "compaction: Rows are to be summed.");
    assert_eq!((t.steps[7].text.as_str(), t.steps[7].is_error), ("error: overloaded", Some(true)));
    assert_eq!((t.usage.cost, t.usage.tokens_in, t.usage.api_calls), (Some(0.75), Some(42), Some(2)));
    assert_eq!((t.session.as_deref(), t.model.as_deref()), (Some("p-1"), Some("model-b")));
    assert_eq!(t.parent, None, "a fork is no sub-agent");
    let remarks: Vec<&str> = file.report.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert!(remarks.contains(&"1 abandoned branch with 2 records left out"), "{remarks:?}");
    assert!(remarks.contains(&"1 record of unknown type `unheard_of` is shown raw"), "{remarks:?}");
}

#[test]
fn version_one_has_no_ids_and_no_tree() {
    let lines = [
        json!({"type": "session", "id": "s", "timestamp": "t", "cwd": "/w", "provider": "x", "modelId": "m"}),
        json!({"type": "message", "timestamp": "t", "message": {"role": "user", "content": "go", "timestamp": 5}}),
        json!({"type": "message", "timestamp": "t", "message": {"role": "assistant", "content": [], "stopReason": "aborted", "errorMessage": "stopped"}}),
        json!({"type": "message", "timestamp": "t", "message": {"role": "oracle", "content": "?"}}),
    ];
    let file = load(&lines.map(|l| l.to_string()).join("\n"));
    let t = &file.trajectories[0];
    assert_eq!((roles(t).as_str(), t.steps[1].text.as_str()), ("UMM", "aborted: stopped"));
    assert_eq!((t.steps[0].id.as_deref(), t.model.as_deref()), (Some("5"), Some("m")));
    assert!(file.report.diagnostics.iter().any(|d| d.message.contains("`oracle`")));
}
