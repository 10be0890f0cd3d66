//! The incomplete beta and gamma functions as logarithms, so that tails far below the range of a float keep their size.
//!
//! Both are computed from a leading factor and a series or continued fraction (Didonato and Morris 1992; DLMF 8.11.4,
//! 8.9.2). The leading factor is a binomial or Poisson probability, computed by its saddle point (Loader 2000, *Fast
//! and accurate computation of binomial probabilities*): no digits are lost where counts are in the millions.

use std::f64::consts::PI;

const TINY: f64 = 1e-300;
const ENOUGH: f64 = 1e-16;
const LAST_STEP: u32 = 200_000;

/// Returns `ln I_x(a, b)` of the regularised incomplete beta function. `rest` is 1 - x, passed separately because
/// either may be tiny; `a` and `b` are above 0.
pub(crate) fn ln_beta_regularised(a: f64, b: f64, x: f64, rest: f64) -> f64 {
    if rest <= 0.0 {
        return 0.0;
    }
    if x <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let front = ln_beta_front(a, b, x, rest);
    if x * b <= a * rest {
        (front - beta_fraction(a, b, x, rest).ln()).min(0.0)
    } else {
        // I_x(a, b) = 1 - I_(1-x)(b, a)
        ln_of_rest(front - beta_fraction(b, a, rest, x).ln())
    }
}

/// Returns the logarithm of `x^a (1 - x)^b / B(a, b)`, the leading factor of the incomplete beta function.
pub(crate) fn ln_beta_front(a: f64, b: f64, x: f64, rest: f64) -> f64 {
    let n = a + b;
    0.5 * (a * b / (n * 2.0 * PI)).ln() + stirling_error(n)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, n * x)
        - deviance(b, n * rest)
}

/// Returns `ln Q(a, x)` of the regularised upper incomplete gamma function; `a` is above 0, `x` not below 0.
pub(crate) fn ln_gamma_upper(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x.is_infinite() {
        return f64::NEG_INFINITY;
    }
    let front = ln_gamma_front(a, x);
    if x < a + 1.0 {
        let (mut term, mut sum, mut step) = (1.0, 1.0, a);
        while term > sum * ENOUGH {
            step += 1.0;
            term *= x / step;
            sum += term;
        }
        ln_of_rest(front - a.ln() + sum.ln())
    } else {
        (front + gamma_fraction(a, x).ln()).min(0.0)
    }
}

/// Returns the logarithm of `x^a e^-x / Gamma(a)`, the leading factor of the incomplete gamma function.
pub(crate) fn ln_gamma_front(a: f64, x: f64) -> f64 {
    0.5 * (a / (2.0 * PI)).ln() - stirling_error(a) - deviance(a, x)
}

/// Returns `ln(1 - e^ln_part)` for a logarithm not above 0.
fn ln_of_rest(ln_part: f64) -> f64 {
    if ln_part >= 0.0 { f64::NEG_INFINITY } else { (-ln_part.exp()).ln_1p() }
}

/// Returns `ln Gamma(x + 1) - (x + 1/2) ln x + x - ln(2 pi) / 2`, the error of Stirling's formula (DLMF 5.11.1). Below
/// 16 the recurrence of the gamma function leads to a larger x.
fn stirling_error(x: f64) -> f64 {
    let (mut up, mut steps, mut product) = (x, 0.0, 1.0);
    while up < 16.0 {
        up += 1.0;
        steps += 1.0;
        product *= up;
    }
    let inverse = 1.0 / up;
    let square = inverse * inverse;
    let mut series = 0.0;
    for term in [1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0] {
        series = series * square + term;
    }
    let above = series * inverse;
    if steps == 0.0 { above } else { above + (up + 0.5) * up.ln() - steps - product.ln() - (x + 0.5) * x.ln() }
}

/// Returns `x ln(x / mean) + mean - x` without loss of digits where `x` is near `mean`; both are above 0.
fn deviance(x: f64, mean: f64) -> f64 {
    let away = x - mean;
    if away.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() - away;
    }
    let ratio = away / (x + mean);
    let square = ratio * ratio;
    let (mut sum, mut power, mut odd) = (away * ratio, 2.0 * x * ratio, 1.0);
    loop {
        power *= square;
        odd += 2.0;
        let next = sum + power / odd;
        if next.to_bits() == sum.to_bits() {
            return sum;
        }
        sum = next;
    }
}

/// Returns the continued fraction by which the leading factor is divided to give `I_x(a, b)` (Didonato and Morris 1992,
/// *Algorithm 708*, section 8), by Lentz's method; it converges for `x` up to `a / (a + b)`. The first term is computed
/// from `rest`, not from x, so that no digits are lost where x is close to 1.
fn beta_fraction(a: f64, b: f64, x: f64, rest: f64) -> f64 {
    let (mut value, mut above, mut below) = (0.0, 0.0, 0.0);
    for step in 0..LAST_STEP {
        let step = f64::from(step);
        let (next, before) = (a + 2.0 * step + 1.0, a + 2.0 * step - 1.0);
        let whole = step
            + if step > 0.0 { step * (b - step) * x / before } else { 0.0 }
            + (a + step) * (a * rest - b * x + 1.0 + step * (1.0 + rest)) / next;
        if step == 0.0 {
            value = above_zero(whole);
            above = value;
            continue;
        }
        let part = (a + step - 1.0) * (a + b + step - 1.0) * step * (b - step) * x * x / (before * before);
        below = 1.0 / above_zero(whole + part * below);
        above = above_zero(whole + part / above);
        value *= above * below;
        if (above * below - 1.0f64).abs() < ENOUGH {
            break;
        }
    }
    value
}

/// Returns the continued fraction of `Q(a, x)` without its leading factor, in the contracted form of its even part
/// (DLMF 8.9.2); it converges for `x > a + 1`.
fn gamma_fraction(a: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let (mut above, mut below) = (1.0 / TINY, 1.0 / b);
    let mut value = below;
    for step in 1..LAST_STEP {
        let step = f64::from(step);
        let term = -step * (step - a);
        b += 2.0;
        below = 1.0 / above_zero(term * below + b);
        above = above_zero(b + term / above);
        value *= above * below;
        // Far out the product is never nearer to 1 than by its own rounding.
        if (above * below - 1.0f64).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}

fn above_zero(value: f64) -> f64 {
    if value == 0.0 { TINY } else { value }
}
