//! Agentless: samples of patches from one prompt, and the locations it looked for before.

use super::document::Row;
use super::json::Value;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader, numbered};
use super::{field, rows};
use crate::trajectory::{RawPlace, Role, Source, Step, Tokens, Trajectory, Usage};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "agentless-repair",
        name: "Agentless repair samples",
        writer: "Agentless (`repair_sample_k/output.jsonl`)",
        recognised: "rows with `raw_output`, `all_generations` and `traj`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_repair, decode },
    },
    Format {
        id: "agentless-locations",
        name: "Agentless locations",
        writer: "Agentless (`loc_outputs.jsonl`)",
        recognised: "rows with `found_files` or `found_edit_locs` and their `…_traj`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_locations, decode: |_| Decoded::default() },
    },
];

fn sniff_repair(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = sniff.is_rows() && sniff.has_all(&["instance_id", "raw_output", "all_generations", "traj"]);
    if fits { Match::some(Confidence::Certain, "rows with `raw_output`, `all_generations` and `traj`") } else { None }
}

fn sniff_locations(sniff: &Sniff<'_>) -> Option<Match> {
    let found = ["found_files", "found_related_locs", "found_edit_locs"].iter().any(|k| sniff.has(k));
    let how = ["file_traj", "related_loc_traj", "edit_loc_traj"].iter().any(|k| sniff.has(k));
    if sniff.is_rows() && sniff.has("instance_id") && found && how {
        Match::some(Confidence::Certain, "rows with found locations and how they were found")
    } else {
        None
    }
}

/// One trajectory a row: the prompt once, then every sample. Which sample became which prediction stands in
/// `output_<i>_processed.jsonl`.
fn decode(input: &Input<'_>) -> Decoded {
    let (found, diagnostics) = input.document.map_rows(|row| {
        row.value.get("traj")?;
        let mut trajectory = samples(row);
        trajectory.source = Source { span: row.span, ..Source::default() };
        trajectory.format = input.format;
        Some(trajectory)
    });
    Decoded { trajectories: numbered(found), diagnostics, ..Decoded::default() }
}

fn samples(row: Row<'_>) -> Trajectory {
    let value = row.value;
    let base = rows::pointer(row, "traj");
    let mut out = Trajectory {
        instance_id: field::text(value, "instance_id"),
        agent: Some("Agentless".to_owned()),
        ..Trajectory::default()
    };
    let at = |pointer: String| RawPlace { pointer: pointer.into(), ..RawPlace::default() };
    let mut asked: Option<&str> = None;
    let mut used: Vec<Tokens> = Vec::new();
    for (i, call) in field::list(value, "traj").iter().enumerate() {
        let prompt = field::str(call, "prompt").filter(|p| asked != Some(*p));
        if let Some(prompt) = prompt {
            let mut step = Step::new(Role::User, prompt);
            step.raw = at(format!("{base}/{i}/prompt"));
            out.steps.push(step);
        }
        asked = prompt.or(asked);
        let tokens = field::get(call, "usage").and_then(usage);
        used.extend(tokens);
        let responses: Vec<(String, &Value)> = match field::get(call, "response") {
            Some(Value::Array(many)) => {
                many.iter().enumerate().map(|(n, one)| (format!("{base}/{i}/response/{n}"), one)).collect()
            }
            Some(one) => vec![(format!("{base}/{i}/response"), one)],
            None => Vec::new(),
        };
        let only = responses.len() == 1;
        for (pointer, response) in responses {
            let mut step = Step::new(Role::Assistant, field::json_text(response));
            step.tokens = tokens.filter(|_| only);
            step.raw = at(pointer);
            out.steps.push(step);
        }
    }
    if !used.is_empty() {
        out.usage = Usage {
            tokens_in: Some(used.iter().map(|t| t.input).sum()),
            tokens_out: Some(used.iter().map(|t| t.output).sum()),
            api_calls: Some(used.len() as u64),
            ..Usage::default()
        };
    }
    out
}

fn usage(value: &Value) -> Option<Tokens> {
    let count = |key| field::get(value, key).and_then(field::count);
    Some(Tokens { input: count("prompt_tokens")?, cached: None, output: count("completion_tokens")? })
}

/// `sample 3` of `output_3_processed.jsonl` and `output_3_normalized.jsonl`.
pub fn sample_of(file: &str) -> Option<String> {
    let rest = file.strip_prefix("output_")?;
    let (number, kind) = rest.split_once('_')?;
    let known = kind.starts_with("processed") || kind.starts_with("normalized");
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    if known && digits { Some(format!("sample {number}")) } else { None }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::json::json;
    use super::super::load::load_bytes;
    use super::*;
    use crate::trajectory::{Dataset, join};

    #[test]
    fn the_prompt_stands_once_before_its_samples() {
        let row = json!({"instance_id": "o__r-1", "raw_output": ["a", "b", "c"], "all_generations": [["a", "b", "c"]], "try_count": [1],
            "traj": [{"prompt": "P", "response": "a", "usage": {"prompt_tokens": 9, "completion_tokens": 1}},
                     {"prompt": "P", "response": ["b", "c"], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}],
            "prev_content": [[]], "file_names": [[]]});
        let file = load_bytes(Path::new("output.jsonl"), row.to_string().into_bytes());
        assert_eq!(file.report.format, Some("agentless-repair"));
        let t = &file.trajectories[0];
        let found: Vec<(Role, &str)> = t.steps.iter().map(|s| (s.role, s.text.as_str())).collect();
        assert_eq!(found, [(Role::User, "P"), (Role::Assistant, "a"), (Role::Assistant, "b"), (Role::Assistant, "c")]);
        assert_eq!((t.usage.tokens_in, t.usage.tokens_out, t.usage.api_calls), (Some(18), Some(3), Some(2)));
        assert_eq!(&*t.steps[3].raw.pointer, "/traj/1/response/1");
        let found = json!({"instance_id": "o__r-1", "found_files": ["x"], "file_traj": {}});
        let file = load_bytes(Path::new("loc_outputs.jsonl"), found.to_string().into_bytes());
        assert_eq!(file.report.format, Some("agentless-locations"));
    }

    #[test]
    fn samples_are_attempts_even_where_their_patches_are_the_same() {
        let row = json!({"model_name_or_path": "agentless", "instance_id": "o__r-1", "model_patch": "P", "raw_model_patch": "p",
            "original_file_content": ["x"]});
        let mut dataset = Dataset::default();
        for name in
            ["output_0_processed.jsonl", "output_0_normalized.jsonl", "output_1_processed.jsonl", "all_preds.jsonl"]
        {
            let path = Path::new("run/repair_sample_1").join(name);
            dataset.predictions.extend(load_bytes(&path, row.to_string().into_bytes()).predictions);
        }
        let issue = join(&dataset).remove(0);
        let names: Vec<&str> = issue.attempts.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!(sample_of("output_12_normalized.jsonl").as_deref(), Some("sample 12"));
        assert_eq!(sample_of("output_x_processed.jsonl"), None);
        assert_eq!(sample_of("output.jsonl"), None);
    }
}
