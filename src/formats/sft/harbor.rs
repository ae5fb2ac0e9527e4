//! Harbor's export of traces: a row an episode, and every episode repeats the conversation so far.

use super::super::chat::{self, Fold};
use super::super::document::Row;
use super::super::json::Value;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{field, rows};
use crate::trajectory::{Diagnostic, Outcome, Role, Severity, Source, Step, Trajectory};

/// Rows of episodes.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let keys = ["conversations", "episode", "trial_name", "agent"];
    let fits = sniff.is_rows() && sniff.has_all(&keys) && sniff.first("conversations").is_some_and(Value::is_array);
    if fits { Match::some(Confidence::Certain, "rows with `conversations`, `episode` and `trial_name`") } else { None }
}

/// A trial whose episodes are being put together.
struct Trial {
    key: [Option<String>; 3],
    fold: Fold,
    last: Trajectory,
    episodes: usize,
}

/// Reads rows: one trajectory for each trial.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut trials: Vec<Trial> = Vec::new();
    let mut skipped = 0;
    let mut diagnostics = input.document.rows(|row| {
        let Some((key, messages)) = chat::messages_of(row.value) else {
            skipped += 1;
            return;
        };
        let mut prompt = chat::steps_at(&messages, &rows::pointer(row, key), |_, _| {});
        for step in &mut prompt {
            // Places of JSON lines count from the record: the trial's own is that of its first episode.
            step.raw.span = row.span;
        }
        rows::observations(&mut prompt);
        let answered = prompt.iter().rposition(|s| s.role != Role::Assistant).map_or(0, |at| at + 1);
        let answer = prompt.split_off(answered);
        let Some(trial) = trial_of(&mut trials, row, &prompt) else { return };
        trial.fold.add(prompt, answer);
        trial.episodes += 1;
        trial.last = described(row);
    });
    if skipped > 0 {
        let text = format!("{skipped} rows without messages were skipped");
        diagnostics.push(Diagnostic::new(Severity::Warning, "chat.no-messages", text));
    }
    let trajectories = trials.into_iter().enumerate().map(|(i, trial)| {
        let (steps, cuts) = trial.fold.finish();
        let mut trajectory = Trajectory { format: input.format, steps, ..trial.last };
        trajectory.source.record = i;
        if trial.episodes > 1 {
            let again = if cuts > 0 { format!(", {cuts} times begun anew from a summary") } else { String::new() };
            let text = format!("{} episodes of one trial, each message shown once{again}", trial.episodes);
            trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "harbor.episodes", text));
        }
        trajectory
    });
    Decoded { trajectories: trajectories.collect(), diagnostics, ..Decoded::default() }
}

/// The trial of a row. A row that begins with another task is another conversation, whatever its trial is called.
fn trial_of<'t>(trials: &'t mut Vec<Trial>, row: Row<'_>, prompt: &[Step]) -> Option<&'t mut Trial> {
    let key = ["run_id", "trial_name", "agent"].map(|k| field::text(row.value, k));
    let at = trials.iter().rposition(|t| t.key == key && t.fold.fits(prompt)).unwrap_or_else(|| {
        trials.push(Trial { key, fold: Fold::default(), last: Trajectory::default(), episodes: 0 });
        trials.len() - 1
    });
    trials.get_mut(at)
}

/// What a row says about its trial.
fn described(row: Row<'_>) -> Trajectory {
    let mut trajectory = rows::trajectory(row.value, Vec::new());
    // Put together from several rows, it is none of them.
    trajectory.source = Source::default();
    trajectory.instance_id = trajectory.instance_id.take().or_else(|| field::text(row.value, "task"));
    trajectory.session = field::text(row.value, "run_id");
    trajectory.attempt = field::text(row.value, "trial_name").or(trajectory.attempt.take());
    let result = field::get(row.value, "result");
    trajectory.outcome = Outcome::from_bool(result.and_then(field::truth));
    // Else it names the exception that ended the trial.
    let failed = result.and_then(Value::as_str).filter(|r| field::truth(&Value::from(*r)).is_none());
    trajectory.error = failed.map(str::to_owned);
    trajectory
}
