//! Tables of a trace and their columns, which are the same for imported trace files and for recordings of a live
//! server. The name of a column ends with its unit.

use crate::table::{Column, Kind};

use Kind::{Bool, I64, Repeated, Text, U8, U32, U64, Words};

const fn new(name: &'static str, kind: Kind) -> Column {
    Column::new(name, kind)
}

const fn opt(name: &'static str, kind: Kind) -> Column {
    Column::optional(name, kind)
}

/// One row per call, in `calls/`.
pub const CALLS: [Column; 35] = [
    new("arm", Words),
    new("block", U32),
    new("session", U32),
    new("call", I64),
    new("kind", Words),
    opt("statement", Words),
    new("started_ns", I64),
    new("elapsed_ns", I64),
    opt("cpu_ns", I64),
    opt("rows", I64),
    opt("physical_reads", I64),
    opt("consistent_reads", I64),
    opt("current_reads", I64),
    opt("misses", U8),
    new("depth", U8),
    opt("parent", I64),
    new("self_elapsed_ns", I64),
    new("self_cpu_ns", I64),
    new("self_wait_ns", I64),
    new("self_physical_reads", I64),
    new("self_consistent_reads", I64),
    new("self_current_reads", I64),
    new("orphan", Bool),
    opt("plan_hash", I64),
    opt("goal", U8),
    opt("close_type", U8),
    opt("lob_bytes", I64),
    opt("lob_type", Words),
    new("cursor", U64),
    opt("user_id", I64),
    new("context", U32),
    new("file", U32),
    new("line", I64),
    new("byte_offset", I64),
    opt("tim", I64),
];

/// One row per stretch of looks at the server's memory, in `looks/`; only in recordings made by such looks.
pub const LOOKS: [Column; 8] = [
    new("started_ns", I64),
    new("elapsed_ns", I64),
    new("period_ns", I64),
    new("looks", I64),
    new("longest_ns", I64),
    new("gaps", I64),
    new("gap_ns", I64),
    new("cpu_ns", I64),
];

/// One row per wait, in `waits/`.
pub const WAITS: [Column; 24] = [
    new("arm", Words),
    new("block", U32),
    new("session", U32),
    new("wait", I64),
    new("event", Words),
    new("class", Words),
    new("started_ns", I64),
    new("elapsed_ns", I64),
    opt("p1", I64),
    opt("p2", I64),
    opt("p3", I64),
    new("parameters", Words),
    opt("object_id", I64),
    opt("statement", Words),
    opt("call", I64),
    opt("depth", U8),
    new("think", Bool),
    new("cursor", U64),
    new("context", U32),
    new("file", U32),
    new("line", I64),
    new("byte_offset", I64),
    opt("tim", I64),
    new("fidelity", Words),
];

/// One row per parent or owner of a row that became known only after that row had been written, in `links/`.
pub const LINKS: [Column; 3] = [new("row_kind", Words), new("id", I64), new("parent", I64)];

/// One row per distinct statement.
pub const STATEMENTS: [Column; 13] = [
    new("statement", Text),
    opt("sqlid", Text),
    opt("hash_value", I64),
    opt("text", Text),
    opt("length", I64),
    opt("command", I64),
    opt("user_id", I64),
    opt("login_id", I64),
    opt("depth", U8),
    new("first_file", U32),
    new("first_line", I64),
    opt("force_match", Text),
    opt("force_key", Text),
];

/// One row per PARSING IN CURSOR and PARSE ERROR.
pub const CURSORS: [Column; 16] = [
    new("file", U32),
    new("line", I64),
    new("byte_offset", I64),
    new("session", U32),
    new("cursor", U64),
    opt("statement", Words),
    opt("length", I64),
    new("depth", U8),
    opt("user_id", I64),
    opt("login_id", I64),
    opt("command", I64),
    opt("hash_value", I64),
    opt("address", Repeated),
    opt("sqlid", Repeated),
    opt("tim", I64),
    opt("error", I64),
];

