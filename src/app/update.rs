//! `update`: the one place where the state changes.

use std::path::PathBuf;

use crate::critic::CriticInfo;
use crate::trajectory::{Dataset, TrajectoryKey};

use super::board::{self, BoardRow};
use super::data::AttemptId;
use super::effect::{Effect, Priority};
use super::key::{Key, KeyInput};
use super::prompt::{Edit, Line, Prompt, Purpose, Question};
use super::state::{CriticState, Overlay, OverlayKind, Place, State, ThemeName};
use super::timeline::InputState;
use super::{Action, Msg, View, compare, geometry, ranking, timeline};

/// File that an export is offered to go to.
const EXPORT_PATH: &str = "predictions.jsonl";

/// Takes one message in. What comes back is to be done, in order.
pub fn update(state: &mut State, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(input) => key(state, input),
        Msg::Paste(text) => paste(state, &text),
        Msg::Resize(w, h) => {
            state.size = (w, h);
            Vec::new()
        }
        Msg::FileLoaded(file) => {
            if state.data.add(*file) {
                joined(state)
            } else {
                Vec::new()
            }
        }
        Msg::Loaded(dataset) => loaded(state, *dataset),
        Msg::FilesChanged(part) => changed(state, *part),
        Msg::CriticReady(info) => critic_ready(state, info),
        Msg::CriticFailed(why) => {
            let why = crate::text::one_line(&why);
            state.complain(&why);
            state.critic = CriticState::Failed(why);
            timeline::critic_changed(state)
        }
        Msg::Partial { key, generation, score } => {
            let new = generation == state.generation && state.scores.partial(&key, score);
            if new { timeline::scores_changed(state, &key) } else { Vec::new() }
        }
        Msg::Done { key, generation, scores } => {
            let new = generation == state.generation && state.scores.done(&key, scores);
            if new { scored(state, &key) } else { Vec::new() }
        }
        Msg::Failed { key, generation, error } => {
            let new = generation == state.generation && state.scores.failed_with(&key, &error);
            if new { scored(state, &key) } else { Vec::new() }
        }
        Msg::Inspected { key, generation, input } => {
            if generation != state.generation {
                return Vec::new();
            }
            let input = match input {
                Ok(input) => InputState::Ready(input),
                Err(error) => InputState::Failed(crate::text::one_line(&error.to_string())),
            };
            timeline::inspected(state, &key, input)
        }
        Msg::Opened { key, run } => opened(state, &key, run),
        Msg::RawRead { key, steps, records } => timeline::raw_read(state, &key, &steps, records),
        Msg::Highlighted { id, rows } => {
            if let Some(diff) = state.diffs.get_mut(&id) {
                diff.colour(&rows);
            }
            Vec::new()
        }
        Msg::ExportDone { path, written } => {
            state.ranking.unsaved = false;
            let rest = ranking::left_out(&ranking::export_plan(state));
            let rest = if rest.is_empty() { rest } else { format!("; {rest}") };
            state.say(format!("{written} predictions written to {path}{rest}"));
            Vec::new()
        }
        Msg::ExportFailed { path, exists: true, .. } => {
            state.prompt = Some(Prompt::Confirm(Question::Overwrite(path)));
            Vec::new()
        }
        Msg::ExportFailed { path, error, .. } => {
            state.complain(format!("{path}: {error}; nothing was written"));
            Vec::new()
        }
        Msg::Note(text) => {
            state.say(text);
            Vec::new()
        }
    }
}

fn critic_ready(state: &mut State, info: Box<CriticInfo>) -> Vec<Effect> {
    state.generation += 1;
    state.scores.clear(info.drop_threshold);
    state.critic = CriticState::Ready(info);
    let mut effects = ask_for_scores(state);
    effects.extend(timeline::critic_changed(state));
    board::refresh(state);
    ranking::refresh(state);
    effects
}

