//! Candidate patches: `preds.json` as a dictionary, lists, JSON lines, and SWE-agent's `.pred`.

use super::field;
use super::json::{Map, Value};
use super::names::looks_like_instance;
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Diagnostic, Outcome, Prediction, Severity};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[Format {
    id: "predictions",
    name: "Predictions",
    writer: "SWE-agent, mini-swe-agent, OpenHands and everybody who submits to SWE-bench",
    recognised: "rows with `instance_id` and `model_patch`, or a dictionary of patches by instance id",
    kind: Kind::Prediction,
    reader: Reader::File { sniff, decode },
}];

/// Names of the patch, the usual one first.
const PATCH: [&str; 5] = ["model_patch", "modelPatch", "fix_patch", "patch", "prediction"];
/// Names of the instance.
const INSTANCE: [&str; 2] = ["instance_id", "instanceId"];
/// What a row with steps, or one of a benchmark's own rows (whose `patch` is the gold one), has beside.
const NOT_A_PREDICTION: [&str; 8] =
    ["messages", "conversations", "history", "trajectory", "steps", "trajectory_steps", "test_patch", "base_commit"];

/// Rows with an instance and a patch, or a dictionary of them by instance.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    if let Some(what) = sniff.object().and_then(dictionary) {
        return Match::some(Confidence::Certain, what);
    }
    if sniff.is_rows() && sniff.has_all(&["org", "repo", "number", "fix_patch"]) {
        // A benchmark's own row holds the gold patch under that name, beside the base commit or the test patch.
        let benchmark = NOT_A_PREDICTION.iter().chain(&["base"]).any(|k| sniff.has(k));
        return if benchmark {
            None
        } else {
            Match::some(Confidence::Certain, "rows with `org`, `repo`, `number` and `fix_patch`")
        };
    }
    let row = |keys: &[&str]| keys.iter().any(|k| sniff.has(k));
    if !sniff.is_rows() || !row(&INSTANCE) || NOT_A_PREDICTION.iter().any(|k| sniff.has(k)) {
        return None;
    }
    let form = if sniff.form == Form::Object { "an object" } else { "rows" };
    if row(&PATCH[..2]) {
        return Match::some(Confidence::Certain, format!("{form} with `instance_id` and `model_patch`"));
    }
    if row(&PATCH[3..]) {
        return Match::some(Confidence::Likely, format!("{form} with `instance_id` and `patch`"));
    }
    // SWE-agent leaves the patch out when there is none.
    let bare =
        sniff.has("model_name_or_path") && sniff.rows.iter().all(|r| r.as_object().is_some_and(|o| o.len() <= 4));
    if bare {
        Match::some(Confidence::Likely, format!("{form} with `instance_id` and `model_name_or_path`"))
    } else {
        None
    }
}

/// Is this a dictionary of predictions by instance id?
fn dictionary(root: &Map<'_>) -> Option<&'static str> {
    if root.is_empty() {
        return None;
    }
    let patched =
        |v: &Value| PATCH.iter().any(|k| v.get(k).is_some()) && NOT_A_PREDICTION.iter().all(|k| v.get(k).is_none());
    if root.values().all(|v| v.is_object() && patched(v)) {
        return Some("a dictionary of predictions by instance id");
    }
    let ids = root.keys().all(looks_like_instance);
    let texts = root.values().all(|v| v.is_string() || v.is_null()) && root.values().any(Value::is_string);
    if ids && texts { Some("a dictionary of patches by instance id") } else { None }
}

/// Reads predictions. Some harnesses write `resolved` beside the patch.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let file = input.path.file_name().unwrap_or_default().to_string_lossy();
    let mut reader = Rows { sample: super::agentless::sample_of(&file), ..Rows::default() };
    decoded.diagnostics = input.document.rows(|row| match row.value.as_object().filter(|o| dictionary(o).is_some()) {
        Some(root) => root.iter().for_each(|(id, value)| reader.read(value, Some(id))),
        None => reader.read(row.value, None),
    });
    decoded.diagnostics.extend(reader.remarks());
    decoded.predictions = reader.predictions;
    decoded
}

/// `org__repo-7` of a row of Multi-SWE-bench.
pub fn pull_request(value: &Value) -> Option<String> {
    let number = field::get(value, "number").and_then(field::count)?;
    Some(format!("{}__{}-{number}", field::text(value, "org")?, field::text(value, "repo")?))
}

#[derive(Default)]
struct Rows {
    /// Name of the candidate that the file's name gives.
    sample: Option<String>,
    predictions: Vec<Prediction>,
    nulls: usize,
    missing: usize,
    nameless: usize,
}

fn patch_of<'a>(value: &'a Value<'a>) -> Option<&'a Value<'a>> {
    PATCH.iter().find_map(|k| value.get(k))
}

