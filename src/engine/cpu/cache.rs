//! Keys and values of the tokens seen so far: reserved once, cut back by lowering a number.

use std::ops::Range;

use super::gemm::Shared;
use crate::engine::KvChoice;
use crate::engine::widen;

/// Room is made for this many tokens more than asked, so that a growing conversation is not copied every time.
const SPARE: usize = 512;

/// Numbers of the cache, in the type it keeps.
#[derive(Debug)]
pub(super) enum Store {
    F32(Vec<f32>),
    F16(Vec<u16>),
    Bf16(Vec<u16>),
}

/// A store that several threads write to, each in its own part.
#[derive(Debug, Clone, Copy)]
pub(super) enum SharedStore<'a> {
    F32(Shared<'a>),
    F16(Shared<'a, u16>),
    Bf16(Shared<'a, u16>),
}

impl Store {
    /// Zeros. `vec!` of zeros comes from the system untouched: pages that stay unused cost nothing.
    fn zeros(kind: KvChoice, count: usize) -> Self {
        match kind {
            KvChoice::F32 => Self::F32(vec![0.0; count]),
            KvChoice::F16 => Self::F16(vec![0; count]),
            KvChoice::Bf16 => Self::Bf16(vec![0; count]),
        }
    }

    /// Copies numbers of a store of the same type to `at`.
    fn copy(&mut self, at: usize, from: &Self, range: Range<usize>) {
        let to = at..at + range.len();
        match (self, from) {
            (Self::F32(to_all), Self::F32(from)) => to_all[to].copy_from_slice(&from[range]),
            (Self::F16(to_all), Self::F16(from)) | (Self::Bf16(to_all), Self::Bf16(from)) => {
                to_all[to].copy_from_slice(&from[range]);
            }
            _ => unreachable!("a cache keeps its type"),
        }
    }

    /// Some numbers as f32: as they lie, or widened into `scratch`.
    pub(super) fn read<'a>(&'a self, range: Range<usize>, scratch: &'a mut Vec<f32>) -> &'a [f32] {
        match self {
            Self::F32(numbers) => return &numbers[range],
            Self::F16(numbers) => {
                scratch.resize(range.len(), 0.0);
                widen::f16(&numbers[range], scratch);
            }
            Self::Bf16(numbers) => {
                scratch.resize(range.len(), 0.0);
                widen::bf16(&numbers[range], scratch);
            }
        }
        scratch
    }

    /// Lends it to several threads.
    pub(super) fn share(&mut self) -> SharedStore<'_> {
        match self {
            Self::F32(numbers) => SharedStore::F32(Shared::new(numbers)),
            Self::F16(numbers) => SharedStore::F16(Shared::new(numbers)),
            Self::Bf16(numbers) => SharedStore::Bf16(Shared::new(numbers)),
        }
    }
}

#[expect(unsafe_code, reason = "threads write the slots of different tokens")]
impl SharedStore<'_> {
    /// Writes numbers at `at`, rounded to the nearest.
    ///
    /// # Safety
    /// While this runs, no other thread reads or writes these numbers.
    pub(super) unsafe fn put(&self, at: usize, numbers: &[f32]) {
        let end = at + numbers.len();
        // SAFETY: exclusive by the caller's promise.
        unsafe {
            match self {
                Self::F32(store) => store.part(at, end).copy_from_slice(numbers),
                Self::F16(store) => {
                    store.part(at, end).iter_mut().zip(numbers).for_each(|(o, x)| *o = widen::f32_to_f16(*x));
                }
                Self::Bf16(store) => {
                    store.part(at, end).iter_mut().zip(numbers).for_each(|(o, x)| *o = widen::f32_to_bf16(*x));
                }
            }
        }
    }
}

/// One layer's keys and values, each `kv_heads × capacity × head_dim`.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) keys: Store,
    pub(super) values: Store,
}

/// What a cache is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) layers: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) kind: KvChoice,
}

impl Shape {
    /// Keys and values of one layer, with room for `capacity` tokens.
    pub(super) fn layer(self, capacity: usize) -> Layer {
        let zeros = || Store::zeros(self.kind, self.kv_heads * capacity * self.head_dim);
        Layer { keys: zeros(), values: zeros() }
    }

    /// Bytes that the keys and values of `tokens` tokens take in all layers.
    pub(super) fn bytes(self, tokens: usize) -> u64 {
        let numbers = 2 * self.layers as u64 * self.kv_heads as u64 * self.head_dim as u64 * tokens as u64;
        numbers * self.kind.bytes()
    }
}

/// The cache of all layers.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) layers: Vec<Layer>,
    shape: Shape,
    capacity: usize,
    len: usize,
}

impl Cache {
    pub(super) fn new(shape: Shape) -> Self {
        let layers = (0..shape.layers).map(|_| shape.layer(0)).collect();
        Self { layers, shape, capacity: 0, len: 0 }
    }

