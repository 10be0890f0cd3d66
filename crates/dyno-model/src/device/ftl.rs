//! Mapping of one flash die: where each logical page is, and how space is freed.
//!
//! ```text
//!   write page 7 --> [host frontier: an open block] -- full --> sealed blocks, by valid pages
//!                    the old copy of page 7 becomes invalid         |
//!                                                                   v  collector picks a victim
//!   free blocks <-- erase <-- copy its valid pages to the [copy frontier]
//! ```
//!
//! The mapping knows no time: the device requests steps and knows how long each takes. Collection proceeds page by
//! page, so that other work can be done in between. There are two frontiers: copied pages are old and stay together,
//! which separates cold from hot pages if writes are skewed and changes nothing if they are uniform.
//!
//! Tested: programs = host writes + copies; valid + invalid + free = all pages; write amplification equals
//! [`greedy_amplification`](crate::formula::greedy_amplification) under uniform random writes.

use serde::{Deserialize, Serialize};

use crate::kernel::Stream;

const NONE: u32 = u32::MAX;

/// Rule by which the block to collect is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collector {
    /// The block with the fewest valid pages.
    #[default]
    Greedy,
    /// The block with the most free space per work, weighted by its age (Rosenblum and Ousterhout 1992).
    CostBenefit,
    /// The block sealed longest ago.
    Fifo,
}

/// One step of collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A page was read and programmed elsewhere.
    Copy,
    /// A block was erased and is free.
    Erase,
    /// Collection would free nothing.
    Nothing,
}

/// Counters of the mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of pages written by the host.
    pub host_writes: u64,
    /// Number of pages moved by the collector.
    pub copies: u64,
    /// Number of pages programmed.
    pub programs: u64,
    /// Number of blocks erased.
    pub erases: u64,
    /// Number of pages that discards have freed.
    pub trimmed: u64,
}

impl Counts {
    /// Returns the write amplification: programs per host write.
    pub fn amplification(&self) -> f64 {
        self.programs as f64 / self.host_writes.max(1) as f64
    }
}

/// An open block and the next page to program in it.
#[derive(Clone, Copy)]
struct Frontier {
    block: u32,
    next: u32,
}

/// The mapping of a die.
pub struct Ftl {
    pages_per_block: u32,
    collector: Collector,
    /// Physical page of each logical page.
    map: Vec<u32>,
    /// Logical page of each physical page.
    owner: Vec<u32>,
    valid: Vec<u32>,
    sealed_at: Vec<u64>,
    /// Position of a sealed block in its bucket; [`NONE`] if the block is free, open or the victim.
    place: Vec<u32>,
    /// Sealed blocks by number of valid pages.
    buckets: Vec<Vec<u32>>,
    /// Level below which all buckets are empty.
    lowest: usize,
    free: Vec<u32>,
    frontiers: [Option<Frontier>; 2],
    victim: Option<Frontier>,
    /// Number of erasures of each block since it was new.
    erased: Vec<u32>,
    levels_wear: bool,
    clock: u64,
    counts: Counts,
}

const HOST: usize = 0;
const COPY: usize = 1;

impl Ftl {
    /// Returns a fresh die: nothing is written, all blocks are erased. `blocks` must be enough for the logical pages
    /// and three more blocks: two for the frontiers and one for collection.
    pub fn new(logical_pages: u32, blocks: u32, pages_per_block: u32, by: Collector) -> Self {
        assert!(
            u64::from(blocks.saturating_sub(3)) * u64::from(pages_per_block) >= u64::from(logical_pages),
            "{blocks} blocks of {pages_per_block} pages are too few for {logical_pages} pages and three blocks to spare"
        );
        Self {
            pages_per_block,
            collector: by,
            map: vec![NONE; logical_pages as usize],
            owner: vec![NONE; (blocks * pages_per_block) as usize],
            valid: vec![0; blocks as usize],
            sealed_at: vec![0; blocks as usize],
            place: vec![NONE; blocks as usize],
            buckets: vec![Vec::new(); pages_per_block as usize + 1],
            lowest: pages_per_block as usize + 1,
            free: (0..blocks).rev().collect(),
            frontiers: [None; 2],
            victim: None,
            erased: vec![0; blocks as usize],
            levels_wear: false,
            clock: 0,
            counts: Counts::default(),
        }
    }

    /// Returns the die with wear levelling switched on or off. If it is on, the die opens the erased block that was
    /// erased least often, otherwise the one that was erased last.
    #[must_use]
    pub fn levelling_wear(self, levels_wear: bool) -> Self {
        Self { levels_wear, ..self }
    }

