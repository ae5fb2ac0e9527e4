//! Which files belong to the same run: a question of where they lie, and failing that of what they call the model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::account::Rule;
use super::{Attempt, ids};

/// Folders of a run that hold its trajectories.
const TRAJECTORIES: [&str; 4] = ["trajs", "traj", "trajectories", "trajectory"];
/// Folders beside them that hold what belongs to the run.
const COMPANIONS: [&str; 22] = [
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
    "eval_logs",
    "output_diffs",
    // AutoCodeRover sorts its tasks by how far they came.
    "applicable_patch",
    "matched_but_empty_origin",
    "matched_but_empty_diff",
    "raw_patch_but_unmatched",
    "raw_patch_but_unparsed",
    "no_patch",
    "instance_results",
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

/// A folder as bytes that compare quickly: its components, each closed by a NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dir(Vec<u8>);

impl Dir {
    /// Of a path.
    pub fn of(path: &Path) -> Self {
        let mut bytes = Vec::with_capacity(path.as_os_str().len() + 1);
        for component in path.components() {
            bytes.extend_from_slice(component.as_os_str().as_encoded_bytes());
            bytes.push(0);
        }
        Self(bytes)
    }

    /// Is the other one this folder, or below it?
    fn holds(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    fn depth(&self) -> usize {
        self.0.iter().filter(|b| **b == 0).count()
    }

    /// Number of components shared from the root.
    pub fn shared(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).take_while(|(a, b)| a == b).filter(|(a, _)| **a == 0).count()
    }
}

/// The folder of the run that a file belongs to: its own, without the levels for the instance and for companions.
pub fn run_dir<'a>(path: &'a Path, instance: Option<&str>) -> &'a Path {
    above_companions(path.parent().unwrap_or(Path::new("")), instance)
}

fn above_companions<'a>(mut dir: &'a Path, instance: Option<&str>) -> &'a Path {
    while let (Some(last), Some(above)) = (name(dir), dir.parent()) {
        let of_instance = instance.is_some_and(|id| ids::is_folder_of(last, id));
        if !of_instance && !is_companion(last) && !is_output(last) {
            break;
        }
        dir = above;
    }
    dir
}

/// One of the numbered outputs of one task (`output_0`): several attempts of the same run.
fn is_output(name: &str) -> bool {
    name.strip_prefix("output_").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Where the run of a predictions file or a report may be rooted, the nearest first.
pub fn roots(path: &Path, instance: Option<&str>) -> Vec<Dir> {
    let near = run_dir(path, instance);
    let mut roots = vec![Dir::of(near)];
    let deep = path.ancestors().skip(1).take(LEVELS + 1).filter(|a| name(a).is_some_and(|n| DEEP.contains(&n))).last();
    let far = deep.and_then(Path::parent).map(|above| above_companions(above, instance));
    roots.extend(far.filter(|far| *far != near).map(Dir::of));
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

/// The runs of a data set by folder, to tell whether a folder holds one or several.
#[derive(Debug, Default)]
pub struct Runs {
    dirs: BTreeSet<Dir>,
    several: BTreeMap<Dir, bool>,
}

impl Runs {
    /// Of the folders of all trajectories.
    pub fn new(dirs: impl Iterator<Item = Dir>) -> Self {
        Self { dirs: dirs.collect(), several: BTreeMap::new() }
    }

    /// Are there several runs at and below this folder?
    fn several_below(&mut self, root: &Dir) -> bool {
        if let Some(several) = self.several.get(root) {
            return *several;
        }
        let below = self.dirs.range(root.clone()..).take_while(|d| root.holds(d)).take(2).count();
        self.several.insert(root.clone(), below > 1);
        below > 1
    }

    /// Is there a run at or below this folder?
    fn any_below(&self, root: &Dir) -> bool {
        self.dirs.range(root.clone()..).next().is_some_and(|d| root.holds(d))
    }
}

/// A predictions file's entry or a report's, looking for its attempt.
pub struct Companion<'a> {
    /// Its possible roots.
    pub roots: &'a [Dir],
    /// The names it gives its run.
    pub names: &'a BTreeSet<String>,
    /// The patch it is about, where it says so.
    pub patch: Option<&'a str>,
}

/// An attempt as candidates are compared.
#[derive(Clone)]
pub struct Candidate<'a> {
    attempt: &'a Attempt,
    /// Its run folder.
    pub dir: Dir,
    /// The folder's name.
    dir_name: Option<&'a str>,
}

impl<'a> Candidate<'a> {
    /// Of an attempt at an instance.
    pub fn of(attempt: &'a Attempt, instance: Option<&str>) -> Self {
        let dir = attempt.path().map_or(Path::new(""), |p| run_dir(p, instance));
        Self { attempt, dir: Dir::of(dir), dir_name: name(dir) }
    }

