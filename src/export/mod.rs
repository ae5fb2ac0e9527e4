//! Writers of what leaves the program: predictions for SWE-bench, files written so that nothing is ever lost.

mod file;
mod predictions;

pub use file::{WriteError, write_new};
pub use predictions::{Chosen, Left, Shape, chosen, to_bytes};
