//! Metrics of cells under Oracle's names.
//!
//! Counters are those of [`super::counts`], in Oracle's units: MB are 2^20 bytes, and times are in us or ms. Requests
//! and MB stay exact numbers, so that the identities between metrics hold exactly:
//!
//! - `FL_IO_W = FL_DISK_FIRST + FL_FLASH_FIRST`, and `FL_RQ_W = FL_IO_W +` all `FL_IO_W_SKIP_*`;
//! - `FC_IO_RQ_W = FC_IO_RQ_W_FIRST + FC_IO_RQ_W_OVERWRITE + FC_IO_RQ_W_POPULATE`, and the same for MB;
//! - `CD_IO_*` of a hard disk is the sum of `GD_IO_*` of its grid disks; that of a flash disk is the sum
//!   of its grid disks, its part of the flash cache and of the flash log;
//! - over databases, `DB_IO_RQ_*` and `DB_FD_IO_RQ_*` add up to `CD_IO_RQ_*` of hard and flash disks,
//!   `DB_FC_IO_RQ` to reads and writes of the flash cache, `DB_FL_IO_RQ` to `FL_IO_W`.
//!
//! A rate (`_SEC`, `_MIN`, `_RQ`) is over the time since the last [`Rack::collect`], which a real cell does every
//! minute. Utilisation and load cover the time since the last reset. Metrics of parts that are not modelled (sensors,
//! CPU, columnar cache, scrubbing, pluggable databases) do not exist here rather than being zero; counters of events
//! that cannot happen here (I/O errors, `FL_IO_W_SKIP_NO_BUFFER`, `FL_IO_W_SKIP_IORM_LIMIT`) exist and are zero.

use super::cells::{Collected, Key};
use super::counts::{CacheCounts, IoCounts, LogCounts, Skip, Sum};
use super::rack::Rack;
use super::state::State;
use super::storage_cell::StorageCell;
use crate::device::Kind;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows (Oracle's type Cumulative).
    Counter,
    /// A current value (Oracle's type Instantaneous).
    Gauge,
    /// Change of a counter per time or per another counter (Oracle's type Rate).
    Rate,
}

/// A metric of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name of the cell.
    pub cell: String,
    /// Type of the object: `CELLDISK`, `GRIDDISK`, `FLASHCACHE`, `FLASHLOG`, `SMARTIO`, `IORM_DATABASE`.
    pub object_type: &'static str,
    /// Name of the object.
    pub object: String,
    /// Oracle's name of the metric.
    pub name: String,
    /// Value.
    pub value: f64,
    /// Oracle's unit; empty for plain numbers.
    pub unit: &'static str,
    /// Kind of the metric.
    pub kind: MetricKind,
}

const MB: f64 = (1_u64 << 20) as f64;

/// Collector of one cell's metrics.
struct Page<'a> {
    out: Vec<Metric>,
    /// Counters that Oracle shows only as rates.
    silent: Vec<(Key, f64)>,
    before: &'a Collected,
    now_ns: u64,
    cell: &'a str,
    object_type: &'static str,
    object: String,
}

