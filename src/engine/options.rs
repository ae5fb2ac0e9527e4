//! What a user may choose about the engine.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::machine::memory;
use crate::critic::Profile;

/// Which critic to open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CriticSpec {
    /// The small one built into the program.
    #[default]
    Embedded,
    /// A Hugging Face model folder (config.json, model*.safetensors, tokenizer.json, perhaps profile.toml), a GGUF
    /// file, or a folder with one.
    Folder(PathBuf),
}

/// Where to run. As text: `auto`, `cpu`, `cuda`, `cuda:1`, `metal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// A graphics processor if the program was built for one and finds it, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The NVIDIA device of this number.
    Cuda(usize),
    /// Apple's graphics processor.
    Metal,
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Metal => f.write_str("metal"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "metal" | "metal:0" => Ok(Self::Metal),
            _ => match text.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(number)) => Ok(Self::Cuda(number)),
                _ => Err(format!("device {text:?}: expected auto, cpu, cuda, cuda:N or metal")),
            },
        }
    }
}

/// Type of the weights in memory. On the CPU arithmetic is f32 whatever it is, but for [`Self::Int8`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DtypeChoice {
    /// That of the file.
    #[default]
    Auto,
    /// 32-bit floats.
    F32,
    /// The upper half of 32-bit floats; weights that take less room already stay as they are.
    Bf16,
    /// IEEE half floats; weights that take less room already stay as they are.
    F16,
    /// ggml's Q8_0: 8 bits and a scale for every 32 numbers. Weights that take less room already stay as they are.
    Q8_0,
    /// Linear layers in 8 bits, weights and activations (CPU only): about twice as fast as f32, and less exact.
    Int8,
}

impl DtypeChoice {
    /// Every choice with its text.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Auto, "auto"),
        (Self::F32, "f32"),
        (Self::Bf16, "bf16"),
        (Self::F16, "f16"),
        (Self::Q8_0, "q8_0"),
        (Self::Int8, "int8"),
    ];
}

impl fmt::Display for DtypeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(choice, _)| choice == self).map_or("auto", |(_, text)| text))
    }
}

impl FromStr for DtypeChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(choice, _)| *choice).ok_or_else(|| {
            let names = Self::ALL.map(|(_, name)| name);
            format!("dtype {text:?}: expected one of {}", names.join(", "))
        })
    }
}

/// Type of the keys and values that are kept of the tokens read so far (CPU). Half precision halves the memory of long
/// texts; products and sums stay f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvChoice {
    /// 32-bit floats.
    #[default]
    F32,
    /// IEEE half floats: eleven bits of precision, nothing beyond ±65,504.
    F16,
    /// The upper half of 32-bit floats: eight bits of precision.
    Bf16,
}

impl KvChoice {
    /// Every choice with its text.
    pub const ALL: [(Self, &'static str); 3] = [(Self::F32, "f32"), (Self::F16, "f16"), (Self::Bf16, "bf16")];

    /// Bytes of one number.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

impl fmt::Display for KvChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(choice, _)| choice == self).map_or("f32", |(_, text)| text))
    }
}

impl FromStr for KvChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        let names = Self::ALL.map(|(_, name)| name).join(", ");
        found.map(|(choice, _)| *choice).ok_or_else(|| format!("kv {text:?}: expected one of {names}"))
    }
}

/// How to open a critic. The default is right for most.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EngineOptions {
    /// Where to run.
    pub device: DeviceChoice,
    /// Type of the weights.
    pub dtype: DtypeChoice,
    /// Threads of the forward pass on the CPU; `None` = one for every physical core but one.
    pub threads: Option<usize>,
    /// How to read the critic; `None` = the folder's `profile.toml`, else the built-in one for its architecture.
    pub profile: Option<Profile>,
    /// Most tokens to read at once; `None` = what the profile says. Never more than the profile says.
    pub max_tokens: Option<usize>,
    /// Bytes of keys and values kept aside for texts that begin alike; `None` = an eighth of the memory that is free
    /// when the model is open, at most 2 GiB.
    pub prefix_cache: Option<usize>,
    /// Type of the cached keys and values (CPU).
    pub kv: KvChoice,
    /// Most bytes of cached keys and values (CPU): a text that needs more is read layer by layer, and nothing of it is
    /// cached. `None` = three quarters of the memory that is available when the text is read.
    pub kv_memory: Option<u64>,
}

impl EngineOptions {
    /// Bytes for beginnings.
    pub(super) fn prefix_bytes(&self) -> usize {
        let free = || memory().map_or(MOST_PREFIX / 4, |m| m.available / 8);
        self.prefix_cache.unwrap_or_else(|| usize::try_from(free().min(MOST_PREFIX)).unwrap_or(usize::MAX))
    }
}

/// Bytes for beginnings, unless somebody asks for more.
const MOST_PREFIX: u64 = 2 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        let all =
            [DeviceChoice::Auto, DeviceChoice::Cpu, DeviceChoice::Cuda(0), DeviceChoice::Cuda(3), DeviceChoice::Metal];
        for device in all {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        assert!("gpu".parse::<DeviceChoice>().unwrap_err().contains("expected auto, cpu"));
        assert!("cuda:x".parse::<DeviceChoice>().is_err());
    }

    #[test]
    fn types_of_keys_and_values_are_read_as_they_are_written() {
        for (kv, text) in KvChoice::ALL {
            assert_eq!((kv.to_string().as_str(), text.parse()), (text, Ok(kv)));
        }
        assert_eq!(KvChoice::ALL.map(|(kv, _)| kv.bytes()), [4, 2, 2]);
        assert_eq!("f64".parse::<KvChoice>(), Err("kv \"f64\": expected one of f32, f16, bf16".into()));
    }

    #[test]
    fn types_are_read_as_they_are_written() {
        for (dtype, text) in DtypeChoice::ALL {
            assert_eq!((dtype.to_string().as_str(), text.parse()), (text, Ok(dtype)));
        }
        let said = "f64".parse::<DtypeChoice>().unwrap_err();
        assert!(said.contains("dtype \"f64\": expected one of auto, f32, bf16"), "{said}");
    }
}
