//! What happens next in a run: what is due at this instant, and the calendar of what is due later.

use std::collections::VecDeque;

use super::calendar::{Calendar, Front};
use super::process::ProcessId;

/// An event: a process to wake, or a call of a machine, as the two numbers that are added to the hash of a run.
#[derive(Clone, Copy, Debug)]
pub struct What {
    /// The process as [`ProcessId::bits`], or the token of the call.
    pub token: u64,
    /// Number of the machine plus 1; 0 for a process.
    pub machine: u64,
}

impl What {
    #[inline]
    pub fn wake(process: ProcessId) -> Self {
        Self { token: process.bits(), machine: 0 }
    }

    #[inline]
    pub fn call(machine: u32, token: u64) -> Self {
        Self { token, machine: u64::from(machine) + 1 }
    }
}

/// The next event of a run.
pub enum Next {
    /// The event happens at this time [ns], which may be this instant.
    At(u64, What),
    /// The event is later than the limit.
    Later,
    /// Nothing is pending.
    Nothing,
}

/// Events to come, at this instant and later.
#[derive(Default)]
pub struct Agenda {
    calendar: Calendar<What>,
    /// Events of this instant, in the order in which they were requested; they happen after the events of the calendar
    /// for this instant.
    ready: VecDeque<What>,
    /// True if the calendar is known to have no further event of this instant. Since new events in the calendar are
    /// always for a later instant, the calendar need not be examined again before the clock moves.
    quiet: bool,
}

impl Agenda {
    /// Adds an event at this instant, after everything that is already due.
    #[inline]
    pub fn now(&mut self, what: What) {
        self.ready.push_back(what);
    }

    /// Schedules an event at a later instant; returns its number for [`Agenda::cancel`].
    #[inline]
    pub fn later(&mut self, time_ns: u64, what: What) -> u64 {
        self.calendar.put(time_ns, what)
    }

    /// Cancels a pending event at a later instant by its number.
    pub fn cancel(&mut self, number: u64) {
        self.calendar.cancel(number);
    }

    /// Returns the time of the next event [ns].
    pub fn next_ns(&mut self, now_ns: u64) -> Option<u64> {
        if self.ready.is_empty() { self.calendar.first_ns() } else { Some(now_ns) }
    }

    /// Removes the next event if it is not later than `limit_ns`; events of the calendar come before other events of
    /// the same instant.
    #[inline]
    pub fn take(&mut self, now_ns: u64, limit_ns: u64) -> Next {
        if !self.ready.is_empty() {
            if !self.quiet {
                self.quiet = !self.calendar.may_have(now_ns) || self.calendar.first_ns() != Some(now_ns);
            }
            if self.quiet
                && let Some(what) = self.ready.pop_front()
            {
                return Next::At(now_ns, what);
            }
        }
        match self.calendar.take_until(limit_ns) {
            Front::Event(time_ns, _, what) => {
                self.quiet = false;
                Next::At(time_ns, what)
            }
            Front::Later => Next::Later,
            Front::Nothing => Next::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tokens of all events in their order, with their times.
    fn all(agenda: &mut Agenda, mut now_ns: u64) -> Vec<(u64, u64)> {
        let next = || match agenda.take(now_ns, 10) {
            Next::At(time_ns, what) => {
                now_ns = time_ns;
                Some((time_ns, what.token))
            }
            Next::Later | Next::Nothing => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn what_the_calendar_has_for_an_instant_comes_before_what_was_requested_at_it() {
        for cancelled in [false, true] {
            let event = |token| What { token, machine: 1 };
            let mut agenda = Agenda::default();
            let numbers: Vec<u64> = (0..6).map(|token| agenda.later(5, event(token))).collect();
            agenda.later(7, event(6));
            agenda.later(11, event(7));
            assert!(matches!(agenda.take(0, 10), Next::At(5, What { token: 0, .. })));
            agenda.now(event(8));
            numbers[1..].iter().filter(|_| cancelled).for_each(|&number| agenda.cancel(number));
            let due: &[(u64, u64)] = if cancelled { &[] } else { &[(5, 1), (5, 2), (5, 3), (5, 4), (5, 5)] };
            assert_eq!(all(&mut agenda, 5), [due, &[(5, 8), (7, 6)]].concat());
            assert_eq!(agenda.next_ns(10), Some(11));
        }
    }
}
