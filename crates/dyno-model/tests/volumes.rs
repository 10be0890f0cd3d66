//! Tests cloud volumes against the closed form of a token bucket.
#![allow(clippy::unwrap_used, missing_docs)]

use std::cell::RefCell;
use std::rc::Rc;

use dyno_model::device::volume::{Bucket, Volume, VolumeParameters};
use dyno_model::device::{Device, Request, start};
use dyno_model::kernel::Simulation;
use dyno_model::kernel::sample::Times;

/// Returns a volume with 100 I/Os per second, of which ten may come at once, and whose requests take no other time.
fn plain() -> VolumeParameters {
    let at_once = Times::Constant { us: 0.0 };
    VolumeParameters {
        iops: 100.0,
        burst_iops: 100.0,
        throughput_mb_s: 1_000.0,
        read: at_once.clone(),
        write: at_once,
        queue_depth: 4_096,
        ..VolumeParameters::default()
    }
}

/// Returns the completion times of requests that all arrive at the beginning [ns].
fn backlog(parameters: VolumeParameters, count: u64, bytes: u64) -> Vec<u64> {
    let simulation = Simulation::new(1);
    let volume: Rc<dyn Device> = Volume::new(&simulation, "volume", parameters);
    let seen = Rc::new(RefCell::new(Vec::new()));
    for number in 0..count {
        let (sim, volume, seen) = (simulation.sim().clone(), Rc::clone(&volume), Rc::clone(&seen));
        simulation.spawn("request", async move {
            let done_ns = start(&sim, &*volume, Request::write(number * bytes, bytes)).await;
            seen.borrow_mut().push(done_ns);
        });
    }
    simulation.run().unwrap();
    assert!(volume.reports().iter().all(|report| report.little && report.present == 0));
    seen.take()
}

fn assert_close(found: &[u64], expected: impl Fn(f64) -> f64) {
    for (number, &at_ns) in (1..).zip(found) {
        let wanted_ns = expected(f64::from(number)).max(0.0) * 1e9;
        assert!((at_ns as f64 - wanted_ns).abs() < 100.0, "request {number}: {at_ns} ns, not {wanted_ns}");
    }
}

#[test]
fn the_nth_request_of_a_backlog_has_its_token_at_n_less_the_bucket_over_the_rate() {
    assert_close(&backlog(plain(), 200, 4_096), |n| (n - 10.0) / 100.0);
}

#[test]
fn credits_last_until_they_are_spent_and_then_the_steady_rate_is_left() {
    // The bucket of the burst has 40 tokens and 400 a second, that of the credits 300 and 100 a second.
    let parameters = VolumeParameters { burst_iops: 400.0, credit_ios: 300.0, ..plain() };
    let found = backlog(parameters, 600, 4_096);
    assert_close(&found, |n| ((n - 40.0) / 400.0).max((n - 300.0) / 100.0));
}

#[test]
fn a_large_request_counts_as_several_and_bytes_have_a_bucket_of_their_own() {
    assert_close(&backlog(plain(), 20, 1 << 20), |n| (4.0 * n - 10.0) / 100.0);
    let slow = VolumeParameters { throughput_mb_s: 10.0, iops: 1e6, burst_iops: 1e6, ..plain() };
    assert_close(&backlog(slow, 20, 1_000_000), |n| (n - 1.0) / 10.0);
}

#[test]
fn a_request_larger_than_the_bucket_waits_for_a_full_one_and_leaves_less_than_none() {
    let mut bucket = Bucket::full(1_000.0, 10.0);
    assert_eq!(bucket.ready_ns(0, 25.0), 0);
    bucket.take(0, 25.0);
    assert_eq!(bucket.ready_ns(0, 1.0), 16_000_000);
    assert!((bucket.level_at(1_000_000_000) - 10.0).abs() < 1e-9);
}

/// Over any stretch of time, no more is served than the bucket holds plus its rate over that time.
#[test]
fn no_stretch_of_time_has_more_than_the_bucket_and_the_rate() {
    let found = backlog(plain(), 300, 4_096);
    for (first, &from_ns) in found.iter().enumerate() {
        for (count, &to_ns) in (1_u32..).zip(&found[first..]) {
            let most = 10.0 + (to_ns - from_ns) as f64 / 1e9 * 100.0;
            assert!(f64::from(count) <= most + 1e-3, "{count} from {from_ns} to {to_ns}");
        }
    }
}
