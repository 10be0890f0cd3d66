//! A session during one slice: its inputs, rows, errors and connection.

use std::time::{Duration, Instant};

use dyno_evidence::{Call, CallKind, Failure};
use mio::Registry;

use crate::LoadError;
use crate::batch::Batch;
use crate::block::{Activity, Block};
use crate::clock::Clock;
use crate::plan::{ArmPlan, ScriptPlan};
use crate::reactor::{Pulse, watch};
use crate::record::Recorder;
use crate::reply::{Ended, Reply};
use crate::session_state::SessionState;
use crate::tally::Tally;
use crate::wire::WireError;

/// Time for which reconnecting is attempted after a connection is lost.
const RECONNECT_FOR: Duration = Duration::from_secs(10);
/// Timeout of one attempt to reconnect.
const RECONNECT_TRY: Duration = Duration::from_secs(1);

/// SQLSTATEs of a cancelled statement: PostgreSQL's, then MariaDB's.
const CANCELLED: [&str; 2] = ["57014", "70100"];
/// MariaDB's error number for an unknown prepared statement.
const UNKNOWN_STATEMENT: u16 = 1243;

/// What a session records while it runs one slice of one arm.
pub struct Output<'a> {
    pub recorder: Recorder<'a>,
    pub tally: Tally,
    pub reconnects: u64,
    pub batch: Batch,
    /// Row count of the only command of a single-command script; it goes into the script's row.
    pub only_rows: i64,
}

/// Session during one slice.
pub struct Runner<'a, 'o, 'r> {
    pub block: &'a Block<'a>,
    pub arm: &'a ArmPlan,
    pub arm_number: u16,
    pub slice: u32,
    /// Script that is running.
    pub script: Option<&'a ScriptPlan>,
    pub state: &'a mut SessionState,
    pub out: &'o mut Output<'r>,
    pub activity: &'a Activity,
    /// Events and times that this session waits for.
    pub pulse: &'a Pulse,
    /// Registry in which the session registers a new connection, and the token of that connection.
    pub registry: &'a Registry,
    pub token: usize,
}

impl Runner<'_, '_, '_> {
    pub(crate) fn clock(&self) -> &Clock {
        &self.block.clock
    }

    /// Returns a row of this session in this slice.
    #[inline]
    pub(crate) fn row(&self, statement: u16, kind: CallKind, started_ns: i64, error: u8) -> Call {
        Call {
            started_ns,
            block: self.block.number,
            slice: self.slice,
            session: self.state.number,
            arm: self.arm_number,
            statement,
            kind,
            error,
            ..Call::new()
        }
    }

    /// Records an error in the tally and in the list of failures; drops a lost connection.
    ///
    /// `index` is the number of the command that failed. Returns how the attempt ended.
    #[cold]
    pub(crate) fn failure(&mut self, reply: Reply, index: usize) -> Ended {
        let block = self.block;
        match reply {
            Ok(Ok(_)) => Ended::Well,
            Ok(Err(error)) => {
                if block.stopped() && CANCELLED.contains(&error.code.as_str()) {
                    return Ended::Cut;
                }
                if error.code == "26000" || error.vendor == UNKNOWN_STATEMENT {
                    self.state.link.as_mut().into_iter().for_each(|link| link.forget(index));
                }
                let expected = self.script.is_some_and(|script| script.expects(&error));
                let known = &self.arm.known_text;
                if !expected {
                    self.out.tally.note_error(|| error.words(known));
                }
                let retry = matches!(error.code.as_str(), "40001" | "40P01");
                let (vendor, message) = (Some(error.vendor).filter(|&number| number > 0), Some(error.said(known)));
                let failure = Failure { vendor, message, expected: Some(expected), code: error.code };
                Ended::Failed { code: block.failures.number(failure), retry, expected }
            }
            Err(error) => {
                self.state.link = None;
                if block.stopped() {
                    return Ended::Cut;
                }
                let words = error.words(&self.arm.known_text);
                self.out.tally.note_error(|| words.clone());
                let code = error.code().to_owned();
                let vendor = if let WireError::Server(own) = &error { own.vendor } else { 0 };
                let vendor = Some(vendor).filter(|&number| number > 0);
                let failure = Failure { code, vendor, message: Some(words), expected: Some(false) };
                Ended::Lost { code: block.failures.number(failure) }
            }
        }
    }

    /// Reconnects after a loss, with increasing pauses; returns early if the block is halted.
    ///
    /// Meanwhile the other sessions of this thread, which use the same server, wait.
    ///
    /// # Errors
    /// The connection could not be re-established within [`RECONNECT_FOR`].
    #[cold]
    pub(crate) async fn reconnect(&mut self) -> Result<(), LoadError> {
        let deadline = Instant::now() + RECONNECT_FOR;
        let mut pause = Duration::from_millis(20);
        while !self.block.halted() {
            match self.block.connect(self.arm_number, self.state, Some(RECONNECT_TRY)) {
                Ok(()) => {
                    self.out.reconnects += 1;
                    if let Some(link) = &self.state.link {
                        watch(self.registry, link, self.token).map_err(LoadError::Reactor)?;
                    }
                    return Ok(());
                }
                Err(error) if Instant::now() + pause >= deadline => {
                    return Err(LoadError::Reconnect {
                        place: self.arm.spec.connection.place(),
                        waited_s: RECONNECT_FOR.as_secs(),
                        source: Box::new(error.into_wire()),
                    });
                }
                Err(_) => {
                    let wake = self.clock().now_ns() + pause.as_nanos() as i64;
                    let halted = || self.block.halted();
                    self.pulse.sleep_until(self.clock(), wake, halted).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        }
        Ok(())
    }
}

#[cold]
pub(crate) fn running(
    runner: &Runner<'_, '_, '_>,
    script: &ScriptPlan,
    line: u32,
    message: &str,
    next: &str,
) -> LoadError {
    let name = runner.block.plan.statements.get(usize::from(script.name));
    LoadError::Running {
        script: name.cloned().unwrap_or_default(),
        line: if line > 0 { line } else { script.last_line },
        message: message.into(),
        next: next.into(),
    }
}
