//! Odd sizes and odd texts: nothing panics, nothing leaves its place.

use std::sync::Arc;

use trajscope::app::{Keymap, Msg, State, ThemeName, update};
use trajscope::trajectory::{Dataset, Role, Step, Trajectory};

use super::fixture::{FIX, critic, half_scored, run, scored};
use super::shot::{press, render, text};

const WAYS: [&str; 14] = [
    "",
    "z",
    "/ x",
    "?",
    "F",
    "j enter",
    "j enter o",
    "j enter i tab",
    "j enter p z",
    "j enter R",
    "j c",
    "j r",
    "j r x",
    "j e",
];

#[test]
fn every_screen_can_be_drawn_at_every_tiny_size() {
    let small = (0..=6).flat_map(|w| (0..=6).map(move |h| (w, h)));
    let long = [(2, 60), (300, 1), (300, 2), (1, 100), (3, 24), (80, 3)];
    for size in small.chain(long) {
        for keys in WAYS {
            for mut state in [scored(ThemeName::Dark, size), half_scored(ThemeName::Light, size)] {
                press(&mut state, keys);
                let buffer = render(&state, size);
                assert_eq!((buffer.area.width, buffer.area.height), size);
            }
        }
    }
}

#[test]
fn a_screen_that_is_behind_a_resize_is_still_drawn() {
    let mut state = scored(ThemeName::Dark, (200, 60));
    press(&mut state, "j enter o tab G");
    render(&state, (31, 7));
    render(&state, (0, 0));
}

/// A run in which every text is hostile.
fn hostile() -> State {
    let bad = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\u{202e}evil\u{0}\t|\r|[/dim] 日本\u{200d}語 é\u{301}\u{301}";
    let mut trajectory: Trajectory = run(bad, &format!("org__{bad}"), Some(&FIX.replace("jar.py", bad)), 3);
    trajectory.agent = Some(bad.to_owned());
    trajectory.model = Some(bad.to_owned());
    trajectory.exit_status = Some(bad.to_owned());
    trajectory.error = Some(bad.to_owned());
    for step in &mut trajectory.steps {
        step.text = bad.to_owned();
        step.tool_name = Some(bad.to_owned());
        for call in &mut step.calls {
            call.name = bad.to_owned();
            call.arguments = format!("{{\"{}\": not json {bad}", "x".repeat(300));
        }
    }
    trajectory.steps.push(Step::new(Role::Assistant, ""));
    let mut state = State::new(Keymap::builtin().unwrap(), ThemeName::Dark, false);
    update(&mut state, Msg::Resize(100, 30));
    let dataset = Dataset { trajectories: vec![Arc::new(trajectory)], ..Dataset::default() };
    update(&mut state, Msg::Loaded(Box::new(dataset)));
    update(&mut state, Msg::CriticReady(Box::new(critic())));
    state
}

#[test]
fn no_control_character_reaches_a_cell() {
    for keys in ["z", "enter", "enter o", "enter p", "enter R", "enter i", "c", "r", "F"] {
        let mut state = hostile();
        press(&mut state, keys);
        let buffer = render(&state, (100, 30));
        for cell in buffer.content() {
            let symbol = cell.symbol();
            let bad = symbol.chars().any(|c| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
            assert!(!bad, "{symbol:?} on the screen after {keys:?}");
        }
    }
}

#[test]
fn what_a_text_says_in_brackets_stays_as_it_is() {
    let mut state = hostile();
    press(&mut state, "enter o");
    let shown = text(&render(&state, (100, 30)));
    assert!(shown.contains("[/dim] 日本"), "{shown}");
}

#[test]
fn a_blank_turn_says_so() {
    let mut state = hostile();
    press(&mut state, "enter G");
    let shown = text(&render(&state, (120, 30)));
    assert!(shown.contains("the turn is blank"), "{shown}");
    assert!(shown.contains("no action"), "{shown}");
}

#[test]
fn a_run_without_actions_has_nothing_to_score_and_says_so() {
    let trajectory = Trajectory { steps: vec![Step::new(Role::User, "hello")], ..run("a", "i", None, 0) };
    let mut state = State::new(Keymap::builtin().unwrap(), ThemeName::Dark, false);
    update(&mut state, Msg::Resize(100, 30));
    let dataset = Dataset { trajectories: vec![Arc::new(trajectory)], ..Dataset::default() };
    update(&mut state, Msg::Loaded(Box::new(dataset)));
    let effects = update(&mut state, Msg::CriticReady(Box::new(critic())));
    assert!(effects.is_empty(), "{effects:?}");
    press(&mut state, "enter");
    let shown = text(&render(&state, (100, 30)));
    assert!(shown.contains("nothing to score"), "{shown}");
    press(&mut state, "n N d e l h G i o p");
    render(&state, (100, 30));
}
