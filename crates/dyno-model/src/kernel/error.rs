//! Reasons why a run could not continue.

use std::fmt;

/// A day [ns].
const DAY_NS: u64 = 86_400_000_000_000;

/// End of virtual time [ns]: a run that has not ended by then fails. Up to this time, sums of times over 4,096 servers
/// fit into 64 bits.
pub const HORIZON_NS: u64 = 30 * DAY_NS;

/// A waiting process, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Name of the process, and its number among all processes of the run.
    pub process: String,
    /// Name of the resource, condition or channel that the process waits for.
    pub waits_for: String,
    /// Start of the wait [ns].
    pub since_ns: u64,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, waits_for, since_ns } = self;
        write!(f, "{process} waits for {waits_for} since {since_ns} ns")
    }
}

/// Reason why a run could not continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// No event is pending while processes wait.
    #[error("deadlock at {now_ns} ns: nothing is left to do, and {}", list(.waiting))]
    Deadlock {
        /// Virtual time of the deadlock [ns].
        now_ns: u64,
        /// Waiting processes in order of their numbers.
        waiting: Vec<Waiting>,
    },
    /// The clock would pass the end of virtual time.
    #[error(
        "virtual time would pass {} days at {now_ns} ns: times, sizes or the number of transactions are too \
         large for it; {}", HORIZON_NS / DAY_NS, list(.waiting)
    )]
    Endless {
        /// Time of the last event [ns].
        now_ns: u64,
        /// Waiting processes.
        waiting: Vec<Waiting>,
    },
    /// More events at one instant than any model needs: processes wake each other endlessly.
    #[error("virtual time stopped at {now_ns} ns: {events} events without the clock advancing")]
    Standstill {
        /// Virtual time at which the clock stopped [ns].
        now_ns: u64,
        /// Number of events.
        events: u64,
    },
}

/// Returns the first few waiting processes as text, and how many more there are.
fn list(waiting: &[Waiting]) -> String {
    let mut text: Vec<String> = waiting.iter().take(8).map(ToString::to_string).collect();
    if waiting.len() > 8 {
        text.push(format!("{} more", waiting.len() - 8));
    }
    text.join("; ")
}
