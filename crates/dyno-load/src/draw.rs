//! Scripts for clients that are programs other than dbdyno.
//!
//! The SQL text is split at its values, and the values of each transaction are drawn in advance, from the same random
//! streams that dbdyno's own sessions use.
//!
//! # Limits
//!
//! Commands whose effect depends on an answer of the server cannot be drawn in advance: `\gset`, `\aset`, `\redo` and
//! pipelines are refused.

use dyno_script::{Command, Compiler, Piece, Rng, Scope, Script, Seeds, Sql, SqlKind, Value, VarId, eval};
use serde::Serialize;

use crate::LoadError;
use crate::run::CHOICE_STREAM;
use crate::spec::{ArmSpec, ScriptSpec};

/// Maximum number of steps in one transaction; a script that exceeds it is considered an endless loop.
const STEPS_MOST: usize = 100_000;

/// One SQL command for another client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DrawnStatement {
    /// Name in the evidence.
    pub name: String,
    /// `begin`, `commit`, `rollback` or `exec`.
    pub kind: &'static str,
    /// SQL text between the values: one piece more than there are values.
    pub pieces: Vec<String>,
}

/// One script for another client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DrawnScript {
    /// Name in the evidence.
    pub name: String,
    /// True if the script sends exactly one command.
    pub single: bool,
    /// Indexes in [`Drawer::statements`] of the script's commands.
    pub statements: Vec<usize>,
}

/// One drawn transaction: the steps that the client executes, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawnTransaction {
    /// Index in [`Drawer::scripts`] of the transaction's script.
    pub script: usize,
    /// Steps: the index of a statement and its values, or `None` and the length of a pause [us].
    pub steps: Vec<(Option<usize>, Vec<DrawnValue>)>,
}

/// Value of a variable, in the form that JSON can represent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DrawnValue {
    /// SQL NULL.
    Null,
    /// Boolean.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Double-precision number.
    Double(f64),
    /// Text.
    Text(String),
}

/// Index of a statement and the variables that supply its values.
type Sent = (usize, Vec<VarId>);

/// Draws the transactions of an arm's sessions.
#[derive(Debug)]
pub struct Drawer {
    arm: String,
    scripts: Vec<(DrawnScript, Script)>,
    cumulative: Vec<u64>,
    statements: Vec<DrawnStatement>,
    /// What each command of each script sends; `None` for commands that send nothing.
    sent: Vec<Vec<Option<Sent>>>,
    sessions: Vec<(Scope, Rng, Rng)>,
    varies: bool,
}

