//! Claude Code: session files, the web's export of them, and the stream of `claude -p`.
//!
//! There is no public schema. A session is JSON lines in a tree ([`super::branches`]); one answer of the model is written as
//! several records, one for each block, which are one action here. Sub-agents write files of their own, or stand in
//! the session as *side chains*: each is a trajectory with the session as its parent.

mod record;

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use self::record::Kind as RecordKind;
use super::branches::{Node, Tree};
use super::json::Value;
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{field, session};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Source, Step, ToolSpec, Trajectory, Usage};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "claude-stream",
        name: "Claude Code stream",
        writer: "claude -p --output-format stream-json (or json)",
        recognised: "`type` system, assistant, user, result with `session_id`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_stream, decode },
    },
    Format {
        id: "claude-code",
        name: "Claude Code session",
        writer: "Claude Code, iFlow CLI",
        recognised: "`type` user and assistant with `message`, beside `uuid`, `sessionId` or `timestamp`; `loglines`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_session, decode },
    },
    Format {
        id: "claude-companion",
        name: "Claude Code bookkeeping",
        writer: "Claude Code",
        recognised: "prompts with `display` and `project`; an index of sessions; `agentType` alone",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_companion, decode: |_| Decoded::default() },
    },
];

/// What lies beside the sessions: the prompts of all projects, an index, what a sub-agent is.
fn sniff_companion(sniff: &Sniff<'_>) -> Option<Match> {
    let prompts = sniff.has_all(&["display", "timestamp", "project"]) && !sniff.has("message");
    let index = sniff.object().is_some_and(|o| {
        let entries = o.get("entries").and_then(Value::as_array);
        entries.is_some_and(|e| e.iter().take(5).all(|e| e.get("sessionId").is_some() && e.get("fullPath").is_some()))
            && o.contains_key("version")
    });
    let agent =
        sniff.object().is_some_and(|o| o.contains_key("agentType") && !o.contains_key("messages") && o.len() < 8);
    let found = prompts || index || agent;
    if found { Match::some(Confidence::Likely, "prompts, an index or the kind of an agent") } else { None }
}

/// A record of a conversation: who speaks, and a message object that says what.
fn speaks(record: &Value) -> bool {
    let kind = matches!(field::str(record, "type"), Some("user" | "assistant" | "message"));
    let message = field::object(record, "message");
    // Relatives of Gemini CLI keep `parts` in the message.
    kind && message.is_some_and(|m| (m.contains_key("content") || m.contains_key("role")) && !m.contains_key("parts"))
}

fn sniff_session(sniff: &Sniff<'_>) -> Option<Match> {
    if let Some(lines) = sniff.object().and_then(|o| o.get("loglines")).and_then(Value::as_array) {
        let spoken = lines.iter().take(60).any(speaks);
        return if spoken { Match::some(Confidence::Certain, "`loglines` of messages") } else { None };
    }
    let stamped = |r: &&&Value| ["uuid", "sessionId", "timestamp"].iter().any(|k| r.get(k).is_some());
    let found = sniff.rows.iter().filter(stamped).find(|r| speaks(r))?;
    let own = |key: &str| field::get(found, key).is_some();
    if found.get("session_id").is_some() || (own("id") && !own("uuid")) {
        return None;
    }
    if own("sessionId") && own("uuid") {
        Match::some(Confidence::Certain, "records with `uuid`, `sessionId` and `message`")
    } else {
        Match::some(Confidence::Likely, "records of `type` user and assistant with `message`")
    }
}

fn sniff_stream(sniff: &Sniff<'_>) -> Option<Match> {
    let named = |r: &&&Value| r.get("session_id").is_some_and(Value::is_string);
    let of = |kind: &str, subtype: bool| {
        let mut rows = sniff.rows.iter().filter(named);
        rows.any(|r| field::str(r, "type") == Some(kind) && (!subtype || r.get("subtype").is_some()))
    };
    let single = sniff.form == Form::Object && of("result", true);
    if of("system", true) || single || (of("result", true) && of("assistant", false)) {
        return Match::some(Confidence::Certain, "a stream of `system`, `assistant` and `result` with `session_id`");
    }
    let spoken = sniff.rows.iter().filter(named).any(|r| speaks(r) && r.get("parent_tool_use_id").is_some());
    if spoken { Match::some(Confidence::Certain, "messages with `session_id` and `parent_tool_use_id`") } else { None }
}

/// A step with its place among the others.
struct Entry {
    /// Its record in the tree, where it has a place there.
    node: Option<usize>,
    /// Which answer of the model it is a part of.
    answer: Option<usize>,
    step: Step,
}

/// The main conversation, or one of a sub-agent.
#[derive(Default)]
struct Thread {
    /// Id of the sub-agent; `None` for the main conversation.
    agent: Option<String>,
    session: Option<String>,
    record: usize,
    entries: Vec<Entry>,
}