    /// Fills the die as it would be after a long time of random writes, drawn directly instead of simulated. The
    /// probability of a block with `i` valid pages is proportional to 1 / i, from the level at which the collector
    /// takes a block up to a full block. It is random which pages share a block. `spare_blocks` stay free; the others
    /// must hold all pages.
    pub fn fill_steadily(&mut self, spare_blocks: u32, dice: &mut Stream) {
        let pages = self.map.len() as u64;
        let used = self.free.len() - spare_blocks as usize;
        assert!(used as u64 * u64::from(self.pages_per_block) >= pages, "too many blocks to spare");
        let mut levels = steady_levels(used, self.pages_per_block, pages, dice);
        let mut logical: Vec<u32> = (0..self.map.len() as u32).collect();
        for i in (1..logical.len()).rev() {
            logical.swap(i, dice.below(i as u64 + 1) as usize);
        }
        for level in levels.drain(..) {
            let Some(block) = self.free.pop() else { break };
            for page in 0..level {
                let Some(lpn) = logical.pop() else { break };
                self.link(lpn, block * self.pages_per_block + page);
            }
            self.seal(block);
        }
    }

    /// Returns true if the logical page is written.
    #[inline]
    pub fn is_written(&self, lpn: u32) -> bool {
        self.map[lpn as usize] != NONE
    }

    /// Returns the number of erased blocks that are not open.
    #[inline]
    pub fn free_blocks(&self) -> u32 {
        self.free.len() as u32
    }

    /// Returns the number of erasures of each block.
    pub fn erased(&self) -> &[u32] {
        &self.erased
    }

    /// Returns true if the next step of the collection that is under way copies a page.
    #[inline]
    pub fn has_copies(&self) -> bool {
        self.victim.is_some_and(|victim| self.valid[victim.block as usize] > 0)
    }

    /// Frees a page: it counts as unwritten from now on, and need not be copied.
    pub fn trim(&mut self, lpn: u32) {
        if self.is_written(lpn) {
            self.counts.trimmed += 1;
            self.unlink(lpn);
            self.map[lpn as usize] = NONE;
        }
    }

    /// Returns the counters.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Resets the counters.
    pub fn reset(&mut self) {
        self.counts = Counts::default();
    }

    /// Returns true if the host must wait for collection, because it may not take the last two erased blocks.
    #[inline]
    pub fn must_collect(&self) -> bool {
        self.frontiers[HOST].is_none() && self.free.len() <= 2
    }

    /// Programs a page of the host; `must_collect` must be false.
    #[inline]
    pub fn write(&mut self, lpn: u32) {
        self.clock += 1;
        self.counts.host_writes += 1;
        self.program(lpn, HOST);
    }

    /// Does one step of collection.
    #[inline]
    pub fn collect(&mut self) -> Step {
        let Some(mut victim) = self.victim.or_else(|| self.choose()) else { return Step::Nothing };
        let first = victim.block * self.pages_per_block;
        while self.valid[victim.block as usize] > 0 {
            let lpn = self.owner[(first + victim.next) as usize];
            victim.next += 1;
            if lpn != NONE {
                self.victim = Some(victim);
                self.counts.copies += 1;
                self.program(lpn, COPY);
                return Step::Copy;
            }
        }
        self.victim = None;
        self.counts.erases += 1;
        self.erased[victim.block as usize] += 1;
        self.free.push(victim.block);
        Step::Erase
    }

    /// Returns true if blocks, pages and counters add up, and the map and its inverse agree.
    pub fn holds(&self) -> bool {
        let blocks = self.valid.len();
        let sealed: usize = self.buckets.iter().map(Vec::len).sum();
        let open = self.frontiers.iter().chain([&self.victim]).flatten().count();
        let written = self.map.iter().filter(|&&ppn| ppn != NONE).count() as u64;
        let valid: u64 = self.valid.iter().map(|&valid| u64::from(valid)).sum();
        let inverse =
            self.map.iter().enumerate().all(|(lpn, &ppn)| ppn == NONE || self.owner[ppn as usize] == lpn as u32);
        let counts = self.counts;
        sealed + open + self.free.len() == blocks
            && valid == written
            && inverse
            && counts.programs == counts.host_writes + counts.copies
    }

    #[inline]
    fn program(&mut self, lpn: u32, which: usize) {
        self.counts.programs += 1;
        self.unlink(lpn);
        let mut open = self.frontiers[which].unwrap_or_else(|| {
            let block = self.next_free().expect("collection left an erased block");
            Frontier { block, next: 0 }
        });
        self.link(lpn, open.block * self.pages_per_block + open.next);
        open.next += 1;
        if open.next < self.pages_per_block {
            self.frontiers[which] = Some(open);
        } else {
            self.frontiers[which] = None;
            self.seal(open.block);
        }
    }

