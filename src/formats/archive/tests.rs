use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::*;

/// One file of a zip, written by hand: name, bytes as stored, length unpacked, method.
struct Part<'a> {
    name: &'a str,
    packed: &'a [u8],
    len: usize,
    method: u16,
}

fn stored<'a>(name: &'a str, bytes: &'a [u8]) -> Part<'a> {
    Part { name, packed: bytes, len: bytes.len(), method: 0 }
}

fn le16(n: usize) -> [u8; 2] {
    u16::try_from(n).unwrap().to_le_bytes()
}

fn le32(n: usize) -> [u8; 4] {
    u32::try_from(n).unwrap().to_le_bytes()
}

/// A local header with its data. `zip64` moves the sizes to an extra field; `late` leaves them out.
fn local(part: &Part<'_>, zip64: bool, late: bool) -> Vec<u8> {
    let mut extra = Vec::new();
    if zip64 {
        extra.extend([7, 0, 2, 0, 1, 1]);
        extra.extend([1, 0, 16, 0]);
        extra.extend((part.len as u64).to_le_bytes());
        extra.extend((part.packed.len() as u64).to_le_bytes());
    }
    let sizes = match (zip64, late) {
        (true, _) => [[0xFF; 4]; 2],
        (_, true) => [[0; 4]; 2],
        _ => [le32(part.packed.len()), le32(part.len)],
    };
    let mut out = b"PK\x03\x04".to_vec();
    out.extend(le16(20));
    out.extend(le16(if late { 8 } else { 0 }));
    out.extend(part.method.to_le_bytes());
    out.extend([0; 8]);
    out.extend(sizes.concat());
    out.extend(le16(part.name.len()));
    out.extend(le16(extra.len()));
    out.extend(part.name.as_bytes());
    out.extend(extra);
    out.extend(part.packed);
    if late {
        out.extend(b"PK\x07\x08\0\0\0\0");
        out.extend([le32(part.packed.len()), le32(part.len)].concat());
    }
    out
}

