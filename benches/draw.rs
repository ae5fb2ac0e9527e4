//! Time to draw a 200×60 frame of each screen on generated data, to answer a key, and of the text and patch work
//! behind them. Run with `cargo bench --bench draw`; the budget of a frame is 8 ms.

#![expect(clippy::unwrap_used, reason = "a bench that cannot be set up has nothing to measure")]

use std::path::PathBuf;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::BytesCount;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use trajscope::app::{Effect, Key, KeyInput, Keymap, Msg, State, ThemeName, View, update};
use trajscope::critic::{ActionScore, CriticInfo, Profile, Scores};
use trajscope::trajectory::{Dataset, Outcome, Role, Source, Step, Trajectory};
use trajscope::work::highlight::{Budget, Highlighter, Side, SourceLine};
use trajscope::{patch, text, ui};

const SIZE: (u16, u16) = (200, 60);
const ISSUES: usize = 200;
const ATTEMPTS: usize = 5;
const ACTIONS: usize = 80;

fn main() {
    divan::main();
}

/// A test log of about 10 kB with colours.
fn log(n: usize) -> String {
    let line = |i: usize| format!("\u{1b}[32mtests/test_{n}.py::test_{i:03}\u{1b}[0m PASSED\t[{:3}%] é\n", i % 100);
    (0..200).map(line).collect()
}

/// A patch of about 400 changed lines in four files.
fn diff(attempt: usize) -> String {
    let mut diff = String::new();
    for file in 0..4 {
        let path = format!("pkg/module_{file}.py");
        diff.push_str(&format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,100 +1,100 @@\n"));
        for line in 0..50 {
            diff.push_str(&format!("-    value_{line} = compute({line}, \"old\")  # before\n"));
            diff.push_str(&format!("+    value_{line} = compute({line}, \"{attempt}\")  # after\n"));
        }
        diff.push_str(&"     return value\n".repeat(50));
    }
    diff
}

fn run(issue: usize, attempt: usize) -> Trajectory {
    let mut steps = vec![Step::new(Role::System, "You fix bugs."), Step::new(Role::User, "Fix the jar. ".repeat(200))];
    for action in 0..ACTIONS {
        let text = format!("I look at module {action}.\n```bash\npython -m pytest tests/test_{action}.py\n```");
        steps.push(Step::new(Role::Assistant, text));
        steps.push(Step::new(Role::User, log(action)));
    }
    Trajectory {
        source: Source { path: PathBuf::from(format!("runs/{attempt}/{issue}.traj")), ..Source::default() },
        format: "sweagent-1",
        instance_id: Some(format!("pantry__jar-{issue}")),
        attempt: Some(format!("run-{attempt}")),
        steps,
        patch: Some(diff(attempt % 4)),
        outcome: if attempt == 0 { Outcome::Resolved } else { Outcome::Unresolved },
        ..Trajectory::default()
    }
}

/// Everything loaded and scored.
fn scored() -> State {
    let mut state = State::new(Keymap::builtin().unwrap(), ThemeName::Dark, false);
    update(&mut state, Msg::Resize(SIZE.0, SIZE.1));
    let runs = (0..ISSUES).flat_map(|issue| (0..ATTEMPTS).map(move |attempt| Arc::new(run(issue, attempt))));
    update(&mut state, Msg::Loaded(Box::new(Dataset { trajectories: runs.collect(), ..Dataset::default() })));
    let profile = Profile::by_id("openhands-32b").unwrap();
    let effects = update(&mut state, Msg::CriticReady(Box::new(CriticInfo::of_profile(profile))));
    for effect in effects {
        let Effect::Score { key, generation, trajectory, .. } = effect else { continue };
        let reward = |action: usize| Some(0.5 + ((action * 7919 + key.path.as_os_str().len()) % 40) as f64 / 100.0);
        let action =
            |action| ActionScore { action, reward: reward(action), token_index: Some(action), after_cut: false };
        let actions: Vec<_> = (0..trajectory.n_actions()).map(action).collect();
        let score = actions.last().and_then(|last| last.reward);
        let scores = Box::new(Scores { actions, score, ..Scores::default() });
        update(&mut state, Msg::Done { key, generation, scores });
    }
    state
}

fn press(state: &mut State, key: Key) {
    update(state, Msg::Key(KeyInput::new(key, false, false, false)));
}

/// The state on one screen.
fn on(screen: &str) -> State {
    let mut state = scored();
    let keys: &[char] = match screen {
        "board" => &[],
        "timeline" => &['2'],
        "timeline, observation" => &['2', 'j', 'o'],
        "timeline, patch" => &['2', 'p'],
        "compare" => &['3'],
        "rank" => &['4'],
        other => unreachable!("no screen {other}"),
    };
    for key in keys {
        press(&mut state, Key::Char(*key));
    }
    let view = match screen.split(',').next() {
        Some("timeline") => View::Timeline,
        Some("compare") => View::Compare,
        Some("rank") => View::Rank,
        _ => View::Board,
    };
    assert_eq!(state.view, view, "{screen}");
    state
}

const SCREENS: [&str; 6] = ["board", "timeline", "timeline, observation", "timeline, patch", "compare", "rank"];

/// One frame into a terminal's buffer, with the comparison to the frame before.
#[divan::bench(args = SCREENS)]
fn draw(bencher: Bencher, screen: &str) {
    let state = on(screen);
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).unwrap();
    bencher.bench_local(|| terminal.draw(|frame| ui::draw(frame, &state)).map(|_| ()).unwrap());
}