/// Asks for everything that was not asked for yet, in the order of the Board.
fn ask_for_scores(state: &mut State) -> Vec<Effect> {
    if state.critic_info().is_none() {
        return Vec::new();
    }
    let mut effects = Vec::new();
    for entry in &state.data.issues {
        for (attempt, known) in entry.issue.attempts.iter().zip(&entry.attempts) {
            let (Some(trajectory), Some(key)) = (&attempt.trajectory, known.key()) else { continue };
            // Nobody has counted its actions yet: it is asked for once they are.
            let Some(actions) = known.facts.actions else { continue };
            if state.scores.ask(key.clone(), actions) && actions > 0 {
                effects.push(Effect::Score {
                    key: key.clone(),
                    generation: state.generation,
                    trajectory: trajectory.clone(),
                    priority: Priority::Background,
                });
            }
        }
    }
    effects
}

fn loaded(state: &mut State, dataset: Dataset) -> Vec<Effect> {
    state.data.replace(dataset);
    let effects = joined(state);
    let (files, strange) = (state.data.dataset.files.len(), state.data.not_understood());
    if files == 0 {
        state.complain("no file found under the paths given");
    } else {
        let key = |action| state.keymap.keys(action).first().map(ToString::to_string);
        let mut said = Vec::new();
        if strange > 0 {
            let keys = key(Action::Files).map_or_else(String::new, |k| format!(" ({k} lists them)"));
            said.push(format!("{files} files read, {strange} not understood{keys}"));
        }
        let hidden = state.data.patches_only();
        if hidden > 0 && !state.board.patches_only {
            let keys = key(Action::PatchesOnly).map_or_else(String::new, |k| format!(" ({k} shows them)"));
            said.push(format!("{hidden} issues have candidate patches but no run{keys}"));
        }
        // Why there is no critic matters more; the counts also stand in the header and in the list of files.
        let complained = state.message.as_ref().is_some_and(|m| m.error);
        if !said.is_empty() && !complained {
            state.say(said.join(" · "));
        }
    }
    effects
}

/// Files have grown: what was scored of their trajectories is scored again where the actions are others now.
fn changed(state: &mut State, part: Dataset) -> Vec<Effect> {
    let (files, runs) = (part.files.len(), part.trajectories.len());
    for run in &part.trajectories {
        let asked = state.scores.get(&run.key()).map(|s| s.actions.len());
        if asked.is_some() && asked != run.known_actions() {
            state.scores.forget(&run.key());
        }
    }
    state.data.change(part);
    let (file, trajectory) = (if files == 1 { "file" } else { "files" }, if runs == 1 { "y" } else { "ies" });
    state.say(format!("{files} {file} changed on disk: {runs} trajector{trajectory} read again"));
    joined(state)
}

/// The steps of a run that was only known by what identifies it.
fn opened(
    state: &mut State,
    key: &TrajectoryKey,
    run: Result<crate::trajectory::SharedTrajectory, String>,
) -> Vec<Effect> {
    match run {
        Ok(run) => {
            state.data.opened(&run);
            timeline::opened(state, key)
        }
        Err(why) => {
            let why = crate::text::one_line(&why);
            state.complain(&why);
            timeline::not_opened(state, key, why)
        }
    }
}

/// Joins anew and finds everything that was on the screen again.
fn joined(state: &mut State) -> Vec<Effect> {
    let row = state.board.row().filter(|_| state.board.touched).and_then(|r| place(state, r));
    let open_run = state.timeline.open.then_some(BoardRow::Attempt(state.timeline.issue, state.timeline.attempt));
    let run = open_run.and_then(|r| place(state, r));
    let ranked = state.ranking.open.then_some(BoardRow::Issue(state.ranking.issue)).and_then(|r| place(state, r));
    let compared = state.compare.open.then_some(BoardRow::Issue(state.compare.issue)).and_then(|r| place(state, r));
    let selected = ranking::selected_attempt(state);
    let selected_id = ranked.as_ref().and_then(|_| {
        let entry = state.data.issues.get(state.ranking.issue)?;
        entry.attempts.get(selected?).map(|a| a.id.clone())
    });

    timeline::remember(state);
    state.data.rejoin();
    ranking::relocate_hands(state);
    let mut effects = ask_for_scores(state);

    let row = row.and_then(|p| find(state, &p));
    state.board.refresh(&state.data, &state.scores, row);
    if let Some(place) = run {
        let to = match find(state, &place) {
            Some(BoardRow::Attempt(issue, attempt)) => Some((issue, attempt)),
            _ => None,
        };
        effects.extend(timeline::relocate(state, to));
    }
    if let Some(at) = ranked.and_then(|p| find(state, &p)) {
        let entry = &state.data.issues[at.issue()];
        let attempt = selected_id.and_then(|id| entry.attempts.iter().position(|a| a.id == id));
        effects.extend(ranking::open(state, at.issue(), attempt));
    }
    if let Some(at) = compared.and_then(|p| find(state, &p)) {
        effects.extend(compare::open(state, at.issue(), None));
    }
    effects
}

