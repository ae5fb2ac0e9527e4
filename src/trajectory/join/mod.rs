//! Trajectories, predictions and reports of the same runs, brought together into issues with attempts.
//!
//! Pure: the files were read by `formats`; nothing here touches the disk.

mod account;
mod attempts;
mod ids;
mod labels;
mod names;
mod runs;
mod sessions;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Diagnostic, Outcome, SharedTrajectory};
use account::Log;

pub use account::{JoinLine, Joined, Rule, account, summary};

/// Name of an issue: the instance id, or a stand-in for trajectories that have none (one issue a file).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IssueId {
    /// `org__repo-NNN` and the like.
    Instance(String),
    /// No instance id anywhere: the file's path and record.
    Unnamed(PathBuf, usize),
}

impl IssueId {
    /// The instance id, if it has one.
    pub fn instance(&self) -> Option<&str> {
        match self {
            Self::Instance(id) => Some(id),
            Self::Unnamed(..) => None,
        }
    }
}

/// One prediction, as a predictions file holds it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prediction {
    /// File it stands in.
    pub path: PathBuf,
    /// 0-based number of the record in the file.
    pub record: usize,
    /// Name of the candidate among several for one instance in one file, where the file gives one.
    pub candidate: Option<String>,
    /// Instance.
    pub instance_id: String,
    /// `model_name_or_path`.
    pub model: Option<String>,
    /// `model_patch`, exact; `None` = null.
    pub patch: Option<String>,
    /// Label that stands beside it in the file.
    pub outcome: Outcome,
}

/// A per-instance or run-level evaluation report: only what it says about each instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunReport {
    /// File it stands in.
    pub path: PathBuf,
    /// Is it about one instance (`report.json` of the harness) rather than a whole run?
    pub per_instance: bool,
    /// Was it made out of a log? Then it counts only where no report speaks.
    pub from_log: bool,
    /// The model it names (`model_name_or_path`), which helps to find the run.
    pub model: Option<String>,
    /// Outcome by instance id. Instances that are incomplete, pending or not mentioned are absent (unknown).
    pub outcomes: BTreeMap<String, Outcome>,
    /// Finer reason by instance id (`"empty patch"`, `"patch did not apply"`, `"error"`).
    pub reasons: BTreeMap<String, String>,
    /// Is it about one attempt only, and about which ([`Trajectory::attempt`](super::Trajectory::attempt))?
    pub attempt: Option<String>,
    /// Does it list the resolved instances of a run that was evaluated as a whole? Then an instance of the same run
    /// that has a patch and is not named here is unresolved.
    pub closed: bool,
}

/// A label and who says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Label {
    /// The outcome.
    pub outcome: Outcome,
    /// The finer reason, if a report gives one.
    pub reason: Option<String>,
    /// The file that says so; `None` when unknown or when the trajectory itself carries it.
    pub from: Option<PathBuf>,
    /// Other sources that say something else (shown, never hidden).
    pub contradicted_by: Vec<PathBuf>,
}

/// One attempt at an issue: a trajectory, or a prediction without one.
#[derive(Debug, Clone, Default)]
pub struct Attempt {
    /// Unique within the issue, short enough for a column: made from what differs between the attempts' paths, run
    /// ids or records.
    pub name: String,
    /// The trajectory; `None` for a candidate patch that came without one.
    pub trajectory: Option<SharedTrajectory>,
    /// The prediction joined to it.
    pub prediction: Option<Arc<Prediction>>,
    /// Its label.
    pub label: Label,
    /// What was odd when it was put together (a second predictions file, a patch that differs from the trajectory's).
    pub diagnostics: Vec<Diagnostic>,
}

impl Attempt {
    /// The file it stands in: the trajectory's, else the prediction's.
    pub fn path(&self) -> Option<&Path> {
        let trajectory = self.trajectory.as_ref().map(|t| t.source.path.as_path());
        trajectory.or_else(|| self.prediction.as_ref().map(|p| p.path.as_path()))
    }

    /// The 0-based record in that file.
    pub fn record(&self) -> usize {
        let trajectory = self.trajectory.as_ref().map(|t| t.source.record);
        trajectory.or_else(|| self.prediction.as_ref().map(|p| p.record)).unwrap_or(0)
    }

    /// Where it stands, for the account of the joining.
    fn target(&self) -> Option<account::Target> {
        Some((self.path()?.to_owned(), self.record()))
    }

    /// The candidate patch, exactly as on disk: the prediction's if there is one (it is what was evaluated), else
    /// the trajectory's. `None` = nothing says.
    pub fn patch(&self) -> Option<&str> {
        let from_prediction = self.prediction.as_ref().map(|p| p.patch.as_deref().unwrap_or(""));
        from_prediction.or_else(|| self.trajectory.as_ref().and_then(|t| t.patch.as_deref()))
    }

    /// `model_name_or_path` for an exported prediction: the prediction's, else the trajectory's model, else agent.
    pub fn model_name(&self) -> Option<&str> {
        let from_prediction = self.prediction.as_ref().and_then(|p| p.model.as_deref());
        let trajectory = self.trajectory.as_ref();
        from_prediction
            .or_else(|| trajectory.and_then(|t| t.model.as_deref()))
            .or_else(|| trajectory.and_then(|t| t.agent.as_deref()))
    }
}

/// All attempts at one instance.
#[derive(Debug, Clone)]
pub struct Issue {
    /// Which.
    pub id: IssueId,
    /// The attempts, in a stable order (path, then record).
    pub attempts: Vec<Attempt>,
}