/// One row per STAT line.
pub const PLANS: [Column; 25] = [
    new("file", U32),
    new("line", I64),
    new("byte_offset", I64),
    new("session", U32),
    new("cursor", U64),
    opt("statement", Words),
    opt("plan_hash", I64),
    opt("id", I64),
    opt("rows", I64),
    opt("parent", I64),
    opt("position", I64),
    opt("object_id", I64),
    new("operation", Repeated),
    opt("cr", I64),
    opt("pr", I64),
    opt("pw", I64),
    opt("starts", I64),
    opt("time_us", I64),
    opt("cost", I64),
    opt("size", I64),
    opt("card", I64),
    opt("dr", I64),
    opt("dw", I64),
    opt("partition", Repeated),
    new("text", Repeated),
];

/// One row per ERROR.
pub const ERRORS: [Column; 10] = [
    new("file", U32),
    new("line", I64),
    new("byte_offset", I64),
    new("session", U32),
    new("cursor", U64),
    opt("statement", Words),
    opt("error", I64),
    opt("tim", I64),
    opt("started_ns", I64),
    opt("call", I64),
];

/// One row per XCTEND.
pub const TRANSACTIONS: [Column; 8] = [
    new("file", U32),
    new("line", I64),
    new("byte_offset", I64),
    new("session", U32),
    new("rollback", Bool),
    new("read_only", Bool),
    opt("tim", I64),
    opt("started_ns", I64),
];

/// One row per distinct set of attributes.
pub const CONTEXTS: [Column; 11] = [
    new("file", U32),
    new("context", U32),
    new("session_id", Text),
    new("client_id", Text),
    new("service", Text),
    new("module", Text),
    new("action", Text),
    new("driver", Text),
    new("container", Text),
    new("client_ip", Text),
    new("connection", Text),
];

/// One row per session of a file.
pub const SESSIONS: [Column; 20] = [
    new("session", U32),
    new("file", U32),
    new("name", Text),
    new("process", Text),
    new("host", Text),
    new("instance", Text),
    opt("first_tim", I64),
    opt("last_tim", I64),
    opt("started_ns", I64),
    new("elapsed_ns", I64),
    new("calls", I64),
    new("waits", I64),
    new("call_ns", I64),
    new("between_ns", I64),
    new("unexplained_ns", I64),
    new("cpu_ns", I64),
    new("wait_inside_ns", I64),
    new("unaccounted_ns", I64),
    new("orphans", I64),
    new("segments", I64),
];

/// One row per `***` line.
pub const STAMPS: [Column; 12] = [
    new("file", U32),
    new("line", I64),
    new("byte_offset", I64),
    new("session", U32),
    new("kind", Words),
    new("value", Repeated),
    opt("wall_ns", I64),
    opt("zone_min", I64),
    new("digits", U8),
    new("container", Repeated),
    opt("tim_next", I64),
    opt("residual_ns", I64),
];

/// One row per BINDS section (with `number` missing), and one row per bind variable in it; only if bind values are
/// kept.
pub const BINDS: [Column; 9] = [
    new("file", U32),
    new("line", I64),
    new("byte_offset", I64),
    new("cursor", U64),
    opt("number", I64),
    opt("data_type", I64),
    opt("length", I64),
    opt("value", Text),
    new("head", Text),
];

/// One row per stretch that could not be read.
pub const UNREAD: [Column; 6] = [
    new("file", U32),
    new("line", I64),
    new("byte_offset", I64),
    new("length", I64),
    new("reason", Words),
    new("sample", Text),
];

/// One row per file.
pub const FILES: [Column; 9] = [
    new("file", U32),
    new("path", Text),
    new("bytes", I64),
    new("lines", I64),
    new("records", I64),
    new("version", Text),
    new("level", U8),
    new("unit_ns", I64),
    new("header", Text),
];
