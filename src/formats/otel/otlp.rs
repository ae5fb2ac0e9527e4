//! Spans of OpenTelemetry: as OTLP writes them, and as its Python exporters do.

use super::super::document::Row;
use super::super::field;
use super::super::json::{Map, Value};
use super::messages;
use super::span::{self, Kind, Span};
use crate::trajectory::{Role, Step, Tokens, ToolCall};

/// Every span of a row.
pub fn spans(row: Row<'_>, give: &mut dyn FnMut(Span)) {
    let root = row.value;
    for key in ["resourceSpans", "resource_spans"] {
        for (i, resource) in field::list(root, key).iter().enumerate() {
            for scopes in ["scopeSpans", "scope_spans", "instrumentationLibrarySpans"] {
                for (j, scope) in field::list(resource, scopes).iter().enumerate() {
                    for (k, value) in field::list(scope, "spans").iter().enumerate() {
                        let place = span::place(row, format!("/{key}/{i}/{scopes}/{j}/spans/{k}"));
                        give(Span { raw: place, ..read(value) });
                    }
                }
            }
        }
    }
    for (i, trace) in field::list(root, "traces").iter().enumerate() {
        for (k, value) in field::list(trace, "spans").iter().enumerate() {
            give(Span { raw: span::place(row, format!("/traces/{i}/spans/{k}")), ..read(value) });
        }
    }
    for (k, value) in field::list(root, "spans").iter().enumerate() {
        give(Span { raw: span::place(row, format!("/spans/{k}")), ..read(value) });
    }
    if root.get("context").is_some() && root.get("name").is_some() {
        give(Span { raw: span::place(row, String::new()), ..read(root) });
    }
}

/// An attribute's value: OTLP says its type, others do not.
fn plain<'a>(value: &'a Value<'a>) -> Value<'a> {
    let Value::Object(members) = value else { return value.clone() };
    let Some((kind, inner)) = members.iter().next().filter(|_| members.len() == 1) else { return value.clone() };
    match kind {
        "stringValue" | "boolValue" | "doubleValue" | "bytesValue" => inner.clone(),
        // 64-bit numbers are texts in OTLP.
        "intValue" => field::integer(inner).map_or_else(|| inner.clone(), Value::from),
        "arrayValue" => Value::Array(field::list(inner, "values").iter().map(plain).collect()),
        "kvlistValue" => Value::Object(attributes(inner.get("values"))),
        _ => value.clone(),
    }
}

/// Attributes as a list of `{key, value}` or as an object.
fn attributes<'a>(value: Option<&'a Value<'a>>) -> Map<'a> {
    match value {
        Some(Value::Array(list)) => {
            let pairs = list.iter().filter_map(|a| Some((field::text(a, "key")?, plain(a.get("value")?))));
            pairs.collect()
        }
        Some(Value::Object(members)) => members.clone(),
        _ => Map::new(),
    }
}

