//! Run folders as `evidence/run.py` reads them: what a list of runs shows of each.
//!
//! A file that is not as dbdyno writes it is left to Python: then there is no answer (`None`).

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use crate::process::is_alive;

/// Keys of manifests and of block records: the record, the key, the JSON types of its value (none: any), and
/// `required`; written by `python tests/manners/native_records.py`.
const KEYS: &str = include_str!("records.tsv");
const SCHEMA: &str = "1";

type Object<'a> = BTreeMap<String, &'a RawValue>;

/// Types of the values of a record, by key, and whether the key is required.
type Types = BTreeMap<&'static str, (&'static str, bool)>;

/// A run, as far as a list shows it.
#[derive(Debug)]
pub struct Run {
    path: PathBuf,
    /// Name of the folder.
    pub name: String,
    /// 'running', 'complete' or 'aborted'.
    pub status: String,
    /// Time of the start, in ISO format.
    pub started: String,
    /// Title of the plan.
    pub title: String,
    /// Headline of the verdict; empty without a verdict.
    pub headline: String,
    kind: String,
    planned: Option<i64>,
    settings: Settings,
}

/// What the manifest says about settings of the server.
#[derive(Debug, PartialEq, Eq)]
enum Settings {
    NotChanged,
    Changed,
}

/// Returns all runs below `folder`, in the order of their names.
pub fn runs(folder: &Path) -> Option<Vec<Run>> {
    let types = types_of("manifest");
    let mut found = Vec::new();
    for entry in entries(folder)? {
        let name = entry.file_name().into_string().ok()?;
        let path = folder.join(&name);
        let file = path.join("manifest.json");
        if entry.file_type().is_ok_and(|kind| kind.is_file()) || !is_file(&file)? {
            continue;
        }
        let text = fs::read(&file).ok()?;
        match serde_json::from_slice::<Object<'_>>(&text) {
            Ok(manifest) if is_of_this_schema(&manifest)? => found.push(Run::of(path, name, &manifest, &types)?),
            // Python skips these, too.
            Ok(_) => {}
            Err(error) if error.is_eof() => {}
            Err(_) => return None,
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Some(found)
}

impl Run {
    fn of(path: PathBuf, name: String, manifest: &Object<'_>, types: &Types) -> Option<Self> {
        for (key, value) in manifest {
            let (allowed, _) = types.get(key.as_str()).unwrap_or(&("", false));
            if !allowed.is_empty() && !allowed.split(' ').any(|kind| kind == kind_of(value.get())) {
                return None;
            }
        }
        let text = |key: &str, default: &str| match manifest.get(key) {
            Some(value) => serde_json::from_str(value.get()).ok(),
            None => Some(default.to_owned()),
        };
        let planned = match manifest.get("blocks_planned") {
            Some(number) => Some(number.get().parse().ok()?),
            None => None,
        };
        Some(Self {
            path,
            name,
            status: status(text("status", "aborted")?, manifest)?,
            started: text("started_at", "")?,
            title: text("title", "")?,
            headline: headline(manifest)?,
            kind: text("kind", "")?,
            planned,
            settings: settings(manifest)?,
        })
    }

    /// Returns true if the run may have left settings of its server changed.
    pub fn may_have_left_settings(&self) -> bool {
        let is_open = self.status == "aborted" && self.settings == Settings::Changed;
        is_open && !self.path.join("put_back.json").is_file()
    }

    /// Returns counted and planned blocks; an empty text for an imported trace, which has none.
    pub fn blocks(&self) -> Option<String> {
        if self.kind == "trace" {
            return Some(String::new());
        }
        let planned = self.planned.map_or_else(|| "?".to_owned(), |planned| planned.to_string());
        Some(format!("{}/{planned}", measured_blocks(&self.path.join("blocks"))?))
    }
}

/// Returns true if this version of dbdyno reads manifests of this schema.
fn is_of_this_schema(manifest: &Object<'_>) -> Option<bool> {
    let schema = manifest.get("schema")?.get();
    (kind_of(schema) == "int").then_some(schema == SCHEMA)
}

/// Returns the status; a run whose process ended before it was complete is 'aborted'.
fn status(written: String, manifest: &Object<'_>) -> Option<String> {
    let process = manifest.get("process").filter(|process| process.get() != "null");
    let ended = written == "running" && !process.map_or(Some(false), |process| is_alive(process))?;
    Some(if ended { "aborted".to_owned() } else { written })
}

fn headline(manifest: &Object<'_>) -> Option<String> {
    let Some(verdict) = manifest.get("verdict").filter(|verdict| verdict.get() != "null") else {
        return Some(String::new());
    };
    let verdict: Object<'_> = serde_json::from_str(verdict.get()).ok()?;
    verdict.get("headline").map_or(Some(String::new()), |headline| serde_json::from_str(headline.get()).ok())
}

fn settings(manifest: &Object<'_>) -> Option<Settings> {
    let records: Vec<&RawValue> = match manifest.get("server_settings") {
        Some(records) => serde_json::from_str(records.get()).ok()?,
        None => Vec::new(),
    };
    let put_back = manifest.get("settings_put_back").is_some_and(|value| value.get() == "true");
    Some(if records.is_empty() || put_back { Settings::NotChanged } else { Settings::Changed })
}

/// Returns the number of complete blocks that count for the result.
fn measured_blocks(folder: &Path) -> Option<usize> {
    let (block, slice) = (types_of("block"), types_of("slice"));
    let mut count = 0;
    for entry in entries(folder)? {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b"b") && name.as_encoded_bytes().ends_with(b".json") {
            let path = entry.path();
            let text = is_file(&path)?.then(|| fs::read(path).ok())??;
            let record: Object<'_> = serde_json::from_slice(&text).ok()?;
            let slices: Vec<Object<'_>> = serde_json::from_str(record.get("slices")?.get()).ok()?;
            if !is_whole(&record, &block) || !slices.iter().all(|one| is_whole(one, &slice)) {
                return None;
            }
            count += usize::from(record["kind"].get() == "\"measure\"");
        }
    }
    Some(count)
}

/// Returns true if the record has all required keys, no unknown ones, and values of the right types.
fn is_whole(record: &Object<'_>, types: &Types) -> bool {
    let fits = |(key, value): (&String, &&RawValue)| {
        types.get(key.as_str()).is_some_and(|(kind, _)| kind.is_empty() || *kind == kind_of(value.get()))
    };
    types.iter().all(|(key, (_, required))| !required || record.contains_key(*key)) && record.iter().all(fits)
}

fn types_of(record: &str) -> Types {
    let rows = KEYS.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let own = rows.filter_map(|row| match row.as_slice() {
        [name, key, types, required] if *name == record => Some((*key, (*types, *required == "required"))),
        _ => None,
    });
    own.collect()
}

/// Returns the Python type of a JSON value.
fn kind_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "dict",
        Some(b'[') => "list",
        Some(b'"') => "str",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "NoneType",
        _ if json.contains(['.', 'e', 'E']) => "float",
        _ => "int",
    }
}

/// Returns the entries of a folder, or none if there is no such folder.
fn entries(folder: &Path) -> Option<Vec<DirEntry>> {
    match fs::read_dir(folder).and_then(Iterator::collect::<io::Result<_>>) {
        Err(error) if error.kind() == ErrorKind::NotFound => Some(Vec::new()),
        found => found.ok(),
    }
}

/// Returns true if this is a regular file, and false if it is something else or nothing.
fn is_file(path: &Path) -> Option<bool> {
    match fs::metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Some(false),
        found => found.ok().map(|found| found.is_file()),
    }
}
