//! Resource management: whose request a disk serves next.
//!
//! ```text
//!   database A  [waits in the cell] --\   who has had least for its share,
//!   database B  [waits in the cell] ---+-- level by level, within its limit --> at most `depth`
//!   others      [waits in the cell] --/                                          on the disk
//! ```
//!
//! Each disk has its own queues. A request's cost is the disk time it is expected to take, so that
//! shares are shares of the disk and not of requests. Of the databases that have something to do the
//! one whose cost so far over its share is least comes first; one that was idle begins where the
//! others are, so that what it left unused is gone to them. Redo passes by the queues.
//!
//! Allocations: a level gives out turns by its percentages; the turn of a database with nothing to do
//! goes to the next level, not to a sibling, and only what no level wants goes to whoever waits.
//!
//! Limits: after a request a database may start the next when cost / limit has passed, on each disk,
//! even if the disk is idle.
//!
//! A plan that shares nothing out holds nothing back: one that only says who may use flash, and one
//! by share or level on cells that know one database. Disks are then served as without a plan.

use std::collections::{BTreeMap, VecDeque};

use crate::device::parameters;
use crate::kernel::sample::whole_ns;

parameters! {
    /// What a plan says of a database.
    pub struct Directive {
        /// share, where no level is given; 0: not said, and counts as 1
        share: u64 = 0, from "ALTER IORMPLAN: 1 to 32", in 0.0..=32.0;
        /// level, from 1; 0: by share
        level: u64 = 0, from "ALTER IORMPLAN: 1 to 8", in 0.0..=8.0;
        /// percentage of its level
        allocation: f64 = 0.0, from "ALTER IORMPLAN", in 0.0..=100.0;
        /// most of a disk that it may use, in percent
        limit: f64 = 100.0, from "ALTER IORMPLAN", in 1.0..=100.0;
        /// may it use the flash cache
        flash_cache: bool = true, from "ALTER IORMPLAN: on";
        /// may it use the flash log
        flash_log: bool = true, from "ALTER IORMPLAN: on";
    }
}

parameters! {
    /// Resource management of a cell.
    pub struct IormParameters {
        /// is the plan in force
        active: bool = true, from "ALTER IORMPLAN: active, inactive";
        /// requests on a disk at once, where a plan shares it out
        depth: u64 = 8, from "assumed", in 1.0..=10_000.0;
        /// expected disk time of a request without its bytes
        request_ms: f64 = 3.3, from "Oracle: 300 small requests a second and disk";
        /// expected rate of its bytes
        rate_mb_s: f64 = 150.0, from "Oracle: a large request is about three small ones";
        /// directives by database; `other` for all without one
        plan: BTreeMap<String, Directive> = BTreeMap::new(), from "ALTER IORMPLAN";
    }
}

impl IormParameters {
    /// Directive of a database.
    pub fn directive(&self, database: &str) -> Directive {
        if !self.active {
            return Directive::default();
        }
        self.plan.get(database).or_else(|| self.plan.get("other")).cloned().unwrap_or_default()
    }

    /// Is there a plan, and is it in force?
    pub fn has_plan(&self) -> bool {
        self.active && !self.plan.is_empty()
    }

    /// Does it share the disks out among these databases, all that the cells know? Flash attributes
    /// alone do not, nor does a share where nobody is to have the rest.
    pub fn shares_out(&self, databases: &[String]) -> bool {
        let all: Vec<Directive> = databases.iter().map(|name| self.directive(name)).collect();
        let said = all.iter().any(|own| own.share > 0 || own.level > 0);
        self.has_plan() && ((said && all.len() > 1) || all.iter().any(|own| own.limit < 100.0))
    }

    /// Expected disk time.
    pub fn cost_ns(&self, bytes: u64) -> u64 {
        whole_ns(self.request_ms * 1e6 + bytes as f64 / self.rate_mb_s * 1e3).max(1)
    }
}

/// A plan as the queues use it: what each database has, by number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    level: u64,
    weight: f64,
    limit: f64,
}

/// A plan as the queues use it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    entries: Vec<Entry>,
    levels: Vec<u64>,
    depth: u64,
    /// Cost of a turn that its database does not use.
    turn_ns: u64,
}

impl Plan {
    /// For these databases.
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
    /// First come, first served by every database: what is left when a plan is lifted.
    pub fn lifted(databases: &[String]) -> Self {
        let parameters = IormParameters { depth: u64::MAX, ..IormParameters::default() };
        Self::new(&parameters, databases)
    }
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(u64, u64)>,
    /// Cost so far over weight.
    pass: f64,
    /// Not before, because of a limit.
    not_before_ns: u64,
}

/// What a disk is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Serve this request.
    Serve(u64),
    /// Nothing before this time, because of limits.
    NotBefore(u64),
    /// Nothing.
    Nothing,
}

/// Queues of one disk.
#[derive(Default)]
pub struct Queues {
    of: Vec<Queue>,
    outstanding: u64,
    waiting: u64,
    /// A call is due then, because of limits.
    called_ns: u64,
    /// Pass of the last that was served by share: where a database that was idle begins.
    virtual_pass: f64,
}

impl Queues {
    /// Requests that wait.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// A request comes.
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

    /// A request of the queues is complete.
    pub fn finished(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// What to do now.
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

    /// When the first limit lets somebody go on; nothing if a call is due by then already.
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

    /// The database, of those with something to do, that has had least for its weight.
    fn least(&self, plan: &Plan, level: Option<u64>, now_ns: u64) -> Option<usize> {
        let of_level = |at: &usize| level.is_none_or(|level| plan.entries[*at].level == level);
        let ready = (0..self.of.len()).filter(of_level).filter(|&at| self.ready(at, now_ns));
        ready.min_by(|&a, &b| self.of[a].pass.total_cmp(&self.of[b].pass))
    }

    /// One turn of each level in order: the database whose turn it is, if it has something to do.
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

    /// Whose turn it is at a level, busy or idle; it is charged for it.
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
