//! Parsers of whole numbers: eight digits at a time if the line is as expected, otherwise digit by digit with every
//! check. Both give the same number, or the first parser returns `None`.

use crate::oracle_10046::record::Reason;

/// Powers of ten up to eight digits.
const POW10: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Mask of the high bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the value of eight digits, the first in the lowest byte, each as its value 0 to 9.
///
/// Neighbours are joined in pairs, pairs in fours, fours in eights (the usual method of SWAR parsers).
#[inline(always)]
fn eight(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

/// Returns the word at `at`, lowest byte first.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let slice = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(slice.try_into().ok()?))
}

/// Reads a number of 1 to 19 digits at `at`; returns it and where it ends. `None` if there is no digit, if there are
/// too many, or if fewer than eight bytes follow: the careful path then decides.
#[inline(always)]
pub(super) fn forward(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    let mut end = at;
    loop {
        let digits = word(bytes, end)? ^ 0x3030_3030_3030_3030;
        let other = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH;
        if other == 0 {
            if end - at >= 16 {
                return None;
            }
            value = value.wrapping_mul(POW10[8]).wrapping_add(eight(digits));
            end += 8;
            continue;
        }
        let count = (other.trailing_zeros() >> 3) as usize;
        if count > 0 {
            let rest = eight(digits << (64 - 8 * count));
            value = value.wrapping_mul(POW10[count]).wrapping_add(rest);
            end += count;
        }
        return (end > at && end - at <= 19).then_some((value, end));
    }
}

/// Reads a number that usually has one digit: that case is tried first.
#[inline(always)]
pub(in crate::oracle_10046) fn short(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = bytes.get(at)?.wrapping_sub(b'0');
    let second = bytes.get(at + 1)?.wrapping_sub(b'0');
    if first < 10 && second >= 10 {
        return Some((u64::from(first), at + 1));
    }
    forward(bytes, at)
}

/// Reads a number of 1 to 18 digits that ends before `end`; returns it and where it starts.
#[inline(always)]
pub(super) fn backward(bytes: &[u8], end: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    let mut scale = 1_u64;
    let mut start = end;
    loop {
        let digits = word(bytes, start.checked_sub(8)?)? ^ 0x3030_3030_3030_3030;
        let low = digits & !HIGH;
        let other = (low.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH;
        if other == 0 {
            if end - start >= 16 {
                return None;
            }
            value = value.wrapping_add(eight(digits).wrapping_mul(scale));
            scale = scale.wrapping_mul(POW10[8]);
            start -= 8;
            continue;
        }
        let count = (other.leading_zeros() >> 3) as usize;
        if count > 0 {
            let top = digits >> (64 - 8 * count) << (64 - 8 * count);
            value = value.wrapping_add(eight(top).wrapping_mul(scale));
            start -= count;
        }
        return (start < end && end - start <= 18).then_some((value, start));
    }
}

/// Cache of numbers that recur line after line and are compared instead of parsed: cursors, and the upper digits of the
/// clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memo {
    cursor_text: u128,
    cursor_mask: u128,
    cursor: u64,
    cursor_len: usize,
    clock_text: u64,
    clock: u64,
    clock_len: usize,
}

impl Memo {
    /// Reads a cursor number as [`forward`] does.
    #[inline(always)]
    pub(super) fn cursor(&mut self, bytes: &[u8], at: usize) -> Option<(u64, usize)> {
        let text = u128::from_le_bytes(bytes.get(at..at + 16)?.try_into().ok()?);
        if text & self.cursor_mask == self.cursor_text && self.cursor_len > 0 {
            return Some((self.cursor, at + self.cursor_len));
        }
        let (cursor, end) = forward(bytes, at)?;
        if end - at < 16 {
            // The digits and what ends them.
            self.cursor_mask = u128::MAX >> (8 * (15 - (end - at)));
            self.cursor_text = text & self.cursor_mask;
            self.cursor = cursor;
            self.cursor_len = end - at;
        }
        Some((cursor, end))
    }

    /// Reads the clock as [`backward`] does.
    #[inline(always)]
    pub(super) fn clock(&mut self, bytes: &[u8], end: usize) -> Option<(u64, usize)> {
        let text = word(bytes, end.checked_sub(16)?)?;
        let digits = word(bytes, end - 8)? ^ 0x3030_3030_3030_3030;
        let low = digits & !HIGH;
        let all_digits = (low.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH == 0;
        if all_digits && text == self.clock_text && self.clock_len > 0 {
            return Some((self.clock + eight(digits), end - self.clock_len));
        }
        let (clock, start) = backward(bytes, end)?;
        if (9..16).contains(&(end - start)) {
            self.clock_text = text;
            self.clock = clock - clock % POW10[8];
            self.clock_len = end - start;
        }
        Some((clock, start))
    }
}

/// Parses all of `text` as an unsigned number.
pub(super) fn unsigned(text: &[u8]) -> Result<u64, Reason> {
    if text.is_empty() {
        return Err(Reason::Torn);
    }
    let mut value = 0_u64;
    let mut fits = true;
    for byte in text {
        if !byte.is_ascii_digit() {
            return Err(Reason::Torn);
        }
        let next = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(byte - b'0')));
        fits &= next.is_some();
        value = next.unwrap_or(value);
    }
    if fits { Ok(value) } else { Err(Reason::TooLarge) }
}

