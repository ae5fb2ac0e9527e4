//! The raw record of every step can be shown, and a trajectory whose steps were let go comes back as it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trajscope::formats::{load, load_within, open, raw};
use trajscope::testing::shared;
use trajscope::trajectory::{RawPlace, Role, Step, Trajectory};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats")
}

/// A word of the step that must stand in its record, whatever the record's escapes. Not the longest: behind some
/// observations stands a line that the agent's program adds when it shows them to the model.
fn word(step: &Step) -> Option<&str> {
    step.text.lines().next()?.split(|c: char| !c.is_ascii_alphanumeric()).find(|w| w.len() > 3)
}

/// Steps with a place, all steps, and what is wrong, by format.
#[derive(Default)]
struct Count {
    placed: usize,
    steps: usize,
    wrong: Vec<String>,
}

fn check(trajectory: &Trajectory, count: &mut Count) {
    // Every place is read anew: some of each run are enough.
    for (at, step) in trajectory.steps.iter().enumerate().take(40) {
        count.steps += 1;
        if step.raw == RawPlace::default() {
            continue;
        }
        count.placed += 1;
        let name = || {
            format!("{} #{} step {at} at {:?}", trajectory.source.path.display(), trajectory.source.record, step.raw)
        };
        match raw(trajectory, &step.raw) {
            Err(why) => count.wrong.push(format!("{}: {why}", name())),
            Ok(found) => {
                // Notes say in the program's words what a record is.
                let said = word(step).filter(|_| step.role != Role::Meta);
                if said.is_some_and(|word| !found.text.contains(word)) {
                    count.wrong.push(format!("{}: {:?} is not in it", name(), word(step)));
                }
            }
        }
    }
}

fn check_all(paths: &[PathBuf], most_wrong: usize) {
    let dataset = load(paths, &|_| {});
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for trajectory in &dataset.trajectories {
        check(trajectory, counts.entry(trajectory.format).or_default());
    }
    let wrong: Vec<&String> = counts.values().flat_map(|c| &c.wrong).collect();
    assert!(wrong.len() <= most_wrong, "{} wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(12)]);
    let (placed, steps) = counts.values().fold((0, 0), |(p, s), c| (p + c.placed, s + c.steps));
    assert!(placed * 100 >= steps * 95, "only {placed} of {steps} steps know where they stand");
}

#[test]
fn steps_of_every_format_know_where_they_stand() {
    check_all(&[fixtures()], 0);
}

#[test]
fn steps_of_the_corpus_know_where_they_stand() {
    let Some(shared) = shared() else { return };
    // One of each kind of folder, to keep it short.
    let folders = ["openhands-v0", "openhands-v1-events", "claude-code", "codex", "pi", "inspect", "sft-chat", "atif"];
    check_all(&folders.map(|f| shared.join("corpus").join(f)), 0);
}

#[test]
fn what_was_let_go_comes_back_the_same() {
    let mut paths = vec![fixtures()];
    paths.extend(
        shared()
            .map(|s| s.join("corpus"))
            .into_iter()
            .flat_map(|c| ["claude-code", "pi", "inspect"].map(|f| c.join(f))),
    );
    let (whole, kept) = (load(&paths, &|_| {}), load_within(&paths, Some(0), &|_| {}));
    assert_eq!(whole.trajectories.len(), kept.trajectories.len());
    for (whole, kept) in whole.trajectories.iter().zip(&kept.trajectories) {
        assert!(!kept.is_whole() || kept.steps.is_empty());
        let again = open(kept).unwrap();
        assert_eq!(again.steps, whole.steps, "{}", whole.source.path.display());
        assert_eq!((&again.usage, &again.diagnostics), (&whole.usage, &whole.diagnostics));
        assert_eq!((kept.known_actions(), kept.content_hash()), (whole.known_actions(), whole.content_hash()));
    }
}
