//! Parameters of a flash card, and the sources of their values.

use serde::{Deserialize, Serialize};

use super::ftl::Collector;
use super::parameters;

/// Handling of a write that is smaller than an internal page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialPages {
    /// The write bypasses the buffer: it is read, merged and programmed before it is acknowledged.
    #[default]
    Through,
    /// The buffer accepts the write like any other; it is merged later.
    Buffered,
}

/// Initial state of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// As after a long time of random writes.
    #[default]
    Steady,
    /// All blocks are erased.
    Fresh,
}

parameters! {
    /// Parameters of a flash card.
    pub struct FlashParameters {
        /// capacity seen by the host; smaller than that of the real card, for speed
        capacity_mb: u64 = 1_024, from "chosen", in 1.0..=1e6;
        /// additional flash as a share of the capacity
        over_provisioning_ratio: f64 = 0.33, from "F20 card: 32 GB of flash a module of 24 GB", in 0.01..=10.0;
        /// number of dies, which work in parallel
        dies: u64 = 16, from "F20 card: order of size", in 1.0..=4_096.0;
        /// size of an internal page
        page_bytes: u64 = 4_096, from "alignment notes of the F20 card: 4 KB", in 512.0..=1_048_576.0;
        /// number of pages of an erase block
        pages_per_block: u32 = 64, from "single-level flash of the time: 64 to 128", in 1.0..=4_096.0;
        /// time to read a page
        read_us: f64 = 25.0, from PRIMER;
        /// time to program a page
        program_us: f64 = 250.0, from PRIMER;
        /// time to erase a block
        erase_us: f64 = 2_000.0, from PRIMER;
        /// transfer rate of the link
        link_mb_s: f64 = 300.0, from "SAS-1 behind the F20 card: 3 Gbit/s";
        /// time of a command on the link
        command_us: f64 = 30.0, from "assumed: tens of microseconds";
        /// time of a request in driver and firmware; overlaps with that of other requests
        firmware_us: f64 = 40.0,
            from "F80 card: a write of 8 KB takes 85 us, which leaves 28 us behind the F20's link and command, 55 \
                  us behind its own; the middle";
        /// number of buses between controller and dies; 0: transfers between them take no time
        channels: u64 = 0, from "chosen: the link of a card of 2011 is slower than its buses together",
            in 0.0..=4_096.0;
        /// transfer rate of a bus
        channel_mb_s: f64 = 1_600.0, from "ONFI 4.2: 1,600 MT/s over 8 bits";
        /// number of pages of a die that are read or programmed at once
        planes: u64 = 1, from "chosen: planes counted as dies", in 1.0..=64.0;
        /// share of the mapping that the controller has in memory; otherwise a page of the mapping is read first
        mapping_cache_ratio: f64 = 1.0, from "chosen: memory for the whole mapping";
        /// pages that may be read before a program, copy or erase continues, and before a waiting write begins; 0:
        /// nothing is interrupted, and reads come first
        suspend_reads: u64 = 0, from "chosen: not interrupted", in 0.0..=1_000_000.0;
        /// total time that an interruption costs
        suspend_us: f64 = 20.0, from "assumed: tens of microseconds to stop and to go on";
        /// size of the writes that fit into single-level cells, which are quick and are emptied while the die is idle;
        /// 0: none
        slc_mb: u64 = 0, from "chosen: none";
        /// idle time of a die before it empties its single-level cells
        slc_idle_ms: f64 = 10.0, from "assumed: milliseconds without a request";
        /// time to program a page in single-level cells
        slc_program_us: f64 = 100.0, from "assumed: a fifth of the time in cells of three levels";
        /// true if discards free pages
        trim: bool = false, from "chosen: discards are ignored";
        /// fixed time of a discard; the link takes no other command during a discard
        trim_us: f64 = 50.0, from "assumed: tens of microseconds";
        /// additional time of a discard per KB
        trim_us_per_kb: f64 = 0.01, from "assumed: 10 us a MB of mapping to change";
        /// true if the block that was erased least is opened next
        wear_levelling: bool = false, from "chosen: the block that was erased last";
        /// number of pages in the protected buffer
        buffer_pages: u64 = 1_024, from "F20 card: 64 MB a module; smaller with the capacity", in 1.0..=1e9;
        /// writes of part of a page: through or buffered
        partial_pages: PartialPages = PartialPages::Through,
            from "alignment notes of the F20 card: unaligned writes are read, merged and written";
        /// choice of the block to collect: greedy, cost-benefit or fifo
        collector: Collector = Collector::Greedy, from "chosen";
        /// number of free blocks below which an idle die collects
        idle_collect_blocks: u32 = 6, from "chosen";
        /// initial state of the card: steady or fresh
        start: Start = Start::Steady, from "chosen: a card in use";
    }
}

const PRIMER: &str = "the source's primer on flash: 25, 250 and 2,000 us";

impl FlashParameters {
    /// Returns the number of logical pages of each die.
    pub fn pages_per_die(&self) -> u64 {
        (self.capacity_mb << 20) / self.page_bytes / self.dies
    }

    /// Returns an upper bound of the number of pages whose state is in memory: in each die, the pages of the capacity,
    /// of the over-provisioning, and of four blocks for the three spare blocks and for rounding.
    pub fn pages_kept(&self) -> u64 {
        let physical = self.pages_per_die() as f64 * (1.0 + self.over_provisioning_ratio);
        self.dies * (physical as u64 + 4 * u64::from(self.pages_per_block))
    }

    /// Checks that each die has at least one erase block of logical pages.
    ///
    /// # Errors
    /// A sentence that says that there are too many dies for the capacity.
    pub fn check(&self) -> Result<(), String> {
        let (pages, block) = (self.pages_per_die(), u64::from(self.pages_per_block));
        if pages >= block {
            return Ok(());
        }
        let least_mb = (block * self.page_bytes * self.dies).div_ceil(1 << 20);
        Err(format!(
            "{} dies share {} MB: {pages} pages each, less than an erase block of {block}; \
             capacity_mb = {least_mb} or more, or fewer dies",
            self.dies, self.capacity_mb
        ))
    }
}
