//! The collected cases D01 to D24 and K01 that are about patches.

use super::*;
use crate::testing::shared;
use crate::text;

fn case(file: &str) -> Option<String> {
    let bytes = std::fs::read(shared()?.join("cases").join(file)).unwrap();
    Some(String::from_utf8(bytes).unwrap())
}

fn parsed(file: &str) -> Option<Patch> {
    case(file).map(|text| parse(&text))
}

fn titles(patch: &Patch) -> Vec<String> {
    patch.files.iter().map(FileChange::title).collect()
}

#[test]
fn d01_body_lines_that_look_like_headers() {
    let Some(patch) = parsed("D01_body_lines_like_headers.patch") else { return };
    assert_eq!((patch.files.len(), patch.stats()), (1, (2, 2)));
    assert!(patch.notes.is_empty());
}

#[test]
fn d03_renames() {
    let Some(patch) = parsed("D03_rename_only_and_rename_edit.patch") else { return };
    assert_eq!(titles(&patch), ["old name.py -> new name.py (100%)", "a.py -> b.py (90%)"]);
    assert!(patch.files.iter().all(|file| file.kind == ChangeKind::Rename));
    assert_eq!(patch.stats(), (1, 1));
}

#[test]
fn d04_binary_files() {
    let Some(patch) = parsed("D04_git_binary_patch.patch") else { return };
    assert_eq!(titles(&patch), ["i.png", "k.bin", "t.txt", "z.bin"]);
    let binaries: Vec<_> = patch.files.iter().map(|file| file.binary).collect();
    let both = |forward, reverse| Some(Binary { forward: Some(forward), reverse: Some(reverse) });
    assert_eq!(
        binaries,
        [
            both(BinaryData::Delta(11), BinaryData::Delta(7)),
            both(BinaryData::Literal(4), BinaryData::Literal(0)),
            None,
            Some(Binary::default()),
        ]
    );
    assert_eq!(patch.files[1].kind, ChangeKind::Add);
    assert_eq!(patch.stats(), (1, 1));
    assert!(patch.notes.is_empty(), "{:?}", patch.notes);
}

#[test]
fn d05_no_newline_markers() {
    let Some(patch) = parsed("D05_no_newline_markers.patch") else { return };
    assert_eq!(patch.stats(), (2, 2));
    let marks = |file: usize| patch.files[file].hunks[0].lines.iter().map(|line| line.no_newline).collect::<Vec<_>>();
    assert_eq!(marks(0), [false, true, true]);
    assert_eq!(marks(1), [true, false]);
    assert!(patch.notes.is_empty(), "{:?}", patch.notes);
}

#[test]
fn d06_headers_without_counts() {
    let Some(patch) = parsed("D06_hunk_header_without_counts.patch") else { return };
    assert_eq!((patch.files.len(), patch.stats()), (3, (2, 2)));
    let kinds: Vec<_> = patch.files.iter().map(|file| file.kind).collect();
    assert_eq!(kinds, [ChangeKind::Add, ChangeKind::Modify, ChangeKind::Delete]);
    assert_eq!(patch.files[2].path(), "gone.txt");
}

#[test]
fn d08_a_path_that_contains_space_b_slash() {
    let Some(patch) = parsed("D08_path_with_space_b_slash.patch") else { return };
    assert_eq!(titles(&patch), ["x b/y.py"]);
}

