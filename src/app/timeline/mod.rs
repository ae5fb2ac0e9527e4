//! The Timeline: one trajectory, its rewards, its actions, and the text behind the selected one.

mod moves;

pub(in crate::app) use moves::handle;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::critic::CriticInput;
use crate::trajectory::TrajectoryKey;

use crate::app::data::AttemptEntry;
use crate::app::detail::{self, Tab};
use crate::app::doc::{Doc, Scroll, Tone};
use crate::app::effect::{Effect, Priority};
use crate::app::geometry;
use crate::app::outline::Outline;
use crate::app::scores::{Scoring, Status};
use crate::app::{CriticState, RawRecord, State, View};

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

/// Raw records, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RawState {
    key: TrajectoryKey,
    steps: Range<usize>,
    records: Option<Vec<RawRecord>>,
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
    /// Why the steps of the open trajectory cannot be read.
    pub unreadable: Option<String>,
    /// The raw records last read, of these steps of this trajectory.
    raw: Option<RawState>,
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
        Tab::Action | Tab::Observation | Tab::Input | Tab::Run | Tab::Raw => &t.doc,
    }
}

/// Opens an attempt. The action one was at before is selected again; scroll starts at the top.
pub(in crate::app) fn open(state: &mut State, issue: usize, attempt: usize) -> Vec<Effect> {
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
    t.unreadable = None;
    t.raw = None;
    t.detail_key = None;
    let mut effects = prioritise(state);
    effects.extend(ask_for_steps(state));
    let (id, request) = state.diffs.add(state.data.issues[issue].issue.attempts[attempt].patch());
    state.timeline.patch_id = id;
    effects.extend(request.map(|r| Effect::Highlight(vec![r])));
    effects.extend(refresh(state));
    effects
}