impl Page<'_> {
    fn turn(&mut self, object_type: &'static str, object: &str) {
        (self.object_type, self.object) = (object_type, object.into());
    }

    fn put(&mut self, name: String, value: f64, unit: &'static str, kind: MetricKind) {
        let (cell, object) = (self.cell.to_owned(), self.object.clone());
        let object_type = self.object_type;
        self.out.push(Metric { cell, object_type, object, name, value, unit, kind });
    }

    fn gauge(&mut self, name: &str, value: f64, unit: &'static str) {
        self.put(name.into(), value, unit, MetricKind::Gauge);
    }

    fn counter(&mut self, name: &str, value: f64, unit: &'static str) {
        self.put(name.into(), value, unit, MetricKind::Counter);
    }

    fn key(&self, name: &str) -> Key {
        (self.object.clone(), name.to_owned())
    }

    /// Returns the growth of a counter since the last collection.
    fn growth(&self, name: &str, value: f64) -> f64 {
        let key = self.key(name);
        value - self.before.counters.get(&key).copied().unwrap_or(0.0)
    }

    /// Adds a counter and the rate of its growth.
    fn rated(&mut self, name: &str, value: f64, unit: &'static str) {
        let (suffix, per_s, rate_unit) = match unit {
            "MB" => ("SEC", 1.0, "MB/sec"),
            "IO requests" => ("SEC", 1.0, "IO/sec"),
            _ => ("MIN", 60.0, "/min"),
        };
        let rate = self.rate(self.growth(name, value)) * per_s;
        self.counter(name, value, unit);
        self.put(format!("{name}_{suffix}"), rate, rate_unit, MetricKind::Rate);
    }

    /// Adds a rate in MB per second without showing its counter.
    fn silent_rate(&mut self, name: &str, value: f64) {
        let rate = self.rate(self.growth(name, value));
        self.silent.push((self.key(name), value));
        self.put(format!("{name}_SEC"), rate, "MB/sec", MetricKind::Rate);
    }

    fn rate(&self, growth: f64) -> f64 {
        let seconds = (self.now_ns - self.before.at_ns) as f64 / 1e9;
        if seconds > 0.0 { growth / seconds } else { 0.0 }
    }

    fn requests(&mut self, name: &str, requests: u64) {
        self.rated(name, requests as f64, "IO requests");
    }

    /// Adds the number of requests and their MB, under two names: `name` with `RQ` or `BY` in place of `*`.
    fn sum(&mut self, name: &str, sum: Sum) {
        self.requests(&name.replace('*', "RQ"), sum.requests);
        self.rated(&name.replace('*', "BY"), sum.bytes as f64 / MB, "MB");
    }

    /// Adds a time and its mean per request.
    fn time(&mut self, name: &str, ns: u64, unit: &'static str, (of, requests): (&str, u64)) {
        let (value, rate_unit) = match unit {
            "ms" => (ns as f64 / 1e6, "ms/request"),
            _ => (ns as f64 / 1e3, "us/request"),
        };
        let (time, count) = (self.growth(name, value), self.growth(of, requests as f64));
        self.counter(name, value, unit);
        let mean = if count > 0.0 { time / count } else { 0.0 };
        self.put(format!("{name}_RQ"), mean, rate_unit, MetricKind::Rate);
    }
}

const KINDS: [(Kind, bool, &str); 4] = [
    (Kind::Read, false, "R_SM"),
    (Kind::Read, true, "R_LG"),
    (Kind::Write, false, "W_SM"),
    (Kind::Write, true, "W_LG"),
];
const SIZES: [&str; 2] = ["SM", "LG"];

impl Rack {
    /// Returns all current metrics of all cells.
    pub fn metrics(&self) -> Vec<Metric> {
        (0..self.cells().len()).flat_map(|number| self.page(number).0).collect()
    }

    /// Returns all current metrics; the next rates cover the time from now on.
    pub fn collect(&self) -> Vec<Metric> {
        (0..self.cells().len()).flat_map(|number| self.collect_cell(number)).collect()
    }

    /// Returns the current metrics of one cell; its next rates cover the time from now on. The result is empty if there
    /// is no cell with this number.
    pub fn collect_cell(&self, number: usize) -> Vec<Metric> {
        if number >= self.cells().len() {
            return Vec::new();
        }
        let (metrics, silent) = self.page(number);
        let counters = metrics.iter().filter(|metric| metric.kind == MetricKind::Counter);
        let key = |metric: &Metric| ((metric.object.clone(), metric.name.clone()), metric.value);
        let (at_ns, counters) = (self.now_ns(), counters.map(key).chain(silent).collect());
        self.shared.collected.borrow_mut()[number] = Collected { at_ns, counters };
        metrics
    }

    fn page(&self, number: usize) -> (Vec<Metric>, Vec<(Key, f64)>) {
        let before = &self.shared.collected.borrow()[number];
        let page = self.cells()[number].metrics(before, &self.shared.names);
        (page.out, page.silent)
    }
}

impl StorageCell {
    fn metrics<'a>(&'a self, before: &'a Collected, groups: &[String]) -> Page<'a> {
        let state = &*self.state.borrow();
        let (now_ns, cell) = (self.sim.now_ns(), self.name());
        let (out, silent, object) = (Vec::new(), Vec::new(), String::new());
        let mut page = Page { out, silent, before, now_ns, cell, object_type: "", object };
        self.cell_disks(&mut page, state);
        self.grid_disks(&mut page, state, groups);
        if self.devices.len() > self.disks {
            page.turn("FLASHCACHE", "FLASHCACHE");
            flash_cache(&mut page, state);
        }
        page.turn("FLASHLOG", "FLASHLOG");
        flash_log(&mut page, &state.log.counts);
        page.turn("SMARTIO", "SMARTIO");
        smart_scan(&mut page, state);
        databases(&mut page, state);
        page
    }

