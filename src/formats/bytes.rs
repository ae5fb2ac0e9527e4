//! From a path to decompressed bytes, or a sentence why there are none.

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
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// First bytes of containers that are known and not read.
const CONTAINERS: [(&[u8], &str); 8] = [
    (b"PK\x03\x04", "a ZIP archive (an Inspect .eval log, or a zipped folder): unpack it first"),
    (b"\x28\xB5\x2F\xFD", "zstd-compressed: unpack it first with `zstd -d`"),
    (b"PAR1", "a Parquet file: convert it to JSON lines first"),
    (b"version https://git-lfs.github.com/spec", "a Git-LFS pointer, not the data: run `git lfs pull`"),
    (b"SQLite format 3\0", "a SQLite database: not read"),
    (b"\x89PNG", "a PNG image"),
    (b"%PDF", "a PDF document"),
    (b"\x7FELF", "a program"),
];

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
    if !bytes.starts_with(&GZIP) {
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
    refuse(&content.bytes)?;
    Ok(content)
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
