//! A run of a load on a modelled `PostgreSQL`, and its result.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;

use super::cached;
use super::cores::Cores;
use super::files::{Devices, Files};
use super::load::Load;
use super::parameters::PostgresParameters;
use super::process::{Account, Process, Wait};
use super::rows::Rows;
use super::session::{Prepared, Progress, Session, Shared, Streams, Thread, threads};
use super::turns::Turns;
use super::wal::{Wal, WalCounts};
use crate::device::Device;
use crate::kernel::sample::whole_ns;
use crate::kernel::{Resource, Sim, SimError, Simulation, StationReport};

/// Totals of one kind of wait over all sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitSum {
    /// The engine's wait event type.
    pub event_type: &'static str,
    /// The engine's wait event.
    pub event: &'static str,
    /// Number of waits.
    pub count: u64,
    /// Total time of the waits [ns].
    pub elapsed_ns: u64,
}

/// Statistics of a station.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationSum {
    /// Name of the station.
    pub name: String,
    /// Number of servers.
    pub servers: u64,
    /// Share of time in which a server is busy, on average over the servers.
    pub utilisation: f64,
    /// Mean number of requests present, waiting or in service.
    pub present: f64,
    /// Number of requests served.
    pub completions: u64,
    /// Mean time from arrival to departure [ns].
    pub sojourn_ns: f64,
}

/// Result of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Number of transactions after the warm-up.
    pub transactions: u64,
    /// Time from the end of the warm-up to the end of these transactions [ns].
    pub elapsed_ns: u64,
    /// CPU time of the server processes [ns].
    pub server_cpu_ns: u64,
    /// CPU time of the client threads [ns].
    pub client_cpu_ns: u64,
    /// Waits of the server processes.
    pub waits: Vec<WaitSum>,
    /// Statistics of the cores, then of the devices; the device of the log comes first.
    pub stations: Vec<StationSum>,
    /// Statistics of the first station of the data files' device; `None` if sessions read nothing from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<StationSum>,
    /// Number of log flushes.
    pub flushes: u64,
    /// Number of commits that inserted log.
    pub commits: u64,
    /// Bytes of the pages written to the log.
    pub written_bytes: u64,
    /// Number of events of the simulation after the warm-up.
    pub events: u64,
    /// Time of each transaction [ns], in order of their ends.
    #[serde(skip)]
    pub latencies_ns: Vec<u64>,
}

/// Interval between two checks of a run's progress [ns].
const LOOK_NS: u64 = 10_000_000;

/// Number of turns that a run with turns covers at least: processes gather on cores differently in each turn, and stay
/// there for a good part of it.
const TURNS_LEAST: u64 = 20;

/// Runs a checked load with log and files on one device.
///
/// # Errors
/// The simulation cannot continue.
pub fn run(
    simulation: &Simulation,
    parameters: &PostgresParameters,
    device: &Rc<dyn Device>,
    load: &Load,
) -> Result<Outcome, SimError> {
    run_on(simulation, parameters, &Devices::one(device), load)
}

