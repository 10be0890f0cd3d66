//! Addresses of files on the device: space is allocated in order, one megabyte at a time.

use std::collections::{BTreeSet, HashMap};

use dyno_model::device::{Kind, Request};

use crate::orders::Range;

/// Allocation unit [bytes].
pub const EXTENT_BYTES: u64 = 1 << 20;

/// Allocated space of a device.
pub struct Extents {
    count: u64,
    used: u64,
    freed: BTreeSet<u64>,
    of: HashMap<(u64, u64), u64>,
}

impl Extents {
    /// Returns the space of an empty device.
    pub fn new(capacity_bytes: u64) -> Self {
        let (freed, of) = (BTreeSet::new(), HashMap::new());
        Self { count: (capacity_bytes / EXTENT_BYTES).max(1), used: 0, freed, of }
    }

    /// Returns the bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.of.len() as u64 * EXTENT_BYTES
    }

    /// Returns the device requests for a range of a file; `None` if there is no space left.
    pub fn pieces(&mut self, kind: Kind, file: u64, offset: u64, bytes: u64) -> Option<Vec<Request>> {
        let mut pieces: Vec<Request> = Vec::new();
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let until = end.min((at / EXTENT_BYTES + 1) * EXTENT_BYTES);
            let offset_bytes = self.extent(file, at / EXTENT_BYTES)? * EXTENT_BYTES + at % EXTENT_BYTES;
            match pieces.last_mut() {
                Some(last) if last.offset_bytes + last.bytes == offset_bytes => last.bytes += until - at,
                _ => pieces.push(Request { kind, offset_bytes, bytes: until - at }),
            }
            at = until;
        }
        Some(pieces)
    }

    fn extent(&mut self, file: u64, number: u64) -> Option<u64> {
        if let Some(&extent) = self.of.get(&(file, number)) {
            return Some(extent);
        }
        let extent = match self.freed.pop_first() {
            Some(extent) => extent,
            None if self.used < self.count => {
                self.used += 1;
                self.used - 1
            }
            None => return None,
        };
        self.of.insert((file, number), extent);
        Some(extent)
    }

    /// Frees the space of a file from an offset to its end; returns the ranges of the device that this has freed.
    pub fn free(&mut self, file: u64, offset: u64) -> Vec<Range> {
        let first = offset.div_ceil(EXTENT_BYTES);
        let gone: Vec<_> = self.of.keys().copied().filter(|&(of, number)| of == file && number >= first).collect();
        let mut free: Vec<u64> = gone.iter().filter_map(|key| self.of.remove(key)).collect();
        free.sort_unstable();
        self.freed.extend(&free);
        free.into_iter().map(|extent| (extent * EXTENT_BYTES, EXTENT_BYTES)).collect()
    }

    /// Returns the ranges of the device where a range of a file is stored; parts of the file without allocated space
    /// are left out.
    pub fn ranges(&self, file: u64, offset: u64, bytes: u64) -> Vec<Range> {
        let parts = offset / EXTENT_BYTES..(offset + bytes).div_ceil(EXTENT_BYTES);
        let part = |number: u64| {
            let extent = self.of.get(&(file, number))?;
            let from = offset.max(number * EXTENT_BYTES);
            let to = (offset + bytes).min((number + 1) * EXTENT_BYTES);
            Some((extent * EXTENT_BYTES + from % EXTENT_BYTES, to - from))
        };
        parts.filter_map(part).collect()
    }

    /// Returns the device address of an offset in a file, or `None` if no space is allocated there.
    pub fn address(&self, file: u64, offset: u64) -> Option<u64> {
        let extent = self.of.get(&(file, offset / EXTENT_BYTES))?;
        Some(extent * EXTENT_BYTES + offset % EXTENT_BYTES)
    }

    /// Returns, for each extent in use, the file that it belongs to, and the number of the extent within that file.
    pub fn files(&self) -> HashMap<u64, (u64, u64)> {
        self.of.iter().map(|(&(file, number), &extent)| (extent, (file, number))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_written_in_order_is_in_order_on_the_device() {
        let mut extents = Extents::new(4 << 20);
        let pieces = extents.pieces(Kind::Write, 7, 100, 2 << 20).unwrap_or_default();
        assert_eq!(pieces, [Request::write(100, 2 << 20)]);
        assert_eq!(extents.used_bytes(), 3 << 20);
    }

    #[test]
    fn two_files_take_turns_and_a_full_device_has_no_space() {
        let mut extents = Extents::new(2 << 20);
        assert_eq!(extents.pieces(Kind::Write, 1, 0, 8), Some(vec![Request::write(0, 8)]));
        assert_eq!(extents.pieces(Kind::Read, 2, 0, 8), Some(vec![Request::read(1 << 20, 8)]));
        assert_eq!(extents.pieces(Kind::Write, 1, 1 << 20, 8), None);
        assert_eq!(extents.ranges(2, 4_096, 8), [((1 << 20) + 4_096, 8)]);
        assert_eq!(extents.free(2, 0), [(1 << 20, 1 << 20)]);
        assert_eq!(extents.ranges(2, 4_096, 8), []);
        assert_eq!(extents.pieces(Kind::Write, 1, 1 << 20, 8), Some(vec![Request::write(1 << 20, 8)]));
    }
}
