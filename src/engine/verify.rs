//! `trajscope verify`: does the engine give what PyTorch gave for this very checkpoint?
//!
//! The folder's `reference.json` has what PyTorch computed: `{"architecture", "inputs": [[id]], "f32": [row],
//! "f64": [row], "greedy": [[id]]}`, a row for every input. A row of a token head has the outputs of every token, of a
//! sequence head those of the last token, of a language model the first logits of the last token; `greedy` continues
//! some of the inputs.

use std::path::Path;

use serde_json::Value;

use super::config::Task;
use super::error::EngineError;
use super::sample::Sampling;
use super::source::folder_of;
use super::{Chunks, DtypeChoice, EngineOptions, Model};

/// Name of the file beside the weights.
const FILE: &str = "reference.json";

/// How far the outputs may be from PyTorch's unless the user says otherwise.
///
/// In f32 four times what PyTorch's own f32 is from f64; logits are larger numbers. Where weights or arithmetic lose
/// precision, a share of the `spread` of PyTorch's numbers: three to four times the largest that was measured on the
/// reference checkpoints (f16 0.003, bf16 0.025, q8_0 0.09, int8 0.16; smaller blocks lose more).
fn default_tolerance(model: &Model, options: &EngineOptions, spread: f64) -> f64 {
    let kept = matches!(options.dtype, DtypeChoice::Auto | DtypeChoice::F32) && model.device() == "cpu";
    spread
        * match model.dtype() {
            "f16" | "bf16" if kept => return exact_tolerance(model.config().task),
            "f32" => return exact_tolerance(model.config().task),
            "f16" => 0.01,
            "bf16" => 0.1,
            "q8_0" => 0.3,
            "int8" => 0.5,
            _ => 2.0,
        }
}

/// The standard deviation of some numbers; of a single one its magnitude.
fn spread(rows: &[Vec<f64>]) -> f64 {
    let numbers: Vec<f64> = rows.iter().flatten().copied().collect();
    if let [one] = numbers.as_slice() {
        return one.abs();
    }
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    (numbers.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt()
}

fn exact_tolerance(task: Task) -> f64 {
    if task == Task::TokenValues { 2e-5 } else { 1e-4 }
}

/// What [`verify`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    /// The class in config.json.
    pub architecture: String,
    /// Where it ran: `"cpu"`, `"cuda:0"`.
    pub device: String,
    /// Type of the weights in memory.
    pub dtype: String,
    /// Largest difference to PyTorch's f32; infinite if an output is NaN.
    pub max_abs_err: f64,
    /// Mean difference to PyTorch's f32.
    pub mean_abs_err: f64,
    /// The same against f64, if the reference has it.
    pub f64_errors: Option<Errors>,
    /// Are all continuations equal? `None` = the reference has none.
    pub greedy_equal: Option<bool>,
    /// Largest difference that is let pass.
    pub tolerance: f64,
    /// Must the continuations be equal too? Not if precision was given up.
    pub strict: bool,
    /// One an input.
    pub inputs: Vec<InputResult>,
}

/// Differences of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// The largest; infinite if a number is NaN.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

/// What was found for one input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputResult {
    /// Its length.
    pub tokens: usize,
    /// Numbers compared.
    pub numbers: usize,
    /// Against PyTorch's f32.
    pub errors: Errors,
    /// Is the continuation equal? `None` = the reference has none.
    pub greedy_equal: Option<bool>,
}

impl Verification {
    /// Is everything within the tolerance?
    pub fn is_good(&self) -> bool {
        self.max_abs_err <= self.tolerance && !(self.strict && self.greedy_equal == Some(false))
    }
}

