//! Memory to read into, used again on the same thread: gigabytes go through it, and fresh memory must be cleared first.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// More than this is not kept for the next time.
const KEPT: usize = 16 << 20;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Bytes to be filled. What they hold at first is anything.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    /// So many bytes.
    pub fn of(len: usize) -> Self {
        let mut buffer = Self { bytes: SPARE.take(), len: 0 };
        buffer.grow(len);
        buffer
    }

    /// Makes it longer; what is there stays.
    pub fn grow(&mut self, len: usize) {
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        self.len = self.len.max(len);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let kept = SPARE.take();
        let larger = self.bytes.len() > kept.len() && self.bytes.len() <= KEPT;
        SPARE.set(if larger { std::mem::take(&mut self.bytes) } else { kept });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_memory_is_used_again_in_any_size() {
        let mut first = Buffer::of(3);
        first.copy_from_slice(b"abc");
        first.grow(5);
        assert_eq!((&first[..3], first.len()), (b"abc".as_slice(), 5));
        let place = first.as_ptr();
        drop(first);
        let (again, other) = (Buffer::of(2), Buffer::of(4));
        assert_eq!((again.as_ptr(), again.len(), other.len()), (place, 2, 4));
        assert_ne!(again.as_ptr(), other.as_ptr());
        drop(again);
        drop(Buffer::of(KEPT + 1));
        assert!(Buffer::of(1).bytes.len() < KEPT, "huge ones are given back");
    }
}
