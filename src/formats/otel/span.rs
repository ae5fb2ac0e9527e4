//! A span as all dialects have it, with what a trajectory needs and nothing more.

use super::super::document::Row;
use super::super::field;
use super::super::json::{Map, Value};
use crate::trajectory::{RawPlace, Step, Tokens};

/// What a span is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// A call of the model.
    Model,
    /// A call of a tool.
    Tool,
    /// An agent at work: a frame around others.
    Agent,
    /// Anything else.
    #[default]
    Other,
}

/// A span.
#[derive(Debug, Clone, Default)]
pub struct Span {
    /// Trace it belongs to.
    pub trace: String,
    /// Its id.
    pub id: String,
    /// The id of the span around it.
    pub parent: Option<String>,
    /// What it is about.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// By what spans of one trace are put in order.
    pub start: String,
    /// What the model was told (model calls), oldest first.
    pub input: Vec<Step>,
    /// What came of it: the model's answer, a tool's result, what other spans have to tell.
    pub output: Vec<Step>,
    /// The model.
    pub model: Option<String>,
    /// Tokens of a model call.
    pub tokens: Option<Tokens>,
    /// US dollars of a model call.
    pub cost: Option<f64>,
    /// Conversation or session.
    pub session: Option<String>,
    /// The benchmark instance, where somebody noted it.
    pub instance: Option<String>,
    /// The agent's name.
    pub agent: Option<String>,
    /// It failed, with this message.
    pub error: Option<String>,
    /// Where it stands.
    pub raw: RawPlace,
}

/// Where a part of a row stands.
pub fn place(row: Row<'_>, pointer: String) -> RawPlace {
    let pointer = if row.span.len == 0 { format!("/{}{pointer}", row.record) } else { pointer };
    RawPlace { span: row.span, pointer: pointer.into(), ..RawPlace::default() }
}

/// A time as a key to sort by: numbers (also in text) with leading zeros, times of day as they are.
pub fn order(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{text:0>24}")
        }
        Some(Value::String(text)) => text.to_string(),
        Some(number) => field::count(number).map_or_else(String::new, |n| format!("{n:0>24}")),
        None => String::new(),
    }
}

/// The first of these attributes that is a text that is not empty.
pub fn text(attributes: &Map<'_>, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|k| attributes.get(k).and_then(field::scalar_text)).filter(|t| !t.is_empty())
}

/// The first of these attributes that is a count.
pub fn count(attributes: &Map<'_>, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|k| attributes.get(k).and_then(field::count))
}
