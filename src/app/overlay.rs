//! The rows of the overlays: keys and badges, files and what is odd about them.

use crate::text;
use crate::trajectory::Severity;

use super::View;
use super::action::Context;
use super::doc::Tone;
use super::facts::Badge;
use super::state::{OverlayKind, State};

/// One row: a word at the left, its explanation, and what kind of row it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayRow {
    /// At the left; keys or a file's name.
    pub left: String,
    /// At the right.
    pub right: String,
    /// What it is.
    pub tone: Tone,
}

fn row(tone: Tone, left: impl Into<String>, right: impl Into<String>) -> OverlayRow {
    OverlayRow { left: left.into(), right: right.into(), tone }
}

/// An overlay laid out for a width: nothing is cut off, long explanations go on below.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverlayLines {
    /// Columns of the left part.
    pub left: usize,
    /// The rows.
    pub rows: Vec<OverlayRow>,
}

/// Lays an overlay out for so many columns.
pub fn lines(state: &State, kind: OverlayKind, width: usize) -> OverlayLines {
    let (rows, most) = match kind {
        OverlayKind::Help => (help(state), width * 2 / 5),
        OverlayKind::Files => (files(state), width * 9 / 20),
    };
    let both = rows.iter().filter(|r| !r.right.is_empty());
    let longest = both.map(|r| text::display_width(&r.left)).max().unwrap_or(0);
    let left = (longest + 2).min(most);
    let mut laid_out = Vec::with_capacity(rows.len());
    for row in rows {
        if row.right.is_empty() {
            laid_out.push(row);
            continue;
        }
        let cut = match kind {
            OverlayKind::Help => text::truncate(&row.left, left.saturating_sub(1)),
            // The end of a path says more than its beginning.
            OverlayKind::Files => text::truncate_start(&row.left, left.saturating_sub(1)),
        };
        for (i, part) in text::wrap(&row.right, width.saturating_sub(left)).into_iter().enumerate() {
            let left = if i == 0 { cut.clone().into_owned() } else { String::new() };
            let right = row.right.get(part).unwrap_or_default().to_owned();
            laid_out.push(OverlayRow { left, right, tone: row.tone });
        }
    }
    OverlayLines { left, rows: laid_out }
}

/// The keys of the screen, those that work everywhere, what the badges mean, and what the critic's number means.
fn help(state: &State) -> Vec<OverlayRow> {
    let mut rows = Vec::new();
    let mut context: Option<Context> = None;
    for key in state.keymap.help(state.view) {
        if context != Some(key.context) {
            context = Some(key.context);
            let title = match key.context {
                Context::Global => "everywhere".to_owned(),
                here => format!("on this screen ({})", here.name()),
            };
            rows.push(row(Tone::Heading, title, ""));
        }
        rows.push(row(Tone::Plain, key.keys, key.help));
    }
    rows.push(row(Tone::Heading, "signs", ""));
    rows.extend(signs(state.view).iter().map(|(sign, meaning)| row(Tone::Plain, *sign, *meaning)));
    rows.push(row(Tone::Heading, "badges", ""));
    rows.extend(Badge::ALL.into_iter().map(|b| row(Tone::Plain, b.label(), b.help())));
    if let Some(info) = state.critic_info() {
        rows.push(row(Tone::Heading, "the number", ""));
        rows.push(row(Tone::Plain, "meaning", text::one_line(&info.scale.meaning)));
        rows.push(row(Tone::Plain, "scale", text::one_line(&info.note)));
        rows.push(row(Tone::Plain, "drop", format!("a fall of at least {} between two rewards", info.drop_threshold)));
        rows.push(row(Tone::Plain, "-", "not scored (never the same as 0)"));
    }
    rows
}

/// What the signs on a screen mean.
fn signs(view: View) -> &'static [(&'static str, &'static str)] {
    match view {
        View::Board => &[
            ("2/3", "under runs: attempts scored of all; of one attempt: actions scored of all"),
            ("✓ 1/2 ?", "attempts resolved of those with a label; ? = some have no label, so nobody knows"),
            ("▼ 0.28", "the largest drop in any of the attempts"),
            ("≥$1.26", "at least so much: some attempts do not say what they cost"),
        ],
        View::Timeline => &[
            ("▼", "the reward drops at this action"),
            ("✗", "the environment reported an error, or the command failed"),
            ("↻", "part of a loop"),
            ("∎", "nothing was observed any more: the run ended here"),
            ("▲", "the selected action, below the curve"),
        ],
        View::Compare => &[
            ("×2", "so many attempts made the same patch (line ends and index lines aside)"),
            ("·", "the candidate does not touch the file"),
        ],
        View::Rank => &[
            ("★", "the attempt that an export would choose"),
            ("2↑ 1↓", "the critic's own place, where a person has moved the attempt"),
            ("= run-2", "the same patch as that attempt"),
        ],
    }
}

