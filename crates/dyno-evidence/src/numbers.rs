//! Columns of whole numbers, stored as packed differences (`DELTA_BINARY_PACKED` of the format's
//! description of encodings).
//!
//! The library's writer takes a value at a time through several layers. Here [`BLOCK`] differences
//! are made, measured and packed at once, and a stretch that rises evenly or stays the same costs no
//! more than looking at it. What compression hardly makes smaller is left as it is. Extremes are
//! kept by row group.

use std::ops::Range;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

use crate::NONE;
use crate::chunk::{PAGE_ROWS, Pages, Presence, compressed, varint};
use crate::values::Values;

/// Differences of a block.
const BLOCK: usize = 256;
/// Differences that are packed alike: so many words of 64 bits as they have bits each.
const MINI: usize = 64;
/// A column is compressed if that takes at least one byte of so many off its first page.
const WORTH: usize = 8;

/// One column of one row group.
pub(crate) struct NumbersColumn {
    pages: Pages,
    /// What compresses the pages; settled by the first one.
    compression: Option<Compression>,
    zstd: Compression,
    packed: Packed,
    presence: Option<Presence>,
    page_rows: usize,
    missing: u64,
    /// Extremes of all pages, as the numbers are ordered.
    extremes: Option<(i64, i64)>,
    /// The highest bit where the numbers have no sign: without it they are in order.
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
            page_rows: 0,
            missing: 0,
            extremes: None,
            sign: if is_unsigned && is_wide { i64::MIN } else { 0 },
        }
    }

    /// Appends some of the values, which are whole numbers of any kind.
    pub(crate) fn write(&mut self, values: &Values, rows: Range<usize>, zstd: &mut Compressor<'_>) -> Result<()> {
        let mut at = rows.start;
        while at < rows.end {
            let end = rows.end.min(at + PAGE_ROWS - self.page_rows);
            match values {
                Values::I64(values) => self.put(&values[at..end], NONE, |value| value),
                Values::U64(values) => self.put(&values[at..end], u64::MAX, |value| value as i64 ^ i64::MIN),
                Values::U32(values) => self.put(&values[at..end], u32::MAX, i64::from),
                Values::U8(values) => self.put(&values[at..end], u8::MAX, i64::from),
                Values::Bool(_) | Values::Words(..) | Values::Text(_) => {}
            }
            self.page_rows += end - at;
            if self.page_rows == PAGE_ROWS {
                self.end_page(zstd)?;
            }
            at = end;
        }
        Ok(())
    }

    #[inline]
    fn put<T: Copy + PartialEq>(&mut self, values: &[T], none: T, number: impl Fn(T) -> i64) {
        for values in values.chunks(MINI) {
            let to = self.packed.room();
            for (to, value) in to.iter_mut().zip(values) {
                *to = number(*value);
            }
            let Some(presence) = &mut self.presence else {
                self.packed.take(values.len());
                continue;
            };
            let missing: usize = values.iter().map(|value| usize::from(*value == none)).sum();
            let mut bits = if missing == values.len() { 0 } else { u64::MAX >> (64 - values.len()) };
            if missing > 0 && bits > 0 {
                bits = 0;
                let mut count = 0;
                for (at, value) in values.iter().enumerate() {
                    let is_there = *value != none;
                    to[count] = to[at];
                    count += usize::from(is_there);
                    bits |= u64::from(is_there) << at;
                }
            }
            presence.push(bits, values.len());
            self.missing += missing as u64;
            self.packed.take(values.len() - missing);
        }
    }

    fn end_page(&mut self, zstd: &mut Compressor<'_>) -> Result<()> {
        let mut raw = Vec::with_capacity(64 + self.packed.body.len());
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
            Bytes::from(raw)
        } else {
            let small = compressed(&raw, zstd)?;
            let is_worth = self.compression.is_some() || small.len() + len / WORTH <= len;
            self.compression = Some(if is_worth { self.zstd } else { Compression::UNCOMPRESSED });
            if is_worth { small } else { Bytes::from(raw) }
        };
        self.pages.push(stored, len, self.page_rows);
        self.page_rows = 0;
        Ok(())
    }

    /// The bytes of the column, and what the file has to know of them.
    pub(crate) fn close(mut self, zstd: &mut Compressor<'_>) -> Result<(Bytes, ColumnCloseResult)> {
        if self.page_rows > 0 {
            self.end_page(zstd)?;
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

/// The values of a page, packed block by block.
struct Packed {
    is_wide: bool,
    waiting: Box<[i64; BLOCK + MINI]>,
    held: usize,
    /// Values so far, those that wait not counted.
    count: usize,
    first: i64,
    last: i64,
    extremes: (i64, i64),
    body: Vec<u8>,
}

impl Packed {
    fn new(is_wide: bool) -> Self {
        Self {
            is_wide,
            waiting: Box::new([0; BLOCK + MINI]),
            held: 0,
            count: 0,
            first: 0,
            last: 0,
            extremes: (i64::MAX, i64::MIN),
            body: Vec::new(),
        }
    }

    /// Where the next [`MINI`] values go.
    #[inline]
    fn room(&mut self) -> &mut [i64] {
        &mut self.waiting[self.held..self.held + MINI]
    }

    /// So many values were put there.
    #[inline]
    fn take(&mut self, count: usize) {
        self.held += count;
        let full = BLOCK + usize::from(self.count == 0);
        if self.held >= full {
            self.block(full);
            self.waiting.copy_within(full..self.held, 0);
            self.held -= full;
        }
    }

    /// The values of the page, after what the format wants before them; and their extremes.
    fn end(&mut self, sign: i64, out: &mut Vec<u8>) -> Option<(i64, i64)> {
        if self.held > 0 {
            self.block(self.held);
        }
        let first = self.first ^ sign;
        varint(BLOCK as u64, out);
        varint((BLOCK / MINI) as u64, out);
        varint(self.count as u64, out);
        varint(zigzag(if self.is_wide { first } else { i64::from(first as i32) }), out);
        out.extend_from_slice(&self.body);
        let extremes = (self.count > 0).then_some(self.extremes);
        self.body.clear();
        (self.held, self.count, self.extremes) = (0, 0, (i64::MAX, i64::MIN));
        extremes
    }

    /// Packs the first `len` of what waits. The page's first value stands before its blocks, so the
    /// first block takes one more: all blocks but the last hold [`BLOCK`] differences.
    fn block(&mut self, len: usize) {
        let values = &self.waiting[..len];
        let skipped = usize::from(self.count == 0);
        if self.count == 0 {
            self.first = values[0];
            self.last = values[0];
        }
        self.count += len;
        let mut differences = [0_i64; BLOCK];
        let mut before = self.last;
        for (to, value) in differences.iter_mut().zip(&values[skipped..]) {
            *to = value.wrapping_sub(before);
            before = *value;
        }
        let len = len - skipped;
        self.last = before;
        let (least, most) = extremes_of(values);
        self.extremes = (self.extremes.0.min(least), self.extremes.1.max(most));
        if len > 0 {
            if !self.is_wide {
                for value in &mut differences {
                    *value = i64::from(*value as i32);
                }
            }
            pack(&mut differences, len, &mut self.body);
        }
    }
}

fn extremes_of(values: &[i64]) -> (i64, i64) {
    values.iter().fold((i64::MAX, i64::MIN), |(least, most), &value| (least.min(value), most.max(value)))
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// One block: the least difference, the bits of what the others are above it, and these.
fn pack(differences: &mut [i64; BLOCK], len: usize, out: &mut Vec<u8>) {
    let first = differences[0];
    let is_even = differences[..len].iter().fold(0_i64, |all, value| all | (value ^ first)) == 0;
    let least = if is_even { first } else { differences[..len].iter().copied().fold(i64::MAX, i64::min) };
    varint(zigzag(least), out);
    let widths = out.len();
    out.extend_from_slice(&[0; BLOCK / MINI]);
    if is_even {
        return;
    }
    let mut above = [0_u64; BLOCK];
    for (to, value) in above.iter_mut().zip(&differences[..len]) {
        *to = value.wrapping_sub(least) as u64;
    }
    for (at, mini) in above.chunks_exact_mut(MINI).take(len.div_ceil(MINI)).enumerate() {
        let width = u64::BITS - mini.iter().fold(0_u64, |all, value| all | *value).leading_zeros();
        out[widths + at] = width as u8;
        pack_mini(mini, width, out);
    }
}

/// [`MINI`] numbers of so many bits. Neighbours are joined while two have room in a word, so that
/// most of the work is done on several at once.
fn pack_mini(mini: &mut [u64], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut len, mut joined) = (mini.len(), width);
    while joined <= 32 && len > 1 {
        len /= 2;
        for at in 0..len {
            mini[at] = mini[2 * at] | (mini[2 * at + 1] << joined);
        }
        joined *= 2;
    }
    let (mut bits, mut held) = (0_u64, 0_u32);
    for &number in &mini[..len] {
        bits |= number << held;
        held += joined;
        if held >= 64 {
            out.extend_from_slice(&bits.to_le_bytes());
            held -= 64;
            bits = number.checked_shr(joined - held).unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packing bit by bit, as the format describes it.
    fn slowly(numbers: &[u64], width: u32) -> Vec<u8> {
        let mut out = vec![0; numbers.len() * width as usize / 8];
        for (at, number) in numbers.iter().enumerate() {
            for bit in 0..width as usize {
                let to = at * width as usize + bit;
                out[to / 8] |= ((number >> bit & 1) as u8) << (to % 8);
            }
        }
        out
    }

    #[test]
    fn numbers_of_every_width_are_packed_bit_by_bit() {
        for width in 0..=64 {
            let most = u64::MAX.checked_shr(64 - width).unwrap_or(0);
            let mut mini: Vec<u64> = (1..=64u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) & most).collect();
            let expected = slowly(&mini, width);
            let mut out = Vec::new();
            pack_mini(&mut mini, width, &mut out);
            assert_eq!(out, expected, "{width}");
        }
    }
}
