use std::path::PathBuf;

use serde_json::json;

use super::*;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine").join(name)
}

fn run(folder: &Path) -> Result<Verification, String> {
    let options = EngineOptions { threads: Some(1), ..EngineOptions::default() };
    verify(folder, &options, Chunks::Every(64), None).map_err(|e| e.to_string())
}

/// A copy of a fixture whose reference was changed.
fn changed(name: &str, change: impl FnOnce(&mut Value)) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(fixture(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let file = copy.path().join(FILE);
    let mut json = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    change(&mut json);
    std::fs::write(&file, json.to_string()).unwrap();
    copy
}

#[test]
fn every_kind_of_head_is_compared_with_pytorch() {
    for (name, tolerance, numbers, greedy) in [
        ("small-yarn", 2e-5, vec![1, 7, 90, 600], None),
        ("small-seq-3", 1e-4, vec![3, 3, 3], None),
        ("small-two-layer", 2e-5, vec![2, 14, 180], None),
        ("small-causal", 1e-4, vec![64, 64, 64], Some(true)),
        ("small-causal-tied", 1e-4, vec![64, 64, 64], Some(true)),
    ] {
        let found = run(&fixture(name)).unwrap();
        assert!(found.is_good(), "{name}: {found:?}");
        assert_eq!(found.tolerance.to_bits(), f64::to_bits(tolerance), "{name}");
        assert_eq!(found.inputs.iter().map(|i| i.numbers).collect::<Vec<_>>(), numbers, "{name}");
        assert_eq!((found.greedy_equal, found.strict), (greedy, true), "{name}");
        assert!(found.max_abs_err > 0.0 && found.mean_abs_err <= found.max_abs_err);
        assert!(found.f64_errors.unwrap().max < 1e-4);
    }
}

#[test]
fn a_wrong_number_and_a_wrong_continuation_are_found() {
    let folder = changed("small-causal", |json| {
        let number = json["f32"][1][5].as_f64().unwrap();
        json["f32"][1][5] = (number + 0.25).into();
        json["greedy"][2][31] = 0.into();
    });
    let found = run(folder.path()).unwrap();
    assert!(!found.is_good());
    assert!((found.max_abs_err - 0.25).abs() < 1e-4 && (found.mean_abs_err - 0.25 / 192.0).abs() < 1e-4);
    assert_eq!(found.greedy_equal, Some(false));
    let each: Vec<_> = found.inputs.iter().map(|i| (i.errors.max > 0.1, i.greedy_equal)).collect();
    assert_eq!(each, [(false, Some(true)), (true, Some(true)), (false, Some(false))]);
    let wide = Verification { max_abs_err: 0.0, ..found };
    assert!(!wide.is_good() && Verification { strict: false, ..wide }.is_good());
}

#[test]
fn where_precision_is_given_up_more_is_let_pass_and_less_is_asked() {
    let with = |dtype| {
        let options = EngineOptions { threads: Some(1), dtype, ..EngineOptions::default() };
        verify(&fixture("small-causal"), &options, Chunks::Growing, None).unwrap()
    };
    let exact = with(DtypeChoice::F32);
    for dtype in [DtypeChoice::F16, DtypeChoice::Bf16, DtypeChoice::Int8] {
        let found = with(dtype);
        assert!(found.is_good() && !found.strict, "{found:?}");
        assert!(
            found.max_abs_err > 10.0 * exact.max_abs_err && found.max_abs_err > found.tolerance / 40.0,
            "{found:?}"
        );
        assert_eq!(found.dtype, dtype.to_string());
    }
    // A file in half precision loses nothing: the reference was computed from the same weights.
    assert!(run(&fixture("small-yarn")).unwrap().strict);
    assert!((spread(&[vec![1.0, 3.0], vec![1.0, 3.0]]) - 1.0).abs() < 1e-12);
    assert!((spread(&[vec![-0.5]]) - 0.5).abs() < 1e-12);
}

#[test]
fn a_number_that_is_none_is_never_good() {
    let mut sum = Sum::default();
    sum.add(&[1.0, f32::NAN], &[1.0, 2.0]);
    assert!(sum.errors().max.is_infinite());
}

#[test]
fn rows_may_be_nested_and_f64_and_greedy_may_be_missing() {
    let folder = changed("small-two-layer", |json| {
        let row = json["f32"][1].as_array().unwrap().clone();
        json["f32"][1] = row.chunks(2).map(<[Value]>::to_vec).collect::<Vec<_>>().into();
        json.as_object_mut().unwrap().remove("f64");
        json["architecture"] = Value::Null;
    });
    let found = run(folder.path()).unwrap();
    assert!(found.is_good() && found.f64_errors.is_none() && found.greedy_equal.is_none());
}

#[test]
fn a_reference_that_cannot_be_is_one_line() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 11] = [
        (|json| *json = json!([1]), "expected a JSON object at the top"),
        (|json| json["inputs"] = json!([]), "`inputs`: expected lists of ids"),
        (|json| json["inputs"] = json!({"0": 1}), "`inputs`: expected a list with one row an input"),
        (|json| json["inputs"][1] = json!([1, -2]), "`inputs[1]`: expected a list of token ids"),
        (|json| json["inputs"][2] = json!([]), "`inputs[2]` is empty"),
        (|json| json["inputs"][0] = json!([96]), "`inputs[0]` (1 tokens): token id 96 has no row"),
        (|json| json["f32"] = Value::Null, "`f32`: expected a list with one row an input"),
        (|json| json["f32"] = json!([[1.0]]), "`f32` has 1 rows for 3 inputs"),
        (|json| json["f32"][0] = json!([1.0, "x"]), "`f32[0]`: expected a list of numbers"),
        (|json| json["f64"][0] = json!([1.0]), "`f64[0]` has 1 numbers, the model gives 3"),
        (|json| json["architecture"] = "Qwen3ForCausalLM".into(), "config.json says Qwen2ForSequenceClassification"),
    ];
    for (change, part) in cases {
        let folder = changed("small-seq-3", change);
        let said = run(folder.path()).unwrap_err();
        assert!(said.contains(part) && said.contains("reference.json: ") && !said.contains('\n'), "{said}");
    }
    let said = run(&fixture("no-such")).unwrap_err();
    assert!(said.contains("no-such/reference.json: ") && said.contains("trajscope verify --help"), "{said}");
}
