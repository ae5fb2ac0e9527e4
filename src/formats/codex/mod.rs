//! Codex CLI: rollouts (with the envelope of today and without, as lines and as one object) and the stream of
//! `codex exec --json`.
//!
//! A rollout holds everything twice: the items that were sent to and came from the model, and the events the screen
//! was drawn from. The items are shown; of the events, tokens and what ended a turn. Only where there are no items
//! the events are shown.

mod exec;
mod items;

use self::items::Item;
use super::json::Value;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{field, session};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Step, Tokens, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "codex-rollout",
        name: "Codex rollout",
        writer: "Codex CLI and its forks",
        recognised: "records of `timestamp`, `type`, `payload`; before September 2025 bare items behind a header",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_rollout, decode },
    },
    Format {
        id: "codex-exec",
        name: "Codex exec stream",
        writer: "codex exec --json",
        recognised: "`type` thread.started, turn.started, item.completed",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: exec::sniff, decode: exec::decode },
    },
    Format {
        id: "codex-companion",
        name: "Codex bookkeeping",
        writer: "Codex CLI",
        recognised: "prompts with `session_id`, `ts`, `text`; names of threads",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_companion, decode: |_| Decoded::default() },
    },
];

/// What lies beside the rollouts: the prompts of all sessions, and their names.
fn sniff_companion(sniff: &Sniff<'_>) -> Option<Match> {
    let prompts = sniff.has_all(&["session_id", "ts", "text"]);
    let names = sniff.has_all(&["id", "thread_name", "updated_at"]);
    if prompts || names { Match::some(Confidence::Likely, "prompts or names of sessions") } else { None }
}

/// Kinds of record of the envelope.
const ENVELOPE: [&str; 6] = ["session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"];

fn sniff_rollout(sniff: &Sniff<'_>) -> Option<Match> {
    if let Some(root) = sniff.object() {
        let items = root.get("items").is_some_and(Value::is_array);
        if items && root.get("session").is_some_and(|s| s.get("id").is_some()) {
            return Match::some(Confidence::Certain, "`session` and its `items`");
        }
    }
    let enveloped = |r: &&Value| {
        let kind = field::str(r, "type").is_some_and(|t| ENVELOPE.contains(&t));
        kind && r.get("payload").is_some_and(Value::is_object)
    };
    if sniff.rows.iter().any(enveloped) {
        return Match::some(Confidence::Certain, "records of `type` and `payload`");
    }
    let first = sniff.rows.first()?;
    let header = first.get("id").is_some() && first.get("timestamp").is_some() && first.get("type").is_none();
    let bare = |r: &&Value| {
        let item = field::str(r, "type").is_some_and(|t| {
            ["message", "reasoning", "function_call", "function_call_output", "local_shell_call"].contains(&t)
        });
        item || r.get("record_type").is_some()
    };
    if header && sniff.rows.len() > 1 && sniff.rows.iter().skip(1).all(bare) {
        return Match::some(Confidence::Likely, "a header of `id` and `timestamp`, then items without an envelope");
    }
    None
}

#[derive(Default)]
struct Rollout {
    out: Trajectory,
    /// What the events say, kept until the first item comes.
    events: Vec<Step>,
    items: usize,
    /// Does the last step take further parts of the same answer?
    open: bool,
    total: Option<Tokens>,
    /// Tokens of an answer whose items are still to come.
    pending: Option<Tokens>,
    metas: usize,
    rolled_back: usize,
    tally: session::Tally,
}

