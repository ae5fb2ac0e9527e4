//! What a user may choose about the engine.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::critic::Profile;

/// Which critic to open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CriticSpec {
    /// The small one built into the program.
    #[default]
    Embedded,
    /// A Hugging Face model folder: config.json, model*.safetensors, tokenizer.json, perhaps profile.toml.
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

/// Type of the weights in memory. As text: `auto`, `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DtypeChoice {
    /// That of the file. On the CPU arithmetic is f32 whatever the weights are.
    #[default]
    Auto,
    /// 32-bit floats.
    F32,
}

impl FromStr for DtypeChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "f32" => Ok(Self::F32),
            _ => Err(format!("dtype {text:?}: expected auto or f32")),
        }
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
}

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
        assert_eq!(("auto".parse(), "f32".parse()), (Ok(DtypeChoice::Auto), Ok(DtypeChoice::F32)));
        assert!("int8".parse::<DtypeChoice>().is_err());
    }
}
