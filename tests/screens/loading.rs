//! Files coming in: joined at growing steps, places kept, strange files named.

use std::path::PathBuf;
use std::sync::Arc;

use trajscope::app::data::AttemptId;
use trajscope::app::{CriticState, Effect, Keymap, Msg, State, ThemeName, update};
use trajscope::trajectory::{Dataset, FileReport, Prediction};

use super::fixture::{FIX, answer_to, critic, dataset, loaded, run};
use super::shot::{press, render, text};

#[expect(clippy::unnecessary_box_returns, reason = "messages carry boxes")]
fn file(name: &str, instance: &str) -> Box<Dataset> {
    let trajectory = run(name, instance, Some(FIX), 8);
    let report = FileReport {
        path: trajectory.source.path.clone(),
        format: Some("sweagent-1"),
        reason: String::new(),
        foreign: false,
        trajectories: 1,
        diagnostics: Vec::new(),
    };
    Box::new(Dataset { trajectories: vec![Arc::new(trajectory)], files: vec![report], ..Dataset::default() })
}

fn empty() -> State {
    let mut state = State::new(Keymap::builtin().unwrap(), ThemeName::Dark, false);
    update(&mut state, Msg::Resize(80, 24));
    state
}

#[test]
fn files_are_joined_when_their_number_has_doubled() {
    let mut state = empty();
    let mut joins = Vec::new();
    for n in 0..20 {
        let before = state.data.issues.len();
        update(&mut state, Msg::FileLoaded(file("run", &format!("issue-{n:02}"))));
        if state.data.issues.len() != before {
            joins.push(n + 1);
        }
    }
    assert_eq!(joins, [1, 2, 4, 8, 16]);
    assert!(state.busy());
    let all = state.data.dataset.clone();
    update(&mut state, Msg::Loaded(Box::new(all)));
    assert_eq!(state.data.issues.len(), 20);
    assert!(!state.data.loading);
}

#[test]
fn what_is_selected_stays_selected_when_more_comes_in() {
    let mut state = empty();
    update(&mut state, Msg::CriticReady(Box::new(critic())));
    update(&mut state, Msg::FileLoaded(file("run-2", "m")));
    press(&mut state, "j enter l l o");
    let key = trajscope::app::timeline::entry(&state).unwrap().id.clone();
    // Sorts before it, as an issue and as an attempt.
    let effects = update(&mut state, Msg::FileLoaded(file("run-1", "a")));
    assert!(effects.iter().any(|e| matches!(e, Effect::Score { .. })), "{effects:?}");
    let mut all = state.data.dataset.clone();
    all.trajectories.insert(0, Arc::new(run("run-1", "m", Some(FIX), 4)));
    update(&mut state, Msg::Loaded(Box::new(all)));
    let t = &state.timeline;
    assert_eq!((t.issue, t.attempt, t.action), (1, 1, 2));
    assert_eq!(trajscope::app::timeline::entry(&state).unwrap().id, key);
    assert_eq!(state.board.row().unwrap().issue(), 1);
}

#[test]
fn the_first_row_stays_selected_until_somebody_moves() {
    let mut state = empty();
    for instance in ["m", "a", "b", "c"] {
        update(&mut state, Msg::FileLoaded(file("run-1", instance)));
    }
    assert_eq!(state.data.issues.len(), 4);
    assert_eq!(state.board.selected, 0);
}

#[test]
fn scores_are_asked_for_once_and_only_with_a_critic() {
    let mut state = empty();
    assert!(update(&mut state, Msg::FileLoaded(file("run-1", "a"))).is_empty());
    let asked = update(&mut state, Msg::CriticReady(Box::new(critic())));
    assert_eq!(asked.len(), 1);
    let all = state.data.dataset.clone();
    assert!(update(&mut state, Msg::Loaded(Box::new(all))).is_empty());
    assert!(matches!(&asked[0], Effect::Score { generation, .. } if *generation == state.generation));
}

#[test]
fn facts_are_kept_over_a_join_unless_another_patch_comes() {
    let mut state = empty();
    update(&mut state, Msg::FileLoaded(file("run-1", "a")));
    let before = Arc::clone(&state.data.issues[0].attempts[0].facts);
    update(&mut state, Msg::FileLoaded(file("run-1", "b")));
    assert!(Arc::ptr_eq(&before, &state.data.issues[0].attempts[0].facts));
}

#[test]
fn a_prediction_alone_is_a_candidate_without_a_timeline() {
    let mut state = empty();
    let prediction = Prediction {
        path: PathBuf::from("preds.json"),
        record: 3,
        instance_id: "a".to_owned(),
        model: Some("larch-2".to_owned()),
        patch: Some(FIX.to_owned()),
        ..Prediction::default()
    };
    let dataset = Dataset { predictions: vec![Arc::new(prediction)], ..Dataset::default() };
    update(&mut state, Msg::Loaded(Box::new(dataset)));
    assert_eq!(state.data.issues[0].attempts[0].id, AttemptId::Prediction(PathBuf::from("preds.json"), 3));
    press(&mut state, "enter");
    let shown = text(&render(&state, (80, 24)));
    assert!(shown.contains("a prediction without a trajectory"), "{shown}");
    press(&mut state, "p");
    let shown = text(&render(&state, (80, 24)));
    assert!(shown.contains("self.lid = None"), "{shown}");
}

