//! One SQL command of a script outside of pipelines: send it, read its answer, record its row.

use dyno_evidence::{Call, CallKind, NONE};

use crate::plan::{ScriptPlan, SqlPlan};
use crate::reply::{Ended, Reply};
use crate::runner::Runner;
use crate::wire::WireError;
use crate::wire::link::Event;

impl Runner<'_, '_, '_> {
    /// Sends one command, waits for its result and records its row; sets `now` to the time of the answer.
    ///
    /// In a script with a single command, the command has no separate row: its row count goes into the script's row.
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
            CallKind::Commit => self.state.redo.pending.take().unwrap_or((NONE, NONE)),
            _ => (NONE, NONE),
        };
        let row = self.row(command.name, command.kind, started, ended.code());
        let elapsed_ns = *now - started;
        self.out.recorder.push(Call { elapsed_ns, rows, redo_bytes, unflushed_bytes, ..row });
        ended
    }

    /// Makes one round trip and discards the results; returns the row count of the last statement.
    #[inline]
    async fn trip(&mut self, command: &SqlPlan, index: usize) -> Reply {
        let Some(link) = self.state.link.as_mut() else { return Err(WireError::Closed) };
        let symbols = &self.arm.symbols;
        let protocol = self.arm.protocol;
        link.queue(&command.statement, index, protocol, &self.state.scope, symbols);
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
}
