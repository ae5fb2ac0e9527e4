//! Which files belong to the same run: a question of where they lie, and failing that of what they call the model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Attempt;

/// Folders of a run that hold its trajectories.
const TRAJECTORIES: [&str; 4] = ["trajs", "traj", "trajectories", "trajectory"];
/// Folders beside them that hold what belongs to the run.
const COMPANIONS: [&str; 13] = [
    "logs",
    "results",
    "result",
    "predictions",
    "preds",
    "patches",
    "reports",
    "sb-cli-reports",
    "run_evaluation",
    "run evaluation",
    "eval_results",
    "eval_outputs",
    "evaluation_results",
];
/// Those of them that hold further levels (run id, model) before the files.
const DEEP: [&str; 6] =
    ["logs", "run_evaluation", "run evaluation", "eval_results", "eval_outputs", "evaluation_results"];
/// How many levels there may be.
const LEVELS: usize = 5;

/// Is this the name of a folder that holds a part of a run?
pub fn is_companion(name: &str) -> bool {
    TRAJECTORIES.contains(&name) || COMPANIONS.contains(&name)
}

/// The folder of the run that a file belongs to: its own, without the levels for the instance and for companions.
pub fn run_dir(path: &Path, instance: Option<&str>) -> PathBuf {
    let mut dir = path.parent().unwrap_or(Path::new(""));
    if instance.is_some() && name(dir) == instance {
        dir = dir.parent().unwrap_or(dir);
    }
    while let (Some(last), Some(above)) = (name(dir), dir.parent()) {
        if !is_companion(last) {
            break;
        }
        dir = above;
    }
    dir.to_owned()
}

/// Where the run of a predictions file or a report may be rooted, the nearest first.
pub fn roots(path: &Path, instance: Option<&str>) -> Vec<PathBuf> {
    let near = run_dir(path, instance);
    let mut roots = vec![near.clone()];
    let deep = path.ancestors().skip(1).take(LEVELS + 1).filter(|a| name(a).is_some_and(|n| DEEP.contains(&n))).last();
    if let Some(above) = deep.and_then(Path::parent) {
        let far = run_dir(&above.join("file"), instance);
        if far != near {
            roots.push(far);
        }
    }
    roots
}

/// Names a report or a predictions file gives its run: folder names between the root and the file, and its stem.
pub fn run_names(path: &Path, model: Option<&str>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = model.map(plain).into_iter().collect();
    names.extend(path.ancestors().skip(1).take(LEVELS).filter_map(name).map(plain));
    if let Some(stem) = path.file_stem().and_then(|s| s.to_str()) {
        // `<model>.<run id>.json`, where both may hold dots.
        names.extend(stem.match_indices('.').map(|(at, _)| plain(stem.get(..at).unwrap_or_default())));
        names.insert(plain(stem));
    }
    names.retain(|n| !n.is_empty());
    names
}

/// A model name as it appears in paths: `/` written as `__`, no difference of case.
pub fn plain(model: &str) -> String {
    model.replace('/', "__").to_lowercase()
}

fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// The trajectories of a data set by run folder, to tell whether a folder holds one run or several.
#[derive(Debug, Default)]
pub struct Runs {
    dirs: BTreeSet<PathBuf>,
    several: BTreeMap<PathBuf, bool>,
}

impl Runs {
    /// Of all attempts with a trajectory.
    pub fn new<'a>(dirs: impl Iterator<Item = &'a Path>) -> Self {
        Self { dirs: dirs.map(Path::to_owned).collect(), several: BTreeMap::new() }
    }

    /// Are there several runs at and below this folder?
    fn several_below(&mut self, root: &Path) -> bool {
        if let Some(several) = self.several.get(root) {
            return *several;
        }
        let below = self.dirs.range(root.to_owned()..).take_while(|d| d.starts_with(root)).take(2).count();
        self.several.insert(root.to_owned(), below > 1);
        below > 1
    }
}

/// A predictions file's entry or a report's, looking for its attempt.
pub struct Companion<'a> {
    /// Its possible roots.
    pub roots: &'a [PathBuf],
    /// The names it gives its run.
    pub names: &'a BTreeSet<String>,
    /// The patch it is about, normalised, where it says so.
    pub patch: Option<&'a str>,
}

/// An attempt as candidates are compared.
pub struct Candidate {
    /// Its run folder.
    pub dir: PathBuf,
    /// What its run may be called.
    pub names: BTreeSet<String>,
    /// Its patch, normalised.
    pub patch: Option<String>,
}

