//! What was loaded, joined into issues, with what is known of every attempt.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::text;
use crate::trajectory::{
    Attempt, Dataset, FileReport, Issue, IssueId, Outcome, SharedTrajectory, TrajectoryKey, account, join, summary,
};

use super::facts::{Badge, Facts};
use super::scores::ScoreBook;

/// Names an attempt over re-joins, in which its number may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AttemptId {
    /// By its trajectory.
    Run(TrajectoryKey),
    /// A prediction without a trajectory, by its file and record.
    Prediction(PathBuf, usize),
}

/// One attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptEntry {
    /// Its name over re-joins.
    pub id: AttemptId,
    /// Its name on the screen, safe to draw.
    pub name: String,
    /// What is known of it.
    pub facts: Arc<Facts>,
    /// Numbers of the other attempts at the issue with the same patch.
    pub twins: Vec<usize>,
}

impl AttemptEntry {
    /// The trajectory's name, if there is one.
    pub fn key(&self) -> Option<&TrajectoryKey> {
        match &self.id {
            AttemptId::Run(key) => Some(key),
            AttemptId::Prediction(..) => None,
        }
    }

    /// All badges: those of the attempt itself, of its place among the others, and of what the critic could read.
    pub fn badges(&self, scores: &ScoreBook) -> Vec<Badge> {
        let mut badges = self.facts.badges.clone();
        if !self.twins.is_empty() {
            badges.push(Badge::Twin);
        }
        let result = self.key().and_then(|k| scores.get(k)).and_then(|s| s.result.as_deref());
        if result.is_some_and(|r| r.cut.is_some()) {
            badges.push(Badge::Cut);
        }
        badges.sort_unstable();
        badges
    }
}

/// One issue.
#[derive(Debug, Clone)]
pub struct IssueEntry {
    /// The issue and its attempts.
    pub issue: Issue,
    /// Its name, safe to draw.
    pub name: String,
    /// What is known of each attempt, in the issue's order.
    pub attempts: Vec<AttemptEntry>,
    /// Attempts with the label "resolved", and attempts with any label.
    pub resolved: (usize, usize),
    /// What a filter looks through, in lower case.
    pub haystack: String,
}

impl IssueEntry {
    /// An attempt's trajectory.
    pub fn trajectory(&self, attempt: usize) -> Option<&SharedTrajectory> {
        self.issue.attempts.get(attempt)?.trajectory.as_ref()
    }

    /// Is there a trajectory among the attempts, and not only a candidate patch?
    pub fn has_run(&self) -> bool {
        self.issue.attempts.iter().any(|a| a.trajectory.is_some())
    }

    /// Sum of the known costs, and for how many attempts the cost is unknown.
    pub fn cost(&self) -> (Option<f64>, usize) {
        let known: Vec<f64> = self.attempts.iter().filter_map(|a| a.facts.cost).collect();
        let sum = (!known.is_empty()).then(|| known.iter().sum());
        (sum, self.attempts.len() - known.len())
    }

    /// Every badge that one of the attempts has, with how many have it.
    pub fn badges(&self, scores: &ScoreBook) -> Vec<(Badge, usize)> {
        let of: Vec<Vec<Badge>> = self.attempts.iter().map(|a| a.badges(scores)).collect();
        let count = |badge: &Badge| of.iter().filter(|badges| badges.contains(badge)).count();
        Badge::ALL.into_iter().map(|b| (b, count(&b))).filter(|(_, n)| *n > 0).collect()
    }
}

/// Name of an attempt's facts: they change when a predictions file brings another patch, and when the actions are
/// counted.
type FactsKey = (AttemptId, Option<(PathBuf, usize)>, Option<usize>);

/// Runs whose steps were brought back from their files and are kept for a while.
const OPENED: usize = 6;

/// Everything loaded.
#[derive(Debug, Clone, Default)]
pub struct Data {
    /// As it was read.
    pub dataset: Dataset,
    /// Joined, in order of their names.
    pub issues: Vec<IssueEntry>,
    /// By file, what was joined to what and what was not; filled when somebody asks ([`Self::account`]).
    pub joins: BTreeMap<PathBuf, Vec<String>>,
    /// More is coming.
    pub loading: bool,
    /// Number of files in the latest join.
    joined: usize,
    /// Trajectories that came or changed since the latest join.
    changed: usize,
    /// Where each trajectory and each file stands in the data set while parts come in.
    at: HashMap<TrajectoryKey, usize>,
    files: HashSet<PathBuf>,
    facts: HashMap<FactsKey, Arc<Facts>>,
    /// Runs that were opened, the latest last.
    opened: Vec<TrajectoryKey>,
}

