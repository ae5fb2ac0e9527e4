//! The Board: all issues, sorted and filtered, with their attempts unfolded where wanted.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::critic::Drop;
use crate::trajectory::{IssueId, Outcome};

use super::data::{Data, IssueEntry, outcome_word};
use super::effect::Effect;
use super::prompt::{Line, Prompt, Purpose};
use super::scores::ScoreBook;
use super::{Action, State, geometry};

/// Column to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SortKey {
    /// Name of the issue.
    #[default]
    Name,
    /// Number of attempts.
    Attempts,
    /// Share of attempts that are resolved.
    Resolved,
    /// Best score.
    Best,
    /// Largest drop.
    Drop,
    /// Cost.
    Cost,
}

impl SortKey {
    /// All of them, in the order in which one key press leads from one to the next.
    pub const ALL: [Self; 6] = [Self::Name, Self::Attempts, Self::Resolved, Self::Best, Self::Drop, Self::Cost];

    /// The column's title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Name => "issue",
            Self::Attempts => "runs",
            Self::Resolved => "resolved",
            Self::Best => "best",
            Self::Drop => "drop",
            Self::Cost => "cost",
        }
    }

    /// Can the order change when a score comes in?
    pub fn depends_on_scores(self) -> bool {
        matches!(self, Self::Best | Self::Drop)
    }

    /// The next one, round and round.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|k| *k == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardRow {
    /// An issue.
    Issue(usize),
    /// An attempt at it.
    Attempt(usize, usize),
}

impl BoardRow {
    /// The issue.
    pub fn issue(self) -> usize {
        match self {
            Self::Issue(issue) | Self::Attempt(issue, _) => issue,
        }
    }
}

/// State of the Board.
#[derive(Debug, Clone, Default)]
pub struct Board {
    /// The rows now, in order.
    pub rows: Vec<BoardRow>,
    /// Number of the selected row.
    pub selected: usize,
    /// Column to sort by.
    pub sort: SortKey,
    /// Turned round. Names ascend and numbers descend unless it is set.
    pub reverse: bool,
    /// Words that an issue must contain.
    pub filter: String,
    /// Issues whose attempts are shown.
    pub unfolded: HashSet<IssueId>,
    /// Issues without a run (only predictions) are shown too, although others have runs.
    pub patches_only: bool,
    /// A person has been here: from now on the selection stays on its issue when more come in.
    pub touched: bool,
}

impl Board {
    /// The selected row.
    pub fn row(&self) -> Option<BoardRow> {
        self.rows.get(self.selected).copied()
    }

    /// Makes the rows anew and keeps the selection on `keep`, or near where it was if that is gone.
    pub fn refresh(&mut self, data: &Data, scores: &ScoreBook, keep: Option<BoardRow>) {
        let words: Vec<String> = self.filter.to_lowercase().split_whitespace().map(str::to_owned).collect();
        // A predictions file often covers a whole benchmark; next to real runs its other issues are in the way.
        let all = self.patches_only || !data.issues.iter().any(IssueEntry::has_run);
        let wanted = |e: &IssueEntry| (all || e.has_run()) && words.iter().all(|w| matches_word(&e.haystack, w));
        let mut order: Vec<usize> = (0..data.issues.len()).filter(|&i| wanted(&data.issues[i])).collect();
        order.sort_by(|&a, &b| self.compare(&data.issues[a], &data.issues[b], scores));
        self.rows.clear();
        for issue in order {
            self.rows.push(BoardRow::Issue(issue));
            if self.unfolded.contains(&data.issues[issue].issue.id) {
                self.rows.extend((0..data.issues[issue].attempts.len()).map(|a| BoardRow::Attempt(issue, a)));
            }
        }
        let of = |row: BoardRow| self.rows.iter().position(|r| *r == row);
        let kept = keep.and_then(|row| of(row).or_else(|| of(BoardRow::Issue(row.issue()))));
        self.selected = kept.unwrap_or(self.selected).min(self.rows.len().saturating_sub(1));
    }

