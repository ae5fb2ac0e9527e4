//! What is known of one attempt without any critic: its patch, its badges, its loops, its cost.

use crate::patch;
use crate::trajectory::{Attempt, Severity, Trajectory};

/// A remark on an attempt short enough for a table cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Badge {
    /// Another attempt at the issue has the same patch.
    Twin,
    /// The patch is there and empty.
    EmptyPatch,
    /// Nothing says what the patch is.
    NoPatch,
    /// The patch cannot be read as a diff.
    BadPatch,
    /// The patch changes test files.
    EditsTests,
    /// The patch adds files an agent left behind: scratch scripts, build output.
    Junk,
    /// The run ended with an error.
    Error,
    /// The run was stopped by a limit (cost, context, time, steps).
    Limit,
    /// The same actions come again and again.
    Loop,
    /// The critic did not read the whole run.
    Cut,
    /// The file is incomplete or partly unreadable.
    Damaged,
}

impl Badge {
    /// Every badge, in the order they are shown.
    pub const ALL: [Self; 11] = [
        Self::Twin,
        Self::EmptyPatch,
        Self::NoPatch,
        Self::BadPatch,
        Self::EditsTests,
        Self::Junk,
        Self::Error,
        Self::Limit,
        Self::Loop,
        Self::Cut,
        Self::Damaged,
    ];

    /// The word in the cell; also what the filter finds.
    pub fn label(self) -> &'static str {
        match self {
            Self::Twin => "twin",
            Self::EmptyPatch => "empty",
            Self::NoPatch => "no-patch",
            Self::BadPatch => "bad-patch",
            Self::EditsTests => "tests",
            Self::Junk => "junk",
            Self::Error => "error",
            Self::Limit => "limit",
            Self::Loop => "loop",
            Self::Cut => "cut",
            Self::Damaged => "damaged",
        }
    }

    /// What it means, for the help.
    pub fn help(self) -> &'static str {
        match self {
            Self::Twin => "another attempt at the issue has the same patch",
            Self::EmptyPatch => "the candidate patch is empty",
            Self::NoPatch => "no file says what the candidate patch is",
            Self::BadPatch => "the candidate patch cannot be read as a diff",
            Self::EditsTests => "the candidate patch changes test files",
            Self::Junk => "the candidate patch holds scratch files or build output",
            Self::Error => "the run ended with an error",
            Self::Limit => "the run was stopped by a limit (cost, context, time or steps)",
            Self::Loop => "the agent repeated the same actions at least three times in a row",
            Self::Cut => "the run is longer than what the critic may read; see its input",
            Self::Damaged => "the file is incomplete or partly unreadable; see the list of files",
        }
    }
}

/// The candidate patch in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchFacts {
    /// SHA-256 of the exact bytes.
    pub sha256: String,
    /// SHA-256 of the normalised patch: equal for twins.
    pub normal: String,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// Every file touched, in the patch's order.
    pub files: Vec<FileFacts>,
}

/// One file of a candidate patch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFacts {
    /// Path, safe to draw.
    pub path: String,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
}

/// The same actions repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    /// First action of the first round.
    pub start: usize,
    /// Actions a round.
    pub period: usize,
    /// Whole rounds, at least [`Loop::MIN_ROUNDS`].
    pub rounds: usize,
}

impl Loop {
    /// Fewer rounds are ordinary work (edit, test, edit, test).
    pub const MIN_ROUNDS: usize = 3;
    /// Longer rounds are not looked for.
    pub const MAX_PERIOD: usize = 4;
}

/// What is known of one attempt.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Actions of the trajectory; 0 for a prediction alone, `None` while nobody has counted them.
    pub actions: Option<usize>,
    /// The patch; `None` = nothing says.
    pub patch: Option<PatchFacts>,
    /// Badges that hold whatever the other attempts and the critic say.
    pub badges: Vec<Badge>,
    /// Repetitions found, in order.
    pub loops: Vec<Loop>,
    /// Dollars; `None` = unknown.
    pub cost: Option<f64>,
}

impl Facts {
    /// Reads an attempt.
    pub fn of(attempt: &Attempt) -> Self {
        let trajectory = attempt.trajectory.as_deref();
        let mut badges = Vec::new();
        let patch = attempt.patch().map(|raw| patch_facts(raw, &mut badges));
        if patch.is_none() {
            badges.push(Badge::NoPatch);
        }
        let loops = trajectory.map(find_loops).unwrap_or_default();
        if !loops.is_empty() {
            badges.push(Badge::Loop);
        }
        badges.extend(trajectory.and_then(ending));
        if trajectory.is_some_and(|t| t.diagnostics.iter().any(|d| d.severity == Severity::Error)) {
            badges.push(Badge::Damaged);
        }
        badges.sort_unstable();
        let actions = trajectory.map_or(Some(0), Trajectory::known_actions);
        Self { actions, patch, badges, loops, cost: trajectory.and_then(|t| t.usage.cost) }
    }
}

