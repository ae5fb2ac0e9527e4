//! AutoCodeRover: one folder a task, with the conversation written anew after every round.
//!
//! `<run>/<status>/<instance>_<date>/` holds `conversation_round_N.json` (each repeats the one before),
//! `debug_agent_write_patch_N.json` (the same conversation, and behind it the writing of the patch),
//! `agent_proxy_N.json` (a second agent that turns prose into API calls), `extracted_patch_N.diff` (the candidates)
//! and `developer_patch.diff`, which is the solution. Newer versions write all that into `output_N/`, one an attempt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::json::Value;
use super::table::{Decoded, Format, Kind, Reader};
use super::tree::{Claim, Entry, Folder, FolderInput};
use super::{chat, field, names};
use crate::trajectory::{Diagnostic, Outcome, RawPlace, Role, Severity, Source, Step, Trajectory, Usage};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[Format {
    id: "autocoderover",
    name: "AutoCodeRover task",
    writer: "AutoCodeRover",
    recognised: "a folder with `meta.json` or `extract_status.json` and `conversation_*.json` or `output_N/`",
    kind: Kind::Trajectory,
    reader: Reader::Folder { claim, decode },
}];

/// Folders that tasks are sorted into, by how far they came.
const STATUSES: [&str; 6] = [
    "applicable_patch",
    "matched_but_empty_origin",
    "matched_but_empty_diff",
    "raw_patch_but_unmatched",
    "raw_patch_but_unparsed",
    "no_patch",
];

/// A folder of one task.
fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let marks = ["meta.json", "extract_status.json", "tool_call_sequence.json", "cost.json"];
    if !marks.iter().any(|name| folder.find(name).is_some()) {
        return None;
    }
    let conversation = |name: &str| name.starts_with("conversation_") && numbered(name, ".json").is_some();
    let direct = || folder.files_in("").iter().any(|(_, e)| conversation(&e.name()));
    let output = || folder.files_below("output_0").iter().any(|(_, e)| conversation(&e.name()));
    if !direct() && !output() {
        return None;
    }
    let members = folder.files_below("").into_iter().map(|(i, _)| i).collect();
    Some(Claim { members, reason: "a task with its conversations".into() })
}

/// One trajectory, or one for every `output_N`.
fn decode(input: &FolderInput<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let outputs: BTreeSet<usize> = input.members.iter().filter_map(|e| output_of(input.relative(e))).collect();
    let run = Run::read(input);
    if outputs.is_empty() {
        decoded.trajectories.push(run.trajectory(input, None));
        return decoded;
    }
    let several = outputs.len() > 1;
    for (record, output) in outputs.into_iter().enumerate() {
        let mut trajectory = run.trajectory(input, Some(output));
        trajectory.source.record = record;
        // The costs are of the task as a whole.
        if several {
            trajectory.usage = Usage::default();
        }
        decoded.trajectories.push(trajectory);
    }
    decoded
}

/// `3` of `output_3/…`.
fn output_of(relative: &Path) -> Option<usize> {
    let first = relative.components().next()?.as_os_str().to_str()?;
    relative.components().nth(1)?;
    first.strip_prefix("output_")?.parse().ok()
}

/// `("conversation_round", 3)` of `conversation_round_3.json`.
fn numbered(name: &str, ending: &str) -> Option<(String, usize)> {
    let (stem, number) = name.strip_suffix(ending)?.rsplit_once('_')?;
    Some((stem.to_owned(), number.parse().ok()?))
}

/// What holds for all attempts of the task.
struct Run {
    instance: Option<String>,
    task: Option<String>,
    model: Option<String>,
    usage: Usage,
    status: Option<String>,
    selected: Option<String>,
}

