//! Reasons for which an entry or a statement could not be used.

/// Reason for which an entry or a statement could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The log is cut off within the record.
    Cut,
    /// The line does not have the prefix of the other lines.
    NoPrefix,
    /// The entry's time cannot be parsed.
    NoTime,
    /// The entry is longer than 16 MiB.
    TooLong,
    /// The record does not have csvlog's columns.
    NoColumns,
    /// The line is not an object of jsonlog.
    NoObject,
    /// The line is not an object with an entry of the server.
    NoPayload,
    /// The entry's duration cannot be parsed.
    NoDuration,
    /// A plan of `auto_explain`, whose statement is logged separately.
    Plan,
    /// A fastpath call of a function.
    Fastpath,
    /// Rows fetched later from a portal; the replay fetches all rows in the preceding execution.
    Fetch,
    /// A duration without a statement (`log_duration` logs no texts).
    Bare,
    /// A failure without a statement (see `log_min_error_statement`).
    Textless,
    /// A COPY from the client, whose rows are not in a log.
    NoRows,
    /// The statement's parameters are not in the log.
    NoParameters,
    /// The statement's parameters may be truncated (`log_parameter_max_length`).
    CutParameters,
    /// The statement was unfinished when its session or the log ended.
    Unfinished,
    /// The statement belongs to a database that was not requested.
    OtherDatabase,
    /// The statement's database is unknown: `log_line_prefix` needs %d; a general log must have the beginning of the
    /// connection.
    NoDatabase,
    /// A statement within a stored routine.
    Routine,
}

impl Reason {
    /// Returns the reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Cut => "the log is cut within the record",
            Self::NoPrefix => "the line has not the prefix of the others",
            Self::NoTime => "its time cannot be read",
            Self::TooLong => "it is longer than 16 MiB",
            Self::NoColumns => "its record has not the columns of csvlog",
            Self::NoObject => "its line is no object of jsonlog",
            Self::NoPayload => "its line is no object with an entry of the server",
            Self::NoDuration => "its duration cannot be read",
            Self::Plan => "a plan of auto_explain, whose statement is logged apart",
            Self::Fastpath => "a fastpath call of a function",
            Self::Fetch => "rows fetched later from a portal: the execution before takes all rows",
            Self::Bare => "a duration without its statement (log_duration logs no texts)",
            Self::Textless => "a failure without its statement (see log_min_error_statement)",
            Self::NoRows => "a COPY from the client: its rows are not in a log",
            Self::NoParameters => "its parameters are not in the log",
            Self::CutParameters => "its parameters may be cut (log_parameter_max_length)",
            Self::Unfinished => "it was not over when its session or the log ended",
            Self::OtherDatabase => "it is of another database than the one that was asked for",
            Self::NoDatabase => {
                "its database is not known: log_line_prefix needs %d, a general log the begin of the connection"
            }
            Self::Routine => "a statement within a stored routine, whose CALL is logged apart",
        }
    }

    /// Returns true if an entry could not be parsed, false if it could be parsed but is useless for a capture.
    pub fn is_unread(self) -> bool {
        use Reason::{NoColumns, NoDuration, NoObject, NoPayload, NoTime, TooLong};
        matches!(self, NoTime | TooLong | NoColumns | NoObject | NoPayload | NoDuration)
    }

    /// Returns true if a statement is kept, but cannot be sent again.
    pub fn is_left_out(self) -> bool {
        matches!(self, Self::NoRows | Self::NoParameters | Self::CutParameters)
    }
}