/// Runs a checked load until all its transactions are done, or the limit of virtual time is reached.
///
/// # Errors
/// The simulation cannot continue.
pub fn run_on(
    simulation: &Simulation,
    parameters: &PostgresParameters,
    devices: &Devices,
    load: &Load,
) -> Result<Outcome, SimError> {
    let sim = simulation.sim();
    let cpu = Cores::new(sim, parameters.cores, &parameters.scheduler);
    let accounts = [Rc::new(RefCell::new(Account::default())), Rc::new(RefCell::new(Account::default()))];
    let [servers, clients] = &accounts;
    let server = || Process::new(sim, &cpu, &Rc::default(), 0);
    let wal = Wal::new(sim, parameters, Rc::clone(&devices.log), server());
    let reads = cached::reads(parameters, &load.scripts);
    let background = server();
    let prepared = |script: &super::load::Script| {
        let steps = script.steps.iter().map(|step| Prepared::new(step, parameters, &reads)).collect();
        (script.weight, steps)
    };
    let shared = Rc::new(Shared {
        sim: sim.clone(),
        parameters: parameters.clone(),
        wal: wal.clone(),
        log_writer: background.clone(),
        binlog: parameters.binlog.then(|| Wal::binary(sim, parameters, Rc::clone(&devices.log), server())),
        rows: Rows::new(sim),
        files: Files::new(sim, parameters, devices),
        scripts: load.scripts.iter().map(prepared).collect(),
        turns: Turns::new(sim, &cpu, &wal, whole_ns(parameters.turn_ms * 1e6), u64::from(load.sessions)),
        progress: Progress::default(),
    });
    let used = threads(parameters, load).min(u64::from(load.sessions)).max(1);
    let group = if parameters.scheduler.groups { used } else { 1 };
    let thread = |_| Thread {
        turn: Resource::new(sim, "a client's thread", 1),
        process: Process::new(sim, &cpu, clients, 0).in_group_of(group),
    };
    let all: Vec<Thread> = (0..threads(parameters, load)).map(thread).collect();
    for number in 0..load.sessions {
        let session = Session {
            shared: Rc::clone(&shared),
            thread: all[number as usize % all.len()].clone(),
            server: Process::new(sim, &cpu, servers, whole_ns(parameters.cold_us * 1e3)),
            streams: Streams::new(sim, number),
            number,
            last_delay_ns: 0,
        };
        sim.spawn_daemon("session", session.live());
    }
    sim.spawn_daemon("balance", cpu.clone().balance_at_intervals());
    spawn_others(simulation, &cpu, parameters);
    sim.spawn_daemon("walwriter", wal.clone().write_in_background(background, parameters.wal_writer_delay_ms));

    let limit_ns = (load.limit_s * 1e9) as u64;
    let until = |transactions: u64| -> Result<(), SimError> {
        while shared.progress.done.get() < transactions && simulation.now_ns() < limit_ns {
            simulation.run_until(simulation.now_ns() + LOOK_NS)?;
        }
        Ok(())
    };
    until(load.warmup)?;
    let before = Before::new(simulation, &accounts, &wal);
    cpu.reset();
    devices.each().iter().for_each(|device| device.reset());
    shared.progress.counts.set(true);
    let (done, ended, rested_ns) = (shared.progress.done.get(), shared.turns.ended(), shared.turns.rested_ns());
    until(done + load.transactions)?;
    while parameters.turn_ms > 0.0 && shared.turns.ended() < ended + TURNS_LEAST && simulation.now_ns() < limit_ns {
        simulation.run_until(simulation.now_ns() + LOOK_NS)?;
    }
    let mut outcome = before.outcome(simulation, &accounts, &wal);
    let whole_ns = outcome.elapsed_ns;
    outcome.elapsed_ns -= shared.turns.rested_ns() - rested_ns;
    let share = outcome.elapsed_ns as f64 / whole_ns as f64;
    let station = |report| station(report, share);
    outcome.transactions = shared.progress.done.get() - done;
    outcome.latencies_ns = shared.progress.latencies_ns.take();
    let of_devices = devices.each().into_iter().flat_map(|device| device.reports());
    outcome.stations = std::iter::once(cpu.report()).chain(of_devices).map(station).collect();
    if outcome.waits.iter().any(|wait| wait.event == Wait::DataRead.name().1) {
        outcome.data = devices.data.reports().into_iter().next().map(station);
    }
    Ok(outcome)
}

/// Mean uninterrupted time for which another program wants a core [ns].
const BURST_NS: f64 = 10e6;

