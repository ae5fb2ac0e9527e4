//! A trajectory as the chat an OpenHands critic was trained on: native tool calls and results become plain text.
//!
//! What is decided here, beyond the conversion's own rules (`calls`, `tools`):
//! - A run is *native* if it has tool descriptions or any native call. Other runs (SWE-agent 0.x, mini-swe-agent 1)
//!   already speak in plain text: their messages are unchanged, and nothing is added to the system prompt.
//! - Steps of role Meta, demonstrations and reasoning are not rendered: the critic was trained without them.
//! - Several calls in one message become that many assistant turns, each followed by its result, in the order of
//!   the results; the message's text goes with its first call. A call without a result comes before the result of
//!   a later one and before the next message that is no result.
//!   The action's value is read at the *last* of its turns: at the end of the run that is the turn the reference
//!   takes the score from.
//! - The task given apart from the steps opens the conversation if no user message precedes the first action.
//! - Turn 0 is what precedes the first action; action `k` and its observations are turn `k + 1`. Pinned are the
//!   system messages and the first user message of turn 0.

use std::ops::Range;

use super::chatml::ChatMlOptions;
use super::fill::fill;
use super::{calls, python, tools};
use crate::trajectory::{ActionIx, Role, Step, ToolCall, Trajectory};

/// A turn of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub role: &'static str,
    pub content: String,
    pub turn: usize,
    pub pinned: bool,
    /// The action whose value is read at the end of this turn.
    pub action: Option<ActionIx>,
}

impl Message {
    pub fn new(role: &'static str, content: String) -> Self {
        Self { role, content, turn: 0, pinned: false, action: None }
    }

    pub fn pinned(mut self) -> Self {
        self.pinned = true;
        self
    }
}

/// The conversation and what it lacks.
pub(super) fn convert(options: &ChatMlOptions, trajectory: &Trajectory) -> (Vec<Message>, Vec<String>) {
    let action_steps = trajectory.action_steps();
    let has_calls = action_steps.iter().filter_map(|&i| trajectory.steps.get(i)).any(|s| !s.calls.is_empty());
    let mut builder = Builder {
        options,
        steps: &trajectory.steps,
        native: has_calls || !trajectory.tools.is_empty(),
        suffix: None,
        n_actions: action_steps.len(),
        messages: Vec::new(),
        warnings: Vec::new(),
        unanswered: Counted::default(),
        raw_arguments: Counted::default(),
        demos: 0,
    };
    builder.open(trajectory, action_steps.first().copied().unwrap_or(trajectory.steps.len()));
    for (action, &at) in action_steps.iter().enumerate() {
        if let Some(step) = trajectory.steps.get(at) {
            builder.action(action, step, trajectory.observations(action));
        }
    }
    builder.finish()
}

/// How often something happened, and the first action it happened at.
#[derive(Debug, Default)]
struct Counted {
    n: usize,
    first: ActionIx,
}

impl Counted {
    fn add(&mut self, action: ActionIx) {
        if self.n == 0 {
            self.first = action;
        }
        self.n += 1;
    }

    /// `"3 calls"`, `"1 call"`.
    fn calls(&self) -> String {
        format!("{} tool call{} (first: action {})", self.n, if self.n == 1 { "" } else { "s" }, self.first + 1)
    }
}

struct Builder<'a> {
    options: &'a ChatMlOptions,
    steps: &'a [Step],
    native: bool,
    /// Appended to system messages.
    suffix: Option<String>,
    n_actions: usize,
    messages: Vec<Message>,
    warnings: Vec<String>,
    unanswered: Counted,
    raw_arguments: Counted,
    demos: usize,
}

