//! The neutral model every trajectory format turns into: plain data, no I/O, no terminal, no model.
//!
//! A [`Trajectory`] is one *attempt* of an agent at one *instance* (an issue). It is an ordered list of
//! [`Step`]s: what the agent was told, what it answered, what the environment returned. An **action** is an
//! assistant step; it is what a critic gives a reward to. Texts are kept as the file holds them (the critic and
//! the exporter need the original bytes); they are made safe for a screen by `crate::text`.

mod diagnostics;
mod join;
mod unread;

pub use diagnostics::{Diagnostic, Place, Severity};
pub use join::{
    Attempt, Dataset, FileReport, Issue, IssueId, JoinLine, Joined, Label, Prediction, Rule, RunReport, account, join,
    summary,
};
pub use unread::{Body, Ledger};

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A half-open range of bytes in a (decompressed) file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteSpan {
    /// Offset of the first byte.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
}

/// Where a trajectory came from: enough to find its raw bytes again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The file, as it was given or found below a given folder.
    pub path: PathBuf,
    /// 0-based number of the record in the file (always 0 for one-trajectory files).
    pub record: usize,
    /// Bytes of the record in the decompressed file.
    pub span: ByteSpan,
}

/// Where the raw record of a step stands, so that it can be shown exactly as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawPlace {
    /// The file, where it is not the trajectory's own (a folder of events).
    pub file: Option<Arc<Path>>,
    /// Bytes of the record in the (decompressed) file; empty = the record of the whole trajectory.
    pub span: ByteSpan,
    /// JSON pointer (RFC 6901) into that record: `"/history/12"`; empty = all of it. It may lead through a string that
    /// holds JSON. The record of a trajectory that is an element of a list, with an empty `Source::span`, is the file.
    pub pointer: Box<str>,
    /// Further records of the same file that the step was put together from: an answer written in several lines.
    pub also: Vec<ByteSpan>,
}

impl RawPlace {
    /// Takes in the place of another part of the same step.
    pub fn add(&mut self, other: &Self) {
        if other.file == self.file && other.span.len > 0 && other.span != self.span {
            self.also.push(other.span);
        }
        self.also.extend(&other.also);
    }

    /// A whole record of JSON lines.
    pub fn record(span: ByteSpan) -> Self {
        Self { span, ..Self::default() }
    }

    /// Element `index` of the list at `pointer` in the trajectory's own record (`""` when the record is the list).
    pub fn element(pointer: &str, index: usize) -> Self {
        let digits = index.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut place = String::with_capacity(pointer.len() + 1 + digits);
        place.push_str(pointer);
        place.push('/');
        place.push_str(&index.to_string());
        Self { pointer: place.into(), ..Self::default() }
    }
}

/// Names one trajectory among all that are loaded: what requests and results are matched by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrajectoryKey {
    /// The file.
    pub path: PathBuf,
    /// 0-based record in it.
    pub record: usize,
}

/// Who speaks in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// System prompt.
    System,
    /// The person or the harness: the task, a reminder, an observation written as a user message.
    User,
    /// The agent: every assistant step is one action.
    Assistant,
    /// The environment's answer to an action (tool result, command output).
    Tool,
    /// Anything the model never saw (state changes, meta records, feedback of a supervisor, errors of the harness).
    Meta,
}

/// One call of a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall {
    /// Call id; empty when the format has none (ids may repeat: pair by id and order).
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Arguments exactly as written: usually a JSON object as text, possibly invalid or empty.
    pub arguments: String,
}

/// A tool the agent had, as far as the file tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolSpec {
    /// Tool name.
    pub name: String,
    /// Description shown to the model.
    pub description: String,
    /// JSON schema of the parameters, as JSON text (empty if none).
    pub parameters: String,
}

/// Tokens of the model call that made a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Prompt tokens, those read from or written to a cache included.
    pub input: u64,
    /// How many of them were read from a cache, where that is given.
    pub cached: Option<u64>,
    /// Completion tokens, reasoning included.
    pub output: u64,
}

/// One entry of a trajectory.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Who speaks.
    pub role: Role,
    /// Content, original bytes (as UTF-8; invalid bytes replaced by U+FFFD). For an assistant step: what it wrote,
    /// tool calls given natively excluded.
    pub text: String,
    /// Reasoning kept apart from the content (`reasoning_content`, thinking blocks).
    pub reasoning: Option<String>,
    /// Native tool calls of an assistant step.
    pub calls: Vec<ToolCall>,
    /// The command or call found *inside* the text by the format's own rule (SWE-agent's `action`, a fenced block):
    /// for display; `text` still holds everything the model wrote.
    pub action: Option<String>,
    /// What the assistant wrote around the command, where the format gives it apart (SWE-agent's `thought`).
    pub thought: Option<String>,
    /// For a tool step: id of the call it answers.
    pub call_id: Option<String>,
    /// For a tool step: name of the tool it answers.
    pub tool_name: Option<String>,
    /// The environment said this failed (`is_error`, error observation, non-zero exit code).
    pub is_error: Option<bool>,
    /// Exit code of the command, where given.
    pub exit_code: Option<i64>,
    /// Timestamp as written.
    pub timestamp: Option<String>,
    /// US dollars of the model call that made this step; `None` = unknown, never 0 for "not given".
    pub cost: Option<f64>,
    /// Tokens of the model call that made this step; `None` = unknown.
    pub tokens: Option<Tokens>,
    /// A demonstration, or a message copied from another session that is not part of this attempt: never an action,
    /// never counted in totals.
    pub is_demo: bool,
    /// The writer's own id of the message or event, where it is unique (Claude Code `uuid`, an event's `id`): what
    /// copies in resumed and forked sessions are found by.
    pub id: Option<Box<str>>,
    /// Where its raw record stands.
    pub raw: RawPlace,
}

