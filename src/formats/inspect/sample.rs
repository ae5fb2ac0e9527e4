//! One sample of a log.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::super::json::Value;
use super::super::{chat, field};
use super::header::{Header, first_line};
use super::messages::{self, Attachments};
use super::{below, scores};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Step, Tokens, Trajectory, Usage};

/// Events that are part of what is shown anyway, or nothing for a reader.
const FOLDED: [&str; 15] = [
    "sample_init",
    "model",
    "tool",
    "state",
    "store",
    "step",
    "span_begin",
    "span_end",
    "subtask",
    "score",
    "logger",
    "sandbox",
    "anchor",
    "branch",
    "checkpoint",
];

/// A list in one piece, or in chunks of several files.
pub struct List<'a> {
    /// Chunks: where the first element stands (its list), and the elements.
    pub chunks: Vec<(RawPlace, Cow<'a, [Value<'a>]>)>,
}

impl<'a> List<'a> {
    /// A member of a sample that is one value.
    pub fn of(root: &RawPlace, sample: &'a Value<'a>, key: &str) -> Self {
        Self { chunks: vec![(below(root, &format!("/{key}")), Cow::Borrowed(field::list(sample, key)))] }
    }

    /// Elements with their places.
    fn iter(&self) -> impl Iterator<Item = (RawPlace, &Value<'a>)> {
        self.chunks.iter().flat_map(|(place, items)| {
            items.iter().enumerate().map(move |(i, value)| (below(place, &format!("/{i}")), value))
        })
    }

    fn values(&self) -> impl Iterator<Item = &Value<'a>> {
        self.chunks.iter().flat_map(|(_, items)| items.iter())
    }
}

/// Finds a text that is kept apart, by its hash.
pub type Find<'a> = Box<dyn Fn(&str) -> Option<String> + 'a>;

/// A sample, wherever its parts lie.
pub struct Parts<'a> {
    /// The sample itself.
    pub sample: &'a Value<'a>,
    /// Its place.
    pub root: RawPlace,
    /// Its messages.
    pub messages: List<'a>,
    /// Its events.
    pub events: List<'a>,
    /// Texts kept apart, by hash.
    pub attachment: Find<'a>,
}

impl<'a> Parts<'a> {
    /// A sample that is one value.
    pub fn whole(sample: &'a Value<'a>, root: &RawPlace) -> Self {
        Self {
            sample,
            root: root.clone(),
            messages: List::of(root, sample, "messages"),
            events: List::of(root, sample, "events"),
            attachment: Box::new(|hash| field::str_at(sample, &["attachments", hash]).map(str::to_owned)),
        }
    }
}

/// Reads a sample.
pub fn read(parts: &Parts<'_>, header: &Header) -> Trajectory {
    let sample = parts.sample;
    let attachments = Attachments::new(&*parts.attachment);
    let metadata = field::get(sample, "metadata").unwrap_or(&Value::Null);
    let scored = scores::of(sample);
    let epoch = field::get(sample, "epoch").and_then(field::count);
    let mut trajectory = Trajectory {
        instance_id: header.instance(sample.get("id").unwrap_or(&Value::Null), metadata),
        attempt: epoch.map(|n| format!("epoch {n}")),
        session: field::text(sample, "uuid"),
        agent: header.agent.clone(),
        model: header.model.clone().or_else(|| field::str_at(sample, &["output", "model"]).map(str::to_owned)),
        tools: tools(&parts.events),
        patch: scores::patch(sample),
        outcome: scored.outcome,
        usage: usage(sample),
        ..Trajectory::default()
    };
    ending(sample, &mut trajectory);
    trajectory.steps = retries(parts);
    let mut said = spoken(parts, &attachments, &mut trajectory.diagnostics);
    if said.is_empty() {
        said = asked(parts, &attachments);
    }
    chat::name_tools(&mut said);
    trajectory.steps.append(&mut said);
    give_times(&mut trajectory.steps, &parts.events);
    happened(parts, &attachments, &mut trajectory);
    if !scored.lines.is_empty() {
        let step = Step::new(Role::Meta, attachments.resolve(&scored.lines.join("\n\n")).into_owned());
        trajectory.steps.push(Step { raw: below(&parts.root, "/scores"), ..step });
    }
    trajectory.diagnostics.extend(scored.remark);
    if attachments.missing() > 0 {
        let text = format!("{} texts kept apart are not in the log: their references are shown", attachments.missing());
        trajectory.diagnostics.push(Diagnostic::new(Severity::Warning, "inspect.missing-attachment", text));
    }
    trajectory
}