    /// Numbers of the issues shown, in their order.
    pub fn issues(&self) -> Vec<usize> {
        let issue = |r: &BoardRow| match r {
            BoardRow::Issue(i) => Some(*i),
            BoardRow::Attempt(..) => None,
        };
        self.rows.iter().filter_map(issue).collect()
    }

    fn compare(&self, a: &IssueEntry, b: &IssueEntry, scores: &ScoreBook) -> Ordering {
        let name = a.name.cmp(&b.name);
        let turned = |o: Ordering| if self.reverse { o.reverse() } else { o };
        let number = |of: &dyn Fn(&IssueEntry) -> Option<f64>| match (of(a), of(b)) {
            (Some(x), Some(y)) => turned(y.total_cmp(&x)),
            // Unknown is no number: it stands last whichever way the numbers are sorted.
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        let by = match self.sort {
            SortKey::Name => return turned(name),
            SortKey::Attempts => number(&|e| Some(e.attempts.len() as f64)),
            SortKey::Resolved => number(&|e| (e.resolved.1 > 0).then(|| e.resolved.0 as f64 / e.resolved.1 as f64)),
            SortKey::Best => number(&|e| best_score(e, scores).map(|(_, s)| s)),
            SortKey::Drop => number(&|e| largest_drop(e, scores).map(|d| d.size())),
            SortKey::Cost => number(&|e| e.cost().0),
        };
        by.then(name)
    }
}

/// Does an issue contain a word? Anywhere in a word of its own, but outcomes only as a whole: "resolved" is not meant
/// to find what is unresolved.
fn matches_word(haystack: &str, word: &str) -> bool {
    let outcomes = [Outcome::Resolved, Outcome::Unresolved, Outcome::Unknown].map(outcome_word);
    if outcomes.contains(&word) { haystack.lines().any(|line| line == word) } else { haystack.contains(word) }
}

/// The attempt with the highest score, the earlier of equals, and its score.
pub fn best_score(entry: &IssueEntry, scores: &ScoreBook) -> Option<(usize, f64)> {
    let score = |i: usize| Some((i, scores.get(entry.attempts[i].key()?)?.score?));
    let better = |best: Option<(usize, f64)>, next: (usize, f64)| match best {
        Some(b) if b.1 >= next.1 => Some(b),
        _ => Some(next),
    };
    (0..entry.attempts.len()).filter_map(score).fold(None, better)
}

/// The largest drop in any of the attempts.
pub fn largest_drop(entry: &IssueEntry, scores: &ScoreBook) -> Option<Drop> {
    let drops = entry.attempts.iter().filter_map(|a| scores.get(a.key()?)?.largest_drop());
    drops.max_by(|a, b| a.size().total_cmp(&b.size()))
}

/// Attempts whose scoring is finished with a score.
pub fn scored(entry: &IssueEntry, scores: &ScoreBook) -> usize {
    entry.attempts.iter().filter(|a| a.key().and_then(|k| scores.get(k)).is_some_and(|s| s.score.is_some())).count()
}

/// The attempt to open first: the best by score, else the first that has actions, else the first.
pub fn attempt_to_open(entry: &IssueEntry, scores: &ScoreBook) -> usize {
    let with_actions = || entry.attempts.iter().position(|a| a.facts.actions.is_some_and(|n| n > 0));
    best_score(entry, scores).map(|(i, _)| i).or_else(with_actions).unwrap_or(0)
}

/// Makes the rows anew. They stand where they stood unless they are sorted by what has changed.
pub(super) fn refresh(state: &mut State) {
    let keep = state.board.row();
    state.board.refresh(&state.data, &state.scores, keep);
}

/// Shows only issues that contain these words.
pub(super) fn set_filter(state: &mut State, filter: String) {
    if state.board.filter != filter {
        state.board.filter = filter;
        refresh(state);
    }
}

/// Handles an action on the Board; `None` if it is not one of its own.
pub(super) fn handle(state: &mut State, action: Action) -> Option<Vec<Effect>> {
    let last = state.board.rows.len().saturating_sub(1);
    let page = usize::from(geometry::screen(state.size).body.h.saturating_sub(2).max(1));
    let at = state.board.selected;
    state.board.touched = true;
    match action {
        Action::Up => state.board.selected = at.saturating_sub(1),
        Action::Down => state.board.selected = (at + 1).min(last),
        Action::PageUp => state.board.selected = at.saturating_sub(page),
        Action::PageDown => state.board.selected = (at + page).min(last),
        Action::Top => state.board.selected = 0,
        Action::Bottom => state.board.selected = last,
        Action::Left => fold(state, Some(false)),
        Action::Right => fold(state, Some(true)),
        Action::Fold => fold(state, None),
        Action::PatchesOnly => {
            state.board.patches_only = !state.board.patches_only;
            let hidden = state.data.patches_only();
            state.say(match (state.board.patches_only, hidden) {
                (_, 0) => "every issue has a run".to_owned(),
                (true, n) => format!("{n} issues without a run are shown"),
                (false, n) => format!("{n} issues without a run are hidden"),
            });
            refresh(state);
        }
        Action::FoldAll => {
            let all = state.board.unfolded.is_empty();
            let ids = state.data.issues.iter().map(|e| e.issue.id.clone());
            state.board.unfolded = if all { ids.collect() } else { HashSet::new() };
            refresh(state);
        }
        Action::Sort => {
            state.board.sort = state.board.sort.next();
            state.board.reverse = false;
            refresh(state);
        }
        Action::SortReverse => {
            state.board.reverse = !state.board.reverse;
            refresh(state);
        }
        Action::Filter => {
            let line = Line::new(state.board.filter.clone());
            state.prompt = Some(Prompt::Text { purpose: Purpose::Filter, line });
        }
        _ => return None,
    }
    Some(Vec::new())
}

/// Shows (`true`), hides (`false`) or toggles the attempts of the selected issue; its row is selected after hiding.
fn fold(state: &mut State, wanted: Option<bool>) {
    let Some(row) = state.board.row() else {
        return;
    };
    let id = state.data.issues[row.issue()].issue.id.clone();
    let shown = state.board.unfolded.contains(&id);
    if wanted.unwrap_or(!shown) {
        state.board.unfolded.insert(id);
        refresh(state);
    } else {
        state.board.unfolded.remove(&id);
        state.board.refresh(&state.data, &state.scores, Some(BoardRow::Issue(row.issue())));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::app::facts::Badge;
    use crate::critic::{ActionScore, Scores};
    use crate::trajectory::{Role, Source, Step, Trajectory, Usage};

    struct Run(&'static str, &'static str, Option<f64>, Outcome, &'static [f64]);

    fn load(runs: &[Run]) -> (Data, ScoreBook) {
        let mut data = Data::default();
        let mut scores = ScoreBook::default();
        scores.clear(0.1);
        for Run(instance, name, cost, outcome, rewards) in runs {
            let trajectory = Trajectory {
                source: Source { path: format!("{name}/{instance}.traj").into(), ..Source::default() },
                instance_id: Some((*instance).to_owned()),
                outcome: *outcome,
                usage: Usage { cost: *cost, ..Usage::default() },
                steps: rewards.iter().map(|_| Step::new(Role::Assistant, "x")).collect(),
                ..Trajectory::default()
            };
            let key = trajectory.key();
            data.dataset.trajectories.push(Arc::new(trajectory));
            scores.ask(key.clone(), rewards.len());
            let score = |(action, r): (usize, &f64)| ActionScore {
                action,
                reward: Some(*r),
                token_index: None,
                after_cut: false,
            };
            let actions: Vec<ActionScore> = rewards.iter().enumerate().map(score).collect();
            let score = rewards.last().copied();
            scores.done(&key, Box::new(Scores { actions, score, ..Scores::default() }));
        }
        data.rejoin();
        (data, scores)
    }

    fn three() -> (Data, ScoreBook) {
        load(&[
            Run("b", "r1", Some(3.0), Outcome::Resolved, &[0.9, 0.2]),
            Run("b", "r2", Some(1.0), Outcome::Unresolved, &[0.1, 0.3]),
            Run("a", "r1", None, Outcome::Unknown, &[0.1, 0.9]),
            Run("c", "r1", Some(9.0), Outcome::Resolved, &[]),
        ])
    }

    fn names(board: &Board, data: &Data) -> String {
        board.issues().into_iter().map(|i| data.issues[i].name.as_str()).collect()
    }

    #[test]
    fn every_column_sorts_both_ways_with_unknown_last() {
        let (data, scores) = three();
        let expected = [
            (SortKey::Name, "abc", "cba"),
            (SortKey::Attempts, "bac", "acb"),
            (SortKey::Resolved, "cba", "bca"),
            (SortKey::Best, "abc", "bac"),
            (SortKey::Drop, "bac", "bac"),
            (SortKey::Cost, "cba", "bca"),
        ];
        assert_eq!(expected.map(|(key, ..)| key), SortKey::ALL);
        for (sort, forward, backward) in expected {
            for (reverse, wanted) in [(false, forward), (true, backward)] {
                let mut board = Board { sort, reverse, ..Board::default() };
                board.refresh(&data, &scores, None);
                assert_eq!(names(&board, &data), wanted, "{sort:?}, reverse {reverse}");
            }
        }
    }

    #[test]
    fn the_selection_stays_with_its_issue_when_rows_move() {
        let (data, scores) = three();
        let mut board = Board::default();
        board.refresh(&data, &scores, None);
        board.selected = 1;
        let keep = board.row();
        board.sort = SortKey::Cost;
        board.refresh(&data, &scores, keep);
        assert_eq!(board.row(), keep);
        board.filter = "unknown".to_owned();
        board.refresh(&data, &scores, keep);
        assert_eq!(names(&board, &data), "a");
        assert_eq!(board.selected, 0, "what is filtered out cannot stay selected");
    }

    #[test]
    fn outcomes_are_filtered_by_as_whole_words() {
        let (data, scores) = three();
        for (filter, wanted) in [("resolved", "bc"), ("unresolved", "b"), ("no-pat", "abc"), ("R2 unresolved", "b")] {
            let mut board = Board { filter: filter.to_owned(), ..Board::default() };
            board.refresh(&data, &scores, None);
            assert_eq!(names(&board, &data), wanted, "{filter}");
        }
    }

    #[test]
    fn unfolded_issues_show_their_attempts_and_a_folded_one_takes_the_selection() {
        let (data, scores) = three();
        let mut board = Board::default();
        board.unfolded.insert(data.issues[1].issue.id.clone());
        board.refresh(&data, &scores, None);
        assert_eq!(board.rows.len(), 5);
        assert_eq!(board.rows[2], BoardRow::Attempt(1, 0));
        board.selected = 3;
        let keep = board.row();
        board.unfolded.clear();
        board.refresh(&data, &scores, keep);
        assert_eq!(board.row(), Some(BoardRow::Issue(1)));
    }

    #[test]
    fn the_best_attempt_is_opened_and_the_first_one_while_nothing_is_scored() {
        let (data, scores) = three();
        assert_eq!(attempt_to_open(&data.issues[1], &scores), 1, "0.3 is more than 0.2");
        assert_eq!(attempt_to_open(&data.issues[1], &ScoreBook::default()), 0);
        assert_eq!(scored(&data.issues[1], &scores), 2);
        assert_eq!(best_score(&data.issues[2], &scores), None);
        assert_eq!(largest_drop(&data.issues[1], &scores).map(|d| d.action), Some(1));
    }

    #[test]
    fn an_issues_badges_count_its_attempts() {
        let (data, scores) = three();
        assert_eq!(data.issues[1].badges(&scores), [(Badge::NoPatch, 2)]);
        assert_eq!(data.issues[0].badges(&scores), [(Badge::NoPatch, 1)]);
    }
}
