//! Results that a script keeps (`\gset`, `\aset`) and the position of the write-ahead log (`\redo`).
//!
//! This is separate from the round trip that keeps no results, because copying results costs time.

use dyno_evidence::{Call, CallKind, NONE};
use dyno_script::{Store, Value};

use crate::plan::SqlPlan;
use crate::reply::{Ended, Reply};
use crate::runner::Runner;
use crate::wire::link::{CAPTURE_BYTES_MAX, Event};
use crate::wire::message::{column_names, columns};
use crate::wire::{ServerError, WireError};

/// SQLSTATEs of `\gset` without a row (`NO_ROW`) and with several rows (`MANY_ROWS`): the codes that PL/pgSQL uses for
/// these errors.
const NO_ROW: &str = "P0002";
const MANY_ROWS: &str = "P0003";

/// SQLSTATE of a row that is too long to keep: program limit exceeded.
const TOO_LONG: &str = "54000";

#[cold]
fn too_long() -> ServerError {
    ServerError::ours(TOO_LONG, format!("\\gset: a row or its description has more than {CAPTURE_BYTES_MAX} bytes"))
}

impl Runner<'_, '_, '_> {
    /// Makes one round trip whose result goes into variables.
    pub(crate) async fn store_trip(&mut self, command: &SqlPlan, index: usize) -> Reply {
        let all_rows = command.store.as_ref().is_some_and(|store| store.all_rows);
        let mut last = 0;
        let mut reply = Ok(NONE);
        self.send_capturing(command, index)?;
        loop {
            let Some(link) = self.state.link.as_mut() else { return Err(WireError::Closed) };
            match link.event(self.pulse).await? {
                Event::Done { rows } => {
                    last = std::mem::take(&mut link.capture().rows);
                    reply = reply.map(|_| rows);
                    if link.capture().too_long {
                        reply = reply.and(Err(too_long().into()));
                        continue;
                    }
                    self.name_columns(command, index)?;
                    if all_rows && last > 0 {
                        self.take_row(index)?;
                    }
                }
                Event::Failed(error) => reply = reply.and(Err(error)),
                Event::Ready => {
                    link.capture().on = false;
                    if link.capture().too_long {
                        return Ok(reply.and(Err(too_long().into())));
                    }
                    break;
                }
            }
        }
        // A command that failed may have been described all the same, and is described only once.
        self.name_columns(command, index)?;
        if reply.is_err() || all_rows {
            return Ok(reply);
        }
        match last {
            1 => self.take_row(index).map(|()| reply),
            0 => Ok(Err(ServerError::ours(NO_ROW, "\\gset: one row is needed and none came".into()).into())),
            n => Ok(Err(ServerError::ours(MANY_ROWS, format!("\\gset: one row is needed and {n} came")).into())),
        }
    }

    fn send_capturing(&mut self, command: &SqlPlan, index: usize) -> Result<(), WireError> {
        let Some(link) = self.state.link.as_mut() else { return Err(WireError::Closed) };
        let symbols = &self.arm.symbols;
        link.capture().on = true;
        link.capture().rows = 0;
        link.capture().too_long = false;
        link.capture().description.clear();
        let protocol = self.arm.protocol;
        link.queue(&command.statement, index, protocol, &self.state.scope, symbols);
        link.queue_sync();
        link.send()
    }

    /// Finds the variables that receive the columns, if the server described the result in this round trip.
    ///
    /// Columns whose variable no script mentions are ignored.
    fn name_columns(&mut self, command: &SqlPlan, index: usize) -> Result<(), WireError> {
        let state = &mut *self.state;
        let Some(link) = state.link.as_mut() else { return Err(WireError::Closed) };
        if state.columns.len() <= index {
            state.columns.resize(index + 1, Vec::new());
        }
        if !link.capture().description.is_empty() {
            let prefix = command.store.as_ref().map_or("", |Store { prefix, .. }| prefix);
            let names = column_names(&link.capture().description)?;
            let lookup = |name: &String| self.arm.symbols.lookup(&format!("{prefix}{name}"));
            state.columns[index] = names.iter().map(lookup).collect();
            link.capture().description.clear();
        }
        Ok(())
    }

    /// Copies the values of the last row into the variables.
    fn take_row(&mut self, index: usize) -> Result<(), WireError> {
        let state = &mut *self.state;
        let Some(link) = state.link.as_mut() else { return Err(WireError::Closed) };
        for (value, var) in columns(&link.capture().row).zip(&state.columns[index]) {
            let (value, Some(var)) = (value?, var) else { continue };
            match value {
                Some(text) => state.scope.set_text(*var, &String::from_utf8_lossy(text)),
                None => state.scope.set(*var, Value::Null),
            }
        }
        Ok(())
    }

    /// Runs `\redo`: reads the position of the write-ahead log, for the next commit's row.
    pub(crate) async fn read_redo(&mut self, index: usize, now: &mut i64) -> Ended {
        let command = &self.arm.commands[index];
        let started = *now;
        self.activity.ask(started);
        let reply = self.redo_trip(command, index).await;
        self.activity.answered();
        *now = self.clock().now_ns();
        let ended = match reply {
            Ok(Ok((inserted, flushed))) => {
                let redo = &mut self.state.redo;
                let since = redo.previous.map_or(NONE, |previous| inserted - previous);
                // The flush position is read after the insert position: other sessions may have written in between.
                redo.pending = Some((since, (inserted - flushed).max(0)));
                redo.previous = Some(inserted);
                Ended::Well
            }
            Ok(Err(error)) => self.failure(Ok(Err(error)), index),
            Err(error) => self.failure(Err(error), index),
        };
        if ended != Ended::Cut {
            let row = self.row(command.name, CallKind::RedoPosition, started, ended.code());
            self.out.recorder.push(Call { elapsed_ns: *now - started, rows: 1, ..row });
        }
        ended
    }

    async fn redo_trip(
        &mut self,
        command: &SqlPlan,
        index: usize,
    ) -> Result<Result<(i64, i64), Box<ServerError>>, WireError> {
        self.send_capturing(command, index)?;
        let Some(link) = self.state.link.as_mut() else { return Err(WireError::Closed) };
        let mut failed = None;
        loop {
            match link.event(self.pulse).await? {
                Event::Done { .. } => {}
                Event::Failed(error) => failed = Some(error),
                Event::Ready => break,
            }
        }
        link.capture().on = false;
        if let Some(error) = failed {
            return Ok(Err(error));
        }
        let mut numbers = columns(&link.capture().row).map(|value| {
            let text = value?.and_then(|bytes| std::str::from_utf8(bytes).ok());
            text.and_then(|text| text.parse::<i64>().ok())
                .ok_or_else(|| WireError::Protocol("a log position that is no number".into()))
        });
        match (numbers.next().transpose()?, numbers.next().transpose()?) {
            (Some(inserted), Some(flushed)) => Ok(Ok((inserted, flushed))),
            _ => Err(WireError::Protocol("a log position without its columns".into())),
        }
    }
}