impl Drawer {
    /// Compiles the scripts of an arm and seeds the random streams of its sessions; no I/O.
    ///
    /// # Errors
    /// A script does not parse, or another client cannot run it.
    pub fn new(arm: &ArmSpec, seed: u64) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Script { arm: arm.name.clone(), source };
        let mut compiler = Compiler::new();
        let client_id = compiler.declare("client_id").map_err(failed)?;
        let default_seed = Seeds::new(seed).default_seed(usize::from(arm.sessions));
        let mut values = vec![
            ("scale".to_owned(), "1".to_owned()),
            ("random_seed".to_owned(), seed.to_string()),
            ("default_seed".to_owned(), default_seed.to_string()),
        ];
        values.extend(arm.variables.iter().map(|(name, value)| (name.clone(), value.clone())));
        let mut set = vec![client_id];
        for (name, _) in &values {
            set.push(compiler.declare(name).map_err(failed)?);
        }
        let specs: Vec<&ScriptSpec> = arm.scripts.iter().filter(|script| script.weight > 0).collect();
        let mut compiled = Vec::new();
        for spec in &specs {
            compiled.push(compiler.compile(&spec.name, &spec.text).map_err(failed)?);
        }
        if let Some(error) = compiler.unassigned().into_iter().next() {
            return Err(failed(error));
        }
        let commands = || compiled.iter().flat_map(|script| &script.commands);
        set.extend(commands().filter_map(|c| if let Command::Set { var, .. } = c { Some(*var) } else { None }));
        let varies = compiled.len() > 1 || commands().any(|c| !matches!(c, Command::Sql(_)));
        let mut statements: Vec<DrawnStatement> = Vec::new();
        let mut sent = Vec::new();
        for script in &compiled {
            let own = script.commands.iter().map(|command| {
                let Some((statement, params)) = shown(&arm.name, &script.name, command, &set, &compiler)? else {
                    return Ok(None);
                };
                let number = statements.iter().position(|known| *known == statement).unwrap_or_else(|| {
                    statements.push(statement);
                    statements.len() - 1
                });
                Ok(Some((number, params)))
            });
            sent.push(own.collect::<Result<Vec<_>, LoadError>>()?);
        }
        let (mut seeds, mut choices) = (Seeds::new(seed), Seeds::new(seed ^ CHOICE_STREAM));
        let sessions = (0..arm.sessions).map(|number| {
            let mut scope = Scope::new(compiler.symbols());
            for ((_, value), var) in values.iter().zip(&set[1..]) {
                scope.set_text(*var, value);
            }
            scope.set(client_id, Value::Int(number.into()));
            (scope, seeds.session(), choices.session())
        });
        let cumulative = specs.iter().scan(0, |sum, script| {
            *sum += u64::from(script.weight);
            Some(*sum)
        });
        Ok(Self {
            arm: arm.name.clone(),
            cumulative: cumulative.collect(),
            sessions: sessions.collect(),
            scripts: compiled
                .into_iter()
                .zip(&sent)
                .map(|(script, sent)| {
                    let statements = sent.iter().flatten().map(|(number, _)| *number).collect();
                    (DrawnScript { name: script.name.clone(), single: script.is_single_sql(), statements }, script)
                })
                .collect(),
            statements,
            sent,
            varies,
        })
    }

    /// Returns the distinct SQL commands; steps of a transaction refer to them by index.
    pub fn statements(&self) -> &[DrawnStatement] {
        &self.statements
    }

    /// Returns the scripts; transactions refer to them by index.
    pub fn scripts(&self) -> Vec<DrawnScript> {
        self.scripts.iter().map(|(shown, _)| shown.clone()).collect()
    }

    /// Returns true if transactions can differ from each other.
    pub fn varies(&self) -> bool {
        self.varies
    }

    /// Draws the next `count` transactions of a session.
    ///
    /// # Errors
    /// There is no such session, an expression has no value, or a script does not end.
    pub fn draw(&mut self, session: usize, count: usize) -> Result<Vec<DrawnTransaction>, LoadError> {
        (0..count).map(|_| self.transaction(session)).collect()
    }

    fn transaction(&mut self, session: usize) -> Result<DrawnTransaction, LoadError> {
        let Some((scope, rng, choice)) = self.sessions.get_mut(session) else {
            return Err(LoadError::spec(
                &self.arm,
                format!("there is no session {session}"),
                "name one of the sessions of the arm",
            ));
        };
        let script = match self.cumulative.last() {
            Some(&total) if self.cumulative.len() > 1 => {
                let drawn = choice.up_to(total - 1);
                self.cumulative.partition_point(|&sum| sum <= drawn)
            }
            _ => 0,
        };
        let (shown, compiled) = &self.scripts[script];
        let place = |line: u32, message: String| LoadError::Running {
            script: shown.name.clone(),
            line,
            message,
            next: "correct the expression or its variables".into(),
        };
        let (mut at, mut taken, mut steps) = (0, 0, Vec::new());
        while let Some(command) = compiled.commands.get(at) {
            taken += 1;
            if taken > STEPS_MOST {
                return Err(place(1, format!("has more than {STEPS_MOST} steps")));
            }
            let sent = &self.sent[script][at];
            at += 1;
            match command {
                Command::Set { var, expr, line } => {
                    let value = eval(expr, scope, rng).map_err(|e| place(*line, e.to_string()))?;
                    scope.set(*var, value);
                }
                Command::JumpUnless { expr, target, line } => {
                    if !eval(expr, scope, rng).map_err(|e| place(*line, e.to_string()))?.truth() {
                        at = *target;
                    }
                }
                Command::Jump { target } => at = *target,
                Command::Sleep { time, line } => {
                    let micros = time.micros(scope).map_err(|e| place(*line, e.to_string()))?;
                    steps.push((None, vec![DrawnValue::Int(i64::try_from(micros).unwrap_or(i64::MAX))]));
                }
                _ => {
                    if let Some((number, params)) = sent {
                        steps.push((Some(*number), params.iter().map(|var| drawn(scope, *var)).collect()));
                    }
                }
            }
        }
        Ok(DrawnTransaction { script, steps })
    }
}

/// Returns a command in the form that another client sends, and the variables that supply its values; `None` if it
/// sends nothing.
fn shown(
    arm: &str,
    script: &str,
    command: &Command,
    set: &[VarId],
    compiler: &Compiler,
) -> Result<Option<(DrawnStatement, Vec<VarId>)>, LoadError> {
    let refuse = |line: u32, what: &str| {
        let next = "change the script, or leave client out to run it with dbdyno's own client";
        Err(LoadError::spec(format!("arm {arm}, script {script}, line {line}"), what, next))
    };
    match command {
        Command::Sql(sql) if sql.store.is_some() => {
            refuse(sql.line, "another client cannot keep results in variables (\\gset, \\aset)")
        }
        Command::Sql(sql) if sql.compound => refuse(sql.line, "another client sends one statement at a time, not \\;"),
        Command::Sql(sql) if sql.quoted.iter().any(|var| set.contains(var)) => {
            refuse(sql.line, "a variable inside quotes or a comment is not a value of a statement")
        }
        Command::RedoPosition { line } => refuse(*line, "another client does not support \\redo"),
        Command::StartPipeline { line } | Command::SyncPipeline { line } | Command::EndPipeline { line } => {
            refuse(*line, "another client does not support pipelines")
        }
        Command::Sql(sql) => Ok(Some(cut(sql, set, compiler))),
        _ => Ok(None),
    }
}

