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

#[test]
fn one_instance_in_four_spellings_is_one_issue() {
    let hash = "04998908ba6721d64eba79ae3b65a351dcfbc5b5";
    let (pro, bare) = (format!("instance_A__B-{hash}-vnan"), format!("A__B-{hash}"));
    let dataset = Dataset {
        trajectories: vec![
            trajectory("x/o__r-1.traj", "o__r-1", Some("P")),
            trajectory(&format!("y/{bare}/t.json"), &bare, Some("P")),
            trajectory("z/scikit-learn__scikit-learn-13_x", "swe-scikit-learn__scikit-learn-1", Some("P")),
        ],
        predictions: vec![prediction("x/preds.jsonl", "O/r:pr-1", "m", Some("P"))],
        reports: vec![
            report("x/final_report.json", false, &[("O/r:pr-1", true)]),
            report("y/eval_results.json", false, &[(&pro, false)]),
            report("z/report.json", false, &[("scikit-learn__scikit-learn-13779", true)]),
        ],
        ..Dataset::default()
    };
    let issues = join(&dataset);
    let found: Vec<(String, Vec<Option<bool>>)> = issues.iter().map(|i| (i.name(), outcomes(i))).collect();
    let expected = [
        (pro, vec![Some(false)]),
        ("o__r-1".to_owned(), vec![Some(true)]),
        ("scikit-learn__scikit-learn-13779".to_owned(), vec![Some(true)]),
    ];
    assert_eq!(found, expected);
    assert!(issues[1].attempts[0].prediction.is_some());
}

#[test]
fn the_patch_beside_a_report_says_whom_it_is_about() {
    let logs = "x/logs/run_evaluation/r/m/o__r-1";
    let dataset = Dataset {
        trajectories: vec![
            trajectory("x/a/o__r-1.traj", "o__r-1", Some("P1")),
            trajectory("x/b/o__r-1.traj", "o__r-1", Some("P2")),
        ],
        predictions: vec![Arc::new(Prediction {
            path: format!("{logs}/patch.diff").into(),
            instance_id: "o__r-1".into(),
            patch: Some("P2\n".into()),
            ..Prediction::default()
        })],
        reports: vec![report(&format!("{logs}/report.json"), true, &[("o__r-1", true)])],
        ..Dataset::default()
    };
    let issues = join(&dataset);
    assert_eq!(outcomes(&issues[0]), [None, Some(true)]);
    assert_eq!(account(&dataset).iter().filter(|l| l.rule == Rule::SamePatch).count(), 2);
}

#[test]
fn the_harness_keeps_the_last_of_two_predictions() {
    let again = |record, patch| {
        let one = prediction("x/preds.jsonl", "o__r-1", "m", Some(patch)).as_ref().clone();
        Arc::new(Prediction { record, ..one })
    };
    let predictions = vec![again(0, "P1"), again(1, "P2")];
    let reports = vec![report("x/m.run.json", false, &[("o__r-1", true)])];
    let dataset = Dataset { predictions, reports, ..Dataset::default() };
    assert_eq!(outcomes(&join(&dataset)[0]), [None, Some(true)]);
    assert!(account(&dataset).iter().any(|l| l.rule == Rule::LastOfFile));
}

#[test]
fn labels_beside_candidates_stay_with_them() {
    let candidate = |record, outcome| {
        let one = prediction("k.jsonl", "o__r-1", "m", Some(&format!("P{record}"))).as_ref().clone();
        Arc::new(Prediction { record, outcome, ..one })
    };
    let predictions = vec![candidate(0, Outcome::Resolved), candidate(1, Outcome::Unresolved)];
    let issue = join(&Dataset { predictions, ..Dataset::default() }).remove(0);
    assert_eq!(outcomes(&issue), [Some(true), Some(false)]);
    assert_eq!(issue.attempts[0].label.from, Some("k.jsonl".into()));
}