    /// Its patch, if it has one that is not blank.
    pub fn patch(&self) -> Option<&'a str> {
        self.attempt.patch().filter(|p| !p.trim().is_empty())
    }

    /// Is its run called by one of these names?
    fn is_called(&self, names: &BTreeSet<String>) -> bool {
        let of_trajectory = self.attempt.trajectory.as_ref().and_then(|t| t.model.as_deref());
        let own = [self.attempt.model_name(), of_trajectory, self.dir_name];
        !names.is_empty() && own.into_iter().flatten().any(|own| names.contains(&plain(own)))
    }

    fn has_patch_of(&self, companion: &Companion<'_>) -> bool {
        let own = self.attempt.patch();
        own.zip(companion.patch).is_some_and(|(own, other)| same_patch(own, other))
    }
}

/// The one candidate (all of one instance) that a companion belongs to with the rule that says so; else why none.
pub fn find(companion: &Companion<'_>, candidates: &[Candidate<'_>], runs: &mut Runs) -> Result<(usize, Rule), Rule> {
    if candidates.is_empty() {
        return Err(Rule::NoAttempt);
    }
    let of = |keep: &dyn Fn(&Candidate<'_>) -> bool| -> Vec<usize> {
        candidates.iter().enumerate().filter(|(_, c)| keep(c)).map(|(i, _)| i).collect()
    };
    for root in companion.roots {
        let same = of(&|c| c.dir == *root);
        if !same.is_empty() {
            return choose(companion, candidates, &same, Some(Rule::SameRun));
        }
        let below = of(&|c| root.holds(&c.dir));
        if !below.is_empty() {
            let only_run = below.len() == 1 && !runs.several_below(root);
            return choose(companion, candidates, &below, Some(Rule::OnlyBelow).filter(|_| only_run));
        }
    }
    let near = companion.roots.first().ok_or(Rule::Elsewhere)?;
    // A predictions file one or two folders below the trajectories, where there are none of its own.
    let above = of(&|c| c.dir.holds(near) && near.depth() - c.dir.depth() <= 2);
    if !above.is_empty() && !runs.any_below(near) {
        return choose(companion, candidates, &above, Some(Rule::OnlyAbove));
    }
    // Elsewhere altogether: only the run's name and the same patch together speak for it.
    let named = of(&|c| c.is_called(companion.names) && c.has_patch_of(companion));
    match named.as_slice() {
        [only] => Ok((*only, Rule::SameNameAndPatch)),
        [] => Err(Rule::Elsewhere),
        _ => Err(Rule::Several),
    }
}

/// Of several that lie right: the one with the same patch, else the one whose run is called the same. A single one
/// is right by itself where a rule says so.
fn choose(
    companion: &Companion<'_>,
    candidates: &[Candidate<'_>],
    among: &[usize],
    alone: Option<Rule>,
) -> Result<(usize, Rule), Rule> {
    if let ([only], Some(rule)) = (among, alone) {
        return Ok((*only, rule));
    }
    let keep = |test: &dyn Fn(&Candidate<'_>) -> bool| -> Vec<usize> {
        among.iter().copied().filter(|i| candidates.get(*i).is_some_and(test)).collect()
    };
    let named = keep(&|c| c.is_called(companion.names));
    let patched = keep(&|c| c.has_patch_of(companion));
    let both: Vec<usize> = named.iter().copied().filter(|i| patched.contains(i)).collect();
    let ways = [(both, Rule::SameNameAndPatch), (named, Rule::SameName), (patched, Rule::SamePatch)];
    let unique = ways.into_iter().find_map(|(found, rule)| match found.as_slice() {
        [only] => Some((*only, rule)),
        _ => None,
    });
    unique.ok_or(if among.len() > 1 { Rule::Several } else { Rule::Elsewhere })
}

/// Are these the same patch, but for line ends and blank space around it?
pub fn same_patch(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    a == b || a.split('\n').map(without_cr).eq(b.split('\n').map(without_cr))
}

fn without_cr(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir<'a>(path: &'a str, instance: Option<&str>) -> &'a str {
        run_dir(Path::new(path), instance).to_str().unwrap()
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
    fn patches_are_the_same_whatever_their_line_ends() {
        assert!(same_patch("\r\na\r\nb\r\n", "a\nb"));
        assert!(same_patch("", " \n"));
        assert!(!same_patch("a\nb", "a\n b"));
        assert!(!same_patch("a", ""));
    }

    #[test]
    fn harness_logs_lead_to_the_folder_they_lie_in() {
        let path = Path::new("p/logs/run_evaluation/run-7/openai__gpt/o__r-1/report.json");
        let expected = ["p/logs/run_evaluation/run-7/openai__gpt", "p"].map(|p| Dir::of(Path::new(p)));
        assert_eq!(roots(path, Some("o__r-1")), expected);
        assert!(run_names(path, None).contains("openai__gpt"));
        assert!(run_names(path, None).contains("run-7"));
        assert!(run_names(Path::new("a/openai__gpt-4.1.run-7.json"), None).contains("openai__gpt-4.1"));
    }
}