fn cut(sql: &Sql, set: &[VarId], compiler: &Compiler) -> (DrawnStatement, Vec<VarId>) {
    let (mut pieces, mut params) = (vec![String::new()], Vec::new());
    for piece in &sql.pieces {
        let last = pieces.len() - 1;
        match piece {
            Piece::Text(text) => pieces[last].push_str(text),
            Piece::Var(var) if set.contains(var) => {
                params.push(*var);
                pieces.push(String::new());
            }
            Piece::Var(var) => {
                pieces[last].push(':');
                pieces[last].push_str(compiler.symbols().name(*var));
            }
        }
    }
    let kind = match sql.kind {
        SqlKind::Begin => "begin",
        SqlKind::Commit => "commit",
        SqlKind::Rollback => "rollback",
        SqlKind::Other => "exec",
    };
    (DrawnStatement { name: sql.label.clone(), kind, pieces }, params)
}

/// Returns a variable's value; text in the canonical form of an integer becomes an integer.
fn drawn(scope: &Scope, var: VarId) -> DrawnValue {
    match scope.get(var) {
        None | Some(Value::Null) => DrawnValue::Null,
        Some(Value::Int(number)) => DrawnValue::Int(number),
        Some(Value::Double(number)) => DrawnValue::Double(number),
        Some(Value::Bool(truth)) => DrawnValue::Bool(truth),
        Some(Value::Text(text)) => match text.parse::<i64>() {
            Ok(number) if number.to_string() == *text => DrawnValue::Int(number),
            _ => DrawnValue::Text(text.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(text: &str) -> ArmSpec {
        let json = serde_json::json!({
            "name": "a", "sessions": 2, "variables": {"rows": "10", "word": "o'clock"},
            "connection": {"host": "/tmp", "user": "u", "dbname": "d"},
            "scripts": [{"name": "s", "text": text}],
        });
        serde_json::from_value(json).expect("is good")
    }

    #[test]
    fn values_are_those_of_pgbench_and_stand_between_the_pieces() {
        let text = "\\set aid random(1, 100000 * :scale)\nselect abalance from a where aid = :aid and t > '12:30';";
        let mut drawer = Drawer::new(&arm(text), 7).expect("compiles");
        assert_eq!(drawer.statements()[0].pieces, ["select abalance from a where aid = ", " and t > '12:30'"]);
        let drawn = drawer.draw(0, 1).expect("draws");
        assert_eq!(drawn[0].steps, [(Some(0), vec![DrawnValue::Int(46505)])]);
        assert!(drawer.varies() && drawer.scripts()[0].single);
    }

    #[test]
    fn text_that_is_a_number_is_one_and_other_text_stays() {
        let mut drawer = Drawer::new(&arm("select :rows, :word;"), 7).expect("compiles");
        assert!(!drawer.varies());
        let steps = drawer.draw(1, 1).expect("draws").remove(0).steps;
        assert_eq!(steps[0].1, [DrawnValue::Int(10), DrawnValue::Text("o'clock".into())]);
    }

    #[test]
    fn branches_pauses_and_equal_statements() {
        let text = "begin;\n\\if :client_id\nselect 1;\n\\else\nselect 2;\n\\endif\n\\sleep 5 us\nselect 1;\nend;";
        let mut drawer = Drawer::new(&arm(text), 7).expect("compiles");
        let kinds: Vec<_> = drawer.statements().iter().map(|s| s.kind).collect();
        assert_eq!(kinds, ["begin", "exec", "exec", "commit"]);
        let numbers = |session: usize, drawer: &mut Drawer| -> Vec<Option<usize>> {
            drawer.draw(session, 1).expect("draws")[0].steps.iter().map(|step| step.0).collect()
        };
        assert_eq!(numbers(0, &mut drawer), [Some(0), Some(2), None, Some(1), Some(3)]);
        assert_eq!(numbers(1, &mut drawer), [Some(0), Some(1), None, Some(1), Some(3)]);
        assert!(!drawer.scripts()[0].single);
    }

    #[test]
    fn what_no_other_client_can_run_is_refused_with_its_line() {
        let cases = [
            ("select 1 as one \\gset\nselect :one;", "line 1: another client cannot keep results"),
            ("select 1 \\; select 2;", "one statement at a time"),
            ("select 0;\n\\redo\nselect 1;", "line 2: another client does not support \\redo"),
            ("\\startpipeline\nselect 1;\n\\endpipeline", "does not support pipelines"),
            ("select ':rows';", "inside quotes"),
        ];
        for (text, expected) in cases {
            let error = Drawer::new(&arm(text), 7).expect_err("is refused").to_string();
            assert!(error.contains(expected) && error.contains("script s"), "{error}");
        }
        assert!(Drawer::new(&arm("\\set x 1 / 0\nselect :x;"), 7).expect("compiles").draw(0, 1).is_err());
    }
}
