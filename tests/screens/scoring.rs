//! Answers of the critic: filled in as they come, refused when they are late.

use trajscope::app::scores::Status;
use trajscope::app::{CriticState, Effect, Msg, Priority, State, ThemeName, update};
use trajscope::critic::{CriticInput, ScoreError, Scores};
use trajscope::trajectory::TrajectoryKey;

use super::fixture::{answer_to, critic, half_scored, loaded, score, scored};
use super::shot::{press, render, text};

const SIZE: (u16, u16) = (120, 40);

fn request(effects: &[Effect], name: &str) -> (TrajectoryKey, u64) {
    let found = effects.iter().find_map(|e| match e {
        Effect::Score { key, generation, trajectory, .. } if trajectory.attempt.as_deref() == Some(name) => {
            Some((key.clone(), *generation))
        }
        _ => None,
    });
    found.unwrap()
}

fn open_jar(state: &mut State) -> Vec<Effect> {
    press(state, "j enter")
}

#[test]
fn every_run_with_actions_is_asked_for_in_the_background() {
    let (state, effects) = loaded(ThemeName::Dark, SIZE);
    assert_eq!(effects.len(), 5);
    for effect in &effects {
        let Effect::Score { generation, priority, trajectory, .. } = effect else { panic!("{effect:?}") };
        assert_eq!((*generation, *priority), (state.generation, Priority::Background));
        assert!(trajectory.n_actions() > 0);
    }
}

#[test]
fn what_is_opened_is_asked_for_first_then_its_siblings() {
    let (mut state, _) = loaded(ThemeName::Dark, SIZE);
    let effects = open_jar(&mut state);
    let priorities: Vec<Priority> = effects
        .iter()
        .filter_map(|e| match e {
            Effect::Score { priority, .. } => Some(*priority),
            _ => None,
        })
        .collect();
    assert_eq!(priorities, [Priority::Selected, Priority::Visible, Priority::Visible, Priority::Visible]);
}

#[test]
fn what_is_done_is_not_asked_for_again() {
    let mut state = scored(ThemeName::Dark, SIZE);
    let effects = open_jar(&mut state);
    assert!(!effects.iter().any(|e| matches!(e, Effect::Score { .. })), "{effects:?}");
}

#[test]
fn rewards_fill_in_while_one_reads_and_the_rest_is_a_dash() {
    let mut state = half_scored(ThemeName::Dark, SIZE);
    open_jar(&mut state);
    let shown = text(&render(&state, SIZE));
    assert!(shown.contains("scoring, 5 of 8"), "{shown}");
    let row = |n: &str| shown.lines().find(|l| l.starts_with(n)).unwrap().to_owned();
    assert!(row("  5 ").contains("0.38") && row("  5 ").contains("−.28▼"), "{shown}");
    assert!(row("  6 ").contains(" - "), "{shown}");
    assert!(shown.contains("scored 0/5"), "{shown}");
}

#[test]
fn an_answer_to_an_older_critic_is_ignored() {
    let (mut state, effects) = loaded(ThemeName::Dark, SIZE);
    let (key, old) = request(&effects, "run-3");
    let again = update(&mut state, Msg::CriticReady(Box::new(critic())));
    assert_eq!(again.len(), 5);
    let before = state.scores.clone();
    let stale = [
        Msg::Partial { key: key.clone(), generation: old, score: score(0, Some(0.9)) },
        Msg::Done { key: key.clone(), generation: old, scores: Box::new(Scores::default()) },
        Msg::Failed { key: key.clone(), generation: old, error: ScoreError::Engine("late".to_owned()) },
        Msg::Inspected { key: key.clone(), generation: old, input: Ok(Box::new(CriticInput::default())) },
    ];
    for msg in stale {
        assert!(update(&mut state, msg.clone()).is_empty());
        assert_eq!(state.scores, before, "{msg:?}");
    }
    assert_eq!(state.timeline.input, None);
    let (key, new) = request(&again, "run-3");
    update(&mut state, Msg::Partial { key, generation: new, score: score(0, Some(0.9)) });
    assert_ne!(state.scores, before);
}

