//! Welch's statistic from the moments of two samples. The caller computes the p-value from a t distribution. The
//! p-value assumes independent values, but waits of one session are not independent.

use crate::moments::Moments;

/// Difference of two means, its standard error, t and the degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// Mean of a minus mean of b.
    pub difference: f64,
    /// `sqrt(var_a / n + var_b / m)`.
    pub standard_error: f64,
    /// Difference over standard error.
    pub statistic: f64,
    /// Welch-Satterthwaite degrees of freedom.
    pub df: f64,
}

/// Computes Welch's statistic (1947) of the mean of a minus the mean of b; `None` below two values in an arm or if
/// neither arm varies.
pub fn welch(a: &Moments, b: &Moments) -> Option<Welch> {
    let per_mean_a = a.variance()? / a.count as f64;
    let per_mean_b = b.variance()? / b.count as f64;
    let squared = per_mean_a + per_mean_b;
    if squared <= 0.0 {
        return None;
    }
    let denominator = per_mean_a.powi(2) / (a.count - 1) as f64 + per_mean_b.powi(2) / (b.count - 1) as f64;
    let difference = a.mean - b.mean;
    let standard_error = squared.sqrt();
    Some(Welch {
        difference,
        standard_error,
        statistic: difference / standard_error,
        df: squared * squared / denominator,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: t.test(1:10, y = 7:20) gives t = -5.4349, df = 21.982.
    #[test]
    fn the_example_of_t_test() {
        let a = Moments::of_integers(&(1..=10).collect::<Vec<_>>());
        let b = Moments::of_integers(&(7..=20).collect::<Vec<_>>());
        let w = welch(&a, &b).unwrap_or_else(|| panic!("defined"));
        assert!((w.statistic + 5.4349).abs() < 5e-5, "{w:?}");
        assert!((w.df - 21.982).abs() < 5e-4, "{w:?}");
    }

    #[test]
    fn without_spread_or_values_there_is_no_statistic() {
        let same = Moments::of_integers(&[5, 5, 5]);
        assert_eq!(welch(&same, &same), None);
        assert_eq!(welch(&Moments::of_integers(&[5]), &Moments::of_integers(&[1, 2])), None);
    }
}
