//! The ways through a trajectory.

use trajscope::app::detail::Tab;
use trajscope::app::highlight::{HighlightedRow, SynClass};
use trajscope::app::timeline::Focus;
use trajscope::app::{Effect, Msg, State, ThemeName, update};

use super::fixture::{half_scored, loaded, scored};
use super::shot::{press, render, text};

const SIZE: (u16, u16) = (120, 40);

/// The best attempt at the jar: run-3, with drops at actions 5 and 7 (counted from 1).
fn jar() -> State {
    let mut state = scored(ThemeName::Dark, SIZE);
    press(&mut state, "j enter");
    state
}

#[test]
fn enter_opens_the_attempt_with_the_best_score() {
    let state = jar();
    assert_eq!((state.timeline.issue, state.timeline.attempt), (1, 2));
}

#[test]
fn drops_are_gone_through_in_their_order_and_the_ends_are_said() {
    let mut state = jar();
    let mut at = Vec::new();
    for key in ["n", "n", "n", "N", "N"] {
        press(&mut state, key);
        at.push(state.timeline.action + 1);
    }
    assert_eq!(at, [5, 7, 7, 5, 5]);
    assert!(state.message.clone().unwrap().text.contains("no drop before this action (2 in the run)"));
    press(&mut state, "G d");
    assert_eq!(state.timeline.action + 1, 5);
}

#[test]
fn without_rewards_there_is_no_drop_and_that_is_said() {
    let (mut state, _) = loaded(ThemeName::Dark, SIZE);
    press(&mut state, "j enter n");
    assert!(state.message.clone().unwrap().text.contains("no reward is known yet"));
}

#[test]
fn a_drop_can_be_gone_to_as_soon_as_its_reward_is_there() {
    let mut state = half_scored(ThemeName::Dark, SIZE);
    press(&mut state, "j enter n");
    assert_eq!(state.timeline.action + 1, 5);
    press(&mut state, "n");
    assert_eq!(state.timeline.action + 1, 5);
}

#[test]
fn errors_are_gone_through_too() {
    let mut state = jar();
    let mut at = Vec::new();
    for key in ["e", "e", "e", "E"] {
        press(&mut state, key);
        at.push(state.timeline.action + 1);
    }
    assert_eq!(at, [3, 5, 6, 5]);
}

#[test]
fn steps_and_runs_are_walked_as_in_other_inspectors() {
    let mut state = jar();
    press(&mut state, "l l l h");
    assert_eq!(state.timeline.action, 2);
    press(&mut state, "L");
    assert_eq!((state.timeline.attempt, state.timeline.action), (3, 0));
    press(&mut state, "L");
    assert!(state.message.clone().unwrap().text.contains("last attempt"));
    press(&mut state, "H");
    assert_eq!((state.timeline.attempt, state.timeline.action), (2, 2), "the place in each run is remembered");
    press(&mut state, "G l l l");
    assert_eq!(state.timeline.action, 7);
    press(&mut state, "g h");
    assert_eq!(state.timeline.action, 0);
}

#[test]
fn scroll_starts_at_the_top_of_every_new_text() {
    let mut state = jar();
    update(&mut state, Msg::Resize(80, 20));
    press(&mut state, "R tab j j j");
    assert_ne!(state.timeline.scroll, Default::default());
    press(&mut state, "o");
    assert_eq!(state.timeline.scroll, Default::default());
    press(&mut state, "R tab L");
    assert_eq!(state.timeline.scroll, Default::default());
}

#[test]
fn tab_moves_the_focus_and_j_then_scrolls() {
    let mut state = jar();
    press(&mut state, "R");
    assert_eq!(state.timeline.focus, Focus::List);
    press(&mut state, "j");
    assert_eq!(state.timeline.action, 1);
    update(&mut state, Msg::Resize(120, 24));
    press(&mut state, "tab j j");
    assert_eq!(state.timeline.action, 1);
    assert_eq!(state.timeline.scroll.line, 2);
    press(&mut state, "G");
    let end = state.timeline.scroll;
    press(&mut state, "j pagedown");
    assert_eq!(state.timeline.scroll, end, "the last row stays at the bottom");
    press(&mut state, "g");
    assert_eq!(state.timeline.scroll, Default::default());
}

#[test]
fn every_tab_shows_its_own_text() {
    let mut state = jar();
    press(&mut state, "l l");
    for (key, tab, word) in [
        ("a", Tab::Action, "python -m pytest -q"),
        ("o", Tab::Observation, "exit code 1"),
        ("p", Tab::Patch, "class Lid:"),
        ("i", Tab::Input, "◀◀ value of action 3"),
        ("R", Tab::Run, "outcome: unresolved"),
        ("J", Tab::Raw, "reading the records from the file"),
    ] {
        press(&mut state, key);
        assert_eq!(state.timeline.tab, tab);
        let shown = text(&render(&state, SIZE));
        assert!(shown.contains(word), "{word:?} not on the tab {tab:?}:\n{shown}");
    }
    press(&mut state, "]");
    assert_eq!(state.timeline.tab, Tab::Action);
    press(&mut state, "[");
    assert_eq!(state.timeline.tab, Tab::Raw);
}

#[test]
fn a_narrow_screen_shows_the_detail_when_it_is_asked_for() {
    let mut state = jar();
    update(&mut state, Msg::Resize(40, 10));
    press(&mut state, "l l o");
    let shown = text(&render(&state, (40, 10)));
    assert!(shown.contains("exit code 1"), "{shown}");
    press(&mut state, "tab");
    let shown = text(&render(&state, (40, 10)));
    assert!(shown.contains("bash"), "{shown}");
}

#[test]
fn zoom_gives_the_text_the_whole_screen_and_esc_takes_it_back() {
    let mut state = jar();
    press(&mut state, "z");
    assert!(state.timeline.zoomed);
    assert_eq!(state.timeline.focus, Focus::Detail);
    press(&mut state, "esc");
    assert!(!state.timeline.zoomed);
    assert_eq!(state.view, trajscope::app::View::Timeline);
}

#[test]
fn a_patch_gets_its_syntax_colours_when_they_come() {
    let mut state = scored(ThemeName::Dark, SIZE);
    let effects = press(&mut state, "j enter p");
    let request = effects.iter().find_map(|e| match e {
        Effect::Highlight(requests) => requests.first().cloned(),
        _ => None,
    });
    let request = request.unwrap();
    let line = request.hunks[0].lines[0].clone();
    assert_eq!(line.text, "class Lid:");
    let before = super::shot::styles(&render(&state, SIZE));
    update(&mut state, Msg::Highlighted { id: "another".to_owned(), rows: Vec::new() });
    assert_eq!(super::shot::styles(&render(&state, SIZE)), before);
    let rows = vec![HighlightedRow { row: line.row, spans: vec![(0..5, SynClass::Keyword)] }];
    update(&mut state, Msg::Highlighted { id: request.id, rows });
    assert_ne!(super::shot::styles(&render(&state, SIZE)), before);
    let again = press(&mut state, "esc enter p");
    assert!(!again.iter().any(|e| matches!(e, Effect::Highlight(_))), "asked for twice");
}
