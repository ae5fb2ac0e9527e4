//! The compact rendering: a run told as a short sequence of event words, for the small embedded critic.
//!
//! One line an action, one line an answer of the environment. A line holds words of a closed vocabulary
//! ([`words::vocabulary`]): the kind of action, what it is about, whether it was done before, how the agent speaks,
//! counts of what happened so far; then the class of error, test results, size of the answer. Nothing of the run's
//! own text is copied. The value of an action is read at the `<|im_end|>` that closes its line, before its answer is
//! known, as the OpenHands critic does. The candidate patch, which the last action submits, is described by a line in
//! front of the last action's `<|im_end|>`.
//!
//! The same function makes the training text (`assets/critic-mini/train/dump_critic_text.rs`): there is no second implementation.

mod call;
mod observe;
mod shell;
mod speech;
mod state;
mod words;

pub use words::vocabulary;

use std::borrow::Cow;

use call::{Call, Kind};
use serde::{Deserialize, Serialize};
use state::State;
use words::{KINDS, class};

use crate::critic::{CriticText, Positions, Segment, Value};
use crate::trajectory::{Role, Step, Trajectory};

/// `[render.compact]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactOptions {
    /// Describe the candidate patch in the line of the last action, which submits it.
    pub patch: bool,
}

/// Renders a run. Every action gets a value.
pub(super) fn render(options: &CompactOptions, positions: &Positions, trajectory: &Trajectory) -> CriticText {
    let mut text = CriticText::default();
    text.segments.push(Segment { text: "begin\n".to_owned(), value: None, pinned: true, turn: 0 });
    let mut state = State::default();
    let actions = trajectory.action_steps();
    for (action, &at) in actions.iter().enumerate() {
        let Some(step) = trajectory.steps.get(at) else { continue };
        let mut line = action_line(step, &mut state);
        if options.patch && action + 1 == actions.len() {
            patch_words(trajectory.patch.as_deref(), &mut line);
        }
        let mut told = line.join(" ");
        told.push(' ');
        told.push_str(&positions.token);
        let value = Some(Value { action, end: told.len() });
        told.push('\n');
        text.segments.push(Segment { text: told, value, pinned: false, turn: action + 1 });
        let answers = answers(trajectory, action);
        if !answers.is_empty() {
            let told = answer_line(&answers, &mut state);
            text.segments.push(Segment { text: told, value: None, pinned: false, turn: action + 1 });
        }
    }
    text
}

/// The steps the environment answered an action with. A blank one tells nothing: formats differ in writing it.
fn answers(trajectory: &Trajectory, action: usize) -> Vec<&Step> {
    let steps = trajectory.steps.get(trajectory.observations(action)).unwrap_or(&[]);
    let told = |s: &&Step| !s.is_demo && matches!(s.role, Role::Tool | Role::User) && !s.text.trim().is_empty();
    steps.iter().filter(told).collect()
}

/// The words of an action, without its end.
fn action_line(step: &Step, state: &mut State) -> Vec<String> {
    let mut calls = call::calls(step);
    for call in &mut calls {
        state.complete(call);
    }
    let mut line = vec!["act".to_owned()];
    for call in calls.iter().take(3) {
        line.push(kind_word(call.kind).to_owned());
        line.extend(about(call).into_iter().map(str::to_owned));
        line.extend(state.novelty(call).into_iter().map(str::to_owned));
        if matches!(call.kind, Kind::Edit | Kind::Create | Kind::Run) {
            line.push(format!("lines={}", class(call.lines)));
        }
    }
    match calls.len() {
        0 => line.push(kind_word(Kind::Talk).to_owned()),
        1 => {}
        n => line.push(format!("calls={}", class(n))),
    }
    let spoken = spoken(step);
    // Some frameworks print their message objects: what follows the content is bookkeeping.
    let thought = spoken.split(" additional_kwargs=").next().unwrap_or(&spoken);
    line.push(format!("thought={}", class(thought.split_whitespace().count() / 4)));
    line.extend(speech::speech(thought).into_iter().map(str::to_owned));
    state.act(&calls, |call| file_word(call) == Some("scratch-file"));
    state.words(&mut line);
    line
}

/// What the agent wrote around its command, whether or not the format keeps the two apart.
fn spoken(step: &Step) -> Cow<'_, str> {
    match (&step.thought, step.action.as_deref().map(str::trim)) {
        (Some(thought), _) => Cow::Borrowed(thought),
        (None, Some(action)) if !action.is_empty() => Cow::Owned(step.text.replacen(action, " ", 1)),
        (None, _) => Cow::Borrowed(&step.text),
    }
}

fn kind_word(kind: Kind) -> &'static str {
    KINDS.get(kind as usize).copied().unwrap_or("other")
}

