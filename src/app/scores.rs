//! What the critic has said so far of every trajectory.

use std::collections::HashMap;

use crate::critic::{ActionScore, Drop, ScoreError, Scores, drops};
use crate::trajectory::TrajectoryKey;

/// How far the scoring of a trajectory is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Status {
    /// Asked for, nothing came yet.
    #[default]
    Waiting,
    /// Rewards are coming in.
    Running,
    /// All there.
    Done,
    /// Not possible: one line.
    Failed(String),
    /// There is nothing to score: no action.
    Nothing,
}

/// The critic's word on one trajectory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scoring {
    /// How far it is.
    pub status: Status,
    /// One entry an action; unscored ones without a reward.
    pub actions: Vec<ActionScore>,
    /// The trajectory's score; known when done.
    pub score: Option<f64>,
    /// Drops in order of position.
    pub drops: Vec<Drop>,
    /// The final result, with what was cut and the warnings.
    pub result: Option<Box<Scores>>,
}

impl Scoring {
    /// Reward of an action; `None` = unscored.
    pub fn reward(&self, action: usize) -> Option<f64> {
        self.actions.get(action).and_then(|s| s.reward)
    }

    /// Reward of an action less that of the nearest scored action before it.
    pub fn change(&self, action: usize) -> Option<f64> {
        let now = self.reward(action)?;
        let before = self.actions.get(..action)?.iter().rev().find_map(|s| s.reward)?;
        Some(now - before)
    }

    /// The largest drop, the earlier of equals.
    pub fn largest_drop(&self) -> Option<Drop> {
        self.drops.iter().copied().fold(None, |best: Option<Drop>, d| match best {
            Some(b) if b.size() >= d.size() => Some(b),
            _ => Some(d),
        })
    }

    /// Is there a drop at this action?
    pub fn drop_at(&self, action: usize) -> Option<Drop> {
        let at = self.drops.binary_search_by_key(&action, |d| d.action).ok()?;
        self.drops.get(at).copied()
    }

    /// Smallest and largest reward.
    pub fn range(&self) -> Option<(f64, f64)> {
        let rewards = self.actions.iter().filter_map(|s| s.reward);
        rewards.fold(None, |range: Option<(f64, f64)>, r| Some(range.map_or((r, r), |(lo, hi)| (lo.min(r), hi.max(r)))))
    }

    /// Actions that have a reward.
    pub fn scored(&self) -> usize {
        self.actions.iter().filter(|s| s.reward.is_some()).count()
    }
}

/// All of them, and the rule for drops.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScoreBook {
    by_key: HashMap<TrajectoryKey, Scoring>,
    /// A fall of at least this much between neighbouring rewards is a drop.
    pub drop_threshold: f64,
    /// Smallest and largest reward and score seen, over everything.
    pub range: Option<(f64, f64)>,
}

impl ScoreBook {
    /// What is known of a trajectory; `None` = never asked for.
    pub fn get(&self, key: &TrajectoryKey) -> Option<&Scoring> {
        self.by_key.get(key)
    }

    /// Trajectories that are finished (scored, impossible or without actions), and all that were asked for.
    pub fn progress(&self) -> (usize, usize) {
        let finished = |s: &&Scoring| !matches!(s.status, Status::Waiting | Status::Running);
        (self.by_key.values().filter(finished).count(), self.by_key.len())
    }

    /// Trajectories that could not be scored.
    pub fn failed(&self) -> usize {
        self.by_key.values().filter(|s| matches!(s.status, Status::Failed(_))).count()
    }

    /// Forgets everything: another critic, another rule.
    pub fn clear(&mut self, drop_threshold: f64) {
        *self = Self { drop_threshold, ..Self::default() };
    }

    /// Notes that a trajectory with so many actions was asked for. `false` if it was before.
    pub fn ask(&mut self, key: TrajectoryKey, actions: usize) -> bool {
        if self.by_key.contains_key(&key) {
            return false;
        }
        let status = if actions == 0 { Status::Nothing } else { Status::Waiting };
        let blank = |action| ActionScore { action, reward: None, token_index: None, after_cut: false };
        let actions = (0..actions).map(blank).collect();
        self.by_key.insert(key, Scoring { status, actions, ..Scoring::default() });
        true
    }

    /// Forgets a trajectory: it is another one now, and is asked for again.
    pub fn forget(&mut self, key: &TrajectoryKey) {
        self.by_key.remove(key);
    }

    /// One reward. `false` if nobody asked for it.
    pub fn partial(&mut self, key: &TrajectoryKey, score: ActionScore) -> bool {
        let Some(scoring) = self.by_key.get_mut(key) else {
            return false;
        };
        let last_known = scoring.actions.iter().rposition(|s| s.reward.is_some());
        let Some(slot) = scoring.actions.get_mut(score.action) else {
            return false;
        };
        *slot = score;
        scoring.status = Status::Running;
        if let Some(reward) = score.reward {
            widen(&mut self.range, reward);
        }
        // Rewards come from the left; then only the new pair can be a drop. Anything else is looked through again.
        let tail = last_known.filter(|&before| before < score.action);
        match tail {
            Some(before) => {
                let pair = [scoring.actions[before], score];
                scoring.drops.extend(drops(&pair, self.drop_threshold));
            }
            None => scoring.drops = by_position(&scoring.actions, self.drop_threshold),
        }
        true
    }

