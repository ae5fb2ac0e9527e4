//! Instance ids and run names that only a path knows.

use std::path::Path;

use crate::trajectory::Trajectory;

/// Endings taken off a file name before it is tried as an instance id, longest first.
const ENDINGS: [&str; 11] = [
    ".traj.json",
    ".trajectory.json",
    "-diff.txt",
    ".traj",
    ".pred",
    ".patch",
    ".diff",
    ".jsonl.gz",
    ".jsonl",
    ".json",
    ".gz",
];

/// The instance id a path names: its file's stem, else the directory it lies in. `None` if neither looks like one.
pub fn instance_of(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let stem = ENDINGS.iter().find_map(|e| file.strip_suffix(e)).unwrap_or(file);
    let parent = path.parent().and_then(Path::file_name).and_then(|n| n.to_str());
    let names = [Some(stem), parent].into_iter().flatten().map(undated);
    names.into_iter().find(|name| looks_like_instance(name)).map(str::to_owned)
}

/// Without a date behind the name: AutoCodeRover writes `<id>_2024-04-06_13-30-51`.
fn undated(name: &str) -> &str {
    let date = |tail: &str| {
        let digits = |from: usize, to: usize| tail.get(from..to).is_some_and(|t| t.bytes().all(|b| b.is_ascii_digit()));
        digits(0, 4) && tail.get(4..5) == Some("-") && digits(5, 7) && tail.get(7..8) == Some("-") && digits(8, 10)
    };
    let cut = name.match_indices('_').find(|(at, _)| name.get(at + 1..).is_some_and(date));
    cut.and_then(|(at, _)| name.get(..at)).unwrap_or(name)
}

/// Does this look like `org__repo-NNN` and its kin (SWE-smith, SWE-bench-Pro, R2E-Gym)?
pub fn looks_like_instance(name: &str) -> bool {
    let Some((org, repo)) = name.split_once("__") else {
        return false;
    };
    let plain = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    // Experiment directories of SWE-agent look alike but hold a temperature: `<config>__<model>__t-0.00__p-…`.
    plain(org)
        && plain(repo)
        && !org.starts_with('.')
        && repo.bytes().any(|b| b.is_ascii_digit())
        && !["__t-", "__p-", "__c-", "___", "__install"].iter().any(|mark| repo.contains(mark))
}

/// Several attempts in one file of which none names its instance are attempts at the same one: it gets the file's name.
pub fn together(trajectories: &mut [Trajectory], path: &Path) {
    if trajectories.len() < 2 || trajectories.iter().any(|t| t.instance_id.is_some()) {
        return;
    }
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.split('.').next().filter(|s| !s.is_empty()).unwrap_or(&name).to_owned();
    let instance = instance_of(path).unwrap_or(stem);
    for trajectory in trajectories {
        trajectory.instance_id = Some(instance.clone());
    }
}

/// An id that was made unique among the rows of a set: `python__mypy-15976_0` is attempt 0 at `python__mypy-15976`.
/// Without such a number the id itself, if it looks like an instance.
pub fn numbered_instance(id: &str) -> (Option<String>, Option<String>) {
    if let Some((base, number)) = id.rsplit_once('_') {
        let digits = |s: &str| !s.is_empty() && s.len() <= 4 && s.bytes().all(|b| b.is_ascii_digit());
        let issue = base.rsplit_once('-').is_some_and(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty());
        if digits(number) && issue && looks_like_instance(base) {
            return (Some(base.to_owned()), Some(number.to_owned()));
        }
    }
    (Some(id.to_owned()).filter(|id| looks_like_instance(id)), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_ids_come_from_file_then_directory() {
        let of = |path: &str| instance_of(Path::new(path));
        assert_eq!(of("a/django__django-11099.traj").as_deref(), Some("django__django-11099"));
        assert_eq!(of("a/django__django-11099/run.traj.json").as_deref(), Some("django__django-11099"));
        assert_eq!(
            of("x/pydantic__pydantic.acb0f10f.pr_8316.traj").as_deref(),
            Some("pydantic__pydantic.acb0f10f.pr_8316")
        );
        assert_eq!(of("gpt4__swe-bench__default__t-0.00__p-0.95__c-3.00__install-1/x.traj"), None);
        assert_eq!(
            of("acr/django__django-11039_2024-04-06_13-30-51/meta.json").as_deref(),
            Some("django__django-11039")
        );
        assert_eq!(of("runs/output.jsonl"), None);
        assert_eq!(of("runs/my__notes.json"), None);
        assert_eq!(of("/"), None);
    }

    #[test]
    fn ids_made_unique_give_instance_and_attempt() {
        let of = |id: &str| numbered_instance(id);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("python__mypy-15976_0"), (some("python__mypy-15976"), some("0")));
        assert_eq!(of("python__mypy-15976"), (some("python__mypy-15976"), None));
        assert_eq!(of("o__r.1d70.lm__abc_1"), (some("o__r.1d70.lm__abc_1"), None), "not after an issue's number");
        assert_eq!(of("notes_1"), (None, None));
    }

    #[test]
    fn attempts_of_one_file_belong_together() {
        let mut two = [Trajectory::default(), Trajectory::default()];
        together(&mut two, Path::new("x/submit.prev.root"));
        assert!(two.iter().all(|t| t.instance_id.as_deref() == Some("submit")));
        together(&mut two[..1], Path::new("x/other.root"));
        assert_eq!(two[0].instance_id.as_deref(), Some("submit"));
        let mut one = [Trajectory::default()];
        together(&mut one, Path::new("x/submit.prev.root"));
        assert_eq!(one[0].instance_id, None);
    }
}
