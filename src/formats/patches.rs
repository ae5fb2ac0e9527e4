//! Candidate patches as files of their own: `<instance>.diff`, `<instance>-diff.txt`, `<instance>/patch.diff`.

use std::path::Path;

use super::names;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Diagnostic, Outcome, Prediction, Severity};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[Format {
    id: "patch-file",
    name: "Patch",
    writer: "SWE-bench harness, SWE-agent, trae-agent, Devin's results",
    recognised: "a diff; the instance is the name of the file or of its folder",
    kind: Kind::Prediction,
    reader: Reader::File { sniff, decode },
}];

/// Parts of names of patches that are the solution or the tests of a task.
const GOLD: [&str; 7] =
    ["gold", "developer_patch", "test_patch", "test.patch", "reference_patch", "solution", "oracle"];

fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let text = sniff.text()?;
    let text = text.trim_start();
    if text.starts_with("diff --git ") {
        return Match::some(Confidence::Certain, "`diff --git`");
    }
    let plain = text.starts_with("--- ") && text.lines().nth(1).is_some_and(|l| l.starts_with("+++ "));
    let mail = text.starts_with("From ") && text.contains("\nSubject: ") && text.contains("\ndiff --git ");
    if plain || mail { Match::some(Confidence::Likely, "a unified diff") } else { None }
}

fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut remark = |code, text: &str| decoded.diagnostics.push(Diagnostic::new(Severity::Info, code, text));
    if is_gold(input.path) {
        remark("patch.gold", "the solution or the tests of the task, by its name: never a candidate");
        return decoded;
    }
    let Some(instance_id) = names::instance_of(input.path) else {
        remark("patch.no-instance", "neither the file nor its folder is named after an instance: not a prediction");
        return decoded;
    };
    decoded.predictions.push(Prediction {
        instance_id,
        patch: Some(input.document.text()),
        outcome: outcome(input.path),
        ..Prediction::default()
    });
    decoded
}

/// The harness checks itself by running the solutions, under the model name `gold`.
fn is_gold(path: &Path) -> bool {
    let file = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_lowercase();
    let model = path.ancestors().skip(2).take(2).filter_map(|p| p.file_name()?.to_str());
    GOLD.iter().any(|mark| file.contains(mark)) || model.into_iter().any(|name| name == "gold")
}

/// Devin's results are sorted into `pass` and `fail`.
fn outcome(path: &Path) -> Outcome {
    match path.parent().and_then(Path::file_name).and_then(|n| n.to_str()) {
        Some("pass") => Outcome::Resolved,
        Some("fail") => Outcome::Unresolved,
        _ => Outcome::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::{LoadedFile, load_bytes};
    use super::*;

    const DIFF: &str = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n";

    fn load(path: &str) -> LoadedFile {
        let file = load_bytes(Path::new(path), DIFF.as_bytes().to_vec());
        assert_eq!(file.report.format, Some("patch-file"), "{path}");
        file
    }

    #[test]
    fn the_instance_is_in_the_name() {
        for path in ["x/o__r-1.diff", "x/o__r-1.patch", "x/o__r-1-diff.txt", "logs/o__r-1/patch.diff"] {
            let file = load(path);
            assert_eq!(file.predictions.len(), 1, "{path}");
            assert_eq!(file.predictions[0].instance_id, "o__r-1");
            assert_eq!(
                (file.predictions[0].patch.as_deref(), file.predictions[0].outcome),
                (Some(DIFF), Outcome::Unknown)
            );
        }
        assert_eq!(load("d/pass/o__r-1-diff.txt").predictions[0].outcome, Outcome::Resolved);
        assert_eq!(load("d/fail/o__r-1-diff.txt").predictions[0].outcome, Outcome::Unresolved);
    }

    #[test]
    fn solutions_and_nameless_patches_are_no_candidates() {
        for (path, code) in [
            ("o__r-1/developer_patch.diff", "patch.gold"),
            ("o__r-1/gold.patch", "patch.gold"),
            ("logs/run_evaluation/check/gold/o__r-1/patch.diff", "patch.gold"),
            ("x/changes.diff", "patch.no-instance"),
        ] {
            let file = load(path);
            assert!(file.predictions.is_empty(), "{path}");
            assert_eq!(file.report.diagnostics[0].code, code);
        }
    }

    #[test]
    fn a_diff_is_known_by_its_first_lines() {
        let format = |text: &str| load_bytes(Path::new("o__r-1.txt"), text.as_bytes().to_vec()).report.format;
        assert_eq!(format("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"), Some("patch-file"));
        assert_eq!(
            format("From abc Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\ndiff --git a/x b/x\n"),
            Some("patch-file")
        );
        assert_eq!(format("\u{feff}\n\ndiff --git a/x b/x\n"), Some("patch-file"));
        assert_eq!(format("--- \ntitle: x\n"), None);
    }
}
