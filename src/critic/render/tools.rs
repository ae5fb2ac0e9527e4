//! The system turn's description of the tools, built from the wording a profile gives.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fill::fill;
use crate::trajectory::ToolSpec;

/// `[render.chatml.tools]`: the words and the layout of the text that is appended to the system prompt of an agent
/// with native tool calls. `{…}` are places to fill in; everything else is copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolWording {
    /// Appended to every system message: `{functions}` is the list of the tools.
    #[serde(default)]
    pub suffix: String,
    /// Instead of `suffix`: a file beside the profile that holds it. Empty once the profile is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix_file: Option<String>,
    /// Begins a tool: `{n}` from 1, `{name}`, `{description}`.
    pub open: String,
    /// Introduces the parameters of a tool that has a parameter schema.
    pub parameters: String,
    /// One parameter: `{i}` from 1, `{name}`, `{type}`, `{need}`, `{description}`, `{values}`.
    pub parameter: String,
    /// `{need}` of a parameter the schema requires.
    pub required: String,
    /// `{need}` of any other.
    pub optional: String,
    /// `{type}` where the schema gives none.
    pub default_type: String,
    /// `{description}` where there is none.
    pub no_description: String,
    /// `{values}` of a parameter with an enumeration: `{list}`. Nothing without one.
    pub values: String,
    /// One entry of `{list}`: `{value}`.
    pub value: String,
    /// Between two entries of `{list}`.
    pub between_values: String,
    /// Instead of the parameters of a tool without a parameter schema.
    pub no_parameters: String,
    /// Ends a tool: `{n}`, `{name}`.
    pub close: String,
    /// Between two tools.
    pub between: String,
}

/// The text to append to a system message, and a remark for every tool whose schema is not JSON.
pub(super) fn suffix(wording: &ToolWording, tools: &[ToolSpec], warnings: &mut Vec<String>) -> String {
    let mut functions = String::new();
    for (i, tool) in tools.iter().enumerate() {
        if i > 0 {
            functions.push_str(&wording.between);
        }
        functions.push_str(&describe(wording, i + 1, tool, warnings));
    }
    fill(&wording.suffix, &[("functions", &functions)])
}

fn describe(wording: &ToolWording, n: usize, tool: &ToolSpec, warnings: &mut Vec<String>) -> String {
    let n = n.to_string();
    let description = if tool.description.is_empty() { &wording.no_description } else { &tool.description };
    let mut text = fill(&wording.open, &[("n", &n), ("name", &tool.name), ("description", description)]);
    match schema(tool) {
        Ok(Some(schema)) => {
            text.push_str(&wording.parameters);
            text.push_str(&parameters(wording, &schema));
        }
        Ok(None) => text.push_str(&wording.no_parameters),
        Err(why) => {
            text.push_str(&wording.no_parameters);
            warnings.push(format!(
                "the parameters of tool {:?} are not a JSON schema ({why}): described as having none",
                tool.name
            ));
        }
    }
    text.push_str(&fill(&wording.close, &[("n", &n), ("name", &tool.name)]));
    text
}

/// The parameter schema, if the tool has one.
fn schema(tool: &ToolSpec) -> Result<Option<Value>, String> {
    if tool.parameters.trim().is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(&tool.parameters) {
        Ok(Value::Null) => Ok(None),
        Ok(value @ Value::Object(_)) => Ok(Some(value)),
        Ok(_) => Err("expected an object".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

fn parameters(wording: &ToolWording, schema: &Value) -> String {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = String::new();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (i, (name, info)) in properties.enumerate() {
        let need = if required.contains(&name.as_str()) { &wording.required } else { &wording.optional };
        let kind = info.get("type").map_or_else(|| wording.default_type.clone(), printed);
        let description = info.get("description").and_then(Value::as_str).unwrap_or(&wording.no_description).to_owned();
        let values = info.get("enum").and_then(Value::as_array).map_or_else(String::new, |list| {
            let list: Vec<String> = list.iter().map(|v| fill(&wording.value, &[("value", &printed(v))])).collect();
            fill(&wording.values, &[("list", &list.join(&wording.between_values))])
        });
        let places = [
            ("i", &*(i + 1).to_string()),
            ("name", name),
            ("type", &kind),
            ("need", need),
            ("description", &description),
            ("values", &values),
        ];
        text.push_str(&fill(&wording.parameter, &places));
    }
    text
}

/// A value of a schema as Python's string formatting shows it.
fn printed(value: &Value) -> String {
    if let Value::String(s) = value {
        return s.clone();
    }
    let json = value.to_string();
    let printed = serde_json::from_str(&json).ok().and_then(super::python::print);
    match printed {
        Some(super::python::Printed::Other(text) | super::python::Printed::Str(text)) => text,
        None => json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critic::Profile;

    fn wording() -> ToolWording {
        Profile::by_id("openhands-32b").unwrap().render.chatml.clone().unwrap().tools
    }

    #[test]
    fn a_schema_that_is_none_is_reported_and_the_tool_still_described() {
        for (parameters, expected) in [("{\"type\"", "EOF"), ("[]", "expected an object"), ("7", "expected an object")]
        {
            let mut warnings = Vec::new();
            let tool = ToolSpec { name: "t".into(), description: "does".into(), parameters: parameters.into() };
            let text = suffix(&wording(), &[tool], &mut warnings);
            assert!(text.contains("FUNCTION #1: t\n") && text.contains("takes no parameters"), "{text}");
            assert_eq!(warnings.len(), 1);
            assert!(warnings[0].contains(expected), "{warnings:?}");
        }
    }

    #[test]
    fn what_a_tool_says_is_never_taken_for_a_place_to_fill() {
        let schema = r#"{"properties": {"{need}": {"description": "{values} {n}", "enum": ["{list}"]}}}"#;
        let tool =
            ToolSpec { name: "{description}".into(), description: "{functions}".into(), parameters: schema.into() };
        let text = suffix(&wording(), &[tool], &mut Vec::new());
        assert!(text.contains("#1: {description}\nDescription: {functions}\n"), "{text}");
        assert!(text.contains("(1) {need} (string, optional): {values} {n}\nAllowed values: `{list}`\n"), "{text}");
    }
}
