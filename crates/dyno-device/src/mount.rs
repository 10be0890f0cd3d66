//! A mounted folder: its start, status, power cut and end.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use dyno_model::device::Request;
use dyno_stats::rng::Xoshiro256;
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::mount::MntFlags;
use serde::Deserialize;

use crate::DeviceError;
use crate::clock::Clock;
use crate::devices::Model;
use crate::extents::Extents;
use crate::faults::{FaultKind, FaultRow, Faults, Operation, Rule, now_ns};
use crate::filesystem::{DeviceFiles, Power, Shared, Undoable, locked};
use crate::journal::{Journal, Lost, Names};
use crate::nodes::Nodes;
use crate::over_ring::RingThread;
use crate::status::{STATUS, Status, Transport};
use crate::undo::Changes;
use crate::write_hole::Hole;

/// What to mount, and with which options.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountSpec {
    /// Name of the device, used in messages.
    pub device: String,
    /// Empty folder to mount at.
    pub folder: PathBuf,
    /// Underlying folder that has the data.
    pub back: PathBuf,
    /// Description (TOML) of the device; without one, I/O takes no modelled time.
    #[serde(default)]
    pub toml: Option<String>,
    /// Parameters of the device to change: name and value.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// Seed of the device's random times.
    #[serde(default)]
    pub seed: u64,
    /// True if the kernel caches nothing, so that every read and write reaches the device.
    #[serde(default)]
    pub direct_io: bool,
    /// True if the power can be cut; the kernel then passes each write on immediately.
    #[serde(default)]
    pub cuts: bool,
    /// Condition under which changes of folders become durable.
    #[serde(default)]
    pub names: Names,
    /// Fault rules.
    #[serde(default)]
    pub faults: Vec<Rule>,
    /// Number of threads that take requests from the kernel.
    #[serde(default)]
    pub threads: usize,
    /// True if one thread polls for requests on a dedicated processor, instead of being woken for each request.
    #[serde(default)]
    pub polls: bool,
    /// How the kernel passes requests to the mount.
    #[serde(default)]
    pub transport: Transport,
}

impl MountSpec {
    /// Returns a thread that takes requests through `io_uring`, if the mount can use it and the kernel offers it. A
    /// mount with fault rules or power cuts cannot: slow operations and the journal would hold up the only thread.
    fn ring(&self) -> Option<RingThread> {
        let wanted = self.transport == Transport::Ring && !self.cuts && self.faults.is_empty();
        wanted.then(|| RingThread::new(self.polls)).flatten()
    }
}

/// A mounted folder.
pub struct Mount {
    shared: Arc<Shared>,
    session: Mutex<Option<BackgroundSession>>,
    ring: Option<RingThread>,
    folder: PathBuf,
}

/// Number of requests that are timed; the floor is their median.
const FLOOR_REQUESTS: usize = 400;
/// Number of requests with a pause that are timed; their median shows how long an idle processor takes to start a
/// program.
const PAUSED_REQUESTS: usize = 100;
/// Pause before the reply to each of the [`PAUSED_REQUESTS`] [ns]: longer than a virtual machine's processor waits for
/// work before it becomes idle.
const PAUSE_NS: u64 = 300_000;
/// Time for which an unmount waits for programs that use the folder.
const BUSY: Duration = Duration::from_secs(1);
/// Size of a typical request [bytes].
const PAGE_BYTES: u64 = 4_096;

impl Mount {
    /// Mounts a folder and measures the floor; fails if the device is faster than the floor.
    ///
    /// # Errors
    /// The description is invalid, the system refuses the mount, or the device is too fast. Nothing is left mounted.
    pub fn new(spec: MountSpec) -> Result<Self, DeviceError> {
        let model = spec.toml.as_ref().map(|text| Model::new(text, &spec.settings, spec.seed)).transpose()?;
        let mount = match spec.ring() {
            None => Self::mounted(spec, model.clone(), None)?,
            Some(ring) => match Self::mounted(spec.clone(), model.clone(), Some(ring)) {
                Err(DeviceError::Ring(_)) => Self::mounted(spec, model.clone(), None)?,
                mounted => mounted?,
            },
        };
        if let Some(model) = model {
            let checked = mount.take_floor().map_err(DeviceError::Io).and_then(|floor| check_floor(&model, floor));
            if let Err(error) = checked {
                mount.unmount(true)?;
                return Err(error);
            }
        }
        Ok(mount)
    }

