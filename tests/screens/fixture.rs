//! Small runs written for these tests: two issues, four attempts at one of them, one at the other.

use std::path::PathBuf;
use std::sync::Arc;

use trajscope::app::{Effect, Keymap, Msg, State, ThemeName, update};
use trajscope::critic::{ActionScore, CriticInfo, CriticInput, Cut, Profile, Scores};
use trajscope::trajectory::{
    Dataset, Diagnostic, FileReport, Outcome, Role, RunReport, Severity, Source, Step, ToolCall, Trajectory, Usage,
};

const TASK: &str = "Jar.open raises an error when the lid is already off. It should do nothing in that case.";

pub const FIX: &str = concat!(
    "diff --git a/pantry/jar.py b/pantry/jar.py\n--- a/pantry/jar.py\n+++ b/pantry/jar.py\n",
    "@@ -10,6 +10,8 @@ class Jar:\n     def open(self):\n         \"\"\"Takes the lid off.\"\"\"\n",
    "+        if self.lid is None:\n+            return\n         self.lid.unscrew()\n",
    "-        self.lid = 0\n+        self.lid = None\n \n     def close(self, lid):\n",
);

const OTHER: &str = concat!(
    "diff --git a/pantry/lid.py b/pantry/lid.py\n--- a/pantry/lid.py\n+++ b/pantry/lid.py\n",
    "@@ -1,3 +1,5 @@\n class Lid:\n     def unscrew(self):\n-        self.turn(-3)\n",
    "+        try:\n+            self.turn(-3)\n+        except LidError: pass\n",
    "diff --git a/tests/test_jar.py b/tests/test_jar.py\n--- a/tests/test_jar.py\n+++ b/tests/test_jar.py\n",
    "@@ -5,2 +5,1 @@ def test_open():\n     jar.open()\n-    assert jar.lid == 0\n",
);

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn turn(text: &str, tool: &str, arguments: &str) -> Step {
    Step { calls: vec![call(tool, arguments)], ..Step::new(Role::Assistant, text) }
}

fn answer(text: &str, exit_code: i64) -> Step {
    let tool_name = Some("bash".to_owned());
    Step { exit_code: Some(exit_code), tool_name, ..Step::new(Role::Tool, text) }
}

/// The steps of a run of eight actions.
fn steps() -> Vec<Step> {
    let bash = |text: &str, command: &str| turn(text, "bash", &format!("{{\"command\": {command:?}}}"));
    vec![
        Step::new(Role::System, "You fix bugs in a small Python package."),
        Step::new(Role::User, TASK),
        bash("I look around first.", "ls pantry tests"),
        answer("pantry:\n__init__.py  jar.py  lid.py\n\ntests:\ntest_jar.py\n", 0),
        bash("Now the class itself.", "cat pantry/jar.py"),
        answer("class Jar:\n    def open(self):\n        self.lid.unscrew()\n        self.lid = 0\n", 0),
        bash("", "python -m pytest -q"),
        answer("\u{1b}[31mFAILED\u{1b}[0m tests/test_jar.py::test_open - AttributeError\n1 failed in 0.02s\n", 1),
        turn(
            "The lid is not checked.",
            "edit",
            "{\"path\": \"pantry/jar.py\", \"old\": \"self.lid.unscrew()\", \
             \"new\": \"if self.lid is None:\\n    return\\nself.lid.unscrew()\"}",
        ),
        answer("edited", 0),
        bash("Run the tests again.", "python -m pytest -q"),
        answer("\u{1b}[31mFAILED\u{1b}[0m tests/test_jar.py::test_open\n1 failed in 0.02s\n", 1),
        bash("Run the tests again.", "python -m pytest -q"),
        answer("\u{1b}[31mFAILED\u{1b}[0m tests/test_jar.py::test_open\n1 failed in 0.02s\n", 1),
        bash("Run the tests again.", "python -m pytest -q"),
        answer("\u{1b}[32m3 passed\u{1b}[0m in 0.01s 日本語 [/dim] \u{202e}ab\n", 0),
        Step::new(Role::Assistant, "The jar opens twice now. I am done."),
    ]
}

pub fn run(name: &str, instance: &str, patch: Option<&str>, actions: usize) -> Trajectory {
    let mut kept = Vec::new();
    let mut seen = 0;
    for step in steps() {
        seen += usize::from(step.is_action());
        if seen > actions {
            break;
        }
        kept.push(step);
    }
    Trajectory {
        source: Source { path: PathBuf::from(format!("runs/{name}/{instance}.traj")), ..Source::default() },
        format: "sweagent-1",
        instance_id: Some(instance.to_owned()),
        attempt: Some(name.to_owned()),
        agent: Some("SWE-agent".to_owned()),
        model: Some("larch-2".to_owned()),
        steps: kept,
        patch: patch.map(str::to_owned),
        exit_status: Some("submitted".to_owned()),
        usage: Usage { cost: (name != "run-3").then_some(0.42), ..Usage::default() },
        ..Trajectory::default()
    }
}