/// Runs every input of the folder's `reference.json` and compares.
///
/// # Errors
/// The model or the reference cannot be read, or do not belong together: one line.
pub fn verify(
    folder: &Path,
    options: &EngineOptions,
    chunks: Chunks,
    tolerance: Option<f64>,
) -> Result<Verification, EngineError> {
    // The reference of a GGUF file lies beside it; a path that is not there keeps its own name in the message.
    let reference = Reference::read(if folder.is_file() { folder_of(folder) } else { folder })?;
    let mut model = Model::open(folder, options)?;
    let class = model.config().class.clone();
    if reference.architecture.as_ref().is_some_and(|said| *said != class) {
        let said = reference.architecture.as_deref().unwrap_or_default();
        return Err(reference.broken(&format!("`architecture` is {said}, config.json says {class}")));
    }
    let mut inputs = Vec::new();
    let (mut against_f32, mut against_f64) = (Sum::default(), Sum::default());
    for (number, ids) in reference.inputs.iter().enumerate() {
        let expected = &reference.f32[number];
        let found = outputs(&mut model, ids, expected.len(), chunks)
            .map_err(|what| reference.broken(&format!("`inputs[{number}]` ({} tokens): {what}", ids.len())))?;
        reference.same_length(&format!("f32[{number}]"), expected, &found)?;
        let mut own = Sum::default();
        own.add(&found, expected);
        against_f32.add(&found, expected);
        if let Some(exact) = reference.f64.get(number) {
            reference.same_length(&format!("f64[{number}]"), exact, &found)?;
            against_f64.add(&found, exact);
        }
        let greedy_equal = match reference.greedy.get(number) {
            Some(wanted) => Some(continues(&mut model, ids, wanted).map_err(|what| reference.broken(&what))?),
            None => None,
        };
        inputs.push(InputResult { tokens: ids.len(), numbers: found.len(), errors: own.errors(), greedy_equal });
    }
    let all = against_f32.errors();
    let usual = default_tolerance(&model, options, spread(&reference.f32));
    Ok(Verification {
        architecture: class,
        device: model.device(),
        dtype: model.dtype().into(),
        max_abs_err: all.max,
        mean_abs_err: all.mean,
        f64_errors: (!reference.f64.is_empty()).then(|| against_f64.errors()),
        greedy_equal: (!reference.greedy.is_empty()).then(|| inputs.iter().all(|i| i.greedy_equal != Some(false))),
        tolerance: tolerance.unwrap_or(usual),
        strict: usual <= exact_tolerance(model.config().task),
        inputs,
    })
}

/// What the model gives where the reference looked.
fn outputs(model: &mut Model, ids: &[u32], wanted: usize, chunks: Chunks) -> Result<Vec<f32>, String> {
    let last = [ids.len() - 1];
    match model.config().task {
        Task::TokenValues => model.values(ids, chunks),
        Task::SequenceValues => model.logits(ids, &last, chunks),
        Task::Language => {
            let mut logits = model.logits(ids, &last, chunks)?;
            logits.truncate(wanted);
            Ok(logits)
        }
    }
}

/// Does the likeliest continuation equal `wanted`?
fn continues(model: &mut Model, ids: &[u32], wanted: &[u32]) -> Result<bool, String> {
    let sampling = Sampling { max_tokens: wanted.len(), ..Sampling::default() };
    model.forget();
    let made = model.generate(ids, &sampling, &|| false, &mut |_| {})?;
    Ok(made.ids == wanted)
}

#[derive(Debug, Default)]
struct Sum {
    max: f64,
    total: f64,
    numbers: usize,
}

impl Sum {
    fn add(&mut self, found: &[f32], expected: &[f64]) {
        for (a, b) in found.iter().zip(expected) {
            let error = (f64::from(*a) - b).abs();
            // `max` would drop NaN.
            let error = if error.is_nan() { f64::INFINITY } else { error };
            self.max = self.max.max(error);
            self.total += error;
            self.numbers += 1;
        }
    }

    fn errors(&self) -> Errors {
        Errors { max: self.max, mean: self.total / self.numbers.max(1) as f64 }
    }
}

/// The contents of `reference.json`.
#[derive(Debug)]
struct Reference {
    file: std::path::PathBuf,
    architecture: Option<String>,
    inputs: Vec<Vec<u32>>,
    f32: Vec<Vec<f64>>,
    /// Empty if there is none.
    f64: Vec<Vec<f64>>,
    /// Of the first inputs.
    greedy: Vec<Vec<u32>>,
}

