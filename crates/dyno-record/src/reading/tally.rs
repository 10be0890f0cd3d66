//! Number of looks (readings of the server's memory) that found each session in each statement and wait.
//!
//! A session that 300 of 1,000 looks find in one state was in it for three tenths of the time. Only changes are
//! recorded, since all looks between two changes find the same state.

use std::collections::HashMap;

use super::seen::{Change, Seen, Status};

/// State in which looks found a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Found {
    /// Process number in the order of appearance.
    pub number: u32,
    /// Wait event number; 0 for none.
    pub event: u32,
    /// State number.
    pub state: u32,
    /// Query id; 0 for none.
    pub query_id: u64,
}

/// Number of looks that found a session in a state, and the start times that the last of these looks saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Number of looks.
    pub looks: u64,
    /// Number of all looks up to the last one that found the session in the state.
    pub until: u64,
    /// Start of the transaction, the statement and the state [us since 2000]; 0 for none.
    pub since_us: [i64; 3],
}

/// Server process that a look has found.
#[derive(Debug)]
pub struct Present {
    /// Process id.
    pub pid: i32,
    event: u32,
    status: Status,
    since_look: u64,
    is_gone: bool,
}

/// Sums of the looks since the last call of [`Tally::take`].
#[derive(Default, Debug)]
pub struct Tally {
    /// Processes by number, including those that ended since the last call of [`Tally::take`].
    pub processes: HashMap<u32, Present>,
    sums: HashMap<Found, Sum>,
    /// Number of all looks so far.
    pub looks: u64,
    taken: u64,
}

impl Tally {
    /// Adds a look and the changes that it found.
    pub fn add(&mut self, changes: Vec<Change>) {
        for (number, _, seen) in changes {
            if let Seen::Begin { pid, event, .. } = seen {
                let status = Status::default();
                self.processes.insert(number, Present { pid, event, status, since_look: self.looks, is_gone: false });
                continue;
            }
            self.count(number);
            let Some(one) = self.processes.get_mut(&number) else { continue };
            match seen {
                Seen::Wait { event, .. } => one.event = event,
                Seen::Status(status) => one.status = Status { text: None, ..status },
                Seen::End => one.is_gone = true,
                Seen::Unseen(..) | Seen::Begin { .. } => {}
            }
        }
        self.looks += 1;
    }

    /// Adds to the sums the looks since the last change of a process: all found it in its current state.
    fn count(&mut self, number: u32) {
        let Some(one) = self.processes.get_mut(&number).filter(|one| !one.is_gone) else { return };
        let looks = self.looks - std::mem::replace(&mut one.since_look, self.looks);
        if looks > 0 {
            let status = &one.status;
            let key = Found { number, event: one.event, state: status.state, query_id: status.query_id };
            let sum = self.sums.entry(key).or_default();
            sum.looks += looks;
            sum.until = self.looks;
            sum.since_us = [status.xact_us, status.statement_us, status.state_us];
        }
    }

    /// Returns the sums since the last call, and the number of looks.
    pub fn take(&mut self) -> (HashMap<Found, Sum>, u64) {
        for number in self.processes.keys().copied().collect::<Vec<_>>() {
            self.count(number);
        }
        let looks = self.looks - std::mem::replace(&mut self.taken, self.looks);
        (std::mem::take(&mut self.sums), looks)
    }

    /// Removes the processes that ended and returns their numbers.
    pub fn forget(&mut self) -> Vec<u32> {
        self.processes.extract_if(|_, one| one.is_gone).map(|(number, _)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::seen::Before;

    const WAIT: u32 = 0x0A00_0001;

    fn wait(event: u32) -> Change {
        (7, 0, Seen::Wait { event, before: Before::default() })
    }

    fn status(state: u32, query_id: u64) -> Change {
        let status = Status { is_running: state == 2, state, query_id, xact_us: 5, ..Status::default() };
        (7, 0, Seen::Status(status))
    }

    #[test]
    fn each_look_counts_once_for_what_it_found() {
        let mut tally = Tally::default();
        tally.add(vec![(7, 0, Seen::Begin { pid: 70, event: 0, is_new: false })]);
        tally.add(vec![status(2, 99)]);
        tally.add(vec![]);
        tally.add(vec![wait(WAIT)]);
        tally.add(vec![wait(0), status(1, 99)]);
        let (sums, looks) = tally.take();
        let of = |event, state, query_id| sums.get(&Found { number: 7, event, state, query_id }).map(|sum| sum.looks);
        assert_eq!((of(0, 0, 0), of(0, 2, 99), of(WAIT, 2, 99), of(0, 1, 99)), (Some(1), Some(2), Some(1), Some(1)));
        assert_eq!((looks, sums.values().map(|sum| sum.looks).sum::<u64>()), (5, 5));
        assert_eq!(sums[&Found { number: 7, event: WAIT, state: 2, query_id: 99 }].since_us, [5, 0, 0]);
        let until = |event, state| sums[&Found { number: 7, event, state, query_id: 99 }].until;
        assert_eq!((until(0, 2), until(WAIT, 2), until(0, 1), tally.looks), (3, 4, 5, 5), "the last state lasts");
    }

    #[test]
    fn what_goes_on_is_counted_in_each_period_and_what_ended_no_more() {
        let mut tally = Tally::default();
        tally.add(vec![(7, 0, Seen::Begin { pid: 70, event: WAIT, is_new: true })]);
        tally.add(vec![]);
        assert_eq!(tally.take().0.values().map(|sum| sum.looks).sum::<u64>(), 2);
        tally.add(vec![]);
        tally.add(vec![(7, 0, Seen::End)]);
        let (sums, looks) = tally.take();
        assert_eq!((sums.values().map(|sum| sum.looks).sum::<u64>(), looks), (1, 2));
        assert_eq!(tally.processes[&7].pid, 70, "its identity is needed for the sums");
        assert_eq!(tally.forget(), [7]);
        tally.add(vec![]);
        assert!(tally.take().0.is_empty());
    }
}
