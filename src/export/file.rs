//! Writing a file so that it is either the old one or the whole new one.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why a file was not written. Whatever stood there before is untouched.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It exists and nobody said to replace it.
    #[error("{0}: exists already; nothing written (say --force, or answer y, to replace it)")]
    Exists(PathBuf),
    /// The path has no file name, or its folder does not exist.
    #[error("{path}: cannot write here: {reason}")]
    Place {
        /// The path given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused.
    #[error("{path}: cannot write: {source}; nothing was replaced")]
    Io {
        /// The path given.
        path: PathBuf,
        /// Its words.
        source: io::Error,
    },
}

/// Writes `bytes` beside `path`, flushes them to the disk and renames over it. Refuses an existing file unless
/// `overwrite`; the refusal holds also against a file that appears while writing.
pub fn write_new(path: &Path, bytes: &[u8], overwrite: bool) -> Result<(), WriteError> {
    if path.file_name().is_none() {
        return Err(WriteError::Place { path: path.into(), reason: "it names no file".into() });
    }
    if path.is_dir() {
        return Err(WriteError::Place { path: path.into(), reason: "it is a folder; name a file in it".into() });
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let reason = format!("the folder {} does not exist; create it first", folder.display());
        return Err(WriteError::Place { path: path.into(), reason });
    }
    if !overwrite && path.exists() {
        return Err(WriteError::Exists(path.into()));
    }
    let io = |source| WriteError::Io { path: path.into(), source };
    let mut beside = tempfile::Builder::new().prefix(".trajscope-").tempfile_in(folder).map_err(io)?;
    beside.write_all(bytes).map_err(io)?;
    set_mode(beside.as_file(), path).map_err(io)?;
    beside.as_file().sync_all().map_err(io)?;
    let placed = if overwrite { beside.persist(path) } else { beside.persist_noclobber(path) };
    placed.map_err(|e| match e.error.kind() {
        io::ErrorKind::AlreadyExists => WriteError::Exists(path.into()),
        _ => io(e.error),
    })?;
    sync_folder(folder).map_err(io)
}

/// A replaced file keeps its mode; a new one gets the usual one instead of the temporary file's 0600.
#[cfg(unix)]
fn set_mode(file: &fs::File, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).map_or(0o644, |m| m.permissions().mode() & 0o777);
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_file: &fs::File, _path: &Path) -> io::Result<()> {
    Ok(())
}

/// The rename itself must reach the disk too.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_overwrites_without_being_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("preds.jsonl");
        write_new(&path, b"one", false).unwrap();
        let err = write_new(&path, b"two", false).unwrap_err();
        assert!(matches!(err, WriteError::Exists(_)), "{err}");
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_new(&path, b"two", true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        // Nothing is left beside it.
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn says_what_is_wrong_with_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let missing = write_new(&dir.path().join("no/such/preds.json"), b"", false).unwrap_err().to_string();
        assert!(missing.contains("does not exist"), "{missing}");
        let folder = write_new(dir.path(), b"", true).unwrap_err().to_string();
        assert!(folder.contains("is a folder"), "{folder}");
        assert!(dir.path().is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn keeps_the_mode_of_a_replaced_file() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_new(&path, b"y", true).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
