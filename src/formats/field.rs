//! Tolerant readers of JSON members: null is missing, numbers may be text, text may be a list of parts.

use std::borrow::Cow;

use super::json::{Map, Value};

/// A member that is there and not null.
pub fn get<'a>(value: &'a Value<'a>, key: &str) -> Option<&'a Value<'a>> {
    value.get(key).filter(|v| !v.is_null())
}

/// A member at a path of keys, there and not null.
pub fn at<'a>(value: &'a Value<'a>, path: &[&str]) -> Option<&'a Value<'a>> {
    path.iter().try_fold(value, |v, key| get(v, key))
}

/// A string member.
pub fn str<'a>(value: &'a Value<'a>, key: &str) -> Option<&'a str> {
    get(value, key)?.as_str()
}

/// A string member at a path of keys.
pub fn str_at<'a>(value: &'a Value<'a>, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// A string member that is not empty, owned.
pub fn text(value: &Value, key: &str) -> Option<String> {
    str(value, key).filter(|s| !s.is_empty()).map(str::to_owned)
}

/// A list member; empty if missing or not a list.
pub fn list<'a>(value: &'a Value<'a>, key: &str) -> &'a [Value<'a>] {
    get(value, key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// An object member.
pub fn object<'a>(value: &'a Value<'a>, key: &str) -> Option<&'a Map<'a>> {
    get(value, key)?.as_object()
}

/// A finite number, also when written as text.
pub fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    number.filter(|n: &f64| n.is_finite())
}

/// A count, also when written as text or as a float.
pub fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| number(value).filter(|n| *n >= 0.0).map(|n| n as u64))
}

/// A whole number, also when written as text.
pub fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| number(value).filter(|n| n.fract() == 0.0).map(|n| n as i64))
}

/// A yes or no in any of the ways it is written: true, 1, 1.0, `"True"`, `"yes"`. −1 and anything else is unknown.
pub fn truth(value: &Value) -> Option<bool> {
    if let Value::Bool(yes) = value {
        return Some(*yes);
    }
    if let Value::String(text) = value {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" => return Some(true),
            "false" | "no" => return Some(false),
            _ => {}
        }
    }
    match number(value)? {
        0.0 => Some(false),
        1.0 => Some(true),
        _ => None,
    }
}

/// A scalar as text: strings as they are, numbers and booleans as written.
pub fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        _ => None,
    }
}

/// A value as JSON text on one line, or the text itself if it is a string (a string that holds JSON stays as it is).
pub fn json_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A member that holds JSON, directly or inside a string.
pub fn embedded<'a>(value: &'a Value<'a>, key: &str) -> Option<Cow<'a, Value<'a>>> {
    match get(value, key)? {
        Value::String(text) => super::json::parse(text.as_bytes()).ok().map(|p| Cow::Owned(p.value)),
        other => Some(Cow::Borrowed(other)),
    }
}

/// The first `max` characters of a text, with an ellipsis where more follows.
pub fn clipped(text: &str, max: usize) -> String {
    let mut short: String = text.chars().take(max).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The US dollars of a run, unless it says 0 although it did work: then nobody counted, and the cost is unknown.
pub fn honest_cost(cost: Option<f64>, worked: bool) -> Option<f64> {
    cost.filter(|c| *c > 0.0 || !worked)
}

#[cfg(test)]
mod tests {
    use super::super::json::json;

    use super::*;

    #[test]
    fn truth_is_read_in_every_spelling() {
        for yes in [json!(true), json!(1), json!(1.0), json!("True"), json!("1.0"), json!(" true ")] {
            assert_eq!(truth(&yes), Some(true), "{yes}");
        }
        for no in [json!(false), json!(0), json!("False"), json!("0")] {
            assert_eq!(truth(&no), Some(false), "{no}");
        }
        for unknown in [json!(-1), json!(null), json!("maybe"), json!(0.5), json!([]), json!("NaN")] {
            assert_eq!(truth(&unknown), None, "{unknown}");
        }
    }

    #[test]
    fn numbers_may_be_text_and_null_is_missing() {
        assert_eq!(number(&json!("1.5")), Some(1.5));
        assert_eq!(number(&json!("inf")), None);
        assert_eq!(count(&json!(3.0)), Some(3));
        assert_eq!(count(&json!(-3)), None);
        assert_eq!(integer(&json!("-1")), Some(-1));
        assert_eq!(get(&json!({"a": null}), "a"), None);
        assert_eq!(str_at(&json!({"a": {"b": "c"}}), &["a", "b"]), Some("c"));
        assert!(list(&json!({"a": "x"}), "a").is_empty());
    }

    #[test]
    fn embedded_json_may_be_a_string() {
        let inner = json!({"b": 1});
        assert_eq!(embedded(&json!({"a": "{\"b\": 1}"}), "a").as_deref(), Some(&inner));
        assert_eq!(embedded(&json!({"a": {"b": 1}}), "a").as_deref(), Some(&inner));
        assert_eq!(embedded(&json!({"a": "['b']"}), "a"), None);
    }

    #[test]
    fn long_text_is_clipped_between_characters() {
        assert_eq!(clipped("äöü", 2), "äö…");
        assert_eq!(clipped("äöü", 3), "äöü");
    }

    #[test]
    fn a_cost_of_zero_for_work_done_is_unknown() {
        assert_eq!(honest_cost(Some(0.0), true), None);
        assert_eq!(honest_cost(Some(0.0), false), Some(0.0));
        assert_eq!(honest_cost(Some(0.2), true), Some(0.2));
        assert_eq!(honest_cost(None, true), None);
    }
}
