//! A few lines an action for a small critic: what was said, what was done, the head and tail of what came back.

use serde::{Deserialize, Serialize};

use crate::critic::{CriticText, Positions, Segment, Value};
use crate::trajectory::{Role, Step, Trajectory};

/// `[render.compact]`: how many characters of each part are kept. What is longer keeps its head and its tail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactOptions {
    /// Of the task (the first user message).
    pub task_chars: usize,
    /// Of what the agent wrote beside the command.
    pub thought_chars: usize,
    /// Of the command or the calls.
    pub action_chars: usize,
    /// Of each observation.
    pub observation_chars: usize,
}

/// One pinned segment for the task, one an action, one for what came back.
pub(super) fn render(options: &CompactOptions, positions: &Positions, trajectory: &Trajectory) -> CriticText {
    let action_steps = trajectory.action_steps();
    let mut segments = Vec::new();
    let mut warnings = Vec::new();
    let before = action_steps.first().copied().unwrap_or(trajectory.steps.len());
    let first_user = trajectory.steps.iter().take(before).find(|s| s.role == Role::User && !s.is_demo);
    match trajectory.task.as_deref().or(first_user.map(|s| s.text.as_str())) {
        Some(task) => {
            let text = format!("task {}\n", one_line(task, options.task_chars));
            segments.push(Segment { text, value: None, pinned: true, turn: 0 });
        }
        None => warnings.push("the run does not tell its task: the critic cannot know it".to_owned()),
    }
    for (action, &at) in action_steps.iter().enumerate() {
        let Some(step) = trajectory.steps.get(at) else { continue };
        let text = format!("{}{}", act(options, step), positions.token);
        let value = Some(Value { action, end: text.len() });
        segments.push(Segment { text: text + "\n", value, pinned: false, turn: action + 1 });
        let observations = trajectory.steps.get(trajectory.observations(action)).unwrap_or_default();
        let text: String = observations.iter().filter_map(|s| observe(options, s)).collect();
        if !text.is_empty() {
            segments.push(Segment { text, value: None, pinned: false, turn: action + 1 });
        }
    }
    CriticText { segments, warnings }
}

fn act(options: &CompactOptions, step: &Step) -> String {
    let calls: Vec<String> = step.calls.iter().map(|c| format!("{} {}", c.name, c.arguments)).collect();
    let (thought, action) = match (&step.action, calls.is_empty()) {
        (_, false) => (step.text.as_str(), calls.join(" ; ")),
        (Some(action), true) => (step.thought.as_deref().unwrap_or_default(), action.clone()),
        (None, true) => (step.text.as_str(), String::new()),
    };
    format!("think {}\nact {}", one_line(thought, options.thought_chars), one_line(&action, options.action_chars))
}

fn observe(options: &CompactOptions, step: &Step) -> Option<String> {
    if step.is_demo || !matches!(step.role, Role::User | Role::Tool) {
        return None;
    }
    let failed = if step.is_error == Some(true) || step.exit_code.is_some_and(|c| c != 0) { "failed " } else { "" };
    Some(format!("saw {failed}{}\n", one_line(&step.text, options.observation_chars)))
}

/// Words joined by single spaces; the middle of what is longer than `chars` is left out.
fn one_line(text: &str, chars: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let n = words.chars().count();
    if n <= chars {
        return words;
    }
    let head = chars.div_ceil(2);
    let tail = chars - head;
    let start: String = words.chars().take(head).collect();
    let end: String = words.chars().skip(n - tail).collect();
    format!("{start} … {end}")
}
