//! Archives read as folders: zip (also one that is still being written) and tar.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::{DeflateDecoder, MultiGzDecoder};

use super::bytes::{self, GZIP};
use super::tree::Entry;

/// First bytes of a zip.
const ZIP: &[u8] = b"PK\x03\x04";
/// Largest tar archive unpacked: its files are held in memory.
const MAX_TAR: u64 = 1 << 30;
/// Largest file unpacked from an archive: beyond that it is taken for a bomb.
const MAX_FILE: u64 = 4 << 30;

/// A file inside an archive.
#[derive(Debug, Clone)]
pub enum Packed {
    /// Of a zip.
    Zip {
        /// The archive on disk.
        archive: Arc<Mutex<File>>,
        /// Offset of its packed bytes.
        start: u64,
        /// Their length.
        len: u64,
        /// Compression method.
        method: u16,
    },
    /// Of a tar: already unpacked.
    Memory(Arc<[u8]>),
}

impl Packed {
    /// Its bytes.
    ///
    /// # Errors
    /// One line why they cannot be unpacked.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Memory(bytes) => Ok(bytes.to_vec()),
            Self::Zip { archive, start, len, method } => {
                let mut packed = Vec::new();
                {
                    let mut file = archive.lock().unwrap_or_else(PoisonError::into_inner);
                    let read = file.seek(SeekFrom::Start(*start)).and_then(|_| {
                        let mut part = Read::by_ref(&mut *file).take(*len);
                        part.read_to_end(&mut packed)
                    });
                    read.map_err(|e| format!("cannot be read from the archive: {e}"))?;
                }
                inflate(packed, *method)
            }
        }
    }
}

fn inflate(packed: Vec<u8>, method: u16) -> Result<Vec<u8>, String> {
    match method {
        0 => Ok(packed),
        8 => {
            let mut out = Vec::new();
            let result = DeflateDecoder::new(Cursor::new(packed)).take(MAX_FILE).read_to_end(&mut out);
            // What could be unpacked is worth more than the error: the reader says where it is cut.
            match result {
                Err(e) if out.is_empty() => Err(format!("broken deflate stream: {e}")),
                _ => Ok(out),
            }
        }
        93 => bytes::unzstd(&packed, MAX_FILE).map(|(out, _)| out),
        other => Err(format!("compressed by method {other}, which is not read: unpack the archive first")),
    }
}

/// What an archive holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// Its files, with paths through it, in order of the paths; of files of one name the last.
    pub entries: Vec<Entry>,
    /// Why that is not everything.
    pub remark: Option<&'static str>,
}

/// The files of an archive; `None` if the file is no archive.
///
/// # Errors
/// One line why the archive cannot be read.
pub fn entries(path: &Path) -> Option<Result<Listing, String>> {
    let mut head = [0; 4];
    let mut file = File::open(path).ok()?;
    let n = file.read(&mut head).ok()?;
    let head = head.get(..n)?;
    if head == ZIP || head == b"PK\x05\x06" {
        return Some(zip_entries(path, file));
    }
    let mut block = Vec::new();
    file.rewind().ok()?;
    if head.starts_with(&GZIP) {
        MultiGzDecoder::new(BufReader::new(&mut file)).take(512).read_to_end(&mut block).ok()?;
    } else {
        Read::by_ref(&mut file).take(512).read_to_end(&mut block).ok()?;
    }
    if block.get(257..262) != Some(b"ustar") {
        return None;
    }
    file.rewind().ok()?;
    let reader: Box<dyn Read> = if head.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(BufReader::new(file)))
    } else {
        Box::new(BufReader::new(file))
    };
    Some(tar_entries(path, reader))
}

/// A name inside an archive as a path below it. A name that would lead out of it (ids of samples may hold `..`) is
/// kept inside: nothing is ever written by these paths, but they must not be lost either.
fn below(archive: &Path, name: &str) -> Option<PathBuf> {
    let inside: PathBuf = Path::new(name)
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            Component::ParentDir => Some(std::ffi::OsStr::new("(..)")),
            _ => None,
        })
        .collect();
    if inside.as_os_str().is_empty() { None } else { Some(archive.join(inside)) }
}

fn tar_entries(path: &Path, reader: Box<dyn Read>) -> Result<Listing, String> {
    let (mut found, mut unpacked, mut remark) = (Vec::new(), 0_u64, None);
    let mut archive = tar::Archive::new(reader);
    let entries = archive.entries().map_err(|e| format!("broken tar archive: {e}"))?;
    for entry in entries {
        // The files before the cut are all there.
        let Ok(mut entry) = entry else {
            remark = Some("the archive breaks off: what stands before the cut was read");
            break;
        };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = entry.path().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(inside) = below(path, &name) else { continue };
        unpacked = unpacked.saturating_add(entry.size());
        if unpacked > MAX_TAR {
            remark = Some("more than 1 GB is in it, of which only the beginning was read: unpack it first");
            break;
        }
        let mut bytes = Vec::new();
        let whole = entry.read_to_end(&mut bytes).is_ok() && bytes.len() as u64 == entry.size();
        // A file cut in the middle is kept as far as it goes; of one cut before its first byte there is nothing.
        if whole || !bytes.is_empty() {
            found.push(Entry::packed(inside, bytes.len() as u64, Packed::Memory(bytes.into())));
        }
        if !whole {
            remark = Some("the archive breaks off: what stands before the cut was read");
            break;
        }
    }
    Ok(Listing { entries: sorted(found), remark })
}