/// Class of the file a call is about, its language, and whether only a part of it is read.
fn about(call: &Call) -> Vec<&'static str> {
    let mut words = Vec::new();
    words.extend(file_word(call));
    words.extend(call.path.as_deref().and_then(language));
    if call.partial && call.kind == Kind::View {
        words.push("part-of-file");
    }
    words
}

/// Class of the file a call is about.
fn file_word(call: &Call) -> Option<&'static str> {
    let path = call.path.as_deref()?;
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let deep = lower.trim_start_matches("./").matches('/').count() > usize::from(lower.starts_with('/')) + 1;
    let scratch = ["repro", "debug", "verify", "demo", "check_", "tmp", "temp_", "patch.txt"];
    if scratch.iter().any(|w| name.contains(w)) || lower.starts_with("/tmp") || (!deep && name.starts_with("test_")) {
        return Some("scratch-file");
    }
    if is_test_path(&lower) {
        return Some("test-file");
    }
    Some(match shell::ending(path) {
        Some("md" | "rst" | "txt" | "html") => "doc-file",
        Some("json" | "toml" | "cfg" | "ini" | "yml" | "yaml" | "xml" | "lock" | "sh") => "config-file",
        Some(_) => "source-file",
        None => return None,
    })
}

/// Does a lower-case path lie among tests?
fn is_test_path(lower: &str) -> bool {
    ["test/", "tests/", "testing/", "__tests__", "test_", "_test.", ".test.", ".spec.", "tests.py", "/spec/"]
        .iter()
        .any(|mark| lower.contains(mark))
        || lower.ends_with("test.java")
}

fn language(path: &str) -> Option<&'static str> {
    Some(match shell::ending(path)? {
        "py" | "pyi" => "py",
        "js" | "jsx" | "mjs" | "vue" => "js",
        "ts" | "tsx" => "ts",
        "java" | "kt" => "java",
        "c" | "h" | "cpp" | "hpp" | "cc" | "go" | "rs" | "rb" | "php" => "otherlang",
        _ => return None,
    })
}

/// The line of an answer.
fn answer_line(answers: &[&Step], state: &mut State) -> String {
    let seen = observe::observe(answers, state.quotes());
    let mut line = vec!["obs".to_owned()];
    line.extend(seen.words.iter().map(|w| (*w).to_owned()));
    line.extend(seen.passed.map(|n| format!("passed={}", class(n))));
    line.extend(seen.failed.map(|n| format!("failed={}", class(n))));
    line.push(format!("size={}", seen.size()));
    line.extend(state.answer(&seen).map(str::to_owned));
    line.join(" ") + "\n"
}

/// The candidate patch in words: it is known when the last action submits it.
fn patch_words(patch: Option<&str>, line: &mut Vec<String>) {
    let Some(patch) = patch else {
        line.push("patch-unknown".to_owned());
        return;
    };
    if patch.trim().is_empty() {
        line.push("patch-empty".to_owned());
        return;
    }
    line.push("patch".to_owned());
    let (mut files, mut hunks, mut added, mut removed, mut tests, mut other) = (0, 0, 0, 0, 0, 0);
    let mut languages: Vec<&'static str> = Vec::new();
    let mut lines = patch.lines().peekable();
    while let Some(text) = lines.next() {
        let name = lines.peek().and_then(|next| next.strip_prefix("+++ ")).filter(|_| text.starts_with("--- "));
        if let Some(name) = name {
            lines.next();
            // A deleted file is named by its old side.
            let name = if name.starts_with("/dev/null") { text.trim_start_matches("--- ") } else { name };
            let lower = name.to_ascii_lowercase();
            files += 1;
            if is_test_path(&lower) {
                tests += 1;
            } else if language(name.trim()).is_none() {
                other += 1;
            }
            languages.extend(language(name.trim()).filter(|l| !languages.contains(l)));
        } else if text.starts_with("@@") {
            hunks += 1;
        } else if text.starts_with('+') {
            added += 1;
        } else if text.starts_with('-') {
            removed += 1;
        }
    }
    for (field, n) in [
        ("patch-files", files),
        ("patch-hunks", hunks),
        ("patch-added", added),
        ("patch-removed", removed),
        ("patch-tests", tests),
        ("patch-other", other),
    ] {
        line.push(format!("{field}={}", class(n)));
    }
    line.extend(languages.into_iter().map(str::to_owned));
    if patch.contains("\nnew file mode") || patch.contains("--- /dev/null") {
        line.push("patch-new-file".to_owned());
    }
    if files > 0 && tests == files {
        line.push("patch-only-tests".to_owned());
    }
    if hunks == 1 {
        line.push("patch-one-place".to_owned());
    }
}

#[cfg(test)]
mod tests;