    /// The final result. `false` if nobody asked for it.
    pub fn done(&mut self, key: &TrajectoryKey, scores: Box<Scores>) -> bool {
        let Some(scoring) = self.by_key.get_mut(key) else {
            return false;
        };
        scoring.status = Status::Done;
        scoring.actions.clone_from(&scores.actions);
        scoring.score = scores.score;
        scoring.drops = by_position(&scoring.actions, self.drop_threshold);
        for number in scoring.actions.iter().filter_map(|s| s.reward).chain(scores.score) {
            widen(&mut self.range, number);
        }
        scoring.result = Some(scores);
        true
    }

    /// There will be no result. A cancelled one waits again.
    pub fn failed_with(&mut self, key: &TrajectoryKey, error: &ScoreError) -> bool {
        let Some(scoring) = self.by_key.get_mut(key) else {
            return false;
        };
        scoring.status = match error {
            ScoreError::Cancelled => Status::Waiting,
            ScoreError::NoActions => Status::Nothing,
            ScoreError::Engine(why) => Status::Failed(crate::text::one_line(why)),
        };
        true
    }
}

fn widen(range: &mut Option<(f64, f64)>, number: f64) {
    if number.is_finite() {
        *range = Some(range.map_or((number, number), |(lo, hi)| (lo.min(number), hi.max(number))));
    }
}

fn by_position(actions: &[ActionScore], threshold: f64) -> Vec<Drop> {
    let mut found = drops(actions, threshold);
    found.sort_by_key(|d| d.action);
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn key(n: usize) -> TrajectoryKey {
        TrajectoryKey { path: PathBuf::from("a.traj"), record: n }
    }

    fn score(action: usize, reward: Option<f64>) -> ActionScore {
        ActionScore { action, reward, token_index: None, after_cut: false }
    }

    #[test]
    fn rewards_fill_from_the_left_and_find_their_drops() {
        let mut book = ScoreBook { drop_threshold: 0.1, ..ScoreBook::default() };
        assert!(book.ask(key(0), 4));
        assert!(!book.ask(key(0), 4));
        for (action, reward) in [(0, Some(0.5)), (1, None), (2, Some(0.2))] {
            assert!(book.partial(&key(0), score(action, reward)));
        }
        let scoring = book.get(&key(0)).unwrap();
        assert_eq!(scoring.status, Status::Running);
        assert_eq!(scoring.drops, [Drop { action: 2, from: 0.5, to: 0.2 }]);
        assert_eq!(scoring.change(2), Some(0.2 - 0.5));
        assert_eq!(scoring.change(1), None);
        assert_eq!(scoring.reward(3), None);
        assert_eq!(scoring.score, None);
    }

    #[test]
    fn partial_results_in_any_order_end_like_the_whole() {
        let rewards = [0.9, 0.5, 0.6, 0.1];
        let mut book = ScoreBook { drop_threshold: 0.1, ..ScoreBook::default() };
        book.ask(key(0), 4);
        for action in [2, 0, 3, 1] {
            book.partial(&key(0), score(action, Some(rewards[action])));
        }
        let parts = book.get(&key(0)).unwrap().drops.clone();
        let actions = rewards.iter().enumerate().map(|(i, r)| score(i, Some(*r))).collect();
        book.done(&key(0), Box::new(Scores { actions, score: Some(0.1), ..Scores::default() }));
        assert_eq!(book.get(&key(0)).unwrap().drops, parts);
        assert_eq!(parts.iter().map(|d| d.action).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(book.get(&key(0)).unwrap().largest_drop().unwrap().action, 3);
        assert_eq!(book.range, Some((0.1, 0.9)));
    }

    #[test]
    fn what_nobody_asked_for_is_refused() {
        let mut book = ScoreBook::default();
        assert!(!book.partial(&key(7), score(0, Some(1.0))));
        assert!(!book.done(&key(7), Box::default()));
        assert!(!book.failed_with(&key(7), &ScoreError::NoActions));
    }

    #[test]
    fn progress_counts_what_is_finished_whatever_the_end() {
        let mut book = ScoreBook::default();
        for (n, actions) in [(0, 0), (1, 2), (2, 2), (3, 2)] {
            book.ask(key(n), actions);
        }
        book.failed_with(&key(1), &ScoreError::Engine("no memory".to_owned()));
        book.failed_with(&key(2), &ScoreError::Cancelled);
        assert_eq!(book.progress(), (2, 4));
        assert_eq!(book.failed(), 1);
    }
}
