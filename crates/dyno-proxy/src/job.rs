//! Proxy from its start to its end: one event loop on its own thread.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use dyno_evidence::trace_store::{Server, SessionRow, Store, small};
use mio::event::Event;
use mio::net::{TcpListener, TcpStream, UnixStream};
use mio::{Events, Interest, Poll, Registry, Token};
use serde_json::{Value as Json, json};

use crate::follow::Follower;
use crate::pair::{Counts, Ended, Pair, Turn};
use crate::shared::Shared;
use crate::side::{Net, Side};
use crate::spin::Spin;
use crate::tls::Tls;
use crate::{ProxyError, Request, now_ns, wall_offset_ns};

const LISTENER: Token = Token(usize::MAX - 1);
/// Interval at which a request to stop is checked.
const TICK: Duration = Duration::from_millis(100);
/// Interval at which figures are updated [ns].
const SHOWN_NS: u64 = 200_000_000;
/// Size of a read [bytes].
const BUFFER: usize = 1 << 16;
/// Timeout of the first test connection to the server.
const KNOCK: Duration = Duration::from_secs(10);

/// Addresses of the server, resolved once.
#[derive(Clone)]
enum Place {
    Tcp(Vec<SocketAddr>),
    Unix(String),
}

impl Place {
    fn of(request: &Request) -> io::Result<Self> {
        if request.host.starts_with('/') {
            return Ok(Self::Unix(format!("{}/.s.PGSQL.{}", request.host, request.port)));
        }
        let found: Vec<_> = (request.host.as_str(), request.port).to_socket_addrs()?.collect();
        if found.is_empty() { Err(io::Error::other("the name has no address")) } else { Ok(Self::Tcp(found)) }
    }

