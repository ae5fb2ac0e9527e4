//! Rank: the critic's order of the attempts at an issue, a person's moves over it, and what either is worth.

use std::collections::HashMap;

use crate::rank::metrics::{self, Worth};
use crate::rank::{Candidate, Manual, Ranking, order};
use crate::trajectory::IssueId;

use super::data::{AttemptId, IssueEntry};
use super::doc::Scroll;
use super::effect::{Effect, ExportEntry};
use super::facts::Badge;
use super::prompt::{Line, Prompt, Purpose};
use super::scores::ScoreBook;
use super::{Action, State, geometry};

/// A person's work on one issue.
#[derive(Debug, Clone, Default)]
pub struct Hand {
    /// Moves and vetoes, by attempt number.
    pub manual: Manual,
    /// The attempts those numbers mean.
    attempts: Vec<AttemptId>,
}

/// What the orders are worth where every attempt at an issue has a label.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Worths {
    /// The critic's order alone.
    pub critic: Worth,
    /// With the person's moves over it.
    pub manual: Worth,
    /// Issues of which an attempt is chosen.
    pub decided: usize,
    /// best@k of the order with the moves, k = 1, 2, …
    pub curve: Vec<f64>,
}

/// State of Rank.
#[derive(Debug, Clone, Default)]
pub struct RankState {
    /// Number of the issue.
    pub issue: usize,
    /// Is anything open?
    pub open: bool,
    /// Number of the selected row.
    pub selected: usize,
    /// The order now.
    pub ranking: Ranking,
    /// Id of the diff of the selected attempt's patch.
    pub patch: String,
    /// Where it is read on from.
    pub scroll: Scroll,
    /// What it is worth over all issues.
    pub worth: Worths,
    /// Moves and vetoes of every issue that has any.
    pub hands: HashMap<IssueId, Hand>,
    /// Something was moved or vetoed since the last export.
    pub unsaved: bool,
}

/// What an export would write, and what it leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportPlan {
    /// The predictions.
    pub entries: Vec<ExportEntry>,
    /// Issues of which no attempt is chosen.
    pub undecided: usize,
    /// Trajectories that name no instance.
    pub unnamed: usize,
}

fn candidates(entry: &IssueEntry, scores: &ScoreBook) -> Vec<Candidate> {
    let of = |(i, (attempt, known)): (usize, (&crate::trajectory::Attempt, &super::data::AttemptEntry))| {
        let patch = known.facts.patch.as_ref();
        let has = |badge| known.facts.badges.contains(&badge);
        let empty = patch.is_none() || has(Badge::EmptyPatch);
        Candidate {
            attempt: i,
            score: known.key().and_then(|k| scores.get(k)).and_then(|s| s.score).filter(|s| s.is_finite()),
            outcome: attempt.label.outcome,
            patch_sha256: patch.map(|p| p.sha256.clone()),
            patch_key: patch.map(|p| p.normal.clone()).filter(|n| !n.is_empty()),
            empty,
            not_a_diff: has(Badge::BadPatch),
            touches_tests: has(Badge::EditsTests),
        }
    };
    entry.issue.attempts.iter().zip(&entry.attempts).enumerate().map(of).collect()
}

/// The order of the attempts at an issue.
pub fn of_issue(state: &State, issue: usize) -> Ranking {
    let Some(entry) = state.data.issues.get(issue) else {
        return Ranking::default();
    };
    let untouched = Manual::default();
    let manual = state.ranking.hands.get(&entry.issue.id).map_or(&untouched, |h| &h.manual);
    order(&candidates(entry, &state.scores), manual)
}

/// Opens an issue, with `attempt` selected.
pub(super) fn open(state: &mut State, issue: usize, attempt: Option<usize>) -> Vec<Effect> {
    state.ranking.issue = issue;
    state.ranking.open = issue < state.data.issues.len();
    state.ranking.selected = 0;
    refresh(state);
    if let Some(attempt) = attempt {
        select_attempt(state, attempt);
    }
    show_patch(state)
}

