//! Report on a file: what was read, what could not be read, and whether its time adds up.

use serde_json::{Map, Value as Json, json};

use super::accounting::Account;
use super::clock::TICK_NS;
use super::evidence::narrow;
use super::reader::{CENTISECOND_NS, Reader};
use super::rows::Sink;
use super::session::Session;
use super::tally::{COUNTED, Tally, word_of};

/// Returns the account of one or several sessions as JSON; `closes` is true if the parts add up to the whole.
pub fn account_json(account: &Account) -> Json {
    let within = account.cpu_ns + account.wait_inside_ns + account.unaccounted_ns();
    let whole = account.calls_ns + account.between_ns() + account.unexplained_ns();
    json!({
        "elapsed_ns": narrow(account.elapsed_ns),
        "call_ns": narrow(account.calls_ns),
        "between_ns": narrow(account.between_ns()),
        "unexplained_ns": narrow(account.unexplained_ns()),
        "cpu_ns": narrow(account.cpu_ns),
        "wait_inside_ns": narrow(account.wait_inside_ns),
        "wait_ns": narrow(account.wait_ns),
        "unaccounted_ns": narrow(account.unaccounted_ns()),
        "all_depths_ns": narrow(account.all_depths_ns),
        "calls": account.calls,
        "waits": account.waits,
        "waits_inside": account.waits_inside,
        "orphans": account.orphans(),
        "negative_self": account.negative,
        "segments": account.segments,
        "closes": within == account.calls_ns && whole == account.elapsed_ns,
    })
}

/// Returns a session as JSON.
fn session_json(session: &Session, pid: &str) -> Json {
    let mut told = Map::new();
    let process = if session.process.is_empty() { pid } else { &session.process };
    told.insert("name".to_owned(), json!(session.name));
    told.insert("process".to_owned(), json!(process));
    told.insert("started_ns".to_owned(), json!(session.started_ns));
    if let Json::Object(account) = account_json(&session.account) {
        told.extend(account);
    }
    Json::Object(told)
}

/// Returns what could not be read as JSON.
pub fn unread_json(tally: &Tally) -> Json {
    let told = tally.missed.iter().map(|(reason, missed)| {
        json!({
            "reason": word_of(*reason),
            "count": missed.count,
            "first": {
                "line": missed.line,
                "byte_offset": missed.byte_offset,
                "sample": missed.sample,
            },
        })
    });
    Json::Array(told.collect())
}

/// Report on a file that was read.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// Report in the form of `check`, as the text of a JSON object: reports on thousands of files are kept at once, and
    /// a tree of values takes twenty times the memory.
    pub json: String,
    /// Account of all sessions of the file together.
    pub account: Account,
    /// Name and account of each session of the file.
    pub sessions: Vec<(String, Account)>,
    /// Wall clock of the file's first and last row [ns].
    pub span_ns: Option<(i64, i64)>,
    /// Counts of what was read.
    pub tally: Tally,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Returns the report on a file that was read to its end, with the entries of `more` added.
pub fn report<S: Sink>(reader: &Reader<S>, path: &str, compression: &str, more: &[(&str, Json)]) -> FileReport {
    let (tally, facts, account) = (&reader.tally, &reader.facts, reader.account());
    let records: Map<String, Json> = COUNTED
        .iter()
        .zip(tally.records)
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| ((*name).to_owned(), json!(count)))
        .collect();
    let used = || {
        let all = reader.sessions.iter();
        all.filter(|session| !session.is_fresh() || reader.sessions.len() == 1)
    };
    let clocks = || reader.sessions.iter().map(|session| session.clock);
    let mut json = json!({
        "path": path,
        "format": "oracle 10046",
        "compression": compression,
        "version": facts.version,
        "edition": facts.edition,
        "host": facts.host,
        "instance": facts.instance,
        "pid": facts.pid,
        "database": facts.database,
        "platform": facts.platform,
        "level": tally.level().to_string(),
        "unit_ns": reader.unit_ns(),
        "bytes": tally.bytes,
        "lines": tally.lines,
        "records": records,
        "sessions": used().map(|s| session_json(s, &facts.pid)).collect::<Vec<_>>(),
        "unread": unread_json(tally),
        "closes": account_json(&account),
        "clock": {
            "stamps": clocks().map(|clock| clock.anchors).sum::<u64>(),
            "residual_max_ns": clocks().map(|clock| clock.residual_max_ns).max().unwrap_or(0),
        },
        "orphans": account.orphans(),
        "pieces": {
            "cut": reader.pieces.cut,
            "continued": reader.pieces.continued,
            "continues": reader.pieces.continues,
        },
    });
    for (name, value) in more {
        json[*name] = value.clone();
    }
    let named = |session: &Session| {
        let process = if session.process.is_empty() { &facts.pid } else { &session.process };
        let name = if session.name.is_empty() { process } else { &session.name };
        (name.clone(), session.account)
    };
    FileReport {
        json: json.to_string(),
        account,
        sessions: used().map(named).collect(),
        span_ns: span(&reader.sessions),
        tally: tally.clone(),
        warnings: warnings(reader, path, &account),
    }
}

fn span(sessions: &[Session]) -> Option<(i64, i64)> {
    let spans = sessions.iter().filter_map(|session| {
        let (_, last) = session.tims?;
        let from = session.started_ns?;
        Some((from, session.clock.wall(last).max(from)))
    });
    spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Returns the warning about the unit of time if the stamps contradict microseconds and no header named a unit.
fn unit_words<S: Sink>(reader: &Reader<S>) -> Option<&'static str> {
    if reader.other_unit_ns().is_some() {
        return Some(
            "the stamps say that its times are not microseconds, and standard input cannot be read twice; \
             read the file itself, or say --tim-unit",
        );
    }
    match reader.unit_ns() {
        TICK_NS if !reader.is_unit_asked() => Some(
            "its clock ticks every 1.024 us, as its wall-clock stamps show; all times but CPU are converted \
             (--tim-unit 1us reads them as they stand)",
        ),
        CENTISECOND_NS if reader.facts.major() != Some(8) && !reader.is_unit_asked() => {
            Some("its times are centiseconds, as its wall-clock stamps show (--tim-unit says otherwise)")
        }
        _ => None,
    }
}

fn warnings<S: Sink>(reader: &Reader<S>, path: &str, account: &Account) -> Vec<String> {
    let mut told = Vec::new();
    let tally = &reader.tally;
    if tally.count("wait") + tally.torn_waits == 0 && account.elapsed_ns > 0 {
        let share = 100.0 * account.unexplained_ns() as f64 / account.elapsed_ns as f64;
        told.push(format!(
            "{path}: no WAIT lines (level {}): {share:.0} % of the time is between calls and \
             nothing says where it went; trace with waits (level 8)",
            tally.level()
        ));
    }
    if let Some(words) = unit_words(reader) {
        told.push(format!("{path}: {words}"));
    }
    if reader.pieces.cut {
        told.push(format!("{path}: the trace was cut at max_dump_file_size; what came later is lost"));
    }
    if reader.pieces.continued || reader.pieces.continues {
        told.push(format!("{path}: a piece of a longer trace; calls across its ends are incomplete"));
    }
    let missed: u64 = tally.missed.values().map(|missed| missed.count).sum();
    if missed > 0 {
        let noun = if missed == 1 { "stretch" } else { "stretches" };
        told.push(format!("{path}: {missed} {noun} could not be read: `trace check` shows where"));
    }
    told
}
