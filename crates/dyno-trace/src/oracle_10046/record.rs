//! Records of a trace as they are in the file: typed, not yet interpreted.
//!
//! A [`Batch`] holds a stretch of a file with all records that begin in it. Records point into the batch's bytes
//! ([`Text`]) and own nothing, so a batch can be made by any thread.
//!
//! Units are the file's own: microseconds (centiseconds in 8i); [`NONE`] if a field is missing.

/// Value of a numeric field that the line does not have.
pub const NONE: i64 = i64::MIN;

/// A piece of text: a range of the batch's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

/// A stretch of a trace and the records that begin in it.
#[derive(Debug, Default)]
pub struct Batch {
    /// File number among those read, in the order given.
    pub file: u32,
    /// Byte offset of `bytes[0]` in the (uncompressed) file.
    pub offset: u64,
    /// Number of the line at `bytes[0]`, from 1.
    pub line: u64,
    /// Number of lines in this batch.
    pub lines: u32,
    /// Text that the records point into.
    pub bytes: Vec<u8>,
    /// Records in the order of the file.
    pub records: Vec<Placed>,
    /// Unreadable stretches.
    pub unread: Vec<Unread>,
    /// Number of event names that the lexer has numbered in this batch; most names have a number.
    pub names: u32,
}

/// A record and its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// Byte offset in the batch.
    pub at: u32,
    /// Line in the batch, from 0.
    pub line: u32,
    /// The record.
    pub record: Record,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record {
    /// PARSE, EXEC, FETCH, UNMAP, SORT UNMAP, CLOSE, LOB calls, RPC EXEC.
    Call(Call),
    /// WAIT.
    Wait(Wait),
    /// PARSING IN CURSOR with the text of the statement.
    Cursor(Cursor),
    /// STAT: a line of an execution plan.
    Stat(Stat),
    /// The head of a BINDS section; its binds follow.
    Binds {
        /// Cursor number.
        cursor: u64,
    },
    /// One bind of the preceding BINDS section.
    Bind(Bind),
    /// ERROR.
    Error(Failure),
    /// PARSE ERROR with the text of the statement.
    ParseError(Cursor),
    /// XCTEND.
    Xct(Xct),
    /// A `***` line or APPNAME: a wall-clock stamp, a change of context, or a piece's boundary.
    Stamp(Stamp),
    /// A line of the header.
    Header(Text),
    /// A line that belongs to no known record, between records: foreign events, dumps.
    Other(Text),
}

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum CallKind {
    /// PARSE.
    Parse,
    /// EXEC.
    Exec,
    /// FETCH.
    Fetch,
    /// UNMAP.
    Unmap,
    /// SORT UNMAP.
    SortUnmap,
    /// CLOSE.
    Close,
    /// A LOB call; [`Call::name`] says which.
    Lob,
    /// RPC EXEC of Forms clients.
    Rpc,
}

/// A database call, which ended at `tim` and lasted `e`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Cursor number; 0 for calls without one.
    pub cursor: u64,
    /// CPU time as written in the file [µs, or 10 ms in 8i], including recursive children.
    pub c: i64,
    /// Elapsed time, including recursive children and waits, in the file's unit.
    pub e: i64,
    /// Blocks read physically.
    pub p: i64,
    /// Blocks read in consistent mode.
    pub cr: i64,
    /// Blocks read in current mode.
    pub cu: i64,
    /// Number of rows.
    pub r: i64,
    /// End on the trace's own clock.
    pub tim: i64,
    /// Plan hash value.
    pub plh: i64,
    /// Number of bytes of a LOB call.
    pub bytes: i64,
    /// Name of a LOB call, such as `LOBREAD`.
    pub name: Text,
    /// Type of a LOB call's LOB, such as `TEMPORARY LOB`.
    pub lob_type: Text,
    /// Kind of the call.
    pub kind: CallKind,
    /// Recursion depth; 0 for calls of the client.
    pub dep: u8,
    /// Library cache misses; 255 if missing.
    pub mis: u8,
    /// Optimizer goal; 255 if missing.
    pub og: u8,
    /// How CLOSE treated the cursor; 255 if missing.
    pub close_type: u8,
}

/// A wait, which ended at `tim` and lasted `ela`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Cursor number; 0 for none.
    pub cursor: u64,
    /// Event name.
    pub nam: Text,
    /// Elapsed time, in the file's unit.
    pub ela: i64,
    /// All parameters as written, from the value of `ela=` to ` obj#=` or ` tim=`, exclusive: `file#=10 block#=43953
    /// class#=1`. [`Batch::parameters`] parses them.
    pub parameters: Text,
    /// Object number; `NONE` if missing.
    pub obj: i64,
    /// End on the trace's own clock; `NONE` in 8i and 9i.
    pub tim: i64,
    /// Lexer's hash of the name's bytes: equal names have equal hashes.
    pub nam_hash: u32,
    /// Number of the name in the batch.
    pub nam_number: NameNumber,
}

/// Number of an event name, below [`Batch::names`]: within a batch, equal numbers mean equal names. A name without a
/// number has `u32::MAX`. The number is not part of the file's content, so all values compare as equal and print as
/// `_`.
#[derive(Clone, Copy)]
pub struct NameNumber(pub u32);

impl Default for NameNumber {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl std::fmt::Debug for NameNumber {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("_")
    }
}

