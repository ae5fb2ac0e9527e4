//! Going back to the file: the steps of a trajectory that was let go, and the raw record of a step.

use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::document::Document;
use super::document::store::read_at;
use super::json::Value;
use super::load::{self, LoadedFile};
use super::table::{Input, Reader, formats};
use super::tree::Entry;
use super::walk::{self, Unit};
use super::{json, skim};
use crate::trajectory::{Body, ByteSpan, RawPlace, SharedTrajectory, Trajectory};

/// First bytes of files whose spans count in what they unpack to.
const PACKED: [&[u8]; 2] = [&[0x1F, 0x8B], &[0x28, 0xB5, 0x2F, 0xFD]];

/// The trajectory with its steps: itself if they are in memory, else read again from its file.
///
/// # Errors
/// One line: the file is gone, was changed, or cannot be read.
pub fn open(trajectory: &SharedTrajectory) -> Result<SharedTrajectory, String> {
    if trajectory.is_whole() {
        return Ok(Arc::clone(trajectory));
    }
    let source = &trajectory.source;
    let mut whole = match row(trajectory) {
        Some(row) => row,
        None => load::in_pool(|| from_unit(trajectory)).ok_or_else(|| {
            let path = source.path.display();
            format!("{path}: record {} is not there any more (was the file changed?): open it again", source.record)
        })?,
    };
    whole.source = source.clone();
    if trajectory.body != Body::Found {
        whole.recall(trajectory);
    }
    // What other files said of it when it was first read.
    whole.task = whole.task.or_else(|| trajectory.task.clone());
    whole.outcome = trajectory.outcome;
    Ok(Arc::new(whole))
}

/// Reads one row of JSON lines by itself; `None` if the trajectory is not such a row.
fn row(trajectory: &Trajectory) -> Option<Trajectory> {
    let source = &trajectory.source;
    let format = formats().find(|f| f.id == trajectory.format)?;
    let Reader::File { decode, .. } = format.reader else { return None };
    let file = File::open(&source.path).ok()?;
    let part = source.span.len > 0 && source.span.len < file.metadata().ok()?.len();
    if !part || is_packed(&file) {
        return None;
    }
    let bytes = span(&file, source.span)?;
    let document = Document::lines(&bytes);
    let mut decoded = decode(&Input { path: &source.path, document: &document, format: format.id });
    load::finish(&source.path, 0, false, &mut decoded);
    let only = decoded.trajectories.len() == 1;
    decoded.trajectories.pop().filter(|t| only && t.instance_id == trajectory.instance_id)
}

fn is_packed(file: &File) -> bool {
    let mut head = [0; 4];
    read_at(file, &mut head, 0).is_ok() && PACKED.iter().any(|magic| head.starts_with(magic))
}

fn span(file: &File, span: ByteSpan) -> Option<Vec<u8>> {
    let end = span.start.checked_add(span.len)?;
    if end > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(span.len).ok()?];
    read_at(file, &mut bytes, span.start).ok()?;
    Some(bytes)
}

/// Reads the whole file or folder again and picks the trajectory.
fn from_unit(trajectory: &Trajectory) -> Option<Trajectory> {
    let key = trajectory.key();
    let units = walk::units(std::slice::from_ref(&key.path));
    let file: LoadedFile = units.iter().find_map(|unit| match unit {
        Unit::File(entry) if entry.path == key.path => Some(load::load_entry(entry)),
        Unit::Folder(unit) if unit.path == key.path => Some(load::load_folder(unit, Some(key.record), &|_| {})),
        _ => None,
    })?;
    let found = file.trajectories.into_iter().find(|t| t.key() == key)?;
    Some(Arc::unwrap_or_clone(found))
}

/// The raw record of a step, exactly as its file holds it (unpacked), and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The file; for a file in an archive the path goes through the archive's.
    pub file: std::path::PathBuf,
    /// Its bytes in the file (unpacked).
    pub span: ByteSpan,
    /// The bytes, invalid UTF-8 replaced.
    pub text: String,
}

/// The raw record of a step of a trajectory.
///
/// # Errors
/// One line: the file is gone or was changed, or the format does not tell where its steps stand.
pub fn raw(trajectory: &Trajectory, place: &RawPlace) -> Result<Raw, String> {
    let path: &Path = place.file.as_deref().unwrap_or(&trajectory.source.path);
    let record = match (place.span.len > 0, place.file.is_some()) {
        (true, _) => place.span,
        // Another file of a folder: all of it.
        (false, true) => ByteSpan::default(),
        (false, false) => trajectory.source.span,
    };
    if record.len == 0 && place.pointer.is_empty() && place.file.is_none() {
        return Err("the decoder of this format does not tell where this step stands".to_owned());
    }
    let bytes = record_bytes(path, record)?;
    let gone = || format!("{}: the record is not there any more: open the file again", path.display());
    let (part, mut text) = find(&bytes, &place.pointer).ok_or_else(gone)?;
    for more in &place.also {
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(&record_bytes(path, *more)?));
    }
    let span = ByteSpan { start: record.start + part.start as u64, len: part.len() as u64 };
    Ok(Raw { file: path.to_owned(), span, text })
}

/// The value at a pointer, and its bytes; where the pointer leads through a string that holds JSON, the bytes are the
/// string's and the value is the one inside.
fn find(bytes: &[u8], pointer: &str) -> Option<(Range<usize>, String)> {
    if pointer.is_empty() {
        // Also where it is broken or no JSON at all.
        return Some((0..bytes.len(), String::from_utf8_lossy(bytes).into_owned()));
    }
    if let Some(part) = skim::pointer(bytes, pointer) {
        let text = String::from_utf8_lossy(bytes.get(part.clone())?).into_owned();
        return Some((part, text));
    }
    let mut through = pointer.match_indices('/').skip(1).map(|(at, _)| pointer.split_at(at));
    through.find_map(|(outer, inner)| {
        let part = skim::pointer(bytes, outer)?;
        let Ok(Value::String(held)) = json::parse(bytes.get(part.clone())?).map(|p| p.value) else { return None };
        find(held.as_bytes(), inner).map(|(_, text)| (part, text))
    })
}

/// The bytes of a record; an empty span is the whole file.
fn record_bytes(path: &Path, record: ByteSpan) -> Result<Vec<u8>, String> {
    if let Ok(file) = File::open(path)
        && record.len > 0
        && !is_packed(&file)
    {
        return span(&file, record).ok_or_else(|| format!("{}: shorter than it was: open it again", path.display()));
    }
    let units = walk::units(&[path.to_owned()]);
    let entry = units.iter().find_map(|unit| match unit {
        Unit::File(entry) if entry.path == path => Some(Cow::Borrowed(entry)),
        Unit::Folder(unit) => unit.members.iter().find(|m| m.path == path).map(Cow::Borrowed),
        _ => None,
    });
    let entry: Cow<'_, Entry> = entry.ok_or_else(|| format!("{}: not there any more", path.display()))?;
    let content = entry.read().map_err(|why| format!("{}: {why}", path.display()))?;
    if record.len == 0 {
        return Ok(content.bytes);
    }
    let range = record.start as usize..(record.start + record.len) as usize;
    let part = content.bytes.get(range).map(<[u8]>::to_vec);
    part.ok_or_else(|| format!("{}: shorter than it was: open it again", path.display()))
}
