//! SWE-bench evaluation reports: per instance (nested and flat) and of whole runs (five generations and their kin).

use super::field;
use super::json::{Map, Value};
use super::names::{self, looks_like_instance};
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Outcome, RunReport};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "report-instance",
        name: "SWE-bench report of an instance",
        writer: "SWE-bench harness, sb-cli, SWE-smith, Multi-SWE-bench",
        recognised: "`patch_successfully_applied` and `resolved`, flat or below the instance id; Multi-SWE-bench's `valid`",
        kind: Kind::Report,
        reader: Reader::File { sniff: sniff_instance, decode: decode_instance },
    },
    Format {
        id: "report-run",
        name: "SWE-bench report of a run",
        writer: "SWE-bench harness of every generation, sb-cli, SWE-smith, SWE-bench-Pro",
        recognised: "lists of resolved instance ids among others, or outcomes by instance id",
        kind: Kind::Report,
        reader: Reader::File { sniff: sniff_run, decode: decode_run },
    },
];

/// Lists of instances that were not resolved, with the finer reason each stands for.
const UNRESOLVED: [(&str, &str); 14] = [
    ("with_logs", ""),
    ("unresolved_ids", ""),
    ("unresolved", ""),
    ("ids_unresolved", ""),
    ("completed_ids", ""),
    ("empty_patch_ids", "empty patch"),
    ("no_generation", "no patch generated"),
    ("no_apply", "patch did not apply"),
    ("error_ids", "error"),
    ("install_fail", "installation failed"),
    ("reset_failed", "reset failed"),
    ("test_errored", "tests errored"),
    ("test_timeout", "tests timed out"),
    ("applied", ""),
];
/// Lists of resolved instances.
const RESOLVED: [&str; 3] = ["resolved_ids", "resolved", "ids_resolved"];
/// Lists of instances nobody can say anything about.
const UNKNOWN: [(&str, &str); 7] = [
    ("incomplete_ids", "not submitted"),
    ("pending_ids", "evaluation pending"),
    ("failed_ids", "evaluation failed"),
    ("infra_failure_ids", "evaluation failed (infrastructure)"),
    ("ambiguous_failure_ids", "evaluation failed (ambiguous)"),
    ("no_logs", "no evaluation log"),
    ("without_logs", "no evaluation log"),
];

/// A harness's `report.json` about one instance.
pub fn sniff_instance(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    if is_instance_report(root) {
        return Match::some(Confidence::Certain, "`patch_successfully_applied` beside `resolved`");
    }
    if is_multi_report(root) {
        return Match::some(Confidence::Certain, "`org`, `repo`, `number` and `valid` beside results of tests");
    }
    let nested = !root.is_empty() && root.values().all(|v| v.as_object().is_some_and(is_instance_report));
    if nested {
        Match::some(Confidence::Certain, "an instance id with `patch_successfully_applied` below it")
    } else {
        None
    }
}

fn is_instance_report(value: &Map<'_>) -> bool {
    value.contains_key("patch_successfully_applied")
        && value.contains_key("resolved")
        && !value.contains_key("instance_id")
}

/// Multi-SWE-bench's report about one pull request.
fn is_multi_report(value: &Map<'_>) -> bool {
    let named = ["org", "repo", "number", "valid"].iter().all(|k| value.contains_key(k));
    named && ["fix_patch_result", "fixed_tests", "run_result"].iter().any(|k| value.contains_key(k))
}

/// A report about a run.
pub fn sniff_run(sniff: &Sniff<'_>) -> Option<Match> {
    if let Some(what) = sniff.object().and_then(run_form) {
        return Match::some(Confidence::Certain, what);
    }
    let steps = ["messages", "history", "trajectory", "steps", "model_patch", "patch", "conversations"];
    if !sniff.is_rows() || !sniff.has("instance_id") || steps.iter().any(|k| sniff.has(k)) {
        return None;
    }
    if sniff.has("resolved") {
        return Match::some(Confidence::Likely, "rows with `instance_id` and `resolved`");
    }
    let evaluated = sniff.first("test_result").and_then(|r| field::at(r, &["report", "resolved"])).is_some();
    if evaluated { Match::some(Confidence::Likely, "rows with `instance_id` and `test_result.report`") } else { None }
}

