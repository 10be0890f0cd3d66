//! Linear least squares by Householder's QR, with rows added piece by piece; mergeable.
//!
//! Normal equations square the condition number of the columns, and the pseudo-inverse drops small directions: on
//! NIST's Filip neither yields a correct digit. Here only the triangle R of `[X y] = Q R` is kept; a piece of rows is
//! folded into it by reflections (Golub and Van Loan, Matrix Computations, 5.2 and 12.5), and two triangles are merged
//! by folding the rows of one into the other. While the data are small, the arithmetic has twice a double's digits, so
//! that only digits are lost that the data themselves do not carry.

use crate::dd::{Dd, Real};

/// Number of multiplications above which the fit is computed in doubles.
const PRECISE_UP_TO: usize = 20_000_000;
/// Number of rows folded in at once.
const PIECE: usize = 256;
/// A column counts as a linear combination of the columns before it if the part that they do not explain is below this
/// share of the column.
const DEPENDENT: f64 = 1e-14;

/// Upper triangle R of the QR factorisation of `[X y]`, the columns of X and then y; row-major.
#[derive(Clone, Debug)]
struct Triangle<R> {
    size: usize,
    values: Vec<R>,
}

impl<R: Real> Triangle<R> {
    fn new(size: usize) -> Self {
        Self { size, values: vec![R::zero(); size * size] }
    }

    fn at(&self, row: usize, column: usize) -> R {
        self.values[row * self.size + column]
    }

    /// Folds rows into the triangle. The rows are passed column by column (each of the same length), and the contents
    /// of the columns are overwritten.
    fn fold(&mut self, columns: &mut [Vec<R>]) {
        for j in 0..self.size {
            let (left, right) = columns.split_at_mut(j + 1);
            let column = &left[j];
            let outside = column.iter().fold(R::zero(), |sum, &v| sum + v * v);
            if outside.round() <= 0.0 {
                continue;
            }
            let top = self.at(j, j);
            let length = (top * top + outside).root();
            let turned = if top.round() > 0.0 { -length } else { length };
            let (first, tau) = (top - turned, (turned - top) / turned);
            let unit: Vec<R> = column.iter().map(|&v| v / first).collect();
            for (k, other) in right.iter_mut().enumerate() {
                let place = j * self.size + j + 1 + k;
                let onto = unit.iter().zip(&*other).fold(R::zero(), |sum, (&u, &v)| sum + u * v);
                let step = tau * (self.values[place] + onto);
                self.values[place] = self.values[place] - step;
                other.iter_mut().zip(&unit).for_each(|(v, &u)| *v = *v - step * u);
            }
            self.values[j * self.size + j] = turned;
        }
    }
}

/// A fit `y = b0 + b1 x1 + ...` (or without b0).
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Coefficients, the intercept first where there is one.
    pub coefficients: Vec<f64>,
    /// Standard errors of the coefficients; NaN without degrees of freedom.
    pub errors: Vec<f64>,
    /// Number of rows.
    pub count: u64,
    /// Sum of the squared residuals.
    pub residual_squares: f64,
    /// Sum of squares that the columns explain (about the mean where there is an intercept).
    pub explained_squares: f64,
    /// Residuals, row by row.
    pub residuals: Vec<f64>,
}

/// Reason why there is no fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FitError {
    /// Fewer rows than coefficients.
    TooFew,
    /// A column (0 is the first x) is a linear combination of the columns before it.
    Dependent(usize),
    /// Columns of unequal length, or none.
    Shape,
}

/// Fits `y` on the columns `xs` by least squares. With `degree` above 1 there must be one x, and its powers up to
/// `degree` become columns, computed in the precision of the fit.
///
/// # Errors
/// Too few rows, a column that depends on others, or columns of unequal length.
pub fn least_squares(y: &[f64], xs: &[&[f64]], intercept: bool, degree: usize) -> Result<Fit, FitError> {
    let powers = degree.max(1);
    if xs.is_empty() || xs.iter().any(|x| x.len() != y.len()) || (powers > 1 && xs.len() > 1) {
        return Err(FitError::Shape);
    }
    let size = usize::from(intercept) + xs.len() * powers;
    if y.len() < size {
        return Err(FitError::TooFew);
    }
    let design = Design { y, xs, intercept, powers, size };
    if y.len().saturating_mul(size * size) <= PRECISE_UP_TO { design.solve::<Dd>() } else { design.solve::<f64>() }
}