#[test]
fn files_not_understood_are_counted_in_a_message_and_listed_with_the_reason() {
    let mut state = empty();
    update(&mut state, Msg::Loaded(Box::new(dataset())));
    let said = state.message.clone().unwrap();
    assert!(said.text.contains("6 files read, 1 not understood") && said.text.contains('F'), "{}", said.text);
    press(&mut state, "F");
    let shown = text(&render(&state, (100, 30)));
    let first_file = shown.lines().find(|l| l.contains("runs/")).unwrap();
    assert!(first_file.contains("notes.html") && first_file.contains("HTML page"), "{shown}");
    let flat = shown.replace(['│', '\n'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("give the trajectory files"), "no reason is cut off:\n{shown}");
    assert!(flat.contains("skipped (line 7)"), "{shown}");
}

#[test]
fn why_there_is_no_critic_is_not_covered_by_the_count_of_files() {
    let mut state = empty();
    update(&mut state, Msg::CriticFailed("models/x: no such folder".to_owned()));
    update(&mut state, Msg::Loaded(Box::new(dataset())));
    let shown = text(&render(&state, (120, 24)));
    assert!(shown.contains("models/x: no such folder"), "{shown}");
    assert!(shown.contains("1 file not understood"), "{shown}");
}

#[test]
fn no_files_at_all_is_said() {
    let mut state = empty();
    update(&mut state, Msg::Loaded(Box::default()));
    assert!(state.message.clone().unwrap().error);
    state.message = None;
    let shown = text(&render(&state, (80, 24)));
    assert!(shown.contains("no trajectory and no prediction was found"), "{shown}");
}

#[test]
fn a_critic_that_cannot_be_opened_leaves_everything_else_usable() {
    let mut state = empty();
    update(&mut state, Msg::Loaded(Box::new(dataset())));
    let why = "models/x: tensor score.weight is missing; give a token-classification checkpoint";
    assert!(update(&mut state, Msg::CriticFailed(why.to_owned())).is_empty());
    assert_eq!(state.critic, CriticState::Failed(why.to_owned()));
    press(&mut state, "j enter");
    let shown = text(&render(&state, (120, 24)));
    assert!(shown.contains("not scored: the critic could not be opened"), "{shown}");
    assert!(shown.contains("score.weight is missing"), "{shown}");
    press(&mut state, "i");
    let shown = text(&render(&state, (120, 24)));
    assert!(shown.contains("no critic is open"), "{shown}");
}

#[test]
fn unknown_costs_are_never_zero() {
    let (state, _) = loaded(ThemeName::Dark, (100, 24));
    let entry = &state.data.issues[1];
    assert_eq!(entry.cost().1, 1);
    let mut state = state;
    press(&mut state, "z");
    let shown = text(&render(&state, (100, 24)));
    assert!(shown.contains("≥$1.26"), "{shown}");
    assert!(shown.lines().find(|l| l.contains("run-3")).unwrap().contains("unknown"), "{shown}");
}

#[test]
fn a_filter_narrows_the_board_while_it_is_typed() {
    let (mut state, _) = loaded(ThemeName::Dark, (80, 24));
    press(&mut state, "/ j a r");
    assert_eq!(state.board.issues().len(), 1);
    press(&mut state, "x");
    assert_eq!(state.board.issues().len(), 0);
    assert!(text(&render(&state, (80, 24))).contains("no issue contains"));
    press(&mut state, "backspace enter");
    assert_eq!(state.board.issues().len(), 1);
    press(&mut state, "esc");
    assert_eq!(state.board.issues().len(), 2);
    press(&mut state, "/ l o o p space r e s o l v e d enter");
    assert_eq!(state.board.issues().len(), 1, "words match badges and outcomes too");
}

#[test]
fn unknown_stands_last_whichever_way_numbers_are_sorted() {
    let (mut state, effects) = loaded(ThemeName::Dark, (80, 24));
    // Only the jar's runs are scored; the shelf's best score stays unknown.
    for msg in
        effects.iter().filter(|e| matches!(e, Effect::Score { key, .. } if key.path.ends_with("pantry__jar-17.traj")))
    {
        update(&mut state, answer_to(msg).unwrap());
    }
    let first = |state: &State| state.data.issues[state.board.issues()[0]].name.clone();
    press(&mut state, "s s s");
    assert_eq!(state.board.sort, trajscope::app::board::SortKey::Best);
    assert_eq!(first(&state), "pantry__jar-17");
    press(&mut state, "S");
    assert_eq!(first(&state), "pantry__jar-17");
}

#[test]
fn issues_without_a_run_are_hidden_until_asked_for() {
    let mut state = empty();
    let mut all = file("run-1", "a");
    let prediction = |id: &str| Arc::new(Prediction { instance_id: id.into(), ..Prediction::default() });
    all.predictions.extend([prediction("b"), prediction("c")]);
    update(&mut state, Msg::Loaded(all));
    assert_eq!((state.data.issues.len(), state.board.rows.len()), (3, 1));
    assert!(text(&render(&state, (80, 24))).contains("2 issues have candidate patches but no run (a shows them)"));
    press(&mut state, "a");
    assert_eq!(state.board.rows.len(), 3);
    press(&mut state, "a");
    assert_eq!(state.board.rows.len(), 1);
    // Where nothing has a run there is nothing to hide.
    let mut only = empty();
    let predictions = vec![prediction("b"), prediction("c")];
    update(&mut only, Msg::Loaded(Box::new(Dataset { predictions, ..Dataset::default() })));
    assert_eq!(only.board.rows.len(), 2);
}
