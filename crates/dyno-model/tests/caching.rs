//! Tests the miss ratios of a buffer cache, which are computed from its characteristic time, against exact small
//! caches, and against caches that are simulated reference by reference: least recently used, and `PostgreSQL`'s clock.
#![allow(clippy::unwrap_used, missing_docs)]

use dyno_model::kernel::{Simulation, Stream};
use dyno_model::postgres::cached::{Group, Policy, miss_ratios};

fn group(pages: u64, share: f64) -> Group {
    Group { pages: pages as f64, rate: share / pages as f64 }
}

/// Draws a page at random: returns the index of its group and the number of the page. `groups` has the number of pages
/// of each group and its share of the references.
fn draw(groups: &[(u64, f64)], dice: &mut Stream) -> (usize, u64) {
    let (mut left, mut first) = (dice.unit(), 0);
    for (at, (pages, share)) in groups.iter().enumerate() {
        if left < *share || at + 1 == groups.len() {
            return (at, first + dice.below(*pages));
        }
        left -= share;
        first += pages;
    }
    unreachable!()
}

/// Returns the miss ratio of each group in a simulated cache.
fn simulated(groups: &[(u64, f64)], mut cache: impl FnMut(u64) -> bool, references: u64) -> Vec<f64> {
    let simulation = Simulation::new(7);
    let mut dice = simulation.sim().stream("references");
    let mut counts = vec![(0.0, 0.0); groups.len()];
    for number in 0..references {
        let (at, page) = draw(groups, &mut dice);
        let missed = cache(page);
        if number > references / 4 {
            counts[at].0 += 1.0;
            counts[at].1 += f64::from(u8::from(missed));
        }
    }
    counts.iter().map(|(all, missed)| missed / all).collect()
}

/// Returns a cache that drops the page least recently used; it returns true for a miss.
fn lru(buffers: usize) -> impl FnMut(u64) -> bool {
    let (mut last, mut order, mut now) = (std::collections::HashMap::new(), std::collections::BTreeMap::new(), 0_u64);
    move |page| {
        now += 1;
        let before = last.insert(page, now);
        if let Some(before) = before {
            order.remove(&before);
        } else if order.len() == buffers {
            let (_, dropped) = order.pop_first().unwrap();
            last.remove(&dropped);
        }
        order.insert(now, page);
        before.is_none()
    }
}

/// Returns a cache with `PostgreSQL`'s clock sweep: the hand drops a page if it finds the page's usage count at 0.
fn clock(buffers: usize) -> impl FnMut(u64) -> bool {
    let (mut places, mut slots, mut hand) = (std::collections::HashMap::new(), Vec::<(u64, u8)>::new(), 0);
    move |page| {
        if let Some(&slot) = places.get(&page) {
            let count: &mut u8 = &mut slots[slot as usize].1;
            *count = (*count + 1).min(5);
            return false;
        }
        if slots.len() < buffers {
            places.insert(page, slots.len() as u64);
            slots.push((page, 1));
            return true;
        }
        loop {
            let own = hand;
            hand = (hand + 1) % buffers;
            if slots[own].1 > 0 {
                slots[own].1 -= 1;
                continue;
            }
            places.remove(&slots[own].0);
            slots[own] = (page, 1);
            places.insert(page, own as u64);
            return true;
        }
    }
}

const CASES: [(&[(u64, f64)], usize); 5] = [
    (&[(10_000, 1.0)], 1_000),
    (&[(1_000, 0.5), (10_000, 0.5)], 1_500),
    (&[(100, 0.4), (1_000, 0.4), (20_000, 0.2)], 1_000),
    (&[(500, 0.5), (5_000, 0.5)], 5_000),
    (&[(20, 0.3), (200, 0.3), (2_000, 0.3), (20_000, 0.1)], 400),
];

fn compare(policy: Policy, cache: impl Fn(usize) -> Box<dyn FnMut(u64) -> bool>) {
    for (groups, buffers) in CASES {
        let expected = simulated(groups, cache(buffers), 1_000_000);
        let given: Vec<Group> = groups.iter().map(|&(pages, share)| group(pages, share)).collect();
        let found = miss_ratios(&given, buffers as f64, policy);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 0.01, "{policy:?} {buffers}: {found} instead of {expected}");
        }
    }
}

#[test]
fn misses_of_a_simulated_lru_are_expected() {
    compare(Policy::Lru, |buffers| Box::new(lru(buffers)));
}

#[test]
fn misses_of_a_simulated_clock_of_postgresql_are_expected() {
    compare(Policy::Clock, |buffers| Box::new(clock(buffers)));
}

/// Returns the exact miss ratio of an LRU cache: the sum over all orders of its pages (King, IFIP Congress 1971).
fn exact_lru(popular: &[f64], buffers: usize) -> f64 {
    fn cached(popular: &[f64], left: usize, free: f64, chance: f64, inside: &mut Vec<usize>) -> f64 {
        if left == 0 {
            return chance * inside.iter().map(|&page| popular[page]).sum::<f64>();
        }
        let mut hits = 0.0;
        for (page, p) in popular.iter().enumerate() {
            if !inside.contains(&page) {
                inside.push(page);
                hits += cached(popular, left - 1, free - p, chance * p / free, inside);
                inside.pop();
            }
        }
        hits
    }
    1.0 - cached(popular, buffers, 1.0, 1.0, &mut Vec::new())
}

#[test]
fn misses_of_small_caches_are_near_the_exact_ones() {
    let zipf: f64 = (1..=10).map(|rank| 1.0 / f64::from(rank)).sum();
    let popular: Vec<f64> = (1..=10).map(|rank| 1.0 / f64::from(rank) / zipf).collect();
    let groups: Vec<Group> = popular.iter().map(|&rate| Group { pages: 1.0, rate }).collect();
    for buffers in 1..=5 {
        let found: f64 =
            miss_ratios(&groups, buffers as f64, Policy::Lru).iter().zip(&popular).map(|(miss, p)| miss * p).sum();
        let exact = exact_lru(&popular, buffers);
        assert!((found - exact).abs() < 0.02, "{buffers}: {found} instead of {exact}");
    }
}

#[test]
fn equally_popular_pages_miss_by_the_share_that_is_not_in_the_cache() {
    for policy in [Policy::Lru, Policy::Clock] {
        for buffers in [10.0, 100.0, 500.0, 990.0] {
            let found = miss_ratios(&[group(1_000, 1.0)], buffers, policy)[0];
            assert!((found - (1.0 - buffers / 1_000.0)).abs() < 1e-6, "{policy:?} {buffers}: {found}");
        }
    }
}

#[test]
fn nothing_misses_in_a_cache_that_holds_everything_and_unused_pages_take_no_room() {
    let groups = [group(100, 1.0), Group { pages: 1e9, rate: 0.0 }];
    assert_eq!(miss_ratios(&groups, 100.0, Policy::Clock), [0.0, 0.0]);
    assert!(miss_ratios(&groups, 99.0, Policy::Clock)[0] > 0.0);
}
