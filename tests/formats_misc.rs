//! Predictions, reports, logs and the smaller agents of the corpus, against what the manifest knows about each file.

#![expect(clippy::panic, reason = "helpers of tests fail the test; clippy knows only the tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Attempt, Dataset, Issue, Rule, account, join};

/// A folder of the corpus, read and joined.
struct Corpus {
    root: PathBuf,
    data: Dataset,
    issues: Vec<Issue>,
}

impl Corpus {
    fn open(folder: &str) -> Option<Self> {
        let root = shared()?.join("corpus").join(folder);
        assert!(root.is_dir(), "{folder} is gone");
        let data = load(std::slice::from_ref(&root), &|_| {});
        let issues = join(&data);
        Some(Self { root, data, issues })
    }

    fn format(&self, file: &str) -> Option<&'static str> {
        let path = self.root.join(file);
        self.data.files.iter().find(|f| f.path == path).unwrap_or_else(|| panic!("{file} was not looked at")).format
    }

    fn attempts<'a>(&'a self, issue: &str) -> Vec<&'a Attempt> {
        self.issues.iter().filter(|i| i.name() == issue).flat_map(|i| &i.attempts).collect()
    }

    /// `file -> (patch present, label)` of the attempts made of a file.
    fn of_file(&self, file: &Path) -> Vec<(bool, Option<bool>)> {
        let all = self.issues.iter().flat_map(|i| &i.attempts).filter(|a| a.path() == Some(file));
        all.map(|a| (a.patch().is_some_and(|p| !p.trim().is_empty()), a.label.outcome.as_bool())).collect()
    }
}

#[test]
fn autocoderover() {
    let Some(corpus) = Corpus::open("autocoderover") else { return };
    let issue = corpus.attempts("django__django-11039");
    let run: Vec<&&Attempt> = issue.iter().filter(|a| a.trajectory.is_some()).collect();
    let [run] = run.as_slice() else { panic!("{} attempts with a trajectory", run.len()) };
    let t = run.trajectory.as_ref().unwrap();
    // The manifest counts the messages of each file: 31 in the last conversation. The 38 of the writing of the patch
    // repeat 30 of them below another system prompt.
    assert_eq!((t.format, t.steps.len()), ("autocoderover", 31 + 8));
    assert_eq!(t.exit_status.as_deref(), Some("raw_patch_but_unmatched"));
    assert_eq!(t.patch.as_deref(), Some(""), "no edit could be applied; the developer's patch is the solution");
    assert_eq!(run.label.outcome.as_bool(), Some(false));
    assert!(t.usage.cost.is_some_and(|c| (1.3..1.4).contains(&c)));
    assert!(t.task.as_deref().is_some_and(|t| t.contains("sqlmigrate")));
    assert!(corpus.data.predictions.iter().all(|p| p.path.ends_with("predictions_for_swebench.json")));
    assert_eq!(corpus.format("acr-run-1/stats.json"), Some("run-statistics"));
}

#[test]
fn labels_that_are_the_name_of_a_folder() {
    let Some(corpus) = Corpus::open("swebench-results/devin") else { return };
    assert_eq!(corpus.issues.len(), 12);
    for file in &corpus.data.files {
        let passed = file.path.components().any(|c| c.as_os_str() == "pass");
        assert_eq!(corpus.of_file(&file.path), [(true, Some(passed))], "{}", file.path.display());
    }
}

