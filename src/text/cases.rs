//! The collected cases R01 to R10 that are about text.

use std::path::Path;

use super::*;
use crate::testing::shared;

/// Every string in a case file, in order.
fn strings(file: &str) -> Option<Vec<String>> {
    fn collect(value: &serde_json::Value, into: &mut Vec<String>) {
        match value {
            serde_json::Value::String(s) => into.push(s.clone()),
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            serde_json::Value::Object(map) => map.values().for_each(|item| collect(item, into)),
            _ => {}
        }
    }
    let path = shared()?.join("cases").join(Path::new(file));
    let json = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut found = Vec::new();
    collect(&json, &mut found);
    Some(found)
}

#[test]
fn r01_brackets_are_literal() {
    for s in strings("R01_brackets.traj.json").unwrap_or_default() {
        assert_eq!(sanitize(&s), s);
    }
    assert_eq!(sanitize("[/dim] [b + [=1,x=y] [@click=app.quit]q[/]"), "[/dim] [b + [=1,x=y] [@click=app.quit]q[/]");
}

#[test]
fn r02_tabs_returns_and_controls() {
    let raw = "a\tb\tc\n\tindented with tab\nabcdefg\tq\nold text\rNEW\nbell\u{7} back\u{8}\u{8}space vt\u{b} ff\u{c} \
               del\u{7f} c1\u{9b}31m csi8";
    let right = "a       b       c\n        indented with tab\nabcdefg q\nNEW text\nbell backspace vt ff del c1 csi8";
    assert_eq!(sanitize(raw), right);
    if let Some(found) = strings("R02_tabs_cr_esc.traj.json") {
        assert!(found.iter().any(|s| sanitize(s) == right));
    }
}

#[test]
fn r04_any_width_cuts_at_graphemes() {
    let own = vec![format!("{}↕ arrows ↓/↑", "x".repeat(45)), "Résolu: é".repeat(12), "日本語".repeat(18)];
    for s in strings("R04_multibyte_titles.traj.json").into_iter().flatten().chain(own) {
        for width in 1..200 {
            assert!(display_width(&truncate(&s, width)) <= width);
            assert_eq!(display_width(&fit(&s, width)), width);
            assert!(wrap(&s, width).iter().all(|row| width < 2 || display_width(&s[row.clone()]) <= width));
        }
    }
}

#[test]
fn r06_styles_end_with_the_block() {
    let raw = "\u{1b}[1mbold\u{1b}[22m \u{1b}[2mdim\u{1b}[0m \u{1b}[38;5;208m256\u{1b}[0m \
               \u{1b}[38;2;255;255;255mwhite-on-default\u{1b}[0m \u{1b}[7mreverse\u{1b}[27m \u{1b}[31munclosed red";
    let found = strings("R06_ansi_intensity_256_truecolor.traj.json");
    assert!(found.is_none_or(|found| found.iter().any(|s| s == raw)));
    let lines = ansi_spans(raw);
    let [line] = lines.as_slice() else { panic!("one line expected") };
    assert_eq!(line.text, "bold dim 256 white-on-default reverse unclosed red");
    let styled: Vec<_> = line.spans.iter().map(|span| (&line.text[span.range.clone()], span.style)).collect();
    let plain = Style::default();
    assert_eq!(
        styled,
        [
            ("bold", Style { bold: true, ..plain }),
            ("dim", Style { dim: true, ..plain }),
            ("256", Style { fg: Color::Indexed(208), ..plain }),
            ("white-on-default", Style { fg: Color::Rgb(255, 255, 255), ..plain }),
            ("reverse", Style { reverse: true, ..plain }),
            ("unclosed red", Style { fg: Color::Named(1), ..plain }),
        ]
    );
    assert!(ansi_spans("the next block")[0].spans.is_empty());
}

#[test]
fn r07_and_r10_tags_and_markdown_are_verbatim() {
    let files = ["R07_think_tags.json", "R10_markdown_traps.traj.json"];
    for s in files.iter().filter_map(|file| strings(file)).flatten() {
        assert_eq!(sanitize(&s), s);
    }
    let s = "<think>private</think>\n1 < 2 && 3 > 2 &amp; <tool_call>{\"a\":1}</tool_call>\n```py\nsnake_case_name";
    assert_eq!(sanitize(s), s);
}

#[test]
fn r09_a_picture_becomes_a_placeholder() {
    for s in strings("R09_base64_image_in_observation.traj").unwrap_or_default() {
        assert!(sanitize(&s).len() < 200, "{}", s.len());
    }
    let raw = format!("![shot](data:image/png;base64,{})", "iVBORw0KGgo".repeat(430));
    assert_eq!(sanitize(&raw), "![shot]([image png, 3.5 kB])");
}
