//! Joining on small data sets made by hand.

use super::*;
use crate::trajectory::{Role, Source, Step, Trajectory};

fn trajectory(path: &str, instance: &str, patch: Option<&str>) -> SharedTrajectory {
    Arc::new(Trajectory {
        source: Source { path: path.into(), ..Source::default() },
        format: "sweagent-0",
        instance_id: Some(instance.to_owned()),
        steps: vec![Step::new(Role::Assistant, "ls")],
        patch: patch.map(str::to_owned),
        ..Trajectory::default()
    })
}

fn prediction(path: &str, instance: &str, model: &str, patch: Option<&str>) -> Arc<Prediction> {
    Arc::new(Prediction {
        path: path.into(),
        instance_id: instance.to_owned(),
        model: Some(model.to_owned()),
        patch: patch.map(str::to_owned),
        ..Prediction::default()
    })
}

fn report(path: &str, per_instance: bool, outcomes: &[(&str, bool)]) -> Arc<RunReport> {
    let outcomes = outcomes.iter().map(|(id, yes)| ((*id).to_owned(), Outcome::from_bool(Some(*yes)))).collect();
    Arc::new(RunReport { path: path.into(), per_instance, outcomes, ..RunReport::default() })
}

fn names(issue: &Issue) -> Vec<&str> {
    issue.attempts.iter().map(|a| a.name.as_str()).collect()
}

fn outcomes(issue: &Issue) -> Vec<Option<bool>> {
    issue.attempts.iter().map(|a| a.label.outcome.as_bool()).collect()
}

#[test]
fn three_runs_of_one_instance_are_three_attempts_with_their_own_labels() {
    let dataset = Dataset {
        trajectories: vec![
            trajectory("runs/cost_1/o__r-1.traj", "o__r-1", Some("P1")),
            trajectory("runs/cost_2/o__r-1.traj", "o__r-1", Some("P2")),
            trajectory("runs/cost_3/o__r-1.traj", "o__r-1", Some("P3")),
        ],
        reports: vec![
            report("runs/cost_2/final_report.json", false, &[("o__r-1", true)]),
            report("runs/cost_3/final_report.json", false, &[("o__r-2", true)]),
        ],
        ..Dataset::default()
    };
    let issues = join(&dataset);
    assert_eq!(issues.len(), 1);
    assert_eq!(names(&issues[0]), ["cost_1", "cost_2", "cost_3"]);
    assert_eq!(outcomes(&issues[0]), [None, Some(true), None]);
}

#[test]
fn a_closed_report_speaks_about_the_rest_of_its_run() {
    let closed = RunReport { closed: true, ..report("runs/a/r.json", false, &[("o__r-1", true)]).as_ref().clone() };
    let dataset = Dataset {
        trajectories: vec![
            trajectory("runs/a/o__r-1.traj", "o__r-1", Some("P")),
            trajectory("runs/a/o__r-2.traj", "o__r-2", Some("P")),
            trajectory("runs/a/o__r-3.traj", "o__r-3", Some("\n")),
            trajectory("runs/a/o__r-4.traj", "o__r-4", None),
            trajectory("runs/b/o__r-2.traj", "o__r-2", Some("P")),
        ],
        reports: vec![Arc::new(closed)],
        ..Dataset::default()
    };
    let all: Vec<Vec<Option<bool>>> = join(&dataset).iter().map(outcomes).collect();
    assert_eq!(all, [vec![Some(true)], vec![Some(false), None], vec![Some(false)], vec![None]]);
}

