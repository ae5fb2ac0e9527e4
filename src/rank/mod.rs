//! Scores, labels and a person's moves to an order of attempts. Pure.
//!
//! The critic's order is by score, highest first; what must never be chosen blindly comes last: attempts without a
//! score, and patches that are empty or missing. A person's moves and vetoes ([`Manual`]) are laid over it and can
//! be undone one by one. [`metrics`] says what an order is worth where labels exist.

mod manual;
pub mod metrics;

pub use manual::{Manual, Move};

use crate::patch;
use crate::trajectory::{Issue, Outcome};

/// What ranking needs to know of one attempt.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Candidate {
    /// Index of the attempt in its issue.
    pub attempt: usize,
    /// The critic's score of the trajectory; `None` = unscored.
    pub score: Option<f64>,
    /// Label.
    pub outcome: Outcome,
    /// SHA-256 of the exact patch bytes; `None` if there is no patch at all.
    pub patch_sha256: Option<String>,
    /// Key under which patches count as the same (line ends, index lines and outer blank lines aside); `None` for
    /// empty and missing patches, which are never twins.
    pub patch_key: Option<String>,
    /// The patch is missing, empty or blank.
    pub empty: bool,
    /// There is text where the patch should be, but no diff in it (a flag, a traceback, an error text).
    pub not_a_diff: bool,
    /// The patch changes test files.
    pub touches_tests: bool,
}

/// Why an attempt stands behind the ones that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A person vetoed it.
    Vetoed,
    /// It has no patch, or an empty one: submitting it cannot resolve anything.
    EmptyPatch,
    /// What stands in place of the patch is no diff.
    NotADiff,
    /// The critic gave it no score.
    Unscored,
}

impl Reason {
    /// The words in JSON and on screen.
    pub fn text(self) -> &'static str {
        match self {
            Self::Vetoed => "vetoed",
            Self::EmptyPatch => "empty patch",
            Self::NotADiff => "not a diff",
            Self::Unscored => "unscored",
        }
    }

    /// Is an attempt with this reason never chosen? An unscored one may be chosen if a person puts it first.
    pub fn excludes(self) -> bool {
        matches!(self, Self::Vetoed | Self::EmptyPatch | Self::NotADiff)
    }
}

/// One row of a ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// 1-based place.
    pub rank: usize,
    /// Place in the critic's own order, before any manual move.
    pub critic_rank: usize,
    /// The candidate.
    pub candidate: Candidate,
    /// Attempts (indices in the issue) with the same patch after normalising, this one excluded.
    pub twins: Vec<usize>,
    /// Why it is held back, if it is.
    pub reason: Option<Reason>,
    /// The person's words for a veto.
    pub note: Option<String>,
}

/// The order of one issue's attempts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranking {
    /// Best first.
    pub rows: Vec<Row>,
    /// Index (in the issue) of the attempt that would be submitted; `None` if every one is excluded, or none is
    /// scored and nobody chose by hand.
    pub chosen: Option<usize>,
}

/// Makes the candidates of an issue; `score` gives the score of attempt `i`.
pub fn candidates(issue: &Issue, score: impl Fn(usize) -> Option<f64>) -> Vec<Candidate> {
    let of = |(i, attempt): (usize, &crate::trajectory::Attempt)| {
        let patch = attempt.patch();
        let empty = patch.is_none_or(|p| p.trim().is_empty());
        let parsed = patch.map(patch::parse);
        Candidate {
            attempt: i,
            score: score(i).filter(|s| s.is_finite()),
            outcome: attempt.label.outcome,
            patch_sha256: patch.map(patch::sha256),
            patch_key: patch.filter(|_| !empty).map(|p| patch::sha256(&patch::normalize(p))),
            empty,
            not_a_diff: !empty && parsed.as_ref().is_some_and(|p| p.files.is_empty()),
            touches_tests: parsed.is_some_and(|p| p.touches_tests()),
        }
    };
    issue.attempts.iter().enumerate().map(of).collect()
}

/// Orders candidates: the critic's order, then a person's moves and vetoes over it.
pub fn order(candidates: &[Candidate], manual: &Manual) -> Ranking {
    let mut critic: Vec<usize> = (0..candidates.len()).collect();
    critic.sort_by(|&a, &b| compare(&candidates[a], &candidates[b]));
    let by_hand = manual.apply(&critic);
    // A vetoed attempt goes last, whatever else was done to it; the others keep the order they were given.
    let (kept, vetoed): (Vec<usize>, Vec<usize>) = by_hand.into_iter().partition(|&i| !manual.is_vetoed(i));
    let rows: Vec<Row> = kept
        .into_iter()
        .chain(vetoed)
        .enumerate()
        .map(|(place, i)| Row {
            rank: place + 1,
            critic_rank: critic.iter().position(|&c| c == i).map_or(0, |p| p + 1),
            candidate: candidates[i].clone(),
            twins: twins(candidates, i),
            reason: reason(&candidates[i], manual.is_vetoed(i)),
            note: manual.note(i).map(str::to_owned),
        })
        .collect();
    let chosen = choose(&rows, manual);
    Ranking { rows, chosen }
}

