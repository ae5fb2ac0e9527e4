//! What the decoders and the joining find in five folders of the corpus, against what is known about each file.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test; clippy knows only the test functions themselves"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Attempt, Dataset, Issue, join};

/// One line of `MANIFEST.tsv`.
struct Known {
    file: String,
    steps: Option<usize>,
    instance: String,
    patch: Option<bool>,
    label: String,
}

fn manifest(shared: &Path, folder: &str) -> Vec<Known> {
    let text = std::fs::read_to_string(shared.join("corpus/MANIFEST.tsv")).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let column = |name: &str| head.iter().position(|h| *h == name).unwrap();
    let known = lines.filter(|l| l.starts_with(&format!("{folder}/"))).map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |name: &str| (*cells.get(column(name)).unwrap_or(&"")).to_owned();
        let patch = match cell("patch_present").as_str() {
            "y" => Some(true),
            "n" => Some(false),
            _ => None,
        };
        Known {
            file: cell("file"),
            steps: cell("steps").parse().ok(),
            instance: cell("instance_id"),
            patch,
            label: cell("label"),
        }
    });
    known.collect()
}

struct Folder {
    root: PathBuf,
    known: Vec<Known>,
    dataset: Dataset,
    issues: Vec<Issue>,
}

impl Folder {
    fn open(name: &str) -> Option<Self> {
        let shared = shared()?;
        let root = shared.join("corpus");
        let dataset = load(&[root.join(name)], &|_| {});
        let issues = join(&dataset);
        Some(Self { known: manifest(&shared, name), root, dataset, issues })
    }

