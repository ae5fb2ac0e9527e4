//! JSON indented for the eye, token for token as it was written.

/// Indents JSON text by two spaces a level. Nothing but white space between tokens is changed: numbers, escapes and the
/// order of keys stay as they are, and so does what is not JSON.
pub fn indent_json(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len() + raw.len() / 4);
    let mut depth = 0_usize;
    let mut rest = raw.trim();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        // Deeper than this the text would stand right of every screen.
        out.extend(std::iter::repeat_n("  ", depth.min(40)));
    };
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => string_len(rest),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
        let after_space = after.trim_start();
        match first {
            '{' | '[' => {
                out.push(first);
                let closed = after_space.starts_with(['}', ']']);
                if !closed {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                if !out.ends_with(['{', '[']) {
                    depth = depth.saturating_sub(1);
                    line(&mut out, depth);
                }
                out.push(first);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                out.push_str(token);
                if after.len() > after_space.len() && !after_space.starts_with([',', ':', '}', ']']) {
                    out.push(' ');
                }
            }
        }
        rest = after_space;
    }
    out
}

/// Bytes of the string that `text` begins with, its quotes included; all of it if it does not end.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_stay_as_written() {
        let raw = r#"{"a":1.0e5,"b":[],"c":[1,{"d":"x\u00e4: {,"}],"e":{}}"#;
        let expected = "{\n  \"a\": 1.0e5,\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x\\u00e4: {,\"\n    }\n  ],\n  \"e\": {}\n}";
        assert_eq!(indent_json(raw), expected);
        assert_eq!(indent_json(expected), expected, "what is indented stays");
        assert_eq!(indent_json("user said hello"), "user said hello");
        assert_eq!(indent_json("{\"cut"), "{\n  \"cut");
    }

    proptest! {
        #[test]
        fn only_white_space_changes(raw in "[{}\\[\\]\":,\\\\a1 \n]{0,60}") {
            let bare = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&indent_json(&raw)), bare(&raw));
        }
    }
}
