//! Tests against the values of pgbench 15, for the scripts in `goldens` (see the README there).

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Run, run};

/// Texts of variables by client, transaction and name.
type Values = BTreeMap<(usize, usize, String), String>;

/// Returns the options in the first line of a golden file.
fn options(head: &str) -> Run<'_> {
    let mut run = Run { seed: 0, clients: 0, transactions: 0, defines: Vec::new() };
    for option in head.split('\t').skip(2) {
        match option.split_once('=') {
            Some(("--random-seed", text)) => run.seed = text.parse().expect("a seed"),
            Some(("--client", text)) => run.clients = text.parse().expect("a count"),
            Some(("--transactions", text)) => run.transactions = text.parse().expect("a count"),
            Some(("--define", text)) => run.defines.extend(text.split_once('=')),
            _ => panic!("unknown option {option}"),
        }
    }
    run
}

fn check(stem: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let read = |ending: &str| std::fs::read_to_string(folder.join(format!("{stem}.{ending}"))).expect("a golden file");
    let (script, golden) = (read("sql"), read("tsv"));
    let (head, rows) = golden.split_once('\n').expect("a first line");
    assert!(head.starts_with("#\tpgbench (PostgreSQL) 15."), "not the values of pgbench 15");
    let expected: Values = rows
        .lines()
        .map(|row| {
            let cells: Vec<_> = row.splitn(4, '\t').collect();
            let number = |text: &str| text.parse().expect("a count");
            ((number(cells[0]), number(cells[1]), cells[2].to_owned()), cells[3].to_owned())
        })
        .collect();
    let turns = run(stem, &script, &options(head)).expect("the script runs");
    let found: Values = turns
        .into_iter()
        .flat_map(|turn| {
            let key = move |name| (turn.client, turn.transaction, name);
            turn.values.into_iter().map(move |(name, text)| (key(name), text))
        })
        .collect();
    assert!(!expected.is_empty());
    for (place, text) in &expected {
        assert_eq!(found.get(place), Some(text), "{place:?}");
    }
    assert_eq!(found.len(), expected.len(), "variables that pgbench did not have");
}

#[test]
fn functions_and_operators_are_pgbenchs() {
    check("functions");
}

#[test]
fn random_functions_are_pgbenchs() {
    check("random");
}

#[test]
fn branches_are_pgbenchs() {
    check("branches");
}

#[test]
fn texts_are_read_as_by_pgbench() {
    check("texts");
}
