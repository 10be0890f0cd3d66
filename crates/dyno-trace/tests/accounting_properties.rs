//! Tests that trees of calls and waits of any shape are read exactly as made, to the microsecond.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use crate::accounting_common::{call, read, read_bytes, read_chunked, wait};
use dyno_trace::oracle_10046::accounting::CAP;
use dyno_trace::oracle_10046::reader::Reading;
use proptest::prelude::*;

/// Events that follow each other within a call or a session.
#[derive(Clone, Debug)]
enum Event {
    /// CPU time, or idle time, passes.
    Pass(i64),
    /// A wait.
    Wait(i64),
    /// A call with the events inside it, and the call's own share of CPU in percent.
    Call(Vec<Event>, i64),
}

fn events(depth: u32) -> BoxedStrategy<Vec<Event>> {
    let leaf = prop_oneof![(1i64..500).prop_map(Event::Pass), (0i64..900).prop_map(Event::Wait)];
    if depth == 0 {
        return prop::collection::vec(leaf, 0..4).boxed();
    }
    let inner = (events(depth - 1), 0i64..=120).prop_map(|(inside, cpu)| Event::Call(inside, cpu));
    prop::collection::vec(prop_oneof![2 => leaf, 2 => inner], 0..5).boxed()
}

/// Text of a trace, and the expected result of reading it.
#[derive(Default)]
struct Made {
    text: String,
    now: i64,
    /// For each call in file order: its parent's index, and its own elapsed time, CPU time and wait time.
    calls: Vec<(Option<usize>, i64, i64, i64)>,
    /// For each wait in file order: its owner's index.
    waits: Vec<Option<usize>>,
    elapsed: i64,
    between: i64,
    roots: i64,
}

/// Totals of a call that its parent needs.
#[derive(Default)]
struct Inside {
    children: Vec<usize>,
    waits: Vec<usize>,
    child_ns: i64,
    child_cpu: i64,
    wait_ns: i64,
}

impl Made {
    fn play(&mut self, events: &[Event], depth: u8) -> Inside {
        let mut inside = Inside::default();
        for event in events {
            // A microsecond apart, so that no span touches another's.
            self.now += 1;
            match event {
                Event::Pass(us) => self.now += us,
                Event::Wait(us) => {
                    self.now += us;
                    self.text += &wait(u64::from(depth), "db file sequential read", *us, self.now);
                    inside.waits.push(self.waits.len());
                    inside.wait_ns += us;
                    self.waits.push(None);
                }
                Event::Call(events, share) => {
                    let (number, elapsed, cpu) = self.call(events, *share, depth);
                    inside.children.push(number);
                    inside.child_ns += elapsed;
                    inside.child_cpu += cpu;
                }
            }
            self.now += 1;
        }
        inside
    }

    fn call(&mut self, events: &[Event], share: i64, depth: u8) -> (usize, i64, i64) {
        let start = self.now;
        self.now += 1;
        let inside = self.play(events, depth + 1);
        self.now += 1;
        let elapsed = self.now - start;
        let own = elapsed - inside.child_ns;
        let own_cpu = own * share / 100;
        let cpu = own_cpu + inside.child_cpu;
        self.text += &call("EXEC", 7, cpu, elapsed, depth, self.now);
        let number = self.calls.len();
        for child in inside.children {
            self.calls[child].0 = Some(number);
        }
        for wait in inside.waits {
            self.waits[wait] = Some(number);
        }
        self.calls.push((None, own, own_cpu, inside.wait_ns));
        (number, elapsed, cpu)
    }

    fn of(events: &[Event]) -> Self {
        let mut made = Self { now: 1_000_000, ..Self::default() };
        // The first record begins R, the last one ends it.
        made.text += &wait(1, "SQL*Net message from client", 0, made.now);
        made.waits.push(None);
        let start = made.now;
        let inside = made.play(events, 0);
        made.now += 1;
        made.text += &wait(1, "SQL*Net message from client", 0, made.now);
        made.waits.push(None);
        made.elapsed = made.now - start;
        made.between = inside.wait_ns;
        made.roots = inside.child_ns;
        made
    }
}

