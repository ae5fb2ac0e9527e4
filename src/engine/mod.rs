//! The only module that knows candle and tokenizers: loads a checkpoint, runs it, reads values.
//!
//! [`open`] gives a [`Critic`]: a checkpoint ([`Model`]) with its tokenizer and the profile that says what text it
//! reads and where its value is. The forward pass on the CPU is this project's own; see `cpu`.

pub mod bench;
mod blocks;
mod device;
mod embedded;
mod error;
pub mod found;
mod generate;
mod gguf;
mod head;
mod hub;
pub mod machine;
mod matrix;
mod model;
mod network;
mod numbers;
mod options;
mod plan;
mod prefix;
mod safetensors;
mod sample;
mod score;
mod selfcheck;
mod sketch;
mod source;
mod tokens;
mod verify;
mod weights;
mod widen;
mod writer;

pub mod config;
mod cpu;
pub mod fit;

use std::path::{Path, PathBuf};

pub use cpu::int8::kernel_report as int8_kernel;
pub use cpu::pool::{default_threads, physical_cores};
pub use device::{DeviceBench, DeviceSpeed, RandomShape, bench_random};
pub use error::EngineError;
pub use generate::{Ended, Generation};
pub use hub::{find_model, is_hub_name};
pub use model::{Chunks, Model};
pub use options::{CriticSpec, DeviceChoice, DtypeChoice, EngineOptions, KvChoice};
pub use sample::Sampling;
pub use selfcheck::{SelfCheck, self_check};
pub use sketch::sketch;
pub use verify::{Errors, InputResult, Verification, verify};
pub use writer::{Writer, Written};

use crate::critic::{Critic, CriticInfo, Profile};
use score::Scorer;
use source::{Source, folder_of};
use tokens::TextTokenizer;

/// Raised whenever a change of the forward pass changes values: scores kept on disk by older ones are not used then.
const NUMERICS: u32 = 1;

/// Advice that several messages give.
mod help {
    pub(super) const FOLDER: &str =
        "expected a Hugging Face model folder with config.json, model*.safetensors and tokenizer.json, or a GGUF file";
}

/// Opens a critic: reads and checks everything, so that scoring meets no more surprises.
///
/// # Errors
/// One line that names the file, the place, what was expected and what to do.
pub fn open(spec: &CriticSpec, options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    match spec {
        CriticSpec::Embedded => embedded::open(options),
        CriticSpec::Folder(folder) => open_folder(folder, options),
    }
}

fn open_folder(path: &Path, options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    let source = Source::open(path)?;
    let tokenizer = source.tokenizer;
    let model = Model::load_from((source.config, &source.config_file), source.weights, options)?;
    let (profile, note) = choose_profile(path, (&model.config().class, model.is_language()), options)?;
    let (tokenizer, file) = tokenizer.read()?;
    let whole = path.canonicalize().ok();
    let own = || whole.as_deref().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
    let name = whole.as_deref().and_then(hub::name_of_snapshot).or_else(own);
    let identity =
        Identity { id: name.unwrap_or_else(|| path.display().to_string()), note, path: Some(path.to_path_buf()) };
    assemble(model, (&tokenizer, file), profile, identity, options)
}

/// Who a critic is, apart from its model and profile.
struct Identity {
    id: String,
    note: Option<String>,
    path: Option<PathBuf>,
}

/// The profile of a folder and, if it was guessed, a note on that: the one asked for, else the folder's own, else the
/// built-in one for critics of this architecture.
fn choose_profile(
    path: &Path,
    (class, language): (&str, bool),
    options: &EngineOptions,
) -> Result<(Profile, Option<String>), EngineError> {
    if let Some(profile) = &options.profile {
        return Ok((profile.clone(), None));
    }
    let file = folder_of(path).join("profile.toml");
    if file.is_file() {
        return Profile::read(&file).map(|p| (p, None)).map_err(|e| EngineError::Profile(e.to_string()));
    }
    let id = if class == "Qwen2ForTokenClassification" { "openhands-32b" } else { "" };
    match Profile::by_id(id) {
        Some(profile) => Ok((profile.clone(), Some(format!("profile {id} taken by the architecture {class}")))),
        None => Err(EngineError::Profile(format!(
            "{}: no profile.toml, and no built-in profile for {class}; say how to read it with --profile FILE{}",
            path.display(),
            if language { " (if it should be a reward model: its head is missing)" } else { "" }
        ))),
    }
}

/// Puts a critic together and checks that its parts fit.
fn assemble(
    mut model: Model,
    (tokenizer, tokenizer_file): (&[u8], &Path),
    profile: Profile,
    identity: Identity,
    options: &EngineOptions,
) -> Result<Box<dyn Critic>, EngineError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(model.hash().as_bytes()).update(tokenizer).update(profile.fingerprint_text().as_bytes());
    let tokenizer = TextTokenizer::from_bytes(tokenizer, tokenizer_file)?;
    tokenizer.check_fits(model.config().vocab_size)?;
    let value_token = tokenizer.single_token(&profile.positions.token)?;
    head::fit(&mut model, &profile, &tokenizer)?;
    let positions = model.config().longest_text();
    let most = profile.max_tokens.min(positions);
    let fewer = (positions < profile.max_tokens)
        .then(|| format!("at most {positions} tokens, as the model says, not the profile's {}", profile.max_tokens));
    let mut info = CriticInfo::of_profile(&profile);
    for note in [identity.note.as_deref(), model.note(), fewer.as_deref()].into_iter().flatten() {
        info.note = format!("{}; {note}", info.note);
    }
    let info = CriticInfo {
        id: identity.id,
        device: model.device(),
        dtype: match options.kv {
            KvChoice::F32 => model.dtype().into(),
            kv => format!("{}, kv {kv}", model.dtype()),
        },
        fingerprint: hasher.finalize().to_hex().chars().take(16).collect(),
        max_tokens: options.max_tokens.map_or(most, |n| n.clamp(1, most)),
        path: identity.path,
        ..info
    };
    Ok(Box::new(Scorer { model, tokenizer, profile, info, value_token }))
}