    fn cell_disks(&self, page: &mut Page, state: &State) {
        for (unit, device) in self.devices.iter().enumerate() {
            page.turn("CELLDISK", device.name().trim_end_matches(" controller"));
            io(page, "CD_IO_*", &state.units[unit]);
            for (kind, large, name) in KINDS {
                let of = (&*format!("CD_IO_RQ_{name}"), state.units[unit].sum(kind, large).requests);
                let ns = state.units[unit].ns(kind, large);
                page.time(&format!("CD_IO_TM_{name}"), ns, "us", of);
            }
            page.rated("CD_IO_ERRS", 0.0, "");
            if let Some(report) = device.reports().last() {
                page.gauge("CD_IO_LOAD", report.present_mean, "");
                page.gauge("CD_IO_UTIL", report.utilisation * 100.0, "%");
            }
        }
    }

    fn grid_disks(&self, page: &mut Page, state: &State, groups: &[String]) {
        let units = self.devices.len();
        for slice in &state.slices {
            let group = usize::from(slice.group);
            let of_medium = if slice.on_flash { self.disks..units } else { 0..self.disks };
            for unit in of_medium {
                let disk = self.devices[unit].name().trim_end_matches(" controller");
                page.turn("GRIDDISK", &format!("{}_{disk}", groups[group]));
                io(page, "GD_IO_*", &state.grids[group * units + unit]);
                page.rated("GD_IO_ERRS", 0.0, "");
            }
        }
    }
}

fn io(page: &mut Page, name: &str, counts: &IoCounts) {
    for (kind, large, suffix) in KINDS {
        page.sum(&format!("{name}_{suffix}"), counts.sum(kind, large));
    }
}

fn flash_cache(page: &mut Page, state: &State) {
    let caching = &state.caching;
    let directory = &caching.directory;
    let mb = |lines: u64| (lines * caching.line_bytes) as f64 / MB;
    page.gauge("FC_BY_ALLOCATED", mb(directory.len()), "MB");
    page.gauge("FC_BY_USED", mb(directory.len()), "MB");
    page.gauge("FC_BY_DIRTY", mb(directory.dirty()), "MB");
    page.gauge("FC_BYKEEP_USED", mb(directory.kept()), "MB");
    let counts: &CacheCounts = &caching.counts;
    page.sum("FC_IO_*_R", counts.hit);
    page.sum("FC_IO_*_R_MISS", counts.miss);
    page.sum("FC_IO_*_R_SKIP", counts.read_skip);
    page.sum("FC_IO_*_R_SKIP_LG", counts.read_skip_large);
    page.sum("FC_IO_*_R_DISK_WRITER", counts.destage_read);
    page.sum("FC_IO_*KEEP_R", counts.keep_hit);
    page.requests("FC_IO_RQKEEP_R_MISS", counts.keep_miss.requests);
    page.sum("FC_IO_*_W", counts.writes());
    page.sum("FC_IO_*_W_FIRST", counts.first);
    page.sum("FC_IO_*_W_OVERWRITE", counts.overwrite);
    page.sum("FC_IO_*_W_POPULATE", counts.populate);
    page.sum("FC_IO_*KEEP_W", counts.keep_write);
    page.sum("FC_IO_*_W_SKIP", counts.write_skip);
    page.sum("FC_IO_*_W_SKIP_LG", counts.write_skip_large);
    page.sum("FC_IO_*_W_SKIP_NCMIRROR", counts.write_skip_mirror);
    page.sum("FC_IO_*_W_SKIP_FC_THROTTLE", counts.throttled);
    page.sum("FC_IO_*_DISK_WRITE", counts.destage_write);
    let failed = counts.replacements_failed as f64;
    page.counter("FC_IO_RQ_REPLACEMENT_ATTEMPTED", counts.replacements as f64, "IO requests");
    page.counter("FC_IO_RQ_REPLACEMENT_FAILED", failed, "IO requests");
    page.rated("FC_BYKEEP_OVERWR", counts.keep_overwritten_bytes as f64 / MB, "MB");
    page.counter("FC_IO_ERRS", 0.0, "");
}

