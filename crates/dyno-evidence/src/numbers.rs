//! Columns of whole numbers, stored as packed differences (`packed.rs`).
//!
//! The Parquet library's writer passes each value through several layers; here a block of values is packed at once. A
//! column that compression makes hardly smaller is not compressed. The smallest and the largest value are stored for
//! each row group.

use std::ops::Range;

use bytes::Bytes;
use dyno_cpu::Work;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use crate::NONE;
use crate::chunk::{PAGE_ROWS, Packer, Pages, Presence};
use crate::packed::{MINI, Packed};
use crate::values::Values;

/// A column is compressed if compression saves at least 1 byte in `WORTH` on the column's first page.
const WORTH: usize = 8;

/// One column of whole numbers in one row group.
pub(crate) struct NumbersColumn {
    pages: Pages,
    /// Compression of the pages, decided by looking at the first page.
    compression: Option<Compression>,
    zstd: Compression,
    packed: Packed,
    presence: Option<Presence>,
    missing: u64,
    /// Smallest and largest value of all pages.
    extremes: Option<(i64, i64)>,
    /// Highest bit if the numbers are unsigned, otherwise 0: with this bit flipped, a signed comparison orders them
    /// correctly.
    sign: i64,
}

impl NumbersColumn {
    pub(crate) fn new(descr: ColumnDescPtr, zstd: Compression, is_unsigned: bool) -> Self {
        let is_wide = descr.physical_type() == Type::INT64;
        Self {
            presence: (descr.max_def_level() > 0).then(Presence::default),
            pages: Pages::new(descr, Encoding::DELTA_BINARY_PACKED),
            compression: None,
            zstd,
            packed: Packed::new(is_wide),
            missing: 0,
            extremes: None,
            sign: if is_unsigned && is_wide { i64::MIN } else { 0 },
        }
    }

    /// Appends some rows of the values, which are whole numbers of any kind.
    pub(crate) fn write(&mut self, values: &Values, rows: Range<usize>, packer: &mut Packer) -> Result<()> {
        let mut at = rows.start;
        while at < rows.end {
            let end = rows.end.min(at + PAGE_ROWS - self.pages.open_rows);
            match values {
                Values::I64(values) => self.put(&values[at..end], NONE, |value| value),
                Values::U64(values) => self.put(&values[at..end], u64::MAX, |value| value as i64 ^ i64::MIN),
                Values::U32(values) => self.put(&values[at..end], u32::MAX, i64::from),
                Values::U8(values) => self.put(&values[at..end], u8::MAX, i64::from),
                Values::Bool(_) | Values::Words(..) | Values::Text(_) => {}
            }
            self.pages.open_rows += end - at;
            if self.pages.open_rows == PAGE_ROWS {
                self.end_page(packer)?;
            }
            at = end;
        }
        Ok(())
    }

    fn put<T: Copy + PartialEq>(&mut self, values: &[T], none: T, number: impl Fn(T) -> i64) {
        dyno_cpu::run(Put { column: self, values, none, number });
    }

    /// Records which of the values are present, one bit each.
    #[inline(always)]
    fn note(&mut self, bits: u64, values: usize, missing: usize) {
        if let Some(presence) = &mut self.presence {
            presence.push(bits, values);
            self.missing += missing as u64;
        }
    }

    fn end_page(&mut self, packer: &mut Packer) -> Result<()> {
        let mut raw = std::mem::take(&mut packer.raw);
        raw.clear();
        if let Some(presence) = &mut self.presence {
            presence.end_page(&mut raw);
        }
        let extremes = self.packed.end(self.sign, &mut raw);
        self.extremes = match (self.extremes, extremes) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        let len = raw.len();
        let stored = if self.compression == Some(Compression::UNCOMPRESSED) {
            Bytes::copy_from_slice(&raw)
        } else {
            let small = packer.compressed(&raw)?;
            let is_worth = self.compression.is_some() || small.len() + len / WORTH <= len;
            self.compression = Some(if is_worth { self.zstd } else { Compression::UNCOMPRESSED });
            if is_worth { small } else { Bytes::copy_from_slice(&raw) }
        };
        packer.raw = raw;
        self.pages.push(stored, len);
        Ok(())
    }