impl Reference {
    fn read(folder: &Path) -> Result<Self, EngineError> {
        let file = folder.join(FILE);
        let help = "put PyTorch's outputs beside the model as `trajscope verify --help` says";
        let text = std::fs::read(&file).map_err(|e| EngineError::io(&file, &e, help))?;
        let mut reference = Self { file, architecture: None, inputs: vec![], f32: vec![], f64: vec![], greedy: vec![] };
        let value: Value = serde_json::from_slice(&text).map_err(|e| reference.broken(&format!("not JSON ({e})")))?;
        let Value::Object(map) = &value else { return Err(reference.broken("expected a JSON object at the top")) };
        reference.architecture = match map.get("architecture") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name.clone()),
            Some(_) => return Err(reference.broken("`architecture`: expected a class name")),
        };
        let rows = |key: &str| match map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(rows)) => Ok(Some(rows.as_slice())),
            Some(_) => Err(reference.broken(&format!("`{key}`: expected a list with one row an input"))),
        };
        let inputs = rows("inputs")?.filter(|r| !r.is_empty());
        let inputs =
            reference.ids("inputs", inputs.ok_or_else(|| reference.broken("`inputs`: expected lists of ids"))?)?;
        if let Some(number) = inputs.iter().position(Vec::is_empty) {
            return Err(reference.broken(&format!("`inputs[{number}]` is empty: expected at least one id")));
        }
        let numbers = |key: &str| match rows(key)? {
            None => Ok(None),
            Some(rows) if rows.len() != inputs.len() => {
                Err(reference.broken(&format!("`{key}` has {} rows for {} inputs", rows.len(), inputs.len())))
            }
            Some(rows) => reference.numbers(key, rows).map(Some),
        };
        let f32 = numbers("f32")?.ok_or_else(|| reference.broken("`f32`: expected a list with one row an input"))?;
        let f64 = numbers("f64")?.unwrap_or_default();
        let greedy = reference.ids("greedy", rows("greedy")?.unwrap_or_default())?;
        if greedy.len() > inputs.len() {
            return Err(reference.broken(&format!("`greedy` has {} rows for {} inputs", greedy.len(), inputs.len())));
        }
        Ok(Self { inputs, f32, f64, greedy, ..reference })
    }

    fn ids(&self, key: &str, rows: &[Value]) -> Result<Vec<Vec<u32>>, EngineError> {
        let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
        let row = |(number, row): (usize, &Value)| {
            let ids: Option<Vec<u32>> = row.as_array().and_then(|row| row.iter().map(id).collect());
            ids.ok_or_else(|| self.broken(&format!("`{key}[{number}]`: expected a list of token ids")))
        };
        rows.iter().enumerate().map(row).collect()
    }

    fn numbers(&self, key: &str, rows: &[Value]) -> Result<Vec<Vec<f64>>, EngineError> {
        let row = |(number, row): (usize, &Value)| {
            let mut flat = Vec::new();
            if row.is_array() && flatten(row, &mut flat) && !flat.is_empty() {
                return Ok(flat);
            }
            Err(self.broken(&format!("`{key}[{number}]`: expected a list of numbers")))
        };
        rows.iter().enumerate().map(row).collect()
    }

    fn same_length(&self, place: &str, expected: &[f64], found: &[f32]) -> Result<(), EngineError> {
        if expected.len() == found.len() {
            return Ok(());
        }
        Err(self.broken(&format!("`{place}` has {} numbers, the model gives {}", expected.len(), found.len())))
    }

    fn broken(&self, what: &str) -> EngineError {
        EngineError::File {
            file: self.file.clone(),
            what: what.into(),
            help: "expected what PyTorch gives for this very model (`trajscope verify --help` has the form)".into(),
        }
    }
}

/// Numbers of a list, or of lists of lists (one row a token); false if there is anything else in it.
fn flatten(value: &Value, into: &mut Vec<f64>) -> bool {
    match value {
        Value::Array(parts) => parts.iter().all(|part| flatten(part, into)),
        Value::Number(number) => number.as_f64().map(|n| into.push(n)).is_some(),
        _ => false,
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
