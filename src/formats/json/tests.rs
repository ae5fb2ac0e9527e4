//! Strict and repaired JSON.

use super::*;

fn read(text: &str) -> Parsed<'_> {
    parse(text.as_bytes()).unwrap()
}

#[test]
fn valid_json_needs_no_repair() {
    let parsed = read(r#"{"a": [1, 2.5, "x\u00e9\ud83d\ude00", null, true], "b": {}}"#);
    assert_eq!(parsed.value, json!({"a": [1, 2.5, "xé😀", null, true], "b": {}}));
    assert!(!parsed.repairs.any());
}

#[test]
fn the_own_scanner_reads_what_serde_json_reads() {
    let text = r#" {"a": [1, -2.5e3, "x\u00e9\ud83d\ude00\n\"", null, true, false, [], {}], "b": {"c": [[0]]}} "#;
    let strict = Value::from(serde_json::from_str::<serde_json::Value>(text).unwrap());
    let own = repair_prefix(text.as_bytes()).unwrap();
    assert_eq!(own.value, strict);
    assert!(!own.repairs.any());
}

#[test]
fn each_repair_is_counted() {
    let parsed = read("{\"a\": NaN, \"b\": [1, 2,], \"c\": \"\\ud83d\", \"d\": \"x\ty\", \"e\": -Infinity,}");
    assert_eq!(parsed.value, json!({"a": null, "b": [1, 2], "c": "\u{fffd}", "d": "x\ty", "e": null}));
    let expected = Repairs { non_finite: 2, surrogates: 1, commas: 2, controls: 1, ..Repairs::default() };
    assert_eq!(parsed.repairs, expected);
    assert!(parsed.repairs.describe().contains("2 × NaN or Infinity"));
}

#[test]
fn invalid_utf8_is_replaced_and_counted() {
    let parsed = parse(b"{\"a\": \"x\xffy\"}").unwrap();
    assert_eq!(parsed.value, json!({"a": "x\u{fffd}y"}));
    assert_eq!(parsed.repairs.utf8, 1);
}

#[test]
fn a_cut_text_keeps_its_complete_members() {
    let parsed = repair_prefix(br#"{"a": [{"x": 1}, {"x": 2, "y": "un"#).unwrap();
    assert_eq!(parsed.value, json!({"a": [{"x": 1}, {"x": 2}]}));
    assert!(parsed.repairs.cut);
    assert_eq!(parse(br#"{"a": [1"#).unwrap_err().what, "the text ends inside a value");
}

#[test]
fn deep_nesting_is_read_up_to_the_limit() {
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    assert!(parse(deep(600).as_bytes()).is_ok());
    assert!(parse(deep(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(parse(deep(100_000).as_bytes()).unwrap_err().what, "nested deeper than 1000 levels");
}

#[test]
fn duplicate_keys_last_wins() {
    assert_eq!(read(r#"{"a": 1, "a": 2}"#).value, json!({"a": 2}));
    assert_eq!(read(r#"{"a": 1, "a": 2,}"#).value, json!({"a": 2}));
}

#[test]
fn garbage_is_refused_with_a_place() {
    for text in ["", "  ", "{]", "{1: 2}", "<html>", "{\"a\" 1}", "[1 2]", "nope", "{\"a\": 1} x"] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
    assert_eq!(parse(br#"{"a": 1} x"#).unwrap_err(), JsonError { at: 9, what: "something follows the value" });
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        drop(repair_prefix(&bytes));
        drop(parse(&bytes));
    }

    #[test]
    fn any_cut_of_valid_json_is_read(cut in 1usize..70) {
        let text = r#"{"a": [1, 2.5, "x\u00e9\ud83d\ude00", null], "b": {"c": {"d": []}}}"#;
        let cut = cut.min(text.len() - 1);
        let head = text.as_bytes().get(..cut).unwrap();
        let parsed = repair_prefix(head).unwrap();
        proptest::prop_assert!(parsed.value.is_object());
        proptest::prop_assert!(parsed.repairs.cut);
    }
}
