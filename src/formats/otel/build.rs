//! From the spans of one trace to a trajectory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use super::super::chat;
use super::span::{Kind, Span};
use crate::trajectory::{Diagnostic, Role, Severity, Step, Tokens, Trajectory, Usage};

/// The spans of one trace, as they come. Messages that are repeated in many calls are kept once.
#[derive(Default)]
pub struct Trace {
    spans: Vec<Kept>,
    told: HashMap<u64, Arc<Step>>,
}

/// A span whose input messages are known by their hashes.
struct Kept {
    span: Span,
    input: Vec<u64>,
}

/// What makes two messages the same: who speaks, the text, the calls. Ids are left out: not everybody repeats them.
fn print(step: &Step) -> u64 {
    let mut hasher = DefaultHasher::new();
    (step.role == Role::Assistant, step.role == Role::Tool).hash(&mut hasher);
    if step.role == Role::Assistant && !step.calls.is_empty() {
        for call in &step.calls {
            call.name.hash(&mut hasher);
            // Blanks in the arguments do not survive being read and written again.
            let bare: String = call.arguments.chars().filter(|c| !c.is_whitespace()).collect();
            bare.hash(&mut hasher);
        }
    } else {
        step.text.trim().hash(&mut hasher);
    }
    hasher.finish()
}

impl Trace {
    /// Takes a span in.
    pub fn add(&mut self, mut span: Span) {
        let mut input = Vec::with_capacity(span.input.len());
        for mut step in std::mem::take(&mut span.input) {
            let hash = print(&step);
            input.push(hash);
            self.told.entry(hash).or_insert_with(|| {
                step.raw = span.raw.clone();
                Arc::new(step)
            });
        }
        self.spans.push(Kept { span, input });
    }

    /// The trajectory: leaf calls of the model in order of time, what was new before each, and results of tools.
    pub fn trajectory(mut self, id: &str) -> Trajectory {
        let frames = frames(&self.spans);
        // Stable: spans of the same time stay in order of the file. A frame begins before what is in it.
        self.spans.sort_by(|a, b| a.span.start.cmp(&b.span.start));
        let mut writer = Writer { told: self.told, ..Writer::default() };
        let mut out = Trajectory { session: Some(id.to_owned()).filter(|id| !id.is_empty()), ..Trajectory::default() };
        for kept in self.spans {
            let span = &kept.span;
            out.model = out.model.take().or_else(|| span.model.clone());
            out.agent = out.agent.take().or_else(|| span.agent.clone());
            out.instance_id = out.instance_id.take().or_else(|| span.instance.clone());
            out.session = span.session.clone().or(out.session);
            out.error = out.error.take().or_else(|| span.error.clone().filter(|_| span.parent.is_none()));
            // A call that holds another one (a framework's around the client's) says the same again.
            let frame = span.kind == Kind::Model && frames.contains(&span.id);
            if !frame {
                writer.write(kept);
            }
        }
        writer.finish(&mut out);
        out
    }
}

/// Ids of spans that have a model call somewhere below them.
fn frames(spans: &[Kept]) -> HashSet<String> {
    let parents: HashMap<&str, &str> =
        spans.iter().filter_map(|k| Some((k.span.id.as_str(), k.span.parent.as_deref()?))).collect();
    let mut frames = HashSet::new();
    for kept in spans.iter().filter(|k| k.span.kind == Kind::Model) {
        let mut at = kept.span.parent.as_deref();
        // Broken traces may go round: a span that is known ends the way up.
        while let Some(id) = at.filter(|id| *id != kept.span.id) {
            if !frames.insert(id.to_owned()) {
                break;
            }
            at = parents.get(id).copied();
        }
    }
    frames
}

#[derive(Default)]
struct Writer {
    told: HashMap<u64, Arc<Step>>,
    steps: Vec<Step>,
    /// How often each message was written.
    written: HashMap<u64, usize>,
    /// Calls whose result was written.
    answered: HashSet<String>,
    usage: Vec<Tokens>,
    cost: Option<f64>,
    calls: u64,
    silent: u64,
}

