//! Specification that is ready to run: scripts compiled, messages encoded, names numbered.

use std::collections::HashMap;

use dyno_evidence::CallKind;
use dyno_script::{Command, Compiler, Expr, Scope, SleepTime, Sql, SqlKind, Store, Symbols, VarId};

use crate::connection::Engine;
use crate::link::Statement;
use crate::spec::{ArmSpec, LoadSpec, Protocol, ScriptSpec};
use crate::{LoadError, wire};

/// SQL of `\redo`: insert position and flush position of the write-ahead log [bytes].
const REDO_SQL: &str = "select pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::pg_catalog.int8, \
     pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_flush_lsn(), '0/0')::pg_catalog.int8";

/// Names under which commands that are in no script appear in the evidence.
const REDO_NAME: &str = "\\redo";
const ROLLBACK_NAME: &str = "rollback after an error";

/// Everything that the sessions share and that does not change during the load.
#[derive(Debug)]
pub struct Plan {
    /// Arms in the order of their numbers.
    pub arms: Vec<ArmPlan>,
    /// Names of scripts and commands in the order of their numbers; equal names share a number across all arms.
    pub statements: Vec<String>,
    /// Number of the name for a rollback that is not in any script.
    pub rollback: u16,
}

/// One arm, ready to run.
#[derive(Debug)]
pub struct ArmPlan {
    /// Specification of the arm, as the caller wrote it.
    pub spec: ArmSpec,
    /// How SQL is sent.
    pub protocol: Protocol,
    /// Scripts with a weight above 0.
    pub scripts: Vec<ScriptPlan>,
    /// Sum of the weights up to and including each script.
    pub cumulative: Vec<u64>,
    /// Commands of all scripts; steps refer to them by index.
    pub commands: Vec<SqlPlan>,
    /// Variables of the scripts.
    pub symbols: Symbols,
    /// Initial values of a new session's variables, except `client_id`.
    pub scope: Scope,
    /// The variable `client_id`.
    pub client_id: VarId,
    /// Text that error messages can quote because the evidence contains it anyway: scripts and `session_sql`.
    pub known_text: String,
}

/// One script, ready to run.
#[derive(Debug)]
pub struct ScriptPlan {
    /// Number of the script's name.
    pub name: u16,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// True if the script sends exactly one command; the command then has no row in addition to the script's.
    pub single: bool,
    /// Last line of the script, counted from 1.
    pub last_line: u32,
    /// Errors that are expected outcomes of this script: SQLSTATEs, or MariaDB's error numbers.
    pub expected: Vec<String>,
}

/// One step of a script; `line` counts from 1.
#[derive(Debug)]
pub enum Step {
    /// Sends the arm's command with this index.
    Sql(usize),
    /// `\redo`, which sends the arm's command with this index.
    Redo { command: usize, line: u32 },
    /// `\set`.
    Set { var: VarId, expr: Expr, line: u32 },
    /// `\sleep`.
    Sleep { time: SleepTime, line: u32 },
    /// Jumps to step `target` unless the expression is true.
    JumpUnless { expr: Expr, target: usize, line: u32 },
    /// Jumps to step `target`.
    Jump { target: usize },
    /// `\startpipeline`.
    StartPipeline { line: u32 },
    /// `\syncpipeline`.
    SyncPipeline { line: u32 },
    /// `\endpipeline`.
    EndPipeline { line: u32 },
}

/// One SQL command, encoded.
#[derive(Debug)]
pub struct SqlPlan {
    /// Number of the command's name.
    pub name: u16,
    /// Kind of the command's row in the evidence.
    pub kind: CallKind,
    /// Encoded messages.
    pub statement: Statement,
    /// Variables that receive the command's result, if a script keeps it.
    pub store: Option<Store>,
}

/// Time from the server's `statement_timeout` until the client closes the connection [ms].
const ANSWER_GRACE_MS: u64 = 10_000;

/// Assigns a number to each distinct name.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    numbers: HashMap<String, u16>,
}

