//! The Timeline: one trajectory, its rewards, its actions, and the text behind the selected one.

use std::collections::HashMap;

use crate::critic::CriticInput;
use crate::trajectory::TrajectoryKey;

use super::data::AttemptEntry;
use super::detail::{self, Tab};
use super::doc::{Doc, Scroll, Tone};
use super::effect::{Effect, Priority};
use super::geometry;
use super::outline::{Ending, Outline};
use super::scores::{Scoring, Status};
use super::{Action, State, View};

/// What `j` and `k` move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Focus {
    /// The selection in the list of actions.
    #[default]
    List,
    /// The text of the detail.
    Detail,
}

/// The critic's input for a trajectory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputState {
    /// Asked for.
    Asked,
    /// There.
    Ready(Box<CriticInput>),
    /// Not possible: one line.
    Failed(String),
}

/// What the text of the detail was made from; while it is the same, so is the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DetailKey {
    attempt: (usize, usize),
    action: usize,
    tab: Tab,
    generation: u64,
    /// Changes when the input or the scores that the text quotes change.
    version: u64,
}

/// State of the Timeline.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Number of the issue.
    pub issue: usize,
    /// Number of the attempt in it.
    pub attempt: usize,
    /// Is anything open?
    pub open: bool,
    /// The selected action, from 0.
    pub action: usize,
    /// What moves.
    pub focus: Focus,
    /// The tab of the detail.
    pub tab: Tab,
    /// The detail alone.
    pub zoomed: bool,
    /// The actions, a line each.
    pub outline: Outline,
    /// The text of the detail, unless the tab is the patch.
    pub doc: Doc,
    /// Where the detail is read on from.
    pub scroll: Scroll,
    /// Id of the patch's diff.
    pub patch_id: String,
    /// The critic's input for the open trajectory.
    pub input: Option<InputState>,
    detail_key: Option<DetailKey>,
    version: u64,
    seen: HashMap<TrajectoryKey, usize>,
}

/// The attempt on the Timeline.
pub fn entry(state: &State) -> Option<&AttemptEntry> {
    let t = &state.timeline;
    state.data.issues.get(t.issue).filter(|_| t.open)?.attempts.get(t.attempt)
}

/// The critic's word on it.
pub fn scoring(state: &State) -> Option<&Scoring> {
    state.scores.get(entry(state)?.key()?)
}

/// The text of the detail.
pub fn doc(state: &State) -> &Doc {
    let t = &state.timeline;
    match t.tab {
        Tab::Patch => state.diffs.get(&t.patch_id).map_or(&t.doc, |d| &d.doc),
        Tab::Action | Tab::Observation | Tab::Input | Tab::Run => &t.doc,
    }
}

/// Opens an attempt. The action one was at before is selected again; scroll starts at the top.
pub(super) fn open(state: &mut State, issue: usize, attempt: usize) -> Vec<Effect> {
    remember(state);
    let Some(entry) = state.data.issues.get(issue).and_then(|e| e.attempts.get(attempt)) else {
        return Vec::new();
    };
    let trajectory = state.data.issues[issue].trajectory(attempt);
    let outline = trajectory.map(|t| Outline::of(t, &entry.facts.loops)).unwrap_or_default();
    let t = &mut state.timeline;
    let last = outline.rows.len().saturating_sub(1);
    t.action = entry.key().and_then(|k| t.seen.get(k)).copied().unwrap_or(0).min(last);
    (t.issue, t.attempt, t.open, t.outline) = (issue, attempt, true, outline);
    t.input = None;
    t.detail_key = None;
    let mut effects = prioritise(state);
    let (id, request) = state.diffs.add(state.data.issues[issue].issue.attempts[attempt].patch());
    state.timeline.patch_id = id;
    effects.extend(request.map(|r| Effect::Highlight(vec![r])));
    effects.extend(refresh(state));
    effects
}

/// Notes which action is selected, for coming back to this trajectory.
pub(super) fn remember(state: &mut State) {
    let key = entry(state).and_then(AttemptEntry::key).cloned();
    if let Some(key) = key {
        let action = state.timeline.action;
        state.timeline.seen.insert(key, action);
    }
}

/// Asks for what is on the screen first: the open trajectory, then its siblings.
fn prioritise(state: &State) -> Vec<Effect> {
    let t = &state.timeline;
    let Some(issue) = state.data.issues.get(t.issue) else {
        return Vec::new();
    };
    let waits = |e: &AttemptEntry| {
        let scoring = e.key().and_then(|k| state.scores.get(k));
        scoring.is_some_and(|s| s.status == Status::Waiting)
    };
    let request = |(i, e): (usize, &AttemptEntry)| {
        let trajectory = issue.trajectory(i)?.clone();
        let priority = if i == t.attempt { Priority::Selected } else { Priority::Visible };
        let key = e.key().cloned()?;
        waits(e).then_some(Effect::Score { key, generation: state.generation, trajectory, priority })
    };
    issue.attempts.iter().enumerate().filter_map(request).collect()
}

/// Makes the text of the detail anew if what it is made from has changed.
pub(super) fn refresh(state: &mut State) -> Vec<Effect> {
    let t = &state.timeline;
    let whole_run = matches!(t.tab, Tab::Patch | Tab::Run);
    let key = DetailKey {
        attempt: (t.issue, t.attempt),
        action: if whole_run { 0 } else { t.action },
        tab: t.tab,
        generation: state.generation,
        version: t.version,
    };
    if !t.open || t.detail_key.as_ref() == Some(&key) {
        return Vec::new();
    }
    // Only new rewards in the same text: one stays where one was reading.
    let same_text = t.detail_key.as_ref().is_some_and(|k| DetailKey { version: key.version, ..k.clone() } == key);
    let (doc, start, effects) = make(state);
    let t = &mut state.timeline;
    t.doc = doc;
    if !same_text {
        t.scroll = start;
    }
    t.detail_key = Some(key);
    effects
}

