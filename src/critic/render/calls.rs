//! One native tool call in OpenHands' textual form.
//!
//! ```text
//! <function=NAME>
//! <parameter=KEY>VALUE</parameter>
//! <parameter=KEY>
//! A STRING OF
//! SEVERAL LINES
//! </parameter>
//! </function>
//! ```

use super::python::{self, Members, Printed};
use crate::trajectory::ToolCall;

/// The text of a call, and whether its arguments had to be given as they were written because they are not a JSON
/// object (the reference refuses such a call; a critic should still see what the agent tried).
pub(super) fn call_text(call: &ToolCall) -> (String, bool) {
    let (body, as_written) = match parameters(&call.arguments) {
        Some(body) => (body, false),
        None => (format!("{}\n", call.arguments), true),
    };
    (format!("<function={}>\n{body}</function>", call.name), as_written)
}

/// One line or block a parameter. No arguments at all count as an empty object.
fn parameters(arguments: &str) -> Option<String> {
    let mut body = String::new();
    if arguments.trim().is_empty() {
        return Some(body);
    }
    let members: Members<'_> = serde_json::from_str(arguments).ok()?;
    for (key, value) in members.0 {
        let (around, text) = match python::print(value)? {
            Printed::Str(text) => (if text.contains('\n') { "\n" } else { "" }, text),
            Printed::Other(text) => ("", text),
        };
        for part in ["<parameter=", &key, ">", around, &text, around, "</parameter>\n"] {
            body.push_str(part);
        }
    }
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(arguments: &str) -> (String, bool) {
        call_text(&ToolCall { id: String::new(), name: "run".into(), arguments: arguments.into() })
    }

    #[test]
    fn only_strings_of_several_lines_get_lines_of_their_own() {
        let (text, as_written) = text(r#"{"a": "one", "b": "x\ny", "c": "x\n", "d": ["x\ny"], "e": true, "f": ""}"#);
        assert!(!as_written);
        let expected = "<function=run>\n<parameter=a>one</parameter>\n<parameter=b>\nx\ny\n</parameter>\n\
                        <parameter=c>\nx\n\n</parameter>\n<parameter=d>['x\\ny']</parameter>\n\
                        <parameter=e>True</parameter>\n<parameter=f></parameter>\n</function>";
        assert_eq!(text, expected);
    }

    #[test]
    fn no_arguments_leave_an_empty_body() {
        for arguments in ["", " \n", "{}"] {
            assert_eq!(text(arguments), ("<function=run>\n</function>".to_owned(), false));
        }
    }

    #[test]
    fn what_is_not_an_object_is_given_as_written() {
        for arguments in ["[1]", "{\"a\": ", "ls -la", "null"] {
            assert_eq!(text(arguments), (format!("<function=run>\n{arguments}\n</function>"), true));
        }
    }
}
