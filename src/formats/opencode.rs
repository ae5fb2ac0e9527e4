//! OpenCode and its forks: a folder of small files (sessions, messages, parts), and what `opencode export` writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::json::{Value, json};
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::tree::{Claim, Entry, Folder, FolderInput};
use super::{field, session};
use crate::trajectory::{ByteSpan, RawPlace, Role, Source, Step, Tokens, ToolCall, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "opencode",
        name: "OpenCode storage",
        writer: "OpenCode, Kilo, MiMo Code (files; newer versions keep a database: `opencode export`)",
        recognised: "folders `session`, `message` and `part` of files ses_, msg_ and prt_",
        kind: Kind::Trajectory,
        reader: Reader::Folder { claim, decode: decode_folder },
    },
    Format {
        id: "opencode-export",
        name: "OpenCode export",
        writer: "opencode export",
        recognised: "`info` of a session and `messages` of `info` and `parts`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff, decode },
    },
];

fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let messages = folder.files_below("message");
    let (_, first) = messages.first()?;
    if !first.name().starts_with("msg_") {
        return None;
    }
    let mut members: Vec<usize> = messages.iter().map(|(i, _)| *i).collect();
    for part in ["session", "part", "session_diff", "project", "todo", "session_share"] {
        members.extend(folder.files_below(part).iter().map(|(i, _)| *i));
    }
    Some(Claim { members, reason: "`message/<session>/msg_….json` with their parts".into() })
}

fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let info = root.get("info").is_some_and(Value::is_object);
    let messages = root.get("messages")?.as_array()?;
    let fits = messages.iter().take(20).all(|m| m.get("parts").is_some_and(Value::is_array) && m.get("info").is_some());
    if info && fits { Match::some(Confidence::Certain, "`info`, and `messages` of `info` and `parts`") } else { None }
}