    /// What it is made for.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Gives all memory back.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.shape);
    }

    /// Tokens in the cache.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Tokens there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Forgets all tokens from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Says that all layers now hold the tokens up to `len`.
    pub(super) fn advance(&mut self, len: usize) {
        assert!(len <= self.capacity, "cache room");
        self.len = len;
    }

    /// A copy of the keys and values of the tokens from `from` up to `to`, exact: `layer × (keys, values) × kv_heads ×
    /// token × head_dim`.
    pub(super) fn save(&self, from: usize, to: usize) -> Vec<f32> {
        let Shape { kv_heads, head_dim, .. } = self.shape;
        let part = (to - from) * head_dim;
        let mut saved = Vec::with_capacity(self.layers.len() * 2 * kv_heads * part);
        let mut scratch = Vec::new();
        for store in self.layers.iter().flat_map(|layer| [&layer.keys, &layer.values]) {
            for head in 0..kv_heads {
                let at = (head * self.capacity + from) * head_dim;
                saved.extend_from_slice(store.read(at..at + part, &mut scratch));
            }
        }
        saved
    }

    /// Puts such a copy of `tokens` tokens behind the tokens there are. There must be room.
    pub(super) fn restore(&mut self, tokens: usize, saved: &[f32]) {
        assert!(self.len + tokens <= self.capacity, "cache room");
        let Shape { kv_heads, head_dim, .. } = self.shape;
        let mut parts = saved.chunks_exact(tokens * head_dim);
        for store in self.layers.iter_mut().flat_map(|layer| [&mut layer.keys, &mut layer.values]) {
            let store = store.share();
            for (head, part) in (0..kv_heads).zip(&mut parts) {
                #[expect(unsafe_code, reason = "shared with nobody here")]
                // SAFETY: the store is borrowed mutably and used by this thread alone.
                unsafe {
                    store.put((head * self.capacity + self.len) * head_dim, part);
                }
            }
        }
        self.len += tokens;
    }

    /// Makes room for `tokens` in all, keeping what is there. Room far beyond the need is given back.
    pub(super) fn reserve(&mut self, tokens: usize) {
        let fits = tokens <= self.capacity;
        let wasteful = self.capacity > 4 * (tokens + SPARE) && self.len <= tokens;
        if fits && !wasteful {
            return;
        }
        let capacity = tokens + SPARE;
        let (heads, dim, old, len) = (self.shape.kv_heads, self.shape.head_dim, self.capacity, self.len);
        for layer in &mut self.layers {
            let mut moved = self.shape.layer(capacity);
            for (to, from) in [(&mut moved.keys, &layer.keys), (&mut moved.values, &layer.values)] {
                for head in 0..heads {
                    let start = head * old * dim;
                    to.copy(head * capacity * dim, from, start..start + len * dim);
                }
            }
            *layer = moved;
        }
        self.capacity = capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_every_head_and_cutting_only_lowers_a_number() {
        for kind in [KvChoice::F32, KvChoice::F16, KvChoice::Bf16] {
            let mut cache = Cache::new(Shape { layers: 2, kv_heads: 2, head_dim: 3, kind });
            cache.reserve(4);
            let capacity = cache.capacity();
            let number = |layer: usize, head: usize, i: usize| (100 * layer + 50 * head + i) as f32;
            for (layer, store) in cache.layers.iter_mut().enumerate() {
                for head in 0..2 {
                    let row: Vec<f32> = (0..12).map(|i| number(layer, head, i)).collect();
                    let negative: Vec<f32> = row.iter().map(|v| -v).collect();
                    #[expect(unsafe_code, reason = "the function under test")]
                    // SAFETY: one thread only.
                    unsafe {
                        store.keys.share().put(head * capacity * 3, &row);
                        store.values.share().put(head * capacity * 3, &negative);
                    }
                }
            }
            cache.advance(4);
            cache.truncate(9);
            assert_eq!(cache.len(), 4);
            cache.truncate(2);
            cache.reserve(5000);
            assert_eq!((cache.len(), cache.capacity() >= 5000), (2, true));
            let capacity = cache.capacity();
            for (layer, store) in cache.layers.iter().enumerate() {
                for head in 0..2 {
                    let range = head * capacity * 3..head * capacity * 3 + 6;
                    let expected: Vec<f32> = (0..6).map(|i| number(layer, head, i)).collect();
                    assert_eq!(store.keys.read(range.clone(), &mut Vec::new()), expected, "{kind}");
                    let negative: Vec<f32> = expected.iter().map(|v| -v).collect();
                    assert_eq!(store.values.read(range, &mut Vec::new()), negative, "{kind}");
                }
            }
            let saved = cache.save(1, 2);
            assert_eq!(saved[..6], [3.0, 4.0, 5.0, 53.0, 54.0, 55.0]);
            cache.restore(1, &saved);
            assert_eq!((cache.len(), cache.save(2, 3)), (3, saved));
            cache.truncate(2);
            cache.reserve(10);
            assert!(cache.capacity() < 5000, "room far beyond the need is given back");
            cache.clear();
            assert_eq!((cache.len(), cache.capacity()), (0, 0));
        }
    }

    #[test]
    fn half_precision_rounds_to_the_nearest_and_takes_half_the_room() {
        let shape = |kind| Shape { layers: 3, kv_heads: 2, head_dim: 5, kind };
        assert_eq!(shape(KvChoice::F32).bytes(1000), 2 * 3 * 2 * 5 * 1000 * 4);
        assert_eq!(shape(KvChoice::F16).bytes(1000), 2 * 3 * 2 * 5 * 1000 * 2);
        assert_eq!(shape(KvChoice::Bf16).bytes(1 << 20), 2 * 3 * 2 * 5 * (1 << 20) * 2);
        for (kind, third) in [(KvChoice::F16, 0.333_251_95), (KvChoice::Bf16, 0.333_984_38)] {
            let mut layer = shape(kind).layer(1);
            #[expect(unsafe_code, reason = "the function under test")]
            // SAFETY: one thread only.
            unsafe {
                layer.keys.share().put(2, &[1.0 / 3.0, -2.0]);
            }
            assert_eq!(layer.keys.read(1..5, &mut Vec::new()), [0.0, third, -2.0, 0.0], "{kind}");
        }
    }
}
