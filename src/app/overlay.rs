//! The rows of the overlays: keys and badges, files and what is odd about them.

use crate::text;
use crate::trajectory::Severity;

use super::action::Context;
use super::doc::Tone;
use super::facts::Badge;
use super::state::State;

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

/// The keys of the screen, those that work everywhere, what the badges mean, and what the critic's number means.
pub fn help(state: &State) -> Vec<OverlayRow> {
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

/// The files: those not understood first, each with the reason, then every remark.
pub fn files(state: &State) -> Vec<OverlayRow> {
    let files = state.data.files();
    let (all, strange) = (files.len(), state.data.not_understood());
    let runs: usize = files.iter().map(|f| f.trajectories).sum();
    let head = format!("{all} files, {runs} trajectories, {strange} files not understood");
    let mut rows = vec![row(Tone::Heading, head, "")];
    for file in files {
        let path = text::one_line(&file.path.display().to_string());
        let reason = text::one_line(&file.reason);
        match file.format {
            None => rows.push(row(Tone::Error, path, reason)),
            Some(format) => rows.push(row(Tone::Plain, path, format!("{format}: {reason}"))),
        }
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
