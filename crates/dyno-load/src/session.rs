//! One session: it chooses a script, runs it as a transaction, and writes down what happened.
//!
//! Times within a transaction hang together: a command begins when the one before it was complete,
//! unless something else (a `\set`, a `\sleep`) lay in between. So one reading of the clock per
//! command is enough.

use dyno_evidence::{Call, CallKind, NONE};
use dyno_script::{Rng, Scope, Value, VarId};
use mio::Registry;

use crate::LoadError;
use crate::clock::Clock;
use crate::pipeline::Batch;
use crate::plan::{ArmPlan, ScriptPlan, SqlPlan};
use crate::reactor::Pulse;
use crate::record::Recorder;
use crate::shared::{Activity, Shared};
use crate::steps::running;
use crate::tally::Tally;
use crate::wire::link::{Event, Link};
use crate::wire::{ServerError, WireError};

/// What a session of an arm keeps from slice to slice and from block to block.
#[derive(Debug)]
pub struct Seat {
    /// Number of the session in its arm.
    pub number: u16,
    /// The connection, if there is one.
    pub link: Option<Link>,
    pub(crate) scope: Scope,
    pub(crate) rng: Rng,
    pub(crate) choice: Rng,
    /// Per command: the variables that its columns go to.
    pub(crate) columns: Vec<Vec<Option<VarId>>>,
    pub(crate) redo: Redo,
}

/// Where the write-ahead log was when this session last looked.
#[derive(Debug, Default)]
pub struct Redo {
    /// Insert position at the last `\redo`.
    pub previous: Option<i64>,
    /// Redo since the reading before, and redo not flushed: for the next commit.
    pub pending: Option<(i64, i64)>,
}

/// What a thread writes into while it runs one slice of one arm.
pub struct Output<'a> {
    pub recorder: Recorder<'a>,
    pub tally: Tally,
    pub reconnects: u64,
    pub batch: Batch,
    /// Rows of the one command of a script that has no more: they stand in the script's row.
    pub only_rows: i64,
}

/// A session at work in one slice.
pub struct Runner<'a, 'o, 'r> {
    pub shared: &'a Shared<'a>,
    pub arm: &'a ArmPlan,
    pub arm_number: u16,
    pub slice: u32,
    pub seat: &'a mut Seat,
    pub out: &'o mut Output<'r>,
    pub activity: &'a Activity,
    /// What this session waits for.
    pub pulse: &'a Pulse,
    /// Where a new connection is announced, and under which number.
    pub registry: &'a Registry,
    pub token: usize,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Complete.
    Well,
    /// The server refused; `retry` where the same again may succeed.
    Failed { code: u8, retry: bool },
    /// The connection is gone.
    Lost { code: u8 },
    /// We were told to stop: not an observation.
    Cut,
}

/// What came back from one round trip.
pub type Reply = Result<Result<i64, Box<ServerError>>, WireError>;

impl Seat {
    /// A session before its first connection.
    pub fn new(number: u16, arm: &ArmPlan, rng: Rng, choice: Rng) -> Self {
        let mut scope = arm.scope.clone();
        scope.set(arm.client_id, Value::Int(number.into()));
        let (columns, redo) = (Vec::new(), Redo::default());
        Self { number, link: None, scope, rng, choice, columns, redo }
    }
}

impl<'a> Runner<'a, '_, '_> {
    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Runs one transaction that starts now; returns when it ended [ns since the epoch].
    pub async fn transaction(&mut self, started: i64, intended: i64) -> Result<i64, LoadError> {
        let arm = self.arm;
        let script = self.choose();
        let max_tries = arm.spec.max_tries;
        let random = (max_tries > 1).then(|| self.seat.rng.clone());
        let (mut now, mut tries) = (started, 1);
        self.out.only_rows = NONE;
        let ended = loop {
            let ended = self.attempt(script, &mut now).await?;
            let again = matches!(ended, Ended::Failed { retry: true, .. });
            match &random {
                Some(random) if again && tries < max_tries && !self.shared.halted() => {
                    self.seat.rng.clone_from(random);
                    tries += 1;
                }
                _ => break ended,
            }
        };
        let error = match ended {
            Ended::Well => 0,
            Ended::Failed { code, .. } | Ended::Lost { code } => code,
            Ended::Cut => return Ok(now),
        };
        self.out.recorder.push(Call {
            intended_ns: intended,
            elapsed_ns: now - started,
            rows: self.out.only_rows,
            tries,
            ..self.row(script.name, CallKind::Transaction, started, error)
        });
        self.out.tally.transaction(error != 0, tries);
        if matches!(ended, Ended::Lost { .. }) {
            self.reconnect().await?;
            now = self.clock().now_ns();
        }
        Ok(now)
    }

    /// A row of this session in this slice.
    #[inline]
    pub(crate) fn row(&self, statement: u16, kind: CallKind, started_ns: i64, error: u8) -> Call {
        Call {
            started_ns,
            block: self.shared.block,
            slice: self.slice,
            session: self.seat.number,
            arm: self.arm_number,
            statement,
            kind,
            error,
            ..Call::new()
        }
    }