/// Kinds of partly idle programs: name, share of their CPU time, and mean uninterrupted time for which one wants a core
/// [ns].
///
/// In a trace of all processes beside an arm (Intel Xeon, virtual, Linux 6.18, 2026-12-01), half of the other programs'
/// CPU time came in bursts of 20 to 64 us, by kernel workers and by the reader of waits. The rest came in bursts of
/// 1 to 30 ms.
const PARTLY_IDLE: [(&str, f64, f64); 2] = [("", 0.5, BURST_NS), ("short ", 0.5, 25e3)];

/// Starts the other programs, which the scheduler treats like any process.
fn spawn_others(sim: &Sim, cpu: &Cores, parameters: &PostgresParameters) {
    let whole = parameters.others.floor();
    for number in 0..whole as u64 {
        spawn_other(sim, cpu, &format!("postgres others {number}"), 1.0, BURST_NS);
    }
    for (kind, part, burst_ns) in PARTLY_IDLE {
        let share = (parameters.others - whole) * part;
        if share > 0.0 {
            spawn_other(sim, cpu, &format!("postgres {kind}others {whole}"), share, burst_ns);
        }
    }
}

/// Starts a program that wants a core for a share of the time, in bursts.
fn spawn_other(sim: &Sim, cpu: &Cores, stream: &str, share: f64, burst_ns: f64) {
    let mut dice = sim.stream(stream);
    let process = Process::new(sim, cpu, &Rc::default(), 0);
    let clock = sim.clone();
    sim.spawn_daemon("another program", async move {
        loop {
            process.run(whole_ns(dice.exponential(burst_ns)).max(1)).await;
            if share < 1.0 {
                process.leave();
                clock.hold(whole_ns(dice.exponential(burst_ns * (1.0 - share) / share))).await;
            }
        }
    });
}

/// Totals at the end of the warm-up.
struct Before {
    now_ns: u64,
    events: u64,
    accounts: [Account; 2],
    wal: WalCounts,
}

impl Before {
    fn new(simulation: &Simulation, accounts: &[Rc<RefCell<Account>>; 2], wal: &Wal) -> Self {
        let accounts = [accounts[0].borrow().clone(), accounts[1].borrow().clone()];
        Self { now_ns: simulation.now_ns(), events: simulation.events(), accounts, wal: wal.counts() }
    }

    /// Returns the totals since the end of the warm-up.
    fn outcome(&self, simulation: &Simulation, accounts: &[Rc<RefCell<Account>>; 2], wal: &Wal) -> Outcome {
        let [servers, clients] = accounts;
        let (servers, now) = (servers.borrow(), wal.counts());
        let waits = Wait::ALL.iter().enumerate().map(|(at, wait)| {
            let (event_type, event) = wait.name();
            let ((count, elapsed_ns), was) = (servers.waits[at], self.accounts[0].waits[at]);
            WaitSum { event_type, event, count: count - was.0, elapsed_ns: elapsed_ns - was.1 }
        });
        // A machine without files has none of their waits.
        let waits = waits.enumerate().filter(|(at, wait)| *at < Wait::DataRead as usize || wait.count > 0);
        let waits = waits.map(|(_, wait)| wait);
        Outcome {
            elapsed_ns: simulation.now_ns() - self.now_ns,
            server_cpu_ns: servers.cpu_ns - self.accounts[0].cpu_ns,
            client_cpu_ns: clients.borrow().cpu_ns - self.accounts[1].cpu_ns,
            waits: waits.collect(),
            flushes: now.flushes - self.wal.flushes,
            commits: now.commits - self.wal.commits,
            written_bytes: now.written_bytes - self.wal.written_bytes,
            events: simulation.events() - self.events,
            ..Outcome::default()
        }
    }
}

/// Returns the statistics of a station, whose requests came in a share of the time; the rest were rests between turns.
fn station(report: StationReport, share: f64) -> StationSum {
    StationSum {
        name: report.name,
        servers: report.servers,
        utilisation: (report.utilisation / share).min(1.0),
        present: report.present_mean / share,
        completions: report.departures,
        sojourn_ns: report.sojourn_ns_mean,
    }
}