/// A whole zip, or one without its central directory.
fn zip(parts: &[Part<'_>], closed: bool) -> Vec<u8> {
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for part in parts {
        central.extend(b"PK\x01\x02\x14\0\x14\0\0\0");
        central.extend(part.method.to_le_bytes());
        central.extend([0; 8]);
        central.extend([le32(part.packed.len()), le32(part.len)].concat());
        central.extend(le16(part.name.len()));
        central.extend([0; 12]);
        central.extend(le32(out.len()));
        central.extend(part.name.as_bytes());
        out.extend(local(part, false, false));
    }
    if closed {
        let start = out.len();
        out.extend(&central);
        out.extend(b"PK\x05\x06\0\0\0\0");
        out.extend([le16(parts.len()), le16(parts.len())].concat());
        out.extend([le32(central.len()), le32(start)].concat());
        out.extend([0; 2]);
    }
    out
}

fn open(bytes: &[u8]) -> (tempfile::TempDir, Result<Vec<Entry>, String>) {
    let (dir, found) = listed(bytes);
    (dir, found.map(|listing| listing.entries))
}

fn listed(bytes: &[u8]) -> (tempfile::TempDir, Result<Listing, String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.eval");
    fs::write(&path, bytes).unwrap();
    let found = entries(&path).unwrap();
    (dir, found)
}

/// Names below the archive with what is in them.
fn contents(found: &[Entry]) -> Vec<(String, String)> {
    let name = |e: &Entry| {
        let parts: Vec<String> = e.path.iter().map(|c| c.to_string_lossy().into_owned()).collect();
        let at = parts.iter().position(|c| c.starts_with("log.")).unwrap();
        parts[at + 1..].join("/")
    };
    let text = |e: &Entry| e.read().map_or_else(|e| e, |c| String::from_utf8_lossy(&c.bytes).into_owned());
    found.iter().map(|e| (name(e), text(e))).collect()
}

fn pairs<'a>(all: &[(&'a str, &'a str)]) -> Vec<(String, String)> {
    all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

fn deflated(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A zstd frame of one raw block.
fn zstd(text: &[u8]) -> Vec<u8> {
    let len = u8::try_from(text.len()).unwrap();
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0x20, len];
    out.extend(((u32::from(len) << 3) | 1).to_le_bytes().iter().take(3));
    out.extend(text);
    out
}

#[test]
fn a_zip_is_a_folder_whatever_its_files_are_packed_with() {
    let (packed, framed) = (deflated(b"deflated"), [zstd(b"two "), zstd(b"frames")].concat());
    let parts = [
        stored("b.json", b"plain"),
        Part { name: "a/x.json", packed: &packed, len: 8, method: 8 },
        Part { name: "a/z.json", packed: &framed, len: 10, method: 93 },
        Part { name: "odd.json", packed: b"?", len: 1, method: 12 },
        stored("folder/", b""),
    ];
    let unread = "compressed by method 12, which is not read: unpack the archive first";
    let expected =
        pairs(&[("a/x.json", "deflated"), ("a/z.json", "two frames"), ("b.json", "plain"), ("odd.json", unread)]);
    for closed in [true, false] {
        let (_dir, found) = open(&zip(&parts, closed));
        assert_eq!(contents(&found.unwrap()), expected, "closed: {closed}");
    }
}

#[test]
fn a_zip_that_is_still_being_written_gives_what_is_there() {
    let packed =
        deflated(b"{\"messages\": [1, 2, 3], \"long\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabcdefghijklmnopq\"}");
    let parts = [stored("one.json", b"1"), Part { name: "two.json", packed: &packed, len: 99, method: 8 }];
    let whole = zip(&parts, false);
    let (_dir, found) = open(&whole[..whole.len() - 10]);
    let found = contents(&found.unwrap());
    assert_eq!(found[0], ("one.json".to_owned(), "1".to_owned()));
    assert!(found[1].1.starts_with("{\"messages\""), "the beginning of what is cut: {}", found[1].1);
    let (_dir, found) = open(&whole[..40]);
    assert_eq!(contents(&found.unwrap()).len(), 1, "the second header is cut");
    let (_dir, found) = open(b"PK\x03\x04 nothing");
    assert_eq!(found.unwrap_err(), "a zip archive without a single readable file");
}

#[test]
fn sizes_may_stand_in_a_zip64_field_or_behind_the_data() {
    let long = local(&stored("long.json", b"long"), true, false);
    let late = local(&stored("late.json", b"PK late"), false, true);
    let (_dir, found) = open(&[long, late.clone(), late, local(&stored("last.json", b"last"), false, false)].concat());
    let expected = pairs(&[("last.json", "last"), ("late.json", "PK late"), ("long.json", "long")]);
    assert_eq!(contents(&found.unwrap()), expected);
    assert_eq!(super::zip64(&[9, 9, 0, 0]), None);
    assert_eq!(super::zip64(&[1, 0, 8, 0, 1, 2, 3]), None);
}

#[test]
fn a_name_there_twice_counts_as_it_was_written_last() {
    let (_dir, found) = open(&zip(&[stored("a.json", b"old"), stored("b.json", b"b"), stored("a.json", b"new")], true));
    assert_eq!(contents(&found.unwrap()), pairs(&[("a.json", "new"), ("b.json", "b")]));
}

#[test]
fn names_never_lead_out_and_are_not_lost() {
    let parts =
        [stored("../../etc/x", b"1"), stored("/abs", b"2"), stored("samples/a/../b", b"3"), stored("./c", b"4")];
    let (dir, found) = open(&zip(&parts, true));
    let found = found.unwrap();
    assert!(found.iter().all(|e| e.path.starts_with(dir.path().join("log.eval"))));
    assert!(found.iter().all(|e| e.path.components().all(|c| !matches!(c, Component::ParentDir))));
    let expected = pairs(&[("(..)/(..)/etc/x", "1"), ("abs", "2"), ("c", "4"), ("samples/a/(..)/b", "3")]);
    assert_eq!(contents(&found), expected);
}

#[test]
fn a_name_that_is_no_utf8_is_not_lost() {
    let mut bytes = zip(&[stored("Q.json", b"5")], true);
    for byte in bytes.iter_mut().filter(|b| **b == b'Q') {
        *byte = 0xFF;
    }
    let (_dir, found) = open(&bytes);
    let found = contents(&found.unwrap());
    assert_eq!((found.len(), found[0].1.as_str()), (1, "5"));
    assert!(found[0].0.contains(".json"));
}

#[test]
fn an_archive_inside_an_archive_is_named() {
    let inner = zip(&[stored("x", b"x")], true);
    let (_dir, found) = open(&zip(&[stored("inner.zip", &inner)], true));
    assert_eq!(contents(&found.unwrap())[0].1, "a zip archive inside another file: unpack it first");
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = ::tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn a_tar_is_a_folder_packed_or_not_cut_or_whole() {
    let whole = tar(&[("b/two.json", b"2"), ("a.json", b"1")]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&whole).unwrap();
    for bytes in [whole.clone(), encoder.finish().unwrap()] {
        let (_dir, found) = open(&bytes);
        assert_eq!(contents(&found.unwrap()), pairs(&[("a.json", "1"), ("b/two.json", "2")]));
    }
    let remark = "the archive breaks off: what stands before the cut was read";
    for (cut, expected) in [(1536, vec![("b/two.json", "2")]), (1100, vec![("b/two.json", "2")]), (512, vec![])] {
        let (_dir, found) = listed(&whole[..cut]);
        let found = found.unwrap();
        assert_eq!(contents(&found.entries), pairs(&expected), "up to the cut at {cut}");
        assert_eq!(found.remark, Some(remark), "{cut}");
    }
    let long = tar(&[("long.json", &[b'x'; 700])]);
    let (dir, found) = listed(&long[..512 + 600]);
    assert_eq!(found.unwrap().entries[0].len, 600);
    let data = super::super::load::load(&[dir.path().to_path_buf()], &|_| {});
    assert!(data.files.iter().any(|f| f.reason == remark), "and it is said");
    let twice = tar(&[("a.json", b"old"), ("a.json", b"new")]);
    let (_dir, found) = listed(&twice);
    let found = found.unwrap();
    assert_eq!((contents(&found.entries), found.remark), (pairs(&[("a.json", "new")]), None));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Any byte of an archive replaced, and any cut: nothing panics, nothing hangs, every file is listed or refused.
    #[test]
    fn no_broken_archive_panics(at: proptest::sample::Index, byte: u8, cut: proptest::sample::Index, which in 0..3_usize) {
        let packed = deflated(b"{\"a\": 1}");
        let parts = [stored("header.json", b"{}"), Part { name: "samples/1_epoch_1.json", packed: &packed, len: 8, method: 8 }];
        let mut bytes = match which {
            0 => zip(&parts, true),
            1 => [local(&parts[0], true, false), local(&parts[1], false, true)].concat(),
            _ => tar(&[("a.json", b"{}"), ("b.json", b"{}")]),
        };
        let place = at.index(bytes.len());
        bytes[place] = byte;
        bytes.truncate(bytes.len() - cut.index(bytes.len()) / 4);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.eval");
        fs::write(&path, bytes).unwrap();
        if let Some(Ok(listing)) = entries(&path) {
            for entry in &listing.entries {
                drop(entry.read());
            }
        }
        assert!(!super::super::load::load(&[path], &|_| {}).files.is_empty());
    }
}

#[test]
fn other_files_are_no_archives() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in [("a", &b"{}"[..]), ("b", b""), ("c", b"\x1f\x8b broken")] {
        fs::write(dir.path().join(name), bytes).unwrap();
        assert!(entries(&dir.path().join(name)).is_none(), "{name}");
    }
    assert!(entries(Path::new("/nowhere")).is_none());
    assert_eq!(below(Path::new("a"), "."), None);
    assert_eq!(below(Path::new("a"), "x/y"), Some(PathBuf::from("a/x/y")));
}

#[test]
fn a_log_in_a_zip_is_read_through_it() {
    let header = br#"{"version": 2, "eval": {"task": "t"}, "plan": {}}"#;
    let sample = br#"{"id": "a/../b", "epoch": 1, "messages": [{"role": "assistant", "content": "x"}]}"#;
    let parts = [stored("_journal/start.json", header), stored("samples/a/../b_epoch_1.json", sample)];
    let (dir, _) = open(&zip(&parts, false));
    let data = super::super::load::load(&[dir.path().to_path_buf()], &|_| {});
    assert_eq!(data.trajectories.len(), 1);
    assert_eq!(data.trajectories[0].instance_id.as_deref(), Some("t/a/../b"));
    assert_eq!(data.trajectories[0].source.path, dir.path().join("log.eval"));
    assert!(data.files.iter().flat_map(|f| &f.diagnostics).any(|d| d.code == "inspect.running"));
}