impl Builder<'_> {
    /// Everything before the first action.
    fn open(&mut self, trajectory: &Trajectory, first_action: usize) {
        if !trajectory.tools.is_empty() {
            self.suffix = Some(tools::suffix(&self.options.tools, &trajectory.tools, &mut self.warnings));
        } else if self.native {
            self.warnings.push(
                "the run has no tool descriptions: the system prompt lacks the part that lists the tools".to_owned(),
            );
        } else {
            self.warnings.push(
                "the run has no tool descriptions and no native tool calls: its messages are given unchanged, the \
                 critic was trained on OpenHands' form of calls"
                    .to_owned(),
            );
        }
        for step in self.steps.iter().take(first_action) {
            self.context(step, 0, None);
        }
        if !self.messages.iter().any(|m| m.role == "user") {
            match &trajectory.task {
                Some(task) => self.messages.push(Message::new("user", task.clone())),
                None => self.warnings.push("the run does not tell its task: the critic cannot know it".to_owned()),
            }
        }
        let first_user = self.messages.iter().position(|m| m.role == "user");
        for (i, message) in self.messages.iter_mut().enumerate() {
            message.pinned = message.role == "system" || Some(i) == first_user;
        }
    }

    /// A step that is not an action. `call` is the call a tool step answers.
    fn context(&mut self, step: &Step, turn: usize, call: Option<&ToolCall>) {
        if step.is_demo {
            self.demos += 1;
            return;
        }
        let (role, content) = match step.role {
            Role::System => ("system", format!("{}{}", step.text, self.suffix.as_deref().unwrap_or_default())),
            Role::Tool if self.native => {
                let known = |name: &&str| !name.is_empty();
                let name = step.tool_name.as_deref().filter(known).or(call.map(|c| c.name.as_str()).filter(known));
                let name = name.unwrap_or(&self.options.unnamed_tool);
                ("user", fill(&self.options.tool_result, &[("name", name), ("content", &step.text)]))
            }
            Role::User | Role::Tool => ("user", step.text.clone()),
            Role::Assistant | Role::Meta => return,
        };
        self.messages.push(Message { turn, ..Message::new(role, content) });
    }

    /// An action and its observations.
    fn action(&mut self, action: ActionIx, step: &Step, observations: Range<usize>) {
        let turn = action + 1;
        let observations = self.steps.get(observations).unwrap_or_default();
        let answers = pair(&step.calls, observations);
        let is_unanswered = |call: usize| !answers.contains(&Some(call));
        if turn < self.n_actions {
            (0..step.calls.len()).filter(|c| is_unanswered(*c)).for_each(|_| self.unanswered.add(action));
        }
        let mut last_turn = None;
        // Calls that have no turn yet. A single call, or none, needs no result to be placed.
        let mut pending: Vec<usize> = (0..step.calls.len()).collect();
        if step.calls.len() <= 1 {
            last_turn = Some(self.assistant(action, step, pending.pop()));
        }
        for (observation, answer) in observations.iter().zip(&answers) {
            let is_message = matches!(observation.role, Role::User | Role::System) && !observation.is_demo;
            let (now, later): (Vec<usize>, Vec<usize>) = pending.into_iter().partition(|&call| match answer {
                Some(answered) => call == *answered || (call < *answered && is_unanswered(call)),
                None => is_message && is_unanswered(call),
            });
            pending = later;
            for call in now {
                last_turn = Some(self.assistant(action, step, Some(call)));
            }
            self.context(observation, turn, answer.and_then(|c| step.calls.get(c)));
        }
        for call in pending {
            last_turn = Some(self.assistant(action, step, Some(call)));
        }
        if let Some(message) = last_turn.and_then(|i| self.messages.get_mut(i)) {
            message.action = Some(action);
        }
    }

    /// An assistant turn with the call of that index; returns its place.
    fn assistant(&mut self, action: ActionIx, step: &Step, call: Option<usize>) -> usize {
        let content = match call.and_then(|c| step.calls.get(c)) {
            None => step.text.clone(),
            Some(tool_call) => {
                let (text, as_written) = calls::call_text(tool_call);
                if as_written {
                    self.raw_arguments.add(action);
                }
                let said = if call == Some(0) { step.text.as_str() } else { "" };
                python::lstrip(&format!("{said}\n\n{text}")).to_owned()
            }
        };
        self.messages.push(Message { turn: action + 1, ..Message::new("assistant", content) });
        self.messages.len() - 1
    }

    fn finish(mut self) -> (Vec<Message>, Vec<String>) {
        if self.unanswered.n > 0 {
            self.warnings.push(format!("{} got no result in the file", self.unanswered.calls()));
        }
        if self.raw_arguments.n > 0 {
            let calls = self.raw_arguments.calls();
            self.warnings.push(format!("the arguments of {calls} are not a JSON object: given as they were written"));
        }
        if self.demos > 0 {
            let plural = if self.demos == 1 { "" } else { "s" };
            self.warnings.push(format!("{} demonstration message{plural} not given to the critic", self.demos));
        }
        (self.messages, self.warnings)
    }
}

