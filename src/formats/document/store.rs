//! A document's bytes: in memory, or read from a file piece by piece.
//!
//! Nothing is mapped into memory: a file that an agent cuts while it is read must not kill the program.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};

use super::super::buffer::Buffer;

/// Where a document's bytes are.
#[derive(Debug)]
pub enum Store<'a> {
    /// In memory.
    Memory(&'a [u8]),
    /// In a file.
    File(&'a File),
}

/// Bytes of a document.
#[derive(Debug)]
pub enum Bytes<'a> {
    /// Those in memory.
    Given(&'a [u8]),
    /// Read from the file.
    Read(Buffer),
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Given(bytes) => bytes,
            Self::Read(bytes) => bytes,
        }
    }
}

impl Store<'_> {
    /// The bytes of a range.
    ///
    /// # Errors
    /// One line: the range is not there (any more), or the file cannot be read.
    pub fn get(&self, range: Range<usize>) -> Result<Bytes<'_>, String> {
        match self {
            Self::Memory(bytes) => bytes.get(range).map(Bytes::Given).ok_or_else(|| "the file is shorter".to_owned()),
            Self::File(file) => {
                let mut bytes = Buffer::of(range.len());
                read_at(file, &mut bytes, range.start as u64).map_err(|e| e.to_string())?;
                Ok(Bytes::Read(bytes))
            }
        }
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.metadata().map_or(0, |m| m.len()),
        }
    }
}

/// Fills `bytes` from a place in a file, without moving the place that others read on from.
///
/// # Errors
/// The file ends earlier, or cannot be read.
#[cfg(unix)]
pub fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Fills `bytes` from a place in a file.
///
/// # Errors
/// The file ends earlier, or cannot be read.
#[cfg(windows)]
pub fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = bytes.get_mut(n..).unwrap_or_default();
        at += n as u64;
    }
    Ok(())
}
