//! Tests fits to latencies that are drawn at random from known distributions.
#![allow(clippy::unwrap_used)]

use dyno_model::device::calibrate::{block_length, intervals, report};
use dyno_model::device::empirical::EmpiricalParameters;
use dyno_model::device::regimes;
use dyno_model::kernel::{Simulation, Stream};

fn dice(seed: u64) -> Stream {
    Simulation::new(seed).stream("measured")
}

/// Returns latencies [us] and the state behind each: mostly state 0 with about 100 us, sometimes state 1 with about 4
/// ms. The lengths of the stays in a state have a geometric distribution with the means `stays` [requests].
fn two_states(seed: u64, n: usize, stays: [f64; 2]) -> (Vec<f64>, Vec<u8>) {
    let mut dice = dice(seed);
    let mut state = 0_usize;
    let mut made = (Vec::new(), Vec::new());
    for _ in 0..n {
        if dice.chance(1.0 / stays[state]) {
            state = 1 - state;
        }
        made.0.push(dice.lognormal([100.0, 4_000.0][state], 0.3));
        made.1.push(state as u8);
    }
    made
}

#[test]
fn regimes_that_last_are_found_with_their_lengths() {
    let (values, truth) = two_states(1, 60_000, [900.0, 100.0]);
    let found = regimes::find(&values).unwrap();
    let wrong = found.path.iter().zip(&truth).filter(|(a, b)| a != b).count();
    assert!(wrong < 60, "{wrong} of 60,000 in the wrong state");
    // About 60 stays of each: their mean is known to 13 %.
    assert!((found.stay_requests[0] / 900.0 - 1.0).abs() < 0.45, "{:?}", found.stay_requests);
    assert!((found.stay_requests[1] / 100.0 - 1.0).abs() < 0.45, "{:?}", found.stay_requests);
    assert!(found.stay_us[1] > found.stay_us[0], "a slow stay takes longer: {:?}", found.stay_us);
}

#[test]
fn what_the_regimes_say_of_likeness_is_what_was_measured() {
    let (values, _) = two_states(2, 200_000, [300.0, 100.0]);
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let found = regimes::find(&values).unwrap();
    for lag in [1, 10, 100] {
        let measured = dyno_stats::autocorrelation::autocorrelation(&logs, lag).unwrap();
        let given = found.autocorrelation(lag);
        assert!((measured - given).abs() < 0.06, "lag {lag}: {measured} and {given}");
    }
}

#[test]
fn independent_values_have_no_regimes_even_with_two_humps() {
    let mut dice = dice(3);
    let values: Vec<f64> = (0..20_000)
        .map(|_| if dice.chance(0.2) { dice.lognormal(4e3, 0.3) } else { dice.lognormal(1e2, 0.3) })
        .collect();
    assert_eq!(regimes::find(&values), None);
    assert_eq!(regimes::find(&values[..500]), None, "too few to tell");
    assert_eq!(regimes::find(&vec![7.0; 5_000]), None, "nothing varies");
}

#[test]
fn a_rare_outlier_is_no_change_of_regime() {
    let (mut values, truth) = two_states(4, 40_000, [500.0, 500.0]);
    for at in (0..values.len()).step_by(701) {
        values[at] = 200_000.0;
    }
    let found = regimes::find(&values).unwrap();
    let wrong = found.path.iter().zip(&truth).filter(|(a, b)| a != b).count();
    assert!(wrong < 200, "{wrong}");
}

#[test]
fn intervals_of_independent_values_are_as_narrow_as_theory_says() {
    let mut dice = dice(5);
    let logs: Vec<f64> = (0..40_000).map(|_| dice.normal()).collect();
    let [low, high] = intervals(&logs, block_length(&logs))[0];
    // Median of n normal values: standard error sqrt(pi / 2n) = 0.0063.
    let width = (high / low).ln() / (2.0 * 1.96 * 0.006_27);
    assert!((0.75..1.25).contains(&width), "{width}");
}

#[test]
fn likeness_widens_the_intervals() {
    let (values, _) = two_states(6, 60_000, [900.0, 300.0]);
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let block = block_length(&logs);
    assert!(block > 300, "{block}");
    let width = |block| {
        let [low, high] = intervals(&logs, block)[0];
        (high / low).ln()
    };
    assert!(width(block) > 3.0 * width(1), "{} and {}", width(block), width(1));
}

#[test]
fn the_text_of_a_fit_is_a_device_that_gives_the_same_quantiles() {
    let mut dice = dice(7);
    let values: Vec<f64> = (0..50_000).map(|_| dice.lognormal(68.0, 0.5)).collect();
    let told = report(&values, None).unwrap();
    let text = format!("capacity_gb = 10.0\nservers = 1\n{}", told["toml"].as_str().unwrap());
    let device: EmpiricalParameters = toml::from_str(&text).unwrap();
    assert_eq!(device.regimes.len(), 1);
    let mean = device.regimes[0].write.mean_us();
    assert!((mean / told["mean_us"].as_f64().unwrap() - 1.0).abs() < 0.01, "{mean}");
    for quantile in told["quantiles"].as_array().unwrap() {
        let number = |key: &str| quantile[key].as_f64().unwrap();
        assert!(number("low") <= number("us") * 1.003 && number("us") <= number("high") * 1.003);
    }
}

#[test]
fn too_few_values_are_an_error() {
    assert!(report(&[1.0, 2.0, 3.0], None).is_err());
    assert!(report(&[], None).is_err());
}