#[test]
fn predictions_join_the_trajectory_of_their_run_only() {
    let dataset = Dataset {
        trajectories: vec![
            trajectory("x/runs/a/trajs/o__r-1/o__r-1.traj.json", "o__r-1", Some("\nP1\n")),
            trajectory("x/runs/b/o__r-1/o__r-1.traj.json", "o__r-1", None),
        ],
        predictions: vec![
            prediction("x/other/all_preds.jsonl", "o__r-1", "else", Some("P9")),
            prediction("x/runs/a/trajs/preds.json", "o__r-1", "m", Some("P1")),
            prediction("x/runs/b/preds.json", "o__r-1", "m", Some("P2")),
        ],
        ..Dataset::default()
    };
    let issues = join(&dataset);
    let patches: Vec<_> = issues[0].attempts.iter().map(|a| (a.trajectory.is_some(), a.patch())).collect();
    assert_eq!(patches, [(false, Some("P9")), (true, Some("P1")), (true, Some("P2"))]);
    assert_eq!(issues[0].attempts[1].model_name(), Some("m"));
    assert!(issues[0].attempts.iter().all(|a| a.diagnostics.is_empty()));
}

#[test]
fn one_predictions_file_above_two_runs_is_told_apart_by_name_or_patch() {
    let runs = || {
        vec![trajectory("x/a/o__r-1.traj", "o__r-1", Some("P1")), trajectory("x/b/o__r-1.traj", "o__r-1", Some("P2"))]
    };
    let with = |model, patch| {
        let predictions = vec![prediction("x/preds.json", "o__r-1", model, Some(patch))];
        let issue = join(&Dataset { trajectories: runs(), predictions, ..Dataset::default() }).remove(0);
        issue.attempts.iter().position(|a| a.prediction.is_some())
    };
    assert_eq!(with("b", "P3"), Some(1), "by name");
    assert_eq!(with("m", "P1\n"), Some(0), "by patch");
    assert_eq!(with("m", "P3"), Some(2), "an attempt of its own");
}

#[test]
fn a_second_predictions_file_makes_no_second_attempt() {
    let predictions = vec![
        prediction("x/all_preds.jsonl", "o__r-1", "m", Some("P")),
        prediction("x/o__r-1/o__r-1.pred", "o__r-1", "m", Some("P\n")),
        prediction("x/all_preds.jsonl", "o__r-2", "m", Some("P")),
        prediction("x/preds.json", "o__r-2", "m", Some("P")),
        prediction("x/preds.json", "o__r-3", "m", Some("P")),
        prediction("x/preds2.json", "o__r-3", "m", Some("Q")),
    ];
    let trajectories = vec![trajectory("x/o__r-1/o__r-1.traj", "o__r-1", Some("Q"))];
    let issues = join(&Dataset { trajectories, predictions, ..Dataset::default() });
    let counts: Vec<usize> = issues.iter().map(|i| i.attempts.len()).collect();
    assert_eq!(counts, [1, 1, 2]);
    let codes: Vec<&str> = issues[0].attempts[0].diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["join.patch-differs", "join.duplicate-prediction"]);
    assert_eq!(issues[1].attempts[0].diagnostics[0].code, "join.duplicate-prediction");
    assert_eq!(names(&issues[2]), ["preds", "preds2"]);
}

#[test]
fn candidates_of_one_file_keep_their_names() {
    let candidate = |record, name: &str| {
        let base = prediction("k.jsonl", "o__r-1", "m", Some("P")).as_ref().clone();
        Arc::new(Prediction { record, candidate: Some(name.to_owned()), ..base })
    };
    let predictions = vec![candidate(0, "run1"), candidate(1, "run2"), candidate(2, "run3")];
    let issues = join(&Dataset { predictions, ..Dataset::default() });
    assert_eq!(names(&issues[0]), ["run1", "run2", "run3"]);
}

#[test]
fn nearer_labels_win_and_contradictions_are_kept() {
    let dataset = Dataset {
        trajectories: vec![trajectory("x/trajs/o__r-1.traj", "o__r-1", Some("P"))],
        reports: vec![
            report("x/logs/o__r-1/report.json", true, &[("o__r-1", false)]),
            report("x/results/results.json", false, &[("o__r-1", true)]),
            report("x/results_summary.json", false, &[("o__r-1", false)]),
        ],
        ..Dataset::default()
    };
    let label = join(&dataset)[0].attempts[0].label.clone();
    assert_eq!(label.outcome, Outcome::Unresolved);
    assert_eq!(label.from, Some(PathBuf::from("x/logs/o__r-1/report.json")));
    assert_eq!(label.contradicted_by, [PathBuf::from("x/results/results.json")]);
}

