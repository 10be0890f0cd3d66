//! One recorded operation.

/// An optional column without a value: NULL in Parquet.
pub const NONE: i64 = i64::MIN;

/// What an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CallKind {
    /// One whole script: what the user waits for.
    Transaction,
    /// One SQL command.
    Exec,
    /// BEGIN, timed on its own.
    Begin,
    /// COMMIT, timed on its own.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// A pipeline, from its first send to its last result.
    Pipeline,
    /// A reading of the write-ahead log's position.
    RedoPosition,
    /// An arrival of an open loop that was given up, counted instead of hidden.
    Skipped,
    /// A statement that reads, where the engine tells it from one that changes.
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

    /// The word in the `kind` column.
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
    /// When an open loop meant it to start (ns since the UNIX epoch); `NONE` in a closed loop.
    pub intended_ns: i64,
    /// When it really started (ns since the UNIX epoch).
    pub started_ns: i64,
    /// How long it took from its real start: service time, ns.
    pub elapsed_ns: i64,
    /// Rows returned or changed.
    pub rows: i64,
    /// Redo written since this session's last reading of the log position.
    pub redo_bytes: i64,
    /// Redo not yet flushed when the commit began.
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
    /// What it was.
    pub kind: CallKind,
    /// 0 = no error, else 1 + index into the failures of the part.
    pub error: u8,
    /// How often it was tried (1 = at the first go).
    pub tries: u8,
}

/// How an operation failed: what [`Call::error`] counts from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// SQLSTATE, or what the bench has in its place.
    pub code: String,
    /// The engine's own number of the error, where it has one.
    pub vendor: Option<u16>,
    /// What the engine says, without values of rows.
    pub message: Option<String>,
    /// Whether the plan calls it an outcome; `None` where whoever wrote it does not know.
    pub expected: Option<bool>,
}

impl From<String> for Failure {
    fn from(code: String) -> Self {
        Self { code, ..Self::default() }
    }
}

impl Call {
    /// A call with nothing known yet.
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