/// Parses all of `text` as a number with or without a sign.
pub(super) fn signed(text: &[u8]) -> Result<i64, Reason> {
    if let Some(rest) = text.strip_prefix(b"-") {
        let value = unsigned(rest)?;
        let negated = 0_i64.checked_sub_unsigned(value);
        return negated.filter(|v| *v != i64::MIN).ok_or(Reason::TooLarge);
    }
    i64::try_from(unsigned(text)?).map_err(|_| Reason::TooLarge)
}

/// Parses all of `text` as a number of 64 bits: up to 2^64-1, or negative.
pub(in crate::oracle_10046) fn bits(text: &[u8]) -> Result<i64, Reason> {
    if text.first() == Some(&b'-') {
        let value = unsigned(&text[1..])?;
        return 0_i64.checked_sub_unsigned(value).ok_or(Reason::TooLarge);
    }
    unsigned(text).map(|value| value as i64)
}

/// Parses a time of the trace's own clock: microseconds, or seconds with six decimals, as some tools rewrite the time.
pub(super) fn clock(text: &[u8]) -> Result<i64, Reason> {
    let Some(point) = text.iter().position(|byte| *byte == b'.') else {
        return signed(text);
    };
    let (seconds, micros) = (&text[..point], &text[point + 1..]);
    if micros.len() != 6 {
        return Err(Reason::Torn);
    }
    let whole = i64::try_from(unsigned(seconds)?).map_err(|_| Reason::TooLarge)?;
    let part = unsigned(micros)? as i64;
    whole.checked_mul(1_000_000).and_then(|v| v.checked_add(part)).ok_or(Reason::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_every_length_are_the_same_both_ways() {
        for digits in 1..=20 {
            let text: String = (0..digits).map(|i| char::from(b'1' + (i % 9) as u8)).collect();
            let line = format!("key=xxxxxxxx={text},tail-tail");
            let at = "key=xxxxxxxx=".len();
            let found = forward(line.as_bytes(), at);
            let back = backward(line.as_bytes(), at + text.len());
            if digits <= 19 {
                assert_eq!(found, Some((text.parse().unwrap(), at + digits)), "{text}");
            } else {
                assert_eq!(found, None, "{text}");
            }
            if digits <= 18 {
                assert_eq!(back, Some((text.parse().unwrap(), at)), "{text}");
            } else {
                assert_eq!(back, None, "{text}");
            }
        }
    }

    #[test]
    fn numbers_at_their_limits() {
        assert_eq!(unsigned(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(unsigned(b"18446744073709551616"), Err(Reason::TooLarge));
        assert_eq!(unsigned(b""), Err(Reason::Torn));
        assert_eq!(unsigned(b"12x"), Err(Reason::Torn));
        assert_eq!(signed(b"-40016363"), Ok(-40_016_363));
        assert_eq!(signed(b"9223372036854775807"), Ok(i64::MAX));
        assert_eq!(signed(b"9223372036854775808"), Err(Reason::TooLarge));
        assert_eq!(signed(b"-9223372036854775808"), Err(Reason::TooLarge));
        assert_eq!(bits(b"18446744073709551615"), Ok(-1));
        assert_eq!(clock(b"1268756.518200"), Ok(1_268_756_518_200));
        assert_eq!(clock(b"1268756.5182"), Err(Reason::Torn));
    }

    proptest! {
        #[test]
        fn the_quick_way_agrees_with_the_careful_one(
            before in proptest::collection::vec(any::<u8>(), 8..24),
            number in "[0-9]{1,19}",
            after in proptest::collection::vec(any::<u8>(), 9..20),
        ) {
            let bytes = [before.as_slice(), number.as_bytes(), after.as_slice()].concat();
            if let Some((value, end)) = forward(&bytes, before.len()) {
                prop_assert_eq!(unsigned(&bytes[before.len()..end]), Ok(value));
                prop_assert!(!bytes[end].is_ascii_digit());
                prop_assert_eq!(short(&bytes, before.len()), Some((value, end)));
            }
            let end = before.len() + number.len();
            let mut memo = Memo::default();
            for _ in 0..2 {
                if before.len() + 16 <= bytes.len() {
                    let found = memo.cursor(&bytes, before.len());
                    prop_assert_eq!(found, forward(&bytes, before.len()));
                }
                if end >= 16 {
                    prop_assert_eq!(memo.clock(&bytes, end), backward(&bytes, end));
                }
            }
            if let Some((value, start)) = backward(&bytes, end) {
                prop_assert_eq!(unsigned(&bytes[start..end]), Ok(value));
                prop_assert!(start == 0 || !bytes[start - 1].is_ascii_digit());
            }
        }
    }
}