    /// Connects once and disconnects, so that a wrong address is reported at the start.
    ///
    /// The address that answered is tried first from then on.
    fn knock(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(drop),
            Self::Tcp(addresses) => {
                let mut last = io::Error::other("the name has no address");
                for at in 0..addresses.len() {
                    match std::net::TcpStream::connect_timeout(&addresses[at], KNOCK) {
                        Ok(_) => {
                            addresses.swap(0, at);
                            return Ok(());
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    fn dial(&self, token: Token, registry: &Registry) -> io::Result<Side> {
        match self {
            Self::Unix(path) => Side::new(Net::Unix(UnixStream::connect(path)?), token, registry, false),
            Self::Tcp(addresses) => {
                let stream = TcpStream::connect(addresses[0])?;
                stream.set_nodelay(true)?;
                Side::new(Net::Tcp(stream), token, registry, true)
            }
        }
    }
}

/// Running proxy.
pub struct Job {
    stop: Arc<AtomicBool>,
    progress: Arc<Mutex<Json>>,
    address: SocketAddr,
    thread: Mutex<Option<JoinHandle<Result<Json, ProxyError>>>>,
}

impl Job {
    /// Starts a proxy; it accepts clients when this returns.
    ///
    /// # Errors
    /// The request is invalid, the server cannot be reached, or the proxy cannot listen.
    pub fn start(request: &str) -> Result<Self, ProxyError> {
        let request: Request = serde_json::from_str(request).map_err(|error| ProxyError::Request(error.to_string()))?;
        let unreachable = |error| ProxyError::Unreachable(request.server(), error);
        let mut place = Place::of(&request).map_err(unreachable)?;
        let tls = Tls::new(&request)?;
        place.knock().map_err(unreachable)?;
        let cannot = |error| ProxyError::Listen(request.listen.clone(), error);
        let listen = request.listen.to_socket_addrs().map_err(cannot)?.next();
        let listen = listen.ok_or_else(|| cannot(io::Error::other("the name has no address")))?;
        let mut listener = TcpListener::bind(listen).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let system = |error| ProxyError::System("the event loop cannot be made".to_owned(), error);
        let poll = Poll::new().map_err(system)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE).map_err(system)?;
        let shared = Shared::new(Store::new(&request.out, wall_offset_ns()), request.binds);
        let (stop, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Json::Null)));
        let (stops, latest) = (Arc::clone(&stop), Arc::clone(&progress));
        let work = move || {
            Running {
                request,
                place,
                tls,
                listener,
                shared,
                pairs: Vec::new(),
                free: Vec::new(),
                again: Vec::new(),
                over: Vec::new(),
                counts: Counts::default(),
                buffer: vec![0; BUFFER],
                shown_ns: 0,
                shown: (0, 0),
                rate: (0.0, Json::Null),
            }
            .run(poll, &stops, &latest)
        };
        let thread = std::thread::Builder::new()
            .name("dyno-proxy".to_owned())
            .spawn(work)
            .map_err(|error| ProxyError::System("a thread cannot be started".to_owned(), error))?;
        Ok(Self { stop, progress, address, thread: Mutex::new(Some(thread)) })
    }

    /// Returns the address on which the proxy listens.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the progress as JSON.
    pub fn progress(&self) -> String {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// Returns true if the proxy has ended.
    pub fn is_over(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks the proxy to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops the proxy, waits for its end, and returns its report as JSON.
    ///
    /// # Errors
    /// The proxy failed, or was finished before.
    pub fn finish(&self) -> Result<String, ProxyError> {
        self.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.ok_or_else(|| ProxyError::Request("the proxy is over".to_owned()))?;
        let broke = |_| ProxyError::Request("the proxy broke down".to_owned());
        thread.join().map_err(broke)?.map(|summary| summary.to_string())
    }
}

struct Running {
    request: Request,
    place: Place,
    tls: Tls,
    listener: TcpListener,
    shared: Shared,
    pairs: Vec<Option<Box<Pair>>>,
    free: Vec<usize>,
    again: Vec<usize>,
    over: Vec<SessionRow>,
    counts: Counts,
    buffer: Vec<u8>,
    /// When the figures were last updated [ns].
    shown_ns: u64,
    /// When the rate was last computed [ns], and the number of calls then.
    shown: (u64, u64),
    rate: (f64, Json),
}

impl Running {
    fn run(mut self, mut poll: Poll, stops: &AtomicBool, progress: &Mutex<Json>) -> Result<Json, ProxyError> {
        let begin_ns = now_ns();
        let end_ns = self.request.for_ns.map_or(u64::MAX, |length| begin_ns.saturating_add(length));
        let mut events = Events::with_capacity(1024);
        (self.shown.0, self.shown_ns) = (begin_ns, begin_ns);
        let mut spin = Spin::new(self.request.spin_ns);
        loop {
            let patience = if self.again.is_empty() { spin.patience(now_ns(), TICK) } else { Duration::ZERO };
            match poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(ProxyError::System("the event loop failed".to_owned(), error));
                }
                _ => {}
            }
            if !events.is_empty() {
                spin.heard(now_ns());
            }
            for event in &events {
                self.on_event(event, poll.registry());
            }
            for at in std::mem::take(&mut self.again) {
                self.advance(at, poll.registry());
            }
            self.shared.flush(false)?;
            let at_ns = now_ns();
            if self.is_due(at_ns) {
                // Descriptors that had run out may be available again.
                self.accept(poll.registry());
                self.figures(at_ns);
                *progress.lock().unwrap_or_else(PoisonError::into_inner) = self.summary(at_ns - begin_ns);
            }
            if stops.load(Ordering::Relaxed) || at_ns >= end_ns {
                return self.close(begin_ns);
            }
        }
    }

    fn on_event(&mut self, event: &Event, registry: &Registry) {
        if event.token() == LISTENER {
            self.accept(registry);
            return;
        }
        let (at, is_client) = (event.token().0 / 2, event.token().0.is_multiple_of(2));
        if let Some(Some(pair)) = self.pairs.get_mut(at) {
            let is_closing = event.is_read_closed() || event.is_error();
            pair.ready(is_client, event.is_readable() || is_closing, is_closing);
            self.advance(at, registry);
        }
    }

    fn accept(&mut self, registry: &Registry) {
        while let Ok((stream, peer)) = self.listener.accept() {
            self.counts.connections += 1;
            let at = self.free.pop().unwrap_or_else(|| {
                self.pairs.push(None);
                self.pairs.len() - 1
            });
            let _ = stream.set_nodelay(true);
            match Side::new(Net::Tcp(stream), Token(2 * at), registry, false) {
                Ok(client) => {
                    self.pairs[at] = Some(Box::new(Pair::new(client, Token(2 * at + 1), peer.to_string())));
                    self.advance(at, registry);
                }
                Err(_) => self.free.push(at),
            }
        }
    }

    fn advance(&mut self, at: usize, registry: &Registry) {
        let Some(Some(pair)) = self.pairs.get_mut(at) else { return };
        let place = &self.place;
        let mut turn = Turn {
            registry,
            tls: &self.tls,
            shared: &mut self.shared,
            counts: &mut self.counts,
            buffer: &mut self.buffer,
            dial: &|token, registry| place.dial(token, registry),
        };
        match pair.advance(&mut turn) {
            Ended::Waits => {}
            Ended::Again => self.again.push(at),
            Ended::Over => {
                pair.finish(0, None, &mut self.shared);
                pair.leave(registry);
                if let Some(follower) = pair.take_follower() {
                    self.over.push(row_of(*follower));
                }
                self.pairs[at] = None;
                self.free.push(at);
            }
        }
    }

    /// Returns true five times a second, however many events there are: computing figures costs more than a message.
    fn is_due(&mut self, at_ns: u64) -> bool {
        let is_due = at_ns - self.shown_ns >= SHOWN_NS;
        if is_due {
            self.shown_ns = at_ns;
        }
        is_due
    }

    /// Computes the rate of calls and their median duration since the last time.
    fn figures(&mut self, at_ns: u64) {
        if at_ns - self.shown.0 < 1_000_000_000 && self.rate.0 > 0.0 {
            return;
        }
        let calls = self.shared.next_call - self.shown.1;
        let recent = &mut self.shared.recent_ns;
        let middle = recent.len() / 2;
        let p50 = if recent.is_empty() { Json::Null } else { json!(*recent.select_nth_unstable(middle).1) };
        recent.clear();
        self.rate = (calls as f64 / ((at_ns - self.shown.0) as f64 / 1e9), p50);
        self.shown = (at_ns, self.shared.next_call);
    }

    fn summary(&self, elapsed_ns: u64) -> Json {
        let counts = &self.counts;
        let open = self.pairs.iter().flatten().filter(|pair| pair.is_session()).count();
        json!({
            "elapsed_ns": elapsed_ns,
            "sessions": open,
            "sessions_all": self.shared.next_session,
            "calls": self.shared.next_call,
            "waits": self.shared.next_wait,
            "calls_per_s": self.rate.0,
            "p50_ns": self.rate.1,
            "connections": counts.connections,
            "cancels": counts.cancels,
            "unreachable": counts.unreachable,
            "rubbish": counts.rubbish,
            "broken": counts.broken,
            "lost_track": counts.lost_track,
            "tls_refused": counts.tls_refused,
            "last": counts.last,
        })
    }

    /// Ends the open sessions; their clients see the connection closed.
    fn close(mut self, begin_ns: u64) -> Result<Json, ProxyError> {
        const NOT_ENDED: i64 = 2;
        let open: Vec<_> = self.pairs.iter_mut().flatten().collect();
        for pair in open {
            pair.finish(NOT_ENDED, None, &mut self.shared);
            if let Some(follower) = pair.take_follower() {
                self.over.push(row_of(*follower));
            }
        }
        self.pairs.clear();
        self.shared.flush(true)?;
        self.over.sort_by_key(|row| row.number);
        let server = Server { path: self.request.server(), version: self.shared.version.clone(), gaps: Vec::new() };
        small::write(&self.shared.store, &self.over, &server)?;
        let mut summary = self.summary(now_ns() - begin_ns);
        if let Some(object) = summary.as_object_mut() {
            object.insert("version".to_owned(), json!(server.version));
            object.insert("server".to_owned(), json!(server.path));
            object.insert("statements".to_owned(), json!(self.shared.store.texts().count()));
        }
        Ok(summary)
    }
}

pub(crate) fn row_of(follower: Follower) -> SessionRow {
    let Follower { mut row, application, .. } = follower;
    if !application.is_empty() {
        row.kind = application;
    }
    row.name = format!("{} {} ({}@{})", row.kind, row.pid, row.user, row.database);
    row
}
