use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;
use crate::trajectory::{Role, Trajectory};

fn load(text: String) -> LoadedFile {
    load_bytes(Path::new("traces.json"), text.into_bytes())
}

fn only(text: String, format: &str) -> Trajectory {
    let file = load(text);
    assert_eq!(file.report.format, Some(format), "{}", file.report.reason);
    assert_eq!(file.trajectories.len(), 1);
    file.trajectories[0].as_ref().clone()
}

fn told(t: &Trajectory) -> Vec<(Role, &str)> {
    t.steps.iter().map(|s| (s.role, s.text.as_str())).collect()
}

/// An OTLP span: attributes by name, texts as `stringValue`, numbers as `intValue` in text.
fn span(id: &str, parent: &str, start: u64, attributes: &Value) -> Value<'static> {
    let list: Vec<Value> = attributes
        .as_object()
        .unwrap()
        .iter()
        .map(|(k, v)| match v {
            Value::String(text) => json!({"key": k, "value": {"stringValue": text}}),
            Value::Number(n) => json!({"key": k, "value": {"intValue": n.to_string()}}),
            other => json!({"key": k, "value": {"stringValue": other.to_string()}}),
        })
        .collect();
    json!({"traceId": "t", "spanId": id, "parentSpanId": parent, "name": id, "startTimeUnixNano": start.to_string(), "attributes": list})
}

fn otlp(spans: &[Value]) -> String {
    json!({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": spans}]}]})
        .to_string()
}

fn conversation(n: usize) -> Value<'static> {
    let call = json!({"type": "tool_call", "id": "c1", "name": "bash", "arguments": {"command": "ls"}});
    let all = [
        json!({"role": "system", "parts": [{"type": "text", "content": "S"}]}),
        json!({"role": "user", "parts": [{"type": "text", "content": "TASK"}]}),
        json!({"role": "assistant", "parts": [{"type": "text", "content": "look"}, call]}),
        json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "a.py"}]}),
        json!({"role": "user", "parts": [{"type": "text", "content": "go on"}]}),
    ];
    json!(all[..n])
}

#[test]
fn every_call_is_an_action_with_only_what_is_new_before_it() {
    let answer = |n: usize| json!([conversation(n)[n - 1]]);
    let done = json!([{"role": "assistant", "parts": [{"type": "text", "content": "done"}]}]);
    let chat = |input: Value, output: &Value, tokens: u64| {
        json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": tokens,
            "gen_ai.usage.output_tokens": 2, "gen_ai.input.messages": input, "gen_ai.output.messages": output})
    };
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash", "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "a.py"});
    let agent = json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "coder", "instance_id": "o__r-1"});
    let spans = [
        // The call of the framework around that of the client says the same and is counted once.
        span("b2", "a", 30, &chat(conversation(5), &done, 20)),
        span("a", "", 10, &agent),
        span("b1", "a", 11, &chat(conversation(2), &answer(3), 10)),
        span("b1x", "b1", 12, &chat(conversation(2), &answer(3), 10)),
        span("c", "a", 20, &tool),
    ];
    let t = only(otlp(&spans), "otlp");
    let found = told(&t);
    assert_eq!(found[0].0, Role::Meta);
    let expected = [
        (Role::System, "S"),
        (Role::User, "TASK"),
        (Role::Assistant, "look"),
        (Role::Tool, "a.py"),
        (Role::User, "go on"),
        (Role::Assistant, "done"),
    ];
    assert_eq!(found[1..], expected);
    assert_eq!(t.steps[3].action.as_deref(), Some("ls"));
    assert_eq!(t.steps[4].tool_name.as_deref(), Some("bash"));
    assert!(t.steps.iter().all(|s| !s.is_demo));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out, t.usage.api_calls), (Some(30), Some(4), Some(2)));
    assert_eq!(
        (t.model.as_deref(), t.agent.as_deref(), t.instance_id.as_deref()),
        (Some("m"), Some("coder"), Some("o__r-1"))
    );
    assert_eq!(&*t.steps[4].raw.pointer, "/resourceSpans/0/scopeSpans/0/spans/4");
}

