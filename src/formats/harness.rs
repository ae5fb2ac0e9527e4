//! Logs of the SWE-bench harness, read for the one thing in them that a missing report would have said.

use std::path::Path;

use super::names;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Diagnostic, Outcome, RunReport, Severity};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "eval-log",
        name: "SWE-bench evaluation log of 2024",
        writer: "SWE-bench harness before containers",
        recognised: "text with `Task Metadata:` and `>>>>>` marks",
        kind: Kind::Report,
        reader: Reader::File { sniff: sniff_eval, decode: decode_eval },
    },
    Format {
        id: "run-instance-log",
        name: "SWE-bench harness log of an instance",
        writer: "SWE-bench harness",
        recognised: "log lines about the container of an instance",
        kind: Kind::Report,
        reader: Reader::File { sniff: sniff_run, decode: decode_run },
    },
    Format {
        id: "test-output",
        name: "SWE-bench test output",
        writer: "SWE-bench harness, SWE-smith",
        recognised: "a shell trace around `>>>>> Start Test Output`",
        kind: Kind::Report,
        reader: Reader::File { sniff: sniff_output, decode: decode_output },
    },
];

/// A log that begins with the task.
fn sniff_eval(sniff: &Sniff<'_>) -> Option<Match> {
    let text = sniff.text()?;
    let fits = text.contains("Task Metadata:") && text.contains("- Instance ID:");
    if fits { Match::some(Confidence::Certain, "`Task Metadata:` with an instance id") } else { None }
}

/// `run_instance.log`.
fn sniff_run(sniff: &Sniff<'_>) -> Option<Match> {
    let text = sniff.text()?;
    let head: Vec<&str> = text.lines().take(20).collect();
    let about = |mark: &str| head.iter().any(|line| line.contains(" - INFO - ") && line.contains(mark));
    let fits = about("Creating container for ") || about("Intermediate patch for ") || about("Building image sweb.");
    if fits { Match::some(Confidence::Certain, "log lines about the container of an instance") } else { None }
}

/// `test_output.txt`.
fn sniff_output(sniff: &Sniff<'_>) -> Option<Match> {
    let text = sniff.text()?;
    let trace = text.starts_with("+ source /opt/miniconda3/") || text.starts_with("+ cd /testbed");
    // The script that runs the tests prints the same mark.
    let script = text.starts_with("#!");
    if !script && (trace || text.contains(">>>>> Start Test Output")) {
        Match::some(Confidence::Likely, "a shell trace of an evaluation")
    } else {
        None
    }
}

/// What a log says of its instance.
#[derive(Debug, Clone, Copy, Default)]
struct Said {
    outcome: Outcome,
    reason: Option<&'static str>,
}

impl Said {
    fn failed(reason: &'static str) -> Self {
        Self { outcome: Outcome::Unresolved, reason: Some(reason) }
    }
}

fn decode_eval(input: &Input<'_>) -> Decoded {
    let text = input.document.text();
    let id = after(&text, "- Instance ID:").map(str::to_owned).or_else(|| names::instance_of(input.path));
    let model = after(&text, "- Evaluation Model:").map(str::to_owned);
    decoded(id, model, eval_said(&text))
}

/// The prediction is tried several ways: what counts is whether one of them held.
fn eval_said(text: &str) -> Said {
    let applied = text.contains(">>>>> Applied Patch (pred");
    if !applied && text.contains(">>>>> Patch Apply Failed") {
        return Said::failed("patch did not apply");
    }
    let marks = [
        (">>>>> Tests Timed Out", Said::failed("tests timed out")),
        (">>>>> Tests Errored", Said::failed("tests errored")),
        (">>>>> All Tests Passed", Said { outcome: Outcome::Resolved, reason: None }),
        // Tests fail that need not pass: only a report knows which ones count.
        (">>>>> Some Tests Failed", Said { outcome: Outcome::Unknown, reason: Some("some tests failed") }),
    ];
    marks.into_iter().find(|(mark, _)| text.contains(mark)).map(|(_, said)| said).unwrap_or_default()
}

fn decode_run(input: &Input<'_>) -> Decoded {
    let text = input.document.text();
    let named = |mark| after(&text, mark).map(|rest| rest.split([' ', ':', '.']).next().unwrap_or(rest).to_owned());
    let id = names::instance_of(input.path).or_else(|| named("Creating container for "));
    // `… written to logs/run_evaluation/<run>/<model>/<instance>/patch.diff, now applying …`
    let path = after(&text, "written to ").and_then(|rest| rest.split(',').next());
    let model = path.and_then(|p| Path::new(p).parent()?.parent()?.file_name()?.to_str()).map(str::to_owned);
    decoded(id, model, run_said(&text))
}

fn run_said(text: &str) -> Said {
    // `Result for <id>: resolved: True` stands near the end.
    let result = text.rfind("\nResult for ").and_then(|at| text.get(at + 1..)?.lines().next());
    match result.and_then(|line| line.rsplit_once("resolved: ")).map(|(_, value)| value.trim()) {
        Some("True") => return Said { outcome: Outcome::Resolved, reason: None },
        Some("False") => return Said { outcome: Outcome::Unresolved, reason: None },
        _ => {}
    }
    if text.contains(">>>>> Patch Apply Failed") {
        return Said::failed("patch did not apply");
    }
    if text.contains("Test timed out after ") {
        return Said::failed("tests timed out");
    }
    Said::default()
}