impl Candidate {
    /// Of an attempt at an instance.
    pub fn of(attempt: &Attempt, instance: Option<&str>) -> Self {
        let dir = attempt.path().map(|p| run_dir(p, instance)).unwrap_or_default();
        let models = [attempt.model_name(), attempt.trajectory.as_ref().and_then(|t| t.model.as_deref())];
        let mut names: BTreeSet<String> = models.into_iter().flatten().map(plain).collect();
        names.extend(name(&dir).map(plain));
        Self { dir, names, patch: attempt.patch().map(normalized) }
    }
}

/// The one candidate (all of one instance) that a companion belongs to; `None` if there is none, or no telling.
pub fn find(companion: &Companion<'_>, candidates: &[Candidate], runs: &mut Runs) -> Option<usize> {
    let all: Vec<usize> = (0..candidates.len()).collect();
    let of = |keep: &dyn Fn(&Candidate) -> bool| -> Vec<usize> {
        all.iter().copied().filter(|i| candidates.get(*i).is_some_and(keep)).collect()
    };
    for root in companion.roots {
        let same = of(&|c| c.dir == *root);
        if !same.is_empty() {
            return choose(companion, candidates, &same, true);
        }
        let below = of(&|c| c.dir.starts_with(root));
        if !below.is_empty() {
            let only_run = below.len() == 1 && !runs.several_below(root);
            return choose(companion, candidates, &below, only_run);
        }
    }
    let near = companion.roots.first()?;
    // A predictions file one or two folders below the trajectories, where there are none of its own.
    let above = of(&|c| near.starts_with(&c.dir) && near.components().count() - c.dir.components().count() <= 2);
    if !above.is_empty() && !c_has_own(runs, near) {
        return choose(companion, candidates, &above, above.len() == 1);
    }
    // Elsewhere altogether: only the model's name and the same patch speak for it.
    let named = of(&|c| !c.names.is_disjoint(companion.names) && same_patch(companion, c));
    if let [only] = named.as_slice() { Some(*only) } else { None }
}

fn c_has_own(runs: &Runs, root: &Path) -> bool {
    runs.dirs.range(root.to_owned()..).next().is_some_and(|d| d.starts_with(root))
}

fn same_patch(companion: &Companion<'_>, candidate: &Candidate) -> bool {
    match (companion.patch, &candidate.patch) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// Of several that lie right: the one with the same patch, else the one whose run is called the same.
fn choose(companion: &Companion<'_>, candidates: &[Candidate], among: &[usize], sure: bool) -> Option<usize> {
    if let ([only], true) = (among, sure) {
        return Some(*only);
    }
    let keep = |test: &dyn Fn(&Candidate) -> bool| -> Vec<usize> {
        among.iter().copied().filter(|i| candidates.get(*i).is_some_and(test)).collect()
    };
    let named = keep(&|c| !c.names.is_disjoint(companion.names));
    let patched = keep(&|c| same_patch(companion, c));
    let both: Vec<usize> = named.iter().copied().filter(|i| patched.contains(i)).collect();
    let unique = [both, named, patched].into_iter().find(|found| found.len() == 1);
    unique.and_then(|found| found.first().copied())
}

/// A patch for comparing: line ends and blank space around it do not count.
pub fn normalized(patch: &str) -> String {
    patch.replace("\r\n", "\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(path: &str, instance: Option<&str>) -> String {
        run_dir(Path::new(path), instance).to_string_lossy().into_owned()
    }

    #[test]
    fn run_folders_leave_out_instance_and_companion_levels() {
        let id = Some("o__r-1");
        assert_eq!(dir("runs/a/o__r-1/o__r-1.traj", id), "runs/a");
        assert_eq!(dir("runs/a/trajs/o__r-1.traj", id), "runs/a");
        assert_eq!(dir("runs/a/trajs/o__r-1/x.traj.json", id), "runs/a");
        assert_eq!(dir("runs/a/preds.json", id), "runs/a");
        assert_eq!(dir("runs/a/trajs/sb-cli-reports/r.json", None), "runs/a");
        assert_eq!(dir("runs/a/logs/o__r-1/report.json", id), "runs/a");
        assert_eq!(dir("x.traj", id), "");
    }

    #[test]
    fn harness_logs_lead_to_the_folder_they_lie_in() {
        let path = Path::new("p/logs/run_evaluation/run-7/openai__gpt/o__r-1/report.json");
        let found: Vec<String> = roots(path, Some("o__r-1")).iter().map(|p| p.to_string_lossy().into_owned()).collect();
        assert_eq!(found, ["p/logs/run_evaluation/run-7/openai__gpt", "p"]);
        assert!(run_names(path, None).contains("openai__gpt"));
        assert!(run_names(path, None).contains("run-7"));
        assert!(run_names(Path::new("a/openai__gpt-4.1.run-7.json"), None).contains("openai__gpt-4.1"));
    }
}
