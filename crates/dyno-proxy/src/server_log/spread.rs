//! Distribution of entries with the same stamp over the stamp's resolution, in the order of the log.
//!
//! A stamp has milliseconds (`%m`) or seconds (`%t`), and is rounded down. Durations have microseconds. `trace replay
//! --order commit` must know whether a statement ended after another session had sent its commit, and the two are often
//! less than a millisecond apart. In such a case the order of the lines is used: of `n` entries with the same stamp,
//! entry number `i`, from 0, gets the time at `(i + 1/2) / n` of the stamp's resolution. Entries are held back for some
//! milliseconds of the log, because an entry that is logged shortly before a commit of another session may have waited
//! for that commit. Such an entry is then moved to a time after the start of the commit, as far as its stamp allows.
//! [`super::session`] has the rules.

use std::collections::VecDeque;

use super::event::{Event, Step, What};

/// Maximum number of entries that are held back.
const HELD: usize = 1 << 12;
/// Span of the log for which entries are held back [ns].
const WINDOW_NS: u64 = 4_000_000;

/// Log entries that are held back until their order is known.
#[derive(Default)]
pub struct Spread {
    /// Entries with the current stamp.
    held: Vec<Event>,
    /// Earlier entries, with their times.
    window: VecDeque<Event>,
    bytes: usize,
    resolution_ns: u64,
    /// Part of the current stamp's resolution that its earlier entries have taken [ns].
    taken_ns: u64,
    /// True once an entry had a duration; until then no entry is moved, and none is held back beyond its stamp.
    is_timed: bool,
}

/// Returns the duration of a lone COMMIT or ROLLBACK [ns]; `None` for anything else.
fn commit(event: &Event) -> Option<u64> {
    let What::Done(said, duration_ns) = &event.what else { return None };
    if !matches!(said.step, Step::Simple | Step::Execute) {
        return None;
    }
    let text = said.sql.trim_ascii().trim_suffix_semicolon();
    let is_commit = [&b"commit"[..], b"end", b"rollback", b"abort"].iter().any(|word| text.eq_ignore_ascii_case(word));
    is_commit.then_some(*duration_ns)
}

/// Returns the earliest time at which a lone COMMIT was sent [ns]; `None` for anything else, and in logs without
/// durations.
fn commit_begin(event: &Event) -> Option<u64> {
    commit(event).filter(|duration_ns| *duration_ns > 0).map(|duration_ns| event.floor_ns.saturating_sub(duration_ns))
}

trait TrimSuffixSemicolon {
    fn trim_suffix_semicolon(&self) -> &Self;
}

impl TrimSuffixSemicolon for [u8] {
    fn trim_suffix_semicolon(&self) -> &Self {
        self.strip_suffix(b";").unwrap_or(self)
    }
}

impl Spread {
    /// Adds an entry; passes earlier ones to `on` with their times.
    pub fn add(&mut self, event: Event, resolution_ns: u64, on: &mut impl FnMut(Event)) {
        let is_other = self.held.first().is_some_and(|first| first.floor_ns != event.floor_ns);
        if is_other || self.held.len() >= HELD || self.bytes > super::input::LONGEST {
            self.spread(is_other, on);
            let newest_ns = event.floor_ns;
            let limit = if self.bytes > super::input::LONGEST { 0 } else { HELD };
            while self.window.len() > limit
                || self
                    .window
                    .front()
                    .is_some_and(|first| !(first.floor_ns..=first.latest_ns + WINDOW_NS).contains(&newest_ns))
            {
                let Some(first) = self.window.pop_front() else { break };
                self.bytes = self.bytes.saturating_sub(first.size());
                on(first);
            }
        }
        self.resolution_ns = resolution_ns;
        self.is_timed |= matches!(event.what, What::Done(_, 1..));
        self.bytes += event.size();
        self.held.push(event);
    }

    /// Assigns times to the entries of one stamp. If more entries may follow, these get only the first half of the time
    /// that is left within the stamp's resolution.
    fn spread(&mut self, is_complete: bool, on: &mut impl FnMut(Event)) {
        let left_ns = self.resolution_ns.saturating_sub(self.taken_ns);
        let span_ns = if is_complete { left_ns } else { left_ns / 2 };
        let step_ns = span_ns / (self.held.len() as u64).max(1);
        let from_ns = self.taken_ns + step_ns / 2;
        self.taken_ns = if is_complete { 0 } else { self.taken_ns + span_ns };
        let mut held = std::mem::take(&mut self.held);
        for (place, mut event) in held.drain(..).enumerate() {
            event.at_ns = event.floor_ns + from_ns + step_ns * place as u64;
            event.latest_ns = event.floor_ns + self.resolution_ns;
            if !self.is_timed {
                self.bytes = self.bytes.saturating_sub(event.size());
                on(event);
                continue;
            }
            if let Some(begin_ns) = commit_begin(&event) {
                self.make_room(event.pid, begin_ns);
            }
            self.window.push_back(event);
        }
        self.held = held;
    }

