//! The text an OpenHands critic gets, byte for byte, and the tokens its values are read at.
//!
//! `fixtures/critic/expected.json` was computed by OpenHands' own conversion, Qwen2.5's chat template and tokenizer in
//! Python (`fixtures/critic/make.py`); the readable texts are snapshots.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use tokenizers::Tokenizer;
use trajscope::critic::{CriticText, Profile, render};
use trajscope::trajectory::{Role, Step, ToolCall, ToolSpec, Trajectory};

const CASES: &str = include_str!("fixtures/critic/cases.json");
const EXPECTED: &str = include_str!("fixtures/critic/expected.json");
const ARGUMENTS: &str = include_str!("fixtures/critic/arguments.jsonl");

#[derive(Deserialize)]
struct Case {
    name: String,
    messages: Vec<Json>,
    #[serde(default)]
    tools: Vec<Json>,
    /// A message holds the template's tokens: the client's state machine finds turns that are none.
    #[serde(default)]
    quotes_tokens: bool,
}

#[derive(Deserialize)]
struct Expected {
    text_sha256: String,
    bytes: usize,
    tokens: usize,
    ids_sha256: String,
    positions: Vec<usize>,
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn text_of(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn step(message: &Json) -> Step {
    let role = match message["role"].as_str().unwrap() {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => panic!("role {other}"),
    };
    let mut step = Step::new(role, text_of(&message["content"]));
    step.call_id = message["tool_call_id"].as_str().map(str::to_owned);
    step.tool_name = message["name"].as_str().map(str::to_owned);
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let (id, name, arguments) = (&call["id"], &function["name"], &function["arguments"]);
        step.calls.push(ToolCall { id: text_of(id), name: text_of(name), arguments: text_of(arguments) });
    }
    step
}

fn trajectory(case: &Case) -> Trajectory {
    let tool = |tool: &Json| {
        let function = &tool["function"];
        let parameters = function.get("parameters").map(ToString::to_string).unwrap_or_default();
        ToolSpec { name: text_of(&function["name"]), description: text_of(&function["description"]), parameters }
    };
    Trajectory {
        steps: case.messages.iter().map(step).collect(),
        tools: case.tools.iter().map(tool).collect(),
        ..Trajectory::default()
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_str(CASES).unwrap()
}

fn case(name: &str) -> Trajectory {
    trajectory(cases().iter().find(|c| c.name == name).unwrap())
}

fn openhands() -> &'static Profile {
    Profile::by_id("openhands-32b").unwrap()
}

/// What holds for every rendering of every kind: one value an action, in order, on character boundaries, at the
/// end of the profile's token.
fn check_values(profile: &Profile, trajectory: &Trajectory, rendered: &CriticText) {
    let values: Vec<_> = rendered.segments.iter().filter_map(|s| s.value.map(|v| (s, v))).collect();
    let actions: Vec<usize> = values.iter().map(|(_, v)| v.action).collect();
    assert_eq!(actions, (0..trajectory.n_actions()).collect::<Vec<_>>(), "{}", profile.id);
    for (segment, value) in values {
        assert!(segment.text[..value.end].ends_with(&profile.positions.token), "{}: {segment:?}", profile.id);
        assert_eq!(segment.turn, value.action + 1);
        assert!(!segment.pinned);
    }
    let turns: Vec<usize> = rendered.segments.iter().map(|s| s.turn).collect();
    assert!(turns.is_sorted(), "{}: {turns:?}", profile.id);
    assert!(rendered.segments.iter().all(|s| !s.pinned || s.turn == 0));
}

#[test]
fn every_profile_gives_every_action_exactly_one_value() {
    for case in cases() {
        let trajectory = trajectory(&case);
        for profile in Profile::builtin() {
            check_values(profile, &trajectory, &render(profile, &trajectory));
        }
    }
}

#[test]
fn text_is_what_openhands_conversion_and_the_chat_template_make() {
    let expected: BTreeMap<String, Expected> = serde_json::from_str(EXPECTED).unwrap();
    assert!(expected.len() >= 9);
    let cases = cases();
    for (name, expected) in &expected {
        let case = cases.iter().find(|c| c.name == *name).unwrap();
        let text = render(openhands(), &trajectory(case)).text();
        assert_eq!((text.len(), sha256(&text)), (expected.bytes, expected.text_sha256.clone()), "{name}:\n{text}");
    }
}

/// `(ids, index of the token that ends at each value)`.
fn positions(tokenizer: &Tokenizer, rendered: &CriticText) -> (Vec<u32>, Vec<usize>) {
    let encoding = tokenizer.encode(rendered.text(), false).unwrap();
    let mut start = 0;
    let mut found = Vec::new();
    for segment in &rendered.segments {
        if let Some(value) = segment.value {
            let end = start + value.end;
            found.push(encoding.get_offsets().iter().position(|&(_, e)| e == end).unwrap());
        }
        start += segment.text.len();
    }
    (encoding.get_ids().to_vec(), found)
}

fn tokenizer(shared: &Path, name: &str) -> Tokenizer {
    Tokenizer::from_file(shared.join("tokenizers").join(name).join("tokenizer.json")).unwrap()
}

#[test]
fn values_lie_where_the_reference_client_reads_them() {
    let Some(shared) = trajscope::testing::shared() else { return };
    let tokenizer = tokenizer(&shared, "qwen2.5");
    let expected: BTreeMap<String, Expected> = serde_json::from_str(EXPECTED).unwrap();
    for case in cases() {
        let trajectory = trajectory(&case);
        let (ids, found) = positions(&tokenizer, &render(openhands(), &trajectory));
        assert!(found.iter().all(|&i| ids[i] == 151_645), "{}: a value is not read at <|im_end|>", case.name);
        let Some(expected) = expected.get(&case.name) else { continue };
        let joined = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!((ids.len(), sha256(&joined)), (expected.tokens, expected.ids_sha256.clone()), "{}", case.name);
        if case.quotes_tokens {
            assert_ne!(found, expected.positions, "{}: the case shows nothing", case.name);
            continue;
        }
        // A message with several calls is several turns for the reference; the action's value is the last one's.
        let mut turns = expected.positions.iter().copied();
        for (action, at) in found.iter().enumerate() {
            let n = trajectory.steps[trajectory.action_steps()[action]].calls.len().max(1);
            assert_eq!(turns.nth(n - 1), Some(*at), "{}: action {action}", case.name);
        }
        assert_eq!(turns.next(), None, "{}: turns without an action", case.name);
    }
}

#[test]
fn qwen3_reads_the_same_marks() {
    let Some(shared) = trajscope::testing::shared() else { return };
    let tokenizer = tokenizer(&shared, "qwen3");
    for case in cases() {
        let (ids, found) = positions(&tokenizer, &render(openhands(), &trajectory(&case)));
        assert!(found.iter().all(|&i| ids[i] == 151_645), "{}", case.name);
    }
}

#[test]
fn arguments_are_printed_as_python_prints_them() {
    #[derive(Deserialize)]
    struct Line {
        name: String,
        arguments: String,
        sha256: String,
    }
    let lines: Vec<Line> = ARGUMENTS.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(lines.len() >= 100);
    for line in lines {
        let mut action = Step::new(Role::Assistant, "");
        action.calls.push(ToolCall { id: "c".into(), name: line.name.clone(), arguments: line.arguments.clone() });
        let trajectory = Trajectory { steps: vec![Step::new(Role::User, "x"), action], ..Trajectory::default() };
        let rendered = render(openhands(), &trajectory);
        let turn = rendered.segments.last().unwrap().text.clone();
        let call = turn.strip_prefix("<|im_start|>assistant\n").unwrap().strip_suffix("<|im_end|>\n").unwrap();
        assert_eq!(sha256(call), line.sha256, "{}: {}\n{call}", line.name, line.arguments);
    }
}

/// Any step an agent's file might hold.
fn any_step() -> impl Strategy<Value = Step> {
    let role = prop_oneof![
        Just(Role::System),
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::Assistant),
        Just(Role::Tool),
        Just(Role::Tool),
        Just(Role::Meta)
    ];
    let id = || prop::option::of(prop_oneof![Just(String::new()), "[ab]"]);
    let arguments = prop_oneof![Just(String::new()), Just("{\"k\": [1.0, null]}".to_owned()), "\\PC{0,12}"];
    let call = ("[ab]", "[xy]", arguments).prop_map(|(id, name, arguments)| ToolCall { id, name, arguments });
    let calls = prop::collection::vec(call, 0..4);
    (role, "(\\PC|\\s|<\\|im_end\\|>){0,20}", calls, id(), id(), prop::bool::weighted(0.1)).prop_map(
        |(role, text, calls, call_id, tool_name, is_demo)| {
            let calls = if role == Role::Assistant { calls } else { Vec::new() };
            Step { calls, call_id, tool_name, is_demo, ..Step::new(role, text) }
        },
    )
}

