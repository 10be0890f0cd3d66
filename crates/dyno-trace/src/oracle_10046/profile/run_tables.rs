//! Readers of the small tables of an import for a profile.

use std::collections::HashMap;
use std::path::Path;

use dyno_evidence::EvidenceError;
use dyno_evidence::table::{Rows, read_table};
use serde_json::{Map, Value as Json, json};

use super::super::accounting::Account;
use super::super::writer::parts_of;

/// Reads the named columns of a part, batch by batch.
pub(super) fn each(
    path: &Path,
    columns: &[&str],
    mut take: impl FnMut(&Rows) -> Result<(), EvidenceError>,
) -> Result<(), EvidenceError> {
    for rows in read_table(path, columns)? {
        take(&rows?)?;
    }
    Ok(())
}

/// Accounts of the sessions of a run: number of the file, name of the session, account, and wall clock of its start and
/// end [ns].
pub(super) type Accounts = Vec<(u32, String, Account, i64, i64)>;

pub(super) fn accounts(run: &Path) -> Result<Accounts, EvidenceError> {
    let numbers = [
        "started_ns",
        "elapsed_ns",
        "call_ns",
        "between_ns",
        "cpu_ns",
        "wait_inside_ns",
        "first_tim",
        "last_tim",
        "segments",
    ];
    let columns: Vec<&str> = ["file", "name", "process"].into_iter().chain(numbers).collect();
    let mut found = Accounts::new();
    each(&run.join("sessions.parquet"), &columns, |rows| {
        let (files, names) = (rows.u32s("file")?, rows.texts("name")?);
        let processes = rows.texts("process")?;
        let mut values = Vec::new();
        for name in numbers {
            values.push(rows.i64s(name)?);
        }
        for at in 0..rows.len() {
            let [from, elapsed, calls, between, cpu, inside, first, last, segments]: [i64; 9] =
                std::array::from_fn(|n| values[n][at]);
            let account = Account {
                elapsed_ns: i128::from(elapsed),
                calls_ns: i128::from(calls),
                cpu_ns: i128::from(cpu),
                wait_inside_ns: i128::from(inside),
                wait_ns: i128::from(inside) + i128::from(between),
                segments: segments as u64,
                ..Account::default()
            };
            let name = names[at].clone().filter(|name| !name.is_empty());
            let name = name.or(processes[at].clone()).unwrap_or_default();
            let to = from.saturating_add(last.saturating_sub(first));
            found.push((files[at], name, account, from, to));
        }
        Ok(())
    })?;
    Ok(found)
}

pub(super) fn files(run: &Path) -> Result<Vec<(u32, String, i64, i64)>, EvidenceError> {
    let mut found = Vec::new();
    each(&run.join("files.parquet"), &["file", "path", "bytes", "lines"], |rows| {
        let (numbers, paths) = (rows.u32s("file")?, rows.texts("path")?);
        let (bytes, lines) = (rows.i64s("bytes")?, rows.i64s("lines")?);
        for (at, path) in paths.into_iter().enumerate() {
            found.push((numbers[at], path.unwrap_or_default(), bytes[at], lines[at]));
        }
        Ok(())
    })?;
    found.sort();
    Ok(found)
}

pub(super) fn unread(run: &Path) -> Result<Map<String, Json>, EvidenceError> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    each(&run.join("unread.parquet"), &["reason"], |rows| {
        let (numbers, words) = rows.words("reason")?;
        for number in numbers {
            if let Some(word) = words.get(number as usize) {
                *counts.entry(word.clone()).or_default() += 1;
            }
        }
        Ok(())
    })?;
    Ok(counts.into_iter().map(|(reason, count)| (reason, json!(count))).collect())
}

pub(super) fn late_owners(run: &Path, files: &[(u32, String, i64, i64)]) -> Result<HashMap<i64, i64>, EvidenceError> {
    let mut late = HashMap::new();
    for (file, ..) in files {
        for path in parts_of(run, "links", *file)? {
            each(&path, &["row_kind", "id", "parent"], |rows| {
                let (kinds, words) = rows.words("row_kind")?;
                let (ids, parents) = (rows.i64s("id")?, rows.i64s("parent")?);
                for at in 0..rows.len() {
                    if words.get(kinds[at] as usize).is_some_and(|word| word == "wait") {
                        late.insert(ids[at], parents[at]);
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok(late)
}