/// The files: those not understood first, each with the reason, then every remark.
fn files(state: &State) -> Vec<OverlayRow> {
    let files = state.data.files();
    let (all, strange) = (files.len(), state.data.not_understood());
    let runs: usize = files.iter().map(|f| f.trajectories).sum();
    let head = format!("{all} files, {runs} trajectories, {strange} files not understood");
    let mut rows = vec![row(Tone::Heading, head, "")];
    for file in files {
        let path = text::one_line(&file.path.display().to_string());
        let reason = text::one_line(&file.reason);
        match file.format {
            None if file.foreign => rows.push(row(Tone::Plain, path, reason)),
            None => rows.push(row(Tone::Error, path, reason)),
            Some(format) => rows.push(row(Tone::Plain, path, format!("{format}: {reason}"))),
        }
        let joins = state.data.joins.get(&file.path).map(Vec::as_slice).unwrap_or_default();
        rows.extend(joins.iter().map(|text| row(Tone::Plain, "", text::one_line(text))));
        for d in &file.diagnostics {
            let tone = if d.severity == Severity::Error { Tone::Error } else { Tone::Note };
            let place = d.at.to_string();
            let place = if place.is_empty() { place } else { format!(" ({place})") };
            let line = format!("{}: {}{place}", d.severity.name(), text::one_line(&d.message));
            rows.push(row(tone, "", line));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Keymap, ThemeName};

    fn state() -> State {
        State::new(Keymap::builtin().unwrap(), ThemeName::Dark, false)
    }

    #[test]
    fn nothing_is_cut_off_in_a_narrow_overlay() {
        let state = state();
        for width in [12, 30, 60, 100] {
            let laid_out = lines(&state, OverlayKind::Help, width);
            let words: String = laid_out.rows.iter().map(|r| r.right.as_str()).collect();
            for (_, meaning) in signs(View::Board) {
                assert!(words.contains(meaning), "{meaning:?} at {width}");
            }
            let room = width - laid_out.left;
            let fits = |r: &OverlayRow| r.right.is_empty() || text::display_width(r.right.trim_end()) <= room;
            assert!(laid_out.rows.iter().all(fits), "at {width}");
        }
    }

    #[test]
    fn every_screen_explains_its_signs() {
        for view in View::ALL {
            assert!(!signs(view).is_empty());
        }
    }

    #[test]
    fn the_files_head_counts_what_was_not_understood() {
        let mut state = state();
        state.data.dataset.files.push(crate::trajectory::FileReport {
            path: "a.bin".into(),
            format: None,
            reason: "binary; give trajectory files".to_owned(),
            foreign: false,
            trajectories: 0,
            diagnostics: Vec::new(),
        });
        let rows = lines(&state, OverlayKind::Files, 80).rows;
        assert_eq!(rows[0].left, "1 files, 0 trajectories, 1 files not understood");
        assert_eq!((rows[1].left.as_str(), rows[1].tone), ("a.bin", Tone::Error));
    }

    #[test]
    fn the_files_say_what_was_joined() {
        let mut state = state();
        let report = crate::trajectory::RunReport { path: "r.json".into(), ..Default::default() };
        let outcomes = [("o__r-1".to_owned(), crate::trajectory::Outcome::Resolved)].into();
        state.data.dataset.reports.push(std::sync::Arc::new(crate::trajectory::RunReport { outcomes, ..report }));
        state.data.dataset.files.push(crate::trajectory::FileReport {
            path: "r.json".into(),
            format: Some("report-run"),
            reason: "a report".to_owned(),
            foreign: false,
            trajectories: 0,
            diagnostics: Vec::new(),
        });
        state.data.account();
        let rows = lines(&state, OverlayKind::Files, 120).rows;
        let text: String = rows.iter().map(|r| r.right.as_str()).collect::<Vec<_>>().join(" ");
        assert!(text.contains("report: 1 not joined (no trajectory and no prediction of the instance)"), "{text}");
    }
}