#[test]
fn a_run_that_cannot_be_scored_says_why_and_the_others_go_on() {
    let (mut state, effects) = loaded(ThemeName::Dark, SIZE);
    let (key, generation) = request(&effects, "run-2");
    let error = ScoreError::Engine("out of memory\nat layer 3".to_owned());
    update(&mut state, Msg::Failed { key: key.clone(), generation, error });
    assert_eq!(state.scores.get(&key).unwrap().status, Status::Failed("out of memory at layer 3".to_owned()));
    press(&mut state, "j space j j enter");
    let shown = text(&render(&state, SIZE));
    assert!(shown.contains("not scored: out of memory at layer 3"), "{shown}");
    assert!(shown.contains("1 failed"), "{shown}");
    for msg in effects.iter().filter_map(answer_to) {
        update(&mut state, msg);
    }
    assert_eq!(state.scores.progress(), (5, 5));
}

#[test]
fn the_critics_input_is_asked_for_once_and_shown_with_the_place_of_the_value() {
    let mut state = scored(ThemeName::Dark, SIZE);
    open_jar(&mut state);
    press(&mut state, "l l");
    let effects = update(&mut state, Msg::Key("i".parse().unwrap()));
    let Some(Effect::Inspect { key, generation, trajectory }) = effects.first() else { panic!("{effects:?}") };
    assert!(text(&render(&state, SIZE)).contains("asked the critic what it reads"));
    assert!(press(&mut state, "l h").is_empty(), "asked twice");
    let input = Ok(Box::new(super::fixture::input(trajectory)));
    update(&mut state, Msg::Inspected { key: key.clone(), generation: *generation, input });
    let shown = text(&render(&state, SIZE));
    assert!(shown.contains("◀◀ value of action 3 read at token 247: 0.7100"), "{shown}");
    press(&mut state, "l");
    let shown = text(&render(&state, SIZE));
    assert!(shown.contains("◀◀ value of action 4"), "{shown}");
}

#[test]
fn the_critics_input_shows_control_characters_instead_of_obeying_them() {
    let mut state = scored(ThemeName::Dark, SIZE);
    open_jar(&mut state);
    press(&mut state, "l l l i");
    let shown = text(&render(&state, SIZE));
    assert!(shown.contains("␛[31mFAILED␛[0m"), "{shown}");
}

#[test]
fn an_input_of_another_run_or_an_error_is_told_apart() {
    let mut state = scored(ThemeName::Dark, SIZE);
    open_jar(&mut state);
    let effects = update(&mut state, Msg::Key("i".parse().unwrap()));
    let Some(Effect::Inspect { key, generation, .. }) = effects.first() else { panic!("{effects:?}") };
    let other = TrajectoryKey { record: 77, ..key.clone() };
    let generation = *generation;
    update(&mut state, Msg::Inspected { key: other, generation, input: Ok(Box::default()) });
    assert!(text(&render(&state, SIZE)).contains("asked the critic what it reads"));
    let error = Err(ScoreError::Engine("tokenizer.json does not fit".to_owned()));
    update(&mut state, Msg::Inspected { key: key.clone(), generation, input: error });
    assert!(text(&render(&state, SIZE)).contains("tokenizer.json does not fit"));
}

#[test]
fn who_scores_and_with_whose_words_stands_in_the_status_line() {
    let (mut state, _) = loaded(ThemeName::Dark, SIZE);
    let wide = text(&render(&state, (160, 30)));
    assert!(wide.contains("small embedded critic: a hint, not a verdict"), "{wide}");
    assert!(wide.contains("own wording of the tool text"), "{wide}");
    let narrow = text(&render(&state, (60, 24)));
    assert!(narrow.contains("test-critic [small, own wording]"), "{narrow}");
    let mut info = critic();
    info.path = Some("models/critic-32b".into());
    info.wording = trajscope::critic::Wording::Authors;
    update(&mut state, Msg::CriticReady(Box::new(info)));
    let shown = text(&render(&state, (160, 30)));
    assert!(!shown.contains("small") && !shown.contains("own wording"), "{shown}");
    assert!(matches!(state.critic, CriticState::Ready(_)));
}

#[test]
fn the_state_is_busy_until_everything_is_answered() {
    let (mut state, effects) = loaded(ThemeName::Dark, SIZE);
    assert!(state.busy());
    for msg in effects.iter().filter_map(answer_to) {
        update(&mut state, msg);
    }
    assert!(!state.busy(), "nothing will change the screen by itself any more");
}
