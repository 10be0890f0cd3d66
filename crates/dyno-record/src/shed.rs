//! Order in which probes are removed if they cost more than the user allows.
//!
//! First the details of calls. Then classes of waits whose probes cost much relative to the time they report, the worst
//! first: a thousand waits of a microsecond each are expensive and explain little. Then statements and their row
//! counts. Then the remaining classes. Waits for the client and for heavyweight locks are never removed: without them
//! the time of a session does not add up. Probes that cost next to nothing are kept, because removing them would not
//! help.

use std::collections::HashMap;

use crate::classes::{CLASSES, name};

/// Interval over which the cost of probes is checked against the limit [ns].
pub const JUDGED_NS: u64 = 5_000_000_000;

/// Group of probes that is removed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Parse, bind and query ids.
    Details,
    /// A class of waits.
    Class(u8),
    /// Statements and their row counts.
    Statements,
}

/// Cost of a step's probes, and the time of the waits that they report, since the last check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cost of the step's probes [ns].
    pub cost_ns: u64,
    /// Time of the waits that the step's probes report [ns].
    pub waited_ns: u64,
}

/// A class of waits is removed earlier than the statements are if its waits took less than this multiple of the cost of
/// its probes.
const WORTH: u64 = 10;
/// A step whose cost is less than this fraction (1/20) of the total is kept.
const LITTLE: u64 = 20;

impl Step {
    /// Returns the words for what is no longer recorded after this step.
    pub fn said(self) -> String {
        match self {
            Self::Details => "parse, bind and query ids".to_owned(),
            Self::Class(class) => format!("waits of class {}", name(class)),
            Self::Statements => "statements and their rows".to_owned(),
        }
    }
}

/// Returns the step to remove next, or `None` if no removal would help; `total_ns` is the cost of all probes [ns].
pub fn next(given_up: &[Step], tally: &dyn Fn(Step) -> Tally, total_ns: u64) -> Option<Step> {
    let mut classes = CLASSES.map(Step::Class);
    // waited / cost, without a fraction; equal ones in the order of their numbers.
    classes.sort_by(|a, b| {
        let (a, b) = (tally(*a), tally(*b));
        let side = |one: Tally, other: Tally| u128::from(one.waited_ns) * u128::from(other.cost_ns.max(1));
        side(a, b).cmp(&side(b, a))
    });
    let is_poor = |step: &Step| tally(*step).waited_ns < tally(*step).cost_ns.saturating_mul(WORTH);
    let (poor, rich): (Vec<Step>, Vec<Step>) = classes.into_iter().partition(is_poor);
    let order = std::iter::once(Step::Details).chain(poor).chain([Step::Statements]).chain(rich);
    let helps = |step: &Step| tally(*step).cost_ns > 0 && tally(*step).cost_ns >= total_ns / LITTLE;
    order.filter(|step| !given_up.contains(step)).find(helps)
}

/// Returns the session that spent the most time at probes since the last call, and the share of its time, if that share
/// is above `limit`.
pub(crate) fn dearest(busy: &mut HashMap<usize, u64>, over_ns: u64, limit: f64) -> Option<(usize, f64)> {
    let (at, paid_ns) = busy.drain().max_by_key(|busy| busy.1)?;
    let share = paid_ns as f64 / over_ns as f64;
    (limit > 0.0 && share > limit).then_some((at, share))
}

#[cfg(test)]
mod tests {
    use super::{Step, Tally, next};
    use crate::classes::{IO, LWLOCK, TIMEOUT};

    fn order(of: &dyn Fn(Step) -> Tally, total_ns: u64) -> Vec<Step> {
        let mut given_up = Vec::new();
        while let Some(step) = next(&given_up, of, total_ns) {
            given_up.push(step);
        }
        given_up
    }

    fn told(step: Step) -> Tally {
        let (cost_ns, waited_ns) = match step {
            Step::Details => (100, 0),
            Step::Statements => (200, 0),
            Step::Class(LWLOCK) => (300, 150),
            Step::Class(IO) => (400, 90_000),
            Step::Class(TIMEOUT) => (1, 0),
            Step::Class(_) => (0, 0),
        };
        Tally { cost_ns, waited_ns }
    }

    #[test]
    fn details_go_first_then_dear_waits_that_tell_little_then_statements_then_waits_that_tell_much() {
        let expected = [Step::Details, Step::Class(LWLOCK), Step::Statements, Step::Class(IO)];
        assert_eq!(order(&told, 1_001), expected);
    }

    #[test]
    fn of_two_poor_classes_the_one_with_less_time_for_its_cost_goes_first() {
        let both = |step| match step {
            Step::Class(LWLOCK) => Tally { cost_ns: 100, waited_ns: 900 },
            Step::Class(IO) => Tally { cost_ns: 1_000, waited_ns: 2_000 },
            _ => Tally::default(),
        };
        assert_eq!(order(&both, 1_100), [Step::Class(IO), Step::Class(LWLOCK)]);
    }

    #[test]
    fn what_costs_next_to_nothing_is_kept_and_where_nothing_else_is_left_nothing_is_given_up() {
        let little = |step| Tally { cost_ns: u64::from(step == Step::Details), waited_ns: 0 };
        assert_eq!(order(&little, 1_000), []);
    }
}
