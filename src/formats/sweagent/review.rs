//! What a RetryAgent's reviewer and chooser said: shown as Meta, for the agent never saw it.

use super::super::json::Value;
use super::super::{chat, field};
use crate::trajectory::{RawPlace, Role, Step, Trajectory};

/// Adds the review and the choice of the object at pointer `at`.
pub fn add(root: &Value, at: &str, out: &mut Trajectory) {
    let Some(info) = field::get(root, "info") else {
        return;
    };
    let place = |key: &str| RawPlace { pointer: format!("{at}/info/{key}").into(), ..RawPlace::default() };
    if let Some(review) = field::get(info, "review") {
        out.steps.push(Step { raw: place("review"), ..Step::new(Role::Meta, reviewed(review)) });
    }
    if let Some(choice) = field::get(info, "chooser") {
        let text = format!("the chooser said: {}", field::clipped(&said(choice), 2_000));
        out.steps.push(Step { raw: place("chooser"), ..Step::new(Role::Meta, text) });
    }
}

/// The verdict and the words of a review.
fn reviewed(review: &Value) -> String {
    let accept = field::get(review, "accept").and_then(field::scalar_text);
    let verdict =
        accept.map_or_else(|| "the reviewer gave no verdict".to_owned(), |a| format!("the reviewer said {a}"));
    let words: Vec<String> = match field::get(review, "outputs") {
        Some(Value::Array(outputs)) => outputs.iter().map(said).collect(),
        Some(other) => vec![said(other)],
        None => Vec::new(),
    };
    let mut text = format!("{verdict} (an opinion on the attempt, not a test result)");
    for word in words.iter().filter(|w| !w.is_empty()) {
        text.push('\n');
        text.push_str(word);
    }
    text
}

/// Text of an answer: itself, or the message in it.
fn said(output: &Value) -> String {
    match field::get(output, "message").or_else(|| field::get(output, "response")) {
        Some(inner) if inner.is_string() => chat::content_text(inner),
        _ => field::json_text(output),
    }
}