#[test]
fn the_account_names_every_statement_once() {
    let dataset = Dataset {
        trajectories: vec![
            trajectory("x/runs/a/o__r-1.traj", "o__r-1", Some("P1")),
            trajectory("x/runs/b/o__r-1.traj", "o__r-1", Some("P2")),
            trajectory("x/runs/b/o__r-2.traj", "o__r-2", Some("P2")),
        ],
        predictions: vec![
            prediction("x/runs/a/preds.json", "o__r-1", "m", Some("P1")),
            prediction("x/runs/a/all_preds.jsonl", "o__r-1", "m", Some("P1")),
            prediction("elsewhere/preds.json", "o__r-2", "m", Some("P9")),
        ],
        reports: vec![
            report("x/runs/a/report.json", false, &[("o__r-1", true), ("o__r-9", true)]),
            report("x/report.json", false, &[("o__r-1", false)]),
        ],
        ..Dataset::default()
    };
    let lines = account(&dataset);
    let found: Vec<(&str, &str, &str, Rule)> = lines
        .iter()
        .map(|l| {
            let attempt = l.attempt.as_ref().map_or("-", |(_, name)| name.as_str());
            (l.what.name(), l.instance.as_deref().unwrap(), attempt, l.rule)
        })
        .collect();
    let expected = [
        ("prediction", "o__r-2", "elsewhere", Rule::Alone),
        ("report", "o__r-1", "-", Rule::Several),
        ("prediction", "o__r-1", "a", Rule::SameRun),
        ("report", "o__r-1", "a", Rule::SameRun),
        ("report", "o__r-9", "-", Rule::NoAttempt),
    ];
    let mut sure: Vec<_> = found.iter().copied().filter(|l| l.3 != Rule::Again && l.3 != Rule::NoReport).collect();
    sure.sort_by_key(|l| (l.0, l.1, l.3));
    let mut expected = expected.to_vec();
    expected.sort_by_key(|l| (l.0, l.1, l.3));
    assert_eq!(
        sure.iter().map(|l| (l.0, l.1, l.3)).collect::<Vec<_>>(),
        expected.iter().map(|l| (l.0, l.1, l.3)).collect::<Vec<_>>()
    );
    assert_eq!(lines.iter().filter(|l| l.rule == Rule::Again).count(), 1);
    assert_eq!(lines.iter().filter(|l| l.rule == Rule::NoReport).count(), 2);
    let text: Vec<String> =
        summary(&lines).into_iter().map(|(path, text)| format!("{} {text}", path.display())).collect();
    assert!(
        text.iter().any(|t| t.starts_with("x/runs/a/report.json report: 1 joined (lies in the folder")),
        "{text:#?}"
    );
}

#[test]
fn a_log_counts_only_where_no_report_speaks() {
    let log = |outcome| {
        let base = report("x/logs/o__r-1/run_instance.log", true, &[("o__r-1", outcome)]).as_ref().clone();
        Arc::new(RunReport { from_log: true, ..base })
    };
    let pending = RunReport {
        path: "x/results/results.json".into(),
        reasons: [("o__r-1".to_owned(), "not submitted".to_owned())].into(),
        ..RunReport::default()
    };
    let label = |reports| {
        let trajectories = vec![trajectory("x/trajs/o__r-1.traj", "o__r-1", Some("P"))];
        join(&Dataset { trajectories, reports, ..Dataset::default() })[0].attempts[0].label.clone()
    };
    assert_eq!(label(vec![log(true)]).outcome, Outcome::Resolved);
    let both = label(vec![log(true), report("x/results.json", false, &[("o__r-1", false)])]);
    assert_eq!((both.outcome, both.contradicted_by.len()), (Outcome::Unresolved, 1));
    let silent = label(vec![log(false), Arc::new(pending)]);
    assert_eq!((silent.outcome, silent.reason.as_deref()), (Outcome::Unknown, Some("not submitted")));
    assert_eq!(silent.contradicted_by.len(), 1);
}

#[test]
fn records_of_one_session_are_one_attempt_at_the_instance_one_of_them_names() {
    let record = |path: &str, format, session: &str, instance: Option<&str>| {
        Arc::new(Trajectory {
            source: Source { path: path.into(), ..Source::default() },
            format,
            session: Some(session.to_owned()),
            instance_id: instance.map(str::to_owned),
            steps: vec![Step::new(Role::Assistant, path)],
            ..Trajectory::default()
        })
    };
    let helper = Trajectory { session: None, parent: Some("s-0000001".into()), ..Trajectory::default() };
    let dataset = Dataset {
        trajectories: vec![
            record("run/llm_completions/o__r-1", "llm-completions", "s-0000001", Some("o__r-1")),
            record("sessions/s-0000001", "openhands-0-session", "s0000001", None),
            record("sessions/s-0000002", "openhands-0-session", "s-0000002", None),
            Arc::new(helper),
        ],
        ..Dataset::default()
    };
    let issues = join(&dataset);
    assert_eq!(issues.len(), 3, "the instance, the session nobody names, the helper");
    assert_eq!(issues.iter().filter(|i| i.name().ends_with(" (sub-agent)")).count(), 1);
    let named = issues.iter().find(|i| i.name() == "o__r-1").unwrap();
    assert_eq!(named.attempts.len(), 1);
    assert_eq!(named.attempts[0].diagnostics[0].code, "join.copy");
    // Two instances of one session: nobody knows.
    let torn = Dataset {
        trajectories: vec![
            record("a", "llm-completions", "s-0000001", Some("o__r-1")),
            record("b", "llm-completions", "s-0000001", Some("o__r-2")),
            record("c", "openhands-0-session", "s-0000001", None),
        ],
        ..Dataset::default()
    };
    assert_eq!(join(&torn).len(), 3);
}
