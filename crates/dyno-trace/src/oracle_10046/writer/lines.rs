//! Conversion of rows of the tables to lines of a trace.

use std::collections::HashMap;
use std::fmt::Write;

use dyno_evidence::EvidenceError;
use dyno_evidence::table::Rows;

use super::super::clock::cpu_unit_ns;
use super::super::record::NONE;
use super::moment::moment;

/// Details of the format in which this file's version writes its lines.
#[derive(Clone, Debug)]
pub struct Style {
    /// Unit of the file's times [ns].
    pub unit_ns: i64,
    /// True if a blank follows `ela=`: up to 23.25.
    pub blank_ela: bool,
}

/// Writes `name=value` for each field that is present, separated by commas.
fn listed(text: &mut String, fields: &[(&str, i64)]) {
    let mut comma = text.ends_with(':') || text.ends_with(' ');
    for (name, value) in fields.iter().filter(|(_, value)| *value != NONE) {
        let _ = write!(text, "{}{name}={value}", if comma { "" } else { "," });
        comma = false;
    }
}

/// Writes ` name=value` for each field that is present.
fn spaced(text: &mut String, fields: &[(&str, i64)]) {
    for (name, value) in fields.iter().filter(|(_, value)| *value != NONE) {
        let _ = write!(text, " {name}={value}");
    }
}

fn tiny(value: u8) -> i64 {
    if value == u8::MAX { NONE } else { i64::from(value) }
}

fn units(ns: i64, unit_ns: i64) -> i64 {
    if ns == NONE { NONE } else { ns / unit_ns.max(1) }
}

/// Columns that [`calls`] needs.
pub const CALLS: [&str; 18] = [
    "kind",
    "cursor",
    "cpu_ns",
    "elapsed_ns",
    "physical_reads",
    "consistent_reads",
    "current_reads",
    "misses",
    "rows",
    "depth",
    "goal",
    "plan_hash",
    "close_type",
    "tim",
    "lob_bytes",
    "lob_type",
    "call",
    "session",
];

/// Returns the lines of PARSE, EXEC, FETCH, CLOSE, LOB calls and their like for a batch of calls.
///
/// # Errors
/// A column of the batch is missing.
pub fn calls(rows: &Rows, style: &Style) -> Result<Vec<String>, EvidenceError> {
    let ((kinds, words), (types, type_words)) = (rows.words("kind")?, rows.words("lob_type")?);
    let cursors = rows.u64s("cursor")?;
    let (cpu, elapsed) = (rows.i64s("cpu_ns")?, rows.i64s("elapsed_ns")?);
    let names = ["physical_reads", "consistent_reads", "current_reads", "rows", "plan_hash", "tim", "lob_bytes"];
    let mut numbers = Vec::new();
    for name in names {
        numbers.push(rows.i64s(name)?);
    }
    let (misses, depth) = (rows.u8s("misses")?, rows.u8s("depth")?);
    let (goal, close_type) = (rows.u8s("goal")?, rows.u8s("close_type")?);
    let line = |at: usize| {
        let kind = words.get(kinds[at] as usize).map_or("", |word| word).to_uppercase();
        let [p, cr, cu, r, plh, tim, bytes] = std::array::from_fn(|n| numbers[n][at]);
        let c = units(cpu[at], cpu_unit_ns(style.unit_ns));
        let e = units(elapsed[at], style.unit_ns);
        let mut text = if kind.starts_with("LOB") {
            let lob = type_words.get(types[at] as usize);
            let mut text = format!("{kind}: ");
            if let Some(lob) = lob {
                let _ = write!(text, "type={lob}");
            }
            listed(&mut text, &[("bytes", bytes)]);
            text
        } else if kind == "RPC EXEC" {
            format!("{kind}:")
        } else {
            format!("{kind} #{}:", cursors[at])
        };
        let dep = if kind.starts_with("LOB") || kind == "RPC EXEC" { NONE } else { tiny(depth[at]) };
        let fields = [
            ("c", c),
            ("e", e),
            ("p", p),
            ("cr", cr),
            ("cu", cu),
            ("mis", tiny(misses[at])),
            ("r", r),
            ("dep", dep),
            ("type", tiny(close_type[at])),
            ("og", tiny(goal[at])),
            ("plh", plh),
            ("tim", tim),
        ];
        listed(&mut text, &fields);
        text + "\n"
    };
    Ok((0..rows.len()).map(line).collect())
}

/// Columns that [`waits`] needs.
pub const WAITS: [&str; 9] = ["cursor", "event", "elapsed_ns", "parameters", "p1", "p2", "p3", "object_id", "tim"];