impl Step {
    /// An otherwise empty step.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            text: text.into(),
            reasoning: None,
            calls: Vec::new(),
            action: None,
            thought: None,
            call_id: None,
            tool_name: None,
            is_error: None,
            exit_code: None,
            timestamp: None,
            cost: None,
            tokens: None,
            is_demo: false,
            id: None,
            raw: RawPlace::default(),
        }
    }

    /// Is this step an action, that is, does a critic give it a reward?
    pub fn is_action(&self) -> bool {
        self.role == Role::Assistant && !self.is_demo
    }
}

/// Position of an action among a trajectory's actions: 0 is the first assistant step. This is the `action` of
/// scores and drops everywhere, on screen counted from 1.
pub type ActionIx = usize;

/// What the hidden tests said of the attempt's patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Outcome {
    /// All FAIL_TO_PASS and PASS_TO_PASS tests pass.
    Resolved,
    /// Evaluated and not resolved.
    Unresolved,
    /// Nobody evaluated it, or no label was found. Not the same as unresolved.
    #[default]
    Unknown,
}

impl Outcome {
    /// `true`, `false` or `None` for unknown (the JSON form).
    pub fn as_bool(self) -> Option<bool> {
        match self {
            Self::Resolved => Some(true),
            Self::Unresolved => Some(false),
            Self::Unknown => None,
        }
    }

    /// From the JSON form.
    pub fn from_bool(value: Option<bool>) -> Self {
        match value {
            Some(true) => Self::Resolved,
            Some(false) => Self::Unresolved,
            None => Self::Unknown,
        }
    }
}

/// Totals that the file itself gives. `None` means "not given", never zero.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// US dollars of the whole attempt.
    pub cost: Option<f64>,
    /// Prompt tokens, those read from or written to a cache included.
    pub tokens_in: Option<u64>,
    /// How many of them were read from a cache, where that is given.
    pub tokens_cached: Option<u64>,
    /// Completion tokens.
    pub tokens_out: Option<u64>,
    /// Calls of the model.
    pub api_calls: Option<u64>,
}

/// One attempt of an agent at one instance.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trajectory {
    /// Where it was read.
    pub source: Source,
    /// Id of the format in `formats::FORMATS` (`"sweagent-1"`, …).
    pub format: &'static str,
    /// The issue attempted; `None` when neither the file nor its name says.
    pub instance_id: Option<String>,
    /// What tells this attempt from others at the same instance, as the file itself says it (run id, attempt
    /// number); `join` makes a unique label where this is missing.
    pub attempt: Option<String>,
    /// The session or conversation id the file gives this trajectory.
    pub session: Option<String>,
    /// The session this one was started by, for the trajectory of a sub-agent: shown below it, never ranked as an
    /// attempt.
    pub parent: Option<String>,
    /// Agent scaffold (`"SWE-agent"`, `"CodeActAgent"`, …).
    pub agent: Option<String>,
    /// Model the agent used.
    pub model: Option<String>,
    /// Issue text where the file gives it apart from the steps.
    pub task: Option<String>,
    /// Tools described in the file.
    pub tools: Vec<ToolSpec>,
    /// Everything that happened, in file order. Empty while `body` says that the steps are not in memory.
    pub steps: Vec<Step>,
    /// Are the steps here, and if not, what is known of them?
    pub body: Body,
    /// What stays of the steps that were let go.
    pub ledger: Arc<Ledger>,
    /// The candidate patch exactly as the file holds it; `Some("")` = the file says the patch is empty,
    /// `None` = the file does not say. Never the gold patch.
    pub patch: Option<String>,
    /// Exit status as written.
    pub exit_status: Option<String>,
    /// Error text of the run.
    pub error: Option<String>,
    /// Label carried by the file itself.
    pub outcome: Outcome,
    /// Totals.
    pub usage: Usage,
    /// What was odd while reading.
    pub diagnostics: Vec<Diagnostic>,
}

impl Trajectory {
    /// Its name among all that are loaded.
    pub fn key(&self) -> TrajectoryKey {
        TrajectoryKey { path: self.source.path.clone(), record: self.source.record }
    }

    /// Indices into `steps` of the actions, in order: entry `i` is action `i`.
    pub fn action_steps(&self) -> Vec<usize> {
        self.steps.iter().enumerate().filter_map(|(i, s)| s.is_action().then_some(i)).collect()
    }

    /// Number of actions; 0 also while nobody has counted them (see [`known_actions`](Self::known_actions)).
    pub fn n_actions(&self) -> usize {
        self.known_actions().unwrap_or(0)
    }

    /// The steps that follow action `action` up to the next action (its observations), as a range into `steps`.
    /// Empty for the last action of an unfinished run, and for an action that does not exist.
    pub fn observations(&self, action: ActionIx) -> std::ops::Range<usize> {
        let steps = self.action_steps();
        let Some(&at) = steps.get(action) else {
            return 0..0;
        };
        let end = steps.get(action + 1).copied().unwrap_or(self.steps.len());
        at + 1..end
    }
}

/// Trajectories are read once and shared by the screen, the critic and the exporter.
pub type SharedTrajectory = Arc<Trajectory>;
