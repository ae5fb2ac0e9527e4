//! The log of the terminal application: a file, because the screen is taken.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

/// A log that has grown beyond this is started anew.
const MAX_LOG: u64 = 4 << 20;

/// Sends what is traced to `path`, at the level of `TRAJSCOPE_LOG` (`info` if unset). Does nothing if tracing already
/// goes somewhere.
///
/// # Errors
/// The file cannot be made or written to.
pub(super) fn start(path: &Path) -> io::Result<()> {
    let file = open(path)?;
    let filter = EnvFilter::try_from_env("TRAJSCOPE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(Mutex::new(file)).finish();
    if tracing::subscriber::set_global_default(subscriber).is_err() {
        tracing::debug!("tracing was set up before; the log stays where it is");
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let fresh = fs::metadata(path).is_ok_and(|old| old.len() > MAX_LOG);
    OpenOptions::new().create(true).append(!fresh).write(true).truncate(fresh).open(path)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_log_is_continued_until_it_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/trajscope.log");
        open(&path).unwrap().write_all(b"one\n").unwrap();
        open(&path).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        fs::write(&path, vec![b'x'; MAX_LOG as usize + 1]).unwrap();
        open(&path).unwrap().write_all(b"new\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(open(&file.join("trajscope.log")).is_err());
    }
}