#[test]
fn every_report_of_the_results_is_read() {
    let Some(corpus) = Corpus::open("swebench-results") else { return };
    let mut formats: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unknown = Vec::new();
    for file in &corpus.data.files {
        match file.format {
            Some(format) => *formats.entry(format).or_default() += 1,
            None if !file.foreign => unknown.push(format!("{}: {}", file.path.display(), file.reason)),
            None => {}
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    let count = |format: &str| formats.get(format).copied().unwrap_or(0);
    assert_eq!((count("eval-log"), count("test-output")), (7, 15));
    assert!(count("report-run") >= 12 && count("report-instance") >= 18 && count("run-instance-log") >= 14);
    assert!(count("patch-file") >= 12 + 5, "{formats:?}");
    // The harness's own copy of a patch and its report are one attempt.
    let vexp = Corpus::open("swebench-results/vexp").unwrap();
    let labels: Vec<(String, Vec<Option<bool>>)> = vexp
        .issues
        .iter()
        .map(|i| (i.name(), i.attempts.iter().map(|a| a.label.outcome.as_bool()).collect()))
        .collect();
    let expected = [
        ("astropy__astropy-14365", Some(true)),
        ("astropy__astropy-14369", None),
        ("astropy__astropy-14539", Some(true)),
        ("astropy__astropy-14598", Some(false)),
        ("astropy__astropy-7166", Some(true)),
    ];
    assert_eq!(labels, expected.map(|(id, label)| (id.to_owned(), vec![label])));
}

#[test]
fn aider_hands_in_one_of_its_tries() {
    let Some(corpus) = Corpus::open("other/aider") else { return };
    // The manifest counts the tries.
    let known =
        [("astropy__astropy-14182", 2, false), ("django__django-11039", 2, true), ("sympy__sympy-16106", 6, false)];
    for (instance, tries, resolved) in known {
        let attempts = corpus.attempts(instance);
        assert_eq!(attempts.len(), tries, "{instance}");
        let labels: Vec<bool> = attempts.iter().filter_map(|a| a.label.outcome.as_bool()).collect();
        assert!(labels.contains(&resolved), "{instance}: {labels:?}");
        assert!(attempts.iter().any(|a| a.patch().is_some_and(|p| !p.is_empty())));
    }
}

#[test]
fn trees_and_machines_of_moatless() {
    let Some(corpus) = Corpus::open("other/moatless") else { return };
    let t = corpus.attempts("scikit-learn__scikit-learn-13779")[0].trajectory.clone().unwrap();
    assert_eq!((t.format, t.exit_status.as_deref(), t.error.is_some()), ("moatless-0", Some("error"), true));
    // The manifest counts the states: each stands in at least one step's place.
    let states: std::collections::BTreeSet<&str> =
        t.steps.iter().filter_map(|s| s.raw.pointer.strip_prefix("/transitions/")?.split('/').next()).collect();
    assert_eq!(states.len(), 16);
    assert!(t.patch.as_deref().is_some_and(|p| p.starts_with("diff --git")));
    assert_eq!(corpus.format("traj_haiku.json"), Some("moatless-tree"));
}

#[test]
fn candidates_trials_and_stubs() {
    let Some(corpus) = Corpus::open("other/trae") else { return };
    let labels: Vec<Option<bool>> =
        corpus.attempts("astropy__astropy-14369").iter().map(|a| a.label.outcome.as_bool()).collect();
    assert_eq!(labels.iter().filter(|l| **l == Some(true)).count(), 7);
    assert_eq!(labels.len(), 10);
    let corpus = Corpus::open("other/docent").unwrap();
    let tau = corpus.data.trajectories.iter().find(|t| t.format == "tau-bench").unwrap();
    assert_eq!((tau.steps.len(), tau.outcome.as_bool(), tau.attempt.as_deref()), (42, Some(false), Some("trial 0")));
}

#[test]
fn nothing_of_the_whole_corpus_is_joined_to_another_run() {
    let Some(shared) = shared() else { return };
    let data = load(&[shared.join("corpus")], &|_| {});
    let lines = account(&data);
    // Everything said about an instance stands in the account once.
    let predictions = lines.iter().filter(|l| l.what == trajscope::trajectory::Joined::Prediction).count();
    assert_eq!(predictions, data.predictions.len());
    for line in lines.iter().filter(|l| l.rule.is_joined() && l.rule != Rule::Again) {
        let (issue, _) = line.attempt.as_ref().unwrap_or_else(|| panic!("{line:?}"));
        let instance = line.instance.as_deref().unwrap_or_default();
        let same =
            issue.eq_ignore_ascii_case(instance) || issue.contains(instance) || instance.contains(issue.as_str());
        assert!(same, "{instance} went to {issue}");
    }
}
