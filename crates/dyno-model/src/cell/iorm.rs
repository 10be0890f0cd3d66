//! Resource management (IORM): which request a disk serves next.
//!
//! ```text
//!   database A  [waits in the cell] --\   least cost so far for its share,
//!   database B  [waits in the cell] ---+-- level by level, within its limit --> at most `depth`
//!   others      [waits in the cell] --/                                          on the disk
//! ```
//!
//! Each disk has its own queues. A request's cost is its expected disk time, so that shares are shares of the disk's
//! time and not of requests. Among the databases with waiting requests the one with the lowest cost so far relative to
//! its share comes first; a database that was idle starts level with the others, so that unused time is not credited to
//! it. Redo bypasses the queues.
//!
//! Allocations: a level distributes turns in proportion to the percentages of its databases. If a database has no
//! request at its turn, the turn goes to the next level, not to another database of the same level. A turn that no
//! level uses goes to any database that waits.
//!
//! Limits: on each disk, a database may start its next request only when cost / limit has passed since the one before,
//! even if the disk is idle.
//!
//! Some plans do not divide the disks: those that only allow or forbid flash, and those with shares or levels on cells
//! that know only one database. Disks then serve requests as if there were no plan.

use std::collections::{BTreeMap, VecDeque};

use crate::device::parameters;
use crate::kernel::sample::whole_ns;

parameters! {
    /// Directive of a plan for a database.
    pub struct Directive {
        /// share of the disks, relative to other databases, if no level is set; 0: not set, counts as 1
        share: u64 = 0, from "ALTER IORMPLAN: 1 to 32", in 0.0..=32.0;
        /// level of the allocation, from 1; 0: by share
        level: u64 = 0, from "ALTER IORMPLAN: 1 to 8", in 0.0..=8.0;
        /// percentage of the turns of its level
        allocation: f64 = 0.0, from "ALTER IORMPLAN", in 0.0..=100.0;
        /// largest part of a disk's time that the database may use, in percent
        limit: f64 = 100.0, from "ALTER IORMPLAN", in 1.0..=100.0;
        /// true if the database may use the flash cache
        flash_cache: bool = true, from "ALTER IORMPLAN: on";
        /// true if the database may use the flash log
        flash_log: bool = true, from "ALTER IORMPLAN: on";
    }
}

parameters! {
    /// Resource management of a cell.
    pub struct IormParameters {
        /// true if the plan is in effect
        active: bool = true, from "ALTER IORMPLAN: active, inactive";
        /// number of requests on a disk at once, if a plan divides the disk
        depth: u64 = 8, from "assumed", in 1.0..=10_000.0;
        /// expected disk time of a request without the transfer of its bytes
        request_ms: f64 = 3.3, from "Oracle: 300 small requests a second and disk";
        /// expected transfer rate
        rate_mb_s: f64 = 150.0, from "Oracle: a large request is about three small ones";
        /// directives by database; `other` applies to all databases without a directive
        plan: BTreeMap<String, Directive> = BTreeMap::new(), from "ALTER IORMPLAN";
    }
}

impl IormParameters {
    /// Returns the directive for a database.
    pub fn directive(&self, database: &str) -> Directive {
        if !self.active {
            return Directive::default();
        }
        self.plan.get(database).or_else(|| self.plan.get("other")).cloned().unwrap_or_default()
    }

    /// Returns true if there is a plan and it is active.
    pub fn has_plan(&self) -> bool {
        self.active && !self.plan.is_empty()
    }

    /// Returns true if the plan divides the disks among these databases, which are all that the cells know. A plan with
    /// nothing but flash attributes does not divide them, nor does a share if there is no other database.
    pub fn shares_out(&self, databases: &[String]) -> bool {
        let all: Vec<Directive> = databases.iter().map(|name| self.directive(name)).collect();
        let said = all.iter().any(|own| own.share > 0 || own.level > 0);
        self.has_plan() && ((said && all.len() > 1) || all.iter().any(|own| own.limit < 100.0))
    }

    /// Returns the expected disk time of a request of this size [ns].
    pub fn cost_ns(&self, bytes: u64) -> u64 {
        whole_ns(self.request_ms * 1e6 + bytes as f64 / self.rate_mb_s * 1e3).max(1)
    }
}

/// Directive for one database in the form that the queues use.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    level: u64,
    weight: f64,
    limit: f64,
}

/// Plan in the form that the queues use.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    entries: Vec<Entry>,
    levels: Vec<u64>,
    depth: u64,
    /// Cost charged for a turn of a database that has no request [ns].
    turn_ns: u64,
}

impl Plan {
    /// Compiles the plan for these databases.
    pub fn new(parameters: &IormParameters, databases: &[String]) -> Self {
        let entry = |name: &String| {
            let Directive { share, level, allocation, limit, .. } = parameters.directive(name);
            let weight = if level == 0 { share.max(1) as f64 } else { allocation };
            Entry { level, weight: weight.max(1e-3), limit: (limit / 100.0).clamp(1e-3, 1.0) }
        };
        let entries: Vec<Entry> = databases.iter().map(entry).collect();
        let mut levels: Vec<u64> = entries.iter().map(|entry| entry.level).collect();
        levels.sort_unstable();
        levels.dedup();
        let turn_ns = parameters.cost_ns(0);
        Self { entries, levels, depth: parameters.depth.max(1), turn_ns }
    }
}

