//! OpenHands of both generations: evaluation rows, event lists and stores, conversations, dumps of model calls.

mod companions;
mod completions;
mod conversation;
mod events;
mod export;
mod forks;
mod list;
mod rows;
mod sdk;
mod store;
mod tools;

use std::collections::BTreeMap;

use super::field;
use super::json::Value;
use super::table::{Format, Kind, Reader};
use crate::trajectory::{Diagnostic, RawPlace, Severity, Step, ToolSpec, Trajectory, Usage};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "openhands-0",
        name: "OpenHands V0 output.jsonl",
        writer: "OpenHands (OpenDevin) evaluations to 2025, and its issue resolver",
        recognised: "rows with `instance_id` (or `issue`) and a `history` of actions and observations, flat or in pairs",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: rows::sniff_v0, decode: rows::decode },
    },
    Format {
        id: "openhands-1",
        name: "OpenHands V1 output.jsonl",
        writer: "OpenHands benchmarks on the software-agent SDK",
        recognised: "rows with `instance_id` and a `history` of events with `kind`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: rows::sniff_v1, decode: rows::decode },
    },
    Format {
        id: "openhands-0-events",
        name: "OpenHands V0 event list",
        writer: "OpenHands user interface, \"download trajectory\"",
        recognised: "a list of events with `action` or `observation`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: list::sniff_v0, decode: list::decode },
    },
    Format {
        id: "openhands-1-events",
        name: "OpenHands V1 event list",
        writer: "software-agent SDK",
        recognised: "a list of events with `kind`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: list::sniff_v1, decode: list::decode },
    },
    Format {
        id: "openhands-0-session",
        name: "OpenHands V0 session",
        writer: "OpenHands servers and headless runs (the event store)",
        recognised: "a folder with numbered files of events in `events`, or pages of them in `event_cache`",
        kind: Kind::Trajectory,
        reader: Reader::Folder { claim: store::claim, decode: store::decode },
    },
    Format {
        id: "openhands-1-conversation",
        name: "OpenHands V1 conversation",
        writer: "software-agent SDK, OpenHands-CLI",
        recognised: "a folder of `event-<number>-<id>.json`, usually below `events` beside `base_state.json`",
        kind: Kind::Trajectory,
        reader: Reader::Folder { claim: conversation::claim, decode: conversation::decode },
    },
    Format {
        id: "openhands-1-export",
        name: "OpenHands-CLI short export",
        writer: "OpenHands-CLI",
        recognised: "`conversation_id` and `events` with `event_file` and `text`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: export::sniff, decode: export::decode },
    },
    Format {
        id: "openhands-entries",
        name: "Trajectory visualizer entries",
        writer: "samples of the OpenHands trajectory visualizer",
        recognised: "an object with `entries` of `actorType` and `type`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: export::sniff_entries, decode: export::decode_entries },
    },
    Format {
        id: "llm-completions",
        name: "Folder of model calls",
        writer: "OpenHands `llm_completions` and the SDK's logs",
        recognised: "files `<model>-<unix time>.json` with `messages`, `response` and `kwargs`",
        kind: Kind::Trajectory,
        reader: Reader::Folder { claim: completions::claim, decode: completions::decode_folder },
    },
    Format {
        id: "llm-completion",
        name: "Dump of a model call",
        writer: "OpenHands `llm_completions` and the SDK's logs",
        recognised: "`messages`, `response` and `kwargs` of one call",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: completions::sniff, decode: completions::decode },
    },
    companions::METADATA,
    companions::FAILURES,
    companions::COSTS,
    companions::TIMING,
    companions::MULTI,
    companions::STATE,
];

/// Steps of a history, and what came with them.
#[derive(Debug, Default)]
struct Read {
    steps: Vec<Step>,
    tools: Vec<ToolSpec>,
    /// Model named by the answers.
    model: Option<String>,
    /// Calls written from an event's arguments, because the model's own text is not in the file.
    rebuilt: usize,
    /// Events met a second time and left out.
    repeated: usize,
    /// Events that hold nothing for a reader and are not shown.
    unshown: usize,
    /// Events of kinds this program does not know, by kind.
    unknown: BTreeMap<String, usize>,
    /// Times the critic sent the agent back to work.
    refinements: usize,
    /// Last score of the run's own critic.
    critic: Option<f64>,
    /// The last totals the events carry.
    totals: Option<rows::Totals>,
}

