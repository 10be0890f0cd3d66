//! Buffers that direct I/O accepts: their address is a multiple of 4096.

use std::sync::Arc;

use dyno_script::Rng;

/// Direct I/O wants buffers at multiples of the device's sector; no sector is larger than a page.
const ALIGNMENT: usize = 4096;

/// An aligned buffer, filled with random bytes once, so that no device can compress it away.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    capacity: usize,
}

impl Buffer {
    /// A buffer of so many bytes.
    pub fn new(capacity: usize, seed: u64) -> Self {
        let mut bytes = vec![0; capacity + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        let mut dice = Rng::new(seed);
        for eight in bytes.chunks_exact_mut(8) {
            eight.copy_from_slice(&dice.next_u64().to_le_bytes());
        }
        Self { bytes, start, capacity }
    }

    /// The first `length` bytes.
    pub fn filled(&self, length: usize) -> &[u8] {
        &self.bytes[self.start..self.start + length]
    }

    /// The first `length` bytes, to be changed.
    pub fn filled_mut(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}

/// Buffers for reuse, by size: powers of two.
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: Vec<Vec<Buffer>>,
    made: u64,
}

impl Pool {
    /// A buffer of at least `length` bytes.
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

    /// Takes a buffer back, once nobody else holds it.
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
