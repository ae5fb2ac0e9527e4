//! What can be typed.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::engine::RandomShape;

/// See where an agent trajectory lost its reward.
///
/// Opens trajectories of software-engineering agents, lets a critic predict the reward of every action, shows where
/// it drops, and helps to choose among the candidate patches of one issue.
#[derive(Debug, Parser)]
#[command(name = "trajscope", version, args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true)]
pub struct Args {
    /// A headless command; without one the screen opens.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What opening the screen needs.
    #[command(flatten)]
    pub open: OpenArgs,
}

/// `trajscope PATH…`
#[derive(Debug, ClapArgs)]
pub struct OpenArgs {
    /// Files and folders with trajectories, predictions and reports.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Colours for a light terminal (default: dark).
    #[arg(long)]
    pub light: bool,
    /// Panic after the first frame: for the test that the terminal is restored.
    #[arg(long, hide = true)]
    pub debug_panic: bool,
    /// The critic.
    #[command(flatten)]
    pub critic: CriticArgs,
}

/// Which critic, and where it runs.
#[derive(Debug, Clone, ClapArgs)]
pub struct CriticArgs {
    /// `mini` (the small embedded critic), a Hugging Face model folder, a GGUF file or a folder with one, the name of a
    /// model in the local Hugging Face cache (`org/name` or `org/name@revision`), or `none` (load and report only).
    #[arg(long, default_value = "mini", value_name = "NAME|PATH")]
    pub critic: String,
    /// Profile to use with a model folder: an id of `trajscope critics`, or a TOML file.
    #[arg(long, value_name = "ID|FILE")]
    pub profile: Option<String>,
    /// `auto`, `cpu`, `cuda`, `cuda:N` or `metal` (the last ones only in a program built for them).
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Type of the weights in memory: `auto` (as in the file), `f32`, `bf16`, `f16`, `q8_0`, or `int8` (CPU: linear
    /// layers computed in 8 bits, faster and less exact).
    #[arg(long, default_value = "auto")]
    pub dtype: String,
    /// Threads of the forward pass (default: physical cores less one, at least one).
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Type of the cached keys and values on the CPU: `f32`, `f16` or `bf16` (half the memory of long texts).
    #[arg(long, default_value = "f32", value_name = "TYPE")]
    pub kv: String,
    /// Most memory of cached keys and values on the CPU, in gigabytes: a text that needs more is read layer by layer
    /// (default: three quarters of what is available).
    #[arg(long, value_name = "GB")]
    pub kv_memory: Option<f64>,
    /// Most tokens of one pass (default: the profile's).
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,
    /// Memory in MiB for keys and values of texts that begin alike, so that attempts of one issue share their beginning
    /// (default: an eighth of the free memory, at most 2048; 0 = only the last text's).
    #[arg(long, value_name = "MIB")]
    pub prefix_cache: Option<usize>,
    /// Compute every score anew: scores are neither read from nor written to the cache folder (`trajscope cache` says
    /// where that is). Without this, what the same critic has read before is not computed again.
    #[arg(long)]
    pub no_cache: bool,
}

/// The headless commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Score every action of every trajectory.
    Score(ScoreArgs),
    /// Order the attempts of every issue.
    Rank(RankArgs),
    /// Write the chosen patch of every issue as SWE-bench predictions.
    Export(ExportArgs),
    /// Show exactly what a critic reads of one trajectory.
    Inspect(InspectArgs),
    /// Show what was joined to what: predictions and reports to trajectories, by which rule, and what was not.
    Joins(JoinsArgs),
    /// List the critics and what their numbers mean.
    Critics(ListArgs),
    /// List the formats and how each is recognised.
    Formats(ListArgs),
    /// Show where scores are kept between runs and how many there are, or remove them.
    Cache(CacheArgs),
    /// Measure how fast a critic reads on this machine, beside what a plain product of matrices gives.
    Bench(BenchArgs),
    /// Check this machine: devices, instruction sets, the engine against a second implementation.
    Doctor(ListArgs),
    /// Compare the engine with PyTorch's own outputs of a model.
    Verify(VerifyArgs),
    /// Draw a screen as SVG, as it is after some keys (how the README's pictures are made).
    #[command(hide = true)]
    Picture(PictureArgs),
}

/// `trajscope picture`
#[derive(Debug, ClapArgs)]
pub struct PictureArgs {
    /// Files and folders.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Keys to press when everything is read and scored, named as in the key map and parted by blanks.
    #[arg(long, default_value = "", value_name = "KEYS")]
    pub keys: String,
    /// Columns and rows.
    #[arg(long, default_value = "120x36", value_name = "WxH", value_parser = size)]
    pub size: (u16, u16),
    /// Colours for a light ground.
    #[arg(long)]
    pub light: bool,
    /// The critic.
    #[command(flatten)]
    pub critic: CriticArgs,
}