impl Names {
    fn number(&mut self, name: &str) -> Result<u16, LoadError> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        let number = u16::try_from(self.list.len())
            .map_err(|_| LoadError::spec("load", "more than 65536 different commands", "use fewer scripts"))?;
        self.list.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }
}

impl Plan {
    /// Compiles all scripts; no I/O.
    ///
    /// # Errors
    /// The specification is invalid, a script does not parse, or a command cannot be sent with its protocol.
    pub fn new(spec: &LoadSpec) -> Result<Self, LoadError> {
        spec.check()?;
        let mut names = Names::default();
        let mut arms = Vec::with_capacity(spec.arms.len());
        for arm in &spec.arms {
            let protocol = arm.protocol.unwrap_or(spec.protocol);
            arms.push(ArmPlan::new(arm, spec.seed, protocol, &mut names)?);
        }
        let rollback = names.number(ROLLBACK_NAME)?;
        Ok(Self { arms, statements: names.list, rollback })
    }

    /// Returns the number of sessions of the arm that has the most.
    pub fn sessions(&self) -> usize {
        self.arms.iter().map(|arm| usize::from(arm.spec.sessions)).max().unwrap_or(0)
    }
}

impl ScriptPlan {
    /// Returns true if the error is an expected outcome of this script.
    pub fn expects(&self, error: &wire::ServerError) -> bool {
        let is_it = |own: &String| *own == error.code || (error.vendor > 0 && own.parse() == Ok(error.vendor));
        self.expected.iter().any(is_it)
    }
}

impl ArmPlan {
    /// Returns the SQL that each new session runs before its first transaction.
    ///
    /// Includes the statement timeout, except behind a pooler.
    pub fn session_sql(&self) -> Vec<String> {
        let timeout = self.spec.statement_timeout_ms.map(|ms| match self.spec.connection.engine {
            Engine::Postgres => format!("set statement_timeout = {ms}"),
            Engine::Mariadb => format!("set session max_statement_time = {}.{:03}", ms / 1_000, ms % 1_000),
        });
        self.spec.session_sql.iter().cloned().chain(timeout.filter(|_| !self.spec.pooled)).collect()
    }

    /// Returns how long a session waits for an answer [ns], or `None` if there is no statement timeout.
    pub fn answer_limit_ns(&self) -> Option<i64> {
        let limit_ms = self.spec.statement_timeout_ms?.saturating_add(ANSWER_GRACE_MS);
        Some(i64::try_from(limit_ms.saturating_mul(1_000_000)).unwrap_or(i64::MAX))
    }

    fn new(spec: &ArmSpec, seed: u64, protocol: Protocol, names: &mut Names) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Script { arm: spec.name.clone(), source };
        let mut compiler = Compiler::new();
        let client_id = compiler.declare("client_id").map_err(failed)?;
        let mut values = vec![
            ("scale".to_owned(), "1".to_owned()),
            ("random_seed".to_owned(), seed.to_string()),
            ("default_seed".to_owned(), default_seed(seed, spec).to_string()),
        ];
        values.extend(spec.variables.iter().map(|(name, value)| (name.clone(), value.clone())));
        let mut set = vec![client_id];
        for (name, _) in &values {
            set.push(compiler.declare(name).map_err(failed)?);
        }
        let weighted = || spec.scripts.iter().filter(|script| script.weight > 0);
        let mut compiled = Vec::new();
        for script in weighted() {
            compiled.push(compiler.compile(&script.name, &script.text).map_err(failed)?);
        }
        if let Some(error) = compiler.unassigned().into_iter().next() {
            return Err(failed(error));
        }
        for command in compiled.iter().flat_map(|script| &script.commands) {
            if let Command::Set { var, .. } = command {
                set.push(*var);
            }
        }