/// Lays out the patch of the selected attempt.
fn show_patch(state: &mut State) -> Vec<Effect> {
    let Some(attempt) = selected_attempt(state) else {
        return Vec::new();
    };
    let entry = state.data.issues.get(state.ranking.issue);
    let patch = entry.and_then(|e| e.issue.attempts.get(attempt)).and_then(crate::trajectory::Attempt::patch);
    let (id, request) = state.diffs.add(patch);
    if state.ranking.patch != id {
        state.ranking.scroll = Scroll::default();
        state.ranking.patch = id;
    }
    request.map(|r| Effect::Highlight(vec![r])).into_iter().collect()
}

/// The panes as they are drawn now.
pub fn panes(state: &State) -> geometry::RankPanes {
    geometry::rank(geometry::screen(state.size).body, state.ranking.ranking.rows.len())
}

/// Scrolls the patch by so many pages; the table by as many rows where no patch is shown.
fn page(state: &mut State, by: isize) {
    let pane = panes(state).patch;
    let Some(diff) = state.diffs.get(&state.ranking.patch).filter(|_| !pane.is_empty()) else {
        let last = state.ranking.ranking.rows.len().saturating_sub(1);
        state.ranking.selected = if by < 0 { 0 } else { last };
        return;
    };
    let (width, height) = (usize::from(pane.w), usize::from(pane.h.saturating_sub(1)));
    let at = state.ranking.scroll;
    let rows = by * isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1);
    let to = diff.doc.scrolled(at, rows, width);
    state.ranking.scroll = if by > 0 { to.min(diff.doc.bottom(width, height)).max(at) } else { to };
}

/// Orders anew, with the same attempt selected.
pub(super) fn refresh(state: &mut State) {
    if !state.ranking.open {
        return;
    }
    let selected = selected_attempt(state);
    state.ranking.ranking = of_issue(state, state.ranking.issue);
    if let Some(attempt) = selected {
        select_attempt(state, attempt);
    }
    let all: Vec<Ranking> = (0..state.data.issues.len()).map(|i| of_issue(state, i)).collect();
    let alone = Manual::default();
    let critic: Vec<Ranking> = state.data.issues.iter().map(|e| order(&candidates(e, &state.scores), &alone)).collect();
    state.ranking.worth = Worths {
        critic: metrics::over(&critic),
        manual: metrics::over(&all),
        decided: all.iter().filter(|r| r.chosen.is_some()).count(),
        curve: metrics::best_at_k(&all),
    };
}

/// The attempt of the selected row.
pub fn selected_attempt(state: &State) -> Option<usize> {
    state.ranking.ranking.rows.get(state.ranking.selected).map(|r| r.candidate.attempt)
}

fn select_attempt(state: &mut State, attempt: usize) {
    let rows = &state.ranking.ranking.rows;
    if let Some(at) = rows.iter().position(|r| r.candidate.attempt == attempt) {
        state.ranking.selected = at;
    }
}

/// Numbers of attempts may change when more files are joined: moves follow the attempts they were made on.
pub(super) fn relocate_hands(state: &mut State) {
    let issues = &state.data.issues;
    let ids = |id: &IssueId| {
        let entry = issues.iter().find(|e| e.issue.id == *id)?;
        Some(entry.attempts.iter().map(|a| a.id.clone()).collect::<Vec<AttemptId>>())
    };
    for (issue, hand) in &mut state.ranking.hands {
        let Some(now) = ids(issue) else { continue };
        if now != hand.attempts {
            let old = std::mem::take(&mut hand.attempts);
            hand.manual.renumber(|attempt| old.get(attempt).and_then(|id| now.iter().position(|n| n == id)));
            hand.attempts = now;
        }
    }
}

