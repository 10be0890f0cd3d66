//! Folder of an import: the large tables have parts for each file, each small table has one part for all files.
//!
//! Of [`TOGETHER`] neighbouring files, those with few rows share parts: otherwise thousands of small files would make
//! thousands of parts, and every query would have to open them all.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use dyno_evidence::EvidenceError;
use dyno_evidence::table::{Column, Table, Values};

use super::tables;

/// Tables that have one part for all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Small {
    /// `statements.parquet`
    Statements,
    /// `cursors.parquet`
    Cursors,
    /// `plans.parquet`
    Plans,
    /// `errors.parquet`
    Errors,
    /// `transactions.parquet`
    Transactions,
    /// `contexts.parquet`
    Contexts,
    /// `sessions.parquet`
    Sessions,
    /// `stamps.parquet`
    Stamps,
    /// `binds.parquet`
    Binds,
    /// `unread.parquet`
    Unread,
    /// `files.parquet`
    Files,
}

impl Small {
    /// All small tables in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Statements,
        Self::Cursors,
        Self::Plans,
        Self::Errors,
        Self::Transactions,
        Self::Contexts,
        Self::Sessions,
        Self::Stamps,
        Self::Binds,
        Self::Unread,
        Self::Files,
    ];

    /// Returns the name of the table, which is also the name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Statements => "statements",
            Self::Cursors => "cursors",
            Self::Plans => "plans",
            Self::Errors => "errors",
            Self::Transactions => "transactions",
            Self::Contexts => "contexts",
            Self::Sessions => "sessions",
            Self::Stamps => "stamps",
            Self::Binds => "binds",
            Self::Unread => "unread",
            Self::Files => "files",
        }
    }

    /// Returns the columns of the table.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Statements => &tables::STATEMENTS,
            Self::Cursors => &tables::CURSORS,
            Self::Plans => &tables::PLANS,
            Self::Errors => &tables::ERRORS,
            Self::Transactions => &tables::TRANSACTIONS,
            Self::Contexts => &tables::CONTEXTS,
            Self::Sessions => &tables::SESSIONS,
            Self::Stamps => &tables::STAMPS,
            Self::Binds => &tables::BINDS,
            Self::Unread => &tables::UNREAD,
            Self::Files => &tables::FILES,
        }
    }
}

/// Number of neighbouring files that share the parts of their few rows.
pub const TOGETHER: u32 = 64;

/// Returns the name of the part that a file shares with its neighbours.
pub fn shared_part(file: u32) -> String {
    format!("g{:06}", file / TOGETHER)
}

/// Parts that neighbouring files share, and how many of these files are finished.
#[derive(Default)]
struct Shared {
    tables: HashMap<&'static str, Table>,
    done: u32,
}

/// Folder of an import while it is written.
pub struct Folder {
    dir: PathBuf,
    small: Vec<Mutex<Table>>,
    /// Shared parts by the number of the group of neighbouring files.
    shared: Mutex<HashMap<u32, Shared>>,
}

impl Folder {
    /// Opens the parts of the small tables in a folder, which is created if missing.
    ///
    /// # Errors
    /// A part cannot be created.
    pub fn create(dir: &Path) -> Result<Self, EvidenceError> {
        let open = |table: &Small| Table::create(dir, table.name(), table.columns()).map(Mutex::new);
        let small = Small::ALL.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { dir: dir.to_owned(), small, shared: Mutex::default() })
    }

    /// Returns the path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Appends rows to a small table.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn write(&self, table: Small, values: &mut [Values]) -> Result<(), EvidenceError> {
        self.small[table as usize].lock().unwrap_or_else(PoisonError::into_inner).write(values)
    }

    /// Opens a part of a large table: `<folder>/f<file>-<number>`.
    ///
    /// # Errors
    /// A part cannot be created.
    pub fn part(&self, table: &str, columns: &[Column], file: u32, number: u32) -> Result<Table, EvidenceError> {
        Table::create(&self.dir.join(table), &format!("f{file:06}-{number:06}"), columns)
    }

    /// Writes all rows of a file's large table into the part that it shares with its neighbours.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn share(
        &self,
        table: &'static str,
        columns: &[Column],
        file: u32,
        values: &mut [Values],
    ) -> Result<(), EvidenceError> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = &mut shared.entry(file / TOGETHER).or_default().tables;
        if !tables.contains_key(table) {
            tables.insert(table, Table::create(&self.dir.join(table), &shared_part(file), columns)?);
        }
        tables.get_mut(table).map_or(Ok(()), |part| part.write(values))
    }

    /// Marks a file as finished; when all its neighbours are finished, their shared parts are renamed into place.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn done(&self, file: u32) -> Result<(), EvidenceError> {
        let whole = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            let neighbours = shared.entry(file / TOGETHER).or_default();
            neighbours.done += 1;
            if neighbours.done < TOGETHER {
                return Ok(());
            }
            shared.remove(&(file / TOGETHER))
        };
        whole.map_or(Ok(()), Shared::finish)
    }

    /// Renames the small tables and the shared parts into place.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn finish(self) -> Result<(), EvidenceError> {
        for (_, shared) in self.shared.into_inner().unwrap_or_else(PoisonError::into_inner) {
            shared.finish()?;
        }
        for table in self.small {
            table.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
        }
        Ok(())
    }
}

impl Shared {
    fn finish(self) -> Result<(), EvidenceError> {
        self.tables.into_values().try_for_each(|table| table.finish().map(drop))
    }
}