    #[inline]
    fn choose(&mut self) -> &'a ScriptPlan {
        let arm = self.arm;
        match arm.cumulative.last() {
            Some(&total) if arm.scripts.len() > 1 => {
                let drawn = self.seat.choice.up_to(total - 1);
                &arm.scripts[arm.cumulative.partition_point(|&sum| sum <= drawn)]
            }
            _ => &arm.scripts[0],
        }
    }

    /// Runs a script once from its beginning; leaves no transaction open.
    async fn attempt(&mut self, script: &'a ScriptPlan, now: &mut i64) -> Result<Ended, LoadError> {
        let ended = self.steps(script, now).await?;
        let open = self.seat.link.as_ref().is_some_and(Link::in_transaction);
        match ended {
            _ if !open => Ok(ended),
            Ended::Well => {
                Err(running(self, script, 0, "the script ended inside a transaction", "end it with COMMIT or ROLLBACK"))
            }
            _ => Ok(self.roll_back(ended, now).await),
        }
    }

    /// Sends one command, waits for its result, writes its row.
    pub(crate) async fn call(&mut self, script: &ScriptPlan, index: usize, now: &mut i64) -> Ended {
        let command = &self.arm.commands[index];
        let started = *now;
        self.activity.ask(started);
        let reply = if command.store.is_some() {
            self.store_trip(command, index).await
        } else {
            self.trip(command, index).await
        };
        self.activity.answered();
        *now = self.clock().now_ns();
        let (rows, ended) = match reply {
            Ok(Ok(rows)) => (rows, Ended::Well),
            refused => (NONE, self.failure(refused, index)),
        };
        if script.single {
            self.out.only_rows = rows;
        }
        if script.single || ended == Ended::Cut {
            return ended;
        }
        let (redo_bytes, unflushed_bytes) = match command.kind {
            CallKind::Commit => self.seat.redo.pending.take().unwrap_or((NONE, NONE)),
            _ => (NONE, NONE),
        };
        let row = self.row(command.name, command.kind, started, ended.code());
        let elapsed_ns = *now - started;
        self.out.recorder.push(Call { elapsed_ns, rows, redo_bytes, unflushed_bytes, ..row });
        ended
    }

    /// One round trip without keeping results.
    #[inline]
    async fn trip(&mut self, command: &SqlPlan, index: usize) -> Reply {
        let Some(link) = self.seat.link.as_mut() else { return Err(WireError::Closed) };
        let symbols = &self.arm.symbols;
        let protocol = self.arm.protocol;
        link.queue(&command.statement, index, protocol, &self.seat.scope, |v| symbols.name(v));
        link.queue_sync();
        link.send()?;
        let mut reply = Ok(NONE);
        loop {
            match link.event(self.pulse).await? {
                Event::Done { rows } => {
                    if let Ok(last) = &mut reply {
                        *last = rows;
                    }
                }
                Event::Failed(error) => reply = reply.and(Err(error)),
                Event::Ready => return Ok(reply),
            }
        }
    }

    /// Files an error: in the tally, in the dictionary of codes; drops a connection that is gone.
    #[cold]
    pub(crate) fn failure(&mut self, reply: Reply, index: usize) -> Ended {
        let shared = self.shared;
        match reply {
            Ok(Ok(_)) => Ended::Well,
            Ok(Err(error)) => {
                if shared.stopped() && error.code == "57014" {
                    return Ended::Cut;
                }
                if error.code == "26000" {
                    self.seat.link.as_mut().into_iter().for_each(|link| link.forget(index));
                }
                self.out.tally.note_error(|| error.words(&self.arm.known_text()));
                let retry = matches!(error.code.as_str(), "40001" | "40P01");
                Ended::Failed { code: shared.codes.number(&error.code), retry }
            }
            Err(error) => {
                self.seat.link = None;
                if shared.stopped() {
                    return Ended::Cut;
                }
                self.out.tally.note_error(|| error.words(&self.arm.known_text()));
                Ended::Lost { code: shared.codes.number(error.code()) }
            }
        }
    }

    /// Ends the transaction that an error left behind; a row of its own.
    #[cold]
    async fn roll_back(&mut self, ended: Ended, now: &mut i64) -> Ended {
        let started = *now;
        let Some(link) = self.seat.link.as_mut() else { return ended };
        self.activity.ask(started);
        let reply = link.run("rollback", self.pulse).await.map(|error| error.map_or(Ok(NONE), Err));
        self.activity.answered();
        *now = self.clock().now_ns();
        let outcome = self.failure(reply, usize::MAX);
        let row = self.row(self.shared.plan.rollback, CallKind::Rollback, started, outcome.code());
        self.out.recorder.push(Call { elapsed_ns: *now - started, ..row });
        if matches!(outcome, Ended::Lost { .. } | Ended::Cut) { outcome } else { ended }
    }
}

impl Ended {
    /// Number of the error code; 0 is none.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Well | Self::Cut => 0,
            Self::Failed { code, .. } | Self::Lost { code } => code,
        }
    }
}