impl Writer {
    fn write(&mut self, kept: Kept) {
        match kept.span.kind {
            Kind::Model => self.model(kept),
            Kind::Tool => self.tool(kept.span),
            Kind::Agent | Kind::Other => {
                let error = kept.span.error.clone();
                for mut step in kept.span.output {
                    step.raw = kept.span.raw.clone();
                    step.is_error = step.is_error.or_else(|| error.as_ref().map(|_| true));
                    self.push(step);
                }
            }
        }
    }

    fn push(&mut self, step: Step) {
        *self.written.entry(print(&step)).or_default() += 1;
        self.steps.push(step);
    }

    fn model(&mut self, kept: Kept) {
        let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
        for hash in &kept.input {
            let nth = seen.entry(*hash).or_default();
            *nth += 1;
            if *nth <= self.written.get(hash).copied().unwrap_or(0) {
                continue;
            }
            let Some(step) = self.told.get(hash) else { continue };
            let mut step = step.as_ref().clone();
            // The result stands there already, with the tool's own span.
            if step.role == Role::Tool && step.call_id.as_ref().is_some_and(|id| !self.answered.insert(id.clone())) {
                continue;
            }
            // Answers that no call of this trace gave were brought along: examples, or another session.
            step.is_demo |= step.role == Role::Assistant;
            self.push(step);
        }
        let span = kept.span;
        self.calls += 1;
        self.usage.extend(span.tokens);
        self.cost = match (self.cost, span.cost) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        let mut answers = span.output;
        if answers.is_empty() {
            self.silent += 1;
            answers.push(Step::new(Role::Assistant, ""));
        }
        let mut first = true;
        for mut step in answers {
            step.raw = span.raw.clone();
            step.timestamp = Some(span.start.trim_start_matches('0').to_owned()).filter(|t| !t.is_empty());
            if step.role == Role::Assistant && std::mem::take(&mut first) {
                step.tokens = span.tokens;
                step.cost = span.cost;
            }
            self.push(step);
        }
        self.failed(span.error.as_deref(), &span.raw);
    }

    fn tool(&mut self, span: Span) {
        for mut step in span.output {
            let call = step.calls.pop();
            if step.call_id.as_ref().is_some_and(|id| !self.answered.insert(id.clone())) {
                continue;
            }
            let name = step.tool_name.clone().unwrap_or_default();
            let asked = self.steps.iter().rev().take(32).any(|s| s.calls.iter().any(|c| c.name == name));
            // Nobody wrote down the call: then it is told with its result.
            if let (Some(call), false) = (call, asked) {
                let line = format!("{}({})", call.name, call.arguments);
                step.text = if step.text.is_empty() { line } else { format!("{line}\n{}", step.text) };
            }
            step.is_error = span.error.as_ref().map(|_| true);
            step.raw = span.raw.clone();
            if let (true, Some(error)) = (step.text.is_empty(), &span.error) {
                step.text.clone_from(error);
            }
            self.push(step);
        }
    }

    fn failed(&mut self, error: Option<&str>, raw: &crate::trajectory::RawPlace) {
        if let Some(error) = error {
            let mut step = Step::new(Role::Meta, format!("error: {error}"));
            step.is_error = Some(true);
            step.raw = raw.clone();
            self.push(step);
        }
    }

    fn finish(mut self, out: &mut Trajectory) {
        chat::name_tools(&mut self.steps);
        if self.silent > 0 {
            let text = format!("{} model calls hold no messages: their content was not recorded", self.silent);
            out.diagnostics.push(Diagnostic::new(Severity::Info, "trace.no-content", text));
        }
        out.steps = self.steps;
        let counted = !self.usage.is_empty();
        let cached: Vec<u64> = self.usage.iter().filter_map(|t| t.cached).collect();
        out.usage = Usage {
            cost: self.cost,
            tokens_in: Some(self.usage.iter().map(|t| t.input).sum()).filter(|_| counted),
            tokens_cached: Some(cached.iter().sum()).filter(|_| !cached.is_empty()),
            tokens_out: Some(self.usage.iter().map(|t| t.output).sum()).filter(|_| counted),
            api_calls: Some(self.calls).filter(|n| *n > 0),
        };
    }
}