proptest! {
    #[test]
    fn any_trajectory_gets_one_value_an_action_and_loses_no_words(
        steps in prop::collection::vec(any_step(), 0..14), task in prop::option::of("\\PC{1,9}"), has_tools: bool,
    ) {
        let tools = if has_tools { vec![ToolSpec { name: "x".into(), ..ToolSpec::default() }] } else { Vec::new() };
        let trajectory = Trajectory { steps, task, tools, ..Trajectory::default() };
        for profile in Profile::builtin() {
            check_values(profile, &trajectory, &render(profile, &trajectory));
        }
        let rendered = render(openhands(), &trajectory);
        let (text, mut from) = (rendered.text(), 0);
        let n_calls: usize = trajectory.steps.iter().filter(|s| s.is_action()).map(|s| s.calls.len()).sum();
        prop_assert!(text.matches("<function=").count() >= n_calls, "{text}");
        for step in trajectory.steps.iter().filter(|s| !s.is_demo && s.role != Role::Meta) {
            let words = step.text.trim_start();
            if step.calls.len() > 1 {
                // Results may change the order of its turns.
                prop_assert!(text[from..].contains(words), "{words:?} is missing in {text}");
            } else {
                from += text[from..].find(words).map_or_else(|| panic!("{words:?} in {text}"), |at| at + words.len());
            }
        }
    }
}