/// Notes which action is selected, for coming back to this trajectory.
pub(in crate::app) fn remember(state: &mut State) {
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
pub(in crate::app) fn refresh(state: &mut State) -> Vec<Effect> {
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
        (_, Some(t), _) if !t.is_whole() => match &state.timeline.unreadable {
            Some(why) => note(why),
            None => note("reading the steps from the file …"),
        },
        (_, None, _) => note("a prediction without a trajectory: there is only its patch (p)"),
        (_, Some(_), None) => note("this trajectory has no actions: nothing to score. The run as a whole: R"),
        (Tab::Action, Some(t), Some(row)) => detail::action(&t.steps[row.step]),
        (Tab::Observation, Some(t), Some(row)) => detail::observation(t, row),
        (Tab::Input, Some(_), Some(_)) => return make_input(state),
        (Tab::Raw, Some(_), Some(_)) => return make_raw(state),
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

/// Asks for the steps of the open trajectory if they are not in memory.
fn ask_for_steps(state: &State) -> Option<Effect> {
    let trajectory = state.data.issues.get(state.timeline.issue)?.trajectory(state.timeline.attempt)?;
    let effect = || Effect::OpenRun { key: trajectory.key(), trajectory: Arc::clone(trajectory) };
    (!trajectory.is_whole()).then(effect)
}

/// The steps of a trajectory arrived.
pub(in crate::app) fn opened(state: &mut State, key: &TrajectoryKey) -> Vec<Effect> {
    if entry(state).and_then(AttemptEntry::key) != Some(key) {
        return Vec::new();
    }
    let (issue, attempt) = (state.timeline.issue, state.timeline.attempt);
    open(state, issue, attempt)
}

/// The steps of a trajectory cannot be read.
pub(in crate::app) fn not_opened(state: &mut State, key: &TrajectoryKey, why: String) -> Vec<Effect> {
    if entry(state).and_then(AttemptEntry::key) != Some(key) {
        return Vec::new();
    }
    state.timeline.unreadable = Some(why);
    state.timeline.detail_key = None;
    refresh(state)
}

/// The steps whose records the raw tab shows: the selected action with what was observed after it, and for the first
/// action everything before it.
fn raw_steps(state: &State) -> Option<Range<usize>> {
    let row = state.timeline.outline.rows.get(state.timeline.action)?;
    let start = if state.timeline.action == 0 { 0 } else { row.step };
    Some(start..row.observations.end.max(row.step + 1))
}

fn make_raw(state: &mut State) -> (Doc, Scroll, Vec<Effect>) {
    let mut doc = Doc::default();
    let steps = raw_steps(state).unwrap_or_default();
    let Some(trajectory) = state.data.issues[state.timeline.issue].trajectory(state.timeline.attempt).cloned() else {
        return (doc, Scroll::default(), Vec::new());
    };
    let key = trajectory.key();
    let known = state.timeline.raw.as_ref().filter(|r| r.key == key && r.steps == steps);
    if let Some(records) = known.and_then(|r| r.records.as_ref()) {
        return (detail::raw(records, steps.start), Scroll::default(), Vec::new());
    }
    doc.push(Tone::Note, "reading the records from the file …");
    state.timeline.raw = Some(RawState { key: key.clone(), steps: steps.clone(), records: None });
    (doc, Scroll::default(), vec![Effect::ReadRaw { key, trajectory, steps }])
}

/// Raw records arrived.
pub(in crate::app) fn raw_read(
    state: &mut State,
    key: &TrajectoryKey,
    steps: &Range<usize>,
    records: Vec<RawRecord>,
) -> Vec<Effect> {
    let Some(raw) = state.timeline.raw.as_mut().filter(|r| r.key == *key && r.steps == *steps) else {
        return Vec::new();
    };
    raw.records = Some(records);
    state.timeline.detail_key = None;
    refresh(state)
}

fn ask_for_input(state: &mut State) -> Option<Effect> {
    let key = entry(state)?.key()?.clone();
    let trajectory = state.data.issues[state.timeline.issue].trajectory(state.timeline.attempt)?.clone();
    state.timeline.input = Some(InputState::Asked);
    Some(Effect::Inspect { key, generation: state.generation, trajectory })
}

/// The critic's input arrived.
pub(in crate::app) fn inspected(state: &mut State, key: &TrajectoryKey, input: InputState) -> Vec<Effect> {
    if entry(state).and_then(AttemptEntry::key) != Some(key) {
        return Vec::new();
    }
    state.timeline.input = Some(input);
    state.timeline.detail_key = None;
    refresh(state)
}

/// Rewards of the open trajectory changed.
pub(in crate::app) fn scores_changed(state: &mut State, key: &TrajectoryKey) -> Vec<Effect> {
    let quoted = matches!(state.timeline.tab, Tab::Input | Tab::Run);
    if !quoted || entry(state).and_then(AttemptEntry::key) != Some(key) {
        return Vec::new();
    }
    state.timeline.version += 1;
    refresh(state)
}

/// The critic changed: its input is another one.
pub(in crate::app) fn critic_changed(state: &mut State) -> Vec<Effect> {
    state.timeline.input = None;
    let mut effects = if state.timeline.open { prioritise(state) } else { Vec::new() };
    effects.extend(refresh(state));
    effects
}

/// Finds the open attempt again after a re-join, before which it was [`remember`]ed: the numbers that are still here
/// mean other attempts now.
pub(in crate::app) fn relocate(state: &mut State, to: Option<(usize, usize)>) -> Vec<Effect> {
    state.timeline.open = false;
    let Some((issue, attempt)) = to else {
        if state.view == View::Timeline {
            state.go(View::Board);
        }
        return Vec::new();
    };
    let scroll = state.timeline.scroll;
    let input = state.timeline.input.take();
    let effects = open(state, issue, attempt);
    state.timeline.input = input;
    state.timeline.scroll = scroll;
    effects
}

/// What decides how the Timeline is divided now.
pub fn shape(state: &State) -> geometry::TimelineShape {
    let t = &state.timeline;
    let no_critic = matches!(state.critic, CriticState::None | CriticState::Failed(_));
    let scored = scoring(state).is_some_and(|s| s.scored() > 0);
    geometry::TimelineShape {
        in_detail: t.focus == Focus::Detail,
        zoomed: t.zoomed,
        without_rewards: no_critic && !scored,
    }
}

/// The panes as they are drawn now.
pub fn panes(state: &State) -> geometry::TimelinePanes {
    geometry::timeline(geometry::screen(state.size).body, shape(state))
}
