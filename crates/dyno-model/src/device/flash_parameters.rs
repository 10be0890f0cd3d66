//! Parameters of a flash card, and where their numbers come from.

use serde::{Deserialize, Serialize};

use super::ftl::Collector;
use super::{Parameter, parameter};

/// What becomes of a write that is smaller than an internal page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialPages {
    /// It bypasses the buffer: read, merge and program before it is acknowledged.
    #[default]
    Through,
    /// The buffer takes it like any other; the merge happens behind it.
    Buffered,
}

/// How a card begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Written at random for a long time.
    #[default]
    Steady,
    /// Erased.
    Fresh,
}

/// A flash card.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlashParameters {
    /// What the host sees.
    pub capacity_mb: u64,
    /// Flash beyond that, as a share of it.
    pub over_provisioning_ratio: f64,
    /// Dies, each with its own pages.
    pub dies: u64,
    /// Internal page.
    pub page_bytes: u64,
    /// Pages of an erase block.
    pub pages_per_block: u32,
    /// Read of a page.
    pub read_us: f64,
    /// Program of a page.
    pub program_us: f64,
    /// Erase of a block.
    pub erase_us: f64,
    /// Rate of the link.
    pub link_mb_s: f64,
    /// Time of a command on it.
    pub command_us: f64,
    /// Time of a request in driver and firmware, beside others.
    pub firmware_us: f64,
    /// Pages that the buffer holds; 0: none, or not protected against loss of power.
    pub buffer_pages: u64,
    /// Small writes.
    pub partial_pages: PartialPages,
    /// Collector.
    pub collector: Collector,
    /// Free blocks of a die below which it collects while idle.
    pub idle_collect_blocks: u32,
    /// State at the start.
    pub start: Start,
}

const PRIMER: &str = "the source's primer on flash: 25, 250 and 2,000 us";

impl FlashParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 16] = [
        parameter("capacity_mb", "what the host sees; smaller than the real card, to be quick", "chosen")
            .within(1.0, 1e6),
        parameter("over_provisioning_ratio", "flash beyond that", "F20 card: 32 GB of flash a module of 24 GB")
            .within(0.01, 10.0),
        parameter("dies", "units that work at the same time", "F20 card: order of size").within(1.0, 4_096.0),
        parameter("page_bytes", "internal page", "alignment notes of the F20 card: 4 KB").within(512.0, 1_048_576.0),
        parameter("pages_per_block", "pages of an erase block", "single-level flash of the time: 64 to 128")
            .within(1.0, 4_096.0),
        parameter("read_us", "read of a page", PRIMER),
        parameter("program_us", "program of a page", PRIMER),
        parameter("erase_us", "erase of a block", PRIMER),
        parameter("link_mb_s", "rate of the link", "SAS-1 behind the F20 card: 3 Gbit/s"),
        parameter("command_us", "time of a command", "assumed: tens of microseconds"),
        parameter(
            "firmware_us",
            "time of a request in driver and firmware; overlaps with that of others",
            "F80 card: a write of 8 KB takes 85 us, which leaves 28 us behind the F20's link and \
             command, 55 us behind its own; the middle",
        ),
        parameter(
            "buffer_pages",
            "pages in the protected buffer",
            "F20 card: 64 MB a module; smaller with the capacity",
        )
        .within(1.0, 1e9),
        parameter(
            "partial_pages",
            "through or buffered",
            "alignment notes of the F20 card: unaligned writes are read, merged and written",
        ),
        parameter("collector", "greedy, cost-benefit or fifo", "chosen"),
        parameter("idle_collect_blocks", "free blocks of a die below which it collects while idle", "chosen"),
        parameter("start", "steady or fresh", "chosen: a card in use"),
    ];
}

impl FlashParameters {
    /// Logical pages of each die.
    pub fn pages_per_die(&self) -> u64 {
        (self.capacity_mb << 20) / self.page_bytes / self.dies
    }

    /// Pages whose state is kept, of all dies: those beyond the capacity, too, and three blocks to spare.
    pub fn pages_kept(&self) -> u64 {
        let physical = self.pages_per_die() as f64 * (1.0 + self.over_provisioning_ratio);
        self.dies * (physical as u64 + 4 * u64::from(self.pages_per_block))
    }

    /// Says what cannot be: dies so many that none has an erase block of its own.
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

impl Default for FlashParameters {
    fn default() -> Self {
        Self {
            capacity_mb: 1_024,
            over_provisioning_ratio: 0.33,
            dies: 16,
            page_bytes: 4_096,
            pages_per_block: 64,
            read_us: 25.0,
            program_us: 250.0,
            erase_us: 2_000.0,
            link_mb_s: 300.0,
            command_us: 30.0,
            firmware_us: 40.0,
            buffer_pages: 1_024,
            partial_pages: PartialPages::Through,
            collector: Collector::Greedy,
            idle_collect_blocks: 6,
            start: Start::Steady,
        }
    }
}