/// Returns the WAIT lines for a batch of waits.
///
/// # Errors
/// A column of the batch is missing.
pub fn waits(rows: &Rows, style: &Style) -> Result<Vec<String>, EvidenceError> {
    let ((events, event_words), (names, name_words)) = (rows.words("event")?, rows.words("parameters")?);
    let (cursors, elapsed) = (rows.u64s("cursor")?, rows.i64s("elapsed_ns")?);
    let values = [rows.i64s("p1")?, rows.i64s("p2")?, rows.i64s("p3")?];
    let (objects, tims) = (rows.i64s("object_id")?, rows.i64s("tim")?);
    let blank = if style.blank_ela { " " } else { "" };
    let line = |at: usize| {
        let event = event_words.get(events[at] as usize).map_or("", |word| word);
        let ela = units(elapsed[at], style.unit_ns);
        let mut text = format!("WAIT #{}: nam='{event}' ela={blank}{ela}", cursors[at]);
        let names = name_words.get(names[at] as usize).map_or("", |word| word);
        for (name, value) in names.split(',').zip(&values) {
            if value[at] != NONE {
                let _ = write!(text, " {name}={}", value[at]);
            }
        }
        spaced(&mut text, &[("obj#", objects[at]), ("tim", tims[at])]);
        text + "\n"
    };
    Ok((0..rows.len()).map(line).collect())
}

/// Columns that [`cursors`] needs.
pub const CURSORS: [&str; 12] = [
    "cursor",
    "statement",
    "length",
    "depth",
    "user_id",
    "login_id",
    "command",
    "hash_value",
    "address",
    "sqlid",
    "tim",
    "error",
];

/// Returns the PARSING IN CURSOR and PARSE ERROR lines, with their texts, for a batch of cursors.
///
/// # Errors
/// A column of the batch is missing.
pub fn cursors(rows: &Rows, texts: &HashMap<String, String>) -> Result<Vec<String>, EvidenceError> {
    let ((statements, keys), numbers) = (rows.words("statement")?, rows.u64s("cursor")?);
    let (len, depth) = (rows.i64s("length")?, rows.u8s("depth")?);
    let (uid, lid, oct) = (rows.i64s("user_id")?, rows.i64s("login_id")?, rows.i64s("command")?);
    let (hv, tim, err) = (rows.i64s("hash_value")?, rows.i64s("tim")?, rows.i64s("error")?);
    let (ad, sqlid) = (rows.texts("address")?, rows.texts("sqlid")?);
    let line = |at: usize| {
        let key = keys.get(statements[at] as usize);
        let sql = key.and_then(|key| texts.get(key)).map_or("", |sql| sql);
        let head = [
            ("len", len[at]),
            ("dep", tiny(depth[at])),
            ("uid", uid[at]),
            ("oct", oct[at]),
            ("lid", lid[at]),
            ("tim", tim[at]),
        ];
        if err[at] != NONE {
            let mut text = format!("PARSE ERROR #{}:", numbers[at]);
            let mut fields = String::new();
            spaced(&mut fields, &head);
            spaced(&mut fields, &[("err", err[at])]);
            text += fields.trim_start();
            return format!("{text}\n{sql}\n");
        }
        let mut text = format!("=====================\nPARSING IN CURSOR #{}", numbers[at]);
        spaced(&mut text, &head);
        spaced(&mut text, &[("hv", hv[at])]);
        for (name, value) in [("ad", &ad[at]), ("sqlid", &sqlid[at])] {
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                let _ = write!(text, " {name}='{value}'");
            }
        }
        format!("{text}\n{sql}\nEND OF STMT\n")
    };
    Ok((0..rows.len()).map(line).collect())
}

/// Columns that [`plans`] needs.
pub const PLANS: [&str; 7] = ["cursor", "id", "rows", "parent", "position", "object_id", "text"];

/// Returns the STAT lines for a batch of plan rows.
///
/// # Errors
/// A column of the batch is missing.
pub fn plans(rows: &Rows) -> Result<Vec<String>, EvidenceError> {
    let (cursors, texts) = (rows.u64s("cursor")?, rows.texts("text")?);
    let (id, cnt, pid) = (rows.i64s("id")?, rows.i64s("rows")?, rows.i64s("parent")?);
    let (pos, obj) = (rows.i64s("position")?, rows.i64s("object_id")?);
    let line = |at: usize| {
        let mut text = format!("STAT #{}", cursors[at]);
        let fields = [("id", id[at]), ("cnt", cnt[at]), ("pid", pid[at]), ("pos", pos[at]), ("obj", obj[at])];
        spaced(&mut text, &fields);
        format!("{text} op='{}'\n", texts[at].as_deref().unwrap_or_default())
    };
    Ok((0..rows.len()).map(line).collect())
}

