//! Two regimes in measured latencies: a normal and a slow state that each last for a while.
//!
//! The logarithms of the latencies are described by a hidden Markov model with two states. Two steps alternate until
//! the path of states no longer changes: the most likely path (Viterbi) is determined for the present parameters, then
//! the parameters of each state are estimated from the values that the path assigns to it. Median and spread (from the
//! median absolute deviation) describe a state, and values are judged with Student's t of four degrees of freedom, so
//! that a single outlier does not count as a change of state.
//!
//! Nothing is returned if the states do not last (a mean duration below [`LEAST_STAY`] requests), are too close
//! together, or changed too rarely to estimate their duration: one table is then sufficient.

use crate::kernel::table::quantile_of;

/// Shortest mean duration of a regime [requests].
pub const LEAST_STAY: f64 = 8.0;

/// Least number of changes of state from which a mean duration can be estimated.
const LEAST_CHANGES: usize = 4;

const TURNS: usize = 30;

/// Regimes of a series: 0 is the normal, 1 the slow one.
#[derive(Clone, Debug, PartialEq)]
pub struct Regimes {
    /// State of each value.
    pub path: Vec<u8>,
    /// Share of the values in each state.
    pub share: [f64; 2],
    /// Mean number of requests in a stay in each state.
    pub stay_requests: [f64; 2],
    /// Mean duration of a stay in each state, as the sum of the latencies in it [µs].
    pub stay_us: [f64; 2],
    /// Mean logarithm in each state.
    mean: [f64; 2],
    /// Variance of all logarithms.
    variance: f64,
}

impl Regimes {
    /// Returns the autocorrelation of the logarithms that these regimes imply at a lag: values within a state are
    /// independent, states follow one another as a Markov chain.
    pub fn autocorrelation(&self, lag: usize) -> f64 {
        let leave = self.stay_requests.map(|stay| 1.0 / stay);
        let memory = 1.0 - leave[0] - leave[1];
        let between = self.share[0] * self.share[1] * (self.mean[0] - self.mean[1]).powi(2);
        between / self.variance * libm::pow(memory.max(0.0), lag as f64)
    }

    /// Returns the mean duration of a stay in each state by the clock [µs]: from the start of the first request of a
    /// stay to the start of the first request of the next stay. The last stay, whose end is unknown, is not counted.
    pub fn stay_on_clock_us(&self, started_ns: &[i64]) -> [f64; 2] {
        let (mut stays, mut sum_us) = ([0.0; 2], [0.0; 2]);
        let mut first = 0;
        for at in 1..self.path.len().min(started_ns.len()) {
            if self.path[at] != self.path[first] {
                let state = usize::from(self.path[first]);
                stays[state] += 1.0;
                sum_us[state] += (started_ns[at] - started_ns[first]) as f64 / 1e3;
                first = at;
            }
        }
        [0, 1].map(|state| if stays[state] > 0.0 { sum_us[state] / stays[state] } else { self.stay_us[state] })
    }

    /// Returns those of `values_us` that belong to a state.
    pub fn values(&self, values_us: &[f64], state: u8) -> Vec<f64> {
        let with = values_us.iter().zip(&self.path);
        with.filter(|(_, at)| **at == state).map(|(value, _)| *value).collect()
    }
}

#[derive(Clone, Copy)]
struct State {
    middle: f64,
    spread: f64,
    /// Probability of leaving the state.
    leave: f64,
}

impl State {
    /// Returns the logarithm of the density at `x`, up to a constant.
    fn fits(&self, x: f64) -> f64 {
        let z = (x - self.middle) / self.spread;
        -2.5 * libm::log1p(z * z / 4.0) - libm::log(self.spread)
    }

    fn of(mut values: Vec<f64>, leave: f64) -> Self {
        values.sort_by(f64::total_cmp);
        let middle = quantile_of(&values, 0.5);
        let mut away: Vec<f64> = values.iter().map(|x| (x - middle).abs()).collect();
        away.sort_by(f64::total_cmp);
        // 1.4826: the normal distribution's ratio of standard deviation to that deviation.
        let spread = (1.4826 * quantile_of(&away, 0.5)).max(0.01);
        Self { middle, spread, leave }
    }
}