#[test]
fn d10_a_missing_final_newline_is_known() {
    let Some(json) = case("D10_preds_no_trailing_newline.json") else { return };
    let predictions: serde_json::Value = serde_json::from_str(&json).unwrap();
    let found = predictions.to_string();
    assert!(found.contains("model_patch"));
    let mut seen = 0;
    let rows = predictions.as_object().map(|map| map.values().collect::<Vec<_>>());
    for row in rows.or_else(|| predictions.as_array().map(|rows| rows.iter().collect())).unwrap() {
        if let Some(patch) = row.get("model_patch").and_then(serde_json::Value::as_str) {
            assert!(parse(patch).no_final_newline);
            assert!(!parse(&format!("{patch}\n")).no_final_newline);
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn d11_crlf_lines() {
    let Some(patch) = parsed("D11_crlf.patch") else { return };
    let lines = &patch.files[0].hunks[0].lines;
    assert!(lines.iter().all(|line| line.crlf && !line.text.is_empty() && !line.text.contains('\r')));
    assert_eq!(patch.files[0].path(), "w.txt");
}

#[test]
fn d13_and_d14_columns_of_tabs_and_wide_characters() {
    for file in ["D13_tabs_alignment.patch", "D14_cjk_emoji_lines.patch"] {
        let Some(patch) = parsed(file) else { return };
        assert!(patch.notes.is_empty());
        for line in patch.files.iter().flat_map(|file| &file.hunks).flat_map(|hunk| &hunk.lines) {
            for tab in [2, 4, 8] {
                let shown = text::sanitize_with(&line.text, tab);
                assert!(!shown.contains('\t'));
                assert_eq!(text::display_width(&text::fit(&shown, 40)), 40, "the divider stays straight");
            }
        }
    }
    assert_eq!(text::sanitize_with("\techo\t\"x\"", 2), "  echo  \"x\"");
    assert_eq!(text::sanitize_with("\techo\t\"x\"", 4), "    echo    \"x\"");
}

#[test]
fn d15_line_numbers_over_a_million() {
    let Some(patch) = parsed("D15_huge_line_numbers.patch") else { return };
    assert_eq!(patch.files[0].hunks[0].lines[2].new, Some(1_000_003));
    assert!(patch.notes.is_empty(), "{:?}", patch.notes);
}

#[test]
fn d17_tests_and_leftovers() {
    let Some(patch) = parsed("D17_touches_tests_and_junk.patch") else { return };
    let classes: Vec<_> = patch.files.iter().map(FileChange::class).collect();
    assert_eq!(classes, [PathClass::Source, PathClass::Test, PathClass::Scratch, PathClass::Build]);
    assert!(patch.touches_tests());
}

#[test]
fn d18_no_file_header() {
    let Some(patch) = parsed("D18_no_file_header.patch") else { return };
    assert_eq!(titles(&patch), ["(unnamed file)"]);
    assert_eq!(patch.stats(), (1, 1));
    assert_eq!(patch.notes.len(), 1);
}

#[test]
fn d19_a_mail_with_a_patch() {
    let Some(patch) = parsed("D19_format_patch_preamble.patch") else { return };
    assert_eq!(titles(&patch), ["pkg/calc.py"]);
    assert!(patch.preamble.starts_with("From 0123"));
    assert_eq!(patch.stats(), (1, 1));
    assert!(patch.notes.is_empty(), "{:?}", patch.notes);
}

#[test]
fn d21_only_a_mode() {
    let Some(patch) = parsed("D21_mode_only.patch") else { return };
    assert_eq!(titles(&patch), ["run.sh mode 644 -> 755"]);
    assert_eq!(patch.files[0].kind, ChangeKind::Mode);
}

#[test]
fn d23_a_context_line_that_lost_its_blank() {
    let Some(patch) = parsed("D23_stripped_context_space.patch") else { return };
    assert_eq!(patch.stats(), (1, 1));
    assert_eq!(patch.files[0].hunks[0].lines.len(), 5);
    assert!(patch.notes.is_empty(), "{:?}", patch.notes);
}

#[test]
fn d24_a_very_large_patch_is_read_in_time() {
    let body = "+a line of a new file\n".repeat(148);
    let file = |n: usize| {
        format!(
            "diff --git a/n{n}.py b/n{n}.py\nnew file mode 100644\n--- /dev/null\n+++ b/n{n}.py\n@@ -0,0 +1,148 @@\n{body}"
        )
    };
    let text: String = (0..141).map(file).collect();
    let started = std::time::Instant::now();
    let patch = parse(&text);
    assert_eq!((patch.files.len(), patch.stats()), (141, (20_868, 0)));
    assert!(started.elapsed().as_secs() < 1);
}

#[test]
fn k01_candidates_group_as_a_reviewer_would() {
    let Some(rows) = case("K01_candidates.jsonl") else { return };
    let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let patches: Vec<_> = rows.iter().map(|row| row["model_patch"].as_str()).collect();
    let found: Vec<_> = twins(&patches).into_iter().map(|twin| twin.map(|twin| (twin.group, twin.likeness))).collect();
    let right = [
        Some((0, Likeness::Identical)),
        Some((0, Likeness::Identical)),
        Some((0, Likeness::BlanksOnly)),
        Some((3, Likeness::Identical)),
        None,
        None,
        Some((6, Likeness::Identical)),
    ];
    assert_eq!(found, right);
    let states: Vec<_> = patches.iter().map(|patch| parse(patch.unwrap_or_default()).state()).collect();
    assert_eq!(
        states,
        [
            PatchState::Diff,
            PatchState::Diff,
            PatchState::Diff,
            PatchState::Diff,
            PatchState::Empty,
            PatchState::Empty,
            PatchState::NotADiff
        ]
    );
}
