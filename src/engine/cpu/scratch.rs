//! Memory for one task, kept by its thread: taking and returning megabytes for every task makes the system clear pages.

use std::cell::RefCell;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with a buffer of this thread, whose length and contents are those of its last use.
pub(super) fn with<T>(work: impl FnOnce(&mut Vec<f32>) -> T) -> T {
    let mut buffer = BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default();
    let result = work(&mut buffer);
    BUFFERS.with_borrow_mut(|buffers| buffers.push(buffer));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_and_nested_uses_get_different_ones() {
        let first = with(|outer| {
            outer.resize(1000, 1.0);
            with(|inner| {
                inner.resize(10, 2.0);
                assert!(!std::ptr::eq(outer.as_ptr(), inner.as_ptr()));
            });
            outer.as_ptr()
        });
        with(|again| assert_eq!((again.as_ptr(), again.len()), (first, 1000)));
    }
}
