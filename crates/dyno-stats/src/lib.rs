//! Mergeable summaries and resampling kernels over waits.
//!
//! Every analysis of dbdyno is a *mergeable summary* (counts, moments, a log-bucket histogram, the K largest) followed
//! by a *pure finishing function* (a quantile, an interval, a test). This crate makes the summaries, and those
//! finishing functions that need all values. It knows nothing of files, engines or Python, and depends on no other
//! crate of dbdyno.
//!
//! | module | what | exact? |
//! |---|---|---|
//! | [`moments`] | count, mean, sum of squared deviations | to rounding |
//! | [`histogram`] | log buckets, relative error to 1/256 | below 256 ns; above, to the bucket |
//! | [`quantiles`] | type 7 quantiles of sorted values, order-statistic intervals | yes |
//! | [`largest`] | the K largest values with a payload | yes |
//! | [`ranks`] | Mann-Whitney U, Kolmogorov-Smirnov D, from sorted values or counts | yes |
//! | [`welch`] | Welch's statistic and degrees of freedom from moments | to rounding |
//! | [`autocorrelation`] | sample autocorrelation at a lag | to rounding |
//! | [`groups`] | all of a group's numbers at once, in parallel | yes |
//! | [`bootstrap`] | means of resamples, from a seed | same on every machine |
//! | [`keys`] | values of any kind as keys of the same order; their sort; mid-ranks | yes |
//! | [`signed`] | log buckets of any floats, relative error to 1/256 | to the bucket |
//! | [`comoments`] | moments of pairs, Pearson's r | to rounding |
//! | [`agreement`] | Spearman's rho, Kendall's tau, their exact distribution | yes |
//! | [`distributions`] | tails as logarithms, and quantiles, of t, F, chi squared, normal, binomial, Kolmogorov | about 13 digits |
//! | [`power`] | power of a two-sided t test | 7 digits |
//! | [`fit`] | linear least squares by QR, with [`dd`], twice a double's digits | to rounding |
//! | [`describe`] | all of that for groups of a column: one request, one description | yes |
//!
//! Two runs over the same values give the same bits: work is split at fixed places and put together
//! in a fixed order, whatever the number of threads.
//!
//! ```
//! use dyno_stats::groups::{Group, summarise};
//!
//! let group = Group { arm: 0, block: 3, values: vec![40, 10, 30, 20] };
//! let summary = &summarise(&[group], &[0.5])[0];
//! assert_eq!((summary.count, summary.mean, summary.max), (4, 25.0, 40));
//! assert_eq!(summary.quantiles, [25.0]);
//! ```

pub mod agreement;
pub mod autocorrelation;
pub mod bootstrap;
pub mod comoments;
pub mod dd;
pub mod describe;
pub mod distributions;
pub mod fit;
pub mod groups;
pub mod histogram;
pub mod keys;
pub mod largest;
pub mod moments;
pub mod power;
pub mod quantiles;
pub mod ranks;
pub mod rng;
pub mod signed;
mod special;
pub mod welch;
