//! PostgreSQL's numeric as an integer in units of the last digit.

/// Reason why a numeric cannot be represented as such an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDecimal {
    /// The number is NaN.
    Nan,
    /// The number is infinite.
    Infinite,
    /// The number has more digits than the column.
    Digits,
    /// The bytes are not a valid numeric.
    Torn,
}

/// Decodes the binary form into units of 10^-`scale`.
///
/// The form is: number of digits, weight of the first digit, sign, display scale, digits in base 10,000.
///
/// # Errors
/// The value is not a finite number, or has more digits than fit.
#[inline]
pub fn unscaled(bytes: &[u8], scale: i8) -> Result<i128, NotDecimal> {
    let (head, digits) = bytes.split_first_chunk::<8>().ok_or(NotDecimal::Torn)?;
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (count, weight, sign) = (usize::from(word(0)), i32::from(word(2) as i16), word(4));
    match sign {
        0 | 0x4000 => {}
        0xC000 => return Err(NotDecimal::Nan),
        0xD000 | 0xF000 => return Err(NotDecimal::Infinite),
        _ => return Err(NotDecimal::Torn),
    }
    if digits.len() != 2 * count {
        return Err(NotDecimal::Torn);
    }
    if count == 0 {
        return Ok(0);
    }
    // Decimal places between the end of the last digit and the scale; below 0 the digit extends beyond the scale.
    let beyond = i32::from(scale) + 4 * (weight + 1 - count as i32);
    let whole = |digits: &[u8]| -> Result<i128, NotDecimal> {
        let mut sum = 0_i128;
        for pair in digits.chunks_exact(2) {
            let digit = i128::from(u16::from_be_bytes([pair[0], pair[1]]));
            sum = sum.checked_mul(10_000).and_then(|sum| sum.checked_add(digit)).ok_or(NotDecimal::Digits)?;
        }
        Ok(sum)
    };
    let number = if beyond >= 0 {
        let power = 10_i128.checked_pow(beyond.unsigned_abs()).ok_or(NotDecimal::Digits)?;
        whole(digits)?.checked_mul(power).ok_or(NotDecimal::Digits)?
    } else if beyond > -4 {
        let cut = 10_i128.pow(beyond.unsigned_abs());
        let (before, last) = digits.split_at(digits.len() - 2);
        let last = i128::from(u16::from_be_bytes([last[0], last[1]]));
        if last % cut != 0 {
            return Err(NotDecimal::Digits);
        }
        whole(before)?
            .checked_mul(10_000 / cut)
            .and_then(|sum| sum.checked_add(last / cut))
            .ok_or(NotDecimal::Digits)?
    } else {
        return Err(NotDecimal::Digits);
    };
    Ok(if sign == 0 { number } else { -number })
}

/// Appends the binary form of `number` units of 10^-`scale`.
pub fn numeric(number: i128, scale: i8, out: &mut Vec<u8>) {
    let sign: u16 = if number < 0 { 0x4000 } else { 0 };
    let places = i32::from(scale).max(0);
    // Fills up the places so that the decimal point is between two digits to the base of 10,000.
    let filler = (4 - places % 4) % 4;
    let mut digits = [0_u16; 12];
    let mut count = 0;
    let mut rest = number.unsigned_abs();
    let first = 10_u128.pow(4 - filler as u32);
    while rest > 0 {
        let (cut, times) = if count == 0 { (first, 10_u16.pow(filler as u32)) } else { (10_000, 1) };
        digits[count] = (rest % cut) as u16 * times;
        rest /= cut;
        count += 1;
    }
    let after = (places + filler) / 4;
    let weight = count as i32 - 1 - after;
    let from = digits[..count].iter().position(|&digit| digit != 0).unwrap_or(count);
    let kept = &digits[from..count];
    let words = [kept.len() as u16, if kept.is_empty() { 0 } else { weight as u16 }, sign, places as u16];
    for word in words.iter().chain(kept.iter().rev()) {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn the_servers_own_examples() {
        // 12345.67, as `select numeric_send(12345.67)` returns it: digits 1, 2345, 6700
        let form = bytes(&[3, 1, 0, 2, 1, 2345, 6700]);
        assert_eq!(unscaled(&form, 2), Ok(1_234_567));
        assert_eq!(unscaled(&form, 4), Ok(123_456_700));
        assert_eq!(unscaled(&form, 1), Err(NotDecimal::Digits));
        let mut ours = Vec::new();
        numeric(1_234_567, 2, &mut ours);
        assert_eq!(ours, form);
    }

    #[test]
    fn what_is_no_number_is_named() {
        assert_eq!(unscaled(&bytes(&[0, 0, 0xC000, 0]), 2), Err(NotDecimal::Nan));
        assert_eq!(unscaled(&bytes(&[0, 0, 0xD000, 0]), 2), Err(NotDecimal::Infinite));
        assert_eq!(unscaled(&bytes(&[0, 0, 0xF000, 0]), 2), Err(NotDecimal::Infinite));
        assert_eq!(unscaled(&bytes(&[2, 0, 0, 0, 1]), 2), Err(NotDecimal::Torn));
        assert_eq!(unscaled(&[0, 0], 2), Err(NotDecimal::Torn));
        assert_eq!(unscaled(&bytes(&[1, 12, 0, 0, 9]), 0), Err(NotDecimal::Digits));
    }

    proptest! {
        #[test]
        fn any_38_digits_come_back(number in -(10_i128.pow(38) - 1)..10_i128.pow(38), scale in 0_i8..39, cut in 0_u32..38) {
            let number = number / 10_i128.pow(cut);
            let mut form = Vec::new();
            numeric(number, scale, &mut form);
            prop_assert_eq!(unscaled(&form, scale), Ok(number));
        }

        #[test]
        fn no_bytes_make_it_panic(form in prop::collection::vec(any::<u8>(), 0..40), scale in any::<i8>()) {
            let _ = unscaled(&form, scale);
        }
    }
}