        let symbols = compiler.symbols().clone();
        let mut builder = Builder { spec, protocol, names, set: &set, symbols: &symbols, commands: Vec::new() };
        let mut scripts = Vec::new();
        for (script, source) in compiled.into_iter().zip(weighted()) {
            let single = script.is_single_sql();
            let last_line = source.text.lines().count() as u32;
            let name = builder.names.number(&script.name)?;
            let steps = script.commands.into_iter().map(|c| builder.step(c, source));
            let expected = spec.expected_errors.iter().chain(&source.expected_errors).cloned().collect();
            scripts.push(ScriptPlan { name, steps: steps.collect::<Result<_, _>>()?, single, last_line, expected });
        }
        let commands = builder.commands;
        let mut scope = Scope::new(&symbols);
        for ((_, value), var) in values.iter().zip(&set[1..]) {
            scope.set_text(*var, value);
        }
        let cumulative = weighted()
            .scan(0, |sum, script| {
                *sum += u64::from(script.weight);
                Some(*sum)
            })
            .collect();
        let known = spec.scripts.iter().map(|script| &script.text).chain(&spec.session_sql);
        let known_text = known.map(String::as_str).collect::<Vec<_>>().join("\n");
        Ok(Self { spec: spec.clone(), protocol, scripts, cumulative, commands, symbols, scope, client_id, known_text })
    }
}

fn default_seed(seed: u64, spec: &ArmSpec) -> i64 {
    dyno_script::Seeds::new(seed).default_seed(usize::from(spec.sessions))
}

struct Builder<'a> {
    spec: &'a ArmSpec,
    protocol: Protocol,
    names: &'a mut Names,
    /// Variables that have a value when a statement is sent.
    set: &'a [VarId],
    symbols: &'a Symbols,
    commands: Vec<SqlPlan>,
}