    /// Moves entries of other sessions that may have waited for this commit to times after its start, and the latest
    /// earlier entry of the commit's session to a time before it.
    fn make_room(&mut self, pid: u32, begin_ns: u64) {
        let mut is_own_known = false;
        for earlier in self.window.iter_mut().rev() {
            // Lines are nearly in the order of their stamps.
            if is_own_known && earlier.latest_ns + WINDOW_NS < begin_ns {
                break;
            }
            if earlier.pid == pid {
                if !is_own_known {
                    earlier.at_ns = earlier.at_ns.min(begin_ns).max(earlier.floor_ns);
                }
                is_own_known = true;
            } else if earlier.at_ns <= begin_ns && begin_ns < earlier.latest_ns && commit(earlier).is_none() {
                earlier.at_ns = begin_ns + 1;
            }
        }
    }

    /// Passes on all held entries.
    pub fn end(&mut self, on: &mut impl FnMut(Event)) {
        self.spread(true, on);
        self.bytes = 0;
        self.window.drain(..).for_each(on);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::event::What;
    use super::*;

    fn done(pid: u32, floor_ns: u64, duration_ns: u64, sql: &str) -> Event {
        let said = super::super::event::Said {
            step: Step::Simple,
            name: Vec::new(),
            sql: sql.as_bytes().to_vec(),
            parameters: super::super::parameters::Parameters::default(),
            prepare: Vec::new(),
        };
        Event {
            at_ns: floor_ns,
            floor_ns,
            latest_ns: floor_ns,
            file: Arc::from("log"),
            line: 1,
            pid,
            start: 0,
            who: None,
            what: What::Done(said, duration_ns),
        }
    }

    #[test]
    fn what_may_have_waited_for_a_commit_is_put_behind_its_begin() {
        let (mut spread, mut found) = (Spread::default(), Vec::new());
        let mut on = |event: Event| found.push((event.pid, event.at_ns));
        // The commit began at 1.9 ms at the earliest; the update of the other session ended until 2 ms.
        for event in [
            done(1, 1_000_000, 10_000, "insert"),
            done(2, 1_000_000, 900_000, "update"),
            done(2, 2_000_000, 10_000, "insert"),
            done(1, 2_000_000, 100_000, "COMMIT;"),
        ] {
            spread.add(event, 1_000_000, &mut on);
        }
        spread.end(&mut on);
        assert_eq!(found, [(1, 1_250_000), (2, 1_900_001), (2, 2_250_000), (1, 2_750_000)]);
    }

    #[test]
    fn more_entries_of_one_stamp_than_are_held_keep_their_order() {
        let (mut spread, mut found) = (Spread::default(), Vec::new());
        let mut on = |event: Event| found.push(event.at_ns);
        for pid in 0..3 * HELD as u32 {
            spread.add(done(pid, 1_000_000_000, 0, "select"), 1_000_000_000, &mut on);
        }
        spread.end(&mut on);
        assert!(found.len() == 3 * HELD && found.is_sorted());
        assert!(found[found.len() - 1] < 2_000_000_000);
    }

    #[test]
    fn a_commit_without_a_duration_moves_nothing() {
        let (mut spread, mut found) = (Spread::default(), Vec::new());
        let mut on = |event: Event| found.push((event.pid, event.at_ns));
        for (pid, sql) in [(1, "begin"), (2, "begin"), (1, "insert"), (1, "commit")] {
            spread.add(done(pid, 1_000_000, 0, sql), 1_000_000, &mut on);
        }
        spread.end(&mut on);
        assert_eq!(found, [(1, 1_125_000), (2, 1_375_000), (1, 1_625_000), (1, 1_875_000)]);
    }

    #[test]
    fn entries_of_one_stamp_are_spread_in_their_order() {
        let event = |at_ns, line| Event {
            at_ns,
            floor_ns: at_ns,
            latest_ns: at_ns,
            file: Arc::from("log"),
            line,
            pid: 1,
            start: 0,
            who: None,
            what: What::Connected,
        };
        let (mut spread, mut found) = (Spread::default(), Vec::new());
        let mut on = |event: Event| found.push((event.line, event.at_ns));
        for (at_ns, line) in [(1_000_000, 1), (1_000_000, 2), (3_000_000, 3)] {
            spread.add(event(at_ns, line), 1_000_000, &mut on);
        }
        spread.end(&mut on);
        assert_eq!(found, [(1, 1_250_000), (2, 1_750_000), (3, 3_500_000)]);
    }
}
