//! The forward pass in candle's operations: for graphics processors.
//!
//! It computes what `cpu` computes, chunk by chunk with a reserved cache. Matrix products and the cache are in the
//! type of the weights; the residual stream, norms, rotations, softmax and heads are f32 whatever that is, because
//! candle's own half-precision versions of them round where PyTorch does not (its RMS norm rounds the divisor to the
//! type, its SiLU every step). On the CPU this path is only run by tests, which hold it to the same references.

mod attention;
mod bench;
mod embedding;
mod layer;
mod network;
mod place;
mod room;
mod upload;

pub use bench::{DeviceBench, DeviceSpeed, RandomShape, bench_random};
pub(super) use network::{Branch, DeviceLinear, DeviceModel};
pub(super) use place::{Place, devices, fallen_back, find};
pub(super) use room::lacks_room;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