fn place(state: &State, row: BoardRow) -> Option<Place> {
    let entry = state.data.issues.get(row.issue())?;
    let attempt: Option<AttemptId> = match row {
        BoardRow::Issue(_) => None,
        BoardRow::Attempt(_, a) => Some(entry.attempts.get(a)?.id.clone()),
    };
    Some(Place { issue: entry.issue.id.clone(), attempt })
}

fn find(state: &State, place: &Place) -> Option<BoardRow> {
    // A run may move to another issue when a later file says which instance it is.
    if let Some(id) = &place.attempt {
        let at = |(i, e): (usize, &super::data::IssueEntry)| Some((i, e.attempts.iter().position(|a| a.id == *id)?));
        let found = state.data.issues.iter().enumerate().find_map(at);
        return found.map(|(issue, attempt)| BoardRow::Attempt(issue, attempt));
    }
    state.data.issue_index(&place.issue).map(BoardRow::Issue)
}

fn scored(state: &mut State, key: &TrajectoryKey) -> Vec<Effect> {
    if state.board.sort.depends_on_scores() {
        board::refresh(state);
    }
    if state.view == View::Rank {
        ranking::refresh(state);
    }
    timeline::scores_changed(state, key)
}

fn paste(state: &mut State, text: &str) -> Vec<Effect> {
    if let Some(Prompt::Text { purpose, line }) = &mut state.prompt {
        line.insert(text);
        if *purpose == Purpose::Filter {
            let filter = line.text().to_owned();
            board::set_filter(state, filter);
        }
    }
    Vec::new()
}

fn key(state: &mut State, input: KeyInput) -> Vec<Effect> {
    state.message = None;
    if let Some(prompt) = state.prompt.take() {
        return prompted(state, prompt, input);
    }
    let Some(action) = state.keymap.action(state.view, input) else {
        return Vec::new();
    };
    if let Some(overlay) = state.overlay {
        return in_overlay(state, overlay, action);
    }
    perform(state, action)
}

fn prompted(state: &mut State, prompt: Prompt, input: KeyInput) -> Vec<Effect> {
    match prompt {
        Prompt::Confirm(question) => answer(state, question, input),
        Prompt::Text { purpose, mut line } => match line.key(input) {
            Edit::Accepted => accept(state, &purpose, line.text().to_owned()),
            Edit::Cancelled => {
                if purpose == Purpose::Filter {
                    board::set_filter(state, String::new());
                }
                Vec::new()
            }
            Edit::Changed | Edit::Ignored => {
                if purpose == Purpose::Filter {
                    board::set_filter(state, line.text().to_owned());
                }
                state.prompt = Some(Prompt::Text { purpose, line });
                Vec::new()
            }
        },
    }
}

fn answer(state: &mut State, question: Question, input: KeyInput) -> Vec<Effect> {
    let yes = matches!(input.key, Key::Char('y' | 'Y')) && !input.ctrl;
    // Whoever presses the key of quitting twice means it.
    let insists = state.keymap.action(state.view, input) == Some(Action::Quit);
    match question {
        Question::QuitUnsaved if yes || insists => vec![Effect::Quit],
        Question::Overwrite(path) if yes => export_to(state, path, true),
        Question::Overwrite(path) => {
            state.say(format!("{path} is left as it was; nothing was written"));
            Vec::new()
        }
        Question::QuitUnsaved => Vec::new(),
    }
}