fn read(value: &Value) -> Span {
    let attributes = attributes(value.get("attributes"));
    let context = |camel: &str, snake: &str| {
        let direct = field::text(value, camel).or_else(|| field::text(value, snake));
        direct.or_else(|| field::str_at(value, &["context", snake]).map(str::to_owned))
    };
    let start = field::get(value, "startTimeUnixNano").or_else(|| field::get(value, "start_time"));
    let failed = field::at(value, &["status", "code"]).or_else(|| field::at(value, &["status", "status_code"]));
    let failed = failed.is_some_and(|c| field::count(c) == Some(2) || c.as_str().is_some_and(|c| c.contains("ERROR")));
    let message = ["message", "description"].iter().find_map(|k| field::str_at(value, &["status", k]));
    let name = field::text(value, "name").unwrap_or_default();
    let kind = kind(&attributes);
    let mut span = Span {
        trace: context("traceId", "trace_id").unwrap_or_default(),
        id: context("spanId", "span_id").unwrap_or_default(),
        parent: ["parentSpanId", "parent_span_id", "parent_id"].iter().find_map(|k| field::text(value, k)),
        kind,
        start: span::order(start),
        model: span::text(
            &attributes,
            &["gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.request.model"],
        ),
        tokens: tokens(&attributes),
        cost: ["gen_ai.usage.cost", "llm.cost.total", "llm.usage.cost"]
            .iter()
            .find_map(|k| attributes.get(k).and_then(field::number))
            .filter(|c| *c > 0.0),
        session: span::text(&attributes, &["gen_ai.conversation.id", "session.id", "thread_id"]),
        instance: span::text(&attributes, &["instance_id", "swebench.instance_id", "metadata.instance_id"]),
        agent: span::text(&attributes, &["gen_ai.agent.name", "agent.name", "agent_name", "agent"]),
        error: message.filter(|_| failed).map(str::to_owned).or_else(|| failed.then(|| "failed".to_owned())),
        name,
        ..Span::default()
    };
    let events: Vec<(String, Map<'_>)> = field::list(value, "events")
        .iter()
        .map(|e| (field::text(e, "name").unwrap_or_default(), self::attributes(e.get("attributes"))))
        .collect();
    match kind {
        Kind::Model => model(&attributes, &events, &mut span),
        Kind::Tool => span.output.push(tool(&attributes, &events, &span.name)),
        Kind::Agent | Kind::Other => other(&attributes, &events, &mut span),
    }
    span
}

fn kind(attributes: &Map<'_>) -> Kind {
    let said = |key: &str| attributes.get(key).and_then(Value::as_str).unwrap_or_default().to_lowercase();
    match said("gen_ai.operation.name").as_str() {
        "chat" | "text_completion" | "generate_content" => return Kind::Model,
        "execute_tool" => return Kind::Tool,
        "invoke_agent" | "create_agent" => return Kind::Agent,
        _ => {}
    }
    match said("openinference.span.kind").as_str() {
        "llm" => return Kind::Model,
        "tool" => return Kind::Tool,
        "agent" | "chain" => return Kind::Agent,
        _ => {}
    }
    match said("traceloop.span.kind").as_str() {
        "tool" => return Kind::Tool,
        "agent" | "workflow" | "task" => return Kind::Agent,
        _ => {}
    }
    let has = |start: &str| attributes.keys().any(|k| k.starts_with(start));
    let called = attributes.contains_key("llm.request.type");
    if called
        || has("gen_ai.prompt.")
        || has("llm.input_messages.")
        || has("gen_ai.request.model")
        || has("gen_ai.input.")
    {
        Kind::Model
    } else if has("gen_ai.tool.") || attributes.contains_key("tool.name") {
        Kind::Tool
    } else {
        Kind::Other
    }
}

fn tokens(attributes: &Map<'_>) -> Option<Tokens> {
    let input = [
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
    ];
    let output = [
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
    ];
    let cached = [
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "llm.token_count.prompt_details.cache_read",
    ];
    let (input, output) = (span::count(attributes, &input), span::count(attributes, &output));
    if input.is_none() && output.is_none() {
        return None;
    }
    let cached = span::count(attributes, &cached);
    Some(Tokens { input: input.unwrap_or(0), cached, output: output.unwrap_or(0) })
}

/// The first of these attributes, where it holds JSON.
fn given<'a>(map: &'a Map<'a>, keys: &[&str]) -> Option<Value<'a>> {
    keys.iter().find_map(|k| map.get(k)).and_then(messages::structured)
}

/// What a model call was told and answered, by whichever convention wrote it.
fn model(attributes: &Map<'_>, events: &[(String, Map<'_>)], span: &mut Span) {
    let details = events.iter().find(|(name, _)| name == "gen_ai.client.inference.operation.details");
    for map in std::iter::once(attributes).chain(details.map(|(_, map)| map)) {
        if let Some(system) = given(map, &["gen_ai.system_instructions"]) {
            span.input.extend(messages::of_list(&system, "system"));
        }
        for (keys, answer) in [
            (["gen_ai.input.messages", "gen_ai.prompt"], false),
            (["gen_ai.output.messages", "gen_ai.completion"], true),
        ] {
            if let Some(list) = given(map, &keys) {
                let steps = messages::of_list(&list, if answer { "assistant" } else { "user" });
                if answer { span.output.extend(steps) } else { span.input.extend(steps) }
            }
        }
    }
    for (name, map) in events {
        event(name, map, span);
    }
    if span.input.is_empty() && span.output.is_empty() {
        flattened(attributes, span);
    }
}