impl Run {
    fn read(input: &FolderInput<'_>) -> Self {
        let value = |name: &str| input.find(name).and_then(Entry::value).unwrap_or(Value::Null);
        let (meta, cost) = (value("meta.json"), value("cost.json"));
        let statement = input.find("problem_statement.txt").and_then(text);
        // `task_info.patch` and `.test_patch` are the solution: left alone.
        let task = statement.or_else(|| field::str_at(&meta, &["task_info", "problem_statement"]).map(str::to_owned));
        let count = |key| field::get(&cost, key).and_then(field::count);
        let parent = input.path.parent().and_then(Path::file_name).and_then(|n| n.to_str());
        Self {
            instance: field::text(&meta, "task_id").or_else(|| names::instance_of(input.path)),
            task,
            model: field::text(&cost, "model"),
            usage: Usage {
                cost: field::get(&cost, "total_cost").and_then(field::number).filter(|c| *c > 0.0),
                tokens_in: count("total_input_tokens").filter(|n| *n > 0),
                tokens_out: count("total_output_tokens").filter(|n| *n > 0),
                ..Usage::default()
            },
            status: parent.filter(|name| STATUSES.contains(name)).map(str::to_owned),
            selected: field::text(&value("selected_patch.json"), "selected_patch"),
        }
    }

    fn trajectory(&self, input: &FolderInput<'_>, output: Option<usize>) -> Trajectory {
        let prefix = output.map(|n| format!("output_{n}"));
        let files: Vec<&Entry> =
            input.members.iter().copied().filter(|e| output_of(input.relative(e)) == output).collect();
        let mut out = Trajectory {
            source: Source { path: input.path.to_owned(), ..Source::default() },
            format: input.format,
            instance_id: self.instance.clone(),
            attempt: prefix,
            agent: Some("AutoCodeRover".to_owned()),
            model: self.model.clone(),
            task: self.task.clone(),
            usage: self.usage,
            exit_status: self.status.clone(),
            ..Trajectory::default()
        };
        conversations(&files, &mut out);
        proxies(&files, &mut out);
        self.candidate(input, &files, &mut out);
        calls(&files, &mut out);
        // The folder says that no patch could be applied: then the task is not resolved. Of the others a report says.
        let none = out.exit_status.as_deref().is_some_and(|s| STATUSES.get(1..).unwrap_or_default().contains(&s));
        if none && out.patch.as_deref() == Some("") {
            out.outcome = Outcome::Unresolved;
        }
        out
    }

    /// The patch chosen, else the last one extracted. The developer's is never looked at.
    fn candidate(&self, input: &FolderInput<'_>, files: &[&Entry], out: &mut Trajectory) {
        let mut extracted: Vec<(usize, &Entry)> = files
            .iter()
            .filter_map(|e| Some((numbered(&e.name(), ".diff").filter(|(s, _)| s == "extracted_patch")?.1, *e)))
            .collect();
        extracted.sort_by_key(|(n, _)| *n);
        let chosen = self.selected.as_deref().and_then(|selected| {
            extracted.iter().find(|(_, e)| input.relative(e).to_string_lossy().ends_with(selected))
        });
        if let Some((_, entry)) = chosen.or(extracted.last()) {
            out.patch = text(entry);
            return;
        }
        let value = files.iter().find(|e| e.name() == "extract_status.json").and_then(|e| e.value());
        let statuses = value.as_ref().map(|v| field::list(v, "extract_status")).unwrap_or_default();
        // Every try is listed, and none could be applied: the run has no patch.
        if !statuses.is_empty() && statuses.iter().all(|s| s.as_str() != Some("APPLICABLE_PATCH")) {
            out.patch = Some(String::new());
            out.exit_status = out.exit_status.take().or_else(|| statuses.last()?.as_str().map(str::to_owned));
        }
    }
}

fn text(entry: &Entry) -> Option<String> {
    let content = entry.read().ok()?;
    Some(String::from_utf8_lossy(&content.bytes).into_owned())
}