fn accept(state: &mut State, purpose: &Purpose, text: String) -> Vec<Effect> {
    match purpose {
        Purpose::Filter => board::set_filter(state, text),
        Purpose::VetoReason => ranking::veto_with(state, &text),
        Purpose::ExportPath if text.trim().is_empty() => state.say("no path given; nothing was written"),
        Purpose::ExportPath => return export_to(state, text.trim().to_owned(), false),
    }
    Vec::new()
}

fn export_to(state: &mut State, path: String, overwrite: bool) -> Vec<Effect> {
    let plan = ranking::export_plan(state);
    if plan.entries.is_empty() {
        state.complain("nothing to export: no issue has a chosen attempt");
        return Vec::new();
    }
    vec![Effect::Export { path: PathBuf::from(path), overwrite, entries: plan.entries }]
}

fn in_overlay(state: &mut State, overlay: Overlay, action: Action) -> Vec<Effect> {
    let page = usize::from(geometry::overlay(state.size).1.h.saturating_sub(1).max(1));
    let first = match action {
        Action::Up => overlay.first.saturating_sub(1),
        Action::Down => overlay.first + 1,
        Action::PageUp => overlay.first.saturating_sub(page),
        Action::PageDown => overlay.first + page,
        Action::Top => 0,
        Action::Bottom => usize::MAX,
        Action::Back | Action::Close => {
            state.overlay = None;
            return Vec::new();
        }
        Action::Help => return toggle_overlay(state, OverlayKind::Help),
        Action::Files => return toggle_overlay(state, OverlayKind::Files),
        Action::Quit => return quit(state),
        Action::Theme => return perform(state, Action::Theme),
        _ => return Vec::new(),
    };
    let inner = geometry::overlay(state.size).1;
    let rows = super::overlay::lines(state, overlay.kind, usize::from(inner.w)).rows.len();
    let last = rows.saturating_sub(usize::from(inner.h));
    state.overlay = Some(Overlay { first: first.min(last), ..overlay });
    Vec::new()
}

fn toggle_overlay(state: &mut State, kind: OverlayKind) -> Vec<Effect> {
    let open = state.overlay.is_some_and(|o| o.kind == kind);
    if kind == OverlayKind::Files && !open {
        state.data.account();
    }
    state.overlay = (!open).then_some(Overlay { kind, first: 0 });
    Vec::new()
}

fn perform(state: &mut State, action: Action) -> Vec<Effect> {
    let own = match state.view {
        View::Board => board::handle(state, action),
        View::Timeline => timeline::handle(state, action),
        View::Compare => compare::handle(state, action),
        View::Rank => ranking::handle(state, action),
    };
    own.unwrap_or_else(|| common(state, action))
}

/// What works everywhere, and the ways from screen to screen.
fn common(state: &mut State, action: Action) -> Vec<Effect> {
    match action {
        Action::Help => toggle_overlay(state, OverlayKind::Help),
        Action::Files => toggle_overlay(state, OverlayKind::Files),
        Action::Theme => {
            state.theme = if state.theme == ThemeName::Dark { ThemeName::Light } else { ThemeName::Dark };
            Vec::new()
        }
        Action::Quit => quit(state),
        Action::Close if state.view == View::Board => quit(state),
        Action::Close | Action::Back => back(state),
        Action::Open | Action::ViewTimeline => open_timeline(state),
        Action::ViewBoard => {
            state.go(View::Board);
            Vec::new()
        }
        Action::ViewCompare | Action::BoardCompare | Action::TimelineCompare | Action::RankCompare => {
            open_compare(state)
        }
        Action::ViewRank | Action::BoardRank | Action::TimelineRank | Action::CompareRank => open_rank(state),
        Action::BoardExport | Action::Export => ask_export_path(state),
        Action::ComparePreviousIssue | Action::RankPreviousIssue => other_issue(state, -1),
        Action::CompareNextIssue | Action::RankNextIssue => other_issue(state, 1),
        // Keys of movement that mean nothing on this screen.
        _ => Vec::new(),
    }
}

