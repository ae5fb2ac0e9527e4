//! From trajectories and predictions to attempts, without doubles.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::runs::{self, Candidate, Companion, Runs};
use super::{Attempt, Label, Prediction};
use crate::trajectory::{Diagnostic, Outcome, Severity, SharedTrajectory, Trajectory};

/// Adds a trajectory, unless it is a copy of one that is there: `output.jsonl` and its evaluated twin beside it.
pub fn add_trajectory(attempts: &mut Vec<Attempt>, trajectory: &SharedTrajectory) {
    let copy = attempts.iter_mut().find(|a| a.trajectory.as_ref().is_some_and(|t| is_copy(t, trajectory)));
    if let Some(attempt) = copy {
        let text = format!("the same trajectory stands in {}", file_name(&trajectory.source.path));
        attempt.diagnostics.push(Diagnostic::new(Severity::Info, "join.copy", text));
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
    elsewhere
        && labels_agree
        && a.instance_id.is_some()
        && a.format == b.format
        && a.patch == b.patch
        && a.known_steps().is_some()
        && a.known_steps() == b.known_steps()
        && a.content_hash() == b.content_hash()
}

/// Joins the predictions for one instance to its attempts; those that fit none become attempts of their own.
pub fn add_predictions(attempts: &mut Vec<Attempt>, instance: &str, own: &[&Arc<Prediction>], runs: &mut Runs) {
    // A prediction in the instance's own folder is nearer than one in the run's: it comes first.
    let mut own = own.to_vec();
    own.sort_by_key(|p| std::cmp::Reverse(p.path.components().count()));
    let candidates: Vec<Candidate<'_>> = attempts.iter().map(|a| Candidate::of(a, Some(instance))).collect();
    let mut find = |prediction: &Prediction| {
        if candidates.is_empty() {
            return None;
        }
        let names: BTreeSet<String> = prediction.model.iter().map(|m| runs::plain(m)).collect();
        let roots = runs::roots(&prediction.path, Some(instance));
        let patch = Some(patch_of(prediction));
        runs::find(&Companion { roots: &roots, names: &names, patch }, &candidates, runs)
    };
    let found: Vec<Option<usize>> = own.iter().map(|p| find(p)).collect();
    let mut left = Vec::new();
    for (prediction, at) in own.into_iter().zip(found) {
        let attempt = at.and_then(|i| attempts.get_mut(i));
        if !attempt.is_some_and(|attempt| take(attempt, prediction)) {
            left.push(prediction);
        }
    }
    left.sort_by(|a, b| (&a.path, a.record).cmp(&(&b.path, b.record)));
    for prediction in left {
        add_alone(attempts, instance, prediction);
    }
}

/// The patch a prediction stands for: null is empty.
fn patch_of(prediction: &Prediction) -> &str {
    prediction.patch.as_deref().unwrap_or_default()
}

/// Joins a prediction to an attempt. A second one is only mentioned if it says the same; if not, it is a candidate
/// of its own and `false` is returned.
fn take(attempt: &mut Attempt, prediction: &Arc<Prediction>) -> bool {
    let patch = patch_of(prediction);
    if let Some(first) = &attempt.prediction {
        let same = runs::same_patch(patch_of(first), patch);
        if same {
            let text = format!("predicted again in {}", file_name(&prediction.path));
            attempt.diagnostics.push(Diagnostic::new(Severity::Info, "join.duplicate-prediction", text));
        }
        return same;
    }
    let own = attempt.trajectory.as_ref().and_then(|t| t.patch.as_deref());
    if own.is_some_and(|own| !runs::same_patch(own, patch)) {
        let file = file_name(&prediction.path);
        let text =
            format!("the patch in {file} differs from the trajectory's: the predicted one is shown and exported");
        attempt.diagnostics.push(Diagnostic::new(Severity::Warning, "join.patch-differs", text));
    }
    attempt.prediction = Some(Arc::clone(prediction));
    true
}

/// A candidate patch that came without a trajectory, unless the same run predicted the same in another file.
fn add_alone(attempts: &mut Vec<Attempt>, instance: &str, prediction: &Arc<Prediction>) {
    let twin = attempts.iter_mut().find(|a| {
        a.trajectory.is_none() && a.prediction.as_ref().is_some_and(|p| says_the_same(p, prediction, instance))
    });
    if let Some(attempt) = twin {
        let text = format!("predicted again in {}", file_name(&prediction.path));
        attempt.diagnostics.push(Diagnostic::new(Severity::Info, "join.duplicate-prediction", text));
        return;
    }
    attempts.push(Attempt { prediction: Some(Arc::clone(prediction)), ..Attempt::default() });
}

/// The same patch by the same model in another file of the same run.
fn says_the_same(a: &Prediction, b: &Prediction, instance: &str) -> bool {
    a.path != b.path
        && a.model == b.model
        && runs::run_dir(&a.path, Some(instance)) == runs::run_dir(&b.path, Some(instance))
        && runs::same_patch(patch_of(a), patch_of(b))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
