//! Shapes of documents and their rows.

use super::super::json::json;
use super::*;

fn rows(bytes: &[u8]) -> (Vec<Value<'static>>, Vec<Diagnostic>) {
    let document = Document::read(bytes);
    let mut values = Vec::new();
    let mut diagnostics = document.rows(|row| values.push(row.value.clone().into_owned()));
    diagnostics.extend(document.diagnostics);
    (values, diagnostics)
}

fn codes(diagnostics: &[Diagnostic]) -> Vec<&'static str> {
    diagnostics.iter().map(|d| d.code).collect()
}

#[test]
fn shape_comes_from_content() {
    assert!(matches!(Document::read(b"{\n \"a\": 1\n}\n").shape, Shape::Value(_)));
    assert!(matches!(Document::read(b"{\"a\": 1}\n").shape, Shape::Value(_)));
    assert!(matches!(Document::read(b"{\"a\": 1}\n{\"a\": 2}\n").shape, Shape::Lines(_)));
    assert!(matches!(Document::read(b"[1]\n[2]\n").shape, Shape::Lines(_)));
    let other = |bytes: &[u8]| match Document::read(bytes).shape {
        Shape::Other(what) => what.into_owned(),
        shape => panic!("{shape:?}"),
    };
    assert_eq!(other(b""), "empty file");
    assert_eq!(other(b" \n"), "nothing but white space");
    assert_eq!(other(b"\"x\""), "a single JSON string, not an object or a list");
    assert!(other(b"<!DOCTYPE html><html>").starts_with("an HTML page"));
    assert_eq!(other(b"hello\nworld"), "text that is not JSON");
    assert!(other(b"{\n\"a\": }\n").starts_with("broken JSON: a JSON value was expected (line 2,"));
}

#[test]
fn pretty_values_one_behind_the_other_are_records() {
    let (values, diagnostics) = rows(b"{\n\"a\": 1\n}\n{\n\"a\": 2\n}\n");
    assert_eq!(values, [json!({"a": 1}), json!({"a": 2})]);
    assert!(diagnostics.is_empty());
}

#[test]
fn trailing_garbage_is_ignored_with_a_remark() {
    let (values, diagnostics) = rows(b"{\n\"a\": 1\n}\n}}");
    assert_eq!(values, [json!({"a": 1})]);
    assert_eq!(codes(&diagnostics), ["json.trailing-garbage"]);
    assert_eq!(diagnostics[0].at.byte, Some(11));
}

#[test]
fn broken_records_are_skipped_and_placed() {
    let (values, diagnostics) = rows(b"{\"a\": 1}\nnot json\n{\"a\": 2}\n\nnull\n{\"a\": 3}\n{\"a\": \"cu");
    assert_eq!(values, [json!({"a": 1}), json!({"a": 2}), json!({"a": 3})]);
    assert_eq!(codes(&diagnostics), ["json.bad-record", "json.bad-record", "json.null-lines"]);
    assert_eq!(diagnostics[0].at.line, Some(2));
    assert_eq!(diagnostics[1].at.line, Some(7));
    assert!(diagnostics[1].message.starts_with("the last record is incomplete"));
    assert_eq!(diagnostics[2].message, "1 null line skipped");
}

#[test]
fn spliced_and_cut_records_on_one_line_are_found() {
    let (values, _) = rows(b"{\"a\": 1}{\"a\": 2}\n{\"a\": 3}\n");
    assert_eq!(values, [json!({"a": 1}), json!({"a": 2}), json!({"a": 3})]);
    let (values, diagnostics) = rows(b"{\"a\": 1}\n{\"a\": \"cut{\"a\": 3}\n{\"a\": 4}\n");
    assert_eq!(values, [json!({"a": 1}), json!({"a": 3}), json!({"a": 4})]);
    assert_eq!(codes(&diagnostics), ["json.bad-record"]);
}

#[test]
fn bom_crlf_and_nul_runs_are_skipped() {
    let (values, diagnostics) = rows(b"\xEF\xBB\xBF{\"a\": 1}\r\n\0\0\0{\"a\": 2}\r\n");
    assert_eq!(values, [json!({"a": 1}), json!({"a": 2})]);
    assert_eq!(codes(&diagnostics), ["text.bom"]);
}

#[test]
fn spans_point_at_the_record() {
    let bytes = b"\n{\"a\": 1}\n  {\"a\": 2}\n";
    let document = Document::read(bytes);
    let mut spans = Vec::new();
    document.rows(|row| spans.push(row.span));
    let text = |s: ByteSpan| &bytes[s.start as usize..(s.start + s.len) as usize];
    assert_eq!(spans.iter().map(|s| text(*s)).collect::<Vec<_>>(), [b"{\"a\": 1}", b"{\"a\": 2}"]);
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let document = Document::read(&bytes);
        document.rows(|_| {});
    }

    #[test]
    fn no_text_like_json_lines_panics(text in "([\\[\\]{}\",:a1\n ]|null|\\\\u){0,60}") {
        let document = Document::read(text.as_bytes());
        document.rows(|_| {});
    }
}