/// The messages at the end; where they were compacted on the way (or are not kept), what the model was asked.
fn spoken(parts: &Parts<'_>, attachments: &Attachments<'_>, remarks: &mut Vec<Diagnostic>) -> Vec<Step> {
    let step = |(raw, message): (RawPlace, &Value)| Step { raw, ..messages::step(message, attachments) };
    let at_end: Vec<Step> = parts.messages.iter().map(step).collect();
    let compacted = parts.events.values().any(|e| field::str(e, "event") == Some("compaction"));
    if !at_end.is_empty() && !compacted {
        return at_end;
    }
    let all: Vec<Step> = exchanged(parts).into_iter().map(|(raw, message)| step((raw, message))).collect();
    let actions = |steps: &[Step]| steps.iter().filter(|s| s.role == Role::Assistant).count();
    if actions(&all) <= actions(&at_end) {
        return at_end;
    }
    let why = if compacted { "were compacted on the way" } else { "are not in the log" };
    let text = format!("the messages {why}: they are put together from the calls of the model");
    remarks.push(Diagnostic::new(Severity::Info, "inspect.from-events", text));
    all
}

/// Every message that went to the model or came from it, once, in order.
fn exchanged<'p>(parts: &'p Parts<'_>) -> Vec<(RawPlace, &'p Value<'p>)> {
    let pool = field::at(parts.sample, &["events_data", "messages"]).and_then(Value::as_array);
    let pool = pool.map_or(&[][..], Vec::as_slice);
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for (raw, event) in parts.events.iter().filter(|(_, e)| field::str(e, "event") == Some("model")) {
        let ranges = field::list(event, "input_refs").iter().filter_map(range);
        let referred = ranges.flat_map(|(from, to)| pool.get(from..to.min(pool.len())).unwrap_or_default());
        let answers = field::at(event, &["output", "choices"]).and_then(Value::as_array).into_iter().flatten();
        let answer = answers.filter_map(|c| field::get(c, "message")).take(1);
        for message in field::list(event, "input").iter().chain(referred).chain(answer) {
            let id = field::text(message, "id").unwrap_or_else(|| {
                // Without ids a message is known by what it says.
                let of = |key: &str| message.get(key).map(Value::to_string).unwrap_or_default();
                format!("{}\n{}\n{}", of("role"), of("content"), of("tool_calls"))
            });
            if seen.insert(id) {
                found.push((raw.clone(), message));
            }
        }
    }
    found
}

fn range(value: &Value) -> Option<(usize, usize)> {
    match value.as_array()?.as_slice() {
        [from, to] => Some((field::count(from)? as usize, field::count(to)? as usize)),
        _ => None,
    }
}

/// The input alone, for a sample that did not get further.
fn asked(parts: &Parts<'_>, attachments: &Attachments<'_>) -> Vec<Step> {
    let place = |pointer: &str| below(&parts.root, pointer);
    match field::get(parts.sample, "input") {
        Some(Value::Array(all)) => {
            let step =
                |(i, m): (usize, &Value)| Step { raw: place(&format!("/input/{i}")), ..messages::step(m, attachments) };
            all.iter().enumerate().map(step).collect()
        }
        Some(Value::String(text)) => {
            vec![Step { raw: place("/input"), ..Step::new(Role::User, attachments.resolve(text)) }]
        }
        _ => Vec::new(),
    }
}

/// Tries of this epoch that failed before.
fn retries(parts: &Parts<'_>) -> Vec<Step> {
    let retries = field::list(parts.sample, "error_retries").iter().enumerate();
    let step = |(i, error): (usize, &Value)| {
        let message = field::text(error, "message").unwrap_or_else(|| error.to_string());
        let mut step = Step::new(Role::Meta, format!("try {} failed: {message}", i + 1));
        step.raw = below(&parts.root, &format!("/error_retries/{i}"));
        step
    };
    retries.map(step).collect()
}

/// How it ended.
fn ending(sample: &Value, trajectory: &mut Trajectory) {
    trajectory.error = field::str_at(sample, &["error", "message"]).map(str::to_owned);
    let limit = field::get(sample, "limit").map(|limit| {
        let kind = field::text(limit, "type").unwrap_or_else(|| "unknown".to_owned());
        let number = field::get(limit, "limit").and_then(field::scalar_text).map(|n| format!(" {n}"));
        format!("limit: {kind}{}", number.unwrap_or_default())
    });
    let stop = || {
        let choice = field::at(sample, &["output", "choices"])?.as_array()?.first()?;
        field::text(choice, "stop_reason").filter(|reason| reason != "stop")
    };
    let failed = trajectory.error.as_ref().map(|_| "error".to_owned());
    trajectory.exit_status = limit.or(failed).or_else(stop);
}

