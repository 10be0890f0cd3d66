//! Requests through `io_uring`: one thread takes them, drives the device, and replies.
//!
//! ```text
//!   kernel <--> ring: its thread --- read, write, sync --> filesystem --> the device, driven by this thread
//!                  |        ^------------ replies ------------------------------'
//!                  '--- all others --> socket --> a session of FUSE's library --> filesystem
//!                           ^---------------- replies ------'
//! ```
//!
//! So the thread that completes a read, write or sync wakes the waiting program itself, without handing anything to
//! another thread. Requests about names and attributes are rare, since the kernel caches them.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use dyno_ring::{Request, Ring, Wait, Waker};
use fuser::{BackgroundSession, Config, Errno, FileHandle, Session};

use crate::DeviceError;
use crate::clock::Driver;
use crate::engine::{Engine, Rest};
use crate::filesystem::{DeviceFiles, Shared, locked};
use crate::requests::LARGEST_WRITE;

/// Total number of ring entries, divided among the queues, and below it the range of entries per queue: that many
/// requests of one processor can be outstanding.
const ENTRIES: u16 = 2_048;
const DEPTH: std::ops::RangeInclusive<u16> = 16..=128;
/// Opcodes of requests that are handled here (`enum fuse_opcode`).
const READ: u32 = 15;
const WRITE: u32 = 16;
const SYNC: u32 = 20;
const INIT: u32 = 26;
const SYNC_FOLDER: u32 = 30;
/// Size of a reply's header [bytes].
const REPLY_HEADER: usize = 16;

/// Time for which the thread stays awake after a reply, since waking it on an idle processor would take as long. It
/// stays awake only if the last request, too, came within this time after a reply.
const LINGER: Duration = Duration::from_micros(60);

/// Content of a reply.
enum Content {
    Nothing,
    Written(u32),
    Bytes(Vec<u8>),
}

/// A reply on its way to the ring.
struct Answer {
    entry: u32,
    error: i32,
    content: Content,
}

/// Replies from any thread, for the ring's thread to send.
struct Outbox {
    answers: Mutex<Vec<Answer>>,
    waker: Waker,
    thread: ThreadId,
}

impl Outbox {
    fn send(&self, entry: u32, answer: Result<Content, Errno>) {
        let (error, content) = match answer {
            Ok(content) => (0, content),
            Err(error) => (-error.code(), Content::Nothing),
        };
        self.push(Answer { entry, error, content });
    }

    fn push(&self, answer: Answer) {
        locked(&self.answers).push(answer);
        if std::thread::current().id() != self.thread {
            self.waker.wake();
        }
    }
}

/// What the ring's thread needs to begin.
struct Start {
    fuse: OwnedFd,
    shared: Arc<Shared>,
    driver: Option<Driver>,
    config: Config,
    begun: mpsc::Sender<Result<(), DeviceError>>,
}

/// The thread of a ring.
pub struct RingThread {
    waker: Waker,
    start: mpsc::Sender<Start>,
    join: JoinHandle<()>,
}

impl RingThread {
    /// Starts a thread with a ring; `None` if the kernel does not offer rings, or denies them to this process.
    pub fn new(polls: bool) -> Option<Self> {
        if !dyno_ring::is_offered() {
            return None;
        }
        let (start, started) = mpsc::channel::<Start>();
        let (sender, receiver) = mpsc::channel();
        let run = move || {
            let made = dyno_ring::queue_count().and_then(|queues| {
                let depth = (ENTRIES / queues).clamp(*DEPTH.start(), *DEPTH.end());
                Ring::new(queues, depth, LARGEST_WRITE as usize)
            });
            let Ok(ring) = made else { return };
            let sent = sender.send(ring.waker());
            if let (Ok(()), Ok(start)) = (sent, started.recv()) {
                serve(ring, start, polls);
            }
        };
        let join = std::thread::Builder::new().name("ring".into()).spawn(run).ok()?;
        let waker = receiver.recv().ok()?;
        Some(Self { waker, start, join })
    }

