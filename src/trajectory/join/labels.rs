//! Labels from reports.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::account::{Joined, Log, Rule};
use super::ids::{self, Ids};
use super::runs::{self, Candidate, Companion, Dir, Runs};
use super::{Attempt, Prediction, RunReport};
use crate::trajectory::Outcome;

/// Reports by what they speak about.
pub struct Labels<'a> {
    /// Reports that name an instance, with its spelling there; by the spelling that stands for it.
    by_instance: BTreeMap<String, Vec<(usize, &'a str)>>,
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
        let folder = self.report.path.parent().and_then(Path::file_name).and_then(|n| n.to_str());
        if folder.is_some_and(|name| ids::is_folder_of(name, instance)) {
            return Cow::Owned(runs::roots(&self.report.path, Some(instance)));
        }
        Cow::Borrowed(&self.roots)
    }
}

/// What a report says about an attempt.
struct Claim {
    from_log: bool,
    per_instance: bool,
    /// Depth of the folder shared with the attempt: more is nearer.
    near: usize,
    outcome: Outcome,
    reason: Option<String>,
    path: PathBuf,
}

/// The instance labels are looked for, and what is known of it.
struct Asked<'a> {
    instance: &'a str,
    attempts: &'a [Attempt],
    candidates: &'a [Candidate<'a>],
    predictions: &'a [&'a Arc<Prediction>],
}

impl<'a> Labels<'a> {
    /// Sorts the reports.
    pub fn new(reports: &'a [Arc<RunReport>], ids: &Ids) -> Self {
        let mut labels = Self { by_instance: BTreeMap::new(), closed: Vec::new(), reports: Vec::new() };
        for report in reports {
            let at = labels.reports.len();
            let named: BTreeSet<&str> =
                report.outcomes.keys().chain(report.reasons.keys()).map(String::as_str).collect();
            for instance in named {
                labels.by_instance.entry(ids.name(instance)).or_default().push((at, instance));
            }
            if report.closed {
                labels.closed.push(at);
            }
            let roots = runs::roots(&report.path, None);
            let dir = Dir::of(report.path.parent().unwrap_or(Path::new("")));
            labels.reports.push(Entry {
                report,
                names: runs::run_names(&report.path, report.model.as_deref()),
                roots,
                dir,
            });
        }
        labels
    }

    /// Takes down what reports say about instances nobody attempted.
    pub fn without_attempt(&self, attempted: impl Fn(&str) -> bool, log: &mut Log) {
        for (instance, reports) in &self.by_instance {
            if !attempted(instance) {
                for (entry, spelled) in reports.iter().filter_map(|(i, s)| Some((self.reports.get(*i)?, *s))) {
                    log.add(Joined::Report, (&entry.report.path, 0), Some(spelled), None, Rule::NoAttempt);
                }
            }
        }
    }

    /// Labels the attempts at one instance.
    pub fn give(
        &self,
        attempts: &mut [Attempt],
        instance: &str,
        predictions: &[&Arc<Prediction>],
        runs: &mut Runs,
        log: &mut Log,
    ) {
        let named = self.by_instance.get(instance).map(Vec::as_slice).unwrap_or_default();
        let closed = self.closed.iter().filter(|i| !named.iter().any(|(n, _)| n == *i)).map(|i| (*i, instance));
        let speaking: Vec<(usize, &str)> = named.iter().copied().chain(closed).collect();
        if speaking.is_empty() {
            return;
        }
        let candidates: Vec<Candidate<'_>> = attempts.iter().map(|a| Candidate::of(a, Some(instance))).collect();
        let asked = Asked { instance, attempts, candidates: &candidates, predictions };
        let mut claims: BTreeMap<usize, Vec<Claim>> = BTreeMap::new();
        for (at, spelled) in speaking {
            let Some(entry) = self.reports.get(at) else { continue };
            for (at, claim) in asked.claims(entry, spelled, runs, log) {
                claims.entry(at).or_default().push(claim);
            }
        }
        for (at, mut claims) in claims {
            claims.sort_by(|a, b| {
                let (less, more) = ((a.from_log, b.per_instance, b.near), (b.from_log, a.per_instance, a.near));
                less.cmp(&more).then_with(|| a.path.cmp(&b.path))
            });
            if let Some(attempt) = attempts.get_mut(at) {
                settle(attempt, claims);
            }
        }
    }
}