/// For each observation the index of the call it answers: by id (the first call of that id that is still open), or,
/// without an id, by tool name, or the first open call.
fn pair(calls: &[ToolCall], observations: &[Step]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = (0..calls.len()).collect();
    let mut find = |observation: &Step| {
        if observation.role != Role::Tool || observation.is_demo {
            return None;
        }
        let fits = |call: &ToolCall| match (observation.call_id.as_deref(), observation.tool_name.as_deref()) {
            (Some(id), _) if !id.is_empty() => call.id == id,
            (_, Some(name)) if !name.is_empty() => call.name == name,
            _ => true,
        };
        let at = open.iter().position(|&c| calls.get(c).is_some_and(fits))?;
        Some(open.remove(at))
    };
    observations.iter().map(&mut find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critic::Profile;

    fn assistant(text: &str, calls: &[(&str, &str)]) -> Step {
        let call = |(id, name): &(&str, &str)| ToolCall {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: String::new(),
        };
        Step { calls: calls.iter().map(call).collect(), ..Step::new(Role::Assistant, text) }
    }

    fn result(id: Option<&str>, name: Option<&str>, text: &str) -> Step {
        let owned = |s: Option<&str>| s.map(str::to_owned);
        Step { call_id: owned(id), tool_name: owned(name), ..Step::new(Role::Tool, text) }
    }

    fn demo(step: Step) -> Step {
        Step { is_demo: true, ..step }
    }

    fn run(steps: Vec<Step>) -> Trajectory {
        Trajectory { steps, ..Trajectory::default() }
    }

    /// `role|turn|pinned|action|content`, one a message, and the warnings.
    fn shown(trajectory: &Trajectory) -> (Vec<String>, Vec<String>) {
        let options = Profile::by_id("openhands-32b").unwrap().render.chatml.clone().unwrap();
        let (messages, warnings) = convert(&options, trajectory);
        let line = |m: &Message| {
            let pin = if m.pinned { "!" } else { "" };
            let action = m.action.map_or_else(String::new, |a| format!(" ={a}"));
            format!("{}{pin} {}{action}: {}", m.role, m.turn, m.content.replace('\n', "/"))
        };
        (messages.iter().map(line).collect(), warnings)
    }

    #[test]
    fn demonstrations_meta_steps_and_reasoning_are_left_out() {
        let thinking = Step { reasoning: Some("hidden".into()), ..assistant("go", &[]) };
        let steps = vec![
            demo(Step::new(Role::User, "demo task")),
            demo(assistant("demo answer", &[])),
            Step::new(Role::User, "task"),
            Step::new(Role::User, "a hint"),
            thinking,
            Step::new(Role::Meta, "state changed"),
            demo(Step::new(Role::User, "copied")),
            Step::new(Role::Tool, "seen"),
        ];
        let (messages, warnings) = shown(&run(steps));
        assert_eq!(messages, ["user! 0: task", "user 0: a hint", "assistant 1 =0: go", "user 1: seen"]);
        assert!(warnings.contains(&"3 demonstration messages not given to the critic".to_owned()), "{warnings:?}");
    }

    #[test]
    fn the_task_told_apart_opens_the_conversation_only_when_no_message_tells_it() {
        let mut trajectory =
            run(vec![Step::new(Role::System, "sys"), assistant("go", &[]), Step::new(Role::User, "x")]);
        assert!(shown(&trajectory).1.iter().any(|w| w.contains("does not tell its task")));
        trajectory.task = Some("fix it".into());
        let (messages, _) = shown(&trajectory);
        assert_eq!(messages, ["system! 0: sys", "user! 0: fix it", "assistant 1 =0: go", "user 1: x"]);
        trajectory.steps.insert(1, Step::new(Role::User, "told"));
        assert_eq!(shown(&trajectory).0[1], "user! 0: told");
    }

    #[test]
    fn a_result_is_named_by_itself_by_its_id_or_by_its_order() {
        let steps = vec![
            Step::new(Role::User, "task"),
            assistant("", &[("1", "a")]),
            result(Some("1"), None, "by id"),
            assistant("", &[("1", "b")]),
            result(None, None, "by order"),
            assistant("", &[("1", "c")]),
            result(Some("1"), Some("own"), "by itself"),
            result(Some("1"), Some(""), "a second one"),
        ];
        let (messages, _) = shown(&run(steps));
        let results: Vec<_> = messages.iter().filter(|m| m.contains("EXECUTION")).collect();
        assert_eq!(
            results,
            [
                "user 1: EXECUTION RESULT of [a]:/by id",
                "user 2: EXECUTION RESULT of [b]:/by order",
                "user 3: EXECUTION RESULT of [own]:/by itself",
                "user 3: EXECUTION RESULT of [function]:/a second one",
            ]
        );
    }

    #[test]
    fn repeated_ids_within_a_message_pair_in_order() {
        let steps = vec![
            Step::new(Role::User, "task"),
            assistant("both", &[("x", "a"), ("x", "b")]),
            result(Some("x"), None, "1"),
            result(Some("x"), None, "2"),
        ];
        let (messages, warnings) = shown(&run(steps));
        assert_eq!(
            messages[1..],
            [
                "assistant 1: both//<function=a>/</function>",
                "user 1: EXECUTION RESULT of [a]:/1",
                "assistant 1 =0: <function=b>/</function>",
                "user 1: EXECUTION RESULT of [b]:/2",
            ]
        );
        assert_eq!(warnings.len(), 1, "only the missing tool descriptions: {warnings:?}");
    }

    #[test]
    fn the_last_actions_calls_need_no_result() {
        let steps = vec![Step::new(Role::User, "task"), assistant("end", &[("1", "finish"), ("2", "stop")])];
        let (messages, warnings) = shown(&run(steps));
        assert_eq!(messages[2], "assistant 1 =0: <function=stop>/</function>");
        assert!(!warnings.iter().any(|w| w.contains("no result")), "{warnings:?}");
    }

    #[test]
    fn a_run_without_actions_is_only_its_opening() {
        let (messages, _) = shown(&run(vec![Step::new(Role::System, "sys"), Step::new(Role::User, "task")]));
        assert_eq!(messages, ["system! 0: sys", "user! 0: task"]);
        assert_eq!(shown(&run(Vec::new())).0, Vec::<String>::new());
    }
}