    fn format(&self, file: &str) -> Option<&'static str> {
        let path = self.root.join(file);
        self.dataset.files.iter().find(|f| f.path == path).unwrap_or_else(|| panic!("{file} was not looked at")).format
    }

    /// The attempt made of the only trajectory in a file.
    fn attempt(&self, file: &str) -> (&Issue, &Attempt) {
        let path = self.root.join(file);
        let of = |issue| {
            let attempts: &[Attempt] = Issue::attempts_of(issue);
            attempts.iter().find(|a| a.path() == Some(&path) && a.trajectory.is_some()).map(|a| (issue, a))
        };
        self.issues.iter().find_map(of).unwrap_or_else(|| panic!("{file} has no attempt"))
    }

    /// Every trajectory file the manifest counts steps of.
    fn trajectories(&self) -> impl Iterator<Item = &Known> {
        let one = |k: &&Known| [".traj", ".traj.json"].iter().any(|end| k.file.ends_with(end));
        self.known.iter().filter(one).filter(|k| k.steps.is_some())
    }

    /// Checks instance, patch and label of every trajectory; `excused` gives the label found where it may differ.
    fn check(&self, expected: &[&str], excused: &dyn Fn(&Known) -> Option<&'static str>) {
        let mut wrong = Vec::new();
        for known in self.trajectories() {
            let format = self.format(&known.file).unwrap_or("none");
            if !expected.contains(&format) {
                wrong.push(format!("{}: format {format}", known.file));
                continue;
            }
            let (issue, attempt) = self.attempt(&known.file);
            if !known.instance.is_empty() && issue.name() != known.instance {
                wrong.push(format!("{}: instance {} for {}", known.file, issue.name(), known.instance));
            }
            let patch = attempt.patch().is_some_and(|p| !p.trim().is_empty());
            if known.patch.is_some_and(|present| present != patch) {
                wrong.push(format!("{}: patch present is {patch}", known.file));
            }
            let label = match attempt.label.outcome.as_bool() {
                Some(true) => "resolved",
                Some(false) => "unresolved",
                None => "unknown",
            };
            let right = excused(known).unwrap_or(&known.label);
            if label != right {
                wrong.push(format!("{}: label {label} for {right}", known.file));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

trait AttemptsOf {
    fn attempts_of(&self) -> &[Attempt];
}

impl AttemptsOf for Issue {
    fn attempts_of(&self) -> &[Attempt] {
        &self.attempts
    }
}

fn actions(folder: &Folder, file: &str) -> usize {
    folder.attempt(file).1.trajectory.as_ref().map_or(0, |t| t.n_actions())
}

#[test]
fn sweagent_v0() {
    let Some(folder) = Folder::open("sweagent-v0") else { return };
    // No report of the first of the three runs lies on disk: its labels cannot be known here.
    folder.check(&["sweagent-0", "sweagent-1"], &|k| k.file.contains("acr-cost_2_1/").then_some("unknown"));
    for known in folder.trajectories() {
        // The manifest counts entries of `trajectory`, each of which is one action.
        assert_eq!(Some(actions(&folder, &known.file)), known.steps, "{}", known.file);
    }
}

#[test]
fn sweagent_v1() {
    let Some(folder) = Folder::open("sweagent-v1") else { return };
    // The reports on the SWE-smith runs lie in another folder, swebench-results/swe-smith.
    folder.check(&["sweagent-1"], &|k| k.file.contains("swe-smith/").then_some("unknown"));
    for known in folder.trajectories() {
        // One file holds a `history` only: no entries, but twelve messages.
        let right = if known.steps == Some(0) { 5 } else { known.steps.unwrap() };
        assert_eq!(actions(&folder, &known.file), right, "{}", known.file);
    }
}

#[test]
fn mini_v1_and_v2() {
    for (name, format) in [("mini-swe-agent-v1", "mini-swe-agent-1"), ("mini-swe-agent-v2", "mini-swe-agent-2")] {
        let Some(folder) = Folder::open(name) else { return };
        // The harness left no report on these two: only the source repository's own notes know.
        let unreported = ["django__django-11815", "django__django-14631"];
        folder.check(&[format], &|k| {
            let excused = k.file.contains("live-swe-agent/") && unreported.contains(&k.instance.as_str());
            excused.then_some("unknown")
        });
        for known in folder.trajectories() {
            // The manifest counts messages; every message is one step.
            let steps = folder.attempt(&known.file).1.trajectory.as_ref().map(|t| t.steps.len());
            assert_eq!(steps, known.steps, "{}", known.file);
        }
    }
}

#[test]
fn openhands_v0() {
    let Some(folder) = Folder::open("openhands-v0") else { return };
    let expected = [
        ("eval/example_model_output.json", Some("predictions"), 0),
        ("resolver/output.jsonl", Some("openhands-0"), 2),
        ("trajectory-export/basic_gui_mode.json", Some("openhands-0-events"), 1),
        ("trajectory-export/rfc-openhands_trajectory.json", Some("openhands-0-events"), 1),
        ("trajectory-export/visualizer-demo1.json", Some("openhands-0-events"), 1),
        ("trajectory-export/wrong_initial_state.json", Some("openhands-0-events"), 1),
        ("zeno/test_aider_output.jsonl", Some("openhands-0"), 2),
        ("zeno/test_output.jsonl", Some("openhands-0"), 2),
        ("zeno/test.swebench_eval.jsonl", Some("report-run"), 0),
        ("zeno/test_output.swebench_eval.jsonl", Some("report-run"), 0),
        ("eval/multi_swe_bench_examples/config.json", Some("multi-swe-bench-config"), 0),
    ];
    for (file, format, n) in expected {
        let path = folder.root.join("openhands-v0").join(file);
        let report = folder.dataset.files.iter().find(|f| f.path == path).unwrap();
        assert_eq!((report.format, report.trajectories), (format, n), "{file}: {}", report.reason);
    }
    let steps = |file: &str| folder.attempt(&format!("openhands-v0/{file}")).1.trajectory.as_ref().unwrap().steps.len();
    // The manifest counts events: every event of a flat list is one step, for none of these holds parallel calls.
    assert_eq!(steps("trajectory-export/basic_gui_mode.json"), 18);
    assert_eq!(steps("trajectory-export/rfc-openhands_trajectory.json"), 7);
    assert_eq!(steps("trajectory-export/wrong_initial_state.json"), 8);
    let resolver: Vec<_> =
        folder.dataset.trajectories.iter().filter(|t| t.source.path.ends_with("resolver/output.jsonl")).collect();
    assert!(resolver.iter().all(|t| t.patch.as_deref().is_some_and(|p| p.contains("diff --git"))));
    assert!(resolver.iter().all(|t| t.outcome.as_bool().is_none()), "`success` is no label");
    // zeno: the labels stand in a second file of the same folder, without steps.
    let labels: Vec<_> = folder
        .issues
        .iter()
        .filter(|i| i.name().starts_with("test-instance-"))
        .map(|i| (i.name(), i.attempts.iter().filter_map(|a| a.label.outcome.as_bool()).count()))
        .collect();
    assert_eq!(labels.len(), 2);
}

#[test]
fn three_runs_of_sixteen_issues_come_together() {
    let Some(shared) = shared() else { return };
    let paths: Vec<PathBuf> = (1..=3).map(|i| shared.join(format!("corpus/sweagent-v0/acr-cost_2_{i}"))).collect();
    let issues = join(&load(&paths, &|_| {}));
    let runs: Vec<&Issue> = issues.iter().filter(|i| i.attempts.iter().any(|a| a.trajectory.is_some())).collect();
    assert_eq!(runs.len(), 17, "issues with a trajectory");
    let attempts: usize = runs.iter().map(|i| i.attempts.iter().filter(|a| a.trajectory.is_some()).count()).sum();
    assert_eq!(attempts, 39);
    let mut labels: BTreeMap<Option<bool>, usize> = BTreeMap::new();
    for attempt in runs.iter().flat_map(|i| &i.attempts).filter(|a| a.trajectory.is_some()) {
        assert!(attempt.name.chars().count() <= 24 && !attempt.name.is_empty());
        *labels.entry(attempt.label.outcome.as_bool()).or_default() += 1;
    }
    assert_eq!(labels.get(&Some(true)), Some(&16));
    assert_eq!(labels.get(&Some(false)), Some(&12));
    assert_eq!(labels.get(&None), Some(&11), "the run without a report");
    let three = runs.iter().find(|i| i.name() == "django__django-11001").unwrap();
    let names: Vec<&str> = three.attempts.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["cost_2_1", "cost_2_2", "cost_2_3"]);
    assert!(three.attempts.iter().all(|a| a.diagnostics.is_empty()), "predictions and trajectories agree");
}

#[test]
fn four_runs_and_five_models_come_together() {
    let Some(shared) = shared() else { return };
    let corpus = shared.join("corpus");
    let names = |issue: &Issue| {
        issue.attempts.iter().filter(|a| a.trajectory.is_some()).map(|a| a.name.clone()).collect::<Vec<_>>()
    };
    let issues = join(&load(&[corpus.join("mini-swe-agent-v2/deepseek")], &|_| {}));
    for issue in issues.iter().filter(|i| i.attempts.iter().any(|a| a.trajectory.is_some())) {
        assert_eq!(
            names(issue),
            ["chat_dev", "chat_dev_rerun", "lite_dev_noparallel", "reasoner_dev"],
            "{}",
            issue.name()
        );
        assert!(issue.attempts.iter().all(|a| a.prediction.is_some()), "{}", issue.name());
    }
    let issues = join(&load(&[corpus.join("sweagent-v0/java-verified")], &|_| {}));
    let issue = issues.iter().find(|i| i.name() == "fasterxml__jackson-core-1142").unwrap();
    assert_eq!(names(issue), ["deepseek-coder-v2", "doubao-pro-128k", "gpt-4o-2024-05-13", "gpt-4o-mini-2024-07-18"]);
    let unknown = issue.attempts.iter().find(|a| a.name.contains("mini")).unwrap();
    assert_eq!(unknown.label.outcome.as_bool(), None, "submitted 1 of 91: not mentioned is not unresolved");
    assert_eq!(unknown.label.reason.as_deref(), Some("not submitted"));
}