fn decode(input: &Input<'_>) -> Decoded {
    let mut tally = session::Tally::default();
    let mut trajectories = Vec::new();
    let mut diagnostics = input.document.rows(|row| {
        let mut out = begun(field::get(row.value, "info").unwrap_or(&Value::Null), input.format);
        for (i, message) in field::list(row.value, "messages").iter().enumerate() {
            let parts: Vec<(&Value, RawPlace)> =
                field::list(message, "parts").iter().map(|p| (p, RawPlace::element("/messages", i))).collect();
            let info = field::get(message, "info").unwrap_or(&Value::Null);
            add(&mut out, info, &RawPlace::element("/messages", i), &parts, &mut tally);
        }
        out.source = Source { record: row.record, span: row.span, ..Source::default() };
        trajectories.push(finished(out));
    });
    diagnostics.extend(tally.finish());
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

/// Values of small files with their paths, by the name of the folder they lie in.
type Filed = BTreeMap<String, Vec<(Value<'static>, Arc<Path>)>>;

fn filed(input: &FolderInput<'_>, top: &str, key: &str, tally: &mut session::Tally) -> Filed {
    let mut found = Filed::new();
    let of = |entry: &&&Entry| input.relative(entry).starts_with(top);
    for entry in input.members.iter().filter(of) {
        let Some(value) = entry.value() else {
            tally.skip("unreadable file");
            continue;
        };
        let above = || entry.path.parent().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
        let owner = field::text(&value, key).or_else(above).unwrap_or_default();
        found.entry(owner).or_default().push((value, Arc::from(entry.path.as_path())));
    }
    found
}

fn decode_folder(input: &FolderInput<'_>) -> Decoded {
    let mut tally = session::Tally::default();
    let sessions: Vec<Value> =
        filed(input, "session", "id", &mut tally).into_values().flatten().map(|(v, _)| v).collect();
    let mut messages = filed(input, "message", "sessionID", &mut tally);
    let mut parts = filed(input, "part", "messageID", &mut tally);
    for entry in input.members {
        let top = input.relative(entry).components().next();
        let top = top.map(|c| c.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
        if !["session", "message", "part"].contains(&top.as_str()) {
            tally.skip(&top);
        }
    }
    let known: Vec<String> = sessions.iter().filter_map(|s| field::text(s, "id")).collect();
    let mut infos = sessions;
    // Messages whose session's file is gone are still worth showing.
    for id in messages.keys().filter(|id| !known.contains(id)) {
        infos.push(json!({ "id": id }));
    }
    infos.sort_by(|a, b| (created(a), field::str(a, "id")).cmp(&(created(b), field::str(b, "id"))));
    let mut trajectories = Vec::new();
    for (record, info) in infos.iter().enumerate() {
        let mut out = begun(info, input.format);
        let mut own = field::str(info, "id").and_then(|id| messages.remove(id)).unwrap_or_default();
        own.sort_by(|a, b| (created(&a.0), field::str(&a.0, "id")).cmp(&(created(&b.0), field::str(&b.0, "id"))));
        for (message, path) in &own {
            let mut of = field::str(message, "id").and_then(|id| parts.remove(id)).unwrap_or_default();
            // Ids count up; times are missing in some parts.
            of.sort_by(|a, b| field::str(&a.0, "id").cmp(&field::str(&b.0, "id")));
            let place = |path: &Arc<Path>| RawPlace { file: Some(path.clone()), ..RawPlace::default() };
            let of: Vec<(&Value, RawPlace)> = of.iter().map(|(v, p)| (v, place(p))).collect();
            add(&mut out, message, &place(path), &of, &mut tally);
        }
        out.source.record = record;
        trajectories.push(finished(out));
    }
    Decoded { trajectories, diagnostics: tally.finish(), ..Decoded::default() }
}

fn created(info: &Value) -> u64 {
    field::at(info, &["time", "created"]).and_then(field::count).unwrap_or(0)
}

fn begun(info: &Value, format: &'static str) -> Trajectory {
    let version = field::text(info, "version");
    Trajectory {
        format,
        session: field::text(info, "id"),
        parent: field::text(info, "parentID"),
        agent: Some(version.map_or("OpenCode".to_owned(), |v| format!("OpenCode {v}"))),
        source: Source { span: ByteSpan::default(), ..Source::default() },
        ..Trajectory::default()
    }
}

fn finished(mut out: Trajectory) -> Trajectory {
    session::complete(&mut out);
    out.usage = session::totals(&out.steps);
    out
}

fn add(
    out: &mut Trajectory,
    message: &Value,
    raw: &RawPlace,
    parts: &[(&Value, RawPlace)],
    tally: &mut session::Tally,
) {
    let assistant = field::str(message, "role") == Some("assistant");
    let from = out.steps.len();
    if assistant {
        let model = field::str(message, "modelID").or_else(|| field::str_at(message, &["model", "modelID"]));
        out.model = model.map(str::to_owned).or(out.model.take());
        answers(out, raw, parts, tally);
        let mut own = out.steps.iter_mut().skip(from).filter(|s| s.role == Role::Assistant);
        if let (Some(only), None) = (own.next(), own.next()) {
            only.tokens = only.tokens.or_else(|| field::get(message, "tokens").and_then(tokens));
            let cost = field::get(message, "cost").and_then(field::number).filter(|c| *c > 0.0);
            only.cost = only.cost.or(cost);
        }
        if let Some(error) = field::get(message, "error") {
            let text = field::str_at(error, &["data", "message"]).or_else(|| field::str(error, "message"));
            let name = field::str(error, "name").unwrap_or("error");
            let step = Step { is_error: Some(true), ..session::note(name, text.unwrap_or_default()) };
            out.steps.push(Step { raw: raw.clone(), ..step });
        }
    } else {
        let shown = |p: &Value| match field::str(p, "type") {
            Some("text") => field::text(p, "text"),
            Some("file") => Some(format!("[file {}]", field::str(p, "filename").or(field::str(p, "mime"))?)),
            _ => None,
        };
        for (part, _) in parts {
            if !matches!(field::str(part, "type"), Some("text" | "file")) {
                tally.skip(field::str(part, "type").unwrap_or("(none)"));
            }
        }
        let texts: Vec<String> = parts.iter().filter_map(|(p, _)| shown(p)).collect();
        let text = parts.iter().find(|(p, _)| field::str(p, "type") == Some("text")).map(|(_, place)| place);
        out.steps.push(Step { raw: text.unwrap_or(raw).clone(), ..Step::new(Role::User, texts.join("\n")) });
    }
    let id = field::str(message, "id").unwrap_or_default();
    let time = field::at(message, &["time", "created"]).and_then(session::time_of);
    for (i, step) in out.steps.iter_mut().skip(from).enumerate() {
        step.timestamp = step.timestamp.take().or_else(|| time.clone());
        step.id = Some(format!("{id} {i}").into()).filter(|_| !id.is_empty());
    }
}

/// One message of the agent is several calls of the model where it says so (`step-start`).
fn answers(out: &mut Trajectory, raw: &RawPlace, parts: &[(&Value, RawPlace)], tally: &mut session::Tally) {
    let mut results = Vec::new();
    let mut open: Option<Step> = None;
    let close = |open: &mut Option<Step>, results: &mut Vec<Step>, steps: &mut Vec<Step>| {
        steps.extend(open.take());
        steps.append(results);
    };
    for (part, place) in parts {
        let step = open.get_or_insert_with(|| Step { raw: raw.clone(), ..Step::new(Role::Assistant, "") });
        let text = field::text(part, "text").unwrap_or_default();
        match field::str(part, "type").unwrap_or("(none)") {
            "text" => {
                // The parts are files of their own: the one that holds the text shows it.
                if step.text.is_empty() {
                    step.raw = place.clone();
                }
                session::add_part(step, Step::new(Role::Assistant, text));
            }
            "reasoning" => session::add_part(step, session::answer(String::new(), Some(text), Vec::new())),
            "tool" => {
                let (call, result) = tool(part);
                step.calls.push(call);
                results.extend(result.map(|r| Step { raw: place.clone(), ..r }));
            }
            "step-start" => {
                let empty = step.text.is_empty() && step.calls.is_empty() && step.reasoning.is_none();
                if !empty {
                    close(&mut open, &mut results, &mut out.steps);
                }
            }
            "step-finish" => {
                step.cost = field::get(part, "cost").and_then(field::number).filter(|c| *c > 0.0);
                step.tokens = field::get(part, "tokens").and_then(tokens);
                close(&mut open, &mut results, &mut out.steps);
            }
            kind @ ("snapshot" | "patch" | "agent" | "retry" | "file" | "compaction" | "subtask") => tally.skip(kind),
            kind => {
                tally.unknown(kind);
                results.push(Step { raw: place.clone(), ..session::raw_step(kind, part) });
            }
        }
    }
    // What stands behind the last call of the model (a patch, a snapshot) is no answer.
    open = open.filter(|s| !s.text.is_empty() || !s.calls.is_empty() || s.reasoning.is_some());
    close(&mut open, &mut results, &mut out.steps);
}

fn tool(part: &Value) -> (ToolCall, Option<Step>) {
    let state = field::get(part, "state").unwrap_or(&Value::Null);
    let id = field::text(part, "callID").unwrap_or_default();
    let name = field::text(part, "tool").unwrap_or_default();
    let arguments = field::get(state, "input").map(field::json_text).unwrap_or_default();
    let status = field::str(state, "status").unwrap_or_default();
    let result = matches!(status, "completed" | "error").then(|| {
        let text = if status == "error" { field::text(state, "error") } else { None };
        let text = text.or_else(|| field::get(state, "output").map(field::json_text)).unwrap_or_default();
        let code = field::at(state, &["metadata", "exit"]).and_then(field::integer);
        let failed = status == "error" || code.is_some_and(|c| c != 0) || name == "invalid";
        let mut step = session::result(Some(id.clone()), text, Some(failed));
        step.exit_code = code;
        step.tool_name = Some(name.clone());
        step.timestamp = field::at(state, &["time", "end"]).and_then(session::time_of);
        step
    });
    (ToolCall { id, name, arguments }, result)
}

fn tokens(tokens: &Value) -> Option<Tokens> {
    let count = |path: &[&str]| field::at(tokens, path).and_then(field::count);
    let cached = count(&["cache", "read"]);
    let input = count(&["input"])?.saturating_add(cached.unwrap_or(0));
    let input = input.saturating_add(count(&["cache", "write"]).unwrap_or(0));
    let output = count(&["output"]).unwrap_or(0).saturating_add(count(&["reasoning"]).unwrap_or(0));
    Some(Tokens { input, cached, output }).filter(|t| t.input > 0 || t.output > 0)
}

#[cfg(test)]
mod tests;
