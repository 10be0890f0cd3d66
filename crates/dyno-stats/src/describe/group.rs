//! Description of one group from its sorted keys, without the statistics that need the other groups.

use rayon::prelude::*;

use super::column::{Fences, GroupDescription, QuantileValue, Request};
use crate::keys::{Ordered, sort_keys};
use crate::moments::Moments;
use crate::quantiles::{order_interval, type7_ranks};
use crate::signed::SignedHistogram;

/// Number of values per piece of work; fixed, so that the result does not depend on the number of threads.
const PIECE: usize = 1 << 18;

pub(super) fn value<T: Ordered>(key: u64) -> f64 {
    T::of_key(key).float()
}

pub(super) fn quantile<T: Ordered>(sorted: &[u64], q: f64) -> f64 {
    type7_ranks(sorted.len(), q).map_or(f64::NAN, |(low, high, weight)| {
        let (a, b) = (value::<T>(sorted[low]), value::<T>(sorted[high]));
        if weight > 0.0 { a + weight * (b - a) } else { a }
    })
}

pub(super) fn moments<T: Ordered>(sorted: &[u64], shift: T) -> Moments {
    let parts: Vec<Moments> = sorted
        .par_chunks(PIECE)
        .map(|piece| Moments::of(&piece.iter().map(|&k| T::of_key(k).less(shift)).collect::<Vec<_>>()))
        .collect();
    let mut whole = Moments::default();
    for part in &parts {
        whole.merge(part);
    }
    whole
}

pub(super) fn describe_sorted<T: Ordered>(sorted: &[u64], request: &Request, shift: T) -> GroupDescription {
    let end = |at: Option<&u64>| at.map_or(f64::NAN, |&k| value::<T>(k));
    let moments = moments(sorted, shift);
    GroupDescription {
        min: end(sorted.first()),
        max: end(sorted.last()),
        quantiles: request
            .quantiles
            .iter()
            .map(|&q| {
                let around = order_interval(sorted.len() as u64, q, request.level);
                let at = |rank: Option<u64>| end(rank.and_then(|r| sorted.get(r as usize - 1)));
                QuantileValue {
                    q,
                    value: quantile::<T>(sorted, q),
                    low: at(around.and_then(|i| i.low)),
                    high: at(around.and_then(|i| i.high)),
                }
            })
            .collect(),
        histogram: SignedHistogram::of_sorted::<T>(sorted).buckets().collect(),
        fences: request.fences.then(|| fences(sorted, &moments, shift)),
        moments,
    }
}

fn fences<T: Ordered>(sorted: &[u64], moments: &Moments, shift: T) -> Fences {
    let [q1, median, q3] = [0.25, 0.5, 0.75].map(|q| quantile::<T>(sorted, q));
    let range = q3 - q1;
    let ends = [q1 - 3.0 * range, q1 - 1.5 * range, q3 + 1.5 * range, q3 + 3.0 * range];
    let below = |end: f64| sorted.partition_point(|&k| value::<T>(k) < end) as u64;
    let above = |end: f64| (sorted.len() - sorted.partition_point(|&k| value::<T>(k) <= end)) as u64;
    let mut apart: Vec<u64> = sorted.iter().map(|&k| (value::<T>(k) - median).abs().key()).collect();
    sort_keys(&mut apart);
    let mad = quantile::<f64>(&apart, 0.5);
    let reach = 3.5 * mad / 0.6745;
    let six = moments.standard_deviation().map(|sd| shift.float() + moments.mean + 6.0 * sd);
    Fences {
        ends,
        beyond: [below(ends[0]), below(ends[1]), above(ends[2]), above(ends[3])],
        mad,
        modified_z: if mad > 0.0 { below(median - reach) + above(median + reach) } else { 0 },
        six_sigma: six.map_or(0, above),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed manually: quartiles 2 and 4, fences -4, -1, 7, 10; median 3, deviations 2 1 0 1 47.
    #[test]
    fn fences_of_five_values() {
        let sorted: Vec<u64> = [1i64, 2, 3, 4, 50].map(Ordered::key).to_vec();
        let fences = fences(&sorted, &moments(&sorted, 0i64), 0);
        assert_eq!(fences.ends.map(|end| end as i64), [-4, -1, 7, 10]);
        assert_eq!((fences.beyond, fences.mad as i64), ([0, 0, 1, 1], 1));
        assert_eq!((fences.modified_z, fences.six_sigma), (1, 0));
    }
}
