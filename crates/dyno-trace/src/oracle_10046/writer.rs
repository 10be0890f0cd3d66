//! Writer of traces from evidence: reading a written trace gives the same evidence.
//!
//! Every record is on a line of its own, in the order in which it was read, as the recorded version writes it: one
//! blank after `ela=` up to 23.25, Unix line ends, `=====` before every text. Lines that the evidence does not contain
//! are not written: foreign lines, unreadable stretches, and the BINDS sections if the import was made without binds.
//!
//! Memory: a batch of each table, and the texts of all statements.

mod lines;
mod moment;
mod streams;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use dyno_evidence::EvidenceError;
use dyno_evidence::private::{aside_of, create_file};
use dyno_evidence::table::read_table;
use serde_json::json;

use lines::Style;
pub use moment::moment;
pub(super) use streams::parts_of;
use streams::{Render, Stream, next_piece};

/// A file to write.
struct Original {
    number: u32,
    path: String,
    header: String,
    style: Style,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> EvidenceError + '_ {
    |source| EvidenceError::Io { path: path.to_owned(), source }
}

/// Returns the texts of all statements by key.
pub(super) fn texts(run: &Path) -> Result<HashMap<String, String>, EvidenceError> {
    let mut texts = HashMap::new();
    for rows in read_table(&run.join("statements.parquet"), &["statement", "text"])? {
        let rows = rows?;
        for (key, text) in rows.texts("statement")?.into_iter().zip(rows.texts("text")?) {
            if let (Some(key), Some(text)) = (key, text) {
                texts.insert(key, text);
            }
        }
    }
    Ok(texts)
}

/// Returns true if this Oracle version writes a space after `ela=`.
fn blank_ela(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < (23, 26)
}

fn originals(run: &Path) -> Result<Vec<Original>, EvidenceError> {
    let columns = ["file", "path", "version", "unit_ns", "header"];
    let mut found = Vec::new();
    for rows in read_table(&run.join("files.parquet"), &columns)? {
        let rows = rows?;
        let (numbers, units) = (rows.u32s("file")?, rows.i64s("unit_ns")?);
        let (paths, versions) = (rows.texts("path")?, rows.texts("version")?);
        let headers = rows.texts("header")?;
        for at in 0..rows.len() {
            let text = |column: &[Option<String>]| column[at].clone().unwrap_or_default();
            let style = Style { unit_ns: units[at], blank_ela: blank_ela(&text(&versions)) };
            let (path, header) = (text(&paths), text(&headers));
            found.push(Original { number: numbers[at], path, header, style });
        }
    }
    found.sort_by_key(|original| original.number);
    Ok(found)
}

/// Returns a unique name for a written trace: the original name without a compression suffix.
fn name_for(path: &str, taken: &mut BTreeMap<String, u32>) -> String {
    let base = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let cut = base.to_lowercase().find(".trc").filter(|at| *at > 0);
    let stem = cut.map_or(base.as_str(), |at| &base[..at]);
    let stem = if stem.is_empty() || stem == "-" { "trace" } else { stem };
    let count = taken.entry(stem.to_owned()).or_insert(0);
    *count += 1;
    if *count == 1 { format!("{stem}.trc") } else { format!("{stem}-{count}.trc") }
}

fn streams<'a>(
    run: &Path,
    original: &'a Original,
    texts: &'a HashMap<String, String>,
) -> Result<Vec<Stream<'a>>, EvidenceError> {
    let file = original.number;
    let small = |name: &str, columns: &[&'static str], render: Render<'a>| {
        Stream::new(vec![run.join(format!("{name}.parquet"))], columns, file, render)
    };
    let style = &original.style;
    let calls: Render<'a> = Box::new(move |rows| lines::calls(rows, style));
    let waits: Render<'a> = Box::new(move |rows| lines::waits(rows, style));
    let cursors: Render<'a> = Box::new(move |rows| lines::cursors(rows, texts));
    Ok(vec![
        Stream::new(parts_of(run, "calls", file)?, &lines::CALLS, file, calls),
        Stream::new(parts_of(run, "waits", file)?, &lines::WAITS, file, waits),
        small("cursors", &lines::CURSORS, cursors),
        small("plans", &lines::PLANS, Box::new(lines::plans)),
        small("errors", &lines::ERRORS, Box::new(lines::errors)),
        small("transactions", &lines::TRANSACTIONS, Box::new(lines::transactions)),
        small("binds", &lines::BINDS, Box::new(lines::binds)),
        small("stamps", &lines::STAMPS, Box::new(lines::stamps)),
    ])
}

fn write_one(
    run: &Path,
    place: &Path,
    original: &Original,
    texts: &HashMap<String, String>,
) -> Result<u64, EvidenceError> {
    let aside = aside_of(place);
    let file = create_file(&aside).map_err(failed(&aside))?;
    let mut to = BufWriter::with_capacity(1 << 18, file);
    let mut records = 0;
    let header = if original.header.is_empty() { String::new() } else { format!("{}\n\n", original.header) };
    to.write_all(header.as_bytes()).map_err(failed(&aside))?;
    let mut streams = streams(run, original, texts)?;
    while let Some(piece) = next_piece(&mut streams)? {
        to.write_all(piece.text.as_bytes()).map_err(failed(&aside))?;
        records += 1;
    }
    to.into_inner().map_err(|e| failed(&aside)(e.into_error()))?;
    fs::rename(&aside, place).map_err(failed(place))?;
    Ok(records)
}

/// Writes the traces of an import into the folder `out`, one file each; returns their paths and numbers of records as
/// JSON.
///
/// # Errors
/// A table of the import cannot be read, or a trace cannot be written.
pub fn write_trace(run: &Path, out: &Path) -> Result<String, EvidenceError> {
    fs::create_dir_all(out).map_err(failed(out))?;
    let (texts, mut taken, mut told) = (texts(run)?, BTreeMap::new(), Vec::new());
    for original in originals(run)? {
        let place: PathBuf = out.join(name_for(&original.path, &mut taken));
        let records = write_one(run, &place, &original, &texts)?;
        told.push(json!({"path": place.to_string_lossy(), "records": records}));
    }
    Ok(json!({ "files": told }).to_string())
}