/// Generation of a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    V0,
    V1,
}

/// What the first event of a history is; `None` if it is no event.
fn generation(history: &[Value]) -> Option<Generation> {
    generation_of(history.iter().take(60))
}

fn generation_of<'a>(mut events: impl Iterator<Item = &'a Value<'a>> + Clone) -> Option<Generation> {
    let all = events.clone();
    let first = events.find(|e| !e.is_null())?;
    let inside = first.as_array().and_then(|pair| pair.first()).unwrap_or(first);
    if inside.get("kind").is_some_and(Value::is_string) && inside.get("role").is_none() {
        return Some(Generation::V1);
    }
    let event = |v: &Value| v.get("action").or_else(|| v.get("observation")).is_some_and(Value::is_string);
    let spoken = |v: &Value| v.get("source").is_some() && v.get("message").is_some();
    let mut any = all.flat_map(|e| e.as_array().map_or(std::slice::from_ref(e), Vec::as_slice));
    if any.any(|e| event(e) || spoken(e)) { Some(Generation::V0) } else { None }
}

/// Reads a history of either generation.
enum HistoryReader {
    V0(Box<events::Reader>),
    V1(Box<sdk::Reader>),
}

impl HistoryReader {
    fn new(generation: Generation) -> Self {
        match generation {
            Generation::V0 => Self::V0(Box::default()),
            Generation::V1 => Self::V1(Box::default()),
        }
    }

    fn expect(&mut self, entries: usize) {
        if let Self::V0(reader) = self {
            reader.expect(entries);
        }
    }

    fn entry(&mut self, entry: &Value, raw: RawPlace) {
        match self {
            Self::V0(reader) => reader.entry(entry, raw),
            Self::V1(reader) => reader.entry(entry, raw),
        }
    }

    fn finish(self) -> Read {
        match self {
            Self::V0(reader) => reader.finish(),
            Self::V1(reader) => reader.finish(),
        }
    }
}

/// Gives a trajectory what its history held, and says what was odd about that.
fn fill(trajectory: &mut Trajectory, read: Read) {
    let mut remark = |severity, code, text: String| trajectory.diagnostics.push(Diagnostic::new(severity, code, text));
    if read.rebuilt > 0 {
        let text = format!(
            "{} tool calls were written from the events' arguments: the model's own text is not in the file",
            read.rebuilt
        );
        remark(Severity::Info, "openhands.rebuilt-calls", text);
    }
    for (kind, n) in &read.unknown {
        let text = format!("{n} events of unknown kind `{}` are shown raw", field::clipped(kind, 60));
        remark(Severity::Warning, "openhands.unknown-kind", text);
    }
    if read.repeated > 0 {
        let text = format!("{} events stand there twice: each was read once", read.repeated);
        remark(Severity::Info, "openhands.repeated", text);
    }
    if read.unshown > 0 {
        let text = format!("{} events of token ids and partial answers are not shown", read.unshown);
        remark(Severity::Info, "openhands.unshown", text);
    }
    if read.refinements > 0 {
        let text = format!("the critic sent the agent back to work {} times (iterative refinement)", read.refinements);
        remark(Severity::Info, "openhands.refinement", text);
    }
    if let Some(score) = read.critic {
        let text = format!("the run's own critic predicted success with {score:.3} at the end: no test result");
        remark(Severity::Info, "openhands.critic", text);
    }
    trajectory.steps = read.steps;
    trajectory.tools = read.tools;
    trajectory.model = trajectory.model.take().or(read.model);
    let worked = trajectory.n_actions() > 0;
    if let (Some(totals), true) = (read.totals, trajectory.usage == Usage::default()) {
        trajectory.usage = totals.usage(worked);
    }
}

#[cfg(test)]
mod tests;
