//! Compare: the candidate patches of one issue side by side, equal ones folded into one column.

use super::data::IssueEntry;
use super::doc::Scroll;
use super::effect::Effect;
use super::geometry;
use super::scores::ScoreBook;
use super::{Action, State, ranking};

/// One column: a patch, and the attempts that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Numbers of the attempts, the best score first.
    pub attempts: Vec<usize>,
    /// Id of the diff.
    pub diff: String,
    /// Where it is read on from.
    pub scroll: Scroll,
}

/// State of Compare.
#[derive(Debug, Clone)]
pub struct Compare {
    /// Number of the issue.
    pub issue: usize,
    /// Is anything open?
    pub open: bool,
    /// The columns, in the order of Rank.
    pub columns: Vec<Column>,
    /// The selected column.
    pub selected: usize,
    /// Scroll all columns, or only the selected one?
    pub together: bool,
    /// Show which candidate touches which file?
    pub matrix: bool,
    /// Path of every file that any candidate touches, in order.
    pub files: Vec<String>,
    /// The file last jumped to.
    pub file: Option<usize>,
}

impl Default for Compare {
    fn default() -> Self {
        Self {
            issue: 0,
            open: false,
            columns: Vec::new(),
            selected: 0,
            together: true,
            matrix: true,
            files: Vec::new(),
            file: None,
        }
    }
}

impl Compare {
    /// First of the `shown` columns on the screen: the selected one is among them.
    pub fn first_shown(&self, shown: usize) -> usize {
        let last_first = self.columns.len().saturating_sub(shown);
        self.selected.saturating_sub(shown / 2).min(last_first)
    }
}

/// Opens an issue, with the column of `attempt` selected.
pub(super) fn open(state: &mut State, issue: usize, attempt: Option<usize>) -> Vec<Effect> {
    let Some(entry) = state.data.issues.get(issue) else {
        return Vec::new();
    };
    let order: Vec<usize> = ranking::of_issue(state, issue).rows.iter().map(|r| r.candidate.attempt).collect();
    let groups = group(entry, &order);
    let mut files: Vec<String> = Vec::new();
    let touched = entry.attempts.iter().filter_map(|a| a.facts.patch.as_ref()).flat_map(|p| &p.files);
    files.extend(touched.map(|f| f.path.clone()));
    files.sort_unstable();
    files.dedup();
    state.diffs.reserve(groups.len());
    let mut requests = Vec::new();
    let mut columns = Vec::with_capacity(groups.len());
    for attempts in groups {
        let patch = attempts.first().and_then(|&a| state.data.issues[issue].issue.attempts[a].patch());
        let (diff, request) = state.diffs.add(patch);
        requests.extend(request);
        columns.push(Column { attempts, diff, scroll: Scroll::default() });
    }
    let selected = attempt.and_then(|a| columns.iter().position(|c| c.attempts.contains(&a))).unwrap_or(0);
    let (together, matrix) = (state.compare.together, state.compare.matrix);
    state.compare = Compare { issue, open: true, columns, selected, together, matrix, files, file: None };
    if requests.is_empty() { Vec::new() } else { vec![Effect::Highlight(requests)] }
}

/// Attempts with the same patch (after normalising) together, in the given order. Attempts without a patch, and
/// with an empty one, are two groups of their own.
fn group(entry: &IssueEntry, order: &[usize]) -> Vec<Vec<usize>> {
    let key = |attempt: usize| entry.attempts[attempt].facts.patch.as_ref().map(|p| p.normal.as_str());
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &attempt in order {
        match groups.iter_mut().find(|g| key(g[0]) == key(attempt)) {
            Some(group) => group.push(attempt),
            None => groups.push(vec![attempt]),
        }
    }
    groups
}

/// Best score in a column.
pub fn best_of(column: &Column, entry: &IssueEntry, scores: &ScoreBook) -> Option<f64> {
    let score = |a: &usize| scores.get(entry.attempts.get(*a)?.key()?)?.score;
    column.attempts.iter().filter_map(score).max_by(f64::total_cmp)
}

/// The panes as they are drawn now.
pub fn panes(state: &State) -> geometry::ComparePanes {
    let c = &state.compare;
    geometry::compare(geometry::screen(state.size).body, c.columns.len(), c.matrix.then_some(c.files.len()))
}

