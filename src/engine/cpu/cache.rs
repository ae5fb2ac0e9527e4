//! Keys and values of the tokens seen so far: reserved once, cut back by lowering a number.

/// Room is made for this many tokens more than asked, so that a growing conversation is not copied every time.
const SPARE: usize = 512;

/// One layer's keys and values, each `kv_heads × capacity × head_dim`.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) keys: Vec<f32>,
    pub(super) values: Vec<f32>,
}

/// The cache of all layers.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) layers: Vec<Layer>,
    kv_heads: usize,
    head_dim: usize,
    capacity: usize,
    len: usize,
}

impl Cache {
    pub(super) fn new(layers: usize, kv_heads: usize, head_dim: usize) -> Self {
        let layers = (0..layers).map(|_| Layer::default()).collect();
        Self { layers, kv_heads, head_dim, capacity: 0, len: 0 }
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

    /// A copy of the keys and values of the tokens from `from` up to `to`: `layer × (keys, values) × kv_heads × token ×
    /// head_dim`.
    pub(super) fn save(&self, from: usize, to: usize) -> Vec<f32> {
        let part = (to - from) * self.head_dim;
        let mut saved = Vec::with_capacity(self.layers.len() * 2 * self.kv_heads * part);
        for store in self.layers.iter().flat_map(|layer| [&layer.keys, &layer.values]) {
            for head in 0..self.kv_heads {
                let at = (head * self.capacity + from) * self.head_dim;
                saved.extend_from_slice(&store[at..at + part]);
            }
        }
        saved
    }

    /// Puts such a copy of `tokens` tokens behind the tokens there are. There must be room.
    pub(super) fn restore(&mut self, tokens: usize, saved: &[f32]) {
        assert!(self.len + tokens <= self.capacity, "cache room");
        let part = tokens * self.head_dim;
        let mut parts = saved.chunks_exact(part);
        for store in self.layers.iter_mut().flat_map(|layer| [&mut layer.keys, &mut layer.values]) {
            for (head, part) in (0..self.kv_heads).zip(&mut parts) {
                let at = (head * self.capacity + self.len) * self.head_dim;
                store[at..at + part.len()].copy_from_slice(part);
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
        let (heads, dim, old, len) = (self.kv_heads, self.head_dim, self.capacity, self.len);
        for layer in &mut self.layers {
            for store in [&mut layer.keys, &mut layer.values] {
                // `vec!` of zeros comes from the system untouched: pages that stay unused cost nothing.
                let mut moved = vec![0.0; heads * capacity * dim];
                for head in 0..heads {
                    let from = head * old * dim;
                    let to = head * capacity * dim;
                    moved[to..to + len * dim].copy_from_slice(&store[from..from + len * dim]);
                }
                *store = moved;
            }
        }
        self.capacity = capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_every_head_and_cutting_only_lowers_a_number() {
        let mut cache = Cache::new(2, 2, 3);
        cache.reserve(4);
        let capacity = cache.capacity();
        for (number, layer) in cache.layers.iter_mut().enumerate() {
            for head in 0..2 {
                for i in 0..4 * 3 {
                    layer.keys[head * capacity * 3 + i] = (100 * number + 50 * head + i) as f32;
                    layer.values[head * capacity * 3 + i] = -((100 * number + 50 * head + i) as f32);
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
        for (number, layer) in cache.layers.iter().enumerate() {
            for head in 0..2 {
                for i in 0..2 * 3 {
                    let expected = (100 * number + 50 * head + i) as f32;
                    assert_eq!(layer.keys[head * capacity * 3 + i].to_bits(), expected.to_bits());
                    assert_eq!(layer.values[head * capacity * 3 + i].to_bits(), (-expected).to_bits());
                }
            }
        }
        let saved = cache.save(1, 2);
        assert_eq!(saved[..6], [3.0, 4.0, 5.0, 53.0, 54.0, 55.0]);
        cache.restore(1, &saved);
        assert_eq!((cache.len(), cache.save(2, 3)), (3, saved));
        cache.truncate(2);
        cache.reserve(10);
        assert!(cache.capacity() < 5000, "room far beyond the need is given back");
    }
}
