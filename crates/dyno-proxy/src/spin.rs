//! Decision whether to poll for the next message instead of sleeping until it arrives.
//!
//! Being woken takes longer than forwarding a message. So after a message the loop polls for a while, if that pays:
//! if the next message usually arrives in this time, and nobody else needs the processor. The kernel reports how long
//! the thread was runnable without a processor.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// Polling time after a message if the loop decides itself [ns].
const LONG_NS: u64 = 200_000;
/// Number of messages after which the loop checks whether polling is worthwhile.
const TRIES: u32 = 64;
/// Interval at which the demand for the processor is checked [ns].
const LOOK_NS: u64 = 10_000_000;
/// Inverse of the tolerated share of time spent waiting for a processor.
const CROWDED: u64 = 20;
/// Time for which polling is suspended after it did not pay off [ns].
const REST_NS: u64 = 1_000_000_000;

/// Polling state of one loop.
pub struct Spin {
    most_ns: u64,
    choice: Option<Choice>,
    heard_ns: u64,
}

/// State of the automatic decision.
struct Choice {
    /// Returns how long the thread has been runnable without a processor [ns].
    waited: Box<dyn Fn() -> Option<u64>>,
    waited_ns: u64,
    looked_ns: u64,
    /// True if the thread slept since the last check.
    ///
    /// Waking up also counts as a wait for a processor, but no other thread causes that wait.
    slept: bool,
    tries: u32,
    hits: u32,
    rests_until_ns: u64,
}

impl Spin {
    /// Returns the state of a loop that always polls for `asked` ns (0: never), or, with `None`, decides itself; must
    /// be called on the thread that polls.
    pub fn new(asked: Option<u64>) -> Self {
        asked.map_or_else(Self::choosing, |most_ns| Self { most_ns, choice: None, heard_ns: 0 })
    }

    fn choosing() -> Self {
        let file = File::open("/proc/thread-self/schedstat").ok();
        Self::by(Box::new(move || file.as_ref().and_then(waited_ns)))
    }

    fn by(waited: Box<dyn Fn() -> Option<u64>>) -> Self {
        let choice = Choice { waited, waited_ns: 0, looked_ns: 0, slept: true, tries: 0, hits: 0, rests_until_ns: 0 };
        Self { most_ns: LONG_NS, choice: Some(choice), heard_ns: 0 }
    }

    /// Records that a message has arrived.
    pub fn heard(&mut self, at_ns: u64) {
        let gap_ns = at_ns.saturating_sub(self.heard_ns);
        self.heard_ns = at_ns;
        let Some(choice) = &mut self.choice else { return };
        if at_ns < choice.rests_until_ns {
            return;
        }
        choice.tries += 1;
        choice.hits += u32::from(gap_ns < self.most_ns);
        if choice.tries == TRIES {
            let pays = choice.hits * 2 >= choice.tries;
            (choice.tries, choice.hits) = (0, 0);
            if !pays {
                choice.rest(at_ns);
            }
        }
    }

    /// Returns true to poll again immediately, false to sleep.
    fn is_awake(&mut self, at_ns: u64) -> bool {
        let is_soon = at_ns.saturating_sub(self.heard_ns) < self.most_ns;
        let Some(choice) = &mut self.choice else { return is_soon };
        let is_awake = is_soon && choice.may(at_ns);
        choice.slept |= !is_awake;
        is_awake
    }

    /// Returns how long the loop may sleep if nothing arrives.
    pub fn patience(&mut self, at_ns: u64, tick: Duration) -> Duration {
        if self.is_awake(at_ns) { Duration::ZERO } else { tick }
    }
}

impl Choice {
    fn rest(&mut self, at_ns: u64) {
        self.rests_until_ns = at_ns + REST_NS;
    }

