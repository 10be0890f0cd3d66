//! Profile of an import: its rows are summed in the same way as a trace's.

use std::collections::HashMap;
use std::path::Path;

use dyno_evidence::EvidenceError;
use serde_json::{Value as Json, json};

use super::super::events::{KINDS, class_number, class_of};
use super::super::rows::{CallRow, Context, Figures, NO_STATEMENT, Place};
use super::super::writer::parts_of;
use super::run_tables::{accounts, each, files, late_owners, unread};
use super::{Item, NONE, Profile, Request, Summing, What, profile_json};

/// Names for the numbers in one file of the run.
struct Names {
    sessions: HashMap<u32, u32>,
    contexts: HashMap<u32, u32>,
    events: HashMap<String, u32>,
    kinds: HashMap<String, u16>,
    statements: HashMap<String, u32>,
}

/// Kind and depth of a file's calls, by running number, for waits that need the kind and depth of their owner.
type Owners = Vec<(u16, u8)>;

struct Run<'a> {
    dir: &'a Path,
    request: &'a Request,
    /// Texts by key, if statements are requested.
    texts: HashMap<String, String>,
    /// Owners of waits that were linked late.
    late: HashMap<i64, i64>,
}

impl Run<'_> {
    fn statement(&self, names: &mut Names, summing: &mut Summing, key: Option<&String>) -> u32 {
        let Some(key) = key.filter(|_| self.request.needs_statements()) else {
            return NO_STATEMENT;
        };
        if let Some(number) = names.statements.get(key) {
            return *number;
        }
        let number = names.statements.len() as u32;
        names.statements.insert(key.clone(), number);
        summing.learn_statement(number, key, self.texts.get(key).map(String::as_bytes));
        number
    }

    fn names(&self, file: u32, summing: &mut Summing) -> Result<Names, EvidenceError> {
        let mut names = Names {
            sessions: HashMap::new(),
            contexts: HashMap::new(),
            events: HashMap::new(),
            kinds: (0..).zip(KINDS).map(|(number, kind)| (kind.to_owned(), number)).collect(),
            statements: HashMap::new(),
        };
        let dictionary = summing.dictionary();
        dictionary.sessions.clear();
        let columns = ["file", "session", "name", "process"];
        each(&self.dir.join("sessions.parquet"), &columns, |rows| {
            let (files, numbers) = (rows.u32s("file")?, rows.u32s("session")?);
            let (known, processes) = (rows.texts("name")?, rows.texts("process")?);
            for at in (0..rows.len()).filter(|at| files[*at] == file) {
                names.sessions.insert(numbers[at], dictionary.sessions.len() as u32);
                let name = known[at].clone().filter(|name| !name.is_empty());
                dictionary.sessions.push(name.or(processes[at].clone()).unwrap_or_default());
            }
            Ok(())
        })?;
        let columns = ["file", "context", "module", "action", "client_id", "service", "container"];
        each(&self.dir.join("contexts.parquet"), &columns, |rows| {
            let (files, numbers) = (rows.u32s("file")?, rows.u32s("context")?);
            let (module, action) = (rows.texts("module")?, rows.texts("action")?);
            let (client, service) = (rows.texts("client_id")?, rows.texts("service")?);
            let container = rows.texts("container")?;
            for at in (0..rows.len()).filter(|at| files[*at] == file) {
                names.contexts.insert(numbers[at], dictionary.contexts.len() as u32);
                let text = |column: &[Option<String>]| column[at].clone().unwrap_or_default();
                dictionary.contexts.push(Context {
                    module: text(&module),
                    action: text(&action),
                    client_id: text(&client),
                    service: text(&service),
                    container: text(&container),
                    ..Context::default()
                });
            }
            Ok(())
        })?;
        Ok(names)
    }

    fn calls(&self, file: u32, names: &mut Names, summing: &mut Summing) -> Result<Owners, EvidenceError> {
        let mut owners = Owners::new();
        let columns = [
            "kind",
            "statement",
            "session",
            "context",
            "depth",
            "misses",
            "started_ns",
            "elapsed_ns",
            "cpu_ns",
            "rows",
            "self_elapsed_ns",
            "self_cpu_ns",
            "self_wait_ns",
            "self_physical_reads",
            "self_consistent_reads",
            "self_current_reads",
            "file",
        ];
        for path in parts_of(self.dir, "calls", file)? {
            each(&path, &columns, |rows| {
                let ((kinds, kind_words), (statements, keys)) = (rows.words("kind")?, rows.words("statement")?);
                let (sessions, contexts) = (rows.u32s("session")?, rows.u32s("context")?);
                let (depth, misses) = (rows.u8s("depth")?, rows.u8s("misses")?);
                let mut numbers = Vec::new();
                for name in &columns[6..16] {
                    numbers.push(rows.i64s(name)?);
                }
                for word in &kind_words {
                    if !names.kinds.contains_key(word) {
                        names.kinds.insert(word.clone(), names.kinds.len() as u16);
                        summing.dictionary().lob_calls.push(word.clone());
                    }
                }
                let files = rows.u32s("file")?;
                for at in (0..rows.len()).filter(|at| files[*at] == file) {
                    let [started_ns, elapsed_ns, cpu_ns, count, own @ ..]: [i64; 10] =
                        std::array::from_fn(|n| numbers[n][at]);
                    let kind = kind_words.get(kinds[at] as usize);
                    let key = keys.get(statements[at] as usize);
                    let row = CallRow {
                        statement: self.statement(names, summing, key),
                        kind: kind.and_then(|kind| names.kinds.get(kind)).copied().unwrap_or(0),
                        session: names.sessions.get(&sessions[at]).copied().unwrap_or(0),
                        context: names.contexts.get(&contexts[at]).copied().unwrap_or(0),
                        depth: depth[at],
                        misses: misses[at],
                        started_ns,
                        elapsed_ns,
                        cpu_ns,
                        rows: count,
                        own: Figures {
                            elapsed_ns: own[0],
                            cpu_ns: own[1],
                            physical: own[3],
                            consistent: own[4],
                            current: own[5],
                        },
                        own_wait_ns: own[2],
                        ..blank()
                    };
                    summing.add_call(&row);
                    if self.request.needs_owners() {
                        owners.push((row.kind, row.depth));
                    }
                }
                Ok(())
            })?;
        }
        Ok(owners)
    }

    fn waits(&self, file: u32, names: &mut Names, owners: &Owners, summing: &mut Summing) -> Result<(), EvidenceError> {
        let columns = [
            "event",
            "class",
            "statement",
            "session",
            "context",
            "think",
            "wait",
            "call",
            "started_ns",
            "elapsed_ns",
            "object_id",
            "p1",
            "p2",
            "p3",
            "file",
        ];
        for path in parts_of(self.dir, "waits", file)? {
            each(&path, &columns, |rows| {
                let ((events, words), (statements, keys)) = (rows.words("event")?, rows.words("statement")?);
                let (classes, class_words) = rows.words("class")?;
                let (sessions, contexts) = (rows.u32s("session")?, rows.u32s("context")?);
                let (think, mut numbers) = (rows.bools("think")?, Vec::new());
                for name in &columns[6..14] {
                    numbers.push(rows.i64s(name)?);
                }
                for word in &words {
                    let next = names.events.len() as u32;
                    names.events.entry(word.clone()).or_insert_with(|| {
                        summing.dictionary().events.push((word.clone(), class_of(word)));
                        next
                    });
                }
                learn_classes(names, summing, (&events, &words), (&classes, &class_words), &think);
                let files = rows.u32s("file")?;
                for at in (0..rows.len()).filter(|at| files[*at] == file) {
                    let [wait, call, started_ns, elapsed_ns, object, parameters @ ..]: [i64; 8] =
                        std::array::from_fn(|n| numbers[n][at]);
                    let owner = if call == NONE { self.late.get(&wait).copied() } else { Some(call) };
                    let running = owner.map(|owner| (owner & ((1 << 40) - 1)) as usize);
                    let (kind, depth) =
                        running.and_then(|number| owners.get(number)).copied().unwrap_or((u16::MAX, u8::MAX));
                    let event = words.get(events[at] as usize).and_then(|e| names.events.get(e));
                    let key = keys.get(statements[at] as usize);
                    let item = Item {
                        what: match event {
                            _ if think[at] => What::Think,
                            event => What::Wait(event.copied().unwrap_or(0)),
                        },
                        duration_ns: elapsed_ns,
                        elapsed_ns,
                        started_ns,
                        kind,
                        depth,
                        statement: self.statement(names, summing, key),
                        context: names.contexts.get(&contexts[at]).copied().unwrap_or(0),
                        session: names.sessions.get(&sessions[at]).copied().unwrap_or(0),
                        object,
                        parameters,
                        rows: NONE,
                    };
                    summing.add_wait(&item);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Reads the class of each event from the run, whatever its engine.
fn learn_classes(
    names: &Names,
    summing: &mut Summing,
    (events, words): (&[u32], &[String]),
    (classes, class_words): (&[u32], &[String]),
    think: &[bool],
) {
    let mut known = vec![false; words.len()];
    for at in 0..events.len() {
        let event = events[at] as usize;
        if think[at] || known.get(event).copied().unwrap_or(true) {
            continue;
        }
        known[event] = true;
        let class = class_words.get(classes[at] as usize).and_then(|class| class_number(class));
        if let (Some(class), Some(number)) = (class, names.events.get(&words[event])) {
            summing.dictionary().events[*number as usize].1 = class;
        }
    }
}

fn blank() -> CallRow {
    CallRow {
        number: 0,
        place: Place::default(),
        session: 0,
        context: 0,
        statement: NO_STATEMENT,
        kind: 0,
        lob_type: 0,
        depth: 0,
        misses: u8::MAX,
        goal: u8::MAX,
        close_type: u8::MAX,
        cursor: 0,
        tim: NONE,
        early: false,
        started_ns: 0,
        elapsed_ns: 0,
        cpu_ns: NONE,
        rows: NONE,
        physical: NONE,
        consistent: NONE,
        current: NONE,
        own: Figures::default(),
        own_wait_ns: 0,
        plan_hash: NONE,
        lob_bytes: NONE,
        user_id: NONE,
    }
}

/// Returns the profile of an import as JSON, the same as that of its traces.
///
/// # Errors
/// A table of the import cannot be read.
pub fn profile_run(run: &Path, request: &Request) -> Result<String, EvidenceError> {
    let files = files(run)?;
    let needs = |needed: bool| if needed { files.as_slice() } else { &[] };
    let mut of =
        Run { dir: run, request, texts: HashMap::new(), late: late_owners(run, needs(request.needs_owners()))? };
    if request.needs_statements() {
        of.texts = super::super::writer::texts(run)?;
    }
    let mut profile = Profile::default();
    let accounts = accounts(run)?;
    for (file, path, ..) in &files {
        let mut summing = Summing::new(request, path);
        let mut names = of.names(*file, &mut summing)?;
        let owners = of.calls(*file, &mut names, &mut summing)?;
        of.waits(*file, &mut names, &owners, &mut summing)?;
        profile.take(summing);
        for (_, name, account, from, to) in accounts.iter().filter(|found| found.0 == *file) {
            profile.session(account, name, path, request);
            if *from != NONE {
                profile.span(*from, *to);
            }
        }
    }
    let mut told = profile_json(&profile, request);
    told.insert("files".to_owned(), json!(files.len()));
    told.insert("bytes".to_owned(), json!(files.iter().map(|file| file.2).sum::<i64>()));
    told.insert("lines".to_owned(), json!(files.iter().map(|file| file.3).sum::<i64>()));
    told.insert("unread".to_owned(), Json::Object(unread(run)?));
    told.insert("warnings".to_owned(), json!([]));
    told.insert("refused".to_owned(), json!([]));
    Ok(Json::Object(told).to_string())
}