proptest! {
    #[test]
    fn parents_owners_and_sums_are_those_that_were_made(events in events(4)) {
        let made = Made::of(&events);
        let reader = read(&made.text);
        let (rows, account) = (&reader.sink, reader.account());
        prop_assert_eq!(rows.calls.len(), made.calls.len());
        let parents: HashMap<u64, u64> = made.calls.iter().enumerate()
            .filter_map(|(child, made)| Some((child as u64, made.0? as u64))).collect();
        prop_assert_eq!(&rows.parents, &parents);
        let owners: HashMap<u64, u64> = made.waits.iter().enumerate()
            .filter_map(|(wait, owner)| Some((wait as u64, (*owner)? as u64))).collect();
        prop_assert_eq!(&rows.owners, &owners);
        for (row, (_, own, cpu, waited)) in rows.calls.iter().zip(&made.calls) {
            prop_assert_eq!(row.own.elapsed_ns, own * 1000);
            prop_assert_eq!(row.own.cpu_ns, cpu * 1000);
            prop_assert_eq!(row.own_wait_ns, waited * 1000);
            prop_assert_eq!(row.unaccounted_ns(), (own - cpu - waited) * 1000);
            prop_assert!(row.own.elapsed_ns >= 0);
        }
        prop_assert_eq!(account.elapsed_ns, i128::from(made.elapsed) * 1000);
        prop_assert_eq!(account.calls_ns, i128::from(made.roots) * 1000);
        prop_assert_eq!(account.between_ns(), i128::from(made.between) * 1000);
        prop_assert_eq!(account.orphans(), 0);
        prop_assert_eq!(account.negative, 0);
    }

    #[test]
    fn rows_do_not_depend_on_how_the_file_is_cut(events in events(3), chunk in 1usize..300) {
        let made = Made::of(&events);
        let (whole, cut) = (read(&made.text), read_chunked(&made.text, Reading::default(), chunk));
        prop_assert_eq!(&whole.sink.calls, &cut.sink.calls);
        prop_assert_eq!(&whole.sink.parents, &cut.sink.parents);
        prop_assert_eq!(&whole.sink.owners, &cut.sink.owners);
        prop_assert_eq!(whole.account(), cut.account());
    }

    #[test]
    fn a_damaged_trace_closes_too(
        events in events(3),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = Made::of(&events).text.into_bytes();
        for (place, byte) in damage {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let account = read_bytes(&bytes).account();
        let whole = account.calls_ns + account.between_ns() + account.unexplained_ns();
        prop_assert_eq!(whole, account.elapsed_ns);
        let within = account.cpu_ns + account.wait_inside_ns + account.unaccounted_ns();
        prop_assert_eq!(within, account.calls_ns);
    }

    #[test]
    fn any_numbers_in_any_order_close_and_do_not_panic(
        records in prop::collection::vec(
            (any::<bool>(), any::<i64>(), any::<i64>(), 0u8..5, any::<i64>(), 0u32..63), 0..60)
    ) {
        let mut text = String::new();
        for (is_call, c, e, dep, tim, shift) in records {
            let (c, e, tim) = (c >> shift, e >> shift, tim >> shift);
            text += &if is_call {
                call("EXEC", 1, c.max(0), e.max(0), dep, tim.max(0))
            } else {
                wait(1, "x", e.max(0), tim.max(0))
            };
        }
        let account = read(&text).account();
        let whole = account.calls_ns + account.between_ns() + account.unexplained_ns();
        prop_assert_eq!(whole, account.elapsed_ns);
        let within = account.cpu_ns + account.wait_inside_ns + account.unaccounted_ns();
        prop_assert_eq!(within, account.calls_ns);
    }
}

#[test]
fn a_call_with_more_children_than_are_remembered_singly_still_has_them_all() {
    let (mut text, mut now, children) = (String::new(), 1_000i64, 3 * CAP as i64);
    for _ in 0..children {
        now += 10;
        text += &wait(9, "db file sequential read", 3, now - 2);
        text += &call("EXEC", 9, 1, 5, 1, now);
        text += &wait(8, "latch free", 1, now + 2);
        now += 3;
    }
    now += 1;
    text += &call("EXEC", 8, children, now - 1_000, 0, now);
    let reader = read(&text);
    let (rows, account) = (&reader.sink, reader.account());
    let last = rows.calls.last().unwrap();
    assert_eq!(last.own.elapsed_ns, (now - 1_000 - 5 * children) * 1000);
    assert_eq!((last.own.cpu_ns, last.own_wait_ns), (0, children * 1000));
    assert_eq!(rows.parents.len() as i64, children);
    assert_eq!(rows.owners.len() as i64, 2 * children);
    assert_eq!((account.orphans(), account.waits_inside), (0, 2 * children as u64));
}

#[test]
fn orphans_and_waits_between_calls_do_not_pile_up() {
    let (mut text, mut now) = (String::new(), 1_000i64);
    let rounds = 2 * CAP as i64;
    for _ in 0..rounds {
        now += 100;
        text += &call("EXEC", 1, 0, 10, 1, now);
        now += 50;
        text += &call("EXEC", 2, 0, 20, 0, now);
        now += 50;
        text += &wait(2, "SQL*Net message from client", 40, now);
    }
    let reader = read(&text);
    let account = reader.account();
    assert_eq!(account.orphans(), rounds as u64);
    assert_eq!(account.calls_ns, i128::from(rounds) * 30_000);
    assert_eq!(account.between_ns(), i128::from(rounds) * 40_000);
    assert_eq!(reader.sink.between.len() as i64, rounds);
}