/// Columns that [`errors`] needs.
pub const ERRORS: [&str; 3] = ["cursor", "error", "tim"];

/// Returns the ERROR lines for a batch of errors.
///
/// # Errors
/// A column of the batch is missing.
pub fn errors(rows: &Rows) -> Result<Vec<String>, EvidenceError> {
    let (cursors, errors, tims) = (rows.u64s("cursor")?, rows.i64s("error")?, rows.i64s("tim")?);
    let line = |at: usize| {
        let mut text = format!("ERROR #{}:err={}", cursors[at], errors[at]);
        spaced(&mut text, &[("tim", tims[at])]);
        text + "\n"
    };
    Ok((0..rows.len()).map(line).collect())
}

/// Columns that [`transactions`] needs.
pub const TRANSACTIONS: [&str; 3] = ["rollback", "read_only", "tim"];

/// Returns the XCTEND lines for a batch of transaction ends.
///
/// # Errors
/// A column of the batch is missing.
pub fn transactions(rows: &Rows) -> Result<Vec<String>, EvidenceError> {
    let (rollback, read_only) = (rows.bools("rollback")?, rows.bools("read_only")?);
    let tims = rows.i64s("tim")?;
    let line = |at: usize| {
        let (back, only) = (u8::from(rollback[at]), u8::from(read_only[at]));
        let mut text = format!("XCTEND rlbk={back}, rd_only={only}");
        if tims[at] != NONE {
            let _ = write!(text, ", tim={}", tims[at]);
        }
        text + "\n"
    };
    Ok((0..rows.len()).map(line).collect())
}

/// Columns that [`binds`] needs.
pub const BINDS: [&str; 4] = ["cursor", "number", "value", "head"];

/// Returns the BINDS sections for a batch of binds.
///
/// # Errors
/// A column of the batch is missing.
pub fn binds(rows: &Rows) -> Result<Vec<String>, EvidenceError> {
    let (cursors, numbers) = (rows.u64s("cursor")?, rows.i64s("number")?);
    let (values, heads) = (rows.texts("value")?, rows.texts("head")?);
    let line = |at: usize| {
        let head = heads[at].as_deref().unwrap_or_default();
        match &values[at] {
            None if head.is_empty() && numbers[at] == NONE => format!("BINDS #{}:\n", cursors[at]),
            None => format!("{head}\n"),
            Some(value) if head.is_empty() => format!("  value={value}\n"),
            Some(value) => format!("{head}\n  value={value}\n"),
        }
    };
    Ok((0..rows.len()).map(line).collect())
}

/// Columns that [`stamps`] needs.
pub const STAMPS: [&str; 6] = ["kind", "value", "wall_ns", "zone_min", "digits", "container"];

/// Returns the `***` lines, APPNAME lines, and headers in the middle of a file for a batch of stamps.
///
/// # Errors
/// A column of the batch is missing.
pub fn stamps(rows: &Rows) -> Result<Vec<String>, EvidenceError> {
    let ((kinds, words), values) = (rows.words("kind")?, rows.texts("value")?);
    let (walls, zones, digits) = (rows.i64s("wall_ns")?, rows.i64s("zone_min")?, rows.u8s("digits")?);
    let containers = rows.texts("container")?;
    let line = |at: usize| {
        let kind = words.get(kinds[at] as usize).map_or("", |word| word);
        let value = values[at].as_deref().unwrap_or_default();
        let when = moment(walls[at], zones[at], digits[at]);
        let container = containers[at].as_deref().unwrap_or_default();
        let keyed = |key: &str| {
            let when = if when.is_empty() { String::new() } else { format!(" {when}") };
            format!("*** {key}:({value}){when}\n")
        };
        match kind {
            "clock" if container.is_empty() => format!("*** {when}\n"),
            "clock" => format!("*** {when} ({container})\n"),
            "session" => keyed("SESSION ID"),
            "client" => keyed("CLIENT ID"),
            "service" => keyed("SERVICE NAME"),
            "module" => keyed("MODULE NAME"),
            "action" => keyed("ACTION NAME"),
            "driver" => keyed("CLIENT DRIVER"),
            "container" => keyed("CONTAINER ID"),
            "client ip" => keyed("CLIENT IP"),
            "connection" => keyed("CONNECTION ID"),
            "process" => format!("*** [ Unix process pid: {value} ]\n"),
            "continued from" => format!("*** TRACE CONTINUED FROM FILE {value} ***\n"),
            "continues in" => format!("*** TRACE CONTINUES IN FILE {value} ***\n"),
            "size limit" => format!("*** DUMP FILE SIZE IS LIMITED TO {value} BYTES ***\n"),
            _ => format!("{value}\n"),
        }
    };
    Ok((0..rows.len()).map(line).collect())
}
