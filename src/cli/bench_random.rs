//! `trajscope bench --random SHAPE`: how fast a graphics processor reads, without a model at hand.

use anyhow::bail;
use serde_json::json;

use super::args::BenchArgs;
use super::out::Out;
use super::{Verdict, load};
use crate::engine::{DeviceBench, DeviceSpeed, RandomShape, bench_random};

/// Runs of every length that count.
const RUNS: usize = 3;

/// Draws the weights, measures, prints.
pub fn run(args: &BenchArgs, shape: RandomShape, out: &mut Out) -> anyhow::Result<Verdict> {
    let Some((_, options)) = load::spec(&args.critic)? else {
        bail!("--critic none computes nothing; leave it out with --random");
    };
    let bench = bench_random(shape, options.device, options.dtype, &args.tokens, RUNS)?;
    if args.json {
        out.json(&object(shape, &bench))?;
    } else {
        for line in table(shape, &bench) {
            out.line(line)?;
        }
    }
    Ok(Verdict::Clean)
}

/// The share of the card's peak, where that is known and the arithmetic is the one it is the peak of.
fn share(bench: &DeviceBench, speed: &DeviceSpeed) -> Option<f64> {
    Some(speed.tflops() / bench.peak.filter(|_| bench.dtype != "f32")?)
}

fn object(shape: RandomShape, bench: &DeviceBench) -> serde_json::Value {
    let line = |speed: &DeviceSpeed| {
        json!({
            "tokens": speed.tokens,
            "texts": speed.texts,
            "seconds": speed.seconds,
            "tokens_per_s": speed.tokens_per_second(),
            "tflops": speed.tflops(),
            "of_peak": share(bench, speed),
        })
    };
    json!({
        "random": shape.name(),
        "parameters": shape.shape().parameters(),
        "device": bench.device,
        "card": bench.card,
        "peak_bf16_tflops": bench.peak,
        "dtype": bench.dtype,
        "attention": bench.attention,
        "chunk": bench.chunk,
        "free_bytes_after_load": bench.free_after_load,
        "load_s": bench.load_seconds,
        "lengths": bench.speeds.iter().map(line).collect::<Vec<_>>(),
    })
}

fn table(shape: RandomShape, bench: &DeviceBench) -> Vec<String> {
    let card = bench.card.as_deref().unwrap_or("unknown");
    let peak = bench.peak.map_or("unknown".into(), |p| format!("{p:.0} TFLOP/s"));
    let millions = shape.shape().parameters() as f64 / 1e6;
    let mut lines = vec![
        format!("weights     random, {} ({millions:.0}M, {})", shape.name(), bench.dtype),
        format!("runs on     {}: {card}, bf16 peak {peak}", bench.device),
        format!("attention   {}, chunks of {} tokens", bench.attention, bench.chunk),
        String::new(),
        "  tokens  texts  median s  tokens/s   TFLOP/s  of peak".into(),
    ];
    lines.extend(bench.speeds.iter().map(|speed| {
        let share = share(bench, speed).map_or("-".into(), |share| format!("{:.0} %", 100.0 * share));
        let (tokens, texts, seconds) = (speed.tokens, speed.texts, speed.median());
        let (rate, tflops) = (speed.tokens_per_second(), speed.tflops());
        format!("{tokens:>8}  {texts:>5}  {seconds:>8.4}  {rate:>8.0}  {tflops:>8.1}  {share:>7}")
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> DeviceBench {
        let speed = |tokens, texts, seconds: &[f64]| DeviceSpeed {
            tokens,
            texts,
            seconds: seconds.to_vec(),
            flops: 100_000_000_000_000,
        };
        DeviceBench {
            device: "cuda:0".into(),
            card: Some("NVIDIA H200".into()),
            peak: Some(989.0),
            dtype: "bf16",
            attention: "flash-attn",
            chunk: 512,
            free_after_load: Some(70_000_000_000),
            load_seconds: 1.5,
            speeds: vec![speed(512, 1, &[0.2, 0.25, 0.5]), speed(512, 5, &[0.5])],
        }
    }

    #[test]
    fn a_row_has_the_median_and_the_share_of_the_peak() {
        let lines = table(RandomShape::ThirtyTwo, &measured());
        assert_eq!(lines[1], "runs on     cuda:0: NVIDIA H200, bf16 peak 989 TFLOP/s");
        assert_eq!(lines[5], "     512      1    0.2500      2048     400.0     40 %");
        assert_eq!(lines[6], "     512      5    0.5000      5120     200.0     20 %");
        let object = object(RandomShape::ThirtyTwo, &measured());
        assert_eq!(object["lengths"][0]["seconds"], json!([0.2, 0.25, 0.5]));
        assert_eq!(object["parameters"], 31_984_194_560u64);
    }

    #[test]
    fn an_unknown_peak_is_no_share() {
        let bench = DeviceBench { peak: None, card: None, ..measured() };
        assert!(table(RandomShape::Half, &bench)[5].ends_with('-'));
        assert_eq!(object(RandomShape::Half, &bench)["lengths"][0]["of_peak"], serde_json::Value::Null);
        let wide = DeviceBench { dtype: "f32", ..measured() };
        assert_eq!(share(&wide, &wide.speeds[0]), None, "the peak is of bf16");
    }
}
