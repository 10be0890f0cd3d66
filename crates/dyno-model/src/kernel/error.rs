//! Why a run could not go on.

use std::fmt;

/// A day.
const DAY_NS: u64 = 86_400_000_000_000;

/// The end of virtual time: a run that has not ended by then is refused. Sums of times over 4,096 servers
/// are whole numbers of 64 bits up to here.
pub const HORIZON_NS: u64 = 30 * DAY_NS;

/// A process that waits, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The process, as it was named when spawned, and its number among all of them.
    pub process: String,
    /// What it waits for: the name of a resource, condition or channel.
    pub waits_for: String,
    /// Since when.
    pub since_ns: u64,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, waits_for, since_ns } = self;
        write!(f, "{process} waits for {waits_for} since {since_ns} ns")
    }
}

/// Why a run could not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// Nothing is left to do while processes wait.
    #[error("deadlock at {now_ns} ns: nothing is left to do, and {}", list(.waiting))]
    Deadlock {
        /// When.
        now_ns: u64,
        /// Who waits for what, in order of their numbers.
        waiting: Vec<Waiting>,
    },
    /// The clock would pass the end of virtual time.
    #[error(
        "virtual time would pass {} days at {now_ns} ns: times, sizes or the number of transactions are too \
         large for it; {}", HORIZON_NS / DAY_NS, list(.waiting)
    )]
    Endless {
        /// When the last event was.
        now_ns: u64,
        /// Who waits for what.
        waiting: Vec<Waiting>,
    },
    /// More events at one instant than any model needs: processes wake each other for ever.
    #[error("time stands still at {now_ns} ns: {events} events without the clock moving")]
    Standstill {
        /// When.
        now_ns: u64,
        /// How many events there were.
        events: u64,
    },
}

/// The first few, and how many more.
fn list(waiting: &[Waiting]) -> String {
    let mut text: Vec<String> = waiting.iter().take(8).map(ToString::to_string).collect();
    if waiting.len() > 8 {
        text.push(format!("{} more", waiting.len() - 8));
    }
    text.join("; ")
}