#[derive(Default)]
struct Session {
    tree: Tree,
    threads: Vec<Thread>,
    by_agent: HashMap<Option<String>, usize>,
    /// Thread of each record in the tree.
    homes: Vec<usize>,
    answers: HashMap<(String, Option<String>), usize>,
    n_answers: usize,
    tally: session::Tally,
    said: HashSet<u64>,
    repeated: usize,
    /// iFlow writes every step of an answer as a sibling that repeats the step before.
    iflow: bool,
    version: Option<String>,
    model: Option<String>,
    tools: Vec<ToolSpec>,
    result: Option<Value<'static>>,
}

fn decode(input: &Input<'_>) -> Decoded {
    let mut session = Session::default();
    let list = input.document.list().is_some();
    let diagnostics = input.document.rows(|row| {
        let lines = field::list(row.value, "loglines");
        for (i, record) in lines.iter().enumerate() {
            session.add(record, i, &RawPlace::element("/loglines", i));
        }
        if lines.is_empty() {
            let raw = if list { RawPlace::element("", row.record) } else { RawPlace::record(row.span) };
            session.add(row.value, row.record, &raw);
        }
    });
    session.finish(input, diagnostics)
}

impl Session {
    fn add(&mut self, record: &Value, number: usize, raw: &RawPlace) {
        if self.bookkeeping(record, number) {
            return;
        }
        let read = record::read(record);
        let name = record::kind_name(record);
        match read.kind {
            RecordKind::Bookkeeping => return self.tally.skip(name),
            RecordKind::Unknown => self.tally.unknown(name),
            _ => {}
        }
        let answer = match &read.kind {
            RecordKind::Answer { message: Some(id), request } => {
                let next = self.n_answers;
                Some(*self.answers.entry((id.clone(), request.clone())).or_insert(next))
            }
            RecordKind::Answer { .. } => Some(self.n_answers),
            _ => None,
        };
        self.n_answers += usize::from(answer == Some(self.n_answers));
        let node = match (read.kind, answer) {
            (_, Some(which)) => Node::Answer(which),
            (RecordKind::Prompt, _) => Node::Prompt,
            _ => Node::Beside,
        };
        let home = self.home(record, number);
        let node = match field::str(record, "uuid") {
            Some(id) => {
                let parent = if self.iflow { None } else { field::str(record, "parentUuid") };
                // Written twice: a copy, unless it says something else.
                if !self.is_new(id, &read.steps) {
                    self.repeated += 1;
                    return;
                }
                let at = self.tree.add(id, parent, node);
                self.homes.extend(at.map(|_| home));
                at
            }
            None => None,
        };
        self.push(home, node, answer, read.steps, raw);
    }

    /// Takes note of what a record with this id says; `false` if the same was said before.
    fn is_new(&mut self, id: &str, steps: &[Step]) -> bool {
        let mut hasher = std::collections::hash_map::DefaultHasher::new();
        id.hash(&mut hasher);
        for step in steps {
            step.text.hash(&mut hasher);
            step.calls.iter().for_each(|c| c.arguments.hash(&mut hasher));
        }
        self.said.insert(hasher.finish())
    }

    fn push(&mut self, home: usize, node: Option<usize>, answer: Option<usize>, steps: Vec<Step>, raw: &RawPlace) {
        if let Some(thread) = self.threads.get_mut(home) {
            for mut step in steps {
                step.raw = raw.clone();
                thread.entries.push(Entry { node, answer, step });
            }
        }
    }

    /// What the record says about the session as a whole; `true` if there is nothing else in it.
    fn bookkeeping(&mut self, record: &Value, number: usize) -> bool {
        if self.version.is_none() {
            self.version = field::text(record, "version");
        }
        if self.model.is_none() {
            let named = field::str_at(record, &["message", "model"]).or_else(|| field::str(record, "model"));
            self.model = named.filter(|m| *m != "<synthetic>" && !m.is_empty()).map(str::to_owned);
        }
        self.iflow |= field::str(record, "sessionId").is_some_and(|id| id.starts_with("session-"));
        match (field::str(record, "type"), field::str(record, "subtype")) {
            (Some("system"), Some("init")) => {
                let names = field::list(record, "tools").iter().filter_map(Value::as_str);
                self.tools = names.map(|n| ToolSpec { name: n.to_owned(), ..ToolSpec::default() }).collect();
                self.tally.skip("init");
                self.home(record, number);
                true
            }
            (Some("result"), Some(_)) if record.get("session_id").is_some() => {
                self.tally.skip("result");
                self.home(record, number);
                self.result = Some(record.clone().into_owned());
                true
            }
            _ => false,
        }
    }

    /// The conversation a record belongs to.
    fn home(&mut self, record: &Value, number: usize) -> usize {
        let side = field::get(record, "isSidechain").and_then(field::truth) == Some(true);
        let caller = field::text(record, "parent_tool_use_id");
        let agent = if side {
            let parent = field::str(record, "parentUuid");
            let of_parent = parent.and_then(|p| self.tree.find(p)).and_then(|at| self.homes.get(at)).copied();
            if let Some(home) = of_parent.filter(|h| self.threads.get(*h).is_some_and(|t| t.agent.is_some())) {
                return home;
            }
            let named = field::text(record, "agentId").or_else(|| parent.map(str::to_owned));
            named.or_else(|| field::text(record, "uuid")).or_else(|| Some(String::new()))
        } else {
            caller
        };
        let next = self.threads.len();
        let home = *self.by_agent.entry(agent.clone()).or_insert(next);
        if home == next {
            self.threads.push(Thread { agent, record: number, ..Thread::default() });
        }
        let session = field::text(record, "sessionId").or_else(|| field::text(record, "session_id"));
        if let (Some(thread), Some(session)) = (self.threads.get_mut(home), session) {
            thread.session = Some(session);
        }
        home
    }

