//! GitHub Copilot: the events of its CLI, and the chat sessions of VS Code.

mod events;
mod vscode;

use super::table::{Format, Kind, Reader};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "copilot-cli",
        name: "GitHub Copilot CLI events",
        writer: "GitHub Copilot CLI",
        recognised: "records of `type` with a dot (assistant.message, tool.execution_complete) and `data`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: events::sniff, decode: events::decode },
    },
    Format {
        id: "vscode-chat",
        name: "VS Code chat session",
        writer: "GitHub Copilot Chat in VS Code",
        recognised: "`requests` with `sessionId` and `version`; a log of `kind`, `k`, `v` operations on it",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: vscode::sniff, decode: vscode::decode },
    },
];

#[cfg(test)]
mod tests;