    fn mounted(spec: MountSpec, model: Option<Model>, ring: Option<RingThread>) -> Result<Self, DeviceError> {
        let MountSpec { device, folder, back, direct_io, cuts, names, faults, threads, polls, .. } = spec;
        let (clock, driver) = match (model, &ring) {
            (None, _) => (None, None),
            (Some(model), None) => (Some(Clock::start(model)?), None),
            (Some(model), Some(ring)) => {
                let waker = ring.waker();
                let (clock, driver) = Clock::driven(model, Box::new(move || waker.wake()))?;
                (Some(clock), Some(driver))
            }
        };
        let hole = Hole::of(&faults)?;
        let root = back.canonicalize()?;
        let undoable = if cuts {
            let changes = Changes::new(&root, names)?;
            Some(Mutex::new(Undoable { journal: Journal::default(), changes }))
        } else {
            None
        };
        let capacity_bytes = clock.as_ref().map_or(u64::MAX, Clock::capacity_bytes);
        let shared = Arc::new(Shared {
            nodes: Mutex::new(Nodes::new(&root)),
            root,
            opened: Mutex::new(HashMap::new()),
            next_handle: AtomicU64::new(1),
            clock,
            extents: Mutex::new(Extents::new(capacity_bytes)),
            undoable,
            faults: Faults::new(faults),
            hole,
            power: RwLock::new(Power::default()),
            changes_left: AtomicU64::new(u64::MAX),
            changes: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            floor_ns: AtomicU64::new(0),
            floor_p99_ns: AtomicU64::new(0),
            wake_ns: AtomicU64::new(0),
            direct_io,
            polls,
            transport: if ring.is_some() { Transport::Ring } else { Transport::Read },
            kernel_writeback: !direct_io && !cuts,
            device,
        });
        let config = config(if polls { 1 } else { threads });
        let session = Session::new(DeviceFiles(Arc::clone(&shared)), &folder, &config)?;
        if let Some(ring) = &ring {
            let fuse = session.as_fd().try_clone_to_owned()?;
            ring.begin(fuse, &shared, driver, &config).map_err(|error| DeviceError::Ring(error.to_string()))?;
        } else if polls {
            // Its thread then asks for requests again and again.
            let flags = OFlag::from_bits_retain(fcntl(&session, FcntlArg::F_GETFL).map_err(io::Error::from)?);
            fcntl(&session, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).map_err(io::Error::from)?;
        }
        Ok(Self { shared, session: Mutex::new(Some(session.spawn()?)), ring, folder })
    }

    /// Measures the floor, the time of a request without the device, and returns it [ns]; from then on it is subtracted
    /// from the time of every request.
    fn take_floor(&self) -> io::Result<u64> {
        let file = File::options().write(true).open(self.folder.join(STATUS))?;
        let times = writes_ns(&file, 0, FLOOR_REQUESTS)?;
        let floor_ns = times[times.len() / 2];
        self.shared.floor_ns.store(floor_ns, Ordering::Relaxed);
        self.shared.floor_p99_ns.store(times[times.len() * 99 / 100], Ordering::Relaxed);
        if let Some(clock) = &self.shared.clock {
            clock.set_floor_ns(floor_ns);
            let times = writes_ns(&file, PAUSE_NS, PAUSED_REQUESTS)?;
            let wake_ns = times[times.len() / 2].saturating_sub(PAUSE_NS);
            self.shared.wake_ns.store(wake_ns, Ordering::Relaxed);
            clock.set_wake_ns(wake_ns);
        }
        Ok(floor_ns)
    }

    /// Returns the state of the mount.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Returns the faults that happened.
    pub fn faults(&self) -> Vec<FaultRow> {
        self.shared.faults.rows()
    }

    /// Returns the number of changes of files and folders so far.
    pub fn changes(&self) -> u64 {
        self.shared.changes.load(Ordering::Relaxed)
    }

    /// Makes the power fail after `changes` more changes, at the next change.
    pub fn arm(&self, changes: u64) {
        self.shared.changes_left.store(changes, Ordering::Relaxed);
    }

    /// Returns true if the power is off.
    pub fn is_off(&self) -> bool {
        self.shared.power.read().unwrap_or_else(PoisonError::into_inner).off
    }

    /// Cuts the power if it is on, and keeps a random part of the unsynced data, which depends on `seed`. All later
    /// operations fail; unmount and mount again to restore the power.
    ///
    /// # Errors
    /// The mount has no journal, or an underlying file cannot be written.
    pub fn cut(&self, seed: u64, sector_bytes: u64) -> Result<Lost, DeviceError> {
        self.shared.power.write().unwrap_or_else(PoisonError::into_inner).off = true;
        let Some(mut undoable) = self.shared.undoable() else {
            return Err(DeviceError::Broken("this folder was mounted without power cuts".into()));
        };
        let mut dice = Xoshiro256::new(seed);
        let Undoable { journal, changes } = &mut *undoable;
        let path =
            |(parent, name): &(u64, std::ffi::OsString)| Some(locked(&self.shared.nodes).path(*parent)?.join(name));
        let moved = |number, (parent, name): &(u64, std::ffi::OsString)| {
            locked(&self.shared.nodes).place(number, *parent, name);
        };
        let at_ns = now_ns();
        let row = |kind, file, offset_bytes, bytes| FaultRow {
            at_ns,
            kind,
            operation: Operation::Write,
            file,
            offset_bytes,
            bytes,
        };
        let shown = |path: PathBuf| path.strip_prefix(&self.shared.root).unwrap_or(&path).display().to_string();
        let undone = changes.cut(&mut dice, path, moved)?;
        let names_undone = undone.len() as u64;
        let mut rows: Vec<FaultRow> =
            undone.into_iter().map(|path| row(FaultKind::UndoneName, shown(path), 0, 0)).collect();
        let path = |number| locked(&self.shared.nodes).path(number);
        let unsure = if self.shared.hole.is_some() { journal.unsynced(path)? } else { Vec::new() };
        let lost = journal.cut(&mut dice, sector_bytes, path, |kind, number, page| {
            let file = locked(&self.shared.nodes).shown(number);
            rows.push(row(kind, file, page * PAGE_BYTES, PAGE_BYTES));
        })?;
        let mut pages_rebuilt = 0;
        if let Some(hole) = self.shared.hole {
            for (number, page) in hole.rebuild(&mut dice, &locked(&self.shared.extents), &unsure, path)? {
                let file = locked(&self.shared.nodes).shown(number);
                rows.push(row(FaultKind::RebuiltPage, file, page * PAGE_BYTES, PAGE_BYTES));
                pages_rebuilt += 1;
            }
        }
        changes.end()?;
        Ok(Lost { names_undone, pages_rebuilt, rows, ..lost })
    }

