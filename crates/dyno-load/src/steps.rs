//! Steps of a script: commands, variables, branches, pauses, pipelines.

use dyno_script::{EvalError, eval};

use crate::LoadError;
use crate::plan::{ScriptPlan, Step};
use crate::reply::Ended;
use crate::runner::{Runner, running};

impl<'a> Runner<'a, '_, '_> {
    /// Runs a script's steps until its end or its first failure.
    ///
    /// # Errors
    /// An expression has no value, a command is not possible inside or outside a pipeline, or the script ends inside a
    /// pipeline.
    pub(crate) async fn steps(&mut self, script: &'a ScriptPlan, now: &mut i64) -> Result<Ended, LoadError> {
        let (mut at, mut stale) = (0, false);
        self.out.batch.clear();
        while let Some(step) = script.steps.get(at) {
            at += 1;
            match step {
                Step::Sql(command) => {
                    if stale && !script.single {
                        *now = self.clock().now_ns();
                        stale = false;
                    }
                    let ended = if self.out.batch.is_open() {
                        self.add_to_batch(*command, now).await
                    } else {
                        self.call(script, *command, now).await
                    };
                    if ended != Ended::Well {
                        return Ok(ended);
                    }
                }
                Step::Set { var, expr, line } => {
                    let value = eval(expr, &mut self.state.scope, &mut self.state.rng)
                        .map_err(|e| evaluation(self, script, *line, &e))?;
                    self.state.scope.set(*var, value);
                    stale = true;
                }
                Step::JumpUnless { expr, target, line } => {
                    let value = eval(expr, &mut self.state.scope, &mut self.state.rng)
                        .map_err(|e| evaluation(self, script, *line, &e))?;
                    if !value.truth() {
                        at = *target;
                    }
                    stale = true;
                }
                Step::Jump { target } => at = *target,
                other => {
                    let ended = self.rare_step(script, other, now).await?;
                    stale = false;
                    if ended != Ended::Well {
                        return Ok(ended);
                    }
                }
            }
        }
        if self.out.batch.is_open() {
            let next = "end the pipeline with \\endpipeline on every path through the script";
            return Err(running(self, script, 0, "the script ended inside a pipeline", next));
        }
        Ok(Ended::Well)
    }

    async fn rare_step(&mut self, script: &'a ScriptPlan, step: &Step, now: &mut i64) -> Result<Ended, LoadError> {
        *now = self.clock().now_ns();
        let open = self.out.batch.is_open();
        match step {
            Step::Sleep { time, line } => {
                let micros = time.micros(&self.state.scope).map_err(|e| evaluation(self, script, *line, &e))?;
                let target = now.saturating_add_unsigned(micros.saturating_mul(1_000));
                let halted = || self.block.halted();
                *now = self.pulse.sleep_until(self.clock(), target, halted).await;
                Ok(if *now < target { Ended::Cut } else { Ended::Well })
            }
            Step::Redo { command, .. } if !open => Ok(self.read_redo(*command, now).await),
            Step::StartPipeline { .. } if !open => {
                self.out.batch.open(*now);
                Ok(Ended::Well)
            }
            Step::SyncPipeline { .. } if open => {
                self.sync_batch();
                Ok(Ended::Well)
            }
            Step::EndPipeline { .. } if open => Ok(self.end_batch(script, now).await),
            Step::Redo { line, .. } | Step::StartPipeline { line } => {
                let next = "move the command behind \\endpipeline";
                Err(running(self, script, *line, "not possible inside a pipeline", next))
            }
            Step::SyncPipeline { line } | Step::EndPipeline { line } => {
                let next = "begin a pipeline with \\startpipeline";
                Err(running(self, script, *line, "no pipeline is open here", next))
            }
            _ => Ok(Ended::Well),
        }
    }
}

#[cold]
fn evaluation(runner: &Runner<'_, '_, '_>, script: &ScriptPlan, line: u32, error: &EvalError) -> LoadError {
    running(runner, script, line, &error.to_string(), "correct the expression or its variables")
}