fn decode(input: &Input<'_>) -> Decoded {
    let mut rollout = Rollout::default();
    let mut diagnostics = input.document.rows(|row| {
        let root = row.value;
        if let (Some(session), Some(items)) = (field::get(root, "session"), root.get("items").and_then(Value::as_array))
        {
            rollout.meta(session, RawPlace { pointer: "/session".into(), ..RawPlace::default() });
            for (i, item) in items.iter().enumerate() {
                rollout.item(item, None, RawPlace::element("/items", i));
            }
            return;
        }
        rollout.record(root, row.record == 0, RawPlace::record(row.span));
    });
    diagnostics.extend(rollout.tally_and_events());
    let mut out = rollout.out;
    out.format = input.format;
    session::complete(&mut out);
    let sums = session::totals(&out.steps);
    out.usage.tokens_in = rollout.total.map(|t| t.input);
    out.usage.tokens_cached = rollout.total.and_then(|t| t.cached);
    out.usage.tokens_out = rollout.total.map(|t| t.output);
    out.usage.api_calls = sums.api_calls;
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

impl Rollout {
    fn record(&mut self, record: &Value, first: bool, raw: RawPlace) {
        let time = field::get(record, "timestamp").and_then(session::time_of);
        let kind = field::str(record, "type").unwrap_or_default();
        match field::get(record, "payload").filter(|p| p.is_object()) {
            Some(payload) if ENVELOPE.contains(&kind) => self.enveloped(kind, payload, time, raw),
            Some(_) => self.unknown(kind, record, raw),
            None if first && field::get(record, "type").is_none() && record.get("id").is_some() => {
                self.meta(record, raw);
            }
            None if record.get("record_type").is_some() => self.tally.skip("state"),
            None => self.item(record, time, raw),
        }
    }

    fn enveloped(&mut self, kind: &str, payload: &Value, time: Option<String>, raw: RawPlace) {
        match kind {
            "session_meta" => self.meta(payload, raw),
            "response_item" => self.item(payload, time, raw),
            "event_msg" => self.event(payload, time, raw),
            "turn_context" => {
                if let Some(model) = field::text(payload, "model") {
                    match &self.out.model {
                        Some(now) if *now != model => self.other(session::note("model", &model), time, raw),
                        Some(_) => {}
                        None => self.out.model = Some(model),
                    }
                }
                self.tally.skip(kind);
            }
            // Its `replacement_history` repeats the whole conversation: left where it is.
            "compacted" => {
                let text = field::text(payload, "message").unwrap_or_default();
                self.other(session::note("compacted", &text), time, raw);
            }
            _ => self.tally.skip(kind),
        }
    }

    /// What the session is. A fork writes its parent's after its own: the first one counts.
    fn meta(&mut self, meta: &Value, raw: RawPlace) {
        self.metas += 1;
        if self.metas > 1 {
            let id = field::text(meta, "id").unwrap_or_default();
            return self.out.steps.push(Step { raw, ..session::note("forked from session", &id) });
        }
        let out = &mut self.out;
        out.session = field::text(meta, "id").or_else(|| field::text(meta, "session_id"));
        let spawned = ["source", "subagent", "thread_spawn", "parent_thread_id"];
        out.parent = field::str_at(meta, &spawned).map(str::to_owned).or_else(|| field::text(meta, "parent_thread_id"));
        let version = field::text(meta, "cli_version");
        let name = match field::str(meta, "originator") {
            Some(other) if !other.to_lowercase().contains("codex") => other.to_owned(),
            _ => "Codex CLI".to_owned(),
        };
        out.agent = Some(version.map_or(name.clone(), |v| format!("{name} {v}")));
        let prompt = field::text(meta, "instructions");
        let prompt = prompt.or_else(|| field::str_at(meta, &["base_instructions", "text"]).map(str::to_owned));
        if let Some(text) = prompt {
            out.steps.push(Step { raw, ..Step::new(Role::System, text) });
        }
    }

    fn item(&mut self, item: &Value, time: Option<String>, raw: RawPlace) {
        self.items += 1;
        self.events = Vec::new();
        match items::read(item) {
            Item::Part(step) => self.part(Step { timestamp: time, raw, ..step }),
            Item::Other(step) => self.other(step, time, raw),
            Item::Bookkeeping => self.tally.skip(field::str(item, "type").unwrap_or("item")),
            Item::Unknown => self.unknown(field::str(item, "type").unwrap_or("(none)"), item, raw),
        }
    }

    fn unknown(&mut self, kind: &str, record: &Value, raw: RawPlace) {
        self.tally.unknown(if kind.is_empty() { "(none)" } else { kind });
        self.out.steps.push(Step { raw, ..session::raw_step(kind, record) });
    }

    fn part(&mut self, mut step: Step) {
        if let (true, Some(last)) = (self.open, self.out.steps.last_mut()) {
            let shown = match (last.action.take(), step.action.take()) {
                (Some(a), Some(b)) => Some(format!("{a}\n{b}")),
                (a, b) => a.or(b),
            };
            session::add_part(last, step);
            last.action = shown;
            return;
        }
        step.tokens = self.pending.take();
        self.open = true;
        self.out.steps.push(step);
    }

    fn other(&mut self, mut step: Step, time: Option<String>, raw: RawPlace) {
        self.open = false;
        step.timestamp = time;
        step.raw = raw;
        self.out.steps.push(step);
    }

    fn event(&mut self, event: &Value, time: Option<String>, raw: RawPlace) {
        let kind = field::str(event, "type").unwrap_or("(none)");
        let text = ["message", "text", "reason"].iter().find_map(|k| field::text(event, k)).unwrap_or_default();
        match kind {
            "token_count" => self.tokens(event),
            "agent_reasoning_raw_content" => {
                let last = self.out.steps.last_mut().filter(|s| s.role == Role::Assistant && s.reasoning.is_none());
                match last {
                    Some(step) => step.reasoning = Some(text).filter(|t| !t.is_empty()),
                    None => self.echo(session::answer(String::new(), Some(text), Vec::new()), time, raw),
                }
                self.tally.skip(kind);
            }
            "error" | "stream_error" | "turn_aborted" | "warning" => {
                let is_error = Some(true).filter(|_| kind != "warning");
                if kind == "error" {
                    self.out.error = Some(text.clone());
                }
                self.other(Step { is_error, ..session::note(kind, &text) }, time, raw);
            }
            "thread_rolled_back" => {
                self.roll_back(field::get(event, "num_turns").and_then(field::count).unwrap_or(1));
                self.other(session::note(kind, ""), time, raw);
            }
            "user_message" | "agent_message" | "agent_reasoning" => {
                let step = match kind {
                    "user_message" => Step::new(Role::User, text),
                    "agent_message" => session::answer(text, None, Vec::new()),
                    _ => session::answer(String::new(), Some(text), Vec::new()),
                };
                self.echo(step, time, raw);
                self.tally.skip(kind);
            }
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" => {
                self.echo(ended(kind, event), time, raw);
                self.tally.skip(kind);
            }
            _ => self.tally.skip(kind),
        }
    }

    /// An event that repeats an item, kept in case there are no items at all.
    fn echo(&mut self, step: Step, time: Option<String>, raw: RawPlace) {
        if self.items == 0 {
            self.events.push(Step { timestamp: time, raw, ..step });
        }
    }

    /// Counts come before or behind the items of the answer they are of, and are repeated.
    fn tokens(&mut self, event: &Value) {
        self.tally.skip("token_count");
        let Some(total) = field::at(event, &["info", "total_token_usage"]).and_then(tokens) else { return };
        if self.total == Some(total) {
            return;
        }
        self.total = Some(total);
        let last = field::at(event, &["info", "last_token_usage"]).and_then(tokens);
        match self.out.steps.last_mut() {
            Some(step) if self.open && step.tokens.is_none() => step.tokens = last,
            _ => self.pending = last,
        }
    }

    /// Turns a person took back are no part of the conversation any more.
    fn roll_back(&mut self, turns: u64) {
        let prompts = self.out.steps.iter().enumerate().filter(|(_, s)| s.role == Role::User).map(|(i, _)| i);
        let prompts: Vec<usize> = prompts.collect();
        let from = prompts.len().checked_sub(turns as usize).and_then(|at| prompts.get(at)).copied();
        if let Some(from) = from {
            self.rolled_back += self.out.steps.len() - from;
            self.out.steps.truncate(from);
        }
    }

    fn tally_and_events(&mut self) -> Vec<Diagnostic> {
        let mut remarks = std::mem::take(&mut self.tally).finish();
        if self.items == 0 && !self.events.is_empty() {
            self.out.steps.append(&mut self.events);
            let text = "there are no items of the model: the events of the screen are shown";
            remarks.push(Diagnostic::new(Severity::Info, "codex.events-only", text));
        }
        if self.rolled_back > 0 {
            let text = format!("{} steps were rolled back and are left out", self.rolled_back);
            remarks.push(Diagnostic::new(Severity::Info, "codex.rolled-back", text));
        }
        remarks
    }
}

/// Token counts of OpenAI: what came from the cache is part of the input.
fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |key| field::get(usage, key).and_then(field::count);
    let cached = count("cached_input_tokens");
    Some(Tokens { input: count("input_tokens")?, cached, output: count("output_tokens").unwrap_or(0) })
}

/// The end of a command, where only events are there.
fn ended(kind: &str, event: &Value) -> Step {
    let outputs = ["aggregated_output", "formatted_output", "stdout"];
    let text = outputs.iter().find_map(|k| field::text(event, k)).unwrap_or_default();
    let mut step = session::result(field::text(event, "call_id"), text, None);
    step.exit_code = field::get(event, "exit_code").and_then(field::integer);
    let success = field::get(event, "success").and_then(field::truth);
    step.is_error = step.exit_code.map(|c| c != 0).or(success.map(|s| !s));
    step.tool_name = Some(kind.trim_end_matches("_end").to_owned());
    step
}

#[cfg(test)]
mod tests;
