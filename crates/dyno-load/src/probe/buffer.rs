//! Buffers for direct I/O, whose address is a multiple of 4096.

use std::sync::Arc;

use dyno_script::Rng;

/// Alignment of buffers \[bytes\]: direct I/O needs multiples of the device's sector, and no sector exceeds a page.
const ALIGNMENT: usize = 4096;

/// Aligned buffer, filled once with random bytes so that no device can compress it.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    capacity: usize,
}

impl Buffer {
    /// Returns a buffer of `capacity` bytes with random contents.
    pub fn new(capacity: usize, seed: u64) -> Self {
        let mut bytes = vec![0; capacity + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        let mut dice = Rng::new(seed);
        for eight in bytes.chunks_exact_mut(8) {
            eight.copy_from_slice(&dice.next_u64().to_le_bytes());
        }
        Self { bytes, start, capacity }
    }

    /// Returns the first `length` bytes.
    pub fn filled(&self, length: usize) -> &[u8] {
        &self.bytes[self.start..self.start + length]
    }

    /// Returns the first `length` bytes, mutable.
    pub fn filled_mut(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}

/// Pool of reusable buffers, by size; sizes are powers of two.
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: Vec<Vec<Buffer>>,
    made: u64,
}

impl Pool {
    /// Takes a buffer of at least `length` bytes.
    pub fn take(&mut self, length: usize) -> Buffer {
        let class = length.next_power_of_two().trailing_zeros() as usize;
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        self.free[class].pop().unwrap_or_else(|| {
            self.made += 1;
            Buffer::new(1 << class, self.made)
        })
    }

    /// Returns a buffer to the pool if nothing else uses it any more.
    pub fn give(&mut self, buffer: Arc<Buffer>) {
        if let Ok(buffer) = Arc::try_unwrap(buffer) {
            let class = buffer.capacity.trailing_zeros() as usize;
            self.free[class].push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_come_back() {
        let mut pool = Pool::default();
        for length in [512, 4096, 70_000] {
            let buffer = pool.take(length);
            assert_eq!(buffer.filled(length).as_ptr() as usize % ALIGNMENT, 0);
            assert_eq!(buffer.filled(length).len(), length);
            let place = buffer.filled(1).as_ptr();
            pool.give(Arc::new(buffer));
            assert_eq!(pool.take(length).filled(1).as_ptr(), place);
        }
    }

    #[test]
    fn a_buffer_that_somebody_still_holds_is_not_given_out() {
        let mut pool = Pool::default();
        let buffer = Arc::new(pool.take(512));
        let held = Arc::clone(&buffer);
        pool.give(buffer);
        assert_ne!(pool.take(512).filled(1).as_ptr(), held.filled(1).as_ptr());
    }
}