    fn finish(self, input: &Input<'_>, mut diagnostics: Vec<Diagnostic>) -> Decoded {
        let (live, abandoned) = self.tree.live();
        diagnostics.extend(self.tally.finish());
        if abandoned > 0 {
            let left = live.iter().filter(|l| !**l).count();
            let (n, s) = (abandoned, if abandoned == 1 { "" } else { "es" });
            let text = format!("{n} abandoned branch{s} (gone back, or asked again) with {left} records left out");
            diagnostics.push(Diagnostic::new(Severity::Info, "claude.abandoned", text));
        }
        if self.repeated > 0 {
            let text = format!("{} records are written twice: counted once", self.repeated);
            diagnostics.push(Diagnostic::new(Severity::Info, "claude.repeated", text));
        }
        let name = if self.iflow { "iFlow CLI" } else { "Claude Code" };
        let agent = self.version.map_or(name.to_owned(), |v| format!("{name} {v}"));
        let stem = input.path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let only_agents = self.threads.iter().all(|t| t.agent.is_some());
        let only = self.threads.len() == 1;
        let mut trajectories = Vec::new();
        for thread in self.threads {
            let main = thread.agent.is_none();
            let mut out = Trajectory {
                format: input.format,
                source: Source { record: if only { 0 } else { thread.record }, ..Source::default() },
                agent: Some(agent.clone()),
                model: self.model.clone(),
                steps: merged(thread.entries, &live, self.iflow),
                ..Trajectory::default()
            };
            if let Some(id) = thread.agent {
                let named = stem.strip_prefix("agent-").filter(|_| only_agents);
                out.session = named.map(str::to_owned).or(Some(id).filter(|id| !id.is_empty()));
                out.parent = thread.session;
            } else {
                out.session = thread.session;
                out.tools = self.tools.clone();
            }
            session::complete(&mut out);
            out.usage = session::totals(&out.steps);
            if let Some(result) = self.result.as_ref().filter(|_| main) {
                conclude(&mut out, result);
            }
            trajectories.push(out);
        }
        trajectories.sort_by_key(|t| (t.parent.is_some(), t.source.record));
        Decoded { trajectories, diagnostics, ..Decoded::default() }
    }
}

/// The live steps, with the parts of an answer in one.
fn merged(entries: Vec<Entry>, live: &[bool], iflow: bool) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut at: HashMap<usize, usize> = HashMap::new();
    let kept = entries.into_iter().filter(|e| e.node.is_none_or(|n| live.get(n) != Some(&false)));
    for Entry { answer, step, .. } in kept {
        let open = if iflow && step.role == Role::Assistant {
            steps.len().checked_sub(1).filter(|i| steps.get(*i).is_some_and(|s| s.role == Role::Assistant))
        } else {
            answer.and_then(|which| at.get(&which).copied())
        };
        if let Some(first) = open.and_then(|i| steps.get_mut(i)) {
            let tokens = record::larger(first.tokens, step.tokens);
            let known = |id: &str| !id.is_empty() && first.calls.iter().any(|c| c.id == id);
            let more = step.calls.iter().filter(|c| !known(&c.id)).cloned().collect();
            session::add_part(first, Step { calls: more, ..step });
            first.tokens = tokens;
            continue;
        }
        if let Some(which) = answer {
            at.insert(which, steps.len());
        }
        steps.push(step);
    }
    steps
}

/// The last record of a stream: how it ended and what it cost.
fn conclude(out: &mut Trajectory, result: &Value) {
    out.exit_status = field::text(result, "subtype");
    let said = field::text(result, "result");
    if field::get(result, "is_error").and_then(field::truth) == Some(true) {
        let errors: Vec<&str> = field::list(result, "errors").iter().filter_map(Value::as_str).collect();
        out.error = said.clone().or_else(|| Some(errors.join("\n")).filter(|e| !e.is_empty()));
    }
    if out.steps.is_empty() {
        out.steps.extend(said.map(|text| Step::new(Role::Assistant, text)));
    }
    let total = field::get(result, "usage").and_then(record::tokens);
    let cost = field::get(result, "total_cost_usd").and_then(field::number);
    out.usage = Usage {
        cost: field::honest_cost(cost, out.steps.iter().any(Step::is_action)),
        tokens_in: total.map(|t| t.input).or(out.usage.tokens_in),
        tokens_cached: total.map_or(out.usage.tokens_cached, |t| t.cached),
        tokens_out: total.map(|t| t.output).or(out.usage.tokens_out),
        api_calls: out.usage.api_calls,
    };
}

#[cfg(test)]
mod tests;
