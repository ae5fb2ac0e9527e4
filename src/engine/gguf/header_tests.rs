use proptest::prelude::*;

use super::*;

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// A file with these keys (kind and bytes of the value) and tensors (sides innermost first, type, offset), and `data`
/// bytes of tensor data.
fn file(keys: &[(&str, u32, Vec<u8>)], tensors: &[(&str, &[u64], u32, u64)], data: usize) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend((tensors.len() as u64).to_le_bytes());
    bytes.extend((keys.len() as u64).to_le_bytes());
    for (key, kind, value) in keys {
        bytes.extend([text(key), kind.to_le_bytes().to_vec(), value.clone()].concat());
    }
    for (name, sides, kind, offset) in tensors {
        bytes.extend(text(name));
        bytes.extend((sides.len() as u32).to_le_bytes());
        sides.iter().for_each(|side| bytes.extend(side.to_le_bytes()));
        bytes.extend(kind.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(32) + data, 0);
    bytes
}

fn read(bytes: Vec<u8>) -> Result<Header, String> {
    Header::read(&mut Shard::in_memory(bytes, std::path::Path::new("m.gguf"))).map_err(|e| e.to_string())
}

#[test]
fn values_of_every_kind_and_tensors_are_read() {
    let list = |kind: u32, count: u64, rest: Vec<u8>| {
        [kind.to_le_bytes().to_vec(), count.to_le_bytes().to_vec(), rest].concat()
    };
    let keys = [
        ("u8", 0, vec![200]),
        ("i8", 1, vec![200]),
        ("u16", 2, vec![1, 2]),
        ("i16", 3, vec![0xff, 0xff]),
        ("u32", 4, vec![1, 0, 0, 0]),
        ("i32", 5, vec![0xfe, 0xff, 0xff, 0xff]),
        ("f32", 6, 1.5f32.to_le_bytes().to_vec()),
        ("flag", 7, vec![1]),
        ("text", 8, text("hé")),
        ("texts", 9, list(8, 2, [text("a"), text("")].concat())),
        ("wholes", 9, list(5, 2, [3i32.to_le_bytes(), (-4i32).to_le_bytes()].concat())),
        ("floats", 9, list(6, 2, vec![0; 8])),
        ("u64", 10, u64::MAX.to_le_bytes().to_vec()),
        ("i64", 11, (-9i64).to_le_bytes().to_vec()),
        ("f64", 12, 0.1f64.to_le_bytes().to_vec()),
    ];
    let header = read(file(&keys, &[("w", &[64, 3], 8, 32), ("odd", &[5], 16, 0)], 32 + 204)).unwrap();
    let expected = [
        ("u8", Value::Whole(200)),
        ("i8", Value::Whole(-56)),
        ("u16", Value::Whole(513)),
        ("i16", Value::Whole(-1)),
        ("u32", Value::Whole(1)),
        ("i32", Value::Whole(-2)),
        ("f32", Value::Float(1.5)),
        ("flag", Value::Flag(true)),
        ("text", Value::Text("hé".into())),
        ("texts", Value::Texts(vec!["a".into(), String::new()])),
        ("wholes", Value::Wholes(vec![3, -4])),
        ("floats", Value::Other),
        ("u64", Value::Whole(i128::from(u64::MAX))),
        ("i64", Value::Whole(-9)),
        ("f64", Value::Float(0.1)),
    ];
    assert_eq!(header.metadata.len(), expected.len());
    for (key, value) in expected {
        assert_eq!(header.metadata[key], value, "{key}");
    }
    let tensor = &header.tensors[0];
    assert_eq!((tensor.shape.as_slice(), tensor.dtype.as_str(), tensor.len), ([3, 64].as_slice(), "Q8_0", 204));
    assert_eq!(tensor.start % 32, 0);
    assert_eq!((header.tensors[1].kind, header.tensors[1].dtype.as_str()), (None, "IQ2_XXS"));
}

#[test]
fn data_begins_at_the_files_own_alignment() {
    let key = |n: u32| vec![("general.alignment", 4, n.to_le_bytes().to_vec())];
    let header = read(file(&key(8), &[("w", &[1], 0, 0)], 4)).unwrap();
    let unaligned = 24 + 8 + 17 + 4 + 4 + (8 + 1 + 4 + 8 + 4 + 8);
    assert_eq!(header.tensors[0].start, (unaligned as u64).next_multiple_of(8));
    assert!(read(file(&key(0), &[], 0)).unwrap_err().contains("general.alignment"));
}

#[test]
fn damage_is_placed() {
    let cases = [
        (file(&[("k", 13, vec![])], &[], 0), "metadata `k`: value type 13, which GGUF does not have"),
        (
            file(&[("k", 9, [9u32.to_le_bytes().to_vec(), vec![1, 0, 0, 0, 0, 0, 0, 0]].concat())], &[], 64),
            "a list of lists",
        ),
        (
            file(&[("k", 9, [4u32.to_le_bytes().to_vec(), vec![0xff; 8]].concat())], &[], 0),
            "values in a file that ends before",
        ),
        (file(&[("k", 8, vec![0xff; 8])], &[], 0), "metadata `k`: a text of 18446744073709551615 bytes"),
        (file(&[("k", 8, [&1u64.to_le_bytes()[..], &[0xff]].concat())], &[], 0), "text that is not UTF-8"),
        (file(&[], &[("w", &[1, 1, 1, 1, 1], 0, 0)], 4), "tensor `w`: 5 dimensions"),
        (file(&[], &[("w", &[0], 0, 0)], 4), "tensor `w`: a side of no or of absurd length"),
        (file(&[], &[("w", &[1 << 31, 1 << 31, 1 << 31], 0, 0)], 4), "tensor `w`: a shape of absurd size"),
        (file(&[], &[("w", &[8], 0, 0)], 31), "tensor `w`: cut short: it ends at byte"),
        (file(&[], &[("w", &[8], 0, u64::MAX)], 32), "tensor `w`: cut short"),
    ];
    for (bytes, part) in cases {
        let said = read(bytes).unwrap_err();
        assert!(said.starts_with("m.gguf: ") && said.contains(part) && !said.contains('\n'), "{said} ({part})");
    }
}

proptest! {
    #[test]
    fn no_bytes_bring_it_down(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..300) {
        let good = file(&[("k", 9, [8u32.to_le_bytes().to_vec(), 1u64.to_le_bytes().to_vec(), text("a")].concat())],
            &[("w", &[4], 0, 0)], 16);
        let mut mixed = good[..cut.min(good.len())].to_vec();
        mixed.extend(bytes);
        // Anything but a panic or an absurd allocation is right.
        let _result = read(mixed);
    }
}
