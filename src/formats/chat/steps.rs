//! Messages in order to steps: items of one answer merged, answers named after the calls they belong to.

use super::super::json::Value;
use super::super::{action, field};
use super::message::{message_steps, role_of};
use crate::trajectory::{RawPlace, Role, Step};

/// Steps of a list of messages, with the names of the tools filled in where only ids are written. Their raw places are
/// left empty: [`steps_at`] knows them.
pub fn steps(messages: &[Value]) -> Vec<Step> {
    steps_with(messages, |_, _| {})
}

/// The same for a writer that puts more beside its messages: `refine` sees each step with its message.
pub fn steps_with(messages: &[Value], refine: impl Fn(&mut Step, &Value)) -> Vec<Step> {
    let mut collector = Collector::default();
    for message in messages {
        collector.push(Piece::of(message, &RawPlace::default(), &refine));
    }
    collector.finish()
}

/// The same for the list at `pointer` (RFC 6901) in the trajectory's own record, so that every step knows its message.
pub fn steps_at(messages: &[Value], pointer: &str, refine: impl Fn(&mut Step, &Value)) -> Vec<Step> {
    let mut collector = Collector::default();
    for (i, message) in messages.iter().enumerate() {
        collector.push(Piece::of(message, &RawPlace::element(pointer, i), &refine));
    }
    collector.finish()
}

/// The steps of one message, and how it hangs together with its neighbours.
pub struct Piece {
    steps: Vec<Step>,
    link: Link,
}

impl Piece {
    /// Reads one message that stands at `raw`.
    pub fn of(message: &Value, raw: &RawPlace, refine: &impl Fn(&mut Step, &Value)) -> Self {
        let mut steps = message_steps(message);
        for step in &mut steps {
            step.raw = raw.clone();
            refine(step, message);
        }
        Self { steps, link: Link::of(message) }
    }
}

/// Does a message continue the answer before it, and may the next one continue it?
#[derive(Debug, Clone, Copy, Default)]
struct Link {
    continues: bool,
    open: bool,
}

impl Link {
    fn of(message: &Value) -> Self {
        let assistant = || role_of(message) == Role::Assistant;
        match field::str(message, "type") {
            // Items of the Responses API that belong to one answer of the model follow one another.
            Some(kind) if kind == "reasoning" || kind == "output_text" || kind.ends_with("_call") => {
                return Self { continues: true, open: true };
            }
            Some("message") if assistant() => return Self { continues: true, open: true },
            _ => {}
        }
        // Harmony writes what the model thought as a message of its own before what it said or called.
        match field::str(message, "channel") {
            Some("analysis") if assistant() => Self { continues: true, open: true },
            Some(_) if assistant() => Self { continues: true, open: false },
            _ => Self::default(),
        }
    }
}

/// Puts the steps of messages together, one message after the other.
#[derive(Default)]
pub struct Collector {
    steps: Vec<Step>,
    open: bool,
}

impl Collector {
    /// The next message.
    pub fn push(&mut self, piece: Piece) {
        for step in piece.steps {
            match self.steps.last_mut() {
                Some(last) if self.open && piece.link.continues && last.role == Role::Assistant => merge(last, step),
                _ => self.steps.push(step),
            }
        }
        self.open = piece.link.open;
    }

    /// All steps.
    pub fn finish(mut self) -> Vec<Step> {
        name_tools(&mut self.steps);
        self.steps
    }
}

fn merge(last: &mut Step, more: Step) {
    if !more.text.is_empty() {
        if !last.text.is_empty() {
            last.text.push('\n');
        }
        last.text.push_str(&more.text);
    }
    last.reasoning = match (last.reasoning.take(), more.reasoning) {
        (Some(a), Some(b)) => Some(format!("{a}\n{b}")),
        (a, b) => a.or(b),
    };
    last.calls.extend(more.calls);
    last.cost = match (last.cost, more.cost) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    last.action = action::of_calls(&last.calls).or_else(|| action::in_text(&last.text));
}

/// Fills `tool_name` of answers from the call with the same id, or, without ids, from the only call before.
pub fn name_tools(steps: &mut [Step]) {
    let mut last = None;
    for at in 0..steps.len() {
        let Some((before, [step, ..])) = steps.split_at_mut_checked(at) else { break };
        match step.role {
            Role::Assistant => last = Some(at),
            Role::Tool if step.tool_name.is_none() => {
                let recent = last.and_then(|last: usize| before.get(last)).map_or(&[][..], |answer| &answer.calls);
                let by_id = recent.iter().find(|call| step.call_id.as_ref() == Some(&call.id));
                let only = if step.call_id.is_none() && recent.len() == 1 { recent.first() } else { None };
                step.tool_name = by_id.or(only).map(|call| call.name.clone());
            }
            _ => {}
        }
    }
}
