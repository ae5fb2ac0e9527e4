//! The ways through a trajectory: actions, drops, errors, attempts, and the text of the detail.

use super::{Focus, doc, open, panes, refresh, scoring};
use crate::app::detail::Tab;
use crate::app::doc::Scroll;
use crate::app::effect::Effect;
use crate::app::outline::Ending;
use crate::app::scores::Scoring;
use crate::app::{Action, State};

/// Handles an action on the Timeline; `None` if it is not one of its own.
pub(in crate::app) fn handle(state: &mut State, action: Action) -> Option<Vec<Effect>> {
    let effects = match action {
        Action::Up => vertical(state, -1),
        Action::Down => vertical(state, 1),
        Action::PageUp => vertical(state, -page(state)),
        Action::PageDown => vertical(state, page(state)),
        Action::Top => edge(state, false),
        Action::Bottom => edge(state, true),
        Action::Left => step(state, -1),
        Action::Right => step(state, 1),
        Action::NextDrop => to_drop(state, true),
        Action::PreviousDrop => to_drop(state, false),
        Action::LargestDrop => to_largest_drop(state),
        Action::NextError => to_error(state, true),
        Action::PreviousError => to_error(state, false),
        Action::NextAttempt => other_attempt(state, 1),
        Action::PreviousAttempt => other_attempt(state, -1),
        Action::Focus => {
            let t = &mut state.timeline;
            t.focus = if t.focus == Focus::List { Focus::Detail } else { Focus::List };
            Vec::new()
        }
        Action::Zoom => {
            let t = &mut state.timeline;
            t.zoomed = !t.zoomed;
            t.focus = if t.zoomed { Focus::Detail } else { Focus::List };
            Vec::new()
        }
        Action::NextTab => show(state, state.timeline.tab.step(1)),
        Action::PreviousTab => show(state, state.timeline.tab.step(-1)),
        Action::TabAction => show(state, Tab::Action),
        Action::TabObservation => show(state, Tab::Observation),
        Action::TabPatch => show(state, Tab::Patch),
        Action::TabInput => show(state, Tab::Input),
        Action::TabRun => show(state, Tab::Run),
        Action::TabRaw => show(state, Tab::Raw),
        Action::Open => {
            state.timeline.focus = Focus::Detail;
            Vec::new()
        }
        _ => return None,
    };
    Some(effects)
}

fn show(state: &mut State, tab: Tab) -> Vec<Effect> {
    state.timeline.tab = tab;
    let narrow = panes(state).detail.is_empty();
    if narrow {
        state.timeline.focus = Focus::Detail;
    }
    refresh(state)
}

fn page(state: &State) -> isize {
    let panes = panes(state);
    let rows = match state.timeline.focus {
        Focus::List => panes.list.h,
        Focus::Detail => panes.detail.h,
    };
    isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1)
}

fn vertical(state: &mut State, by: isize) -> Vec<Effect> {
    if state.timeline.focus == Focus::List {
        return step(state, by);
    }
    let panes = panes(state);
    let (width, height) = (usize::from(panes.detail.w), usize::from(panes.detail.h));
    let text = doc(state);
    let bottom = text.bottom(width, height);
    let at = state.timeline.scroll;
    let scrolled = text.scrolled(at, by, width);
    // Down stops where the last row is on the screen, wherever a search or a mark had put the top before.
    state.timeline.scroll = if by > 0 { scrolled.min(bottom).max(at) } else { scrolled };
    Vec::new()
}

fn edge(state: &mut State, bottom: bool) -> Vec<Effect> {
    if state.timeline.focus == Focus::List {
        let last = state.timeline.outline.rows.len().saturating_sub(1);
        return select(state, if bottom { last } else { 0 });
    }
    let panes = panes(state);
    let end = doc(state).bottom(usize::from(panes.detail.w), usize::from(panes.detail.h));
    state.timeline.scroll = if bottom { end } else { Scroll::default() };
    Vec::new()
}

fn step(state: &mut State, by: isize) -> Vec<Effect> {
    let last = state.timeline.outline.rows.len().saturating_sub(1);
    let to = state.timeline.action.saturating_add_signed(by).min(last);
    select(state, to)
}

fn select(state: &mut State, action: usize) -> Vec<Effect> {
    state.timeline.action = action;
    refresh(state)
}

fn to_drop(state: &mut State, forward: bool) -> Vec<Effect> {
    let at = state.timeline.action;
    let drops = scoring(state).map(|s| s.drops.clone()).unwrap_or_default();
    let found = if forward { drops.iter().find(|d| d.action > at) } else { drops.iter().rev().find(|d| d.action < at) };
    let Some(drop) = found else {
        no_drop(state, drops.len(), if forward { "after" } else { "before" });
        return Vec::new();
    };
    select(state, drop.action)
}

fn to_largest_drop(state: &mut State) -> Vec<Effect> {
    let Some(drop) = scoring(state).and_then(Scoring::largest_drop) else {
        no_drop(state, 0, "in");
        return Vec::new();
    };
    select(state, drop.action)
}

/// Says why there is nothing to go to.
fn no_drop(state: &mut State, drops: usize, side: &str) {
    let threshold = state.scores.drop_threshold;
    let (scored, all) = scoring(state).map_or((0, 0), |s| (s.scored(), s.actions.len()));
    state.say(if scored == 0 {
        "no reward is known yet, so no drop".to_owned()
    } else if drops == 0 {
        format!("no drop of at least {threshold} among the {scored} of {all} rewards known")
    } else {
        format!("no drop {side} this action ({drops} in the run)")
    });
}

fn to_error(state: &mut State, forward: bool) -> Vec<Effect> {
    let at = state.timeline.action;
    let rows = &state.timeline.outline.rows;
    let wrong = |i: &usize| matches!(rows[*i].ending, Ending::Error | Ending::Exit(_));
    let found = if forward { (at + 1..rows.len()).find(wrong) } else { (0..at.min(rows.len())).rev().find(wrong) };
    let Some(action) = found else {
        state.say(format!("no error {} this action", if forward { "after" } else { "before" }));
        return Vec::new();
    };
    select(state, action)
}

fn other_attempt(state: &mut State, by: isize) -> Vec<Effect> {
    let issue = state.timeline.issue;
    let count = state.data.issues.get(issue).map_or(0, |e| e.attempts.len());
    let to = state.timeline.attempt.saturating_add_signed(by);
    if to >= count || to == state.timeline.attempt {
        state.say(format!("this is the {} attempt at the issue", if by > 0 { "last" } else { "first" }));
        return Vec::new();
    }
    open(state, issue, to)
}