/// Handles an action on Rank; `None` if it is not one of its own.
pub(super) fn handle(state: &mut State, action: Action) -> Option<Vec<Effect>> {
    let last = state.ranking.ranking.rows.len().saturating_sub(1);
    let at = state.ranking.selected;
    match action {
        Action::Up => state.ranking.selected = at.saturating_sub(1),
        Action::Down => state.ranking.selected = (at + 1).min(last),
        Action::Top => state.ranking.selected = 0,
        Action::Bottom => state.ranking.selected = last,
        Action::PageUp => page(state, -1),
        Action::PageDown => page(state, 1),
        Action::MoveUp => shift(state, -1),
        Action::MoveDown => shift(state, 1),
        Action::Veto => veto(state),
        Action::Undo => undo(state, true),
        Action::Redo => undo(state, false),
        _ => return None,
    }
    Some(show_patch(state))
}

fn hand(state: &mut State) -> Option<&mut Hand> {
    let entry = state.data.issues.get(state.ranking.issue)?;
    let attempts = || entry.attempts.iter().map(|a| a.id.clone()).collect();
    let hands = &mut state.ranking.hands;
    Some(hands.entry(entry.issue.id.clone()).or_insert_with(|| Hand { attempts: attempts(), ..Hand::default() }))
}

fn shift(state: &mut State, by: isize) {
    let Some(attempt) = selected_attempt(state) else {
        return;
    };
    let rows: Vec<usize> = state.ranking.ranking.rows.iter().map(|r| r.candidate.attempt).collect();
    let moved = hand(state).is_some_and(|h| h.manual.shift(&rows, attempt, by));
    if moved {
        changed(state);
    } else {
        state.say(format!("it stands {} already", if by < 0 { "first" } else { "last" }));
    }
}

fn veto(state: &mut State) {
    let Some(attempt) = selected_attempt(state) else {
        return;
    };
    if hand(state).is_some_and(|h| h.manual.is_vetoed(attempt)) {
        if let Some(hand) = hand(state) {
            hand.manual.allow(attempt);
        }
        changed(state);
    } else {
        state.prompt = Some(Prompt::Text { purpose: Purpose::VetoReason, line: Line::default() });
    }
}

/// The person gave a reason (or none): the selected attempt is vetoed.
pub(super) fn veto_with(state: &mut State, why: &str) {
    let Some(attempt) = selected_attempt(state) else {
        return;
    };
    if let Some(hand) = hand(state) {
        hand.manual.veto(attempt, why.trim());
    }
    changed(state);
}

fn undo(state: &mut State, back: bool) {
    let done = hand(state).is_some_and(|h| if back { h.manual.undo() } else { h.manual.redo() });
    if done {
        changed(state);
    } else {
        state.say(if back { "nothing to undo on this issue" } else { "nothing to redo on this issue" });
    }
}

fn changed(state: &mut State) {
    state.ranking.unsaved = true;
    refresh(state);
}

/// What an export would write now.
pub fn export_plan(state: &State) -> ExportPlan {
    let mut plan = ExportPlan::default();
    for (i, entry) in state.data.issues.iter().enumerate() {
        let IssueId::Instance(instance_id) = &entry.issue.id else {
            plan.unnamed += 1;
            continue;
        };
        let chosen = of_issue(state, i).chosen.and_then(|a| entry.issue.attempts.get(a));
        match chosen.and_then(|a| Some((a, a.patch()?))) {
            Some((attempt, patch)) => plan.entries.push(ExportEntry {
                instance_id: instance_id.clone(),
                model: attempt.model_name().unwrap_or("unknown").to_owned(),
                patch: patch.into(),
            }),
            None => plan.undecided += 1,
        }
    }
    plan
}

/// What the plan leaves out, in words; empty if nothing.
pub fn left_out(plan: &ExportPlan) -> String {
    let mut parts = Vec::new();
    if plan.undecided > 0 {
        parts.push(format!("{} issues without a choice left out", plan.undecided));
    }
    if plan.unnamed > 0 {
        parts.push(format!("{} runs that name no instance left out", plan.unnamed));
    }
    parts.join("; ")
}
