//! Numbers with twice a double's digits (about 31), as the sum of two doubles, and the trait that lets a least squares
//! fit be written once for these and for doubles.
//!
//! The sums and products are those of Dekker (1971) and Knuth (TAOCP 2, 4.2.2): the rounding error of a sum or a
//! product of two doubles is itself a double, and is kept.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// Operations on numbers that the fit needs.
pub trait Real:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + From<f64>
    + Send
    + Sync
{
    /// Returns the square root; 0 for numbers that are not positive.
    #[must_use]
    fn root(self) -> Self;
    /// Rounds to a double.
    fn round(self) -> f64;
    /// Returns zero.
    fn zero() -> Self {
        Self::from(0.0)
    }
}

impl Real for f64 {
    fn root(self) -> Self {
        if self > 0.0 { self.sqrt() } else { 0.0 }
    }
    fn round(self) -> f64 {
        self
    }
}

/// A double-double: the value is `hi + lo`, with `lo` at most half a unit of the last place of `hi`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dd {
    hi: f64,
    lo: f64,
}

impl From<f64> for Dd {
    fn from(value: f64) -> Self {
        Self { hi: value, lo: 0.0 }
    }
}

/// Returns a + b and its rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Returns a + b and its rounding error; a must have the larger magnitude.
fn quick_sum(a: f64, b: f64) -> Dd {
    let sum = a + b;
    Dd { hi: sum, lo: b - (sum - a) }
}

/// Splits a double into a sum of two with 26 bits each.
fn split(a: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * a; // 2^27 + 1
    let high = scaled - (scaled - a);
    (high, a - high)
}

/// Returns a * b and its rounding error; exact below about 1e300.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((ah, al), (bh, bl)) = (split(a), split(b));
    (product, ((ah * bh - product) + ah * bl + al * bh) + al * bl)
}

impl Add for Dd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (hi, error) = two_sum(self.hi, other.hi);
        let (lo, rest) = two_sum(self.lo, other.lo);
        let first = quick_sum(hi, error + lo);
        quick_sum(first.hi, first.lo + rest)
    }
}

impl Neg for Dd {
    type Output = Self;
    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for Dd {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Dd {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (hi, error) = two_product(self.hi, other.hi);
        quick_sum(hi, error + (self.hi * other.lo + self.lo * other.hi))
    }
}

impl Div for Dd {
    type Output = Self;
    /// Divides by long division: three digits, each a double.
    fn div(self, other: Self) -> Self {
        let first = self.hi / other.hi;
        let rest = self - other * Self::from(first);
        let second = rest.hi / other.hi;
        let third = (rest - other * Self::from(second)).hi / other.hi;
        quick_sum(first, second) + Self::from(third)
    }
}

impl Real for Dd {
    /// Computes the square root by one Newton step from the square root of the leading double (Karp and Markstein
    /// 1997).
    fn root(self) -> Self {
        if self.hi <= 0.0 {
            return Self::from(0.0);
        }
        let near = self.hi.sqrt();
        let rest = self - Self::from(near) * Self::from(near);
        Self::from(near) + Self::from(rest.hi / (2.0 * near))
    }
    fn round(self) -> f64 {
        self.hi + self.lo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(a: Dd, b: Dd) -> f64 {
        (a - b).round().abs() / b.round().abs()
    }

    #[test]
    fn thirty_digits_survive_each_operation() {
        let third = Dd::from(1.0) / Dd::from(3.0);
        assert!(apart(third + third + third, Dd::from(1.0)) < 1e-31);
        assert!(apart(third * Dd::from(3.0), Dd::from(1.0)) < 1e-31);
        let two = Dd::from(2.0).root();
        assert!(apart(two * two, Dd::from(2.0)) < 1e-30);
        let tiny = Dd::from(1.0) + Dd::from(1e-25) - Dd::from(1.0);
        assert!((tiny.round() / 1e-25 - 1.0).abs() < 1e-5);
        assert_eq!(Dd::from(-4.0).root().round().to_bits(), 0.0f64.to_bits());
    }
}