    /// Removes the erased block that is to be opened next; returns it.
    fn next_free(&mut self) -> Option<u32> {
        if !self.levels_wear {
            return self.free.pop();
        }
        let worn = |&at: &usize| (self.erased[self.free[at] as usize], self.free[at]);
        let at = (0..self.free.len()).min_by_key(worn)?;
        Some(self.free.swap_remove(at))
    }

    #[inline]
    fn link(&mut self, lpn: u32, ppn: u32) {
        self.map[lpn as usize] = ppn;
        self.owner[ppn as usize] = lpn;
        self.valid[(ppn / self.pages_per_block) as usize] += 1;
    }

    #[inline]
    fn unlink(&mut self, lpn: u32) {
        let ppn = self.map[lpn as usize];
        if ppn == NONE {
            return;
        }
        self.owner[ppn as usize] = NONE;
        let block = (ppn / self.pages_per_block) as usize;
        let sealed = self.place[block] != NONE;
        if sealed {
            self.leave_bucket(block);
        }
        self.valid[block] -= 1;
        if sealed {
            self.enter_bucket(block);
        }
    }

    fn seal(&mut self, block: u32) {
        self.sealed_at[block as usize] = self.clock;
        self.enter_bucket(block as usize);
    }

    #[inline]
    fn enter_bucket(&mut self, block: usize) {
        let level = self.valid[block] as usize;
        self.place[block] = self.buckets[level].len() as u32;
        self.buckets[level].push(block as u32);
        self.lowest = self.lowest.min(level);
    }

    #[inline]
    fn leave_bucket(&mut self, block: usize) {
        let bucket = &mut self.buckets[self.valid[block] as usize];
        let place = self.place[block] as usize;
        bucket.swap_remove(place);
        if let Some(&moved) = bucket.get(place) {
            self.place[moved as usize] = place as u32;
        }
        self.place[block] = NONE;
    }

    /// Removes the block to collect next from its bucket; returns it, or `None` if all pages of every sealed block are
    /// valid.
    fn choose(&mut self) -> Option<Frontier> {
        let full = self.pages_per_block as usize;
        while self.lowest < full && self.buckets[self.lowest].is_empty() {
            self.lowest += 1;
        }
        let sealed = || self.buckets[..full].iter().flatten().copied();
        let block = match self.collector {
            Collector::Greedy => *self.buckets.get(self.lowest).filter(|_| self.lowest < full)?.first()?,
            Collector::Fifo => sealed().min_by_key(|&block| (self.sealed_at[block as usize], block))?,
            Collector::CostBenefit => {
                let score = |block: u32| {
                    let share = f64::from(self.valid[block as usize]) / full as f64;
                    let age = (self.clock - self.sealed_at[block as usize] + 1) as f64;
                    (1.0 - share) * age / (1.0 + share)
                };
                sealed().max_by(|&a, &b| score(a).total_cmp(&score(b)).then(b.cmp(&a)))?
            }
        };
        self.leave_bucket(block as usize);
        Some(Frontier { block, next: 0 })
    }
}

/// Returns the numbers of valid pages of `blocks` blocks in the steady state; they add up to `pages`.
fn steady_levels(blocks: usize, full: u32, pages: u64, dice: &mut Stream) -> Vec<u32> {
    let spare = blocks as f64 * f64::from(full) / pages as f64;
    let kept = f64::from(full) * (1.0 - 1.0 / crate::formula::greedy_amplification(spare, full));
    let lowest = (kept.ceil() as u32).clamp(1, full);
    let weights: Vec<f64> = (lowest..=full).map(|level| 1.0 / f64::from(level)).collect();
    let total: f64 = weights.iter().sum();
    let mut levels: Vec<u32> = (0..blocks)
        .map(|_| {
            let mut left = dice.unit() * total;
            let at = weights.iter().position(|weight| {
                left -= weight;
                left <= 0.0
            });
            lowest + at.unwrap_or(weights.len() - 1) as u32
        })
        .collect();
    let mut sum: u64 = levels.iter().map(|&level| u64::from(level)).sum();
    while sum != pages {
        let level = &mut levels[dice.below(blocks as u64) as usize];
        if sum < pages && *level < full {
            (*level, sum) = (*level + 1, sum + 1);
        } else if sum > pages && *level > 0 {
            (*level, sum) = (*level - 1, sum - 1);
        }
    }
    levels
}
