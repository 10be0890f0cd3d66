//! One transaction of a session: choose a script, run it, record the outcome.
//!
//! Times within a transaction are contiguous: a command begins when the previous one is complete, unless there is a
//! step such as `\set` or `\sleep` between them. So the clock need be read only once per command.

use dyno_evidence::{Call, CallKind, NONE};

use crate::LoadError;
use crate::link::Link;
use crate::plan::ScriptPlan;
use crate::reply::Ended;
use crate::runner::{Runner, running};

impl<'a> Runner<'a, '_, '_> {
    /// Runs one transaction that starts at `started`; returns its end. `intended` is its intended start, [`NONE`] in a
    /// closed loop.
    ///
    /// All times are in ns since the epoch. The transaction is repeated after a serialization failure or a deadlock, up
    /// to the arm's number of tries. If the connection is lost, the session reconnects.
    ///
    /// # Errors
    /// A script cannot continue, or a lost connection cannot be re-established.
    pub async fn transaction(&mut self, started: i64, intended: i64) -> Result<i64, LoadError> {
        let arm = self.arm;
        let script = self.choose();
        self.script = Some(script);
        let max_tries = arm.spec.max_tries;
        let random = (max_tries > 1).then(|| self.state.rng.clone());
        let (mut now, mut tries) = (started, 1);
        self.out.only_rows = NONE;
        let ended = loop {
            let ended = self.attempt(script, &mut now).await?;
            let again = matches!(ended, Ended::Failed { retry: true, .. });
            match &random {
                Some(random) if again && tries < max_tries && !self.block.halted() => {
                    self.state.rng.clone_from(random);
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
        let failed = error != 0 && !matches!(ended, Ended::Failed { expected: true, .. });
        self.out.tally.transaction(failed, tries);
        if matches!(ended, Ended::Lost { .. }) {
            self.reconnect().await?;
            now = self.clock().now_ns();
        }
        Ok(now)
    }

    #[inline]
    fn choose(&mut self) -> &'a ScriptPlan {
        let arm = self.arm;
        match arm.cumulative.last() {
            Some(&total) if arm.scripts.len() > 1 => {
                let drawn = self.state.choice.up_to(total - 1);
                &arm.scripts[arm.cumulative.partition_point(|&sum| sum <= drawn)]
            }
            _ => &arm.scripts[0],
        }
    }

    /// Runs a script once from its beginning, and rolls back a transaction that an error left open.
    async fn attempt(&mut self, script: &'a ScriptPlan, now: &mut i64) -> Result<Ended, LoadError> {
        let ended = self.steps(script, now).await?;
        let open = self.state.link.as_ref().is_some_and(Link::in_transaction);
        match ended {
            _ if !open => Ok(ended),
            Ended::Well => Err(running(
                self,
                script,
                0,
                "the script ended inside a transaction",
                "end the transaction with COMMIT or ROLLBACK",
            )),
            _ => Ok(self.roll_back(ended, now).await),
        }
    }

    /// Rolls back the transaction that an error left open; the rollback has a separate row.
    #[cold]
    async fn roll_back(&mut self, ended: Ended, now: &mut i64) -> Ended {
        let started = *now;
        let Some(link) = self.state.link.as_mut() else { return ended };
        self.activity.ask(started);
        let reply = link.run("rollback", self.pulse).await.map(|error| error.map_or(Ok(NONE), Err));
        self.activity.answered();
        *now = self.clock().now_ns();
        let outcome = self.failure(reply, usize::MAX);
        let row = self.row(self.block.plan.rollback, CallKind::Rollback, started, outcome.code());
        self.out.recorder.push(Call { elapsed_ns: *now - started, ..row });
        if matches!(outcome, Ended::Lost { .. } | Ended::Cut) { outcome } else { ended }
    }
}
