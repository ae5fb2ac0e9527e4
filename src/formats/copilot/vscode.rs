//! Chat sessions of VS Code: one object, or a log of changes to it.

use super::super::json::{Map, Value};
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{field, session};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Step, ToolCall, Trajectory};

/// Parts of a response that are of the screen only.
const OF_THE_SCREEN: [&str; 12] = [
    "undoStop",
    "codeblockUri",
    "inlineReference",
    "progressMessage",
    "progressTaskSerialized",
    "prepareToolInvocation",
    "mcpServersStarting",
    "references",
    "codeCitation",
    "confirmation",
    "elicitation",
    "notebookEditGroup",
];

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let session = |v: &Value| v.get("requests").is_some_and(Value::is_array) && v.get("sessionId").is_some();
    if sniff.object().is_some_and(|o| o.contains_key("version")) && sniff.rows.first().is_some_and(|v| session(v)) {
        return Match::some(Confidence::Certain, "`requests`, `sessionId` and `version`");
    }
    let first = sniff.rows.first()?;
    let log = field::get(first, "kind").and_then(Value::as_u64) == Some(0) && first.get("v").is_some_and(session);
    if log { Match::some(Confidence::Certain, "a log of `kind`, `k`, `v` that begins with a session") } else { None }
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut state: Option<(Value<'static>, bool)> = None;
    let mut lost = 0;
    let mut diagnostics = input.document.rows(|row| match field::get(row.value, "kind").and_then(Value::as_u64) {
        Some(0) => state = row.value.get("v").map(|v| (v.clone().into_owned(), true)),
        Some(_) => match state.as_mut().map(|(v, _)| change(v, row.value)) {
            Some(true) => {}
            _ => lost += 1,
        },
        None if state.is_none() => state = Some((row.value.clone().into_owned(), false)),
        None => lost += 1,
    });
    if lost > 0 {
        let text = format!("{lost} changes could not be applied");
        diagnostics.push(Diagnostic::new(Severity::Warning, "vscode.lost-change", text));
    }
    let Some((root, log)) = state else { return Decoded { diagnostics, ..Decoded::default() } };
    let mut tally = session::Tally::default();
    let mut out = Trajectory {
        format: input.format,
        session: field::text(&root, "sessionId"),
        agent: Some("GitHub Copilot Chat".to_owned()),
        ..Trajectory::default()
    };
    for (i, request) in field::list(&root, "requests").iter().enumerate() {
        let from = out.steps.len();
        read(&mut out, request, &mut tally);
        let time = field::get(request, "timestamp").and_then(session::time_of);
        let id = field::text(request, "requestId");
        for (n, step) in out.steps.iter_mut().enumerate().skip(from) {
            // In a log no record holds the request as it became.
            step.raw = if log { RawPlace::default() } else { RawPlace::element("/requests", i) };
            step.timestamp = time.clone();
            step.id = id.as_ref().map(|id| format!("{id} {}", n - from).into());
        }
    }
    session::complete(&mut out);
    diagnostics.extend(tally.finish());
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

/// Applies one change of the log: 1 sets, 2 appends to (or replaces the end of) a list, 3 deletes.
fn change(root: &mut Value<'static>, record: &Value) -> bool {
    let path = field::list(record, "k");
    let value = record.get("v");
    let Some((last, above)) = path.split_last() else { return false };
    let Some(parent) = above.iter().try_fold(root, |at, key| step_into(at, key)) else { return false };
    match (field::get(record, "kind").and_then(Value::as_u64), value) {
        (Some(1), Some(value)) => set(parent, last, value.clone().into_owned()),
        (Some(2), Some(Value::Array(items))) => {
            if step_into(parent, last).is_none() && !set(parent, last, Value::Array(Vec::new())) {
                return false;
            }
            let Some(Value::Array(list)) = step_into(parent, last) else { return false };
            if let Some(at) = field::get(record, "i").and_then(field::count) {
                list.truncate(at as usize);
            }
            list.extend(items.iter().map(|item| item.clone().into_owned()));
            true
        }
        (Some(3), _) => match (parent, last) {
            (Value::Object(members), Value::String(key)) => members.remove(key).is_some(),
            (Value::Array(items), Value::Number(at)) => {
                let at = at.as_u64().map(|n| n as usize).filter(|n| *n < items.len());
                at.map(|at| items.remove(at)).is_some()
            }
            _ => false,
        },
        _ => false,
    }
}

fn step_into<'a, 'v>(value: &'a mut Value<'v>, key: &Value) -> Option<&'a mut Value<'v>> {
    match (value, key) {
        (Value::Object(members), Value::String(key)) => members.get_mut(key),
        (Value::Array(items), Value::Number(at)) => items.get_mut(at.as_u64()? as usize),
        _ => None,
    }
}

fn set(parent: &mut Value<'static>, key: &Value, value: Value<'static>) -> bool {
    match (parent, key) {
        (Value::Object(members), Value::String(key)) => {
            members.insert(key.clone().into_owned(), value);
            true
        }
        (Value::Array(items), Value::Number(at)) => match at.as_u64().map(|n| n as usize) {
            Some(at) if at < items.len() => items.get_mut(at).map(|old| *old = value).is_some(),
            Some(at) if at == items.len() => {
                items.push(value);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

fn read(out: &mut Trajectory, request: &Value, tally: &mut session::Tally) {
    let said = field::str_at(request, &["message", "text"]).or_else(|| field::str(request, "message"));
    out.steps.push(Step::new(Role::User, said.unwrap_or_default()));
    if let Some(model) = field::text(request, "modelId") {
        out.model = Some(model);
    }
    let rounds = field::at(request, &["result", "metadata", "toolCallRounds"]).and_then(Value::as_array);
    match rounds.filter(|r| !r.is_empty()) {
        Some(rounds) => {
            let results = field::at(request, &["result", "metadata"]).and_then(|m| field::object(m, "toolCallResults"));
            for round in rounds {
                self::round(out, round, results);
            }
        }
        None => response(out, field::list(request, "response"), tally),
    }
    if let Some(error) = field::at(request, &["result", "errorDetails"]) {
        let text = field::text(error, "message").unwrap_or_default();
        out.error = Some(text.clone()).filter(|t| !t.is_empty());
        out.steps.push(Step { is_error: Some(true), ..session::note("error", &text) });
    }
}

/// One call of the model, as the session keeps it for the next turn.
fn round(out: &mut Trajectory, round: &Value, results: Option<&Map<'_>>) {
    let calls: Vec<ToolCall> = field::list(round, "toolCalls")
        .iter()
        .map(|c| ToolCall {
            id: field::text(c, "id").unwrap_or_default(),
            name: field::text(c, "name").unwrap_or_default(),
            arguments: field::get(c, "arguments").map(field::json_text).unwrap_or_default(),
        })
        .collect();
    let thinking = field::get(round, "thinking").map(session::text_of);
    let answered: Vec<Step> = calls
        .iter()
        .filter_map(|c| {
            let content = field::get(results?.get(&c.id)?, "content")?;
            let texts =
                content.as_array().map_or(&[][..], Vec::as_slice).iter().map(|p| match field::get(p, "value") {
                    Some(Value::String(text)) => text.to_string(),
                    Some(other) => printed(other),
                    None => session::text_of(p),
                });
            Some(session::result(Some(c.id.clone()), texts.collect::<Vec<_>>().join("\n"), None))
        })
        .collect();
    out.steps.push(session::answer(field::text(round, "response").unwrap_or_default(), thinking, calls));
    out.steps.extend(answered);
}

/// The text of a tree of elements, as tools return it.
fn printed(node: &Value) -> String {
    let mut text = String::new();
    // Depth first, with a list of what is left in place of recursion: the tree may be deep.
    let mut left = vec![node];
    while let Some(node) = left.pop() {
        if let Some(part) = field::str(node, "text") {
            text.push_str(part);
        }
        let inner = ["node", "children"].iter().filter_map(|k| field::get(node, k));
        for inner in inner.collect::<Vec<_>>().into_iter().rev() {
            match inner {
                Value::Array(items) => left.extend(items.iter().rev()),
                other => left.push(other),
            }
        }
    }
    text
}

/// What the screen showed, where nothing better is kept.
fn response(out: &mut Trajectory, parts: &[Value], tally: &mut session::Tally) {
    let mut open: Option<Step> = None;
    for part in parts {
        let step = open.get_or_insert_with(|| Step::new(Role::Assistant, ""));
        match field::str(part, "kind") {
            None | Some("markdownContent") => {
                let value = field::get(part, "value").or_else(|| field::get(part, "content"));
                let text = value.map(|v| field::get(v, "value").unwrap_or(v)).map(session::text_of);
                step.text.push_str(&text.unwrap_or_default());
            }
            Some("thinking") => {
                let text = field::get(part, "value").map(session::text_of).filter(|t| !t.is_empty());
                session::add_part(step, Step { reasoning: text, ..Step::new(Role::Assistant, "") });
            }
            Some("toolInvocationSerialized" | "toolInvocation") => {
                let (call, result) = invocation(part);
                step.calls.push(call);
                out.steps.extend(open.take());
                out.steps.extend(result);
            }
            Some("textEditGroup") => {
                let path = ["path", "fsPath"].iter().find_map(|k| field::str_at(part, &["uri", k]));
                let arguments = serde_json::json!({"path": path, "edits": part.get("edits")}).to_string();
                step.calls.push(ToolCall { id: String::new(), name: "edit".to_owned(), arguments });
            }
            Some(kind) if OF_THE_SCREEN.contains(&kind) => tally.skip(kind),
            Some(kind) => {
                tally.unknown(kind);
                out.steps.extend(open.take().filter(|s| !s.text.is_empty() || !s.calls.is_empty()));
                out.steps.push(session::raw_step(kind, part));
            }
        }
    }
    out.steps.extend(open.filter(|s| !s.text.is_empty() || !s.calls.is_empty() || s.reasoning.is_some()));
}

fn invocation(part: &Value) -> (ToolCall, Option<Step>) {
    let message = |key| field::get(part, key).map(|m| field::get(m, "value").unwrap_or(m)).map(session::text_of);
    let command = field::at(part, &["toolSpecificData", "commandLine"]);
    let command = command.map(|c| field::str(c, "original").map_or_else(|| session::text_of(c), str::to_owned));
    let command = command.or_else(|| field::str_at(part, &["toolSpecificData", "command"]).map(str::to_owned));
    let arguments = match (command, message("invocationMessage")) {
        (Some(command), _) => serde_json::json!({ "command": command }).to_string(),
        (None, said) => said.unwrap_or_default(),
    };
    let id = field::text(part, "toolCallId").unwrap_or_default();
    let call = ToolCall { id: id.clone(), name: field::text(part, "toolId").unwrap_or_default(), arguments };
    let details = field::get(part, "resultDetails").map(|d| field::get(d, "output").unwrap_or(d));
    let details = details.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let details: Vec<&str> = details.iter().filter_map(|d| field::str(d, "value")).collect();
    let details = Some(details.join("\n")).filter(|d| !d.is_empty());
    let result = details.or_else(|| message("pastTenseMessage")).filter(|t| !t.is_empty());
    let code = field::at(part, &["toolSpecificData", "terminalCommandState", "exitCode"]).and_then(field::integer);
    let result = result.map(|text| {
        let mut step = session::result(Some(id), text, code.map(|c| c != 0));
        step.exit_code = code;
        step
    });
    (call, result)
}

#[cfg(test)]
mod tests {
    use super::super::super::json::json;

    use super::*;

    fn changed(mut root: Value<'static>, record: &Value) -> Option<Value<'static>> {
        change(&mut root, record).then_some(root)
    }

    #[test]
    fn changes_set_append_cut_and_delete() {
        let root = || json!({"a": {"b": 1}, "l": [1, 2, 3]});
        let right = |record: Value, right: Value| assert_eq!(changed(root(), &record), Some(right), "{record}");
        right(json!({"kind": 1, "k": ["a", "b"], "v": 2}), json!({"a": {"b": 2}, "l": [1, 2, 3]}));
        right(json!({"kind": 1, "k": ["a", "new"], "v": null}), json!({"a": {"b": 1, "new": null}, "l": [1, 2, 3]}));
        right(json!({"kind": 1, "k": ["l", 3], "v": 4}), json!({"a": {"b": 1}, "l": [1, 2, 3, 4]}));
        right(json!({"kind": 2, "k": ["l"], "v": [9]}), json!({"a": {"b": 1}, "l": [1, 2, 3, 9]}));
        right(json!({"kind": 2, "k": ["l"], "i": 1, "v": [9]}), json!({"a": {"b": 1}, "l": [1, 9]}));
        right(json!({"kind": 2, "k": ["m"], "v": [9]}), json!({"a": {"b": 1}, "l": [1, 2, 3], "m": [9]}));
        right(json!({"kind": 3, "k": ["a"]}), json!({"l": [1, 2, 3]}));
        right(json!({"kind": 3, "k": ["l", 0]}), json!({"a": {"b": 1}, "l": [2, 3]}));
    }

    #[test]
    fn changes_that_do_not_fit_are_refused() {
        let root = || json!({"a": {"b": 1}, "l": [1]});
        for record in [
            json!({"kind": 1, "k": [], "v": 1}),
            json!({"kind": 1, "k": ["a", "b", "c"], "v": 1}),
            json!({"kind": 1, "k": ["l", 5], "v": 1}),
            json!({"kind": 1, "k": ["l", "x"], "v": 1}),
            json!({"kind": 2, "k": ["a"], "v": [1]}),
            json!({"kind": 2, "k": ["l"], "v": 1}),
            json!({"kind": 3, "k": ["gone"]}),
            json!({"kind": 3, "k": ["l", 1]}),
            json!({"kind": 9, "k": ["a"], "v": 1}),
            json!({"k": ["a"], "v": 1}),
        ] {
            assert_eq!(changed(root(), &record), None, "{record}");
        }
    }

    #[test]
    fn a_tree_of_elements_is_printed_in_order() {
        let node =
            json!({"node": {"children": [{"text": "a"}, {"children": [{"text": "b"}, {"text": "c"}]}, {"text": "d"}]}});
        assert_eq!(printed(&node), "abcd");
        let mut deep = json!({"text": "x"});
        for _level in 0..200 {
            deep = json!({"children": [deep]});
        }
        assert_eq!(printed(&deep), "x");
    }

    #[test]
    fn tools_are_shown_by_their_command_or_what_was_said() {
        let (call, result) = invocation(&json!({"toolId": "run", "toolCallId": "c", "invocationMessage": "Running",
            "toolSpecificData": {"command": "ls"}, "pastTenseMessage": {"value": "Ran"}, "resultDetails": [{"value": "a.py"}]}));
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("run", r#"{"command":"ls"}"#));
        assert_eq!(result.unwrap().text, "a.py");
        let (call, result) = invocation(&json!({"toolId": "read", "invocationMessage": {"value": "Reading a.py"}}));
        assert_eq!((call.arguments.as_str(), result.is_none()), ("Reading a.py", true));
        let output = json!({"toolId": "mcp", "pastTenseMessage": "Ran", "resultDetails": {"input": "{}", "output": [{"value": "out"}]}});
        assert_eq!(invocation(&output).1.unwrap().text, "out");
    }
}