/// Two issues, one strange file, a report on some of the runs.
pub fn dataset() -> Dataset {
    let long = "kitchen__shelf-with-a-long-name-2041";
    let mut trajectories = vec![
        run("run-1", "pantry__jar-17", Some(FIX), 8),
        run("run-2", "pantry__jar-17", Some(&FIX.replace('\n', "\r\n")), 5),
        run("run-3", "pantry__jar-17", Some(OTHER), 8),
        run("run-4", "pantry__jar-17", Some(""), 3),
        run("run-1", long, None, 2),
    ];
    trajectories[0].outcome = Outcome::Resolved;
    trajectories[1].outcome = Outcome::Resolved;
    trajectories[2].outcome = Outcome::Unresolved;
    trajectories[3].outcome = Outcome::Unresolved;
    trajectories[3].exit_status = Some("exit_cost".to_owned());
    let read = |path: &str, n| FileReport {
        path: PathBuf::from(path),
        format: Some("sweagent-1"),
        reason: "has trajectory, history and info".to_owned(),
        foreign: false,
        trajectories: n,
        diagnostics: Vec::new(),
    };
    let mut files: Vec<FileReport> =
        trajectories.iter().map(|t| read(&t.source.path.display().to_string(), 1)).collect();
    files[1]
        .diagnostics
        .push(Diagnostic::new(Severity::Warning, "json.bad-line", "one line is not JSON and was skipped").at_line(7));
    files.push(FileReport {
        path: PathBuf::from("runs/notes.html"),
        format: None,
        reason: "an HTML page, not JSON; give the trajectory files".to_owned(),
        foreign: false,
        trajectories: 0,
        diagnostics: Vec::new(),
    });
    Dataset {
        trajectories: trajectories.into_iter().map(Arc::new).collect(),
        reports: vec![Arc::new(RunReport::default())],
        files,
        ..Dataset::default()
    }
}

pub fn critic() -> CriticInfo {
    let profile = Profile::by_id("openhands-32b").unwrap();
    CriticInfo {
        id: "test-critic".to_owned(),
        device: "cpu".to_owned(),
        dtype: "f32".to_owned(),
        fingerprint: "00112233aabbccdd".to_owned(),
        ..CriticInfo::of_profile(profile)
    }
}

/// Everything loaded and the critic open; nothing scored. Gives the requests that were made.
pub fn loaded(theme: ThemeName, size: (u16, u16)) -> (State, Vec<Effect>) {
    let mut state = State::new(Keymap::builtin().unwrap(), theme, false);
    update(&mut state, Msg::Resize(size.0, size.1));
    update(&mut state, Msg::Loaded(Box::new(dataset())));
    state.message = None;
    let effects = update(&mut state, Msg::CriticReady(Box::new(critic())));
    (state, effects)
}

pub const REWARDS: [Option<f64>; 8] =
    [Some(0.42), Some(0.47), Some(0.51), Some(0.66), Some(0.38), None, Some(0.21), Some(0.58)];

pub fn score(action: usize, reward: Option<f64>) -> ActionScore {
    ActionScore { action, reward, token_index: reward.map(|_| action * 40 + 7), after_cut: false }
}

/// What the script says of a request: attempts differ, so that they can be ranked.
pub fn answer_to(effect: &Effect) -> Option<Msg> {
    let Effect::Score { key, generation, trajectory, .. } = effect else { return None };
    let name = trajectory.attempt.as_deref().unwrap_or_default();
    let less = match name {
        "run-2" => 0.05,
        "run-3" => -0.2,
        "run-4" => 0.3,
        _ => 0.0,
    };
    let n = trajectory.n_actions();
    let actions: Vec<ActionScore> = (0..n).map(|a| score(a, REWARDS[a].map(|r| r - less))).collect();
    let score = actions.last().and_then(|a| a.reward);
    let cut = (name == "run-3").then(|| Cut {
        exact_until: 6,
        unscored: vec![5],
        note: "oldest turns left out: 40,112 tokens, at most 32,768".to_owned(),
    });
    let scores = Scores { actions, score, tokens: 300 * n, cut, ..Scores::default() };
    Some(Msg::Done { key: key.clone(), generation: *generation, scores: Box::new(scores) })
}

/// Everything loaded and scored.
pub fn scored(theme: ThemeName, size: (u16, u16)) -> State {
    let (mut state, effects) = loaded(theme, size);
    for msg in effects.iter().filter_map(answer_to) {
        update(&mut state, msg);
    }
    state
}

/// The first five rewards of the first run are in, nothing else.
pub fn half_scored(theme: ThemeName, size: (u16, u16)) -> State {
    let (mut state, effects) = loaded(theme, size);
    let first = effects.iter().find_map(|e| match e {
        Effect::Score { key, generation, trajectory, .. }
            if trajectory.attempt.as_deref() == Some("run-1") && trajectory.n_actions() == 8 =>
        {
            Some((key.clone(), *generation))
        }
        _ => None,
    });
    let (key, generation) = first.unwrap();
    for (action, reward) in REWARDS.into_iter().enumerate().take(5) {
        update(&mut state, Msg::Partial { key: key.clone(), generation, score: score(action, reward) });
    }
    state
}

/// What the critic reads, as the engine would give it.
pub fn input(trajectory: &Trajectory) -> CriticInput {
    let mut input = CriticInput::default();
    let mut action = 0;
    for (i, step) in trajectory.steps.iter().enumerate() {
        let role = if step.is_action() { "assistant" } else { "user" };
        input.text.push_str(&format!("<|im_start|>{role}\n{}<|im_end|>", step.text));
        if step.is_action() {
            input.positions.push((action, i * 40 + 7, input.text.len()));
            action += 1;
        }
        input.text.push('\n');
    }
    input.tokens = trajectory.steps.len() * 40;
    input
}
