//! SWE-bench predictions: `{instance_id, model_name_or_path, model_patch}`, the patch byte for byte as it was read.
//!
//! Shapes as the harness reads them (`swebench.harness.utils.get_predictions_from_file`): JSON lines, or one JSON
//! value that is a list, or a dict by instance id.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::rank::Ranking;
use crate::trajectory::{Issue, IssueId};

/// One prediction to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Instance.
    pub instance_id: String,
    /// `model_name_or_path` of the attempt it comes from, if known.
    pub model: Option<String>,
    /// The exact patch.
    pub patch: String,
}

/// An issue that gets no prediction, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The issue's name.
    pub issue: String,
    /// One phrase.
    pub why: &'static str,
}

/// How the file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One object a line.
    Lines,
    /// One object by instance id.
    Dict,
}

impl Shape {
    /// By the file's extension: `.json` is one object, anything else JSON lines.
    pub fn of(path: &Path) -> Self {
        let json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
        if json { Self::Dict } else { Self::Lines }
    }
}

/// The choice of every issue, in the order given, and the issues without one.
pub fn chosen<'a>(issues: impl IntoIterator<Item = (&'a Issue, &'a Ranking)>) -> (Vec<Chosen>, Vec<Left>) {
    let (mut predictions, mut left) = (Vec::new(), Vec::new());
    for (issue, ranking) in issues {
        match one(issue, ranking) {
            Ok(prediction) => predictions.push(prediction),
            Err(why) => left.push(Left { issue: issue.name(), why }),
        }
    }
    (predictions, left)
}

fn one(issue: &Issue, ranking: &Ranking) -> Result<Chosen, &'static str> {
    let IssueId::Instance(instance_id) = &issue.id else {
        return Err("no instance id, and a prediction needs one");
    };
    let attempt = ranking.chosen.and_then(|i| issue.attempts.get(i)).ok_or("no attempt can be chosen")?;
    let patch = attempt.patch().ok_or("the chosen attempt has no patch")?;
    Ok(Chosen {
        instance_id: instance_id.clone(),
        model: attempt.model_name().map(str::to_owned),
        patch: patch.to_owned(),
    })
}

/// The file's bytes. The harness wants one `model_name_or_path` for a file: `name` if given, else the attempts' own
/// name where they all have the same, else `trajscope`.
pub fn to_bytes(predictions: &[Chosen], shape: Shape, name: Option<&str>) -> Vec<u8> {
    let first = predictions.first().and_then(|p| p.model.as_deref());
    let shared = first.filter(|_| predictions.iter().all(|p| p.model.as_deref() == first));
    let name = name.or(shared).unwrap_or("trajscope");
    let object = |p: &Chosen| json!({"instance_id": p.instance_id, "model_name_or_path": name, "model_patch": p.patch});
    match shape {
        Shape::Lines => predictions.iter().flat_map(|p| format!("{}\n", object(p)).into_bytes()).collect(),
        Shape::Dict => {
            let dict: Map<String, Value> = predictions.iter().map(|p| (p.instance_id.clone(), object(p))).collect();
            format!("{:#}\n", Value::Object(dict)).into_bytes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(id: &str, model: Option<&str>, patch: &str) -> Chosen {
        Chosen { instance_id: id.into(), model: model.map(str::to_owned), patch: patch.into() }
    }

    #[test]
    fn patches_survive_byte_for_byte() {
        let patch = "\ndiff --git a/x b/x\r\n+caf\u{e9} \u{1f600} \u{7f}\t\"quoted\\\"\n\\ No newline at end of file";
        let all = [prediction("a__b-1", Some("m"), patch)];
        for shape in [Shape::Lines, Shape::Dict] {
            let bytes = to_bytes(&all, shape, None);
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            let object = if shape == Shape::Dict { &value["a__b-1"] } else { &value };
            assert_eq!(object["model_patch"].as_str(), Some(patch));
            assert_eq!(object["model_name_or_path"], "m");
        }
    }

    #[test]
    fn one_name_for_the_whole_file() {
        let mixed = [prediction("a__b-1", Some("m"), "p"), prediction("a__b-2", Some("n"), "q")];
        let text = String::from_utf8(to_bytes(&mixed, Shape::Lines, None)).unwrap();
        assert_eq!(text.matches("\"model_name_or_path\":\"trajscope\"").count(), 2);
        let named = String::from_utf8(to_bytes(&mixed, Shape::Lines, Some("mine"))).unwrap();
        assert_eq!(named.lines().filter(|l| l.contains("\"mine\"")).count(), 2);
    }

    #[test]
    fn the_extension_says_the_shape() {
        assert_eq!(Shape::of(Path::new("preds.JSON")), Shape::Dict);
        assert_eq!(Shape::of(Path::new("preds.jsonl")), Shape::Lines);
        assert_eq!(Shape::of(Path::new("preds")), Shape::Lines);
    }

    #[test]
    fn an_issue_without_a_choice_is_named() {
        let issue = Issue { id: IssueId::Unnamed("x/run.json".into(), 2), attempts: Vec::new() };
        let (made, left) = chosen([(&issue, &Ranking::default())]);
        assert!(made.is_empty());
        assert_eq!(left[0].issue, "run.json#2");
    }
}
