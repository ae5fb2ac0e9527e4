//! From a path to decompressed bytes, or a sentence why there are none.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::trajectory::{Diagnostic, Severity};

/// Largest size a gzip file may unpack to: beyond that it is taken for a bomb.
const MAX_UNPACKED: u64 = 8 << 30;

/// A file's bytes, decompressed where that was possible.
#[derive(Debug, Default)]
pub struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What happened on the way.
    pub diagnostics: Vec<Diagnostic>,
}

/// Bytes looked at before a file is read whole.
const HEAD: u64 = 4096;
/// First bytes of gzip.
pub const GZIP: [u8; 2] = [0x1F, 0x8B];

/// First bytes of zstd.
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// First bytes of containers that are known and not read.
const CONTAINERS: [(&[u8], &str); 7] = [
    (b"PK\x03\x04", "a zip archive inside another file: unpack it first"),
    (b"PAR1", "a Parquet file: convert it to JSON lines first"),
    (b"version https://git-lfs.github.com/spec", "a Git-LFS pointer, not the data: run `git lfs pull`"),
    (b"SQLite format 3\0", SQLITE),
    (b"\x89PNG", "a PNG image"),
    (b"%PDF", "a PDF document"),
    (b"\x7FELF", "a program"),
];

/// What to do about a database.
const SQLITE: &str = "a SQLite database, which is not read: let the agent export its sessions as JSON (`opencode \
                      export`, `goose session export`, …)";

/// Reads a file and unpacks gzip.
///
/// # Errors
/// One line saying what the file is instead, or why it cannot be read.
pub fn read(path: &Path) -> Result<Content, String> {
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(|e| format!("cannot be opened: {}", reason(&e)))?;
    let unreadable = |e| format!("cannot be read: {}", reason(&e));
    // A look at the beginning first: model weights and images are not worth reading whole.
    file.by_ref().take(HEAD).read_to_end(&mut bytes).map_err(unreadable)?;
    if !bytes.starts_with(&GZIP) && !bytes.starts_with(&ZSTD) {
        refuse(&bytes)?;
    }
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    unpack(bytes)
}

/// Unpacks gzip, and refuses what is neither text nor gzip.
///
/// # Errors
/// One line saying what the bytes are instead.
pub fn unpack(bytes: Vec<u8>) -> Result<Content, String> {
    let mut content = Content { bytes, diagnostics: Vec::new() };
    if content.bytes.starts_with(&GZIP) {
        content = gunzip(&content.bytes)?;
        if content.bytes.starts_with(&GZIP) {
            return Err("gzip inside gzip: unpack it first".to_owned());
        }
    }
    if content.bytes.starts_with(&ZSTD) {
        let (bytes, cut) = unzstd(&content.bytes, MAX_UNPACKED)?;
        content.bytes = bytes;
        if let Some(why) = cut {
            let text = format!("the zstd stream breaks off ({why}); what could be unpacked was read");
            let at = content.bytes.len() as u64;
            content.diagnostics.push(Diagnostic::new(Severity::Warning, "zstd.cut", text).at_byte(at));
        }
    }
    refuse(&content.bytes)?;
    Ok(content)
}

/// Unpacks zstd, also in several frames; what breaks off gives what there is and the reason.
///
/// # Errors
/// When nothing could be unpacked, or more than `limit` bytes.
pub fn unzstd(packed: &[u8], limit: u64) -> Result<(Vec<u8>, Option<String>), String> {
    let mut out = Vec::new();
    let mut rest = packed;
    let mut cut = None;
    while rest.len() >= 4 && cut.is_none() {
        // Skippable frames hold nothing: magic 0x184D2A5?, then the length.
        if let Some((head, tail)) = rest.split_at_checked(8)
            && head.first().is_some_and(|b| b & 0xF0 == 0x50)
            && head.get(1..4) == Some(&[0x2A, 0x4D, 0x18])
        {
            let len = head.get(4..8).and_then(|l| l.try_into().ok()).map_or(0, u32::from_le_bytes);
            rest = tail.get(len as usize..).unwrap_or_default();
            continue;
        }
        let mut decoder = match ruzstd::decoding::StreamingDecoder::new(&mut rest) {
            Ok(decoder) => decoder,
            Err(e) if out.is_empty() => return Err(format!("broken zstd: {e}")),
            Err(e) => {
                cut = Some(e.to_string());
                break;
            }
        };
        let room = limit.saturating_sub(out.len() as u64);
        match decoder.by_ref().take(room).read_to_end(&mut out) {
            Ok(_) if out.len() as u64 >= limit => return Err(format!("unpacks to more than {limit} bytes: not read")),
            Ok(_) => {}
            Err(e) if out.is_empty() => return Err(format!("broken zstd: {e}")),
            Err(e) => cut = Some(e.to_string()),
        }
    }
    Ok((out, cut))
}

