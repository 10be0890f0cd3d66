//! Text of numbers, as pgbench writes them into SQL.
//!
//! Integers are decimal. Doubles have 15 significant digits, in the shorter of fixed and scientific notation, like
//! `%.15g` of C's printf; special values are spelled as in `PostgreSQL`.

use std::io::Write;

/// Significant digits of a double's text.
const DIGITS: usize = 15;

/// Appends an integer.
pub(crate) fn write_int(number: i64, out: &mut Vec<u8>) {
    let mut buffer = [0_u8; 20];
    let mut rest = number.unsigned_abs();
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&buffer[start..]);
}

/// Appends a double.
pub(crate) fn write_double(number: f64, out: &mut Vec<u8>) {
    if number.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if number.is_sign_negative() {
        out.push(b'-');
    }
    if number.is_infinite() {
        out.extend_from_slice(b"Infinity");
        return;
    }
    let (digits, exponent) = decompose(number.abs());
    let significant = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    let digits = &digits[..significant];
    if exponent < -4 || exponent >= DIGITS as i32 {
        write_scientific(digits, exponent, out);
    } else {
        write_fixed(digits, exponent, out);
    }
}

/// Returns the 15 rounded decimal digits of a number, and the power of ten of the first digit.
fn decompose(number: f64) -> ([u8; DIGITS], i32) {
    let mut text = [0_u8; 32];
    let mut rest = &mut text[..];
    let written = write!(rest, "{number:.precision$e}", precision = DIGITS - 1);
    debug_assert!(written.is_ok(), "a double in this form has at most 22 characters");
    let unused = rest.len();
    let used = text.len() - unused;
    let mut digits = [b'0'; DIGITS];
    digits[0] = text[0];
    digits[1..].copy_from_slice(&text[2..=DIGITS]);
    let exponent = std::str::from_utf8(&text[DIGITS + 2..used]).ok().and_then(|e| e.parse().ok());
    (digits, exponent.unwrap_or(0))
}

fn write_scientific(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    if exponent.abs() < 10 {
        out.push(b'0');
    }
    write_int(i64::from(exponent.abs()), out);
}

fn write_fixed(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
        out.extend_from_slice(digits);
        return;
    }
    let whole = exponent as usize + 1;
    let split = whole.min(digits.len());
    out.extend_from_slice(&digits[..split]);
    out.extend(std::iter::repeat_n(b'0', whole - split));
    if digits.len() > whole {
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    }
}

#[cfg(test)]
mod tests {
    use super::{write_double, write_int};

    #[test]
    fn integers_are_decimal() {
        for number in [0, 7, -7, 10, -100, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_int(number, &mut out);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }

    /// Expected texts are those of printf with "%.15g" (special values: those that pgbench 15 sends).
    #[test]
    fn doubles_have_fifteen_digits() {
        let table = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-1.5, "-1.5"),
            (100.0, "100"),
            (123_456.789, "123456.789"),
            (std::f64::consts::PI, "3.14159265358979"),
            (1.0 / 3.0, "0.333333333333333"),
            (2.0 / 3.0, "0.666666666666667"),
            (0.000_123_4, "0.0001234"),
            (0.000_012_34, "1.234e-05"),
            (999_999_999_999_999.0, "999999999999999"),
            (1e15, "1e+15"),
            (9_999_999_999_999_995.0, "1e+16"),
            (1.5e300, "1.5e+300"),
            (-2.5e-300, "-2.5e-300"),
            (5e-324, "4.94065645841247e-324"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ];
        for (number, expected) in table {
            let mut out = Vec::new();
            write_double(number, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected, "{number:e}");
        }
    }
}
