//! Prints the values of a script's variables after each transaction, without a server.
//!
//! `evaluate FILE [--seed N] [--clients N] [--transactions N] [--define NAME=TEXT]...` prints one JSON line per
//! client and transaction: `{"client":0,"transaction":0,"values":{"x":"1"}, "simple":["select 1"],"extended":["select
//! $1"]}`. The last two are the SQL that the script would send. `evaluate --each FILE` evaluates each line of the
//! file as an expression and prints `{"line":1,"value":"2"}` or `{"line":1,"error":"..."}`.
//!
//! It is used to compare with a live pgbench, and to try a script manually.

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::Write;
use std::process::ExitCode;

use support::{Run, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match answer(&arguments) {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::from(2)
        }
    }
}

fn answer(arguments: &[String]) -> Result<String, String> {
    let mut file = None;
    let mut each = false;
    let mut what = Run { seed: 1, clients: 1, transactions: 1, defines: Vec::new() };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--each" => each = true,
            "--seed" => what.seed = number(value()?)?,
            "--clients" => what.clients = number(value()?)?,
            "--transactions" => what.transactions = number(value()?)?,
            "--define" => {
                let definition = value()?.split_once('=').ok_or("--define takes NAME=TEXT")?;
                what.defines.push(definition);
            }
            _ => file = Some(argument),
        }
    }
    let file = file.ok_or("no script given")?;
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    if each { Ok(expressions(&text, &what)) } else { transactions(file, &text, &what) }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

fn transactions(file: &str, text: &str, what: &Run) -> Result<String, String> {
    let lines = run(file, text, what)?.into_iter().map(|turn| {
        let values = turn.values.iter().map(|(name, text)| json(name) + ":" + &json(text));
        let values = values.collect::<Vec<_>>().join(",");
        format!(
            "{{\"client\":{},\"transaction\":{},\"values\":{{{values}}},\"simple\":{},\"extended\":{}}}\n",
            turn.client,
            turn.transaction,
            list(&turn.simple),
            list(&turn.extended),
        )
    });
    Ok(lines.collect())
}

fn expressions(text: &str, what: &Run) -> String {
    let lines = text.lines().zip(1..).map(|(line, number)| {
        let turns = run("expression", &format!("\\set result {line}\n"), what);
        let (key, text) = match turns {
            Ok(turns) => ("value", result(turns)),
            Err(error) => ("error", error),
        };
        format!("{{\"line\":{number},\"{key}\":{}}}\n", json(&text))
    });
    lines.collect()
}

fn result(turns: Vec<support::Turn>) -> String {
    let values = turns.into_iter().next_back().map(|turn| turn.values).unwrap_or_default();
    values.into_iter().find(|(name, _)| name == "result").map(|(_, text)| text).unwrap_or_default()
}

fn list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| json(text)).collect();
    format!("[{}]", texts.join(","))
}

/// Returns a text as a JSON string.
fn json(text: &str) -> String {
    let characters = text.chars().map(|character| match character {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        control if control < ' ' => format!("\\u{:04x}", control as u32),
        other => other.to_string(),
    });
    format!("\"{}\"", characters.collect::<String>())
}
