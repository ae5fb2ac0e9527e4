//! Labels from reports.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::runs::{self, Candidate, Companion, Dir, Runs};
use super::{Attempt, RunReport};
use crate::trajectory::Outcome;

/// Reports by what they speak about.
pub struct Labels<'a> {
    /// Reports that name an instance.
    by_instance: BTreeMap<&'a str, Vec<usize>>,
    /// Reports that also speak about the instances they do not name.
    closed: Vec<usize>,
    reports: Vec<Entry<'a>>,
}

struct Entry<'a> {
    report: &'a RunReport,
    names: BTreeSet<String>,
    /// Where its run may be rooted, if its own folder is not the instance's.
    roots: Vec<Dir>,
    /// Its own folder.
    dir: Dir,
}

impl Entry<'_> {
    fn roots(&self, instance: &str) -> Cow<'_, [Dir]> {
        let folder = self.report.path.parent().and_then(Path::file_name);
        if folder.is_some_and(|name| name == instance) {
            return Cow::Owned(runs::roots(&self.report.path, Some(instance)));
        }
        Cow::Borrowed(&self.roots)
    }
}

/// What a report says about an attempt.
struct Claim {
    per_instance: bool,
    /// Depth of the folder shared with the attempt: more is nearer.
    near: usize,
    outcome: Outcome,
    reason: Option<String>,
    path: PathBuf,
}

impl<'a> Labels<'a> {
    /// Sorts the reports.
    pub fn new(reports: &'a [Arc<RunReport>]) -> Self {
        let mut labels = Self { by_instance: BTreeMap::new(), closed: Vec::new(), reports: Vec::new() };
        for report in reports {
            let at = labels.reports.len();
            let named: BTreeSet<&str> =
                report.outcomes.keys().chain(report.reasons.keys()).map(String::as_str).collect();
            for instance in named {
                labels.by_instance.entry(instance).or_default().push(at);
            }
            if report.closed {
                labels.closed.push(at);
            }
            let roots = runs::roots(&report.path, None);
            let dir = Dir::of(report.path.parent().unwrap_or(Path::new("")));
            labels.reports.push(Entry { report, names: runs::run_names(&report.path, None), roots, dir });
        }
        labels
    }

    /// Labels the attempts at one instance.
    pub fn give(&self, attempts: &mut [Attempt], instance: &str, runs: &mut Runs) {
        let candidates: Vec<Candidate<'_>> = attempts.iter().map(|a| Candidate::of(a, Some(instance))).collect();
        let mut claims: BTreeMap<usize, Vec<Claim>> = BTreeMap::new();
        let named = self.by_instance.get(instance).map(Vec::as_slice).unwrap_or_default();
        let closed = self.closed.iter().filter(|i| !named.contains(i));
        for entry in named.iter().chain(closed).filter_map(|i| self.reports.get(*i)) {
            for at in applies_to(entry, attempts, &candidates, instance, runs) {
                if !is_attempt(entry.report, attempts.get(at)) {
                    continue;
                }
                let (Some(attempt), Some(candidate)) = (attempts.get(at), candidates.get(at)) else {
                    continue;
                };
                if let Some(claim) = claim(entry, attempt, candidate, instance) {
                    claims.entry(at).or_default().push(claim);
                }
            }
        }
        for (at, mut claims) in claims {
            claims.sort_by(|a, b| (b.per_instance, b.near, &a.path).cmp(&(a.per_instance, a.near, &b.path)));
            if let Some(attempt) = attempts.get_mut(at) {
                settle(attempt, claims);
            }
        }
    }
}

/// A report about one attempt is about no other.
fn is_attempt(report: &RunReport, attempt: Option<&Attempt>) -> bool {
    let own = attempt.and_then(|a| a.trajectory.as_ref()).and_then(|t| t.attempt.as_ref());
    report.attempt.is_none() || report.attempt.as_ref() == own
}

/// The attempts a report speaks about: those of its run. Several rows of one run are told apart by their patches.
fn applies_to(
    entry: &Entry<'_>,
    attempts: &[Attempt],
    candidates: &[Candidate<'_>],
    instance: &str,
    runs: &mut Runs,
) -> Vec<usize> {
    // Predictions that carry their own label lie in the report's own file.
    let own: Vec<usize> = (0..attempts.len())
        .filter(|i| attempts.get(*i).and_then(|a| a.prediction.as_ref()).is_some_and(|p| p.path == entry.report.path))
        .collect();
    if !own.is_empty() {
        return own;
    }
    let roots = entry.roots(instance);
    let companion = Companion { roots: &roots, names: &entry.names, patch: None };
    if let Some(only) = runs::find(&companion, candidates, runs) {
        return vec![only];
    }
    // The run wrote this instance more than once: what was evaluated is the prediction, else the only patch there is.
    let same: Vec<usize> =
        (0..candidates.len()).filter(|i| candidates.get(*i).is_some_and(|c| roots.contains(&c.dir))).collect();
    let predicted: Vec<usize> =
        same.iter().copied().filter(|i| attempts.get(*i).is_some_and(|a| a.prediction.is_some())).collect();
    if let [only] = predicted.as_slice() {
        return vec![*only];
    }
    let patch = |i: usize| candidates.get(i).and_then(Candidate::patch);
    let patched: Vec<usize> = same.into_iter().filter(|i| patch(*i).is_some()).collect();
    let first = patched.first().and_then(|i| patch(*i)).unwrap_or_default();
    let all_the_same = patched.iter().filter_map(|i| patch(*i)).all(|p| runs::same_patch(p, first));
    if all_the_same { patched } else { Vec::new() }
}

fn claim(entry: &Entry<'_>, attempt: &Attempt, candidate: &Candidate<'_>, instance: &str) -> Option<Claim> {
    let report = entry.report;
    let said = report.outcomes.get(instance).copied().unwrap_or_default();
    let mut reason = report.reasons.get(instance).cloned();
    let mut outcome = said;
    if said == Outcome::Unknown && reason.is_none() && report.closed {
        let patch = attempt.patch()?;
        outcome = Outcome::Unresolved;
        reason = Some("empty patch".to_owned()).filter(|_| patch.trim().is_empty());
    }
    if outcome == Outcome::Unknown && reason.is_none() {
        return None;
    }
    let near = entry.dir.shared(&candidate.dir);
    Some(Claim { per_instance: report.per_instance, near, outcome, reason, path: report.path.clone() })
}

/// The nearest claim wins, unless the file itself carries a label; the others that disagree are kept.
fn settle(attempt: &mut Attempt, claims: Vec<Claim>) {
    let label = &mut attempt.label;
    for claim in claims {
        if claim.outcome == Outcome::Unknown {
            if label.outcome == Outcome::Unknown && label.reason.is_none() {
                label.reason = claim.reason;
            }
            continue;
        }
        if label.outcome == Outcome::Unknown {
            label.outcome = claim.outcome;
            label.reason = claim.reason;
            label.from = Some(claim.path);
        } else if label.outcome != claim.outcome {
            label.contradicted_by.push(claim.path);
        } else if label.reason.is_none() {
            label.reason = claim.reason;
        }
    }
}
