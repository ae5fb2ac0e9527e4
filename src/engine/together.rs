//! Several texts at once: on a graphics processor they run in one pass, each seeing the shared beginning and itself.
//!
//! Five attempts of a few hundred tokens keep a large card no busier than one; together they do.

use super::resume::floor;
use super::{Model, PassError, Reading};
use crate::engine::device::Branch;
use crate::engine::network::Network;

/// A text and where it is read.
#[derive(Debug, Clone, Copy)]
struct Text<'a> {
    /// Token ids.
    ids: &'a [u32],
    /// Ascending indices into `ids`.
    reads: &'a [usize],
}

/// Values of a text that were computed before they were asked for.
#[derive(Debug)]
pub(super) struct Ready {
    ids: Vec<u32>,
    reads: Vec<usize>,
    outputs: Vec<f32>,
}

/// Texts that are computed together on a device.
const TEXTS: usize = 8;

impl Text<'_> {
    /// Tokens up to the last one that is read: what follows is not computed.
    fn len(&self) -> usize {
        self.reads.last().map_or(0, |last| last + 1)
    }
}

impl Model {
    /// How many texts run faster together than one after the other.
    pub(in crate::engine) fn together(&self) -> usize {
        match self.network {
            Network::Cpu(_) => 1,
            Network::Device(_) => TEXTS,
        }
    }

    /// Computes the values of texts (ids and ascending reads) together, where that is faster, for the calls of `run`
    /// that come next. Where it fails, or is stopped, nothing is ready and those calls compute.
    pub(in crate::engine) fn run_ahead(
        &mut self,
        texts: Vec<(Vec<u32>, Vec<usize>)>,
        stop: &(dyn Fn() -> bool + Sync),
    ) {
        self.ready.clear();
        if self.together() < 2 || texts.len() < 2 {
            return;
        }
        let views: Vec<Text<'_>> = texts.iter().map(|(ids, reads)| Text { ids, reads }).collect();
        if let Ok(found) = self.run_together(&views, stop) {
            let ready = texts.into_iter().zip(found);
            self.ready = ready.map(|((ids, reads), outputs)| Ready { ids, reads, outputs }).collect();
        }
    }

    /// The values of a text if they are ready.
    pub(super) fn take_ready(&mut self, ids: &[u32], reads: &[usize]) -> Option<Vec<f32>> {
        let at = self.ready.iter().position(|ready| ready.ids == ids && ready.reads == reads)?;
        Some(self.ready.swap_remove(at).outputs)
    }

