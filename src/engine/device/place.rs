//! Where to run: finds the wanted device, and what memory it has free.

use candle_core::{Device, Error};

use crate::engine::DeviceChoice;
use crate::engine::error::EngineError;
use crate::engine::fit::gigabytes;

/// Where a model runs.
#[derive(Debug, Clone)]
pub(in crate::engine) enum Place {
    /// This project's own forward pass.
    Cpu,
    /// Candle's operations on this device.
    Candle(Device, String),
}

/// Finds the wanted device. With a note if the automatic choice had to fall back.
pub(in crate::engine) fn find(choice: DeviceChoice) -> Result<(Place, Option<String>), EngineError> {
    match choice {
        DeviceChoice::Cpu => Ok((Place::Cpu, None)),
        DeviceChoice::Cuda(number) => {
            let name = choice.to_string();
            if !cfg!(feature = "cuda") {
                return Err(not_built(&name, "CUDA", "cuda"));
            }
            let device = Device::new_cuda(number).map_err(|e| not_there(&name, &e))?;
            Ok((Place::Candle(device, name), None))
        }
        DeviceChoice::Metal => {
            if !cfg!(feature = "metal") {
                return Err(not_built("metal", "Metal", "metal"));
            }
            let device = Device::new_metal(0).map_err(|e| not_there("metal", &e))?;
            Ok((Place::Candle(device, "metal:0".into()), None))
        }
        DeviceChoice::Auto => {
            let wanted = if cfg!(feature = "cuda") {
                DeviceChoice::Cuda(0)
            } else if cfg!(feature = "metal") {
                DeviceChoice::Metal
            } else {
                return Ok((Place::Cpu, None));
            };
            match find(wanted) {
                Ok(found) => Ok(found),
                Err(EngineError::Device(why)) => Ok((Place::Cpu, Some(fallen_back(&why)))),
                Err(other) => Err(other),
            }
        }
    }
}

/// What is said when the automatic choice could not have the device it wanted.
pub(in crate::engine) fn fallen_back(why: &str) -> String {
    format!("on the CPU, because {why}")
}

/// Every device this program can run on, with what it is called and has free, or why it is not there.
pub(in crate::engine) fn devices() -> Vec<String> {
    let mut lines = vec!["cpu".to_string()];
    let built = [(cfg!(feature = "cuda"), DeviceChoice::Cuda(0)), (cfg!(feature = "metal"), DeviceChoice::Metal)];
    for (_, choice) in built.into_iter().filter(|(built, _)| *built) {
        lines.push(match find(choice) {
            Ok((Place::Candle(device, name), _)) => described(&device, name),
            Ok((Place::Cpu, _)) => choice.to_string(),
            Err(EngineError::Device(why)) => why,
            Err(other) => other.to_string(),
        });
    }
    lines
}

fn described(device: &Device, name: String) -> String {
    let free = free_memory(device).map(|free| format!("{} free", gigabytes(free)));
    let bf16 = (!has_bf16(device)).then(|| "no bf16: computes in f32".to_string());
    [Some(name), card(device), free, bf16].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn not_built(name: &str, kind: &str, feature: &str) -> EngineError {
    EngineError::Device(format!(
        "{name}: this trajscope was built without {kind}; build with `--features {feature}`, or use `--device cpu`"
    ))
}

fn not_there(name: &str, error: &Error) -> EngineError {
    EngineError::Device(format!("{name}: not available ({}); use `--device cpu`", one_line(error)))
}

/// The first line of what candle says.
pub(super) fn one_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or("unknown error").trim().to_string()
}

/// Bytes that are free on a device; `None` = nobody says.
pub(super) fn free_memory(device: &Device) -> Option<u64> {
    match device {
        Device::Cpu => None,
        #[cfg(feature = "cuda")]
        Device::Cuda(cuda) => cuda.cuda_stream().context().mem_get_info().ok().map(|(free, _)| free as u64),
        #[cfg(feature = "metal")]
        Device::Metal(metal) => {
            // The part of main memory that Metal advises to stay below, less what this program has already.
            let device = metal.metal_device();
            Some(device.recommended_max_working_set_size().saturating_sub(device.current_allocated_size()) as u64)
        }
        _ => None,
    }
}

/// Has the device arithmetic in bf16?
pub(super) fn has_bf16(device: &Device) -> bool {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(cuda) => cuda.cuda_stream().context().compute_capability().is_ok_and(|(major, _)| major >= 8),
        _ => true,
    }
}

/// What the maker calls the device.
pub(super) fn card(device: &Device) -> Option<String> {
    match device {
        Device::Cpu => None,
        #[cfg(feature = "cuda")]
        Device::Cuda(cuda) => cuda.cuda_stream().context().name().ok(),
        #[cfg(feature = "metal")]
        Device::Metal(metal) => Some(metal.metal_device().architecture_name()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_not_built_in_is_refused_with_a_way_out() {
        if !cfg!(feature = "cuda") {
            let said = find(DeviceChoice::Cuda(1)).unwrap_err().to_string();
            assert!(
                said.contains("cuda:1") && said.contains("--features cuda") && said.contains("--device cpu"),
                "{said}"
            );
        }
        if !cfg!(feature = "metal") {
            assert!(find(DeviceChoice::Metal).unwrap_err().to_string().contains("--features metal"));
        }
        assert!(matches!(find(DeviceChoice::Cpu), Ok((Place::Cpu, None))));
        assert!(find(DeviceChoice::Auto).is_ok(), "the automatic choice always finds something");
        assert_eq!(free_memory(&Device::Cpu), None);
        assert_eq!(devices()[0], "cpu");
        assert_eq!(devices().len(), 1 + usize::from(cfg!(feature = "cuda")) + usize::from(cfg!(feature = "metal")));
        assert_eq!(described(&Device::Cpu, "candle".into()), "candle");
    }
}
