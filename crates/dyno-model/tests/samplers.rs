//! Tests the samplers of random numbers: their first draws are pinned bit by bit, and their distributions are correct.
#![allow(clippy::unwrap_used, missing_docs)]

use dyno_model::kernel::sample::{Times, normal_cdf, normal_quantile};
use dyno_model::kernel::zipf::Zipf;
use dyno_model::kernel::{Stream, Streams};

fn stream(name: &str) -> Stream {
    Streams::new(7).named(name)
}

/// Compares normal quantiles with those of Python's `statistics.NormalDist().inv_cdf`, which uses the same algorithm.
#[test]
fn normal_quantiles() {
    for (p, expected) in [
        (0.5, 0.0),
        (0.6, 0.253_347_103_135_799_8),
        (0.975, 1.959_963_984_540_053_6),
        (0.01, -2.326_347_874_040_841),
        (1e-9, -5.997_807_015_007_686_5),
        (1e-15, -7.941_345_326_170_997),
    ] {
        let value = normal_quantile(p);
        assert!((value - expected).abs() <= 4e-15 * expected.abs(), "{p}: {value} {expected}");
        assert!((normal_cdf(value) / p - 1.0).abs() < 1e-12);
    }
}

/// Moments of a million draws are within four standard errors of their exact values.
#[test]
fn moments() {
    type Draw = fn(&mut Stream) -> f64;
    let exp_half = 0.5_f64.exp();
    let cases: [(&str, Draw, f64, f64); 4] = [
        ("unit", Stream::unit, 0.5, (1.0_f64 / 12.0).sqrt()),
        ("exponential", |s| s.exponential(3.0), 3.0, 3.0),
        ("normal", Stream::normal, 0.0, 1.0),
        ("lognormal", |s| s.lognormal(2.0, 1.0), 2.0 * exp_half, 2.0 * exp_half * (1_f64.exp() - 1.0).sqrt()),
    ];
    for (name, draw, mean, deviation) in cases {
        let mut dice = stream(name);
        let n = 1_000_000;
        let sum: f64 = (0..n).map(|_| draw(&mut dice)).sum();
        let z = (sum / f64::from(n) - mean) / (deviation / f64::from(n).sqrt());
        assert!(z.abs() < 4.0, "{name}: z = {z}");
    }
}

#[test]
fn zipf_by_item() {
    let zipf = Zipf::new(1_000, 0.8);
    let mut dice = stream("zipf");
    let (n, mut seen) = (1_000_000, vec![0_u32; 1_000]);
    (0..n).for_each(|_| seen[zipf.sample(&mut dice) as usize] += 1);
    let chi2: f64 = (0..1_000)
        .map(|item| {
            let expected = zipf.probability(item) * f64::from(n);
            (f64::from(seen[item as usize]) - expected).powi(2) / expected
        })
        .sum();
    // 999 degrees of freedom: mean 999, standard deviation 44.7.
    assert!((chi2 - 999.0).abs() < 4.0 * 44.7, "{chi2}");
    let even = Zipf::new(3, 0.0);
    assert!((even.probability(2) - 1.0 / 3.0).abs() < 1e-15);
}

#[test]
fn times_are_read_from_a_parameter_file_and_have_the_mean_they_say() {
    let text = r#"
        kind = "mixture"
        probability = 1e-2
        usual = { kind = "lognormal", median_us = 481.0, sigma = 0.15 }
        other = { kind = "measured", probability = [0.0, 0.5, 1.0], us = [100.0, 1000.0, 60000.0] }
    "#;
    let times: Times = toml::from_str(text).unwrap();
    let mut dice = stream("times");
    let n = 1_000_000_u32;
    let drawn: Vec<f64> = (0..n).map(|_| times.sample_ns(&mut dice) as f64 / 1e3).collect();
    let mean = drawn.iter().sum::<f64>() / f64::from(n);
    let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
    let z = (mean - times.mean_us()) / (variance / f64::from(n)).sqrt();
    assert!(z.abs() < 4.0, "{mean} {} z = {z}", times.mean_us());
    assert!(toml::from_str::<Times>("kind = \"constant\"\nus = 3\nms = 4").is_err());
}

/// The first draws of a stream are pinned bit by bit, because a change would alter every published run.
#[test]
fn the_first_draws_are_pinned() {
    let mut dice = stream("pinned");
    let bits = [
        dice.unit().to_bits(),
        dice.exponential(1.0).to_bits(),
        dice.normal().to_bits(),
        dice.lognormal(481.0, 0.15).to_bits(),
        dice.below(1_000),
    ];
    assert_eq!(bits, PINNED);
}
const PINNED: [u64; 5] =
    [4_604_995_507_038_714_949, 4_605_163_248_630_261_829, 4_607_878_304_906_348_869, 4_646_646_967_394_404_070, 719];