fn flash_log(page: &mut Page, counts: &LogCounts) {
    let io = |page: &mut Page, name: &str, count: u64| {
        page.counter(name, count as f64, "IO requests");
    };
    io(page, "FL_RQ_W", counts.requests());
    io(page, "FL_IO_W", counts.raced());
    io(page, "FL_DISK_FIRST", counts.disk_first);
    io(page, "FL_FLASH_FIRST", counts.flash_first);
    io(page, "FL_PREVENTED_OUTLIERS", counts.prevented);
    io(page, "FL_FLASH_ONLY_OUTLIERS", counts.flash_only);
    io(page, "FL_ACTUAL_OUTLIERS", counts.actual);
    io(page, "FL_SKIP_OUTLIERS", counts.skip_outliers);
    io(page, "FL_DISK_IO_ERRS", 0);
    io(page, "FL_FLASH_IO_ERRS", 0);
    for skip in Skip::ALL {
        let name = match skip {
            Skip::Busy => "BUSY",
            Skip::Large => "LARGE",
            Skip::LogOnFlash => "LOG_ON_FLASH",
            Skip::NoFlash => "NO_FL_DISKS",
            Skip::DisabledGrid => "DISABLED_GD",
            Skip::Plan => "IORM_PLAN",
        };
        io(page, &format!("FL_IO_W_SKIP_{name}"), counts.skips[skip as usize]);
    }
    io(page, "FL_IO_W_SKIP_NO_BUFFER", 0);
    io(page, "FL_IO_W_SKIP_IORM_LIMIT", 0);
    page.rated("FL_IO_DB_BY_W", counts.disk_bytes as f64 / MB, "MB");
    page.rated("FL_IO_FL_BY_W", counts.flash_bytes as f64 / MB, "MB");
    page.time("FL_IO_TM_W", counts.race_ns, "us", ("FL_IO_W", counts.raced()));
    page.time("FL_RQ_TM_W", counts.request_ns, "us", ("FL_RQ_W", counts.requests()));
    page.counter("FL_BY_KEEP", 0.0, "");
    // Oracle gives no formula: the share of slow disk copies that nobody had to wait for.
    let slow = counts.prevented + counts.actual + counts.skip_outliers;
    let share = if slow == 0 { 1.0 } else { counts.prevented as f64 / slow as f64 };
    page.gauge("FL_EFFICIENCY_PERCENTAGE", share * 100.0, "%");
}

fn smart_scan(page: &mut Page, state: &State) {
    let scan = &state.scan;
    page.rated("SIO_IO_EL_OF", scan.eligible_bytes as f64 / MB, "MB");
    page.rated("SIO_IO_OF_RE", scan.returned_bytes as f64 / MB, "MB");
    page.rated("SIO_IO_PA_TH", scan.passed_bytes as f64 / MB, "MB");
    for (name, sum) in [("HD", scan.disk), ("FC", scan.flash), ("FC_HD", scan.both)] {
        page.requests(&format!("SIO_IO_RD_RQ_{name}"), sum.requests);
        page.rated(&format!("SIO_IO_RD_{name}"), sum.bytes as f64 / MB, "MB");
    }
}

fn databases(page: &mut Page, state: &State) {
    for (name, counts) in state.databases.iter().zip(&state.by_database) {
        page.turn("IORM_DATABASE", name);
        for (size, suffix) in SIZES.iter().enumerate() {
            let of = format!("DB_IO_RQ_{suffix}");
            page.requests(&of, counts.disk[size].requests);
            let requests = counts.disk[size].requests;
            page.time(&format!("DB_IO_TM_{suffix}"), counts.disk_ns[size], "us", (&of, requests));
            page.time(&format!("DB_IO_WT_{suffix}"), counts.wait_ns[size], "ms", (&of, requests));
            let of = format!("DB_FD_IO_RQ_{suffix}");
            page.requests(&of, counts.flash[size].requests);
            let (ns, requests) = (counts.flash_ns[size], counts.flash[size].requests);
            page.time(&format!("DB_FD_IO_TM_{suffix}"), ns, "us", (&of, requests));
            page.requests(&format!("DB_FC_IO_RQ_{suffix}"), counts.cache[size].requests);
        }
        let all = |sums: [Sum; 2]| sums[0].and(sums[1]);
        page.requests("DB_FC_IO_RQ", all(counts.cache).requests);
        page.requests("DB_FL_IO_RQ", counts.log.requests);
        page.rated("DB_FL_IO_BY", counts.log.bytes as f64 / MB, "MB");
        for (name, sums) in [("DB", counts.disk), ("DB_FD", counts.flash), ("DB_FC", counts.cache)] {
            page.silent_rate(&format!("{name}_IO_BY"), all(sums).bytes as f64 / MB);
        }
    }
}
