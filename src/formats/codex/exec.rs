//! The stream of `codex exec --json`: items that start, change and end.

use std::collections::HashMap;

use super::super::json::Value;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{field, session};
use super::items;
use crate::trajectory::{RawPlace, Step, Tokens, Trajectory};

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let kinds = ["thread.started", "turn.started", "turn.completed", "turn.failed"];
    let known = |r: &&&Value| {
        let kind = field::str(r, "type").unwrap_or_default();
        kinds.contains(&kind) || kind.starts_with("item.") && r.get("item").is_some_and(Value::is_object)
    };
    let n = sniff.rows.iter().filter(known).count();
    let sure = n > 0 && n * 2 >= sniff.rows.len();
    if sure { Match::some(Confidence::Certain, "records of `type` thread., turn. and item.") } else { None }
}

#[derive(Default)]
struct Stream {
    out: Trajectory,
    /// The step that holds the call of an item, by the item's id.
    begun: HashMap<String, usize>,
    open: bool,
    used: Option<Tokens>,
    turns: u64,
    tally: session::Tally,
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut stream = Stream::default();
    let mut diagnostics = input.document.rows(|row| stream.record(row.value, RawPlace::record(row.span)));
    diagnostics.extend(stream.tally.finish());
    let mut out = stream.out;
    out.format = input.format;
    out.agent = Some("Codex CLI".to_owned());
    session::complete(&mut out);
    out.usage.tokens_in = stream.used.map(|t| t.input);
    out.usage.tokens_cached = stream.used.and_then(|t| t.cached);
    out.usage.tokens_out = stream.used.map(|t| t.output);
    if out.exit_status.is_none() && stream.turns > 0 {
        out.exit_status = Some("turn.completed".to_owned());
    }
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

impl Stream {
    fn record(&mut self, record: &Value, raw: RawPlace) {
        let kind = field::str(record, "type").unwrap_or("(none)");
        match (kind, field::get(record, "item")) {
            ("thread.started", _) => self.out.session = field::text(record, "thread_id"),
            ("turn.started", _) => self.open = false,
            ("turn.completed", _) => {
                self.turns += 1;
                self.open = false;
                let of_turn = field::get(record, "usage").and_then(super::tokens);
                self.used = match (self.used, of_turn) {
                    (Some(a), Some(b)) => Some(Tokens {
                        input: a.input.saturating_add(b.input),
                        cached: a.cached.zip(b.cached).map(|(a, b)| a.saturating_add(b)),
                        output: a.output.saturating_add(b.output),
                    }),
                    (a, b) => a.or(b),
                };
            }
            ("turn.failed" | "error", _) => {
                let places = [&["error", "message"][..], &["message"], &["error"]];
                let text = places.iter().find_map(|p| field::str_at(record, p)).unwrap_or_default();
                self.out.error = Some(text.to_owned());
                self.out.exit_status = Some(kind.to_owned());
                self.other(Step { is_error: Some(true), ..session::note(kind, text) }, raw);
            }
            ("item.started" | "item.updated" | "item.completed", Some(item)) => self.item(kind, item, &raw),
            _ => {
                self.tally.unknown(kind);
                self.other(session::raw_step(kind, record), raw);
            }
        }
    }

    fn item(&mut self, stage: &str, item: &Value, raw: &RawPlace) {
        let kind = field::str(item, "type").or_else(|| field::str(item, "item_type")).unwrap_or("(none)");
        let id = field::text(item, "id").unwrap_or_default();
        let done = stage == "item.completed";
        let text = field::text(item, "text").unwrap_or_default();
        match kind {
            "agent_message" | "assistant_message" | "reasoning" if !done => self.tally.skip(stage),
            "agent_message" | "assistant_message" => self.part(session::answer(text, None, Vec::new()), raw),
            "reasoning" => self.part(session::answer(String::new(), Some(text), Vec::new()), raw),
            "error" => {
                let text = field::text(item, "message").unwrap_or(text);
                self.other(Step { is_error: Some(true), ..session::note(kind, &text) }, raw.clone());
            }
            "command_execution" | "file_change" | "mcp_tool_call" | "web_search" | "todo_list" => {
                let call = items::exec_call(&id, kind, item);
                let known = self.begun.get(&id).copied().filter(|_| !id.is_empty());
                if let Some(step) = known.and_then(|at| self.out.steps.get_mut(at)) {
                    // What an item says when it ends is what it was.
                    if let Some(old) = step.calls.iter_mut().find(|c| c.id == id) {
                        *old = call;
                    }
                } else {
                    self.part(session::answer(String::new(), None, vec![call]), raw);
                    self.begun.insert(id.clone(), self.out.steps.len().saturating_sub(1));
                }
                if done && kind != "todo_list" && kind != "web_search" {
                    self.other(ended(id, item), raw.clone());
                }
            }
            _ => {
                self.tally.unknown(kind);
                self.other(session::raw_step(kind, item), raw.clone());
            }
        }
    }

    fn part(&mut self, step: Step, raw: &RawPlace) {
        let step = Step { raw: raw.clone(), ..step };
        match self.out.steps.last_mut() {
            // A message ends an answer, except that the reasoning before and the calls behind belong to it.
            Some(last) if self.open => session::add_part(last, step),
            _ => self.out.steps.push(step),
        }
        self.open = true;
    }

    fn other(&mut self, step: Step, raw: RawPlace) {
        self.open = false;
        self.out.steps.push(Step { raw, ..step });
    }
}

fn ended(id: String, item: &Value) -> Step {
    let output = ["aggregated_output", "output"].iter().find_map(|k| field::text(item, k));
    let mcp = || field::at(item, &["result", "content"]).map(session::text_of);
    let error = || field::str_at(item, &["error", "message"]).map(str::to_owned);
    let status = field::str(item, "status");
    let text = output.or_else(mcp).or_else(error).or_else(|| status.map(str::to_owned)).unwrap_or_default();
    let mut step = session::result(Some(id), text, None);
    step.exit_code = field::get(item, "exit_code").and_then(field::integer);
    step.is_error = step.exit_code.map(|c| c != 0).or(status.map(|s| s == "failed"));
    step
}