    /// Returns a handle that wakes the thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Starts to serve the requests of a mount through the ring, to which the kernel has agreed.
    ///
    /// # Errors
    /// The kernel refuses the ring, or the device cannot be built.
    pub fn begin(
        &self,
        fuse: OwnedFd,
        shared: &Arc<Shared>,
        driver: Option<Driver>,
        config: &Config,
    ) -> Result<(), DeviceError> {
        let (begun, result) = mpsc::channel();
        let start = Start { fuse, shared: Arc::clone(shared), driver, config: config.clone(), begun };
        let broken = || DeviceError::Broken("the ring's thread ended".into());
        self.start.send(start).map_err(|_| broken())?;
        result.recv().map_err(|_| broken())?
    }

    /// Returns true if the thread has ended, as it does after the unmount.
    pub fn has_ended(&self) -> bool {
        self.join.is_finished()
    }
}

fn serve(mut ring: Ring, start: Start, polls: bool) {
    let Start { fuse, shared, driver, config, begun } = start;
    let outbox =
        Arc::new(Outbox { answers: Mutex::default(), waker: ring.waker(), thread: std::thread::current().id() });
    let built = driver.map(Driver::build).transpose();
    let ready = built.and_then(|engine| {
        let others = Others::new(&shared, &outbox, &config)?;
        ring.register(fuse)?;
        Ok((engine, others))
    });
    match ready {
        Err(error) => drop(begun.send(Err(error))),
        Ok((engine, others)) => {
            let _ = begun.send(Ok(()));
            let mut server = Server { ring, shared, outbox, engine, others, polls };
            // A ring that fails ends: the kernel then answers the mount's programs with errors.
            let _ = server.run();
            server.others.end();
        }
    }
}

struct Server {
    ring: Ring,
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    engine: Option<Engine>,
    others: Others,
    polls: bool,
}

impl Server {
    fn run(&mut self) -> io::Result<()> {
        let mut full = Vec::new();
        let mut programs = Programs::default();
        loop {
            if !full.is_empty() {
                programs.come();
            }
            for entry in full.drain(..) {
                self.take(entry)?;
            }
            let rest = self.drive();
            if self.reply()? {
                programs.leave();
            }
            let wait = match rest {
                _ if self.polls || programs.come_back_soon() => Wait::None,
                Rest::None => Wait::None,
                Rest::AtMost(time) => Wait::AtMost(time),
                Rest::Forever => Wait::Forever,
            };
            if !self.ring.wait(wait, &mut full)? {
                return Ok(());
            }
        }
    }

    /// Commits the replies that are waiting; returns false if there are none.
    fn reply(&mut self) -> io::Result<bool> {
        let answers = std::mem::take(&mut *locked(&self.outbox.answers));
        for Answer { entry, error, content } in &answers {
            match content {
                Content::Nothing => self.ring.commit(*entry, *error, &[])?,
                Content::Bytes(bytes) => self.ring.commit(*entry, *error, bytes)?,
                Content::Written(bytes) => {
                    let mut reply = [0; 8];
                    reply[..4].copy_from_slice(&bytes.to_ne_bytes());
                    self.ring.commit(*entry, *error, &reply)?;
                }
            }
        }
        Ok(!answers.is_empty())
    }

    /// Drives the device up to now; returns the time until its next event.
    fn drive(&mut self) -> Rest {
        let Some(engine) = &mut self.engine else { return Rest::Forever };
        if engine.is_stopping() {
            engine.complete_all();
            return Rest::Forever;
        }
        engine.turn()
    }

    /// Passes on the request in an entry of the ring.
    fn take(&mut self, entry: u32) -> io::Result<()> {
        let request = self.ring.request(entry);
        let outbox = Arc::clone(&self.outbox);
        let handle = FileHandle(request.number(0));
        match request.opcode {
            READ => self.shared.read(handle, request.number(8), request.short_number(16), move |read| {
                outbox.send(entry, read.map(Content::Bytes));
            }),
            WRITE => {
                let bytes = request.payload.len() as u32;
                self.shared.write(handle, request.number(8), request.payload, move |written| {
                    outbox.send(entry, written.map(|()| Content::Written(bytes)));
                });
            }
            SYNC | SYNC_FOLDER => self.shared.sync(request.node, handle, move |done| {
                outbox.send(entry, done.map(|()| Content::Nothing));
            }),
            _ => self.others.pass(entry, &request)?,
        }
        Ok(())
    }
}