impl Data {
    /// Takes more files in, or more parts of the same files. `true` when it is time to join again: not for every part,
    /// so that a folder of thousands is not joined thousands of times, but each time the number of files has doubled
    /// or a quarter of the trajectories is new.
    pub fn add(&mut self, part: Dataset) -> bool {
        self.changed += part.trajectories.len();
        for trajectory in part.trajectories {
            self.put(trajectory);
        }
        self.dataset.predictions.extend(part.predictions);
        self.dataset.reports.extend(part.reports);
        for file in part.files {
            // Further parts of a large file bring trajectories, and no other file.
            if self.files.insert(file.path.clone()) {
                self.dataset.files.push(file);
            }
        }
        let grown = self.changed * 4 >= self.dataset.trajectories.len() && self.changed >= 16;
        self.dataset.files.len() >= 2 * self.joined.max(1) || self.joined == 0 || grown
    }

    /// Takes the whole data set instead of the parts.
    pub fn replace(&mut self, dataset: Dataset) {
        self.dataset = dataset;
        self.loading = false;
        self.opened.clear();
        self.at = self.dataset.trajectories.iter().enumerate().map(|(i, t)| (t.key(), i)).collect();
        self.files.clear();
    }

    /// Files were read again: what they hold now stands in place of what they held.
    pub fn change(&mut self, part: Dataset) {
        let paths: HashSet<&PathBuf> = part.files.iter().map(|f| &f.path).collect();
        let now: HashSet<TrajectoryKey> = part.trajectories.iter().map(|t| t.key()).collect();
        let gone = |t: &SharedTrajectory| paths.contains(&t.source.path) && !now.contains(&t.key());
        if self.dataset.trajectories.iter().any(gone) {
            self.dataset.trajectories.retain(|t| !gone(t));
            self.at = self.dataset.trajectories.iter().enumerate().map(|(i, t)| (t.key(), i)).collect();
        }
        self.dataset.predictions.retain(|p| !paths.contains(&p.path));
        self.dataset.reports.retain(|r| !paths.contains(&r.path));
        self.dataset.predictions.extend(part.predictions);
        self.dataset.reports.extend(part.reports);
        for trajectory in part.trajectories {
            self.put(trajectory);
        }
        for file in part.files {
            match self.dataset.files.iter_mut().find(|f| f.path == file.path) {
                Some(known) => *known = file,
                None => self.dataset.files.push(file),
            }
        }
    }

    /// A trajectory in place of what was known of it.
    fn put(&mut self, trajectory: SharedTrajectory) {
        if let Some(&at) = self.at.get(&trajectory.key()) {
            self.dataset.trajectories[at] = trajectory;
        } else {
            self.at.insert(trajectory.key(), self.dataset.trajectories.len());
            self.dataset.trajectories.push(trajectory);
        }
    }

    /// The steps of a run are there: it stands for what was known of it, and the oldest of those opened before is
    /// let go. Nothing is joined anew: what the join looks at has not changed.
    pub fn opened(&mut self, run: &SharedTrajectory) {
        let key = run.key();
        self.opened.retain(|k| *k != key);
        self.exchange(run);
        self.opened.push(key);
        if self.opened.len() > OPENED {
            let oldest = self.opened.remove(0);
            let known = self.at.get(&oldest).map(|&at| Arc::clone(&self.dataset.trajectories[at]));
            if let Some(mut known) = known {
                Arc::make_mut(&mut known).forget_steps();
                self.exchange(&known);
            }
        }
    }

    fn exchange(&mut self, run: &SharedTrajectory) {
        let key = run.key();
        if let Some(&at) = self.at.get(&key) {
            self.dataset.trajectories[at] = Arc::clone(run);
        }
        let attempts = self.issues.iter_mut().flat_map(|i| i.issue.attempts.iter_mut());
        for attempt in attempts.filter(|a| a.trajectory.as_ref().is_some_and(|t| t.key() == key)) {
            attempt.trajectory = Some(Arc::clone(run));
        }
    }

    /// Joins what is there. Facts of attempts that did not change are kept.
    pub fn rejoin(&mut self) {
        self.joined = self.dataset.files.len();
        self.changed = 0;
        let old = std::mem::take(&mut self.facts);
        let issues = join(&self.dataset);
        self.issues = issues.into_iter().map(|issue| self.entry(issue, &old)).collect();
        if !self.joins.is_empty() {
            self.account();
        }
    }

