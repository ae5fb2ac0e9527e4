//! Real files: the corpus, the labelled runs and the cases, where they lie beside the project.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use trajscope::formats::{formats, load};
use trajscope::testing::shared;

#[test]
fn labelled_runs_have_steps_and_their_issue_text() {
    let Some(shared) = shared() else { return };
    let seen = AtomicUsize::new(0);
    let path = shared.join("labelled/trajectories/openhands_sonnet35_verified50.jsonl.gz");
    let dataset = load(&[path], &|_| {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(seen.into_inner(), 1);
    assert_eq!(dataset.trajectories.len(), 38);
    assert!(dataset.trajectories.iter().all(|t| t.format == "labelled" && t.task.is_some() && t.n_actions() > 0));
    assert!(dataset.trajectories.iter().all(|t| t.patch.is_none()), "this source lost its patches");
}

#[test]
fn every_trajectory_names_a_format_of_the_table() {
    let Some(shared) = shared() else { return };
    let dataset = load(&[shared.join("corpus"), shared.join("cases")], &|_| {});
    for trajectory in &dataset.trajectories {
        assert!(formats().any(|f| f.id == trajectory.format), "{}", trajectory.source.path.display());
    }
    for file in &dataset.files {
        assert!(!file.reason.is_empty() && !file.reason.contains('\n'), "{}: {}", file.path.display(), file.reason);
    }
}

#[test]
fn paths_that_cannot_be_read_are_listed() {
    let dataset = load(&[PathBuf::from("/nowhere/at/all")], &|_| {});
    assert_eq!(dataset.files.len(), 1);
    assert_eq!(dataset.files[0].reason, "no such file or folder");
}
