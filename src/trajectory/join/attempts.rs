//! From trajectories and predictions to attempts, without doubles.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::account::{Joined, Log, Rule};
use super::runs::{self, Candidate, Companion, Runs};
use super::sessions::same;
use super::{Attempt, Label, Prediction};
use crate::trajectory::{Diagnostic, Outcome, Severity, SharedTrajectory, Trajectory};

/// Adds a trajectory, unless it is a copy of one that is there: `output.jsonl` and its evaluated twin beside it, or
/// another record of the same session.
pub fn add_trajectory(attempts: &mut Vec<Attempt>, trajectory: &SharedTrajectory, log: &mut Log) {
    let copy = attempts
        .iter_mut()
        .find(|a| a.trajectory.as_ref().is_some_and(|t| is_copy(t, trajectory) || same(t, trajectory)));
    if let Some(attempt) = copy {
        let text = format!("the same trajectory stands in {}", file_name(&trajectory.source.path));
        attempt.diagnostics.push(Diagnostic::new(Severity::Info, "join.copy", text));
        let source = &trajectory.source;
        let place = (source.path.as_path(), source.record);
        log.add(Joined::Trajectory, place, trajectory.instance_id.as_deref(), attempt.target(), Rule::Again);
        if attempt.label.outcome == Outcome::Unknown {
            attempt.label.outcome = trajectory.outcome;
            attempt.label.from =
                Some(trajectory.source.path.clone()).filter(|_| trajectory.outcome != Outcome::Unknown);
        }
        return;
    }
    let label = Label { outcome: trajectory.outcome, ..Label::default() };
    attempts.push(Attempt { trajectory: Some(Arc::clone(trajectory)), label, ..Attempt::default() });
}

/// The same run written to two files of one folder.
fn is_copy(a: &Trajectory, b: &Trajectory) -> bool {
    let elsewhere = a.source.path != b.source.path && a.source.path.parent() == b.source.path.parent();
    let labels_agree = a.outcome == b.outcome || a.outcome == Outcome::Unknown || b.outcome == Outcome::Unknown;
    // Two attempts that both failed at once look alike, but are two.
    let numbered_apart = a.attempt.is_some() && b.attempt.is_some() && a.attempt != b.attempt;
    // Two sessions that say the same (a short answer at temperature 0) are two as well.
    let other_session = a.session.is_some() && b.session.is_some() && a.session != b.session;
    elsewhere
        && labels_agree
        && !numbered_apart
        && !other_session
        && a.instance_id.is_some()
        && a.format == b.format
        && a.patch == b.patch
        && a.known_steps().is_some()
        && a.known_steps() == b.known_steps()
        && a.content_hash() == b.content_hash()
}

/// Joins the predictions for one instance to its attempts; those that fit none become attempts of their own.
pub fn add_predictions(
    attempts: &mut Vec<Attempt>,
    instance: &str,
    own: &[&Arc<Prediction>],
    runs: &mut Runs,
    log: &mut Log,
) {
    // A prediction in the instance's own folder is nearer than one in the run's: it comes first.
    let mut own = own.to_vec();
    own.sort_by_key(|p| std::cmp::Reverse(p.path.components().count()));
    let candidates: Vec<Candidate<'_>> = attempts.iter().map(|a| Candidate::of(a, Some(instance))).collect();
    let mut find = |prediction: &Prediction| {
        let names: BTreeSet<String> = prediction.model.iter().map(|m| runs::plain(m)).collect();
        let roots = runs::roots(&prediction.path, Some(instance));
        let patch = Some(patch_of(prediction));
        runs::find(&Companion { roots: &roots, names: &names, patch }, &candidates, runs)
    };
    let found: Vec<Result<(usize, Rule), Rule>> = own.iter().map(|p| find(p)).collect();
    let mut left = Vec::new();
    for (prediction, found) in own.into_iter().zip(found) {
        let at = found.ok().and_then(|(i, rule)| Some((attempts.get_mut(i)?, rule)));
        let Some((attempt, rule)) = at else {
            left.push(prediction);
            continue;
        };
        match take(attempt, prediction) {
            Taken::First => note(prediction, attempt, rule, log),
            Taken::Again => note(prediction, attempt, Rule::Again, log),
            Taken::No => left.push(prediction),
        }
    }
    // Named candidates first: a file without names repeats one of them.
    left.sort_by(|a, b| {
        let key = |p: &Prediction| (p.candidate.is_none(), p.path.clone(), p.record);
        key(a).cmp(&key(b))
    });
    for prediction in left {
        add_alone(attempts, instance, prediction, log);
    }
}