fn patch_facts(raw: &str, badges: &mut Vec<Badge>) -> PatchFacts {
    let sha256 = patch::sha256(raw);
    if raw.trim().is_empty() {
        badges.push(Badge::EmptyPatch);
        return PatchFacts { sha256, ..PatchFacts::default() };
    }
    let parsed = patch::parse(raw);
    if parsed.state() != patch::PatchState::Diff {
        badges.push(Badge::BadPatch);
    }
    if parsed.touches_tests() {
        badges.push(Badge::EditsTests);
    }
    if parsed.touches(patch::PathClass::Scratch) || parsed.touches(patch::PathClass::Build) {
        badges.push(Badge::Junk);
    }
    let (added, removed) = parsed.stats();
    let file = |f: &patch::FileChange| {
        let (added, removed) = f.stats();
        FileFacts { path: crate::text::one_line(f.path()), added, removed }
    };
    let files = parsed.files.iter().map(file).collect();
    PatchFacts { sha256, normal: patch::sha256(&patch::normalize(raw)), added, removed, files }
}

/// How the run ended, where its own words say so.
fn ending(trajectory: &Trajectory) -> Option<Badge> {
    let status = trajectory.exit_status.as_deref().unwrap_or_default().to_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| status.contains(w));
    if says(&["cost", "context", "limit", "timeout", "time_out", "early_exit", "max_iter"]) {
        Some(Badge::Limit)
    } else if trajectory.error.is_some() || says(&["error", "exception", "fail"]) {
        Some(Badge::Error)
    } else {
        None
    }
}

/// Every stretch in which the same one to four actions are repeated at least three times in a row.
pub fn find_loops(trajectory: &Trajectory) -> Vec<Loop> {
    let prints = trajectory.action_prints().unwrap_or_default();
    let mut loops = Vec::new();
    let mut at = 0;
    while at < prints.len() {
        match longest_loop(&prints[at..]) {
            Some((period, rounds)) => {
                loops.push(Loop { start: at, period, rounds });
                at += period * rounds;
            }
            None => at += 1,
        }
    }
    loops
}

/// The shortest period at which `prints` begins with enough equal rounds.
fn longest_loop(prints: &[u64]) -> Option<(usize, usize)> {
    (1..=Loop::MAX_PERIOD).find_map(|period| {
        let equal = prints.iter().zip(prints.iter().skip(period)).take_while(|(a, b)| a == b).count();
        let rounds = equal / period + 1;
        (rounds >= Loop::MIN_ROUNDS && equal > 0).then_some((period, rounds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::{Role, Step};

    fn run(commands: &[&str]) -> Trajectory {
        let steps = commands.iter().map(|c| Step::new(Role::Assistant, *c)).collect();
        Trajectory { steps, ..Trajectory::default() }
    }

    #[test]
    fn three_equal_actions_are_a_loop_and_two_are_not() {
        assert_eq!(find_loops(&run(&["a", "b", "b", "c"])), []);
        assert_eq!(find_loops(&run(&["a", "b", "b", "b", "c"])), [Loop { start: 1, period: 1, rounds: 3 }]);
    }

    #[test]
    fn rounds_of_several_actions_are_found() {
        let edits = run(&["x", "edit", "test", "edit", "test", "edit", "test", "y"]);
        assert_eq!(find_loops(&edits), [Loop { start: 1, period: 2, rounds: 3 }]);
        assert_eq!(find_loops(&run(&["edit", "test", "edit", "test"])), []);
        assert_eq!(find_loops(&run(&[])), []);
    }

    #[test]
    fn endings_are_read_from_the_runs_own_words() {
        let of = |status: &str| ending(&Trajectory { exit_status: Some(status.to_owned()), ..Trajectory::default() });
        assert_eq!(of("submitted"), None);
        assert_eq!(of("submitted (exit_cost)"), Some(Badge::Limit));
        assert_eq!(of("LimitsExceeded"), Some(Badge::Limit));
        assert_eq!(of("exit_error"), Some(Badge::Error));
    }

    #[test]
    fn an_empty_patch_is_not_a_missing_one() {
        let with = |patch: Option<&str>| {
            let trajectory = Trajectory { patch: patch.map(str::to_owned), ..Trajectory::default() };
            let attempt = Attempt { name: "1".to_owned(), trajectory: Some(trajectory.into()), ..Attempt::default() };
            Facts::of(&attempt).badges
        };
        assert_eq!(with(None), [Badge::NoPatch]);
        assert_eq!(with(Some("\n")), [Badge::EmptyPatch]);
        assert_eq!(with(Some("nothing like a diff")), [Badge::BadPatch]);
    }

    #[test]
    fn every_badge_has_its_own_word() {
        let mut labels = Badge::ALL.map(Badge::label).to_vec();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), Badge::ALL.len());
        assert!(Badge::ALL.iter().all(|b| !b.help().is_empty()));
    }
}