/// What by its first bytes is no text.
fn refuse(bytes: &[u8]) -> Result<(), String> {
    if let Some((_, what)) = CONTAINERS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err((*what).to_owned());
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Err("a tar archive: unpack it first with `tar xf`".to_owned());
    }
    if looks_binary(bytes) { Err("binary data, not text".to_owned()) } else { Ok(()) }
}

fn gunzip(packed: &[u8]) -> Result<Content, String> {
    let mut content = Content::default();
    let result = MultiGzDecoder::new(Cursor::new(packed)).take(MAX_UNPACKED).read_to_end(&mut content.bytes);
    match result {
        Ok(_) if content.bytes.len() as u64 >= MAX_UNPACKED => Err("unpacks to more than 8 GiB: not read".to_owned()),
        Ok(_) => Ok(content),
        Err(e) if content.bytes.is_empty() => Err(format!("broken gzip: {}", reason(&e))),
        Err(e) => {
            let text = format!("the gzip stream breaks off ({}); what could be unpacked was read", reason(&e));
            let at = content.bytes.len() as u64;
            content.diagnostics.push(Diagnostic::new(Severity::Warning, "gzip.cut", text).at_byte(at));
            Ok(content)
        }
    }
}

/// Bytes as text, what is not UTF-8 replaced. Checked as a whole first, which the standard library's own is slow at.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_broken| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Text may hold stray control bytes and runs of NUL; binary data is full of them.
fn looks_binary(bytes: &[u8]) -> bool {
    let head = bytes.get(..4096.min(bytes.len())).unwrap_or_default();
    let text = head.iter().filter(|b| **b != 0).count();
    let odd = head.iter().filter(|b| matches!(**b, 1..=8 | 14..=26 | 28..=31)).count();
    let record = head.iter().any(|b| matches!(b, b'{' | b'['));
    odd * 20 > text || (text == 0 && !bytes.is_empty()) || (text * 2 < head.len() && !record)
}

/// The part of an I/O error that a person needs.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string().lines().next().unwrap_or("unknown error").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_is_unpacked_also_in_several_members() {
        let mut packed = gzip(b"{\"a\":1}\n");
        packed.extend(gzip(b"{\"a\":2}\n"));
        assert_eq!(unpack(packed).unwrap().bytes, b"{\"a\":1}\n{\"a\":2}\n");
    }

    #[test]
    fn cut_gzip_gives_what_there_is() {
        let text: Vec<u8> = (0..20_000u32)
            .flat_map(|i| format!("{{\"a\":{}}}\n", i.wrapping_mul(2_654_435_761)).into_bytes())
            .collect();
        let packed = gzip(&text);
        let content = unpack(packed[..packed.len() / 2].to_vec()).unwrap();
        assert!(text.starts_with(&content.bytes) && !content.bytes.is_empty());
        assert_eq!(content.diagnostics[0].code, "gzip.cut");
        assert!(unpack(b"\x1F\x8Bnot gzip".to_vec()).unwrap_err().starts_with("broken gzip"));
    }

    #[test]
    fn containers_are_named() {
        for (magic, what) in CONTAINERS {
            let mut bytes = magic.to_vec();
            bytes.extend(b" and more");
            assert_eq!(unpack(bytes).unwrap_err(), what);
        }
        assert_eq!(unpack(vec![0, 1, 2, 3, 4, 5, 6]).unwrap_err(), "binary data, not text");
        assert_eq!(unpack(vec![0; 100]).unwrap_err(), "binary data, not text");
        assert!(unpack([&[0; 400], &b"{\"a\": 1}"[..]].concat()).is_ok());
        assert!(unpack(Vec::new()).is_ok());
    }

    #[test]
    fn a_missing_file_is_one_line() {
        assert_eq!(read(Path::new("/nowhere/at/all")).unwrap_err(), "cannot be opened: no such file");
    }
}
