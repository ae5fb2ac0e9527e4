use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};

use super::network::{Branch, DeviceModel};
use super::upload::put;
use crate::engine::DtypeChoice;
use crate::engine::blocks::BlockType;
use crate::engine::config::ModelConfig;
use crate::engine::cpu::pool::Pool;
use crate::engine::cpu::{CpuModel, Settings};
use crate::engine::matrix::{Matrix, NumberType, Numbers};
use crate::engine::model::PassError;
use crate::engine::source::Source;
use crate::engine::weights::Weights;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine").join(name)
}

fn config(folder: &Path) -> ModelConfig {
    let file = folder.join("config.json");
    ModelConfig::parse(&std::fs::read(&file).unwrap(), &file).unwrap()
}

/// Candle's operations on the CPU.
fn device(name: &str, dtype: DtypeChoice) -> DeviceModel {
    let folder = folder(name);
    let place = (Device::Cpu, "candle".to_string());
    DeviceModel::load(&config(&folder), &mut Weights::open(&folder).unwrap(), place, dtype).unwrap()
}

/// The normalised last hidden states of the CPU's own path, whose values other tests hold to PyTorch's.
fn expected(name: &str, ids: &[u32]) -> Vec<f32> {
    let folder = folder(name);
    let settings = Settings::plain(Pool::new(2));
    let mut model = CpuModel::load(&config(&folder), &mut Weights::open(&folder).unwrap(), settings).unwrap();
    model.append(ids, &every(ids), &|| false).unwrap()
}

/// Text of a length; every test's own.
fn text(len: usize, seed: u32) -> Vec<u32> {
    (0..len as u32).map(|i| (i * 7919 + seed * 31 + i * i % 17) % 300).collect()
}

fn every(ids: &[u32]) -> Vec<usize> {
    (0..ids.len()).collect()
}

fn in_chunks(model: &mut DeviceModel, ids: &[u32], chunk: usize) -> Vec<f32> {
    model.truncate(0);
    ids.chunks(chunk).flat_map(|ids| model.append(ids, &every(ids), &|| false).unwrap()).collect()
}

fn worst(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| if a.is_nan() { f32::INFINITY } else { (a - b).abs() }).fold(0.0, f32::max)
}

fn mean(found: &[f32], expected: &[f32]) -> f32 {
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).sum::<f32>() / expected.len() as f32
}

#[test]
fn every_architecture_gives_what_the_cpus_own_path_gives() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder("")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let safe = ["model.safetensors", "model.safetensors.index.json"];
        if !safe.iter().any(|file| entry.path().join(file).is_file()) {
            continue;
        }
        let ids: Vec<u32> = text(200, 1).iter().map(|id| id % config(&entry.path()).vocab_size as u32).collect();
        let expected = expected(&name, &ids);
        let mut model = device(&name, DtypeChoice::F32);
        assert_eq!((model.dtype(), model.name(), model.attention()), ("f32", "candle", "tiled"));
        for chunk in [200, 64, 7] {
            let error = worst(&in_chunks(&mut model, &ids, chunk), &expected);
            assert!(error < 5e-5, "{name} in chunks of {chunk}: {error}");
        }
        seen += 1;
    }
    assert!(seen >= 4, "{seen} checkpoints");
}

