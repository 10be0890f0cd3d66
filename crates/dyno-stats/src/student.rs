//! Student's t far into its tails, and with it the significance of a correlation from r and n.
//!
//! `P(|T| > t) = I_x(df/2, 1/2)` with `x = df / (df + t^2)`: the incomplete beta function by its continued fraction
//! (DLMF 8.17.22), with the leading factor kept as a logarithm to avoid underflow. Agrees with other libraries to about
//! 13 digits (`tests/oracles`).

/// Returns the natural logarithm of the two-sided p of a correlation `r` over `n` pairs, for independent pairs of
/// normal values: Student's t with n - 2 degrees of freedom at `r sqrt((n - 2) / (1 - r^2))`, for which `x` is just
/// `1 - r^2`. `None` below three pairs or if r is not within -1..=1.
pub fn correlation_ln_p(r: f64, n: u64) -> Option<f64> {
    if n < 3 || !(-1.0..=1.0).contains(&r) {
        return None;
    }
    let size = r.abs();
    Some(ln_tail((n - 2) as f64 / 2.0, (1.0 - size) * (1.0 + size), size * size))
}

/// Returns the natural logarithm of the two-sided p of Student's t; `None` for NaN or `df` not above 0.
pub fn t_ln_p(t: f64, df: f64) -> Option<f64> {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return None;
    }
    let square = t * t;
    let whole = df + square;
    Some(if whole.is_infinite() { f64::NEG_INFINITY } else { ln_tail(df / 2.0, df / whole, square / whole) })
}

/// Returns `ln I_x(a, 1/2)`; `rest` is 1 - x, passed separately because either may be tiny.
fn ln_tail(a: f64, x: f64, rest: f64) -> f64 {
    if rest <= 0.0 {
        return 0.0;
    }
    if x <= 0.0 {
        return f64::NEG_INFINITY;
    }
    // The smaller of the two is taken as it is, the logarithm of the other from it.
    let ln_x = if rest < 0.5 { (-rest).ln_1p() } else { x.ln() };
    let ln_rest = if x < 0.5 { (-x).ln_1p() } else { rest.ln() };
    let front = a * ln_x + 0.5 * ln_rest - ln_beta_half(a);
    if x < (a + 1.0) / (a + 2.5) {
        front - a.ln() - fraction(a, 0.5, x).ln()
    } else {
        // I_x(a, b) = 1 - I_(1-x)(b, a)
        (-(front - 0.5f64.ln() - fraction(0.5, a, rest).ln()).exp()).ln_1p().min(0.0)
    }
}

/// Returns `ln B(a, 1/2)` by the expansion of a ratio of gamma functions half a step apart (DLMF 5.11.13); a small `a`
/// is first increased step by step.
fn ln_beta_half(a: f64) -> f64 {
    let (mut up, mut moved) = (a, 0.0);
    while up < 30.0 {
        moved += (up / (up + 0.5)).ln();
        up += 1.0;
    }
    let inverse = 1.0 / up;
    let square = inverse * inverse;
    let ratio =
        0.5 * up.ln() - inverse * (0.125 - square * (1.0 / 192.0 - square * (1.0 / 640.0 - square * 17.0 / 14_336.0)));
    0.5 * std::f64::consts::PI.ln() - (ratio + moved)
}

/// Returns `1 + d1/(1 + d2/(1 + ...))` of DLMF 8.17.22, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let (mut value, mut above, mut below) = (1.0, 1.0, 0.0);
    for step in 1..200_000u32 {
        let half = f64::from(step / 2);
        let term = if step % 2 == 0 {
            half * (b - half) * x / ((a + 2.0 * half - 1.0) * (a + 2.0 * half))
        } else {
            -(a + half) * (a + b + half) * x / ((a + 2.0 * half) * (a + 2.0 * half + 1.0))
        };
        below = 1.0 + term * below;
        below = 1.0 / if below == 0.0 { TINY } else { below };
        above = 1.0 + term / above;
        above = if above == 0.0 { TINY } else { above };
        value *= above * below;
        if (above * below - 1.0f64).abs() < 1e-16 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn p(r: f64, n: u64) -> f64 {
        correlation_ln_p(r, n).map_or(f64::NAN, f64::exp)
    }

    proptest! {
        /// Exact in closed form for three to six pairs (Student's t with 1 to 4 degrees of freedom).
        #[test]
        fn closed_forms_of_few_pairs(r in -0.999f64..0.999) {
            use std::f64::consts::FRAC_2_PI;
            let (a, root) = (r.abs(), (1.0 - r * r).sqrt());
            let forms = [
                1.0 - FRAC_2_PI * a.asin(),
                1.0 - a,
                1.0 - FRAC_2_PI * (a.asin() + a * root),
                1.0 - a * (3.0 - a * a) / 2.0,
            ];
            for (n, expected) in (3u64..).zip(forms) {
                let found = p(r, n);
                prop_assert!((found - expected).abs() <= 2e-14, "{} {} {}", n, found, expected);
            }
        }
    }

    #[test]
    fn known_points_and_edges() {
        // R: cor.test of the tuna, two-sided p = 2 * 0.05409.
        assert!((p(0.571_181_6, 9) / 2.0 - 0.054_09).abs() < 5e-6);
        assert!((p(0.0, 50) - 1.0).abs() < 1e-15);
        assert_eq!(correlation_ln_p(-1.0, 10), Some(f64::NEG_INFINITY));
        for (r, n) in [(0.5, 2), (1.1, 9), (f64::NAN, 9)] {
            assert_eq!(correlation_ln_p(r, n), None);
        }
        // Far out it is -n/2 ln(1/(1 - r^2)) and does not underflow.
        let far = correlation_ln_p(0.5, 4_000_000).unwrap_or(f64::NAN);
        assert!((far / (2e6 * 0.75f64.ln()) - 1.0).abs() < 1e-4, "{far}");
    }

    #[test]
    fn t_with_two_degrees_of_freedom_has_a_closed_form() {
        for t in [0.0f64, 1e-8, 0.3, 2.0, 50.0, 1e10] {
            // 1 - t / sqrt(2 + t^2) = 2 / (2 + t^2 + t sqrt(2 + t^2))
            let expected = (2.0 / (2.0 + t * t + t * (2.0 + t * t).sqrt())).ln();
            let found = t_ln_p(-t, 2.0).unwrap_or(f64::NAN);
            assert!((found - expected).abs() <= 1e-13 * expected.abs().max(1.0), "{t}");
        }
        assert_eq!(t_ln_p(1.0, 0.0), None);
        assert_eq!(t_ln_p(f64::INFINITY, 3.0), Some(f64::NEG_INFINITY));
    }
}