/// Highest score first; unscored after scored; empty patches after everything; ties in the order of attempts.
fn compare(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    let class = |c: &Candidate| (c.empty || c.not_a_diff, c.score.is_none());
    let score = |c: &Candidate| c.score.unwrap_or(f64::NEG_INFINITY);
    class(a).cmp(&class(b)).then(score(b).total_cmp(&score(a))).then(a.attempt.cmp(&b.attempt))
}

fn reason(candidate: &Candidate, vetoed: bool) -> Option<Reason> {
    if vetoed {
        Some(Reason::Vetoed)
    } else if candidate.empty {
        Some(Reason::EmptyPatch)
    } else if candidate.not_a_diff {
        Some(Reason::NotADiff)
    } else if candidate.score.is_none() {
        Some(Reason::Unscored)
    } else {
        None
    }
}

fn twins(candidates: &[Candidate], i: usize) -> Vec<usize> {
    let Some(key) = &candidates[i].patch_key else {
        return Vec::new();
    };
    let same = |(j, c): (usize, &Candidate)| (j != i && c.patch_key.as_ref() == Some(key)).then_some(c.attempt);
    candidates.iter().enumerate().filter_map(same).collect()
}

/// The first row that may be submitted. An unscored attempt is chosen only where a person moved something: with no
/// score and no hand there is no reason to prefer one.
fn choose(rows: &[Row], manual: &Manual) -> Option<usize> {
    let first = rows.iter().find(|r| !r.reason.is_some_and(Reason::excludes))?;
    (first.candidate.score.is_some() || manual.has_moves()).then_some(first.candidate.attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn candidate(attempt: usize, score: Option<f64>, outcome: Outcome) -> Candidate {
        let key = Some(format!("patch-{attempt}"));
        Candidate { attempt, score, outcome, patch_sha256: key.clone(), patch_key: key, ..Candidate::default() }
    }

    fn attempts(ranking: &Ranking) -> Vec<usize> {
        ranking.rows.iter().map(|r| r.candidate.attempt).collect()
    }

    #[test]
    fn orders_by_score_with_unscored_and_empty_last() {
        let mut c: Vec<Candidate> = [Some(0.2), None, Some(0.9), Some(0.9), Some(0.99)]
            .into_iter()
            .enumerate()
            .map(|(i, s)| candidate(i, s, Outcome::Unknown))
            .collect();
        c[4].empty = true;
        c[4].patch_key = None;
        c[0].not_a_diff = true;
        let ranking = order(&c, &Manual::default());
        assert_eq!(attempts(&ranking), [2, 3, 1, 4, 0]);
        assert_eq!(ranking.chosen, Some(2));
        assert_eq!(ranking.rows[2].reason, Some(Reason::Unscored));
        assert_eq!(ranking.rows[3].reason, Some(Reason::EmptyPatch));
        assert_eq!(ranking.rows[4].reason, Some(Reason::NotADiff));
    }

    #[test]
    fn nothing_is_chosen_without_a_score_or_a_hand() {
        let c = [candidate(0, None, Outcome::Unknown), candidate(1, None, Outcome::Unknown)];
        assert_eq!(order(&c, &Manual::default()).chosen, None);
        let mut manual = Manual::default();
        manual.shift(&[0, 1], 1, -1);
        assert_eq!(order(&c, &manual).chosen, Some(1));
    }

    #[test]
    fn twins_are_by_normalised_patch_and_never_empty() {
        let mut c = [
            candidate(0, Some(0.1), Outcome::Unknown),
            candidate(1, Some(0.2), Outcome::Unknown),
            candidate(2, Some(0.3), Outcome::Unknown),
        ];
        c[2].patch_key = c[0].patch_key.clone();
        let ranking = order(&c, &Manual::default());
        assert_eq!(ranking.rows[0].twins, [0]);
        assert_eq!(ranking.rows[1].twins, [] as [usize; 0]);
        assert_eq!(ranking.rows[2].twins, [2]);
    }

    #[test]
    fn a_veto_puts_last_and_excludes() {
        let c = [candidate(0, Some(0.9), Outcome::Unknown), candidate(1, Some(0.1), Outcome::Unknown)];
        let mut manual = Manual::default();
        manual.veto(0, "edits the tests");
        let ranking = order(&c, &manual);
        assert_eq!(attempts(&ranking), [1, 0]);
        assert_eq!(ranking.chosen, Some(1));
        assert_eq!(ranking.rows[1].note.as_deref(), Some("edits the tests"));
        assert_eq!(ranking.rows[1].critic_rank, 1);
    }
}