#[test]
fn readable_texts() {
    for name in [
        "native-arguments",
        "parallel",
        "missing-result",
        "broken-arguments",
        "text-agent",
        "special-tokens",
        "no-system",
    ] {
        let rendered = render(openhands(), &case(name));
        let mut shown = String::new();
        for segment in &rendered.segments {
            let pin = if segment.pinned { " pinned" } else { "" };
            let value = segment.value.map_or_else(String::new, |v| format!(" action {} at {}", v.action, v.end));
            write!(shown, "# turn {}{pin}{value}\n{}", segment.turn, segment.text).unwrap();
        }
        for warning in &rendered.warnings {
            writeln!(shown, "# warning: {warning}").unwrap();
        }
        insta::with_settings!({ snapshot_path => "fixtures/critic", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, shown);
        });
    }
}

#[test]
fn every_real_run_gets_one_value_an_action_at_a_mark_of_the_tokenizer() {
    /// Tokenising them all would take minutes in a debug build.
    const TOKENISED: usize = 30;
    let Some(shared) = trajscope::testing::shared() else { return };
    let tokenizer = tokenizer(&shared, "qwen2.5");
    let dataset = trajscope::formats::load(&[shared.join("corpus")], &|_| ());
    let with_actions: Vec<_> = dataset.trajectories.iter().filter(|t| t.n_actions() > 0).collect();
    assert!(with_actions.len() >= 200, "only {} real runs with actions", with_actions.len());
    for (i, trajectory) in with_actions.iter().enumerate() {
        for profile in Profile::builtin() {
            let rendered = render(profile, trajectory);
            check_values(profile, trajectory, &rendered);
            assert!(rendered.warnings.iter().all(|w| !w.is_empty() && !w.contains('\n')), "{:?}", rendered.warnings);
        }
        if i % (with_actions.len() / TOKENISED) == 0 {
            let (ids, found) = positions(&tokenizer, &render(openhands(), trajectory));
            assert!(found.iter().all(|&t| ids[t] == 151_645), "{:?}", trajectory.source);
            assert!(found.is_sorted() && found.len() == trajectory.n_actions());
        }
    }
}