impl Rows {
    fn read(&mut self, value: &Value, key: Option<&str>) {
        let named = INSTANCE.iter().find_map(|k| field::text(value, k)).or_else(|| pull_request(value));
        let Some(instance_id) = named.or_else(|| key.map(str::to_owned)) else {
            self.nameless += 1;
            return;
        };
        let member = if value.is_string() { Some(value) } else { patch_of(value) };
        // Some scripts put the whole prediction where its patch belongs.
        let member = member.map(|m| if m.is_object() { patch_of(m).unwrap_or(&Value::Null) } else { m });
        match member {
            Some(Value::Null) => self.nulls += 1,
            None => self.missing += 1,
            Some(_) => {}
        }
        let model = ["model_name_or_path", "model_name", "model", "prefix"].iter().find_map(|k| field::text(value, k));
        self.predictions.push(Prediction {
            record: self.predictions.len(),
            candidate: ["candidate", "run", "attempt"]
                .iter()
                .find_map(|k| field::get(value, k).and_then(field::scalar_text))
                .or_else(|| self.sample.clone()),
            instance_id,
            model,
            patch: member.and_then(Value::as_str).map(str::to_owned),
            outcome: Outcome::from_bool(field::get(value, "resolved").and_then(field::truth)),
            ..Prediction::default()
        });
    }

    fn remarks(&self) -> Vec<Diagnostic> {
        let counted = [
            (self.nulls, "predictions.null", "with `model_patch` null: taken as an empty patch"),
            (self.missing, "predictions.missing", "without `model_patch`: taken as an empty patch"),
            (self.nameless, "predictions.no-instance", "without `instance_id`: skipped"),
        ];
        let some = counted.into_iter().filter(|(n, ..)| *n > 0);
        some.map(|(n, code, what)| {
            let text = format!("{n} prediction{} {what}", if n == 1 { "" } else { "s" });
            Diagnostic::new(Severity::Warning, code, text)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::load::{LoadedFile, load_bytes};
    use super::*;

    fn load(text: &str) -> LoadedFile {
        load_bytes(Path::new("preds.json"), text.as_bytes().to_vec())
    }

    fn only(text: &str) -> Prediction {
        let file = load(text);
        assert_eq!(file.report.format, Some("predictions"), "{}", file.report.reason);
        assert_eq!(file.predictions.len(), 1, "{text}");
        file.predictions[0].as_ref().clone()
    }

    #[test]
    fn one_candidate_in_five_forms() {
        let dict = only(r#"{"o__r-1": {"model_name_or_path": "m", "instance_id": "o__r-1", "model_patch": "P"}}"#);
        let list = only(r#"[{"model_name_or_path": "m", "instance_id": "o__r-1", "model_patch": "P"}]"#);
        let line = only("{\"model_name_or_path\": \"m\", \"instance_id\": \"o__r-1\", \"model_patch\": \"P\"}\n");
        assert_eq!(dict.model.as_deref(), Some("m"));
        assert!(dict == list && list == line);
        let key = only(r#"{"o__r-1": {"patch": "P"}}"#);
        let nested = only(r#"{"instance_id": "o__r-1", "model_patch": {"instance_id": "o__r-1", "model_patch": "P"}}"#);
        assert_eq!(nested.patch.as_deref(), Some("P"));
        let bare = only(r#"{"o__r-1": "P"}"#);
        assert!(key == bare);
        assert_eq!((bare.instance_id.as_str(), bare.patch.as_deref()), ("o__r-1", Some("P")));
    }

    #[test]
    fn null_and_missing_patches_are_named() {
        let file = load(
            "{\"instance_id\": \"o__r-1\", \"model_name_or_path\": \"m\", \"model_patch\": null}\n\
             {\"instance_id\": \"o__r-2\", \"model_name_or_path\": \"m\"}\n{\"model_patch\": \"P\"}",
        );
        assert_eq!(file.predictions.len(), 2);
        assert!(file.predictions.iter().all(|p| p.patch.is_none()));
        let codes: Vec<&str> = file.report.diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["predictions.null", "predictions.missing", "predictions.no-instance"]);
        assert_eq!(only(r#"{"instance_id": "o__r-1", "model_name_or_path": "m"}"#).patch, None);
    }

    #[test]
    fn candidates_and_labels_of_rows_are_kept() {
        let file = load(
            "{\"instance_id\": \"o__r-1\", \"candidate\": \"run1\", \"model_patch\": \"P\", \"resolved\": true}\n\
             {\"instance_id\": \"o__r-1\", \"candidate\": \"run2\", \"model_patch\": \"Q\"}\n",
        );
        let names: Vec<_> = file.predictions.iter().map(|p| (p.record, p.candidate.clone().unwrap())).collect();
        assert_eq!(names, [(0, "run1".to_owned()), (1, "run2".to_owned())]);
        let labels: Vec<_> = file.predictions.iter().map(|p| p.outcome).collect();
        assert_eq!(labels, [Outcome::Resolved, Outcome::Unknown]);
    }

    #[test]
    fn multi_swe_bench_names_a_pull_request() {
        let one = only(r#"{"org": "o", "repo": "r", "number": 7, "fix_patch": "P"}"#);
        assert_eq!((one.instance_id.as_str(), one.patch.as_deref()), ("o__r-7", Some("P")));
        let gold =
            load(r#"{"org": "o", "repo": "r", "number": 7, "fix_patch": "GOLD", "test_patch": "T", "base": {}}"#);
        assert!(gold.predictions.is_empty());
    }

    #[test]
    fn benchmark_rows_are_not_predictions() {
        let file = load(r#"[{"instance_id": "o__r-1", "patch": "GOLD", "test_patch": "T", "problem_statement": "x"}]"#);
        assert!(file.predictions.is_empty());
        assert_eq!(file.report.format, Some("tasks"));
    }
}