fn zip_entries(path: &Path, file: File) -> Result<Listing, String> {
    let listed = central_directory(&file).or_else(|| local_headers(&file));
    let listed = listed.ok_or_else(|| "a zip archive without a single readable file".to_owned())?;
    let archive = Arc::new(Mutex::new(file));
    let found = listed.into_iter().filter_map(|l| {
        let packed = Packed::Zip { archive: Arc::clone(&archive), start: l.start, len: l.packed, method: l.method };
        Some(Entry::packed(below(path, &l.name)?, l.len, packed))
    });
    Ok(Listing { entries: sorted(found.collect()), remark: None })
}

/// In order of the paths. An archive that was appended to holds a name twice: the later one counts.
fn sorted(mut found: Vec<Entry>) -> Vec<Entry> {
    // Stable: files of one name stay in the order they were written.
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let mut last: Vec<Entry> = Vec::with_capacity(found.len());
    for entry in found {
        match last.last_mut() {
            Some(before) if before.path == entry.path => *before = entry,
            _ => last.push(entry),
        }
    }
    last
}

struct Listed {
    name: String,
    start: u64,
    packed: u64,
    len: u64,
    method: u16,
}

fn central_directory(file: &File) -> Option<Vec<Listed>> {
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).ok()?;
    let mut listed = Vec::with_capacity(archive.len());
    for i in 0..archive.len() {
        let Ok(entry) = archive.by_index_raw(i) else { continue };
        if entry.is_dir() {
            continue;
        }
        let Some(start) = entry.data_start() else { continue };
        listed.push(Listed {
            name: String::from_utf8_lossy(entry.name_raw()).into_owned(),
            start,
            packed: entry.compressed_size(),
            len: entry.size(),
            method: method(entry.compression()),
        });
    }
    Some(listed)
}

#[expect(deprecated, reason = "the only way to learn the number of a method this build of the crate leaves out")]
fn method(method: zip::CompressionMethod) -> u16 {
    match method {
        zip::CompressionMethod::Stored => 0,
        zip::CompressionMethod::Unsupported(number) => number,
        _ => u16::MAX,
    }
}

/// The files of a zip whose central directory is missing because it is still being written: walks the local headers.
fn local_headers(file: &File) -> Option<Vec<Listed>> {
    let mut reader = BufReader::new(file);
    let mut listed = Vec::new();
    let mut at = 0_u64;
    loop {
        let mut head = [0_u8; 30];
        if reader.seek(SeekFrom::Start(at)).is_err() || reader.read_exact(&mut head).is_err() || !head.starts_with(ZIP)
        {
            break;
        }
        let number = |from: usize, bytes: usize| le(head.get(from..from + bytes).unwrap_or_default());
        let short = |from: usize| number(from, 2) as usize;
        let (mut packed, mut len) = (number(18, 4), number(22, 4));
        let mut name = vec![0; short(26)];
        let mut extra = vec![0; short(28)];
        if reader.read_exact(&mut name).is_err() || reader.read_exact(&mut extra).is_err() {
            break;
        }
        if packed == u64::from(u32::MAX) {
            let Some(sizes) = zip64(&extra) else { break };
            (len, packed) = sizes;
        }
        let start = at + 30 + name.len() as u64 + extra.len() as u64;
        // Written in one go, the sizes stand behind the data.
        let mut behind = 0;
        if short(6) & 8 != 0 && packed == 0 {
            let Some(found) = descriptor(&mut reader, start) else { break };
            (packed, len, behind) = (found.0, found.1, 16);
        }
        listed.push(Listed {
            name: String::from_utf8_lossy(&name).into_owned(),
            start,
            packed,
            len,
            method: short(8) as u16,
        });
        at = start.saturating_add(packed).saturating_add(behind);
    }
    listed.retain(|l| !l.name.ends_with('/'));
    if listed.is_empty() { None } else { Some(listed) }
}

/// Packed and unpacked size of the data at `start`, from the descriptor behind it: the first that says how far away
/// it is itself.
fn descriptor(reader: &mut BufReader<&File>, start: u64) -> Option<(u64, u64)> {
    const WINDOW: u64 = 1 << 16;
    const LEN: usize = 16;
    let mut from = start;
    loop {
        reader.seek(SeekFrom::Start(from)).ok()?;
        let mut window = Vec::new();
        Read::by_ref(reader).take(WINDOW).read_to_end(&mut window).ok()?;
        for (at, bytes) in window.windows(LEN).enumerate() {
            let distance = from - start + at as u64;
            if bytes.starts_with(b"PK\x07\x08") && le(bytes.get(8..12)?) == distance {
                return Some((distance, le(bytes.get(12..16)?)));
            }
        }
        if (window.len() as u64) < WINDOW {
            return None;
        }
        from += WINDOW - LEN as u64 + 1;
    }
}

/// Unpacked and packed size from the zip64 field of a local header.
fn zip64(extra: &[u8]) -> Option<(u64, u64)> {
    let mut rest = extra;
    while let Some((head, tail)) = rest.split_at_checked(4) {
        let (id, size) = head.split_at_checked(2)?;
        let (field, after) = tail.split_at_checked(le(size) as usize)?;
        if le(id) == 1 {
            return Some((le(field.get(0..8)?), le(field.get(8..16)?)));
        }
        rest = after;
    }
    None
}

/// A little-endian number of up to eight bytes.
fn le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests;