impl Issue {
    /// The name shown and written: the instance id, or the file name for an unnamed one.
    pub fn name(&self) -> String {
        match &self.id {
            IssueId::Instance(id) => id.clone(),
            IssueId::Unnamed(path, record) => {
                let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
                // What a sub-agent did has no instance of its own, and is told from what people started.
                let of = |a: &Attempt| a.trajectory.as_ref().is_some_and(|t| t.parent.is_some());
                let kind = if self.attempts.iter().any(of) { " (sub-agent)" } else { "" };
                if *record == 0 { format!("{file}{kind}") } else { format!("{file}#{record}{kind}") }
            }
        }
    }
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Id of the format it was read as; `None` if it was not understood.
    pub format: Option<&'static str>,
    /// Why that format, or why none: one line.
    pub reason: String,
    /// No JSON in it at all and found in a folder, not named: a file that merely lies beside the data.
    pub foreign: bool,
    /// Trajectories read from it.
    pub trajectories: usize,
    /// Remarks about the file as a whole (those of a trajectory are on the trajectory).
    pub diagnostics: Vec<Diagnostic>,
}

/// Everything read from the paths given, not yet joined.
#[derive(Debug, Clone, Default)]
pub struct Dataset {
    /// Every trajectory, in order of path and record.
    pub trajectories: Vec<SharedTrajectory>,
    /// Every prediction.
    pub predictions: Vec<Arc<Prediction>>,
    /// Every report.
    pub reports: Vec<Arc<RunReport>>,
    /// Every file looked at, understood or not.
    pub files: Vec<FileReport>,
}

/// Brings trajectories, predictions and reports together: one [`Issue`] an instance, one [`Attempt`] a trajectory
/// (or prediction without one).
///
/// A prediction or report belongs to the trajectory of the same run: the one in the nearest folder both lie in (the
/// levels for the instance, for `trajs`, `logs`, `results` and the harness's own do not count), else the one whose
/// run or model is called the same. Where that leaves several, none is taken. A label in the trajectory's own file
/// beats a report about the instance, and that beats a report about the run; who says otherwise is kept.
///
/// Ids that are spelled differently (`ids`) are one issue, under the fullest spelling.
pub fn join(dataset: &Dataset) -> Vec<Issue> {
    join_with(dataset, &mut Log::default())
}

fn join_with(dataset: &Dataset, log: &mut Log) -> Vec<Issue> {
    let of_trajectories = dataset.trajectories.iter().filter_map(|t| t.instance_id.as_deref());
    let of_predictions = dataset.predictions.iter().map(|p| p.instance_id.as_str());
    let of_reports = dataset.reports.iter().flat_map(|r| r.outcomes.keys().chain(r.reasons.keys())).map(String::as_str);
    let ids = ids::Ids::new(of_trajectories.chain(of_predictions).chain(of_reports));
    let mut issues: BTreeMap<IssueId, Vec<Attempt>> = BTreeMap::new();
    let sessions = sessions::Sessions::new(&dataset.trajectories);
    for trajectory in &dataset.trajectories {
        let id = match trajectory.instance_id.as_deref().or_else(|| sessions.instance(trajectory)) {
            Some(id) => IssueId::Instance(ids.name(id)),
            None => IssueId::Unnamed(trajectory.source.path.clone(), trajectory.source.record),
        };
        attempts::add_trajectory(issues.entry(id).or_default(), trajectory, log);
    }
    let mut predictions: BTreeMap<String, Vec<&Arc<Prediction>>> = BTreeMap::new();
    for prediction in &dataset.predictions {
        let name = ids.name(&prediction.instance_id);
        issues.entry(IssueId::Instance(name.clone())).or_default();
        predictions.entry(name).or_default().push(prediction);
    }
    let paths =
        issues.iter().flat_map(|(id, attempts)| attempts.iter().filter_map(|a| Some((a.path()?, id.instance()))));
    let mut runs = runs::Runs::new(paths.map(|(path, instance)| runs::Dir::of(runs::run_dir(path, instance))));
    let labels = labels::Labels::new(&dataset.reports, &ids);
    labels.without_attempt(|instance| issues.contains_key(&IssueId::Instance(instance.to_owned())), log);
    let joined = issues.into_iter().map(|(id, mut attempts)| {
        let instance = id.instance();
        if let Some(instance) = instance {
            let own = predictions.remove(instance).unwrap_or_default();
            attempts::add_predictions(&mut attempts, instance, &own, &mut runs, log);
            labels.give(&mut attempts, instance, &own, &mut runs, log);
        }
        attempts.sort_by(|a, b| (a.path(), a.record()).cmp(&(b.path(), b.record())));
        names::give(&mut attempts, instance);
        unlabelled(&attempts, log);
        Issue { id, attempts }
    });
    joined.collect()
}

/// Takes down the trajectories nobody labelled.
fn unlabelled(attempts: &[Attempt], log: &mut Log) {
    for attempt in attempts.iter().filter(|a| a.label.outcome == Outcome::Unknown) {
        if let Some(t) = &attempt.trajectory {
            let place = (t.source.path.as_path(), t.source.record);
            let spoken_of = attempt.label.reason.is_some() || !attempt.label.contradicted_by.is_empty();
            let rule = if spoken_of { Rule::Undecided } else { Rule::NoReport };
            log.add(Joined::Trajectory, place, t.instance_id.as_deref(), attempt.target(), rule);
        }
    }
}