impl Asked<'_> {
    /// What one report says of the attempts it speaks about.
    fn claims(&self, entry: &Entry<'_>, spelled: &str, runs: &mut Runs, log: &mut Log) -> Vec<(usize, Claim)> {
        let place = (entry.report.path.as_path(), 0);
        let named = entry.report.outcomes.contains_key(spelled) || entry.report.reasons.contains_key(spelled);
        let (found, rule) = match self.applies_to(entry, runs) {
            Ok(found) => found,
            // A report that does not even name the instance is not expected to speak of it.
            Err(_) if !named => return Vec::new(),
            Err(rule) => {
                log.add(Joined::Report, place, Some(spelled), None, rule);
                return Vec::new();
            }
        };
        let mut claims = Vec::new();
        for at in found {
            let (Some(attempt), Some(candidate)) = (self.attempts.get(at), self.candidates.get(at)) else {
                continue;
            };
            let claim = claim(entry, attempt, candidate, spelled);
            let said = claim.as_ref().is_some_and(|c| c.outcome != Outcome::Unknown);
            let rule = match (named, said) {
                (true, true) => rule,
                (true, false) => Rule::SaysNothing,
                (false, true) => Rule::NotListed,
                (false, false) => continue,
            };
            log.add(Joined::Report, place, Some(spelled), attempt.target().filter(|_| said), rule);
            claims.extend(claim.map(|claim| (at, claim)));
        }
        claims
    }

    /// The attempts a report speaks about: those of its run. Several rows of one run are told apart by their patches.
    fn applies_to(&self, entry: &Entry<'_>, runs: &mut Runs) -> Result<(Vec<usize>, Rule), Rule> {
        let (attempts, candidates) = (self.attempts, self.candidates);
        // Predictions that carry their own label lie in the report's own file.
        let of = |i: &usize| attempts.get(*i).and_then(|a| a.prediction.as_ref());
        let own: Vec<usize> =
            (0..attempts.len()).filter(|i| of(i).is_some_and(|p| p.path == entry.report.path)).collect();
        if !own.is_empty() {
            return Ok((own, Rule::SameFile));
        }
        let roots = entry.roots(self.instance);
        let companion = Companion { roots: &roots, names: &entry.names, patch: self.evaluated(entry.report) };
        let found = match &entry.report.attempt {
            None => runs::find(&companion, candidates, runs),
            // A report about one attempt is about no other.
            Some(attempt) => return self.of_attempt(attempt, &companion, runs),
        };
        let missed = match found {
            Ok((only, rule)) => return Ok((vec![only], rule)),
            Err(missed) => missed,
        };
        // The run wrote this instance more than once: what was evaluated is the prediction, else the only patch.
        let same: Vec<usize> =
            (0..candidates.len()).filter(|i| candidates.get(*i).is_some_and(|c| roots.contains(&c.dir))).collect();
        let predicted: Vec<usize> = same.iter().copied().filter(|i| of(i).is_some()).collect();
        if let [only] = predicted.as_slice() {
            return Ok((vec![*only], Rule::OnlyPredicted));
        }
        // Of the tries of one run, the one that was handed in carries the label.
        let labelled = |i: &usize| of(i).is_some_and(|p| p.outcome != Outcome::Unknown);
        let handed_in: Vec<usize> = predicted.iter().copied().filter(labelled).collect();
        if let [only] = handed_in.as_slice() {
            return Ok((vec![*only], Rule::OnlyPredicted));
        }
        let patch = |i: usize| candidates.get(i).and_then(Candidate::patch);
        let patched: Vec<usize> = same.into_iter().filter(|i| patch(*i).is_some()).collect();
        let first = patched.first().and_then(|i| patch(*i)).unwrap_or_default();
        let all_the_same = patched.iter().filter_map(|i| patch(*i)).all(|p| runs::same_patch(p, first));
        if all_the_same && !patched.is_empty() {
            return Ok((patched, Rule::OnlyPatch));
        }
        last_of_file(&predicted, attempts).map(|last| (vec![last], Rule::LastOfFile)).ok_or(missed)
    }

    /// The attempts of that name, among which the nearest is looked for.
    fn of_attempt(&self, name: &str, companion: &Companion<'_>, runs: &mut Runs) -> Result<(Vec<usize>, Rule), Rule> {
        let is = |i: &usize| {
            let trajectory = self.attempts.get(*i).and_then(|a| a.trajectory.as_ref());
            trajectory.and_then(|t| t.attempt.as_deref()) == Some(name)
        };
        let called: Vec<usize> = (0..self.attempts.len()).filter(is).collect();
        let own: Vec<Candidate<'_>> = called.iter().filter_map(|i| self.candidates.get(*i).cloned()).collect();
        let (at, rule) = runs::find(companion, &own, runs).map_err(|missed| match missed {
            Rule::NoAttempt => Rule::Elsewhere,
            other => other,
        })?;
        called.get(at).map(|i| (vec![*i], rule)).ok_or(Rule::Elsewhere)
    }

    /// The patch that a report is about: the harness keeps it beside the report.
    fn evaluated(&self, report: &RunReport) -> Option<&str> {
        if !report.per_instance {
            return None;
        }
        let beside = self.predictions.iter().find(|p| p.path.parent() == report.path.parent())?;
        Some(beside.patch.as_deref().unwrap_or_default())
    }
}

/// Of several predictions of one file, which only differ in their patch, the harness keeps the last.
fn last_of_file(predicted: &[usize], attempts: &[Attempt]) -> Option<usize> {
    let of = |i: &usize| attempts.get(*i).and_then(|a| a.prediction.as_ref());
    let first = predicted.first().and_then(of)?;
    let same = predicted.iter().filter_map(of).all(|p| p.path == first.path && p.candidate.is_none());
    let last = || predicted.iter().copied().max_by_key(|i| of(i).map(|p| p.record));
    if same { last() } else { None }
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
    Some(Claim {
        from_log: report.from_log,
        per_instance: report.per_instance,
        near,
        outcome,
        reason,
        path: report.path.clone(),
    })
}

/// The nearest claim wins, unless the file itself carries a label; the others that disagree are kept. A log decides
/// nothing where a report speaks, and be it that the instance was not submitted.
fn settle(attempt: &mut Attempt, claims: Vec<Claim>) {
    let label = &mut attempt.label;
    for claim in claims {
        if claim.outcome == Outcome::Unknown {
            if label.outcome == Outcome::Unknown && label.reason.is_none() {
                label.reason = claim.reason;
            }
            continue;
        }
        if label.outcome == Outcome::Unknown && claim.from_log && label.reason.is_some() {
            label.contradicted_by.push(claim.path);
        } else if label.outcome == Outcome::Unknown {
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
