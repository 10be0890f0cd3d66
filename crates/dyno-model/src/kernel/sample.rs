//! Samplers that return the same numbers on every machine and in every version.
//!
//! Each sampler converts one 64-bit number by inversion of its distribution function: one draw per sample, and a larger
//! number gives a larger sample, which common random numbers require. Logarithm and exponential come not from the
//! platform but from `libm`, which uses only whole-number and basic IEEE operations.

use dyno_stats::rng::Xoshiro256;
use serde::{Deserialize, Serialize};

use super::table::Table;

/// A random stream and its samplers.
#[derive(Clone, Debug)]
pub struct Stream {
    rng: Xoshiro256,
}

impl Stream {
    /// Returns a stream from a generator.
    pub fn new(rng: Xoshiro256) -> Self {
        Self { rng }
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Returns a number uniform in (0, 1), both ends excluded: a multiple of 2^-52 plus half of 2^-52.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.rng.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }

    /// Returns a whole number in `0..bound`; `bound` > 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Returns true with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Returns an exponentially distributed number.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.unit())
    }

    /// Returns a standard normal number.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.unit())
    }

    /// Returns a lognormal number: its logarithm is normally distributed around the logarithm of `median`, with
    /// standard deviation `sigma`.
    #[inline]
    pub fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        median * libm::exp(sigma * self.normal())
    }
}

/// Longest time: 104 days [ns]. A thousand of them can be added without overflow.
pub const LONGEST_NS: u64 = 1 << 53;

/// Returns whole nanoseconds: 0 for values below 0 and NaN, at most [`LONGEST_NS`].
#[inline]
pub fn whole_ns(ns: f64) -> u64 {
    ((ns + 0.5) as u64).min(LONGEST_NS)
}

/// Returns a quantile of the standard normal distribution: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37
/// (1988) 477-484. Relative error about 1e-16.
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRE);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = libm::sqrt(-libm::log(tail));
    let value = if r <= 5.0 { ratio(r - 1.6, &MIDDLE) } else { ratio(r - 5.0, &FAR) };
    value.copysign(q)
}

/// Returns the distribution function of the standard normal.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

type Ratio = ([f64; 8], [f64; 8]);

fn ratio(r: f64, (above, below): &Ratio) -> f64 {
    let polynomial = |c: &[f64; 8]| c.iter().rev().fold(0.0, |sum, &c| sum * r + c);
    polynomial(above) / polynomial(below)
}

const CENTRE: Ratio = (
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
);
const MIDDLE: Ratio = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        0.000_774_545_014_278_341_4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        0.000_547_593_808_499_534_5,
        1.050_750_071_644_416_9e-9,
    ],
);
const FAR: Ratio = (
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        0.000_786_869_131_145_613_2,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
);

/// Distribution of times in parameters, for example `{ kind = "exponential", mean_us = 400 }`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Times {
    /// The same time for every sample.
    Constant {
        /// Time of every sample [us].
        us: f64,
    },
    /// Uniform distribution between two bounds.
    Uniform {
        /// Lower bound [us].
        from_us: f64,
        /// Upper bound [us].
        to_us: f64,
    },
    /// Exponential distribution.
    Exponential {
        /// Mean [us].
        mean_us: f64,
    },
    /// Lognormal distribution.
    Lognormal {
        /// Median [us].
        median_us: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// One of two distributions: the usual one, or with a given probability the other.
    Mixture {
        /// Usual distribution.
        usual: Box<Times>,
        /// Probability of the other distribution.
        probability: f64,
        /// Other distribution.
        other: Box<Times>,
    },
    /// Distribution given by measured quantiles.
    Measured(Table),
}

impl Times {
    /// Returns a random time [ns].
    pub fn sample_ns(&self, stream: &mut Stream) -> u64 {
        whole_ns(self.sample_us(stream) * 1e3)
    }

    fn sample_us(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Constant { us } => *us,
            Self::Uniform { from_us, to_us } => from_us + (to_us - from_us) * stream.unit(),
            Self::Exponential { mean_us } => stream.exponential(*mean_us),
            Self::Lognormal { median_us, sigma } => stream.lognormal(*median_us, *sigma),
            Self::Mixture { usual, probability, other } => {
                let which = if stream.chance(*probability) { other } else { usual };
                which.sample_us(stream)
            }
            Self::Measured(table) => table.quantile(stream.unit()),
        }
    }

    /// Returns the mean of the distribution [µs].
    pub fn mean_us(&self) -> f64 {
        match self {
            Self::Constant { us } => *us,
            Self::Uniform { from_us, to_us } => f64::midpoint(*from_us, *to_us),
            Self::Exponential { mean_us } => *mean_us,
            Self::Lognormal { median_us, sigma } => median_us * libm::exp(sigma * sigma / 2.0),
            Self::Mixture { usual, probability, other } => {
                (1.0 - probability) * usual.mean_us() + probability * other.mean_us()
            }
            Self::Measured(table) => table.mean(),
        }
    }
}
