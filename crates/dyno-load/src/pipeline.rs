//! Pipelines: commands that are sent together and whose answers are read afterwards.
//!
//! A batch that grows beyond [`WINDOW_BYTES`] is sent in portions, and all answers of a portion are read before the
//! next is sent. Client and server can then never block each other with full socket buffers.

use dyno_evidence::{Call, CallKind};

use crate::batch::Item;
use crate::plan::ScriptPlan;
use crate::reply::{Ended, Reply};
use crate::runner::Runner;
use crate::wire::link::Event;
use crate::wire::{ServerError, WireError};

/// Number of request bytes that any socket accepts even while the server does not read.
const WINDOW_BYTES: usize = 16 << 10;

impl Runner<'_, '_, '_> {
    /// Queues a command of the open pipeline; if the portion has reached the window size, sends it and reads its
    /// answers.
    pub(crate) async fn add_to_batch(&mut self, index: usize, now: &mut i64) -> Ended {
        let (command, symbols) = (&self.arm.commands[index], &self.arm.symbols);
        let protocol = self.arm.protocol;
        let Some(link) = self.state.link.as_mut() else {
            return self.failure(Err(WireError::Closed), index);
        };
        if command.store.is_some() {
            let error = "\\gset and \\aset do not work inside a pipeline".to_owned();
            return self.failure(Ok(Err(ServerError::ours("0A000", error).into())), index);
        }
        link.queue(&command.statement, index, protocol, &self.state.scope, symbols);
        self.out.batch.items.push(Item::Command(index));
        if link.queued() < WINDOW_BYTES {
            return Ended::Well;
        }
        link.queue_flush();
        let ended = self.exchange(now).await;
        // A failed command does not end the pipeline: the server waits for its `Sync`.
        if matches!(ended, Ended::Failed { .. }) { Ended::Well } else { ended }
    }

    /// Queues a `Sync` in the middle of the open pipeline.
    pub(crate) fn sync_batch(&mut self) {
        if let Some(link) = self.state.link.as_mut() {
            link.queue_sync();
            self.out.batch.items.push(Item::Sync);
        }
    }

    /// Ends the pipeline: sends the rest, reads all answers and records the pipeline's row.
    pub(crate) async fn end_batch(&mut self, script: &ScriptPlan, now: &mut i64) -> Ended {
        let started = self.out.batch.started.unwrap_or(*now);
        self.sync_batch();
        let ended = self.exchange(now).await;
        self.out.batch.clear();
        if ended != Ended::Cut {
            let row = self.row(script.name, CallKind::Pipeline, started, ended.code());
            self.out.recorder.push(Call { elapsed_ns: *now - started, ..row });
        }
        ended
    }

    /// Sends everything that is queued, and reads an answer for each item; returns the pipeline's first failure.
    async fn exchange(&mut self, now: &mut i64) -> Ended {
        *now = self.clock().now_ns();
        self.activity.ask(*now);
        let ended = self.exchange_sent(now).await;
        self.activity.answered();
        ended
    }

    async fn exchange_sent(&mut self, now: &mut i64) -> Ended {
        let sent = *now;
        let Some(link) = self.state.link.as_mut() else {
            return self.failure(Err(WireError::Closed), usize::MAX);
        };
        if let Err(error) = link.send() {
            return self.failure(Err(error), usize::MAX);
        }
        for at in 0..self.out.batch.items.len() {
            match self.out.batch.items[at] {
                Item::Command(_) if self.out.batch.skipping => {}
                Item::Command(index) => {
                    let answer = self.answer().await;
                    *now = self.clock().now_ns();
                    self.activity.ask(*now);
                    let lost = self.command_row(answer, index, sent, *now);
                    if let Some(ended) = lost {
                        return ended;
                    }
                }
                Item::Sync => {
                    let late = match self.ready().await {
                        Ok(late) => late,
                        Err(error) => return self.failure(Err(error), usize::MAX),
                    };
                    *now = self.clock().now_ns();
                    self.out.batch.skipping = false;
                    if let Some(error) = late {
                        let failed = self.failure(Ok(Err(error)), usize::MAX);
                        self.out.batch.note(failed);
                    }
                }
            }
        }
        self.out.batch.items.clear();
        self.out.batch.failed
    }

    async fn answer(&mut self) -> Reply {
        let Some(link) = self.state.link.as_mut() else { return Err(WireError::Closed) };
        match link.event(self.pulse).await? {
            Event::Done { rows } => Ok(Ok(rows)),
            Event::Failed(error) => Ok(Err(error)),
            Event::Ready => Err(WireError::Protocol("an answer is missing".into())),
        }
    }

    /// Waits for the end of a batch; returns an error that arrived only with this end, or `None`.
    async fn ready(&mut self) -> Result<Option<Box<ServerError>>, WireError> {
        let Some(link) = self.state.link.as_mut() else { return Err(WireError::Closed) };
        let mut late = None;
        loop {
            match link.event(self.pulse).await? {
                Event::Ready => return Ok(late),
                // A deferred constraint is checked at the `Sync` and fails there.
                Event::Failed(error) => late = late.or(Some(error)),
                Event::Done { .. } => {
                    return Err(WireError::Protocol("an answer to no question".into()));
                }
            }
        }
    }

    /// Records a command's row; returns how the pipeline ended if it cannot continue, or `None` if it can.
    fn command_row(&mut self, answer: Reply, index: usize, sent: i64, now: i64) -> Option<Ended> {
        let command = &self.arm.commands[index];
        let (rows, ended) = match answer {
            Ok(Ok(rows)) => (rows, Ended::Well),
            refused => (dyno_evidence::NONE, self.failure(refused, index)),
        };
        if ended != Ended::Cut {
            let row = self.row(command.name, command.kind, sent, ended.code());
            self.out.recorder.push(Call { elapsed_ns: now - sent, rows, ..row });
        }
        match ended {
            Ended::Well => None,
            Ended::Failed { .. } => {
                self.out.batch.skipping = true;
                self.out.batch.note(ended);
                None
            }
            Ended::Lost { .. } | Ended::Cut => Some(ended),
        }
    }
}