impl Plan {
    /// Returns a plan that serves all databases in order of arrival, for use when a plan is removed.
    pub fn lifted(databases: &[String]) -> Self {
        let parameters = IormParameters { depth: u64::MAX, ..IormParameters::default() };
        Self::new(&parameters, databases)
    }
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(u64, u64)>,
    /// Cost so far divided by the weight.
    pass: f64,
    /// Earliest time at which a limit allows the next request to start [ns].
    not_before_ns: u64,
}

/// Next action of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Serve this request.
    Serve(u64),
    /// Serve nothing before this time, because of limits.
    NotBefore(u64),
    /// Wait for a request.
    Nothing,
}

/// Queues of one disk.
#[derive(Default)]
pub struct Queues {
    of: Vec<Queue>,
    outstanding: u64,
    waiting: u64,
    /// Time at which the queues are checked again because of limits [ns].
    called_ns: u64,
    /// Value of `pass` at the last request served by share: a database that was idle starts from this value.
    virtual_pass: f64,
}

impl Queues {
    /// Returns the number of waiting requests.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Adds a request.
    pub fn push(&mut self, database: u16, token: u64, cost_ns: u64) {
        let at = usize::from(database);
        if self.of.len() <= at {
            self.of.resize_with(at + 1, Queue::default);
        }
        let queue = &mut self.of[at];
        if queue.waiting.is_empty() {
            queue.pass = queue.pass.max(self.virtual_pass);
        }
        queue.waiting.push_back((token, cost_ns));
        self.waiting += 1;
    }

    /// Records that a request from these queues is complete.
    pub fn finished(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// Returns the next action.
    pub fn next(&mut self, plan: &Plan, now_ns: u64) -> Next {
        if self.waiting == 0 || self.outstanding >= plan.depth {
            return Next::Nothing;
        }
        let chosen = self.by_level(plan, now_ns).or_else(|| self.least(plan, None, now_ns));
        let Some(at) = chosen else { return self.not_before(now_ns) };
        let entry = plan.entries[at];
        let queue = &mut self.of[at];
        let Some((token, cost_ns)) = queue.waiting.pop_front() else { return Next::Nothing };
        if entry.level == 0 {
            // By level, the turn was paid for when it was given.
            self.virtual_pass = queue.pass;
            queue.pass += cost_ns as f64 / entry.weight;
        }
        if entry.limit < 1.0 {
            queue.not_before_ns = now_ns.max(queue.not_before_ns) + whole_ns(cost_ns as f64 / entry.limit);
        }
        self.waiting -= 1;
        self.outstanding += 1;
        Next::Serve(token)
    }

    /// Returns the earliest time at which a limit allows a waiting request, or nothing if a check is already scheduled
    /// by then.
    fn not_before(&mut self, now_ns: u64) -> Next {
        let waiting = self.of.iter().filter(|queue| !queue.waiting.is_empty());
        let Some(first_ns) = waiting.map(|queue| queue.not_before_ns).min() else {
            return Next::Nothing;
        };
        if self.called_ns > now_ns && self.called_ns <= first_ns {
            return Next::Nothing;
        }
        self.called_ns = first_ns;
        Next::NotBefore(first_ns)
    }

    fn ready(&self, at: usize, now_ns: u64) -> bool {
        let queue = &self.of[at];
        !queue.waiting.is_empty() && queue.not_before_ns <= now_ns
    }

    /// Returns the database with the lowest cost relative to its weight among those at this level (`None`: at any
    /// level) that may start a waiting request now.
    fn least(&self, plan: &Plan, level: Option<u64>, now_ns: u64) -> Option<usize> {
        let of_level = |at: &usize| level.is_none_or(|level| plan.entries[*at].level == level);
        let ready = (0..self.of.len()).filter(of_level).filter(|&at| self.ready(at, now_ns));
        ready.min_by(|&a, &b| self.of[a].pass.total_cmp(&self.of[b].pass))
    }

    /// Gives each level one turn, in order, until the database whose turn it is can start a request; returns that
    /// database.
    fn by_level(&mut self, plan: &Plan, now_ns: u64) -> Option<usize> {
        for &level in &plan.levels {
            if level == 0 {
                if let Some(at) = self.least(plan, Some(0), now_ns) {
                    return Some(at);
                }
                continue;
            }
            let Some(at) = self.turn(plan, level) else { continue };
            if self.ready(at, now_ns) {
                return Some(at);
            }
        }
        None
    }

    /// Returns the database whose turn it is at a level, even if it is idle, and charges the turn to it.
    fn turn(&mut self, plan: &Plan, level: u64) -> Option<usize> {
        self.of.resize_with(plan.entries.len().max(self.of.len()), Queue::default);
        let members = (0..plan.entries.len()).filter(|&at| plan.entries[at].level == level);
        let at = members.min_by(|&a, &b| self.of[a].pass.total_cmp(&self.of[b].pass))?;
        let queue = &mut self.of[at];
        let cost_ns = queue.waiting.front().map_or(plan.turn_ns, |&(_, cost_ns)| cost_ns);
        queue.pass += cost_ns as f64 / plan.entries[at].weight;
        Some(at)
    }
}