    /// The head's outputs at the reads of every text. On the CPU the texts run one after the other; what they share at
    /// the beginning is computed once in either case.
    fn run_together(
        &mut self,
        texts: &[Text<'_>],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<f32>>, PassError> {
        let Network::Device(device) = &self.network else {
            return texts.iter().map(|text| self.run_alone(text, stop)).collect();
        };
        let most = PASS_CHUNKS * device.chunk();
        let width = self.width(Reading::Values)?;
        for text in texts {
            let ids = text.ids.get(..text.len());
            self.check(ids.ok_or_else(|| PassError::Failed("a value beyond the last token".into()))?)?;
        }
        let shared = shared(texts);
        if let Some(first) = texts.iter().find(|text| text.len() > 0) {
            self.hold(&first.ids[..shared], stop)?;
        }
        let mut found = Vec::with_capacity(texts.len());
        for group in groups(texts, shared, most) {
            let reads: Vec<Vec<usize>> =
                group.iter().map(|text| text.reads.iter().map(|r| r - shared).collect()).collect();
            let branches: Vec<Branch<'_>> =
                group.iter().zip(&reads).map(|(text, reads)| own(text, shared, reads)).collect();
            let outputs = self.branch_outputs(&branches, stop)?;
            let mut rest = outputs.as_slice();
            for reads in &reads {
                let (here, after) = rest.split_at((reads.len() * width).min(rest.len()));
                found.push(here.to_vec());
                rest = after;
            }
        }
        Ok(found)
    }

    fn run_alone(&mut self, text: &Text<'_>, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<f32>, PassError> {
        let mut outputs = Vec::new();
        self.run(text.ids, text.reads, stop, &mut |_, row| outputs.extend_from_slice(row))?;
        Ok(outputs)
    }

    /// Makes the cache hold exactly these tokens.
    fn hold(&mut self, ids: &[u32], stop: &(dyn Fn() -> bool + Sync)) -> Result<(), PassError> {
        let known = self.prefixes.common(ids).min(self.prefixes.regular());
        let mut start = floor(&self.network, self.chunks, known, ids.len());
        self.cut(start);
        self.network.reserve(ids.len())?;
        while start < ids.len() {
            let end = self.chunks.end(start, ids.len());
            self.network.append(&ids[start..end], &[], stop)?;
            self.extend(&ids[start..end], true);
            start = end;
        }
        Ok(())
    }

    fn branch_outputs(
        &mut self,
        branches: &[Branch<'_>],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<f32>, PassError> {
        let Network::Device(device) = &mut self.network else { return Ok(Vec::new()) };
        let states = device.branches(branches, stop)?;
        self.computed += branches.iter().map(|b| b.ids.len() as u64).sum::<u64>();
        self.head.apply(&self.network, &states)
    }
}

/// A pass of several texts has at most this many chunks' tokens: more would not run faster, only stop later.
const PASS_CHUNKS: usize = 2;

/// What follows the shared beginning, up to the last read.
fn own<'a>(text: &Text<'a>, shared: usize, reads: &'a [usize]) -> Branch<'a> {
    let range = shared.min(text.len())..text.len();
    Branch { ids: text.ids.get(range).unwrap_or_default(), reads }
}

/// How many tokens all texts begin with alike, and that lie before every read.
fn shared(texts: &[Text<'_>]) -> usize {
    let read: Vec<&Text<'_>> = texts.iter().filter(|text| text.len() > 0).collect();
    let Some((first, others)) = read.split_first() else { return 0 };
    let alike = |other: &&Text<'_>| first.ids.iter().zip(other.ids).take_while(|(a, b)| a == b).count();
    let common = others.iter().map(alike).min().unwrap_or(first.len());
    let before = read.iter().filter_map(|text| text.reads.first().copied()).min().unwrap_or(0);
    common.min(before)
}

/// Neighbours that go into one pass: as many as have `most` tokens of their own at most, at least one.
fn groups<'a, 'b>(texts: &'b [Text<'a>], shared: usize, most: usize) -> Vec<&'b [Text<'a>]> {
    let mut groups = Vec::new();
    let (mut start, mut tokens) = (0, 0);
    for (i, text) in texts.iter().enumerate() {
        let own = text.len().saturating_sub(shared);
        if i > start && tokens + own > most {
            groups.push(&texts[start..i]);
            (start, tokens) = (i, 0);
        }
        tokens += own;
    }
    if start < texts.len() {
        groups.push(&texts[start..]);
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use candle_core::Device;

    use super::*;
    use crate::engine::config::ModelConfig;
    use crate::engine::device::Place;
    use crate::engine::weights::Weights;
    use crate::engine::{DtypeChoice, EngineOptions};

    fn text<'a>(ids: &'a [u32], reads: &'a [usize]) -> Text<'a> {
        Text { ids, reads }
    }

    fn open(name: &str, place: Place) -> Model {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine").join(name);
        let json = std::fs::read(folder.join("config.json")).unwrap();
        let config = ModelConfig::parse(&json, &folder).unwrap();
        let options = EngineOptions { dtype: DtypeChoice::F32, threads: Some(1), ..EngineOptions::default() };
        Model::load(config, &json, Weights::open(&folder).unwrap(), place, &options).unwrap()
    }

    #[test]
    fn texts_together_have_the_values_of_each_alone() {
        let shared: Vec<u32> = (0..700).map(|i| i * 31 % 250).collect();
        let ends = [40, 1, 0, 300].map(|n| (0..n).map(|i| (i * i + n) % 250).collect::<Vec<u32>>());
        let texts: Vec<Vec<u32>> = ends.iter().map(|end| [shared.as_slice(), end].concat()).collect();
        let reads = [vec![705, 739], vec![700], vec![], vec![701, 900, 950]];
        let texts: Vec<Text<'_>> = texts.iter().zip(&reads).map(|(ids, reads)| text(ids, reads)).collect();
        for name in ["qwen2-token-3-f16", "qwen3-token-1-bf16"] {
            let mut device = open(name, Place::Candle(Device::Cpu, "candle".into()));
            let found = device.run_together(&texts, &|| false).unwrap();
            assert_eq!(device.prefixes.live().len(), 700, "the shared beginning is held");
            let mut cpu = open(name, Place::Cpu);
            let expected = cpu.run_together(&texts, &|| false).unwrap();
            for ((found, expected), reads) in found.iter().zip(&expected).zip(&reads) {
                assert_eq!((found.len(), expected.len()), (reads.len() * cpu.labels(), reads.len() * cpu.labels()));
                assert!(
                    found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 5e-5),
                    "{name}: {found:?} {expected:?}"
                );
            }
            assert_eq!(device.run_together(&texts, &|| false).unwrap(), found, "and again from the cache");
            assert_eq!(device.run_together(&texts, &|| true), Err(PassError::Stopped));
            assert_eq!(device.run_together(&[], &|| false), Ok(Vec::new()));
        }
    }

    #[test]
    fn what_was_computed_ahead_is_handed_out_once() {
        let texts: Vec<(Vec<u32>, Vec<usize>)> =
            (1..4u32).map(|n| ((0..40).map(|i| i * n % 250).collect(), vec![3, 39])).collect();
        let values = |model: &mut Model, (ids, reads): &(Vec<u32>, Vec<usize>)| {
            let mut values = Vec::new();
            model.run(ids, reads, &|| false, &mut |_, row| values.extend_from_slice(row)).unwrap();
            values
        };
        let mut alone = open("qwen2-token-1", Place::Candle(Device::Cpu, "candle".into()));
        let expected: Vec<Vec<f32>> = texts.iter().map(|text| values(&mut alone, text)).collect();
        let mut model = open("qwen2-token-1", Place::Candle(Device::Cpu, "candle".into()));
        assert_eq!(model.together(), TEXTS);
        model.run_ahead(texts.clone(), &|| false);
        let computed = model.computed();
        for (text, expected) in texts.iter().zip(&expected).rev() {
            let found = values(&mut model, text);
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-5), "{found:?} {expected:?}");
        }
        assert_eq!(model.computed(), computed, "only looked up");
        values(&mut model, &texts[0]);
        assert!(model.computed() > computed, "but once");
        model.run_ahead(texts.clone(), &|| true);
        assert!(model.ready.is_empty(), "stopped");
        let mut cpu = open("qwen2-token-1", Place::Cpu);
        cpu.run_ahead(texts, &|| false);
        assert_eq!((cpu.together(), cpu.ready.len(), cpu.computed()), (1, 0, 0));
    }

    #[test]
    fn what_is_shared_lies_before_every_read() {
        let (a, b) = ([1, 2, 3, 4, 5], [1, 2, 3, 9, 9, 9]);
        assert_eq!(shared(&[text(&a, &[4]), text(&b, &[3, 5])]), 3);
        assert_eq!(shared(&[text(&a, &[4]), text(&b, &[1])]), 1);
        assert_eq!(shared(&[text(&a, &[4])]), 4);
        assert_eq!(shared(&[text(&a, &[]), text(&b, &[5])]), 5, "a text that is not read does not count");
        assert_eq!((shared(&[]), shared(&[text(&a, &[])])), (0, 0));
    }

    #[test]
    fn groups_are_full_but_not_too_full() {
        let ids = [0; 100];
        let ends: Vec<Vec<usize>> = [9, 29, 59, 79, 12, 12].map(|end| vec![end]).into();
        let texts: Vec<Text<'_>> = ends.iter().map(|reads| text(&ids, reads)).collect();
        let sizes = |most| groups(&texts, 10, most).iter().map(|group| group.len()).collect::<Vec<_>>();
        // Own tokens: 0, 20, 50, 70, 3, 3.
        assert_eq!(sizes(70), [3, 1, 2]);
        assert_eq!(sizes(1000), [6]);
        assert_eq!(sizes(1), [1, 1, 1, 1, 1, 1]);
        assert_eq!(groups(&[], 0, 5).len(), 0);
    }
}