/// A key of movement and the frame that answers it.
#[divan::bench(args = SCREENS)]
fn key_and_draw(bencher: Bencher, screen: &str) {
    let mut state = on(screen);
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).unwrap();
    let mut down = true;
    bencher.bench_local(|| {
        press(&mut state, if down { Key::Down } else { Key::Up });
        down = !down;
        terminal.draw(|frame| ui::draw(frame, &state)).map(|_| ()).unwrap();
    });
}

/// One result of the critic while the Board is shown.
#[divan::bench]
fn take_one_result(bencher: Bencher) {
    let mut state = on("board");
    let key = run(7, 3).key();
    let action = |action| ActionScore { action, reward: Some(0.5), token_index: Some(action), after_cut: false };
    let actions: Vec<_> = (0..ACTIONS).map(action).collect();
    let scores = Scores { actions, score: Some(0.5), ..Scores::default() };
    let generation = state.generation;
    bencher.bench_local(|| {
        update(&mut state, Msg::Done { key: key.clone(), generation, scores: Box::new(scores.clone()) })
    });
}

/// A megabyte of coloured log made safe.
#[divan::bench]
fn ansi_spans(bencher: Bencher) {
    let raw: String = (0..90).map(log).collect();
    bencher.counter(BytesCount::of_str(&raw)).bench(|| text::ansi_spans(divan::black_box(&raw)));
}

/// A long line of text cut into rows.
#[divan::bench(args = ["ascii", "wide"])]
fn wrap(bencher: Bencher, kind: &str) {
    let line =
        if kind == "ascii" { "the quick brown fox ".repeat(500) } else { "日本語のテキスト é ".repeat(500) };
    bencher.counter(BytesCount::of_str(&line)).bench(|| text::wrap(divan::black_box(&line), 100));
}

/// A patch of 20,000 added lines.
#[divan::bench]
fn parse_patch(bencher: Bencher) {
    let file = |n: usize| {
        let body = "+    value = compute(1, \"x\")\n".repeat(148);
        format!(
            "diff --git a/n{n}.py b/n{n}.py\nnew file mode 100644\n--- /dev/null\n+++ b/n{n}.py\n@@ -0,0 +1,148 @@\n{body}"
        )
    };
    let patch: String = (0..141).map(file).collect();
    bencher.counter(BytesCount::of_str(&patch)).bench(|| patch::parse(divan::black_box(&patch)));
}

/// Syntax classes of a hunk of 400 lines of Python.
#[divan::bench]
fn highlight(bencher: Bencher) {
    let highlighter = Highlighter::default();
    let line = SourceLine { side: Side::Both, text: "    value_1 = compute(1, \"old\")  # before" };
    bencher
        .counter(BytesCount::new(line.text.len() * 400))
        .bench(|| highlighter.hunk("a.py", &[line; 400], &mut Budget::default()));
}
