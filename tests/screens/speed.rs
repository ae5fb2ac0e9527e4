//! Drawing costs what is on the screen, not what is loaded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trajscope::app::{Effect, Keymap, Msg, State, ThemeName, update};
use trajscope::critic::Scores;
use trajscope::trajectory::{Dataset, Role, Step, Trajectory};

use super::fixture::{critic, run, score};
use super::shot::{press, render};

const SIZE: (u16, u16) = (200, 60);

/// Five hundred actions, each followed by an observation; the last ones are 600 KB: many lines, and one single line.
fn large() -> Trajectory {
    let mut steps = vec![Step::new(Role::User, "task")];
    for i in 0..500 {
        steps.push(Step::new(Role::Assistant, format!("step {i}\n```\ncat file_{i}.py\n```")));
        let text = match i {
            498 => "line of output with \u{1b}[31mcolour\u{1b}[0m and 日本\n".repeat(12_000),
            499 => "x".repeat(600_000),
            _ => "ok\n".repeat(40),
        };
        steps.push(Step::new(Role::Tool, text));
    }
    Trajectory { steps, ..run("large", "org__large-1", None, 0) }
}

fn loaded() -> State {
    let mut state = State::new(Keymap::builtin().unwrap(), ThemeName::Dark, false);
    update(&mut state, Msg::Resize(SIZE.0, SIZE.1));
    let dataset = Dataset { trajectories: vec![Arc::new(large())], ..Dataset::default() };
    update(&mut state, Msg::Loaded(Box::new(dataset)));
    for effect in update(&mut state, Msg::CriticReady(Box::new(critic()))) {
        let Effect::Score { key, generation, .. } = effect else { continue };
        let actions = (0..500).map(|a| score(a, Some(0.5 + 0.4 * (a as f64 / 9.0).sin()))).collect();
        let scores = Box::new(Scores { actions, score: Some(0.5), ..Scores::default() });
        update(&mut state, Msg::Done { key, generation, scores });
    }
    state
}

/// The slowest of many draws, with a step between them.
fn slowest(state: &mut State, key: &str) -> Duration {
    let mut worst = Duration::ZERO;
    for _ in 0..30 {
        press(state, key);
        let start = Instant::now();
        render(state, SIZE);
        worst = worst.max(start.elapsed());
    }
    worst
}

/// Far above what a frame may cost in a release build (8 ms; see benches/), far below what it costs to lay all out.
const LIMIT: Duration = Duration::from_millis(80);

#[test]
fn a_frame_of_a_long_run_with_huge_observations_is_drawn_in_time() {
    let mut state = loaded();
    press(&mut state, "enter G o tab");
    for (place, keys, step) in [
        ("one line of 600 KB, from its top", "g", "j"),
        ("one line of 600 KB, from its end", "G", "k"),
        ("12,000 coloured lines", "h G", "pageup"),
        ("the list", "tab g", "j"),
    ] {
        press(&mut state, keys);
        let worst = slowest(&mut state, step);
        println!("{place}: slowest of 30 draws {worst:?}");
        assert!(worst < LIMIT, "{place}: {worst:?}");
    }
}

#[test]
fn a_key_in_a_huge_observation_is_handled_in_time() {
    let mut state = loaded();
    press(&mut state, "enter G o tab");
    for keys in ["G", "g", "pagedown", "j", "h", "l", "G"] {
        let start = Instant::now();
        press(&mut state, keys);
        let took = start.elapsed();
        println!("{keys}: {took:?}");
        assert!(took < 4 * LIMIT, "{keys}: {took:?}");
    }
}
