//! aider: the results of its SWE-bench harness (every try is a candidate), and chats in Markdown.

mod chat;

use super::field;
use super::json::Value;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Outcome, Prediction};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "aider-result",
        name: "aider result",
        writer: "aider-swe-bench",
        recognised: "`instance_id` and `model_patch` with `all_results` or `edit_outcome`",
        kind: Kind::Prediction,
        reader: Reader::File { sniff, decode },
    },
    Format {
        id: "aider-chat",
        name: "aider chat",
        writer: "aider",
        recognised: "Markdown with `# aider chat started at`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: chat::sniff, decode: chat::decode },
    },
];

fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let named = sniff.is_rows() && sniff.has_all(&["instance_id", "model_patch"]);
    let fits = named && (sniff.has("all_results") || sniff.has_all(&["edit_outcome", "lint_outcome"]));
    if fits {
        Match::some(Confidence::Certain, "a prediction with `all_results` or outcomes of its edits")
    } else {
        None
    }
}

/// Every try is a candidate; the one that was handed in carries the label.
fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut found = Vec::new();
    decoded.diagnostics = input.document.rows(|row| found.extend(candidates(row.value)));
    for (record, mut prediction) in found.into_iter().enumerate() {
        prediction.record = record;
        decoded.predictions.push(prediction);
    }
    decoded
}

fn candidates(row: &Value) -> Vec<Prediction> {
    let Some(instance_id) = field::text(row, "instance_id") else {
        return Vec::new();
    };
    let label = Outcome::from_bool(field::get(row, "resolved").and_then(field::truth));
    let patch = |v: &Value| field::str(v, "model_patch").map(str::to_owned);
    let base = Prediction {
        instance_id,
        model: field::text(row, "model_name_or_path"),
        patch: patch(row),
        ..Prediction::default()
    };
    let tries = field::list(row, "all_results");
    let mut all: Vec<Prediction> = tries
        .iter()
        .enumerate()
        .map(|(i, one)| {
            let model = field::text(one, "model").map(|m| format!(" {m}")).unwrap_or_default();
            Prediction { candidate: Some(format!("try {}{model}", i + 1)), patch: patch(one), ..base.clone() }
        })
        .collect();
    // The result repeats the try it chose: the last one with its patch.
    match all.iter_mut().rev().find(|p| p.patch == base.patch) {
        Some(chosen) => chosen.outcome = label,
        None => all.push(Prediction { outcome: label, ..base }),
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::json::json;
    use super::super::load::load_bytes;
    use super::*;

    #[test]
    fn every_try_is_a_candidate_and_the_chosen_one_has_the_label() {
        let one = |patch: &str, model: &str| json!({"instance_id": "o__r-1", "model_patch": patch, "model": model});
        let row = json!({"instance_id": "o__r-1", "model_name_or_path": "aider", "model_patch": "Q", "model": "b",
            "edit_outcome": true, "lint_outcome": true, "all_results": [one("P", "a"), one("Q", "b"), one("R", "a")], "resolved": true});
        let file = load_bytes(Path::new("o__r-1.json"), row.to_string().into_bytes());
        assert_eq!(file.report.format, Some("aider-result"));
        let found: Vec<_> = file
            .predictions
            .iter()
            .map(|p| (p.record, p.candidate.as_deref(), p.patch.as_deref(), p.outcome.as_bool()))
            .collect();
        let expected = [
            (0, Some("try 1 a"), Some("P"), None),
            (1, Some("try 2 b"), Some("Q"), Some(true)),
            (2, Some("try 3 a"), Some("R"), None),
        ];
        assert_eq!(found, expected);
        assert_eq!(file.predictions[0].model.as_deref(), Some("aider"));
    }

    #[test]
    fn a_result_without_tries_stands_for_itself() {
        let row = json!({"instance_id": "o__r-1", "model_patch": null, "edit_outcome": false, "lint_outcome": true});
        let file = load_bytes(Path::new("o__r-1.json"), row.to_string().into_bytes());
        assert_eq!(file.predictions.len(), 1);
        assert_eq!((file.predictions[0].patch.as_deref(), file.predictions[0].outcome), (None, Outcome::Unknown));
    }
}