/// When the last reply was sent, and whether programs usually send the next request soon after a reply.
#[derive(Default)]
struct Programs {
    left: Option<Instant>,
    quick: bool,
}

impl Programs {
    fn leave(&mut self) {
        self.left = Some(Instant::now());
    }

    fn come(&mut self) {
        if let Some(left) = self.left.take() {
            self.quick = left.elapsed() < LINGER;
        }
    }

    /// Returns true while the next request is likely to come before the thread could be put to sleep and woken.
    fn come_back_soon(&self) -> bool {
        self.quick && self.left.is_some_and(|left| left.elapsed() < LINGER)
    }
}

/// Requests that FUSE's library answers: they reach a session of the library over a socket.
struct Others {
    ours: UnixDatagram,
    theirs: UnixDatagram,
    waiting: Arc<Mutex<HashMap<u64, u32>>>,
    session: Option<BackgroundSession>,
    replies: Option<JoinHandle<()>>,
}

impl Others {
    fn new(shared: &Arc<Shared>, outbox: &Arc<Outbox>, config: &Config) -> Result<Self, DeviceError> {
        let (ours, theirs) = UnixDatagram::pair()?;
        ours.send(&hello())?;
        let files = DeviceFiles(Arc::clone(shared));
        let session = Session::from_fd(files, theirs.try_clone()?.into(), config.acl, config.clone())?;
        let mut answer = [0; 256];
        let _ = ours.recv(&mut answer)?;
        let session = Some(session.spawn()?);
        let waiting = Arc::new(Mutex::new(HashMap::new()));
        let (socket, asked, outbox) = (ours.try_clone()?, Arc::clone(&waiting), Arc::clone(outbox));
        let run = move || receive(&socket, &asked, &outbox);
        let replies = Some(std::thread::Builder::new().name("names".into()).spawn(run)?);
        Ok(Self { ours, theirs, waiting, session, replies })
    }

    fn pass(&self, entry: u32, request: &Request) -> io::Result<()> {
        locked(&self.waiting).insert(request.unique, entry);
        self.ours.send(&request.message()).map(drop)
    }

    fn end(&mut self) {
        for socket in [&self.ours, &self.theirs] {
            let _ = socket.shutdown(Shutdown::Both);
        }
        // It ends with an error, since an empty message is no request.
        let _ = self.session.take().map(BackgroundSession::join);
        let _ = self.replies.take().map(JoinHandle::join);
    }
}

fn receive(socket: &UnixDatagram, waiting: &Mutex<HashMap<u64, u32>>, outbox: &Outbox) {
    let mut message = vec![0; LARGEST_WRITE as usize + REPLY_HEADER];
    while let Ok(size) = socket.recv(&mut message) {
        if size < REPLY_HEADER {
            return;
        }
        let (mut error, mut unique) = ([0; 4], [0; 8]);
        error.copy_from_slice(&message[4..8]);
        unique.copy_from_slice(&message[8..16]);
        if let Some(entry) = locked(waiting).remove(&u64::from_ne_bytes(unique)) {
            let content = Content::Bytes(message[REPLY_HEADER..size].to_vec());
            outbox.push(Answer { entry, error: i32::from_ne_bytes(error), content });
        }
    }
}

/// Returns the first request of a session (`fuse_init_in`); the kernel has sent it only to the mount's original
/// session.
fn hello() -> Vec<u8> {
    const HEADER: usize = 40;
    const BODY: usize = 64;
    let mut message = vec![0; HEADER + BODY];
    message[..4].copy_from_slice(&((HEADER + BODY) as u32).to_ne_bytes());
    message[4..8].copy_from_slice(&INIT.to_ne_bytes());
    message[8..16].copy_from_slice(&2_u64.to_ne_bytes());
    for (at, number) in [7_u32, 40, LARGEST_WRITE].into_iter().enumerate() {
        message[HEADER + 4 * at..HEADER + 4 * at + 4].copy_from_slice(&number.to_ne_bytes());
    }
    message
}