/// Finds the two regimes of latencies in the order measured, if there are any.
pub fn find(values_us: &[f64]) -> Option<Regimes> {
    let logs = logarithms(values_us);
    let mut path = begin(&logs)?;
    for _ in 0..TURNS {
        let states = states(&logs, &path)?;
        let next = likeliest(&logs, &states);
        if next == path {
            break;
        }
        path = next;
    }
    let states = states(&logs, &path)?;
    if states[0].middle > states[1].middle {
        for state in &mut path {
            *state = 1 - *state;
        }
    }
    told(values_us, &logs, path)
}

/// Returns a first estimate of the path: the state of each stretch of 64 values is 1 if its median is above the middle
/// of the range.
fn begin(logs: &[f64]) -> Option<Vec<u8>> {
    const STRETCH: usize = 64;
    if logs.len() < 16 * STRETCH {
        return None;
    }
    let median = |stretch: &[f64]| {
        let mut sorted = stretch.to_vec();
        sorted.sort_by(f64::total_cmp);
        quantile_of(&sorted, 0.5)
    };
    let medians: Vec<f64> = logs.chunks(STRETCH).map(median).collect();
    let mut sorted = medians.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = f64::midpoint(quantile_of(&sorted, 0.02), quantile_of(&sorted, 0.98));
    let of = |at: usize| u8::from(medians[at / STRETCH] > middle);
    Some((0..logs.len()).map(of).collect())
}

fn states(logs: &[f64], path: &[u8]) -> Option<[State; 2]> {
    let of = |state: u8| {
        let values: Vec<f64> = logs.iter().zip(path).filter(|(_, at)| **at == state).map(|(x, _)| *x).collect();
        let left = path.windows(2).filter(|pair| pair[0] == state && pair[1] != state).count();
        let leave = (left as f64 + 0.5) / (values.len() as f64 + 1.0);
        (values.len() >= 16).then(|| State::of(values, leave.min(0.5)))
    };
    Some([of(0)?, of(1)?])
}

/// Returns the most likely path of states (Viterbi).
fn likeliest(logs: &[f64], states: &[State; 2]) -> Vec<u8> {
    let stay = states.map(|state| libm::log1p(-state.leave));
    let go = states.map(|state| libm::log(state.leave));
    let mut best = [0.0, 0.0];
    let mut from: Vec<[u8; 2]> = Vec::with_capacity(logs.len());
    for &x in logs {
        let mut next = best;
        let mut came = [0, 1];
        for to in 0..2 {
            let (kept, changed) = (best[to] + stay[to], best[1 - to] + go[1 - to]);
            if changed > kept {
                came[to] = 1 - to as u8;
            }
            next[to] = kept.max(changed) + states[to].fits(x);
        }
        best = next;
        from.push(came);
    }
    let mut at = u8::from(best[1] > best[0]);
    let mut path = vec![0; logs.len()];
    for (place, came) in path.iter_mut().zip(&from).rev() {
        *place = at;
        at = came[usize::from(at)];
    }
    path
}

fn told(values_us: &[f64], logs: &[f64], path: Vec<u8>) -> Option<Regimes> {
    let (mut count, mut stays, mut time, mut sum) = ([0.0; 2], [0.0; 2], [0.0; 2], [0.0; 2]);
    for (at, &state) in path.iter().enumerate() {
        let state = usize::from(state);
        count[state] += 1.0;
        time[state] += values_us[at];
        sum[state] += logs[at];
        if at == 0 || path[at - 1] != path[at] {
            stays[state] += 1.0;
        }
    }
    let per = |what: [f64; 2], by: [f64; 2]| [what[0] / by[0], what[1] / by[1]];
    let n = logs.len() as f64;
    let mean = (sum[0] + sum[1]) / n;
    let regimes = Regimes {
        share: [count[0] / n, count[1] / n],
        stay_requests: per(count, stays),
        stay_us: per(time, stays),
        mean: per(sum, count),
        variance: logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n,
        path,
    };
    let changes = regimes.path.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let lasts = regimes.stay_requests.iter().all(|stay| *stay >= LEAST_STAY);
    // At least a tenth of what varies must be the change between the states.
    (changes >= LEAST_CHANGES && lasts && regimes.autocorrelation(0) > 0.1).then_some(regimes)
}

/// Returns natural logarithms; values below 1e-9 count as 1e-9.
pub(super) fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| libm::log(value.max(1e-9))).collect()
}