fn quit(state: &mut State) -> Vec<Effect> {
    if state.ranking.unsaved {
        state.prompt = Some(Prompt::Confirm(Question::QuitUnsaved));
        return Vec::new();
    }
    vec![Effect::Quit]
}

fn back(state: &mut State) -> Vec<Effect> {
    if state.view == View::Timeline && state.timeline.zoomed {
        return timeline::handle(state, Action::Zoom).unwrap_or_default();
    }
    if state.view == View::Board {
        board::set_filter(state, String::new());
        return Vec::new();
    }
    state.view = state.history.pop().unwrap_or_default();
    Vec::new()
}

/// Issue, and attempt if one is meant, of what is selected on the screen.
fn current(state: &State) -> Option<(usize, Option<usize>)> {
    match state.view {
        View::Board => state.board.row().map(|row| match row {
            BoardRow::Issue(issue) => (issue, None),
            BoardRow::Attempt(issue, attempt) => (issue, Some(attempt)),
        }),
        View::Timeline => state.timeline.open.then_some((state.timeline.issue, Some(state.timeline.attempt))),
        View::Compare => {
            let c = &state.compare;
            let attempt = c.columns.get(c.selected).and_then(|column| column.attempts.first().copied());
            c.open.then_some((c.issue, attempt))
        }
        View::Rank => state.ranking.open.then(|| (state.ranking.issue, ranking::selected_attempt(state))),
    }
}

fn open_timeline(state: &mut State) -> Vec<Effect> {
    let Some((issue, attempt)) = current(state) else {
        state.say("nothing is selected");
        return Vec::new();
    };
    let attempt = attempt.unwrap_or_else(|| board::attempt_to_open(&state.data.issues[issue], &state.scores));
    state.go(View::Timeline);
    timeline::open(state, issue, attempt)
}

fn open_compare(state: &mut State) -> Vec<Effect> {
    let Some((issue, attempt)) = current(state) else {
        state.say("nothing is selected");
        return Vec::new();
    };
    if state.view == View::Compare {
        return Vec::new();
    }
    state.go(View::Compare);
    compare::open(state, issue, attempt)
}

fn open_rank(state: &mut State) -> Vec<Effect> {
    let Some((issue, attempt)) = current(state) else {
        state.say("nothing is selected");
        return Vec::new();
    };
    if state.view != View::Rank {
        state.go(View::Rank);
        return ranking::open(state, issue, attempt);
    }
    Vec::new()
}

/// The next or previous issue in the Board's order, on the same screen.
fn other_issue(state: &mut State, by: isize) -> Vec<Effect> {
    let issues = state.board.issues();
    let Some((issue, _)) = current(state) else {
        return Vec::new();
    };
    let at = issues.iter().position(|&i| i == issue).unwrap_or(0);
    let to = at.saturating_add_signed(by);
    let Some(&issue) = issues.get(to).filter(|_| to != at) else {
        state.say(format!("this is the {} issue", if by > 0 { "last" } else { "first" }));
        return Vec::new();
    };
    let row = BoardRow::Issue(issue);
    state.board.selected = state.board.rows.iter().position(|r| *r == row).unwrap_or(state.board.selected);
    match state.view {
        View::Compare => compare::open(state, issue, None),
        View::Rank => ranking::open(state, issue, None),
        View::Board | View::Timeline => Vec::new(),
    }
}

fn ask_export_path(state: &mut State) -> Vec<Effect> {
    let plan = ranking::export_plan(state);
    if plan.entries.is_empty() {
        state.complain("nothing to export: no issue has a chosen attempt (is anything scored yet?)");
    } else {
        state.prompt = Some(Prompt::Text { purpose: Purpose::ExportPath, line: Line::new(EXPORT_PATH) });
    }
    Vec::new()
}