#[test]
fn flattened_indexes_of_openllmetry_and_openinference() {
    let traceloop = json!({"llm.request.type": "chat", "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "S",
        "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "TASK", "gen_ai.prompt.10.role": "user", "gen_ai.prompt.10.content": "last",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "look",
        "gen_ai.completion.0.tool_calls.0.id": "c", "gen_ai.completion.0.tool_calls.0.name": "bash", "gen_ai.completion.0.tool_calls.0.arguments": "{\"command\": \"ls\"}",
        "gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.completion_tokens": 3});
    let inference = json!({"openinference.span.kind": "LLM", "llm.model_name": "m",
        "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "S",
        "llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.contents.0.message_content.type": "text",
        "llm.input_messages.1.message.contents.0.message_content.text": "TASK",
        "llm.input_messages.2.message.role": "user", "llm.input_messages.2.message.content": "last",
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "look",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "bash",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{\"command\": \"ls\"}",
        "llm.token_count.prompt": 7, "llm.token_count.completion": 3});
    for attributes in [traceloop, inference] {
        let t = only(otlp(&[span("a", "", 1, &attributes)]), "otlp");
        let expected = [(Role::System, "S"), (Role::User, "TASK"), (Role::User, "last"), (Role::Assistant, "look")];
        assert_eq!(told(&t), expected);
        assert_eq!(t.steps[3].action.as_deref(), Some("ls"));
        assert_eq!((t.steps[3].calls[0].id.as_str(), t.usage.tokens_in), ("c", Some(7)));
    }
}

#[test]
fn events_of_the_older_conventions_and_content_that_was_not_recorded() {
    let mut old = span("a", "", 1, &json!({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5}));
    let event = |name: &str, attributes: Value| json!({"name": name, "attributes": attributes});
    old["events"] = json!([
        event("gen_ai.user.message", json!([{"key": "content", "value": {"stringValue": "TASK"}}])),
        event(
            "gen_ai.choice",
            json!([{"key": "message", "value": {"stringValue": "{\"content\": \"look\", \"tool_calls\": [{\"id\": \"c\", \"function\": {\"name\": \"bash\", \"arguments\": \"{}\"}}]}"}}])
        ),
    ]);
    let silent = span("b", "", 2, &json!({"gen_ai.operation.name": "chat"}));
    let t = only(format!("{}\n{}", otlp(&[old]), otlp(&[silent])), "otlp");
    assert_eq!(told(&t), [(Role::User, "TASK"), (Role::Assistant, "look"), (Role::Assistant, "")]);
    assert_eq!(t.diagnostics[0].code, "trace.no-content");
    assert!(t.steps[2].raw.span.start > 0, "the second line");
}

#[test]
fn spans_of_the_console_exporter_with_an_agent_of_their_own() {
    let agent = json!({"name": "search", "context": {"trace_id": "t", "span_id": "a"}, "parent_id": null, "start_time": 5,
        "attributes": {"agent": "Searcher", "input": "TASK"},
        "events": [{"name": "Agent Start", "attributes": {"agent_instructions": "S"}}, {"name": "Agent Response", "attributes": {"response": "R"}}],
        "status": {"status_code": "ERROR", "description": "boom"}});
    let t = only(json!({"traces": [{"trace_id": "t", "spans": [agent]}]}).to_string(), "otlp");
    assert_eq!(told(&t), [(Role::System, "S"), (Role::User, "TASK"), (Role::Assistant, "R")]);
    assert_eq!(t.error.as_deref(), Some("boom"));
}

#[test]
fn the_agents_sdk_with_printed_responses() {
    let span = |id: &str, start: &str, data: Value| json!({"object": "trace.span", "id": id, "trace_id": "trace_1", "parent_id": null, "started_at": start, "ended_at": "z", "span_data": data, "error": null});
    let spans = [
        span("a", "1", json!({"type": "agent", "name": "coder", "tools": []})),
        span(
            "b",
            "2",
            json!({"type": "response", "response_id": "r", "input": [{"role": "user", "content": "TASK"}],
            "response": "Response(output=[X(content=[ResponseOutputText(annotations=[], text='look', type='t')])])"}),
        ),
        span("c", "3", json!({"type": "function", "name": "bash", "input": "{\"command\": \"ls\"}", "output": "a.py"})),
        span(
            "d",
            "4",
            json!({"type": "generation", "model": "m", "input": [{"role": "user", "content": "TASK"}, {"role": "assistant", "content": "look"}],
            "output": [{"role": "assistant", "content": "done"}], "usage": {"input_tokens": 3, "output_tokens": 1}}),
        ),
        span("e", "5", json!({"type": "handoff", "from_agent": "coder", "to_agent": "tester"})),
        span("f", "6", json!({"type": "invented", "x": 1})),
    ];
    let trace = json!({"object": "trace", "id": "trace_1", "workflow_name": "w", "group_id": "g", "spans": spans});
    let t = only(json!({"traces": [trace]}).to_string(), "agents-sdk");
    let found = told(&t);
    assert_eq!(found[..2], [(Role::Meta, "trace w"), (Role::Meta, "agent coder")]);
    let expected = [
        (Role::User, "TASK"),
        (Role::Assistant, "look"),
        (Role::Tool, "bash({\"command\": \"ls\"})\na.py"),
        (Role::Assistant, "done"),
        (Role::Meta, "handoff from coder to tester"),
    ];
    assert_eq!(found[2..7], expected);
    assert!(found[7].1.starts_with("span invented"));
    assert_eq!((t.session.as_deref(), t.usage.tokens_in, t.n_actions()), (Some("g"), Some(3), 2));
}

#[test]
fn runs_of_langsmith_in_order() {
    let human = json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "HumanMessage"], "kwargs": {"content": "TASK", "type": "human"}});
    let ai = json!({"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"],
        "kwargs": {"content": "look", "tool_calls": [{"name": "bash", "args": {"command": "ls"}, "id": "c"}]}});
    let run = |id: &str, order: &str, kind: &str, inputs: Value, outputs: Value| {
        json!({"id": id, "trace_id": "t", "parent_run_id": "root", "dotted_order": order, "run_type": kind, "name": "bash", "inputs": inputs, "outputs": outputs,
            "prompt_tokens": 4, "completion_tokens": 1, "extra": {"metadata": {"ls_model_name": "m", "instance_id": "o__r-1"}}})
    };
    let rows = [
        run("b", "2", "tool", json!({"input": "ls"}), json!({"output": "a.py"})),
        run(
            "a",
            "1",
            "llm",
            json!({"messages": [[human]]}),
            json!({"generations": [[{"text": "look", "message": ai}]]}),
        ),
        run("c", "3", "llm", json!({"prompts": ["TASK"]}), json!({"generations": [[{"text": "done"}]]})),
        run("d", "4", "chain", json!({}), json!({})),
    ];
    let t = only(rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"), "langsmith");
    let expected = [
        (Role::User, "TASK"),
        (Role::Assistant, "look"),
        (Role::Tool, "a.py"),
        (Role::Assistant, "done"),
        (Role::Meta, "chain bash"),
    ];
    assert_eq!(told(&t), expected);
    assert_eq!(t.steps[1].action.as_deref(), Some("ls"));
    assert_eq!((t.instance_id.as_deref(), t.usage.tokens_in, t.usage.api_calls), (Some("o__r-1"), Some(8), Some(2)));
}