/// Events of the older GenAI conventions: one a message.
fn event(name: &str, map: &Map<'_>, span: &mut Span) {
    let whole = |role: &str| {
        let mut message =
            map.get("message").and_then(messages::structured).unwrap_or_else(|| Value::Object(map.clone()));
        if let Value::Object(members) = &mut message {
            members.get_or_insert("role", Value::from(role));
        }
        messages::of_message(&message, role)
    };
    match name {
        "gen_ai.system.message" => span.input.extend(whole("system")),
        "gen_ai.user.message" => span.input.extend(whole("user")),
        "gen_ai.assistant.message" => span.input.extend(whole("assistant")),
        "gen_ai.tool.message" => span.input.extend(whole("tool")),
        "gen_ai.choice" => span.output.extend(whole("assistant")),
        "gen_ai.content.prompt" => {
            span.input.extend(
                map.get("gen_ai.prompt")
                    .map(|v| messages::of_list(&messages::structured(v).unwrap_or_else(|| v.clone()), "user"))
                    .unwrap_or_default(),
            );
        }
        "gen_ai.content.completion" => {
            span.output.extend(
                map.get("gen_ai.completion")
                    .map(|v| messages::of_list(&messages::structured(v).unwrap_or_else(|| v.clone()), "assistant"))
                    .unwrap_or_default(),
            );
        }
        _ => {}
    }
}

/// Indexes in the names of the attributes: OpenLLMetry and OpenInference; else what went in and came out as it is.
fn flattened(attributes: &Map<'_>, span: &mut Span) {
    let list =
        |prefixes: &[&str]| prefixes.iter().find_map(|p| messages::unfolded(attributes, p)).map(messages::unwrapped);
    if let Some(told) = list(&["gen_ai.prompt", "llm.prompts", "llm.input_messages"]) {
        span.input = messages::of_list(&told, "user");
    }
    if let Some(said) = list(&["gen_ai.completion", "llm.completions", "llm.output_messages"]) {
        span.output = messages::of_list(&said, "assistant");
    }
    let whole = |key: &str, role| {
        let value = attributes.get(key)?;
        let parsed = messages::structured(value);
        let list = parsed.as_ref().and_then(|v| field::get(v, "messages")).unwrap_or(value);
        Some(messages::of_list(list, role))
    };
    if span.input.is_empty() {
        span.input =
            whole("input.value", "user").or_else(|| whole("traceloop.entity.input", "user")).unwrap_or_default();
    }
    if span.output.is_empty() {
        span.output = whole("output.value", "assistant")
            .or_else(|| whole("traceloop.entity.output", "assistant"))
            .unwrap_or_default();
    }
}

fn tool(attributes: &Map<'_>, events: &[(String, Map<'_>)], span: &str) -> Step {
    let name = span::text(attributes, &["gen_ai.tool.name", "tool.name", "traceloop.entity.name"])
        .unwrap_or_else(|| span.to_owned());
    let given = |keys: &[&str]| keys.iter().find_map(|k| attributes.get(k));
    let arguments = given(&["gen_ai.tool.call.arguments", "tool.parameters", "input.value", "traceloop.entity.input"]);
    let message = events.iter().find(|(name, _)| name == "gen_ai.tool.message").and_then(|(_, map)| map.get("content"));
    let said = given(&["gen_ai.tool.call.result", "gen_ai.tool.message", "output.value", "traceloop.entity.output"])
        .or(message);
    let call = ToolCall {
        id: span::text(attributes, &["gen_ai.tool.call.id", "tool.call_id", "tool_call.id"]).unwrap_or_default(),
        name: name.clone(),
        arguments: arguments.map(field::json_text).unwrap_or_default(),
    };
    messages::result(Some(name), Some(call), said)
}

/// Other spans: what somebody noted of an agent in attributes and events of their own.
fn other(attributes: &Map<'_>, events: &[(String, Map<'_>)], span: &mut Span) {
    let about = span.agent.is_some() && span.kind == Kind::Other;
    for (name, map) in events {
        let told = span::text(map, &["agent_instructions", "instructions"]).filter(|_| about);
        let said = span::text(map, &["response", "agent_response"]).filter(|_| about);
        span.output.extend(told.map(|text| Step::new(Role::System, text)));
        span.output.extend(
            span::text(attributes, &["input"])
                .filter(|_| about && name.contains("Start"))
                .map(|t| Step::new(Role::User, t)),
        );
        if let Some(said) = said {
            span.output.push(Step::new(Role::Assistant, said));
        } else if !name.contains("Start") {
            let text = Value::Object(map.clone()).to_string();
            span.output.push(Step::new(Role::Meta, format!("event {name}: {}", field::clipped(&text, 2000))));
        }
    }
    if span.output.is_empty() {
        let shown: Map<'_> = attributes.clone();
        let text = if shown.is_empty() {
            String::new()
        } else {
            format!(": {}", field::clipped(&Value::Object(shown).to_string(), 500))
        };
        span.output.push(Step::new(Role::Meta, format!("span {}{text}", span.name)));
    }
}