    /// Returns true if polling is not paused and nobody else needs the processor.
    fn may(&mut self, at_ns: u64) -> bool {
        if at_ns < self.rests_until_ns {
            return false;
        }
        let since_ns = at_ns.saturating_sub(self.looked_ns);
        if since_ns < LOOK_NS {
            return true;
        }
        let Some(waited_ns) = (self.waited)() else { return false };
        let is_crowded = !self.slept && (waited_ns - self.waited_ns) * CROWDED > since_ns;
        (self.looked_ns, self.waited_ns, self.slept) = (at_ns, waited_ns, false);
        if is_crowded {
            self.rest(at_ns);
        }
        !is_crowded
    }
}

/// Returns the second number of a thread's `schedstat`: how long it was runnable without a processor [ns].
fn waited_ns(file: &File) -> Option<u64> {
    let mut bytes = [0_u8; 96];
    let length = file.read_at(&mut bytes, 0).ok()?;
    std::str::from_utf8(&bytes[..length]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    const US: u64 = 1_000;

    #[test]
    fn a_time_that_is_asked_for_is_kept_whatever_comes() {
        let mut spin = Spin::new(Some(50 * US));
        spin.heard(1_000 * US);
        assert!(spin.is_awake(1_049 * US));
        assert!(!spin.is_awake(1_050 * US));
        assert!(!Spin::new(Some(0)).is_awake(0));
    }

    /// Returns a loop whose waiting time for the processor is `waited`.
    fn beside(waited: &Rc<Cell<u64>>) -> Spin {
        let waited = Rc::clone(waited);
        Spin::by(Box::new(move || Some(waited.get())))
    }

    #[test]
    fn it_rests_where_messages_come_seldom_and_tries_again() {
        let mut spin = beside(&Rc::default());
        let mut at_ns = 10_000 * US;
        for _ in 0..=TRIES {
            spin.heard(at_ns);
            at_ns += 2_000 * US;
        }
        assert!(!spin.is_awake(at_ns - 1_999 * US), "all came later than it stays awake");
        at_ns += REST_NS;
        for _ in 0..10 * TRIES {
            at_ns += 30 * US;
            spin.heard(at_ns);
        }
        assert!(spin.is_awake(at_ns + US), "they come quickly: it pays");
        assert!(!spin.is_awake(at_ns + LONG_NS), "and only for a while after each");
    }

    #[test]
    fn it_rests_where_others_want_the_processor() {
        let waited = Rc::default();
        let mut spin = beside(&waited);
        let mut at_ns = REST_NS;
        let pass = |spin: &mut Spin, at_ns: &mut u64, others_ns: u64| {
            for _ in 0..500 {
                *at_ns += 30 * US;
                waited.set(waited.get() + others_ns);
                spin.heard(*at_ns);
                if !spin.is_awake(*at_ns + US) {
                    return false;
                }
            }
            true
        };
        assert!(pass(&mut spin, &mut at_ns, US / 2), "hardly ever");
        assert!(!pass(&mut spin, &mut at_ns, 15 * US), "half of the time");
        assert!(!pass(&mut spin, &mut at_ns, 0), "for a while");
        at_ns += REST_NS;
        assert!(pass(&mut spin, &mut at_ns, 0), "then it is tried again");
    }

    #[test]
    fn the_time_to_be_woken_is_nobody_elses() {
        let waited = Rc::default();
        let mut spin = beside(&waited);
        let mut at_ns = REST_NS;
        for turn in 0..20 * TRIES {
            at_ns += if turn % 3 == 0 { 2 * LONG_NS } else { 30 * US };
            waited.set(waited.get() + 20 * US);
            spin.is_awake(at_ns);
            spin.heard(at_ns);
            assert!(spin.is_awake(at_ns + US), "turn {turn}");
        }
    }

    #[test]
    fn the_kernel_says_how_long_a_thread_waited() {
        if let Ok(file) = File::open("/proc/thread-self/schedstat") {
            assert!(waited_ns(&file).is_some());
        }
    }
}
