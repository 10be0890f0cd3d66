//! Parameters of a flash card, and the sources of their values.

use serde::{Deserialize, Serialize};

use super::ftl::Collector;
use super::parameters;

/// Handling of a write that is smaller than an internal page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialPages {
    /// It bypasses the buffer: read, merge and program before it is acknowledged.
    #[default]
    Through,
    /// The buffer accepts it like any other; it is merged later.
    Buffered,
}

/// Initial state of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// As after long random writing.
    #[default]
    Steady,
    /// Erased.
    Fresh,
}

parameters! {
    /// Parameters of a flash card.
    pub struct FlashParameters {
        /// capacity seen by the host; smaller than that of the real card, for speed
        capacity_mb: u64 = 1_024, from "chosen", in 1.0..=1e6;
        /// additional flash as a share of the capacity
        over_provisioning_ratio: f64 = 0.33, from "F20 card: 32 GB of flash a module of 24 GB", in 0.01..=10.0;
        /// units that work in parallel
        dies: u64 = 16, from "F20 card: order of size", in 1.0..=4_096.0;
        /// internal page
        page_bytes: u64 = 4_096, from "alignment notes of the F20 card: 4 KB", in 512.0..=1_048_576.0;
        /// pages of an erase block
        pages_per_block: u32 = 64, from "single-level flash of the time: 64 to 128", in 1.0..=4_096.0;
        /// read of a page
        read_us: f64 = 25.0, from PRIMER;
        /// program of a page
        program_us: f64 = 250.0, from PRIMER;
        /// erase of a block
        erase_us: f64 = 2_000.0, from PRIMER;
        /// rate of the link
        link_mb_s: f64 = 300.0, from "SAS-1 behind the F20 card: 3 Gbit/s";
        /// time of a command
        command_us: f64 = 30.0, from "assumed: tens of microseconds";
        /// time of a request in driver and firmware; overlaps with that of others
        firmware_us: f64 = 40.0,
            from "F80 card: a write of 8 KB takes 85 us, which leaves 28 us behind the F20's link and command, 55 \
                  us behind its own; the middle";
        /// buses between controller and dies; 0: transfers on them take no time
        channels: u64 = 0, from "chosen: the link of a card of 2011 is slower than its buses together",
            in 0.0..=4_096.0;
        /// rate of a bus
        channel_mb_s: f64 = 1_600.0, from "ONFI 4.2: 1,600 MT/s over 8 bits";
        /// pages of a die that are read or programmed at once
        planes: u64 = 1, from "chosen: planes counted as dies", in 1.0..=64.0;
        /// share of the mapping that the controller has in memory; for the rest, a page of the mapping is read first
        mapping_cache_ratio: f64 = 1.0, from "chosen: memory for the whole mapping";
        /// pages that may be read before a program, copy or erase goes on, and before a waiting write begins; 0: nothing
        /// interrupts it, and reads come first
        suspend_reads: u64 = 0, from "chosen: not interrupted", in 0.0..=1_000_000.0;
        /// time that an interruption costs in all
        suspend_us: f64 = 20.0, from "assumed: tens of microseconds to stop and to go on";
        /// writes that fit in cells of one level, which are quick and emptied while the die is idle; 0: none
        slc_mb: u64 = 0, from "chosen: none";
        /// idle time of a die before it empties its one-level cells
        slc_idle_ms: f64 = 10.0, from "assumed: milliseconds without a request";
        /// time to program a page in cells of one level
        slc_program_us: f64 = 100.0, from "assumed: a fifth of the time in cells of three levels";
        /// true if discards free pages
        trim: bool = false, from "chosen: discards are ignored";
        /// time of a discard, during which the link takes no other command
        trim_us: f64 = 50.0, from "assumed: tens of microseconds";
        /// time of a discard per KB
        trim_us_per_kb: f64 = 0.01, from "assumed: 10 us a MB of mapping to change";
        /// true if the block that was erased least is opened next
        wear_levelling: bool = false, from "chosen: the block that was erased last";
        /// pages in the protected buffer
        buffer_pages: u64 = 1_024, from "F20 card: 64 MB a module; smaller with the capacity", in 1.0..=1e9;
        /// through or buffered
        partial_pages: PartialPages = PartialPages::Through,
            from "alignment notes of the F20 card: unaligned writes are read, merged and written";
        /// greedy, cost-benefit or fifo
        collector: Collector = Collector::Greedy, from "chosen";
        /// free blocks of a die below which it collects while idle
        idle_collect_blocks: u32 = 6, from "chosen";
        /// steady or fresh
        start: Start = Start::Steady, from "chosen: a card in use";
    }
}

const PRIMER: &str = "the source's primer on flash: 25, 250 and 2,000 us";

impl FlashParameters {
    /// Returns the number of logical pages of each die.
    pub fn pages_per_die(&self) -> u64 {
        (self.capacity_mb << 20) / self.page_bytes / self.dies
    }

    /// Returns an upper bound of the number of pages whose state is kept: in each die, those of the capacity, of the
    /// over-provisioning, and of four blocks for the three spare blocks and for rounding.
    pub fn pages_kept(&self) -> u64 {
        let physical = self.pages_per_die() as f64 * (1.0 + self.over_provisioning_ratio);
        self.dies * (physical as u64 + 4 * u64::from(self.pages_per_block))
    }

    /// Checks that no more dies are asked for than there are erase blocks.
    ///
    /// # Errors
    /// Too many dies for the capacity, as a sentence.
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