fn make(state: &mut State) -> (Doc, Scroll, Vec<Effect>) {
    let (issue, attempt) = (state.timeline.issue, state.timeline.attempt);
    let Some(entry) = state.data.issues.get(issue) else {
        return (Doc::default(), Scroll::default(), Vec::new());
    };
    let row = state.timeline.outline.rows.get(state.timeline.action);
    let note = |text: &str| {
        let mut doc = Doc::default();
        doc.push(Tone::Note, text);
        doc
    };
    let doc = match (state.timeline.tab, entry.trajectory(attempt), row) {
        (Tab::Patch, ..) => Doc::default(),
        (Tab::Run, ..) => detail::run(entry, attempt, scoring(state)),
        (_, None, _) => note("a prediction without a trajectory: there is only its patch (p)"),
        (_, Some(_), None) => note("this trajectory has no actions: nothing to score. The run as a whole: R"),
        (Tab::Action, Some(t), Some(row)) => detail::action(&t.steps[row.step]),
        (Tab::Observation, Some(t), Some(row)) => detail::observation(t, row),
        (Tab::Input, Some(_), Some(_)) => return make_input(state),
    };
    (doc, Scroll::default(), Vec::new())
}

fn make_input(state: &mut State) -> (Doc, Scroll, Vec<Effect>) {
    let mut doc = Doc::default();
    match &state.timeline.input {
        Some(InputState::Ready(input)) => {
            let (doc, place) = detail::input(input, scoring(state), state.timeline.action);
            let panes = panes(state);
            // The mark stands in the upper half, with what led to it above.
            let up = isize::try_from(panes.detail.h / 2).unwrap_or(0);
            let start = doc.scrolled(place, -up, usize::from(panes.detail.w));
            return (doc, start, Vec::new());
        }
        Some(InputState::Failed(why)) => doc.push(Tone::Error, why.clone()),
        Some(InputState::Asked) => doc.push(Tone::Note, "asked the critic what it reads …"),
        None if state.critic_info().is_none() => {
            doc.push(Tone::Note, "no critic is open, so nothing was read (see the status line)");
        }
        None => {
            doc.push(Tone::Note, "asked the critic what it reads …");
            let effect = ask_for_input(state);
            return (doc, Scroll::default(), effect.into_iter().collect());
        }
    }
    (doc, Scroll::default(), Vec::new())
}

fn ask_for_input(state: &mut State) -> Option<Effect> {
    let key = entry(state)?.key()?.clone();
    let trajectory = state.data.issues[state.timeline.issue].trajectory(state.timeline.attempt)?.clone();
    state.timeline.input = Some(InputState::Asked);
    Some(Effect::Inspect { key, generation: state.generation, trajectory })
}

/// The critic's input arrived.
pub(super) fn inspected(state: &mut State, key: &TrajectoryKey, input: InputState) -> Vec<Effect> {
    if entry(state).and_then(AttemptEntry::key) != Some(key) {
        return Vec::new();
    }
    state.timeline.input = Some(input);
    state.timeline.detail_key = None;
    refresh(state)
}

/// Rewards of the open trajectory changed.
pub(super) fn scores_changed(state: &mut State, key: &TrajectoryKey) -> Vec<Effect> {
    let quoted = matches!(state.timeline.tab, Tab::Input | Tab::Run);
    if !quoted || entry(state).and_then(AttemptEntry::key) != Some(key) {
        return Vec::new();
    }
    state.timeline.version += 1;
    refresh(state)
}

/// The critic changed: its input is another one.
pub(super) fn critic_changed(state: &mut State) -> Vec<Effect> {
    state.timeline.input = None;
    let mut effects = if state.timeline.open { prioritise(state) } else { Vec::new() };
    effects.extend(refresh(state));
    effects
}

/// Finds the open attempt again after a re-join, before which it was [`remember`]ed: the numbers that are still here
/// mean other attempts now.
pub(super) fn relocate(state: &mut State, to: Option<(usize, usize)>) -> Vec<Effect> {
    state.timeline.open = false;
    match to {
        Some((issue, attempt)) => {
            let scroll = state.timeline.scroll;
            let input = state.timeline.input.take();
            let effects = open(state, issue, attempt);
            state.timeline.input = input;
            state.timeline.scroll = scroll;
            effects
        }
        None => {
            if state.view == View::Timeline {
                state.go(View::Board);
            }
            Vec::new()
        }
    }
}

/// The panes as they are drawn now.
pub fn panes(state: &State) -> geometry::TimelinePanes {
    let t = &state.timeline;
    geometry::timeline(geometry::screen(state.size).body, t.focus == Focus::Detail, t.zoomed)
}

/// Handles an action on the Timeline; `None` if it is not one of its own.
pub(super) fn handle(state: &mut State, action: Action) -> Option<Vec<Effect>> {
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
    match found {
        Some(drop) => select(state, drop.action),
        None => {
            no_drop(state, drops.len(), if forward { "after" } else { "before" });
            Vec::new()
        }
    }
}

fn to_largest_drop(state: &mut State) -> Vec<Effect> {
    match scoring(state).and_then(Scoring::largest_drop) {
        Some(drop) => select(state, drop.action),
        None => {
            no_drop(state, 0, "in");
            Vec::new()
        }
    }
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
    match found {
        Some(action) => select(state, action),
        None => {
            state.say(format!("no error {} this action", if forward { "after" } else { "before" }));
            Vec::new()
        }
    }
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
