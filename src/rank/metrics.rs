//! What an order is worth, where labels exist: best@1 and best@k beside random choice and the oracle.
//!
//! Only issues count in which every candidate that could be picked has a label: with an unknown among them, the
//! picked one's outcome, the mean and the oracle cannot all be known.

use super::Ranking;
use crate::trajectory::Outcome;

/// Shares over the issues that count; `None` when none does (0 of 0 is not 0).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Worth {
    /// Issues that count.
    pub issues: usize,
    /// Issues left out because a label is missing.
    pub unlabelled: usize,
    /// Issues left out because nothing was chosen although something could be (no scores yet).
    pub unranked: usize,
    /// Share resolved by the first choice of the order given.
    pub best_at_1: Option<f64>,
    /// Share resolved by a choice at random (the mean of resolved shares).
    pub random_at_1: Option<f64>,
    /// Share of issues that any candidate resolves.
    pub oracle: Option<f64>,
}

/// `best_at_1`, `random_at_1` and `oracle` of one issue; all `None` unless every candidate has a label. `best_at_1`
/// alone is `None` while nothing is chosen although something could be; it is 0 where every candidate is excluded.
pub fn of_issue(ranking: &Ranking) -> (Option<f64>, Option<f64>, Option<f64>) {
    let labels: Option<Vec<bool>> = ranking.rows.iter().map(|r| r.candidate.outcome.as_bool()).collect();
    let Some(labels) = labels.filter(|l| !l.is_empty()) else {
        return (None, None, None);
    };
    let resolved = labels.iter().filter(|&&l| l).count() as f64;
    let number = |yes: bool| if yes { 1.0 } else { 0.0 };
    let all_excluded = ranking.rows.iter().all(|r| r.reason.is_some_and(super::Reason::excludes));
    let best = match chosen_outcome(ranking) {
        Some(outcome) => Some(number(outcome == Outcome::Resolved)),
        None => all_excluded.then_some(0.0),
    };
    (best, Some(resolved / labels.len() as f64), Some(number(resolved > 0.0)))
}

fn chosen_outcome(ranking: &Ranking) -> Option<Outcome> {
    let chosen = ranking.chosen?;
    ranking.rows.iter().find(|r| r.candidate.attempt == chosen).map(|r| r.candidate.outcome)
}

/// Over many issues.
pub fn over<'a>(rankings: impl IntoIterator<Item = &'a Ranking>) -> Worth {
    let mut worth = Worth::default();
    let (mut best, mut random, mut oracle) = (0.0, 0.0, 0.0);
    for ranking in rankings {
        let (b, r, o) = match of_issue(ranking) {
            (Some(b), Some(r), Some(o)) => (b, r, o),
            (None, Some(_), Some(_)) => {
                worth.unranked += 1;
                continue;
            }
            _ => {
                worth.unlabelled += 1;
                continue;
            }
        };
        worth.issues += 1;
        best += b;
        random += r;
        oracle += o;
    }
    let mean = |sum: f64| (worth.issues > 0).then(|| sum / worth.issues as f64);
    Worth { best_at_1: mean(best), random_at_1: mean(random), oracle: mean(oracle), ..worth }
}

/// Expected share of issues resolved when the order picks the best of `k` attempts drawn without replacement,
/// for k = 1…K with K the smallest number of attempts of the counted issues (the ones [`over`] counts).
///
/// An issue with n attempts in order counts, for each place i (0-based, best first), the chance that place i is the
/// best of the k drawn: C(n-1-i, k-1) / C(n, k). At k = 1 this is the random choice, at k = n the order's first.
pub fn best_at_k<'a>(rankings: impl IntoIterator<Item = &'a Ranking>) -> Vec<f64> {
    let labels = |r: &Ranking| -> Option<Vec<bool>> {
        // Excluded attempts are never submitted, so they stand last and count as not resolving.
        let of = |row: &super::Row| {
            let excluded = row.reason.is_some_and(super::Reason::excludes);
            row.candidate.outcome.as_bool().map(|resolved| resolved && !excluded)
        };
        r.rows.iter().map(of).collect::<Option<Vec<bool>>>().filter(|l| !l.is_empty())
    };
    let ranked = |r: &&Ranking| of_issue(r).0.is_some();
    let counted: Vec<Vec<bool>> = rankings.into_iter().filter(ranked).filter_map(labels).collect();
    let most = counted.iter().map(Vec::len).min().unwrap_or(0);
    (1..=most).map(|k| counted.iter().map(|l| best_of_draw(l, k)).sum::<f64>() / counted.len() as f64).collect()
}

fn best_of_draw(labels: &[bool], k: usize) -> f64 {
    let n = labels.len();
    // chance(i) = C(n-1-i, k-1) / C(n, k); from one place to the next it shrinks by (n-i-k) / (n-1-i).
    let mut chance = k as f64 / n as f64;
    let mut sum = 0.0;
    for (i, &resolved) in labels.iter().enumerate() {
        if resolved {
            sum += chance;
        }
        let left = n - 1 - i;
        if left == 0 {
            break;
        }
        chance *= (n - i).saturating_sub(k) as f64 / left as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::{Candidate, Manual, order};

    fn ranking(rows: &[(f64, Option<bool>)]) -> Ranking {
        let candidates: Vec<Candidate> = rows
            .iter()
            .enumerate()
            .map(|(i, &(score, label))| Candidate {
                attempt: i,
                score: Some(score),
                outcome: Outcome::from_bool(label),
                patch_key: Some(i.to_string()),
                ..Candidate::default()
            })
            .collect();
        order(&candidates, &Manual::default())
    }

    #[test]
    fn an_unknown_label_leaves_the_issue_out() {
        let r = ranking(&[(0.9, Some(true)), (0.1, None)]);
        assert_eq!(of_issue(&r), (None, None, None));
        let worth = over([&r]);
        assert_eq!((worth.issues, worth.unlabelled, worth.best_at_1), (0, 1, None));
    }

    #[test]
    fn an_issue_where_nothing_is_chosen_counts_nowhere() {
        let mut r = ranking(&[(0.9, Some(true)), (0.1, Some(false))]);
        r.chosen = None;
        assert_eq!(over([&r]).unranked, 1);
        assert!(best_at_k([&r]).is_empty());
    }

    #[test]
    fn best_random_oracle() {
        let good = ranking(&[(0.9, Some(true)), (0.1, Some(false))]);
        let bad = ranking(&[(0.9, Some(false)), (0.5, Some(false)), (0.4, Some(true)), (0.1, Some(false))]);
        let worth = over([&good, &bad]);
        assert_eq!(worth.best_at_1, Some(0.5));
        assert_eq!(worth.random_at_1, Some(0.375));
        assert_eq!(worth.oracle, Some(1.0));
    }

    #[test]
    fn best_at_k_runs_from_random_to_the_order() {
        let r = ranking(&[(0.9, Some(true)), (0.5, Some(false)), (0.4, Some(true)), (0.1, Some(false))]);
        let curve = best_at_k([&r]);
        assert_eq!(curve.len(), 4);
        assert!((curve[0] - 0.5).abs() < 1e-12);
        // k = 2: first is in 3 of 6 pairs; third is best only of the pair (3rd, 4th).
        assert!((curve[1] - 4.0 / 6.0).abs() < 1e-12);
        assert!((curve[3] - 1.0).abs() < 1e-12);
        assert!(best_at_k(std::iter::empty()).is_empty());
    }
}