/// Tokens of all models.
fn usage(sample: &Value) -> Usage {
    let mut sum = Usage::default();
    let add = |a: Option<u64>, b: Option<u64>| a.map(|a| a.saturating_add(b.unwrap_or(0))).or(b);
    for usage in field::object(sample, "model_usage").into_iter().flatten().map(|(_, usage)| usage) {
        let own = tokens(usage);
        sum.tokens_in = add(sum.tokens_in, own.map(|t| t.input));
        sum.tokens_cached = add(sum.tokens_cached, own.and_then(|t| t.cached));
        sum.tokens_out = add(sum.tokens_out, own.map(|t| t.output));
        let cost = field::get(usage, "total_cost").and_then(field::number);
        sum.cost = sum.cost.map(|c| c + cost.unwrap_or(0.0)).or(cost);
    }
    sum
}

fn tools(events: &List<'_>) -> Vec<crate::trajectory::ToolSpec> {
    let lists = events.values().filter(|e| field::str(e, "event") == Some("model")).map(|e| field::list(e, "tools"));
    lists.map(chat::tool_specs).find(|tools| !tools.is_empty()).unwrap_or_default()
}

/// Times and tokens of messages, from the calls they came from.
fn give_times(steps: &mut [Step], events: &List<'_>) {
    let mut known: BTreeMap<&str, (&str, Option<Tokens>)> = BTreeMap::new();
    for event in events.values() {
        let time = field::str(event, "timestamp").unwrap_or_default();
        let (id, tokens) = match field::str(event, "event") {
            Some("model") => {
                let choices = field::at(event, &["output", "choices"]).and_then(Value::as_array);
                let id = choices.and_then(|c| field::str_at(c.first()?, &["message", "id"]));
                (id, field::at(event, &["output", "usage"]).and_then(tokens))
            }
            Some("tool") => (field::str(event, "id"), None),
            _ => continue,
        };
        known.extend(id.map(|id| (id, (time, tokens))));
    }
    for step in steps.iter_mut().filter(|s| s.timestamp.is_none()) {
        let id = if step.role == Role::Tool { step.call_id.as_deref() } else { step.id.as_deref() };
        let Some((time, tokens)) = id.and_then(|id| known.get(id)) else { continue };
        step.timestamp = Some((*time).to_owned()).filter(|t| !t.is_empty());
        step.tokens = *tokens;
    }
}

/// Tokens of one model or call. Some providers leave cached tokens out of the input, so the total is asked first.
fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |key: &str| field::get(usage, key).and_then(field::count);
    let output = count("output_tokens");
    let input = count("total_tokens").zip(output).map(|(all, out)| all.saturating_sub(out));
    let input = input.or_else(|| count("input_tokens"))?;
    Some(Tokens { input, cached: count("input_tokens_cache_read"), output: output? })
}

/// Events that no message shows, behind the messages; the others are counted.
fn happened(parts: &Parts<'_>, attachments: &Attachments<'_>, trajectory: &mut Trajectory) {
    let mut folded: BTreeMap<&str, usize> = BTreeMap::new();
    for (raw, event) in parts.events.iter() {
        let kind = field::str(event, "event").unwrap_or("unknown");
        let between = kind == "score" && field::get(event, "intermediate").and_then(field::truth) == Some(true);
        let approved = kind == "approval" && field::str(event, "decision") == Some("approve");
        if (FOLDED.contains(&kind) && !between) || approved {
            let name = FOLDED.iter().find(|f| **f == kind).copied().unwrap_or("approval");
            *folded.entry(name).or_default() += 1;
            continue;
        }
        let mut step = Step::new(Role::Meta, attachments.resolve(&told(kind, event)).into_owned());
        step.timestamp = field::text(event, "timestamp");
        step.raw = raw;
        trajectory.steps.push(step);
    }
    if !folded.is_empty() {
        let counts: Vec<String> = folded.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let text = format!("events that the messages tell already: {}", counts.join(", "));
        trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "inspect.folded", text));
    }
}

/// An event in words; of those nobody knows, the beginning.
fn told(kind: &str, event: &Value) -> String {
    let says = |key: &str| field::get(event, key).map(field::json_text).filter(|t| !t.is_empty());
    let text = match kind {
        "error" => field::str_at(event, &["error", "message"]).map(|m| first_line(m).to_owned()),
        "sample_limit" => {
            let kind = says("type").unwrap_or_default();
            Some(format!("{kind} {}", says("message").unwrap_or_default()).trim().to_owned())
        }
        "info" => says("data"),
        "input" => says("input"),
        "approval" => {
            Some([says("decision"), says("explanation")].into_iter().flatten().collect::<Vec<_>>().join(": "))
        }
        _ => None,
    };
    let excerpt = || event.to_string().chars().take(300).collect::<String>();
    format!("{kind}: {}", text.unwrap_or_else(excerpt))
}