/// Handles an action on Compare; `None` if it is not one of its own.
pub(super) fn handle(state: &mut State, action: Action) -> Option<Vec<Effect>> {
    let page = panes(state).columns.first().map_or(1, |(_, diff)| isize::try_from(diff.h).unwrap_or(1)).max(2) - 1;
    match action {
        Action::Left => select(state, -1),
        Action::Right => select(state, 1),
        Action::Up => scroll(state, -1),
        Action::Down => scroll(state, 1),
        Action::PageUp => scroll(state, -page),
        Action::PageDown => scroll(state, page),
        Action::Top => edge(state, false),
        Action::Bottom => edge(state, true),
        Action::NextFile => to_file(state, 1),
        Action::PreviousFile => to_file(state, -1),
        Action::NextHunk => to_hunk(state, true),
        Action::PreviousHunk => to_hunk(state, false),
        Action::ScrollTogether => {
            state.compare.together = !state.compare.together;
            let how = if state.compare.together { "all columns scroll together" } else { "only the selected scrolls" };
            state.say(how);
        }
        Action::Matrix => state.compare.matrix = !state.compare.matrix,
        _ => return None,
    }
    Some(Vec::new())
}

fn select(state: &mut State, by: isize) {
    let last = state.compare.columns.len().saturating_sub(1);
    state.compare.selected = state.compare.selected.saturating_add_signed(by).min(last);
}

/// Columns that move, each with its width and height on the screen.
fn moving(state: &State) -> (Vec<usize>, usize, usize) {
    let c = &state.compare;
    let panes = panes(state);
    let shape = panes.columns.first().map_or((1, 1), |(_, d)| (usize::from(d.w), usize::from(d.h)));
    let which = if c.together { (0..c.columns.len()).collect() } else { vec![c.selected] };
    (which, shape.0, shape.1)
}

fn scroll(state: &mut State, by: isize) {
    let (which, width, height) = moving(state);
    for i in which {
        let Some(column) = state.compare.columns.get_mut(i) else { continue };
        let Some(diff) = state.diffs.get(&column.diff) else { continue };
        let to = diff.doc.scrolled(column.scroll, by, width);
        let bottom = diff.doc.bottom(width, height);
        column.scroll = if by > 0 { to.min(bottom).max(column.scroll) } else { to };
    }
}

fn edge(state: &mut State, bottom: bool) {
    let (which, width, height) = moving(state);
    for i in which {
        let Some(column) = state.compare.columns.get_mut(i) else { continue };
        let end = state.diffs.get(&column.diff).map(|d| d.doc.bottom(width, height));
        column.scroll = if bottom { end.unwrap_or_default() } else { Scroll::default() };
    }
    state.compare.file = None;
}

/// All columns to the same file, the next of all files that any candidate touches. A column without it stays.
fn to_file(state: &mut State, by: isize) {
    let c = &mut state.compare;
    let Some(last) = c.files.len().checked_sub(1) else {
        state.say("no candidate touches a file");
        return;
    };
    let to = match c.file {
        None => 0,
        Some(at) => at.saturating_add_signed(by).min(last),
    };
    c.file = Some(to);
    let path = c.files[to].clone();
    let mut touching = 0;
    for column in &mut c.columns {
        if let Some(line) = state.diffs.get(&column.diff).and_then(|d| d.line_of_file(&path)) {
            column.scroll = Scroll { line, byte: 0 };
            touching += column.attempts.len();
        }
    }
    let all: usize = c.columns.iter().map(|c| c.attempts.len()).sum();
    let (number, files) = (to + 1, c.files.len());
    state.say(format!("file {number} of {files}: {path} (touched by {touching} of {all})"));
}

fn to_hunk(state: &mut State, forward: bool) {
    let Some(column) = state.compare.columns.get_mut(state.compare.selected) else {
        return;
    };
    let Some(diff) = state.diffs.get(&column.diff) else {
        return;
    };
    let at = column.scroll.line;
    let found = if forward { diff.hunks.iter().find(|&&h| h > at) } else { diff.hunks.iter().rev().find(|&&h| h < at) };
    match found {
        Some(&line) => column.scroll = Scroll { line, byte: 0 },
        None => state.say(format!("no hunk {} here", if forward { "after" } else { "before" })),
    }
}