#[test]
fn a_label_in_the_file_beats_reports() {
    let mut own = trajectory("x/output.jsonl", "o__r-1", Some("P")).as_ref().clone();
    own.outcome = Outcome::Resolved;
    let reports = vec![report("x/report.json", false, &[("o__r-1", false)])];
    let label = join(&Dataset { trajectories: vec![Arc::new(own)], reports, ..Dataset::default() })[0].attempts[0]
        .label
        .clone();
    assert_eq!((label.outcome, label.from), (Outcome::Resolved, None));
    assert_eq!(label.contradicted_by, [PathBuf::from("x/report.json")]);
}

#[test]
fn harness_logs_find_their_run_by_model_name() {
    let with_model = |path: &str, model: &str| {
        let base = trajectory(path, "o__r-1", Some("P")).as_ref().clone();
        Arc::new(Trajectory { model: Some(model.to_owned()), ..base })
    };
    let dataset = Dataset {
        trajectories: vec![with_model("p/a/o__r-1.traj", "openai/gpt"), with_model("p/b/o__r-1.traj", "openai/o1")],
        reports: vec![
            report("p/logs/run_evaluation/r/openai__o1/o__r-1/report.json", true, &[("o__r-1", true)]),
            report("p/logs/run_evaluation/r/unknown/o__r-1/report.json", true, &[("o__r-1", false)]),
        ],
        ..Dataset::default()
    };
    let issues = join(&dataset);
    assert_eq!(outcomes(&issues[0]), [None, Some(true)]);
    assert!(issues[0].attempts[1].label.contradicted_by.is_empty());
}

#[test]
fn the_same_instance_twice_in_one_file_is_two_attempts() {
    let row = |record, error: Option<&str>, patch: Option<&str>| {
        let mut t = trajectory("x/output.jsonl", "o__r-1", patch).as_ref().clone();
        t.source.record = record;
        t.error = error.map(str::to_owned);
        Arc::new(t)
    };
    let trajectories = vec![row(0, Some("boom"), None), row(1, None, Some("P"))];
    let reports = vec![report("x/report.json", false, &[("o__r-1", true)])];
    let issues = join(&Dataset { trajectories, reports, ..Dataset::default() });
    assert_eq!(names(&issues[0]), ["#1", "#2"]);
    assert_eq!(outcomes(&issues[0]), [None, Some(true)], "the row with the patch is the one that was evaluated");
}

#[test]
fn an_evaluated_copy_is_a_label_not_an_attempt() {
    let plain = trajectory("x/output.jsonl", "o__r-1", Some("P"));
    let mut copy = plain.as_ref().clone();
    copy.source.path = "x/output.swebench_eval.jsonl".into();
    copy.outcome = Outcome::Resolved;
    let issues = join(&Dataset { trajectories: vec![plain, Arc::new(copy)], ..Dataset::default() });
    assert_eq!(issues[0].attempts.len(), 1);
    let label = &issues[0].attempts[0].label;
    assert_eq!((label.outcome, label.from.clone()), (Outcome::Resolved, Some("x/output.swebench_eval.jsonl".into())));
}

#[test]
fn trajectories_without_an_instance_are_issues_of_their_own() {
    let unnamed = |path: &str| {
        let base = trajectory(path, "", None).as_ref().clone();
        Arc::new(Trajectory { instance_id: None, ..base })
    };
    let issues = join(&Dataset { trajectories: vec![unnamed("a/x.json"), unnamed("b/x.json")], ..Dataset::default() });
    assert_eq!(issues.iter().map(Issue::name).collect::<Vec<_>>(), ["x.json", "x.json"]);
    assert!(issues.iter().all(|i| i.attempts.len() == 1 && !i.attempts[0].name.is_empty()));
}