fn decode_output(input: &Input<'_>) -> Decoded {
    let text = input.document.text();
    // What the tests say is for a parser that knows the repository; only the end of the run can be told here.
    let timed_out = text.contains(">>>>> Tests Timed Out") || text.trim_end().ends_with("seconds exceeded.");
    let said = if timed_out { Said::failed("tests timed out") } else { Said::default() };
    decoded(names::instance_of(input.path), None, said)
}

fn decoded(id: Option<String>, model: Option<String>, said: Said) -> Decoded {
    let mut decoded = Decoded::default();
    if said.outcome == Outcome::Unknown && said.reason.is_none() {
        return decoded;
    }
    let Some(id) = id else {
        let text = "the log does not say which instance it is about: name its folder after it";
        decoded.diagnostics.push(Diagnostic::new(Severity::Info, "log.no-instance", text));
        return decoded;
    };
    let mut report = RunReport { per_instance: true, from_log: true, model, ..RunReport::default() };
    if said.outcome != Outcome::Unknown {
        report.outcomes.insert(id.clone(), said.outcome);
    }
    report.reasons.extend(said.reason.map(|reason| (id, reason.to_owned())));
    decoded.reports.push(report);
    decoded
}

/// The rest of the line behind a mark, without blanks around it.
fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(mark)?;
    rest.lines().next().map(str::trim).filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::load::load_bytes;
    use super::*;

    type Told = Vec<(String, Option<bool>, Option<String>)>;

    fn load(path: &str, text: &str) -> (Option<&'static str>, Told) {
        let file = load_bytes(Path::new(path), text.as_bytes().to_vec());
        let said = file.reports.iter().flat_map(|r| {
            assert!(r.per_instance && r.from_log);
            let ids: std::collections::BTreeSet<&String> = r.outcomes.keys().chain(r.reasons.keys()).collect();
            ids.into_iter()
                .map(|id| (id.clone(), r.outcomes.get(id).and_then(|o| o.as_bool()), r.reasons.get(id).cloned()))
                .collect::<Vec<_>>()
        });
        (file.report.format, said.collect())
    }

    fn eval(end: &str) -> Told {
        let head = "[o__r__1.0] [o__r-1] Task Metadata:\n\t- Instance ID: o__r-1\n\t- Evaluation Model: m\n";
        let (format, said) = load("logs/x.m.eval.log", &format!("{head}{end}\n"));
        assert_eq!(format, Some("eval-log"));
        said
    }

    #[test]
    fn logs_of_2024_say_what_happened() {
        let one = |outcome, reason: Option<&str>| vec![("o__r-1".to_owned(), outcome, reason.map(str::to_owned))];
        let tried =
            ">>>>> Patch Apply Failed; (pred_try)\n>>>>> Applied Patch (pred_minimal_try)\n>>>>> All Tests Passed";
        assert_eq!(eval(tried), one(Some(true), None));
        assert_eq!(eval(">>>>> Patch Apply Failed; (pred_try)"), one(Some(false), Some("patch did not apply")));
        assert_eq!(
            eval(">>>>> Applied Patch (pred)\n>>>>> Tests Timed Out"),
            one(Some(false), Some("tests timed out"))
        );
        assert_eq!(eval(">>>>> Applied Patch (pred)\n>>>>> Some Tests Failed"), one(None, Some("some tests failed")));
        assert_eq!(eval(">>>>> Applied Patch (pred)"), []);
    }

    #[test]
    fn the_log_of_an_instance_decides_where_no_report_lies() {
        let path = "logs/run_evaluation/run/m/o__r-1/run_instance.log";
        let head = "2026-01-01 10:00:00,000 - INFO - Creating container for o__r-1...\n\
                    2026-01-01 10:00:01,000 - INFO - Intermediate patch for o__r-1 written to logs/run_evaluation/run/m__x/o__r-1/patch.diff, now applying to container...\n";
        let run = |end: &str| load(path, &format!("{head}{end}\n"));
        let (format, said) = run("Evaluation error for o__r-1: >>>>> Patch Apply Failed:\nerror: no such file");
        assert_eq!(format, Some("run-instance-log"));
        assert_eq!(said, [("o__r-1".to_owned(), Some(false), Some("patch did not apply".to_owned()))]);
        assert_eq!(run("report: {}\nResult for o__r-1: resolved: True").1, [("o__r-1".to_owned(), Some(true), None)]);
        assert_eq!(run("report: {}\nResult for o__r-1: resolved: False").1, [("o__r-1".to_owned(), Some(false), None)]);
        assert_eq!(run("x - INFO - Container removed").1, []);
        let file = load_bytes(Path::new(path), format!("{head}\nResult for o__r-1: resolved: True\n").into_bytes());
        assert_eq!(file.reports[0].model.as_deref(), Some("m__x"));
    }

    #[test]
    fn test_output_tells_a_timeout_only() {
        let path = "logs/o__r-1/test_output.txt";
        let text = "+ source /opt/miniconda3/bin/activate\n+ : '>>>>> Start Test Output'\n1 failed\n";
        assert_eq!(load(path, text), (Some("test-output"), vec![]));
        let (_, said) = load(path, &format!("{text}\n\nTimeout error: 1800 seconds exceeded."));
        assert_eq!(said, [("o__r-1".to_owned(), Some(false), Some("tests timed out".to_owned()))]);
        assert_eq!(load("notes.txt", "+ more text").0, None);
        assert_eq!(load("eval.sh", "#!/bin/bash\n: '>>>>> Start Test Output'\n").0, None);
    }
}