struct Design<'a> {
    y: &'a [f64],
    xs: &'a [&'a [f64]],
    intercept: bool,
    powers: usize,
    size: usize,
}

impl Design<'_> {
    /// Returns the columns of X for some rows, with y as the last.
    fn columns<R: Real>(&self, rows: std::ops::Range<usize>) -> Vec<Vec<R>> {
        let mut made = Vec::with_capacity(self.size + 1);
        if self.intercept {
            made.push(vec![R::from(1.0); rows.len()]);
        }
        for x in self.xs {
            let first: Vec<R> = x[rows.clone()].iter().map(|&v| R::from(v)).collect();
            let mut power = first.clone();
            for _ in 1..self.powers {
                let next = power.iter().zip(&first).map(|(&a, &b)| a * b).collect();
                made.push(std::mem::replace(&mut power, next));
            }
            made.push(power);
        }
        made.push(self.y[rows].iter().map(|&v| R::from(v)).collect());
        made
    }

    fn triangle<R: Real>(&self) -> Triangle<R> {
        let mut triangle = Triangle::new(self.size + 1);
        for start in (0..self.y.len()).step_by(PIECE) {
            let end = (start + PIECE).min(self.y.len());
            triangle.fold(&mut self.columns(start..end));
        }
        triangle
    }

    fn solve<R: Real>(&self) -> Result<Fit, FitError> {
        let (n, p) = (self.y.len(), self.size);
        let r = self.triangle::<R>();
        for j in 0..p {
            let whole: f64 = (0..=j).map(|i| r.at(i, j).round().powi(2)).sum::<f64>().sqrt();
            if r.at(j, j).round().abs() <= DEPENDENT * whole {
                return Err(FitError::Dependent(j.saturating_sub(usize::from(self.intercept))));
            }
        }
        let target: Vec<R> = (0..p).map(|i| r.at(i, p)).collect();
        let coefficients = back(&r, &target);
        let residual_squares = (r.at(p, p) * r.at(p, p)).round();
        let free = n - p;
        let spread = (residual_squares / free as f64).sqrt();
        let explained = target.iter().skip(usize::from(self.intercept));
        Ok(Fit {
            errors: inverse_lengths(&r, p).into_iter().map(|length| spread * length).collect(),
            count: n as u64,
            residual_squares,
            explained_squares: explained.fold(R::zero(), |sum, &v| sum + v * v).round(),
            residuals: self.residuals(&coefficients),
            coefficients: coefficients.into_iter().map(Real::round).collect(),
        })
    }

    fn residuals<R: Real>(&self, coefficients: &[R]) -> Vec<f64> {
        let mut made = Vec::with_capacity(self.y.len());
        for start in (0..self.y.len()).step_by(PIECE) {
            let end = (start + PIECE).min(self.y.len());
            let columns = self.columns::<R>(start..end);
            made.extend((0..end - start).map(|row| {
                let fitted =
                    coefficients.iter().zip(&columns).fold(R::zero(), |sum, (&b, column)| sum + b * column[row]);
                (columns[self.size][row] - fitted).round()
            }));
        }
        made
    }
}

/// Solves `R b = target` by back substitution.
fn back<R: Real>(r: &Triangle<R>, target: &[R]) -> Vec<R> {
    let mut solved = target.to_vec();
    for i in (0..target.len()).rev() {
        let known = (i + 1..target.len()).fold(R::zero(), |sum, k| sum + r.at(i, k) * solved[k]);
        solved[i] = (target[i] - known) / r.at(i, i);
    }
    solved
}