/// `120x36`
fn size(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    parts.filter(|(w, h)| (1..=500).contains(w) && (1..=500).contains(h)).ok_or_else(|| {
        format!("{text:?} is not a size: expected columns x rows, each from 1 to 500, for example 120x36")
    })
}

/// `trajscope score`
#[derive(Debug, ClapArgs)]
pub struct ScoreArgs {
    /// Files and folders.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// One JSON object a line and trajectory.
    #[arg(long)]
    pub json: bool,
    /// Smallest fall of the reward that is listed as a drop (default: the profile's).
    #[arg(long, value_name = "SIZE")]
    pub drop: Option<f64>,
    /// The critic.
    #[command(flatten)]
    pub critic: CriticArgs,
}

/// `trajscope rank`
#[derive(Debug, ClapArgs)]
pub struct RankArgs {
    /// Files and folders.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// One JSON object a line and issue.
    #[arg(long)]
    pub json: bool,
    /// The critic.
    #[command(flatten)]
    pub critic: CriticArgs,
}

/// `trajscope export`
#[derive(Debug, ClapArgs)]
pub struct ExportArgs {
    /// Files and folders.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// The predictions file: `.json` = one object by instance id, anything else = JSON lines.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,
    /// `model_name_or_path` of every prediction (default: the attempts' own if all the same, else `trajscope`).
    #[arg(long, value_name = "NAME")]
    pub model_name: Option<String>,
    /// The critic.
    #[command(flatten)]
    pub critic: CriticArgs,
}

/// `trajscope inspect`
#[derive(Debug, ClapArgs)]
pub struct InspectArgs {
    /// The file.
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// 0-based record, where the file holds several trajectories.
    #[arg(long, value_name = "R")]
    pub record: Option<usize>,
    /// Only up to the end of this action (0-based).
    #[arg(long, value_name = "N")]
    pub action: Option<usize>,
    /// Print exactly the bytes the critic gets, nothing added.
    #[arg(long)]
    pub critic_text: bool,
    /// One JSON object: hash, characters, tokens, positions.
    #[arg(long)]
    pub json: bool,
    /// The critic.
    #[command(flatten)]
    pub critic: CriticArgs,
}

/// `trajscope joins`
#[derive(Debug, ClapArgs)]
pub struct JoinsArgs {
    /// Files and folders.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// One JSON object a line: every prediction, every statement of a report, every trajectory without a label.
    #[arg(long)]
    pub json: bool,
    /// Only what was not joined.
    #[arg(long)]
    pub missing: bool,
}

/// `trajscope bench`
#[derive(Debug, ClapArgs)]
pub struct BenchArgs {
    /// Lengths of the texts.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "512,2048,8192")]
    pub tokens: Vec<usize>,
    /// Instead of the critic, on a graphics processor: a model of this shape with random weights (0.5b, 4b, 32b).
    #[arg(long, value_name = "SHAPE")]
    pub random: Option<RandomShape>,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
    /// The critic.
    #[command(flatten)]
    pub critic: CriticArgs,
}

/// `trajscope cache`
#[derive(Debug, ClapArgs)]
pub struct CacheArgs {
    /// Remove all kept scores. Nothing else in the folder is touched.
    #[arg(long)]
    pub clear: bool,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `trajscope verify`
///
/// The folder needs a reference.json with what PyTorch gives: `{"architecture": "Qwen2ForTokenClassification",
/// "inputs": [[ids]], "f32": [row], "f64": [row], "greedy": [[ids]]}`, one row an input: the outputs of every token
/// (ForTokenClassification), those of the last token (ForSequenceClassification), or the first logits of the last
/// token (ForCausalLM). `f64` and `greedy`, ids that continue the inputs, may be missing. Exit code 1 if an output is
/// further from `f32` than the tolerance.
#[derive(Debug, ClapArgs)]
#[command(verbatim_doc_comment)]
pub struct VerifyArgs {
    /// A Hugging Face model folder with a reference.json, or the name of a downloaded model.
    #[arg(value_name = "DIR")]
    pub model: String,
    /// Tokens of one chunk of the forward pass, 0 for everything at once (default: growing, as when scoring).
    #[arg(long, value_name = "N")]
    pub chunk: Option<usize>,
    /// `auto`, `cpu`, `cuda`, `cuda:N` or `metal`.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Type of the weights in memory, as for `trajscope score`.
    #[arg(long, default_value = "auto")]
    pub dtype: String,
    /// Threads of the forward pass (default: physical cores less one, at least one).
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Largest difference to let pass. Default in f32, and for a file in half precision computed in f32: 2e-5 for
    /// values of tokens, 1e-4 for logits. Else a share of the standard deviation of PyTorch's numbers: f16 0.01, bf16
    /// 0.1, q8_0 0.3, int8 0.5, smaller ones 2.
    #[arg(long, value_name = "X")]
    pub tolerance: Option<f64>,
    /// One JSON object instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// `trajscope critics`, `formats`, `doctor`
#[derive(Debug, ClapArgs)]
pub struct ListArgs {
    /// JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}