    /// Returns true if the folder is no longer mounted.
    pub fn has_ended(&self) -> bool {
        locked(&self.session).as_ref().is_none_or(|session| session.guard.is_finished())
    }

    /// Unmounts the folder; the data stay in the underlying folder. With `at_once`, it is unmounted even while programs
    /// use it; they then get errors.
    ///
    /// # Errors
    /// A program still uses the folder; it stays mounted.
    pub fn unmount(&self, at_once: bool) -> Result<(), DeviceError> {
        let mut session = locked(&self.session);
        let detached = session.is_some() && nix::unistd::geteuid().is_root();
        if detached {
            self.detach(at_once)?;
        }
        self.shared.ended.store(true, Ordering::Relaxed);
        let ended = match session.take() {
            Some(session) if !detached => session.umount_and_join(),
            Some(session) => wait_for(session),
            None => Ok(()),
        };
        if let Some(clock) = &self.shared.clock {
            clock.stop();
        }
        self.wait_for_ring();
        if let Some(undoable) = self.shared.undoable() {
            undoable.changes.end()?;
        }
        Ok(ended?)
    }

    /// Waits briefly for the ring's thread to end; programs with open files can keep it running longer.
    fn wait_for_ring(&self) {
        let begin = Instant::now();
        while self.ring.as_ref().is_some_and(|ring| !ring.has_ended()) && begin.elapsed() < BUSY {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Detaches the folder from the directory tree; waits briefly while a program uses it, in case the use is short.
    fn detach(&self, at_once: bool) -> Result<(), DeviceError> {
        // By force: what programs still have open answers errors, else they would wait for this process for ever.
        let flags = if at_once { MntFlags::MNT_DETACH | MntFlags::MNT_FORCE } else { MntFlags::empty() };
        let begin = Instant::now();
        loop {
            match nix::mount::umount2(&self.folder, flags) {
                Err(Errno::EBUSY) if begin.elapsed() < BUSY => std::thread::sleep(Duration::from_millis(5)),
                // It is unmounted already.
                Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => return Ok(()),
                Err(error) => return Err(DeviceError::Io(error.into())),
            }
        }
    }
}

/// Returns the sorted times of `count` writes to the status file [ns]; the reply to each write comes after a pause.
fn writes_ns(file: &File, pause_ns: u64, count: usize) -> io::Result<Vec<u64>> {
    let page = vec![0; PAGE_BYTES as usize];
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        file.write_all_at(&page, pause_ns)?;
        times.push(begin.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    Ok(times)
}

/// Waits briefly for the threads of a detached folder to end; programs with open files can keep them running longer.
fn wait_for(session: BackgroundSession) -> io::Result<()> {
    let begin = Instant::now();
    while !session.guard.is_finished() && begin.elapsed() < BUSY {
        std::thread::sleep(Duration::from_micros(200));
    }
    if session.guard.is_finished() { session.join() } else { Ok(()) }
}

fn config(threads: usize) -> Config {
    let mut config = Config::default();
    let others = nix::unistd::geteuid().is_root();
    config.mount_options = vec![
        MountOption::FSName("dbdyno".into()),
        MountOption::Subtype("dbdyno".into()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
    ];
    // Servers run under a user of their own where dbdyno runs as root.
    config.acl = if others { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(threads.max(1));
    config
}

fn check_floor(model: &Model, floor_ns: u64) -> Result<(), DeviceError> {
    let read = model.alone_ns(Request::read(0, PAGE_BYTES))?;
    let write = model.alone_ns(Request::write(0, PAGE_BYTES))?;
    let fastest_ns = read.min(write);
    if fastest_ns >= floor_ns {
        return Ok(());
    }
    let us = |ns: u64| format!("{:.1} us", ns as f64 / 1e3);
    let kind = if read < write { "read" } else { "write" };
    Err(DeviceError::Floor(format!(
        "the device is faster than this machine can show: a {kind} of 4 KB takes {}, and the way through the kernel \
         alone {}",
        us(fastest_ns),
        us(floor_ns)
    )))
}