    /// Finds out what was joined to what: only when it is to be shown, because it takes another join.
    pub fn account(&mut self) {
        self.joins.clear();
        for (path, text) in summary(&account(&self.dataset)) {
            self.joins.entry(path).or_default().push(text);
        }
    }

    /// Files that were not understood, then those with remarks, then the rest, then what is no data at all; each in the order of reading.
    pub fn files(&self) -> Vec<&FileReport> {
        let mut files: Vec<&FileReport> = self.dataset.files.iter().collect();
        files.sort_by_key(|f| match (f.format.is_none(), f.diagnostics.is_empty()) {
            (true, _) if f.foreign => 3,
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        });
        files
    }

    /// Files that look like data and were not understood.
    pub fn not_understood(&self) -> usize {
        self.dataset.files.iter().filter(|f| f.format.is_none() && !f.foreign).count()
    }

    /// Issues that the Board hides unless asked: they have candidate patches and no run, while others have runs.
    pub fn patches_only(&self) -> usize {
        let without = self.issues.iter().filter(|e| !e.has_run()).count();
        if without == self.issues.len() { 0 } else { without }
    }

    /// Number of an issue.
    pub fn issue_index(&self, id: &IssueId) -> Option<usize> {
        self.issues.iter().position(|e| e.issue.id == *id)
    }

    fn entry(&mut self, issue: Issue, old: &HashMap<FactsKey, Arc<Facts>>) -> IssueEntry {
        let mut attempts = Vec::with_capacity(issue.attempts.len());
        for attempt in &issue.attempts {
            let id = attempt_id(attempt);
            let actions = attempt.trajectory.as_ref().and_then(|t| t.known_actions());
            let key = (id.clone(), attempt.prediction.as_ref().map(|p| (p.path.clone(), p.record)), actions);
            let facts = old.get(&key).cloned().unwrap_or_else(|| Arc::new(Facts::of(attempt)));
            self.facts.insert(key, Arc::clone(&facts));
            attempts.push(AttemptEntry { id, name: text::one_line(&attempt.name), facts, twins: Vec::new() });
        }
        pair_twins(&mut attempts);
        let labels: Vec<Outcome> = issue.attempts.iter().map(|a| a.label.outcome).collect();
        let resolved = labels.iter().filter(|o| **o == Outcome::Resolved).count();
        let known = labels.iter().filter(|o| **o != Outcome::Unknown).count();
        let name = text::one_line(&issue.name());
        let haystack = haystack(&name, &issue, &attempts);
        IssueEntry { issue, name, attempts, resolved: (resolved, known), haystack }
    }
}

fn attempt_id(attempt: &Attempt) -> AttemptId {
    match (&attempt.trajectory, &attempt.prediction) {
        (Some(t), _) => AttemptId::Run(t.key()),
        (None, Some(p)) => AttemptId::Prediction(p.path.clone(), p.record),
        (None, None) => AttemptId::Prediction(PathBuf::new(), 0),
    }
}

fn pair_twins(attempts: &mut [AttemptEntry]) {
    let normal = |a: &AttemptEntry| a.facts.patch.as_ref().map(|p| p.normal.clone()).filter(|n| !n.is_empty());
    let keys: Vec<Option<String>> = attempts.iter().map(normal).collect();
    for (i, attempt) in attempts.iter_mut().enumerate() {
        let Some(key) = &keys[i] else { continue };
        attempt.twins = (0..keys.len()).filter(|&j| j != i && keys[j].as_ref() == Some(key)).collect();
    }
}

fn haystack(name: &str, issue: &Issue, attempts: &[AttemptEntry]) -> String {
    let mut words = vec![name.to_owned()];
    for (attempt, entry) in issue.attempts.iter().zip(attempts) {
        words.push(entry.name.clone());
        words.extend(attempt.model_name().map(text::one_line));
        if let Some(t) = &attempt.trajectory {
            words.extend(t.agent.as_deref().map(text::one_line));
            words.push(t.format.to_owned());
        }
        words.extend(entry.facts.badges.iter().map(|b| b.label().to_owned()));
        if !entry.twins.is_empty() {
            words.push(Badge::Twin.label().to_owned());
        }
        words.push(outcome_word(attempt.label.outcome).to_owned());
    }
    words.sort_unstable();
    words.dedup();
    words.join("\n").to_lowercase()
}

/// The word for an outcome, on the screen and in the filter.
pub fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Resolved => "resolved",
        Outcome::Unresolved => "unresolved",
        Outcome::Unknown => "unknown",
    }
}
