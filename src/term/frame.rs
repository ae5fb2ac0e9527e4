//! Frames that a terminal shows whole.

use std::io::{self, Write};

/// Begin of a synchronized update: terminals that know it hold back drawing until the end; others ignore it.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// A buffered writer that wraps everything written between two flushes in a synchronized update. Nothing reaches the
/// terminal before a flush, so a panic in the middle of a frame leaves no half of one.
pub(super) struct Framed<W: Write> {
    inner: W,
    frame: Vec<u8>,
}

impl<W: Write> Framed<W> {
    /// Frames for `inner`.
    pub(super) fn new(inner: W) -> Self {
        Self { inner, frame: Vec::new() }
    }
}

impl<W: Write> Write for Framed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.frame.is_empty() {
            self.frame.extend_from_slice(BEGIN);
        }
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.frame.is_empty() {
            self.frame.extend_from_slice(END);
            let written = self.inner.write_all(&self.frame);
            self.frame.clear();
            written?;
        }
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_written_whole_and_only_when_flushed() {
        let mut out = Vec::new();
        let mut framed = Framed::new(&mut out);
        framed.write_all(b"one ").unwrap();
        framed.write_all(b"frame").unwrap();
        framed.flush().unwrap();
        framed.flush().unwrap();
        framed.write_all(b"lost in a panic").unwrap();
        drop(framed);
        assert_eq!(out, b"\x1b[?2026hone frame\x1b[?2026l");
    }
}
