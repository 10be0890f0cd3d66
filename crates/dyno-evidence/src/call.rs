//! One recorded operation.

/// Marks a missing value of an optional column: NULL in Parquet.
pub const NONE: i64 = i64::MIN;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CallKind {
    /// One execution of a whole script, for which the user waits.
    Transaction,
    /// One SQL command.
    Exec,
    /// BEGIN, timed separately.
    Begin,
    /// COMMIT, timed separately.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// A pipeline, from its first send to its last result.
    Pipeline,
    /// A query of the current position in the write-ahead log.
    RedoPosition,
    /// An arrival in an open loop that was skipped because it was overdue; it is counted, not hidden.
    Skipped,
    /// A statement that only reads, where the engine distinguishes it from one that changes data.
    Fetch,
}

impl CallKind {
    /// All kinds in the order of their codes.
    pub const ALL: [Self; 9] = [
        Self::Transaction,
        Self::Exec,
        Self::Begin,
        Self::Commit,
        Self::Rollback,
        Self::Pipeline,
        Self::RedoPosition,
        Self::Skipped,
        Self::Fetch,
    ];

    /// Returns the word in the `kind` column.
    pub fn word(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Exec => "exec",
            Self::Begin => "begin",
            Self::Commit => "commit",
            Self::Rollback => "rollback",
            Self::Pipeline => "pipeline",
            Self::RedoPosition => "redo position",
            Self::Skipped => "skipped",
            Self::Fetch => "fetch",
        }
    }
}

/// One operation of one session. Optional columns hold [`NONE`] where there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Intended start in an open loop [ns since the UNIX epoch]; `NONE` in a closed loop.
    pub intended_ns: i64,
    /// Actual start [ns since the UNIX epoch].
    pub started_ns: i64,
    /// Service time: time from the actual start to the end [ns].
    pub elapsed_ns: i64,
    /// Number of rows returned or changed.
    pub rows: i64,
    /// Redo written since the session's last query of the log position [bytes].
    pub redo_bytes: i64,
    /// Redo not yet flushed when the commit began [bytes].
    pub unflushed_bytes: i64,
    /// Block number in the run.
    pub block: u32,
    /// Slice number in the block.
    pub slice: u32,
    /// Session number in the arm.
    pub session: u16,
    /// Arm number; the part stores its name.
    pub arm: u16,
    /// Statement number; the part stores its text.
    pub statement: u16,
    /// Kind of the operation.
    pub kind: CallKind,
    /// 0 for no error, otherwise 1 + the index into the part's failures.
    pub error: u8,
    /// Number of attempts (1 if the first succeeded).
    pub tries: u8,
}

/// Failure of an operation; [`Call::error`] refers to it, counted from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// SQLSTATE, or a code of the bench where there is no SQLSTATE.
    pub code: String,
    /// Error number of the engine, if there is one.
    pub vendor: Option<u16>,
    /// Error message of the engine, without values from rows.
    pub message: Option<String>,
    /// True if the plan lists the error as an expected outcome; `None` if this was not recorded.
    pub expected: Option<bool>,
}

impl From<String> for Failure {
    fn from(code: String) -> Self {
        Self { code, ..Self::default() }
    }
}

impl Call {
    /// Returns a call in which every optional value is missing.
    pub const fn new() -> Self {
        Self {
            intended_ns: NONE,
            started_ns: 0,
            elapsed_ns: 0,
            rows: NONE,
            redo_bytes: NONE,
            unflushed_bytes: NONE,
            block: 0,
            slice: 0,
            session: 0,
            arm: 0,
            statement: 0,
            kind: CallKind::Transaction,
            error: 0,
            tries: 1,
        }
    }
}

impl Default for Call {
    fn default() -> Self {
        Self::new()
    }
}
