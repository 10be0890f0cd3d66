//! Whole numbers as packed differences (`DELTA_BINARY_PACKED` in the Parquet format's description of encodings), packed
//! a block at a time.
//!
//! [`BLOCK`] differences are computed, measured and packed at once. If all numbers of a block are within 2^30 of the
//! last number before the block, as in most blocks, 32 bits per difference suffice, so a register holds twice as many
//! differences. A sequence that is constant or rises by equal steps costs only the check for that.

use crate::chunk::varint;

/// Number of differences in a block.
const BLOCK: usize = 256;
/// Number of differences that are packed with the same width; with w bits each, they fill w 64-bit words.
pub(crate) const MINI: usize = 64;

/// Values of a page, packed block by block.
pub(crate) struct Packed {
    pub(crate) is_wide: bool,
    waiting: Box<[i64; BLOCK + MINI]>,
    held: usize,
    /// Number of values packed so far, without the values that are still waiting.
    count: usize,
    first: i64,
    last: i64,
    extremes: (i64, i64),
    body: Vec<u8>,
}

impl Packed {
    pub(crate) fn new(is_wide: bool) -> Self {
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

    /// Returns the space for the next [`MINI`] values.
    #[inline(always)]
    pub(crate) fn room(&mut self) -> &mut [i64] {
        &mut self.waiting[self.held..self.held + MINI]
    }

    /// Accepts `count` values that were written into the space that [`Self::room`] returned.
    #[inline(always)]
    pub(crate) fn take(&mut self, count: usize) {
        self.held += count;
        let full = BLOCK + usize::from(self.count == 0);
        if self.held >= full {
            self.block(full);
            self.waiting.copy_within(full..self.held, 0);
            self.held -= full;
        }
    }

    /// Writes the page with its header, and returns its smallest and largest value.
    pub(crate) fn end(&mut self, sign: i64, out: &mut Vec<u8>) -> Option<(i64, i64)> {
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

    /// Packs the first `len` waiting values. The first value of a page is stored before its blocks, so the first block
    /// needs one value more: all blocks but the last contain [`BLOCK`] differences.
    #[inline(always)]
    fn block(&mut self, len: usize) {
        let skipped = usize::from(self.count == 0);
        if self.count == 0 {
            let first = self.waiting[0];
            (self.first, self.last) = (first, first);
            self.widen(first, first);
        }
        self.count += len;
        let (before, values) = (self.last, &self.waiting[skipped..len]);
        let Some(&last) = values.last() else { return };
        self.last = last;
        let mut from = [0_i32; BLOCK + 1];
        let (least, most) = match steps(before, values, &mut from) {
            Distances::None => {
                self.body.extend_from_slice(&[0; 1 + BLOCK / MINI]);
                (before, before)
            }
            Distances::Near => {
                let (least, most) = pack_near(&from[..=values.len()], &mut self.body);
                (before + i64::from(least), before + i64::from(most))
            }
            Distances::Far => pack_wide(before, values, self.is_wide, &mut self.body),
        };
        self.widen(least, most);
    }

    #[inline(always)]
    fn widen(&mut self, least: i64, most: i64) {
        self.extremes = (self.extremes.0.min(least), self.extremes.1.max(most));
    }
}

/// Largest distance from the last value of the preceding block at which the values of a block are packed as 32 bits
/// each.
const NEAR: i64 = 1 << 30;

/// How far the values of a block are from `before`, the last value of the preceding block.
enum Distances {
    /// All values of the block equal `before`.
    None,
    /// All values are within [`NEAR`]: differences have half the width, so twice as many are processed at once.
    Near,
    /// At least one value is farther away than [`NEAR`].
    Far,
}

/// Writes the distance of each value from `before`, the last value of the preceding block, to `from[1..]`; `from[0]`
/// stays 0.
#[inline(always)]
fn steps(before: i64, values: &[i64], from: &mut [i32; BLOCK + 1]) -> Distances {
    let (mut far, mut any) = (0_u64, 0);
    for (to, value) in from[1..].iter_mut().zip(values) {
        let step = value.wrapping_sub(before);
        far |= step.wrapping_add(NEAR) as u64;
        any |= step;
        *to = step as i32;
    }
    match any {
        0 => Distances::None,
        _ if far < 2 * NEAR as u64 => Distances::Near,
        _ => Distances::Far,
    }
}

/// Packs a block. `from` has a 0, then the distance of each value from the last value of the preceding block. Returns
/// the smallest and the largest of these distances.
#[inline(always)]
fn pack_near(from: &[i32], out: &mut Vec<u8>) -> (i32, i32) {
    let mut above = [0_u32; BLOCK];
    let (first, len) = (from[1], from.len() - 1);
    let (mut least, mut all) = (first, 0);
    for ((to, value), before) in above.iter_mut().zip(&from[1..]).zip(from) {
        let difference = value - before;
        *to = difference as u32;
        all |= difference ^ first;
        least = least.min(difference);
    }
    varint(zigzag(i64::from(least)), out);
    let widths = out.len();
    out.extend_from_slice(&[0; BLOCK / MINI]);
    let extremes = if least >= 0 { (first, from[len]) } else { extremes_near(&from[1..]) };
    if all == 0 {
        return extremes;
    }
    above[..len].iter_mut().for_each(|value| *value = value.wrapping_sub(least as u32));
    for (at, mini) in above.chunks_exact(MINI).take(len.div_ceil(MINI)).enumerate() {
        let bits = mini.iter().fold(0, |all, value| all | value);
        let width = u32::BITS - bits.leading_zeros();
        out[widths + at] = width as u8;
        let mut pairs = [0_u64; MINI];
        for (to, pair) in pairs.iter_mut().zip(mini.chunks_exact(2)) {
            *to = u64::from(pair[0]) | u64::from(pair[1]) << width;
        }
        pack_joined(&mut pairs, MINI / 2, 2 * width, out);
    }
    extremes
}

#[inline(always)]
fn extremes_near(steps: &[i32]) -> (i32, i32) {
    steps.iter().fold((i32::MAX, i32::MIN), |(low, high), &step| (low.min(step), high.max(step)))
}

/// Packs a block of values at any distance; returns the smallest and the largest of them.
#[inline(always)]
fn pack_wide(before: i64, values: &[i64], is_wide: bool, out: &mut Vec<u8>) -> (i64, i64) {
    let mut differences = [0_i64; BLOCK];
    let mut last = before;
    for (to, value) in differences.iter_mut().zip(values) {
        let difference = value.wrapping_sub(last);
        *to = if is_wide { difference } else { i64::from(difference as i32) };
        last = *value;
    }
    pack(&mut differences, values.len(), out);
    extremes_of(values)
}

#[inline(always)]
fn extremes_of(values: &[i64]) -> (i64, i64) {
    values.iter().fold((i64::MAX, i64::MIN), |(least, most), &value| (least.min(value), most.max(value)))
}

#[inline(always)]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Packs one block: writes the smallest difference, the bit widths, and by how much each difference exceeds the
/// smallest one.
#[inline(always)]
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

/// Packs [`MINI`] numbers of `width` bits.
#[inline(always)]
fn pack_mini(mini: &mut [u64], width: u32, out: &mut Vec<u8>) {
    pack_joined(mini, MINI, width, out);
}

/// Packs the first `len` numbers of `width` bits. Neighbours are joined as long as two fit in a 64-bit word, so that
/// most of the work is done on several numbers at once.
#[inline(always)]
fn pack_joined(numbers: &mut [u64], mut len: usize, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mut joined = width;
    while joined <= 32 && len > 1 {
        len /= 2;
        for at in 0..len {
            numbers[at] = numbers[2 * at] | (numbers[2 * at + 1] << joined);
        }
        joined *= 2;
    }
    let (mut bits, mut held) = (0_u64, 0_u32);
    let (mut words, mut full) = ([0; 8 * MINI], 0);
    for &number in &numbers[..len] {
        bits |= number << held;
        held += joined;
        if held >= 64 {
            words[full..full + 8].copy_from_slice(&bits.to_le_bytes());
            full += 8;
            held -= 64;
            bits = number.checked_shr(joined - held).unwrap_or(0);
        }
    }
    out.extend_from_slice(&words[..full]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs numbers bit by bit, as the Parquet format describes it.
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

    /// Unpacks the numbers of a page as a reader does; asserts that all its bytes are used.
    fn unpacked(page: &[u8], is_wide: bool) -> Vec<i64> {
        let mut at = 0;
        let varint = |at: &mut usize| {
            let (mut value, mut shift) = (0_u64, 0);
            loop {
                let byte = page[*at];
                *at += 1;
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        };
        let signed = |value: u64| (value >> 1) as i64 ^ -((value & 1) as i64);
        assert_eq!((varint(&mut at), varint(&mut at)), (256, 4));
        let count = varint(&mut at) as usize;
        let mut found = vec![signed(varint(&mut at))];
        while found.len() < count {
            let least = signed(varint(&mut at));
            let widths: Vec<usize> = page[at..at + 4].iter().map(|width| usize::from(*width)).collect();
            at += 4;
            for width in widths {
                if found.len() >= count {
                    assert_eq!(width, 0);
                    continue;
                }
                for number in 0..64 {
                    let bit =
                        |n: usize| u64::from(page[at + (number * width + n) / 8] >> ((number * width + n) % 8) & 1);
                    let above = (0..width).fold(0, |all, n| all | bit(n) << n);
                    let value = found[found.len() - 1].wrapping_add(least).wrapping_add(above as i64);
                    found.push(if is_wide { value } else { i64::from(value as i32) });
                    assert!(found.len() <= count || above == 0, "padding is 0");
                }
                at += width * 8;
            }
        }
        found.truncate(count);
        assert_eq!(at, page.len());
        found
    }

    #[test]
    fn numbers_near_and_far_are_read_back_with_their_extremes() {
        let steps = [0, 1, -1, 90, (1 << 30) - 1, -(1 << 30), 1 << 30, -(1 << 30) - 1, 1 << 31, i64::MAX, i64::MIN + 1];
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        for len in [1, 2, 63, 64, 65, 255, 256, 257, 258, 513, 1_000] {
            for round in 0..60_usize {
                let mut value = 140_000_000_001_000_i64;
                let values: Vec<i64> = (0..len)
                    .map(|at| {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let is_far = round % 3 == 2 && random.trailing_zeros() >= 5;
                        let step = steps[(random >> 32) as usize % steps.len()];
                        value = match round % 4 {
                            0 => value,
                            1 => value + i64::from(at),
                            2 => value + (random % 300) as i64,
                            _ => 140_000_000_001_000 + (random % 90) as i64 * 1_000,
                        };
                        value = if is_far { value.wrapping_add(step) } else { value };
                        value
                    })
                    .collect();
                for is_wide in [true, false] {
                    let values: Vec<i64> =
                        values.iter().map(|value| if is_wide { *value } else { i64::from(*value as u32) }).collect();
                    let (mut packed, mut out) = (Packed::new(is_wide), Vec::new());
                    for stretch in values.chunks(MINI) {
                        packed.room()[..stretch.len()].copy_from_slice(stretch);
                        packed.take(stretch.len());
                    }
                    let extremes = packed.end(0, &mut out);
                    let narrow = |value: i64| if is_wide { value } else { i64::from(value as i32) };
                    let expected: Vec<i64> = values.iter().map(|value| narrow(*value)).collect();
                    assert_eq!(unpacked(&out, is_wide), expected, "{len} {round}");
                    assert_eq!(extremes, values.iter().min().copied().zip(values.iter().max().copied()));
                }
            }
        }
    }
}