impl PartialEq for NameNumber {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// PARSING IN CURSOR or PARSE ERROR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cursor {
    /// Cursor number.
    pub cursor: u64,
    /// Length of the text as stated in the line.
    pub len: i64,
    /// Recursion depth.
    pub dep: u8,
    /// Id of the parsing user.
    pub uid: i64,
    /// Id of the login user.
    pub lid: i64,
    /// Command code.
    pub oct: i64,
    /// Time on the trace's own clock.
    pub tim: i64,
    /// Hash value of the text; `NONE` in PARSE ERROR.
    pub hv: i64,
    /// Number of the error of PARSE ERROR.
    pub err: i64,
    /// Address of the statement in the server's memory.
    pub ad: Text,
    /// SQL identifier; empty before 11.1.
    pub sqlid: Text,
    /// Text of the statement.
    pub sql: Text,
}

/// A line of an execution plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stat {
    /// Cursor number.
    pub cursor: u64,
    /// Line number in the plan.
    pub id: i64,
    /// Number of rows.
    pub cnt: i64,
    /// Number of the parent line; 0 at the root.
    pub pid: i64,
    /// Position of the line among its siblings.
    pub pos: i64,
    /// Object number.
    pub obj: i64,
    /// Operation with its figures in brackets, as written between the quotes.
    pub op: Text,
}

/// A bind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bind {
    /// Bind number.
    pub number: i64,
    /// Data type code.
    pub dty: i64,
    /// Actual length; 0 is NULL.
    pub avl: i64,
    /// All lines of the bind as written, without the value.
    pub head: Text,
    /// Value as written after `value=`, with its continuation lines; empty if missing.
    pub value: Text,
    /// True if there was a `value=`.
    pub has_value: bool,
}

/// ERROR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// Cursor number.
    pub cursor: u64,
    /// Error number.
    pub err: i64,
    /// Time on the trace's own clock.
    pub tim: i64,
}

/// XCTEND.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Xct {
    /// True if the transaction was rolled back.
    pub rollback: bool,
    /// True if nothing had been changed.
    pub read_only: bool,
    /// Time on the trace's own clock; `NONE` in 10g.
    pub tim: i64,
}

/// Kind of a `***` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StampKind {
    /// A plain wall-clock stamp, with or without the container.
    Clock,
    /// SESSION ID.
    Session,
    /// CLIENT ID.
    Client,
    /// SERVICE NAME.
    Service,
    /// MODULE NAME.
    Module,
    /// ACTION NAME.
    Action,
    /// CLIENT DRIVER.
    Driver,
    /// CONTAINER ID.
    Container,
    /// CLIENT IP.
    ClientIp,
    /// CONNECTION ID.
    Connection,
    /// `[ Unix process pid: n ]`: a block of trcsess begins.
    Process,
    /// TRACE CONTINUED FROM FILE.
    ContinuedFrom,
    /// TRACE CONTINUES IN FILE.
    ContinuesIn,
    /// DUMP FILE SIZE IS LIMITED: the trace was cut here.
    SizeLimit,
    /// APPNAME: module and action up to 9i; `value` is the whole line.
    Appname,
    /// Another key; `value` is the whole line.
    Unknown,
}

/// A `***` line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stamp {
    /// Kind of the stamp.
    pub kind: StampKind,
    /// Value in brackets, name of the file, or process id.
    pub value: Text,
    /// Wall clock [ns since the UNIX epoch], read as UTC if `zone` is `NONE`; `NONE` if the line has no time.
    pub wall_ns: i64,
    /// Offset from UTC [min]; `NONE` if the stamp has no zone (before 12.2).
    pub zone: i64,
    /// Number of digits of the second's fraction: 3 or 6.
    pub digits: u8,
    /// A plain stamp's container name, such as `ORCLPDB1(3)`; empty without one.
    pub container: Text,
}

/// Reason why a stretch could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// A field of a known record is missing or not a number; the rest was kept if usable.
    Torn,
    /// Two records on one line; both were read as far as they are intact.
    Glued,
    /// The file ends inside a record.
    Truncated,
    /// A statement's text has no end.
    NoEndOfStatement,
    /// A number is out of range.
    TooLarge,
    /// A line is longer than the cap.
    TooLong,
    /// NUL bytes, as log rotation leaves them.
    Zeros,
}

/// A stretch that could not be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unread {
    /// Reason.
    pub reason: Reason,
    /// Byte offset in the batch.
    pub at: u32,
    /// Line in the batch, from 0.
    pub line: u32,
    /// Text of the stretch, at most a line.
    pub text: Text,
}

impl Batch {
    /// Returns the bytes of a piece of text.
    pub fn bytes_of(&self, text: Text) -> &[u8] {
        let start = text.start as usize;
        self.bytes.get(start..start + text.len as usize).unwrap_or_default()
    }

    /// Returns the bytes from the start of a piece of text to the end of the batch, and the length of the piece.
    pub fn bytes_from(&self, text: Text) -> (&[u8], usize) {
        (self.bytes.get(text.start as usize..).unwrap_or_default(), text.len as usize)
    }
}

impl Record {
    /// Returns the trace's own clock at the record's end; `NONE` if the record has none. The head of a statement does
    /// not mark an end.
    pub fn tim(&self) -> i64 {
        match self {
            Record::Call(call) => call.tim,
            Record::Wait(wait) => wait.tim,
            Record::Error(failure) => failure.tim,
            Record::Xct(xct) => xct.tim,
            _ => NONE,
        }
    }
}