/// Returns the lengths of the rows of the inverse of R: the roots of the diagonal of (X'X)^-1.
fn inverse_lengths<R: Real>(r: &Triangle<R>, p: usize) -> Vec<f64> {
    let mut squares = vec![R::zero(); p];
    for column in 0..p {
        let mut target = vec![R::zero(); p];
        target[column] = R::from(1.0);
        for (square, v) in squares.iter_mut().zip(back(r, &target)) {
            *square = *square + v * v;
        }
    }
    squares.into_iter().map(|square| square.root().round()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_through_exact_points_is_exact() {
        let x: Vec<f64> = (0..600).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|v| 3.0 - 0.5 * v).collect();
        let fit = least_squares(&y, &[&x], true, 1).unwrap();
        assert_eq!(fit.coefficients, [3.0, -0.5]);
        assert!(fit.residual_squares < 1e-40);
    }

    /// NIST `StRD` `NoInt1`: y = 2.07438016528926 x, standard error 0.0165289256198347.
    #[test]
    fn a_line_through_the_origin() {
        let x: Vec<f64> = (60..=70).map(f64::from).collect();
        let y: Vec<f64> = (130..=140).map(f64::from).collect();
        let fit = least_squares(&y, &[&x], false, 1).unwrap();
        assert!((fit.coefficients[0] - 2.074_380_165_289_26).abs() < 1e-14);
        assert!((fit.errors[0] - 0.016_528_925_619_834_7).abs() < 1e-15);
        assert!((fit.residual_squares - 127.272_727_272_727).abs() < 1e-11);
    }

    #[test]
    fn what_cannot_be_fitted_is_said() {
        let (x, twice) = ([1.0, 2.0, 3.0, 5.0], [2.0, 4.0, 6.0, 10.0]);
        let y = [1.0, 0.0, 2.0, 1.0];
        assert_eq!(least_squares(&y, &[&x, &twice], true, 1), Err(FitError::Dependent(1)));
        assert_eq!(least_squares(&y, &[&[7.0; 4]], true, 1), Err(FitError::Dependent(0)));
        assert_eq!(least_squares(&y[..1], &[&x[..1]], true, 1), Err(FitError::TooFew));
        assert_eq!(least_squares(&y, &[&x[..2]], true, 1), Err(FitError::Shape));
        assert_eq!(least_squares(&y, &[&x, &twice], true, 2), Err(FitError::Shape));
    }

    proptest! {
        /// The triangle of all rows equals the triangles of its parts, merged into each other.
        #[test]
        fn folding_in_parts_equals_the_whole(
            rows in prop::collection::vec((-10.0f64..10.0, -10.0f64..10.0, -5.0f64..5.0), 8..80),
            cut in 4usize..76,
        ) {
            let cut = cut.min(rows.len() - 4);
            let columns = |part: &[(f64, f64, f64)]| -> Vec<Vec<Dd>> {
                let take = |f: fn(&(f64, f64, f64)) -> f64| part.iter().map(move |r| Dd::from(f(r)));
                vec![take(|_| 1.0).collect(), take(|r| r.0).collect(), take(|r| r.1).collect(),
                     take(|r| r.2).collect()]
            };
            let made = |part: &[(f64, f64, f64)]| {
                let mut triangle = Triangle::<Dd>::new(4);
                triangle.fold(&mut columns(part));
                triangle
            };
            let (whole, mut merged, second) = (made(&rows), made(&rows[..cut]), made(&rows[cut..]));
            let mut as_rows: Vec<Vec<Dd>> =
                (0..4).map(|j| (0..4).map(|i| second.at(i, j)).collect()).collect();
            merged.fold(&mut as_rows);
            for i in 0..4 {
                for j in i..4 {
                    let (a, b) = (whole.at(i, j).round(), merged.at(i, j).round());
                    prop_assert!((a.abs() - b.abs()).abs() < 1e-12, "{} {}", a, b);
                }
            }
        }
    }
}
