//! For tests only: finding the folder of real files that lies beside the project.

use std::path::PathBuf;

/// The folder named by `TRAJSCOPE_SHARED` (default `../shared` beside the package), or `None`, said loudly, when it
/// is not there. Tests that need it return early then.
pub fn shared() -> Option<PathBuf> {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = std::env::var_os("TRAJSCOPE_SHARED").map_or_else(|| package.join("../shared"), PathBuf::from);
    if path.join("corpus").is_dir() {
        return Some(path);
    }
    #[expect(clippy::print_stderr, reason = "a skipped test must be seen in the test log")]
    {
        eprintln!("SKIPPED: {} has no corpus/; set TRAJSCOPE_SHARED to test on real files", path.display());
    }
    None
}