impl Builder<'_> {
    fn step(&mut self, command: Command, script: &ScriptSpec) -> Result<Step, LoadError> {
        if self.spec.connection.engine == Engine::Mariadb {
            self.refuse_foreign(&command, script)?;
        }
        Ok(match command {
            Command::Sql(sql) => Step::Sql(self.sql(&sql, script)?),
            Command::RedoPosition { line } => Step::Redo { command: self.redo()?, line },
            Command::Set { var, expr, line } => Step::Set { var, expr, line },
            Command::Sleep { time, line } => Step::Sleep { time, line },
            Command::JumpUnless { expr, target, line } => Step::JumpUnless { expr, target, line },
            Command::Jump { target } => Step::Jump { target },
            Command::StartPipeline { line } => {
                if self.protocol == Protocol::Simple {
                    return Err(self.refuse(
                        script,
                        line,
                        "the simple protocol does not support pipelines",
                        "use the protocol prepared or extended",
                    ));
                }
                Step::StartPipeline { line }
            }
            Command::SyncPipeline { line } => Step::SyncPipeline { line },
            Command::EndPipeline { line } => Step::EndPipeline { line },
        })
    }

    /// Refuses commands that only PostgreSQL supports.
    fn refuse_foreign(&self, command: &Command, script: &ScriptSpec) -> Result<(), LoadError> {
        let (line, what, next) = match command {
            Command::RedoPosition { line } => (*line, "\\redo", "read Innodb_os_log_written in the metrics"),
            Command::StartPipeline { line } => (*line, "a pipeline", "send the commands one by one"),
            _ => return Ok(()),
        };
        Err(self.refuse(script, line, &format!("MariaDB: {what} is not supported"), next))
    }

    fn refuse(&self, script: &ScriptSpec, line: u32, message: &str, next: &str) -> LoadError {
        let place = format!("arm {}, script {}, line {line}", self.spec.name, script.name);
        LoadError::spec(place, message, next)
    }

    fn sql(&mut self, sql: &Sql, script: &ScriptSpec) -> Result<usize, LoadError> {
        if self.protocol != Protocol::Simple {
            if sql.compound {
                return Err(self.refuse(
                    script,
                    sql.line,
                    "several statements joined by \\; cannot be prepared",
                    "use the protocol simple, or separate them by ;",
                ));
            }
            if sql.quoted.iter().any(|var| self.set.contains(var)) {
                return Err(self.refuse(
                    script,
                    sql.line,
                    "a variable inside quotes or a comment has no value in this protocol",
                    "write it outside of the quotes, or use the protocol simple",
                ));
            }
        }
        let number = self.commands.len();
        let statement = Statement::new(self.spec.connection.engine, &format!("dyno{number}"), sql, self.symbols)
            .map_err(|e| self.encoding(script, sql.line, &e))?;
        let kind = match sql.kind {
            SqlKind::Begin => CallKind::Begin,
            SqlKind::Commit => CallKind::Commit,
            SqlKind::Rollback => CallKind::Rollback,
            SqlKind::Other => CallKind::Exec,
        };
        let name = self.names.number(&sql.label)?;
        let store = sql.store.clone();
        self.commands.push(SqlPlan { name, kind, statement, store });
        Ok(number)
    }

    fn encoding(&self, script: &ScriptSpec, line: u32, error: &wire::WireError) -> LoadError {
        self.refuse(script, line, &error.to_string(), "shorten the command")
    }

    fn redo(&mut self) -> Result<usize, LoadError> {
        let number = self.commands.len();
        let statement = wire::statement::Statement::fixed(&format!("dyno{number}"), REDO_SQL)
            .map_err(|e| LoadError::spec(REDO_NAME, e.to_string(), "leave it out"))?;
        let statement = Statement::Postgres(Box::new(statement));
        let (name, kind) = (self.names.number(REDO_NAME)?, CallKind::RedoPosition);
        self.commands.push(SqlPlan { name, kind, statement, store: None });
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(protocol: &str, text: &str) -> LoadSpec {
        let json = serde_json::json!({
            "seed": 7, "protocol": protocol,
            "arms": [{"name": "a", "sessions": 2, "variables": {"v": "3"},
                "connection": {"host": "/tmp", "user": "u", "dbname": "d"},
                "scripts": [{"name": "s", "text": text}]}]
        });
        LoadSpec::from_json(&json.to_string()).expect("is good")
    }

    #[test]
    fn equal_names_have_one_number_in_all_arms() {
        let mut spec = spec("prepared", "begin;\nselect 1;\nselect 1;\ncommit;");
        let mut second = spec.arms[0].clone();
        second.name = "b".into();
        spec.arms.push(second);
        let plan = Plan::new(&spec).expect("compiles");
        assert_eq!(plan.statements, ["s", "begin", "select 1", "commit", ROLLBACK_NAME]);
        assert_eq!(plan.arms[1].commands[2].name, plan.arms[0].commands[1].name);
        let kinds: Vec<_> = plan.arms[0].commands.iter().map(|c| c.kind).collect();
        let expected = [CallKind::Begin, CallKind::Exec, CallKind::Exec, CallKind::Commit];
        assert_eq!(kinds, expected);
        assert!(!plan.arms[0].scripts[0].single);
    }

    #[test]
    fn what_a_protocol_cannot_do_is_refused_before_the_run() {
        let cases = [
            ("simple", "\\startpipeline\nselect 1;\n\\endpipeline\n", "does not support pipelines"),
            ("prepared", "select 1 \\; select 2;", "cannot be prepared"),
            ("extended", "select ':v';", "inside quotes"),
            ("prepared", "\\set x 1\nselect 1 /* :x */;", "inside quotes"),
        ];
        for (protocol, text, expected) in cases {
            let error = Plan::new(&spec(protocol, text)).expect_err("is refused").to_string();
            assert!(error.contains(expected) && error.contains("script s, line"), "{error}");
        }
        for (protocol, text) in [("simple", "select ':v' \\; select 2;"), ("prepared", "select '12:30';")] {
            Plan::new(&spec(protocol, text)).expect("is accepted");
        }
    }

    #[test]
    fn a_script_that_does_not_parse_names_arm_and_place() {
        let error = Plan::new(&spec("prepared", "\\set x (1 +\n")).expect_err("is refused");
        assert!(error.to_string().starts_with("arm a: s:1:"), "{error}");
    }
}
