//! Traces: OTLP (OpenTelemetry GenAI old and new, OpenLLMetry, OpenInference), the OpenAI Agents SDK, LangSmith.
//!
//! Whatever wrote it, a trace is a tree of spans; those of model calls hold the whole conversation each time. A trace
//! becomes one trajectory: every model call an action, with only what is new before it, and the spans of tools as
//! their results.

mod agents;
mod build;
mod langsmith;
mod messages;
mod otlp;
mod span;

use std::collections::BTreeMap;

use self::build::Trace;
use self::span::Span;
use super::document::Row;
use super::field;
use super::json::Value;
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{ByteSpan, Source};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "otlp",
        name: "OpenTelemetry trace",
        writer: "OTLP JSON exporters (GenAI conventions, OpenLLMetry, OpenInference)",
        recognised: "`resourceSpans`, or spans with `context` and `parent_id`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_otlp, decode: |input| decode(input, otlp::spans) },
    },
    Format {
        id: "agents-sdk",
        name: "OpenAI Agents SDK trace",
        writer: "openai-agents",
        recognised: "`object` is `trace` or `trace.span`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_agents, decode: |input| decode(input, agents::spans) },
    },
    Format {
        id: "langsmith",
        name: "LangSmith runs",
        writer: "LangSmith export",
        recognised: "rows with `run_type`, `trace_id` and `inputs`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_langsmith, decode: |input| decode(input, langsmith::spans) },
    },
];

fn sniff_otlp(sniff: &Sniff<'_>) -> Option<Match> {
    let list = |v: Option<&Value>| v.is_some_and(Value::is_array);
    if list(sniff.first("resourceSpans").or_else(|| sniff.first("resource_spans"))) {
        return Match::some(Confidence::Certain, "`resourceSpans`");
    }
    let first = *sniff.rows.first()?;
    let traces = field::list(first, "traces").first().map(|t| field::list(t, "spans"));
    let spans = traces.or_else(|| Some(field::list(first, "spans"))).and_then(<[Value]>::first);
    // The console exporter writes one span a line.
    let span = spans.or_else(|| Some(first).filter(|_| sniff.form != Form::Other))?;
    let fits = ["trace_id", "span_id"].iter().all(|k| field::at(span, &["context", k]).is_some());
    if fits { Match::some(Confidence::Certain, "spans with `context`") } else { None }
}

fn sniff_agents(sniff: &Sniff<'_>) -> Option<Match> {
    let is = |v: &Value| matches!(field::str(v, "object"), Some("trace" | "trace.span"));
    let first = *sniff.rows.first()?;
    let within = ["traces", "data", "spans"].iter().find_map(|k| field::list(first, k).first());
    if is(first) || within.is_some_and(is) {
        Match::some(Confidence::Certain, "`object` is `trace` or `trace.span`")
    } else {
        None
    }
}

fn sniff_langsmith(sniff: &Sniff<'_>) -> Option<Match> {
    let keys = sniff.has_all(&["run_type", "inputs"]) && (sniff.has("trace_id") || sniff.has("dotted_order"));
    if sniff.is_rows() && keys {
        return Match::some(Confidence::Certain, "rows with `run_type`, `trace_id` and `inputs`");
    }
    let first = field::list(sniff.rows.first()?, "runs").first()?;
    let nested = first.get("run_type").is_some() && first.get("inputs").is_some();
    if nested { Match::some(Confidence::Certain, "`runs` with `run_type`") } else { None }
}

/// Collects the spans of every trace, then makes a trajectory of each, in order of their first spans in the file.
fn decode(input: &Input<'_>, spans: fn(Row<'_>, &mut dyn FnMut(Span))) -> Decoded {
    let mut order: Vec<String> = Vec::new();
    let mut traces: BTreeMap<String, Trace> = BTreeMap::new();
    let diagnostics = input.document.rows(|row| {
        spans(row, &mut |span| {
            if !traces.contains_key(&span.trace) {
                order.push(span.trace.clone());
            }
            traces.entry(span.trace.clone()).or_default().add(span);
        });
    });
    let mut decoded = Decoded { diagnostics, ..Decoded::default() };
    for id in order {
        let Some(trace) = traces.remove(&id) else { continue };
        let mut trajectory = trace.trajectory(&id);
        trajectory.format = input.format;
        let span = ByteSpan { start: 0, len: input.document.size() };
        trajectory.source = Source { span, record: decoded.trajectories.len(), ..Source::default() };
        decoded.trajectories.push(trajectory);
    }
    decoded
}

#[cfg(test)]
mod tests;