/// Bounds: what tests/gpu/half_reference.py prints for PyTorch's own half precision at 4,600 tokens (the better of its
/// two ways of attending), on the values of the same checkpoints.
#[test]
fn half_precision_is_no_further_from_f32_than_pytorchs() {
    let cases = [("qwen3-token-1-bf16", "bf16", 5.378e-2, 9.595e-3), ("qwen2-token-3-f16", "f16", 8.212e-3, 1.248e-3)];
    for (name, dtype, most, on_average) in cases {
        let json = std::fs::read(folder(name).join("reference.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let ids: Vec<u32> = serde_json::from_value(json["inputs"][3].clone()).unwrap();
        let values: Vec<f32> = serde_json::from_value(json["values"][3].clone()).unwrap();
        assert_eq!(ids.len(), 4600);
        let mut model = device(name, DtypeChoice::Auto);
        assert_eq!(model.dtype(), dtype);
        let states = in_chunks(&mut model, &ids, 512);
        let mut weights = Weights::open(&folder(name)).unwrap();
        let labels = values.len() / ids.len();
        let head = weights.matrix("score.weight", labels, 64).unwrap();
        let bias = weights.vector("score.bias", labels).ok();
        let head = model.linear(&head, bias, false).unwrap();
        let found = model.project(Some(&head), &states).unwrap();
        let (max, mean) = (worst(&found, &values), mean(&found, &values));
        assert!(max <= most && mean <= on_average, "{name}: max {max:e} of {most:e}, mean {mean:e} of {on_average:e}");
        assert!(mean > 1e-6, "{name}: it did compute in {dtype}");
    }
}

#[test]
fn branches_are_what_each_text_alone_gives() {
    for name in ["qwen2-token-1", "qwen3-token-1-bf16"] {
        let mut model = device(name, DtypeChoice::F32);
        let shared = text(50, 2);
        let ends = [text(30, 3), text(1, 4), Vec::new(), text(75, 5)];
        let reads = [vec![0, 29], vec![0], vec![], vec![10, 70, 74]];
        for prefix in [&shared[..], &[]] {
            model.truncate(0);
            if !prefix.is_empty() {
                model.append(prefix, &[], &|| false).unwrap();
            }
            let branches: Vec<Branch<'_>> = ends.iter().zip(&reads).map(|(ids, reads)| Branch { ids, reads }).collect();
            let found = model.branches(&branches, &|| false).unwrap();
            let again = model.branches(&branches, &|| false).unwrap();
            assert_eq!(found, again, "the cached tokens stay as they are");
            let mut expected = Vec::new();
            for (ids, reads) in ends.iter().zip(&reads) {
                model.truncate(prefix.len());
                expected.extend(model.append(ids, reads, &|| false).unwrap());
            }
            assert!(worst(&found, &expected) < 2e-5, "{name}: {}", worst(&found, &expected));
        }
        assert_eq!(model.branches(&[], &|| false), Ok(Vec::new()));
    }
}

#[test]
fn a_cut_cache_goes_on_as_if_it_had_never_been_longer() {
    let (ids, mut other) = (text(120, 6), text(120, 6));
    other[80] += 1;
    let mut model = device("qwen2-token-1", DtypeChoice::F32);
    let expected = in_chunks(&mut model, &other, 40);
    in_chunks(&mut model, &ids, 40);
    model.truncate(80);
    let found = model.append(&other[80..], &every(&other[80..]), &|| false).unwrap();
    assert_eq!(found, expected[80 * 64..], "the same products: the same bits");
    // Growing the room moves what is cached.
    model.truncate(80);
    model.reserve(5000).unwrap();
    assert_eq!(model.append(&other[80..], &every(&other[80..]), &|| false).unwrap(), found);
}

#[test]
fn a_stopped_pass_is_no_result() {
    let mut model = device("qwen2-token-1", DtypeChoice::F32);
    assert_eq!(model.append(&[1, 2, 3], &[2], &|| true), Err(PassError::Stopped));
    assert_eq!(model.append(&[1, 2, 3], &[], &|| false), Ok(Vec::new()));
    assert_eq!(model.append(&[], &[], &|| false), Ok(Vec::new()));
}

#[test]
fn blocks_stay_blocks_and_are_multiplied_as_the_numbers_they_stand_for() {
    let mut numbers = Numbers::with_room(NumberType::Block(BlockType::Q8_0), 4 * 64);
    let floats: Vec<f32> = (0..4 * 64).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
    assert!(numbers.push_f32(&floats));
    let plain = Matrix::new(2, 64, Numbers::F32(floats[..128].to_vec()));
    let matrix = Matrix::new(4, 64, numbers).stack(plain);
    let wide = Tensor::from_vec(matrix.clone().into_f32(), (6, 64), &Device::Cpu).unwrap();
    let x = Tensor::from_vec((0..3 * 64).map(|i| (i % 7) as f32 - 3.0).collect::<Vec<f32>>(), (3, 64), &Device::Cpu);
    let x = x.unwrap();
    let product = x.matmul(&wide.t().unwrap()).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::BF16, 0.3)] {
        let weight = put(&matrix, dtype, &Device::Cpu).unwrap();
        assert_eq!((weight.rows(), weight.cols(), weight.name(), weight.arithmetic()), (6, 64, "q8_0", dtype));
        let found = weight.apply(&x.to_dtype(dtype).unwrap()).unwrap();
        assert_eq!(found.dims(), [3, 6]);
        let found = found.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert!(worst(&found, &product) < tolerance, "{dtype:?}: {}", worst(&found, &product));
    }
}