/// Which of the run-level forms an object is.
fn run_form(root: &Map<'_>) -> Option<&'static str> {
    let list = |key: &str| root.get(key).is_some_and(Value::is_array);
    let has = |key: &str| root.contains_key(key);
    if list("resolved_ids") {
        return Some("a run report with `resolved_ids`");
    }
    if list("ids_resolved") {
        return Some("a run report with `ids_resolved`");
    }
    let around = ["applied", "generated", "total_instances", "no_generation", "no_logs", "stats", "completed_ids"];
    if list("resolved") && around.iter().any(|k| has(k)) {
        return Some("a run report with a list `resolved`");
    }
    if list("instances") && field::list(&Value::Object(root.clone()), "instances").iter().all(is_row) {
        return Some("a summary with `instances` and `resolved`");
    }
    if root.is_empty() || !root.keys().all(looks_like_instance) {
        return None;
    }
    if root.values().all(Value::is_boolean) {
        return Some("a dictionary of outcomes by instance id");
    }
    let outcomes = root.values().all(|v| v.get("resolved").is_some_and(|r| field::truth(r).is_some()));
    if outcomes { Some("a dictionary of results by instance id") } else { None }
}

fn is_row(value: &Value) -> bool {
    value.get("instance_id").is_some() && value.get("resolved").is_some()
}

/// Reads reports about single instances.
pub fn decode_instance(input: &Input<'_>) -> Decoded {
    let mut report = RunReport { per_instance: true, ..RunReport::default() };
    let diagnostics = input.document.rows(|row| {
        let Some(root) = row.value.as_object() else {
            return;
        };
        if is_multi_report(root) {
            multi(&mut report, row.value);
        } else if is_instance_report(root) {
            if let Some(id) = parent_instance(input) {
                instance(&mut report, id, row.value);
            }
        } else {
            root.iter().for_each(|(id, value)| instance(&mut report, id.to_owned(), value));
        }
    });
    Decoded { reports: vec![report], diagnostics, ..Decoded::default() }
}

fn multi(report: &mut RunReport, value: &Value) {
    let Some(id) = super::predictions::pull_request(value) else {
        return;
    };
    let outcome = Outcome::from_bool(field::get(value, "valid").and_then(field::truth));
    if let (Some(error), true) = (field::text(value, "error_msg"), outcome != Outcome::Resolved) {
        report.reasons.insert(id.clone(), error.lines().next().unwrap_or_default().to_owned());
    }
    if outcome != Outcome::Unknown {
        report.outcomes.insert(id, outcome);
    }
}

/// The flat form does not say which instance it is about; the folder it lies in does.
fn parent_instance(input: &Input<'_>) -> Option<String> {
    let folder = input.path.parent()?.file_name()?.to_str()?;
    if looks_like_instance(folder) { Some(folder.to_owned()) } else { names::instance_of(input.path) }
}

fn instance(report: &mut RunReport, id: String, value: &Value) {
    let says = |key: &str| field::get(value, key).and_then(field::truth);
    if says("infra_failure") == Some(true) {
        let why =
            field::text(value, "infra_failure_reason").unwrap_or_else(|| "evaluation failed (infrastructure)".into());
        report.reasons.insert(id, why);
        return;
    }
    let reason = if says("patch_is_None") == Some(true) || says("patch_exists") == Some(false) {
        Some("empty patch")
    } else if says("patch_successfully_applied") == Some(false) {
        Some("patch did not apply")
    } else {
        None
    };
    let outcome = Outcome::from_bool(says("resolved"));
    if let (Some(reason), Outcome::Unresolved) = (reason, outcome) {
        report.reasons.insert(id.clone(), reason.to_owned());
    }
    if outcome != Outcome::Unknown {
        report.outcomes.insert(id, outcome);
    }
}

/// Reads reports about runs.
pub fn decode_run(input: &Input<'_>) -> Decoded {
    let mut report = RunReport::default();
    let diagnostics = input.document.rows(|row| {
        let Some(root) = row.value.as_object() else {
            return;
        };
        if root.contains_key("instance_id") {
            row_outcome(&mut report, row.value);
        } else {
            run(&mut report, root);
        }
    });
    Decoded { reports: vec![report], diagnostics, ..Decoded::default() }
}

fn run(report: &mut RunReport, root: &Map<'_>) {
    if run_form(root).is_some_and(|form| form.starts_with("a dictionary")) {
        for (id, value) in root {
            let resolved = field::truth(value.get("resolved").unwrap_or(value));
            report.outcomes.insert(id.to_owned(), Outcome::from_bool(resolved));
        }
        return;
    }
    let value = Value::Object(root.clone());
    for row in field::list(&value, "instances").iter().filter(|r| is_row(r)) {
        row_outcome(report, row);
    }
    let ids = |key: &str| field::list(&value, key).iter().filter_map(Value::as_str).map(str::to_owned);
    for (key, reason) in UNRESOLVED {
        for id in ids(key) {
            if !reason.is_empty() {
                report.reasons.insert(id.clone(), reason.to_owned());
            }
            report.outcomes.insert(id, Outcome::Unresolved);
        }
    }
    for (key, reason) in UNKNOWN {
        for id in ids(key) {
            report.outcomes.remove(&id);
            report.reasons.insert(id, reason.to_owned());
        }
    }
    for id in RESOLVED.iter().flat_map(|key| ids(key)) {
        report.reasons.remove(&id);
        report.outcomes.insert(id, Outcome::Resolved);
    }
    report.closed = closed(&value);
}

/// Lists of 2024 name the resolved instances of a run that was evaluated as a whole, and those that could not be.
fn closed(root: &Value) -> bool {
    let names_the_rest = UNRESOLVED.iter().any(|(key, _)| *key != "no_generation" && root.get(key).is_some());
    if names_the_rest || root.get("submitted_ids").is_some() {
        return false;
    }
    let stats = |key| field::at(root, &["stats", key]).and_then(field::count);
    let counted = stats("generated").is_some() && stats("with_logs").is_none_or(|n| Some(n) == stats("generated"));
    counted || root.get("no_generation").is_some() || root.get("no_logs").is_some()
}

/// A row `{instance_id, resolved, …}`, or an evaluated OpenHands row without its history.
fn row_outcome(report: &mut RunReport, row: &Value) {
    let Some(id) = field::text(row, "instance_id") else {
        return;
    };
    let evaluated = field::at(row, &["test_result", "report", "resolved"]);
    let Some(resolved) = field::get(row, "resolved").or(evaluated).and_then(field::truth) else {
        return;
    };
    if let (Some(error), false) = (field::text(row, "error"), resolved) {
        report.reasons.insert(id.clone(), error);
    }
    report.outcomes.insert(id, Outcome::from_bool(Some(resolved)));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::json::json;
    use super::super::load::load_bytes;
    use super::*;

    fn load(path: &str, value: &Value) -> RunReport {
        let file = load_bytes(Path::new(path), value.to_string().into_bytes());
        assert!(file.report.format.is_some_and(|f| f.starts_with("report-")), "{}", file.report.reason);
        file.reports[0].as_ref().clone()
    }

    fn outcomes(report: &RunReport) -> Vec<(&str, Option<bool>)> {
        report.outcomes.iter().map(|(id, o)| (id.as_str(), o.as_bool())).collect()
    }

    #[test]
    fn per_instance_reports_nested_and_flat() {
        let inner = json!({"patch_is_None": false, "patch_exists": true, "patch_successfully_applied": false, "resolved": false});
        let nested = load("x/report.json", &json!({"o__r-1": inner}));
        assert!(nested.per_instance);
        assert_eq!(outcomes(&nested), [("o__r-1", Some(false))]);
        assert_eq!(nested.reasons["o__r-1"], "patch did not apply");
        let flat = load("logs/o__r-2/report.json", &inner);
        assert_eq!(outcomes(&flat), [("o__r-2", Some(false))]);
        let infra = json!({"o__r-3": {"patch_successfully_applied": true, "resolved": false, "infra_failure": true}});
        assert!(load("x/report.json", &infra).outcomes.is_empty());
    }

    #[test]
    fn generation_1_names_what_went_wrong() {
        let report = load(
            "r.json",
            &json!({"no_generation": ["a__a-1"], "generated": ["b__b-1", "c__c-1", "d__d-1"], "with_logs": ["b__b-1", "c__c-1", "d__d-1"],
            "no_apply": ["b__b-1"], "applied": ["c__c-1", "d__d-1"], "test_timeout": [], "resolved": ["d__d-1"]}),
        );
        let expected =
            [("a__a-1", Some(false)), ("b__b-1", Some(false)), ("c__c-1", Some(false)), ("d__d-1", Some(true))];
        assert_eq!(outcomes(&report), expected);
        assert_eq!(report.reasons["b__b-1"], "patch did not apply");
        assert!(!report.closed);
    }

    #[test]
    fn generation_2_is_closed_when_all_were_evaluated() {
        let with = |logs: u64| {
            load(
                "final_report.json",
                &json!({"stats": {"generated": 3, "with_logs": logs, "applied": 2, "resolved": 1}, "resolved": ["a__a-1"]}),
            )
        };
        assert_eq!(outcomes(&with(3)), [("a__a-1", Some(true))]);
        assert!(with(3).closed);
        assert!(!with(2).closed);
    }

    #[test]
    fn generation_3_4_and_5_tell_unresolved_from_unknown() {
        for resolved in ["resolved", "resolved_ids"] {
            let report = load(
                "m.run.json",
                &json!({"total_instances": 5, "submitted_instances": 3, "completed_ids": ["a__a-1", "b__b-1"],
                "incomplete_ids": ["d__d-1"], "pending_ids": ["e__e-1"], "empty_patch_ids": ["c__c-1"], "submitted_ids": ["a__a-1", "b__b-1", "c__c-1"],
                resolved: ["a__a-1"], "unresolved_ids": ["b__b-1"], "error_ids": [], "schema_version": 2}),
            );
            assert_eq!(outcomes(&report), [("a__a-1", Some(true)), ("b__b-1", Some(false)), ("c__c-1", Some(false))]);
            assert_eq!(report.reasons["c__c-1"], "empty patch");
            assert_eq!(report.reasons["d__d-1"], "not submitted");
            assert!(!report.closed && !report.per_instance);
        }
    }

    #[test]
    fn kin_of_run_reports() {
        let smith = load(
            "report.json",
            &json!({"resolved": 1, "unresolved": 1, "total": 2, "ids_resolved": ["a__a.1"], "ids_unresolved": ["b__b.1"]}),
        );
        assert_eq!(outcomes(&smith), [("a__a.1", Some(true)), ("b__b.1", Some(false))]);
        assert_eq!(
            outcomes(&load("e.json", &json!({"a__a-1": true, "b__b-1": false}))),
            [("a__a-1", Some(true)), ("b__b-1", Some(false))]
        );
        assert_eq!(
            outcomes(&load("i.json", &json!({"a__a-1": {"cost": 1.0, "resolved": true}}))),
            [("a__a-1", Some(true))]
        );
        let summary = json!({"total": 1, "passed": 0, "instances": [{"instance_id": "a__a-1", "resolved": false, "patch_applied": true}]});
        assert_eq!(outcomes(&load("s.json", &summary)), [("a__a-1", Some(false))]);
        let results =
            load("results.json", &json!({"no_generation": ["a__a-1"], "no_logs": ["b__b-1"], "resolved": ["c__c-1"]}));
        assert_eq!(outcomes(&results), [("a__a-1", Some(false)), ("c__c-1", Some(true))]);
        assert!(results.closed);
        assert_eq!(results.reasons["b__b-1"], "no evaluation log");
    }

    #[test]
    fn multi_swe_bench_reports() {
        let one = |valid: Value| {
            load(
                "r/report.json",
                &json!({"org": "o", "repo": "r", "number": 7, "valid": valid, "error_msg": "no fix\nat all",
                "fixed_tests": {}, "fix_patch_result": {"passed_count": 1}}),
            )
        };
        assert!(one(json!(true)).per_instance);
        assert_eq!(outcomes(&one(json!(true))), [("o__r-7", Some(true))]);
        assert_eq!(outcomes(&one(json!(false))), [("o__r-7", Some(false))]);
        assert_eq!(one(json!(false)).reasons["o__r-7"], "no fix");
        assert!(outcomes(&one(Value::Null)).is_empty());
        let run = load(
            "final_report.json",
            &json!({"total_instances": 3, "submitted_instances": 2, "resolved_ids": ["o/r:pr-7"],
            "unresolved_ids": ["o/r:pr-8"], "incomplete_ids": ["o/r:pr-9"], "failed_ids": ["o/r:pr-10"]}),
        );
        assert_eq!(outcomes(&run), [("o/r:pr-7", Some(true)), ("o/r:pr-8", Some(false))]);
        assert_eq!(run.reasons["o/r:pr-10"], "evaluation failed");
    }

    #[test]
    fn rows_of_results_and_trailing_commas() {
        let rows = b"{\"instance_id\":\"a__a-1\",\"resolved\":false,\"error\":\"missing_report\"}\n{\"instance_id\":\"b__b-1\",\"resolved\":1}";
        let file = load_bytes(Path::new("r.jsonl"), rows.to_vec());
        assert_eq!(outcomes(&file.reports[0]), [("a__a-1", Some(false)), ("b__b-1", Some(true))]);
        assert_eq!(file.reports[0].reasons["a__a-1"], "missing_report");
        let file =
            load_bytes(Path::new("r.json"), b"{\n\"no_generation\": [\"a__a-1\",\n],\n\"resolved\": []\n}".to_vec());
        assert_eq!(outcomes(&file.reports[0]), [("a__a-1", Some(false))]);
        assert_eq!(file.report.diagnostics[0].code, "json.repaired");
    }
}