/// The last of every series of conversations; what one repeats of another is taken once.
fn conversations(files: &[&Entry], out: &mut Trajectory) {
    let mut series: BTreeMap<(u8, String), (usize, &Entry)> = BTreeMap::new();
    for entry in files {
        let Some((stem, number)) = numbered(&entry.name(), ".json") else { continue };
        let order = match stem.as_str() {
            "conversation_round" => 0,
            other if other.starts_with("conversation_") => 1,
            other if other.starts_with("debug_agent_") => 2,
            _ => continue,
        };
        let last = series.entry((order, stem)).or_insert((number, *entry));
        if number >= last.0 {
            *last = (number, *entry);
        }
    }
    let mut said: Vec<Value> = Vec::new();
    for (_, entry) in series.into_values() {
        let Some(Value::Array(messages)) = entry.value() else {
            let text = format!("{} holds no list of messages: skipped", entry.name());
            out.diagnostics.push(Diagnostic::new(Severity::Warning, "acr.not-a-conversation", text));
            continue;
        };
        // A second agent goes on with the first one's messages below a system prompt of its own.
        let head = |list: &[Value]| list.iter().take_while(|m| chat::role_of(m) == Role::System).count();
        let (told, own) = (head(&said), head(&messages));
        let same = said.iter().skip(told).zip(messages.iter().skip(own)).take_while(|(a, b)| a == b).count();
        let known = |i: usize, m: &Value| if i < own { said.contains(m) } else { i < own + same };
        let file: Arc<Path> = entry.path.as_path().into();
        for (i, message) in messages.iter().enumerate().filter(|(i, m)| !known(*i, m)) {
            for mut step in chat::message_steps(message) {
                refine(&mut step);
                step.raw = RawPlace { file: Some(Arc::clone(&file)), ..RawPlace::element("", i) };
                out.steps.push(step);
            }
        }
        if messages.len() > said.len() {
            said = messages;
        }
    }
}

/// What the harness answers stands in user messages.
fn refine(step: &mut Step) {
    if step.role != Role::User {
        return;
    }
    let refused = ["The search API calls seem not valid", "Your edit could not be applied"];
    if refused.iter().any(|mark| step.text.starts_with(mark)) {
        step.role = Role::Tool;
        step.is_error = Some(true);
    } else if step.text.starts_with("Result of ") {
        step.role = Role::Tool;
    }
}

/// The proxy's answers say which API calls an action stands for: its command.
fn proxies(files: &[&Entry], out: &mut Trajectory) {
    let mut unmatched = 0;
    for entry in files.iter().filter(|e| numbered(&e.name(), ".json").is_some_and(|(s, _)| s == "agent_proxy")) {
        let Some(threads) = entry.value() else { continue };
        // Every try is a thread of its own; the last one counts.
        let Some(thread) = threads.as_array().and_then(|t| t.last()).and_then(Value::as_array) else { continue };
        let asked = thread.iter().find(|m| chat::role_of(m) == Role::User).and_then(|m| field::str(m, "content"));
        let answer = thread.iter().rfind(|m| chat::role_of(m) == Role::Assistant);
        let calls = answer.and_then(|m| field::embedded(m, "content"));
        let Some(asked) = asked else { continue };
        let step = out.steps.iter_mut().find(|s| s.role == Role::Assistant && s.text == asked && s.action.is_none());
        match (step, calls) {
            (Some(step), Some(calls)) => {
                let list = field::list(&calls, "API_calls").iter().filter_map(Value::as_str);
                step.action = Some(list.collect::<Vec<_>>().join("\n")).filter(|calls| !calls.is_empty());
            }
            (Some(_), None) => {}
            (None, _) => unmatched += 1,
        }
    }
    if unmatched > 0 {
        let text = format!("{unmatched} answers of the proxy agent belong to no message of the conversation");
        out.diagnostics.push(Diagnostic::new(Severity::Info, "acr.proxy", text));
    }
}

/// How many of the calls went through.
fn calls(files: &[&Entry], out: &mut Trajectory) {
    let value = files.iter().find(|e| e.name() == "tool_call_sequence.json").and_then(|e| e.value());
    let Some(Value::Array(calls)) = value else { return };
    let failed = calls.iter().filter(|c| field::get(c, "call_ok").and_then(field::truth) == Some(false)).count();
    if failed > 0 {
        let text = format!("{failed} of {} API calls found nothing or were refused", calls.len());
        out.diagnostics.push(Diagnostic::new(Severity::Info, "acr.calls", text));
    }
}

#[cfg(test)]
mod tests;
