//! ATIF, Harbor, Terminal-Bench and Inspect: the real files, where they lie beside the project.

use std::path::PathBuf;

use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Dataset, Role, Trajectory};

fn corpus(name: &str) -> Option<(PathBuf, Dataset)> {
    let path = shared()?.join("corpus").join(name);
    let dataset = load(std::slice::from_ref(&path), &|_| {});
    Some((path, dataset))
}

/// Steps as ATIF counts them: one for everything said, none for what was observed.
fn atif_steps(t: &Trajectory) -> usize {
    t.steps.iter().filter(|s| s.role != Role::Tool).count()
}

#[test]
fn every_atif_file_is_read_and_continuations_are_one_trajectory() {
    let Some((path, data)) = corpus("atif") else { return };
    assert_eq!(data.trajectories.len(), 12, "14 files, two of which go on in another");
    assert!(data.files.iter().all(|f| matches!(f.format, Some("atif" | "atif-parts"))));
    let of = |file: &str| {
        let file = path.join(file);
        let fits = |t: &&std::sync::Arc<Trajectory>| {
            t.source.path == file || t.steps.iter().any(|s| s.raw.file.as_deref() == Some(file.as_path()))
        };
        data.trajectories.iter().find(fits).unwrap()
    };
    // The manifest's `steps`, for files that stand alone.
    let alone = [
        ("harbor-golden/openhands/hello-world.trajectory.json", 6),
        ("harbor-golden/openhands/hello-world.trajectory.no_function_calling.json", 4),
        ("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.json", 10),
        ("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.summarization-1-answers.json", 7),
        ("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.summarization-1-questions.json", 2),
        ("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.summarization-1-summary.json", 5),
        ("harbor-golden/terminus_2/hello-world-invalid-json.trajectory.json", 5),
        ("harbor-golden/terminus_2/hello-world-timeout.trajectory.json", 4),
        ("inspect_scout/openhands_hello-world.trajectory.json", 6),
        ("inspect_scout/openhands_hello-world.trajectory.no_function_calling.json", 4),
    ];
    for (file, steps) in alone {
        let t = of(file);
        assert_eq!(atif_steps(t), steps, "{file}");
        assert!(t.patch.is_none() && t.usage.cost.is_some(), "{file}");
        let acted = t.steps.iter().filter(|s| s.is_action() && s.action.is_some()).count();
        assert!(acted > 0 || t.agent.as_deref().is_some_and(|a| a.contains("summarization")), "{file}");
    }
    // 5 steps and 8, of which one copied step repeats the first file's.
    let name = "harbor-golden/terminus_2/hello-world-context-summarization-linear-history.trajectory";
    let joined = of(&format!("{name}.json"));
    assert_eq!((atif_steps(joined), joined.n_actions()), (12, 7));
    assert_eq!((joined.usage.tokens_in, joined.usage.tokens_out), (Some(7802), Some(1030)));
    assert_eq!(of(&format!("{name}.cont-1.json")).key(), joined.key());
    let answers =
        of("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.summarization-1-answers.json");
    assert_eq!((answers.n_actions(), answers.parent.is_some()), (1, true));
    assert_eq!(answers.usage.tokens_in, Some(700));
}

#[test]
fn what_a_viewer_holds_is_not_called_atif() {
    let Some((_, data)) = corpus("other/atif-viewer-converted") else { return };
    let t = &data.trajectories[0];
    assert_eq!((t.format, t.steps.len(), t.n_actions()), ("atif-viewer", 5, 4));
}
