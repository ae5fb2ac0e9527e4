//! Agents whose session files are a list of messages with a turn of their own.

mod amp;
mod cline;
mod cursor;
mod exports;
mod goose;
mod gptme;
mod grok;
mod kimi;
mod kiro;
mod posit;
mod qwenpaw;
mod vibe;

use super::table::{Format, Kind, Reader};
use super::{field, session, sniff};
use crate::trajectory::{Step, ToolCall, Trajectory};

/// A row for a format that is one file.
macro_rules! file {
    ($id:literal, $name:literal, $writer:literal, $recognised:literal, $module:ident) => {
        Format {
            id: $id,
            name: $name,
            writer: $writer,
            recognised: $recognised,
            kind: Kind::Trajectory,
            reader: Reader::File { sniff: $module::sniff, decode: $module::decode },
        }
    };
}

/// A row for a format that is several files of a folder.
macro_rules! folder {
    ($id:literal, $name:literal, $writer:literal, $recognised:literal, $module:ident) => {
        Format {
            id: $id,
            name: $name,
            writer: $writer,
            recognised: $recognised,
            kind: Kind::Trajectory,
            reader: Reader::Folder { claim: $module::claim, decode: $module::decode_folder },
        }
    };
}

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    folder!(
        "cline",
        "Cline task",
        "Cline, Roo Code, Kilo Code",
        "api_conversation_history.json beside ui_messages.json",
        cline
    ),
    folder!(
        "vibe",
        "Mistral Vibe session",
        "Mistral Vibe",
        "messages.jsonl beside a meta.json with `session_id`",
        vibe
    ),
    folder!("grok-build", "Grok Build session", "Grok Build", "chat_history.jsonl beside summary.json", grok),
    folder!(
        "posit-assistant",
        "Posit Assistant conversation",
        "Posit Assistant",
        "lm-messages.jsonl with `id` and `message`",
        posit
    ),
    file!(
        "grok-chat",
        "Grok Build messages",
        "Grok Build",
        "records of `type` and `content` with `prompt_index` or `model_id`",
        grok
    ),
    Format {
        id: "posit-index",
        name: "Posit Assistant index",
        writer: "Posit Assistant",
        recognised: "`conversations` and `schemaVersion`, or `path` and `createdAt`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: posit::sniff_index, decode: |_| super::table::Decoded::default() },
    },
    file!(
        "cursor-jsonl",
        "Cursor agent transcript",
        "Cursor",
        "lines of `role` and a `message` of `content`, no ids",
        cursor
    ),
    file!(
        "goose",
        "Goose session",
        "Goose (files; newer versions keep a database)",
        "`role`, `created`, parts toolRequest and toolResponse",
        goose
    ),
    file!("amp", "Amp thread", "Amp", "one object with `messages`, `v` and an `id` of T-", amp),
    file!(
        "kimi",
        "Kimi CLI wire log",
        "Kimi CLI",
        "records of TurnBegin, ContentPart, ToolCall; or turn.prompt and context.append_loop_event",
        kimi
    ),
    file!("gptme", "gptme conversation", "gptme", "messages with `pinned`, `hide`, `files` or `metadata.usage`", gptme),
    file!(
        "kiro",
        "Kiro conversation",
        "Kiro CLI, Amazon Q (payload of its database)",
        "`conversation_id` and `history` of user and assistant",
        kiro
    ),
    file!("qwenpaw", "QwenPaw session", "QwenPaw (AgentScope)", "`agent.memory.content` of pairs", qwenpaw),
    file!(
        "chat-export",
        "Chat export",
        "ChatGPT, Claude.ai (conversations.json)",
        "`mapping` of a tree of messages, or `chat_messages`",
        exports
    ),
    Format {
        id: "cursor-text",
        name: "Cursor text transcript",
        writer: "Cursor (older)",
        recognised: "blocks that begin with `user:` and `assistant:`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: cursor::sniff_text, decode: cursor::decode_text },
    },
];

/// A trajectory of one file as far as its steps are known.
fn of_file(input: &super::table::Input<'_>, agent: &str, steps: Vec<Step>) -> Trajectory {
    let mut out = Trajectory { format: input.format, agent: Some(agent.to_owned()), steps, ..Trajectory::default() };
    finish(&mut out);
    out
}

/// What follows from the steps.
fn finish(out: &mut Trajectory) {
    session::complete(out);
    out.usage = session::totals(&out.steps);
}

/// A call by the names of its members.
fn call(value: &super::json::Value, id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: field::text(value, id).unwrap_or_default(),
        name: field::text(value, name).unwrap_or_default(),
        arguments: field::get(value, arguments).map(field::json_text).unwrap_or_default(),
    }
}

/// A recogniser's yes, if so.
fn certain(yes: bool, reason: &'static str) -> Option<sniff::Match> {
    if yes { sniff::Match::some(sniff::Confidence::Certain, reason) } else { None }
}

#[cfg(test)]
mod tests;