#[test]
fn an_embedding_of_blocks_is_looked_up_in_main_memory() {
    let mut numbers = Numbers::with_room(NumberType::Block(BlockType::Q8_0), 3 * 32);
    let floats: Vec<f32> = (0..3 * 32).map(|i| (i % 32) as f32 - 16.0).collect();
    assert!(numbers.push_f32(&floats));
    let matrix = Matrix::new(3, 32, numbers);
    let embedding = super::embedding::Embedding::new(matrix.clone(), false, DType::BF16, &Device::Cpu).unwrap();
    let rows = embedding.rows(&[2, 0], &Device::Cpu).unwrap();
    assert_eq!((rows.dims(), rows.dtype()), (&[2, 32][..], DType::F32));
    let mut expected = [0.0; 32];
    matrix.row_into(2, &mut expected);
    assert_eq!(rows.to_vec2::<f32>().unwrap()[0], expected);
    assert!(embedding.weight().is_err(), "it was not asked to be a head");
    assert!(super::embedding::Embedding::new(matrix, true, DType::BF16, &Device::Cpu).unwrap().weight().is_ok());
}

#[test]
fn gguf_files_keep_their_blocks_or_are_widened_on_request() {
    for name in ["gguf/qwen3-q8_0", "gguf/qwen2-q4_k_m"] {
        let open = || Source::open(&folder(name)).unwrap();
        let source = open();
        let config = ModelConfig::parse(&source.config, &source.config_file).unwrap();
        let ids: Vec<u32> = text(60, 7).iter().map(|id| id % config.vocab_size as u32).collect();
        let settings = Settings::plain(Pool::new(1));
        let mut cpu = CpuModel::load(&config, &mut open().weights, settings).unwrap();
        let expected = cpu.append(&ids, &every(&ids), &|| false).unwrap();
        let load = |dtype| {
            DeviceModel::load(&config, &mut open().weights, (Device::Cpu, "candle".to_string()), dtype).unwrap()
        };
        let mut wide = load(DtypeChoice::F32);
        assert_eq!(wide.dtype(), "f32");
        let error = worst(&in_chunks(&mut wide, &ids, 60), &expected);
        assert!(error < 1e-4, "{name} widened: {error}");
        let mut blocks = load(DtypeChoice::Auto);
        assert_eq!(blocks.dtype(), cpu.dtype(), "{name}");
        let mean = mean(&in_chunks(&mut blocks, &ids, 60), &expected);
        assert!(mean > 1e-6 && mean < 0.05, "{name} in bf16 arithmetic: {mean}");
    }
}

#[test]
fn int8_is_the_cpus() {
    let folder = folder("qwen2-token-1");
    let place = (Device::Cpu, "candle".to_string());
    let mut weights = Weights::open(&folder).unwrap();
    let said = DeviceModel::load(&config(&folder), &mut weights, place, DtypeChoice::Int8).unwrap_err().to_string();
    assert!(said.contains("--dtype q8_0"), "{said}");
}
