//! Runner of scripts without a server: executes the commands that need no server, in pgbench's order.
//!
//! Shared by the tests and by the example `evaluate`, with which a live pgbench is compared.

#![allow(dead_code)] // each user uses a part

use dyno_script::{Command, Compiler, Piece, Scope, Script, Seeds, Sql, Value, VarId, eval};

/// Parameters of a run, corresponding to pgbench's options.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    pub seed: u64,
    pub clients: usize,
    pub transactions: usize,
    /// Definitions, as `-D name=text`.
    pub defines: Vec<(&'a str, &'a str)>,
}

/// Variables of one client at the end of one transaction.
#[derive(Debug, PartialEq)]
pub struct Turn {
    pub client: usize,
    pub transaction: usize,
    /// Name and text of all variables that are set, sorted by name.
    pub values: Vec<(String, String)>,
    /// Executed SQL commands in the form of the simple protocol.
    pub simple: Vec<String>,
    /// Executed SQL commands in the form of the extended protocol.
    pub extended: Vec<String>,
}

/// Runs the script for all clients, one after the other.
pub fn run(name: &str, text: &str, run: &Run) -> Result<Vec<Turn>, String> {
    let mut compiler = Compiler::new();
    let predefined = ["scale", "client_id", "default_seed", "random_seed"];
    for name in predefined.into_iter().chain(run.defines.iter().map(|(name, _)| *name)) {
        compiler.declare(name).map_err(|error| error.to_string())?;
    }
    let script = compiler.compile(name, text).map_err(|error| error.to_string())?;
    let mut seeds = Seeds::new(run.seed);
    let mut turns = Vec::new();
    for client in 0..run.clients {
        let mut rng = seeds.session();
        let mut scope = Scope::new(compiler.symbols());
        let mut set = |name: &str, value: Value| {
            if let Some(var) = compiler.symbols().lookup(name) {
                scope.set(var, value);
            }
        };
        set("scale", Value::Int(1));
        set("client_id", Value::Int(client as i64));
        set("default_seed", Value::Int(seeds.default_seed(run.clients)));
        set("random_seed", Value::Int(run.seed as i64));
        for (name, text) in &run.defines {
            set(name, Value::Text((*text).into()));
        }
        for transaction in 0..run.transactions {
            let sent = turn(&script, &mut scope, &mut rng)?;
            turns.push(Turn {
                client,
                transaction,
                values: values(&compiler, &scope),
                simple: sent.iter().map(|(sql, scope)| simple(&compiler, sql, scope)).collect(),
                extended: sent.iter().map(|(sql, _)| sql.text.clone()).collect(),
            });
        }
    }
    Ok(turns)
}

/// SQL commands of one run, each with the variables at that time.
type Sent<'s> = Vec<(&'s Sql, Scope)>;

fn turn<'s>(script: &'s Script, scope: &mut Scope, rng: &mut dyno_script::Rng) -> Result<Sent<'s>, String> {
    let mut sent = Vec::new();
    let mut place = 0;
    while let Some(command) = script.commands.get(place) {
        place += 1;
        match command {
            Command::Set { var, expr, line } => {
                let value = eval(expr, scope, rng).map_err(|error| format!("{line}: {error}"))?;
                scope.set(*var, value);
            }
            Command::JumpUnless { expr, target, line } => {
                let value = eval(expr, scope, rng).map_err(|error| format!("{line}: {error}"))?;
                if !value.truth() {
                    place = *target;
                }
            }
            Command::Jump { target } => place = *target,
            Command::Sleep { time, line } => {
                time.micros(scope).map_err(|error| format!("{line}: {error}"))?;
            }
            Command::Sql(sql) => sent.push((sql, scope.clone())),
            _ => {}
        }
    }
    Ok(sent)
}

fn simple(compiler: &Compiler, sql: &Sql, scope: &Scope) -> String {
    let pieces = sql.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Var(var) if scope.is_set(*var) => text(scope, *var),
        Piece::Var(var) => format!(":{}", compiler.symbols().name(*var)),
    });
    pieces.collect()
}

fn text(scope: &Scope, var: VarId) -> String {
    let mut text = Vec::new();
    let present = scope.write_text(var, &mut text);
    if present { String::from_utf8_lossy(&text).into_owned() } else { "NULL".to_owned() }
}

fn values(compiler: &Compiler, scope: &Scope) -> Vec<(String, String)> {
    let symbols = compiler.symbols();
    let mut values: Vec<_> = symbols
        .iter()
        .filter(|(var, _)| scope.is_set(*var))
        .map(|(var, name)| (name.to_owned(), text(scope, var)))
        .collect();
    values.sort();
    values
}