    /// Returns the bytes of the column and the metadata that the file needs.
    pub(crate) fn close(mut self, packer: &mut Packer) -> Result<(Bytes, ColumnCloseResult)> {
        if self.pages.open_rows > 0 {
            self.end_page(packer)?;
        }
        let (least, most) = self.extremes.map(|(least, most)| (least ^ self.sign, most ^ self.sign)).unzip();
        let missing = Some(self.missing);
        let statistics = if self.packed.is_wide {
            Statistics::int64(least, most, None, missing, false)
        } else {
            let narrow = |value: i64| value as i32;
            Statistics::int32(least.map(narrow), most.map(narrow), None, missing, false)
        };
        self.pages.close(self.compression.unwrap_or(self.zstd), None, Some(statistics))
    }
}

/// Values to be appended to a column.
struct Put<'a, T, N> {
    column: &'a mut NumbersColumn,
    values: &'a [T],
    none: T,
    number: N,
}

impl<T: Copy + PartialEq, N: Fn(T) -> i64> Work for Put<'_, T, N> {
    type Done = ();

    #[inline(always)]
    fn run(self) {
        let Self { column, values, none, number } = self;
        for values in values.chunks(MINI) {
            let all = u64::MAX >> (MINI - values.len());
            let bits = if column.presence.is_some() { present(values, none) } else { all };
            let count = bits.count_ones() as usize;
            column.note(bits, values.len(), values.len() - count);
            if bits == 0 {
                continue;
            }
            let to = &mut column.packed.room()[..count];
            if bits == all {
                to.iter_mut().zip(values).for_each(|(to, value)| *to = number(*value));
            } else {
                let mut left = bits;
                for to in to {
                    *to = number(values[left.trailing_zeros() as usize]);
                    left &= left - 1;
                }
            }
            column.packed.take(count);
        }
    }
}

/// Returns a bit for each of up to 64 values, set if the value is present.
#[inline(always)]
fn present<T: Copy + PartialEq>(values: &[T], none: T) -> u64 {
    let mut there = [0_u8; MINI];
    there.iter_mut().zip(values).for_each(|(there, value)| *there = u8::from(*value != none));
    // The product has the lowest bits of the eight bytes in its highest byte, in their order.
    let byte = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    there.as_chunks().0.iter().enumerate().fold(0, |bits, (at, eight)| bits | byte(eight) << (8 * at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A page of numbers to be packed.
    #[derive(Clone, Copy)]
    struct Page<'a>(&'a [i64], bool);

    impl Work for Page<'_> {
        type Done = (Vec<u8>, Option<(i64, i64)>);

        #[inline(always)]
        fn run(self) -> Self::Done {
            let (mut packed, mut page) = (Packed::new(self.1), Vec::new());
            for values in self.0.chunks(MINI) {
                packed.room()[..values.len()].copy_from_slice(values);
                packed.take(values.len());
            }
            let extremes = packed.end(0, &mut page);
            (page, extremes)
        }
    }

    proptest! {
        /// The code for processors with AVX2 is compiled from the same source and must produce the same bytes.
        #[test]
        fn a_page_is_the_same_by_wide_registers_and_without(
            base in any::<i64>(),
            bits in 0_u32..64,
            steps in prop::collection::vec(any::<i64>(), 0..900),
            rise in 0_i64..3,
        ) {
            let near = |at: usize, step: i64| base.wrapping_add(step & ((1_u64 << bits) - 1) as i64).wrapping_add(rise * at as i64);
            let numbers: Vec<i64> = steps.iter().enumerate().map(|(at, step)| near(at, *step)).collect();
            for is_wide in [false, true] {
                let page = Page(&numbers, is_wide);
                dyno_cpu::choose(true);
                prop_assert_eq!(dyno_cpu::run(page), page.run());
            }
        }
    }
}