fn note(prediction: &Prediction, attempt: &Attempt, rule: Rule, log: &mut Log) {
    let place = (prediction.path.as_path(), prediction.record);
    log.add(Joined::Prediction, place, Some(&prediction.instance_id), attempt.target(), rule);
}

/// The patch a prediction stands for: null is empty.
fn patch_of(prediction: &Prediction) -> &str {
    prediction.patch.as_deref().unwrap_or_default()
}

/// What became of a prediction offered to an attempt.
enum Taken {
    /// It is the attempt's now.
    First,
    /// The attempt has one that says the same.
    Again,
    /// The attempt has another one: this is a candidate of its own.
    No,
}

/// Joins a prediction to an attempt. A second one is only mentioned if it says the same.
fn take(attempt: &mut Attempt, prediction: &Arc<Prediction>) -> Taken {
    let patch = patch_of(prediction);
    if let Some(first) = &attempt.prediction {
        if !runs::same_patch(patch_of(first), patch) {
            return Taken::No;
        }
        predicted_again(attempt, prediction);
        return Taken::Again;
    }
    let own = attempt.trajectory.as_ref().and_then(|t| t.patch.as_deref());
    if own.is_some_and(|own| !runs::same_patch(own, patch)) {
        let file = file_name(&prediction.path);
        let text =
            format!("the patch in {file} differs from the trajectory's: the predicted one is shown and exported");
        attempt.diagnostics.push(Diagnostic::new(Severity::Warning, "join.patch-differs", text));
    }
    adopt(attempt, prediction);
    Taken::First
}

/// Makes a prediction the attempt's, with the label that stands beside it.
fn adopt(attempt: &mut Attempt, prediction: &Arc<Prediction>) {
    attempt.prediction = Some(Arc::clone(prediction));
    let label = &mut attempt.label;
    if prediction.outcome == Outcome::Unknown || prediction.outcome == label.outcome {
        return;
    }
    if label.outcome == Outcome::Unknown {
        label.outcome = prediction.outcome;
        label.from = Some(prediction.path.clone());
    } else {
        label.contradicted_by.push(prediction.path.clone());
    }
}

fn predicted_again(attempt: &mut Attempt, prediction: &Prediction) {
    let text = format!("predicted again in {}", file_name(&prediction.path));
    attempt.diagnostics.push(Diagnostic::new(Severity::Info, "join.duplicate-prediction", text));
}

/// A candidate patch that came without a trajectory, unless the same run predicted the same in another file.
fn add_alone(attempts: &mut Vec<Attempt>, instance: &str, prediction: &Arc<Prediction>, log: &mut Log) {
    let twin = attempts.iter_mut().find(|a| {
        a.trajectory.is_none() && a.prediction.as_ref().is_some_and(|p| says_the_same(p, prediction, instance))
    });
    if let Some(attempt) = twin {
        predicted_again(attempt, prediction);
        return note(prediction, attempt, Rule::Again, log);
    }
    let mut alone = Attempt::default();
    adopt(&mut alone, prediction);
    note(prediction, &alone, Rule::Alone, log);
    attempts.push(alone);
}

/// The same patch by the same model in another file of the same run (the harness's copy names no model).
fn says_the_same(a: &Prediction, b: &Prediction, instance: &str) -> bool {
    let rooted = |p: &Prediction| runs::roots(&p.path, Some(instance));
    let candidates = (&a.candidate, &b.candidate);
    a.path != b.path
        && !matches!(candidates, (Some(a), Some(b)) if a != b)
        && (a.model == b.model || a.model.is_none() || b.model.is_none())
        && runs::same_patch(patch_of(a), patch_of(b))
        && rooted(a).iter().any(|root| rooted(b).contains(root))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
