//! Qwen2.5's chat template over a conversation that has no tool calls left (`super::openhands` made them text).
//!
//! A turn is `<|im_start|>ROLE`, newline, the content, `<|im_end|>`, newline. A conversation that does not begin
//! with a system message gets the template's default one; a system message further down is a turn like any other;
//! neighbouring turns of one role are not merged. There is no generation prompt.

use serde::{Deserialize, Serialize};

use super::openhands::{self, Message};
pub use super::tools::ToolWording;
use crate::critic::{CriticText, Positions, Segment, Value};
use crate::trajectory::Trajectory;

/// Opens a turn; the role follows.
const START: &str = "<|im_start|>";
/// Closes a turn.
pub(in crate::critic) const END: &str = "<|im_end|>";

/// `[render.chatml]`: options of `kind = "chatml-openhands"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatMlOptions {
    /// System prompt of a conversation that has none, as the critic's chat template puts it.
    pub default_system: String,
    /// A tool's result as a user turn: `{name}`, `{content}`.
    pub tool_result: String,
    /// `{name}` of a result whose tool is unknown.
    pub unnamed_tool: String,
    /// Tokens of the template that are reported when they occur inside a message.
    pub special: Vec<String>,
    /// Words and layout of the tool descriptions.
    pub tools: ToolWording,
}

/// The whole conversation, one segment a turn.
pub(super) fn render(options: &ChatMlOptions, positions: &Positions, trajectory: &Trajectory) -> CriticText {
    let (mut messages, mut warnings) = openhands::convert(options, trajectory);
    if messages.first().is_some_and(|m| m.role != "system") {
        let lost = !trajectory.tools.is_empty() && messages.iter().all(|m| m.role != "system");
        let lost = if lost { "; the tool descriptions have no place" } else { "" };
        messages.insert(0, Message::new("system", options.default_system.clone()).pinned());
        warnings.push(format!("the run has no system prompt: the chat template's default stands in for it{lost}"));
    }
    warnings.extend(special_tokens(options, &messages));
    let segments = messages.into_iter().map(|message| segment(positions, message)).collect();
    CriticText { segments, warnings }
}

fn segment(positions: &Positions, message: Message) -> Segment {
    let Message { role, content, turn, pinned, action } = message;
    let mut text = String::with_capacity(START.len() + role.len() + content.len() + positions.token.len() + 2);
    for part in [START, role, "\n", &content, &positions.token] {
        text.push_str(part);
    }
    let value = action.map(|action| Value { action, end: text.len() });
    text.push('\n');
    Segment { text, value, pinned, turn }
}

/// The template does not quote: a message that holds one of its tokens reads like a turn that ends there. The text
/// is given unchanged, because the agent's and the critic's servers read it the same way.
fn special_tokens(options: &ChatMlOptions, messages: &[Message]) -> Option<String> {
    let holds_one = |m: &&Message| options.special.iter().any(|token| m.content.contains(token.as_str()));
    let first = messages.iter().find(holds_one)?;
    let n = messages.iter().filter(holds_one).count();
    let place = if first.turn == 0 { "before the first action".to_owned() } else { format!("action {}", first.turn) };
    Some(format!(
        "tokens of the chat template occur inside {n} message{} (first: {place}): the critic reads them as ends of \
         turns; the values are still read at the real ends",
        if n == 1 { "" } else { "s" }
    ))
}
