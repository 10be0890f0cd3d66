//! Size and time of one file in each numbered folder, such as the manifests of a store of snapshots.
//!
//! A store that covers a month has 43,000 such files. Folder numbers are divided into blocks, and totals are made for
//! each block, so that a caller who knows the totals of a block need not read the attributes of its files. Listing the
//! folders is cheap; reading the attributes of a file in each folder is not. For a block that was not requested, only
//! its folders are compared with those that the caller knows.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file in one numbered folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumberedFile {
    /// Folder number.
    pub number: i64,
    /// Size [bytes].
    pub size: i64,
    /// Time of the last change [ns since the epoch].
    pub changed_ns: i64,
}

/// Totals over the files of a block of folder numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockTotals {
    /// Number of the block: the folder number divided by the length of a block.
    pub block: i64,
    /// Number of files.
    pub count: i64,
    /// Sum of the folder numbers.
    pub numbers: i64,
    /// Sum of the sizes [bytes].
    pub sizes: i64,
    /// Sum of the whole seconds of the times of change [s].
    pub seconds: i64,
    /// Sum of the fractions of a second of the times of change [ns].
    pub nanoseconds: i64,
}

/// Selection of the files whose attributes are read.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Length of a block: how many consecutive folder numbers it has.
    pub length: i64,
    /// Blocks whose files' attributes are always read.
    pub blocks: &'a RangeInclusive<i64>,
    /// For each known block outside `blocks`, the number of its folders and the sum of their numbers. The attributes of
    /// files in such a block are read only if its folders differ from these.
    pub known: &'a HashMap<i64, (i64, i64)>,
}

impl Wanted<'_> {
    /// Returns true if the attributes of files in a block with these folders must be read.
    fn has(&self, block: i64, folders: &[(i64, OsString)]) -> bool {
        let found = || {
            let sum = folders.iter().fold(0_i64, |sum, (number, _)| sum.wrapping_add(*number));
            (i64::try_from(folders.len()).unwrap_or(i64::MAX), sum)
        };
        self.blocks.contains(&block) || self.known.get(&block) != Some(&found())
    }
}

/// The files in the numbered folders of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberedFiles {
    /// Files whose attributes were read and that exist, in order of their numbers.
    pub files: Vec<NumberedFile>,
    /// Numbers of the blocks whose files' attributes were not read, in order.
    pub unseen: Vec<i64>,
    /// Largest folder number, whether or not the folder contains the file; `None` if there is no folder.
    pub newest: Option<i64>,
}

impl NumberedFiles {
    /// Returns the totals of each block of `length` numbers that has a file, in order.
    #[must_use]
    pub fn totals(&self, length: i64) -> Vec<BlockTotals> {
        let mut found: Vec<BlockTotals> = Vec::new();
        for file in &self.files {
            let block = file.number / length;
            if found.last().is_none_or(|last| last.block != block) {
                found.push(BlockTotals { block, ..BlockTotals::default() });
            }
            if let Some(last) = found.last_mut() {
                last.count += 1;
                last.numbers = last.numbers.wrapping_add(file.number);
                last.sizes = last.sizes.wrapping_add(file.size);
                last.seconds = last.seconds.wrapping_add(file.changed_ns / 1_000_000_000);
                last.nanoseconds = last.nanoseconds.wrapping_add(file.changed_ns % 1_000_000_000);
            }
        }
        found
    }
}

/// Lists the files called `name` in the numbered folders within `folder`; the list is empty if `folder` is missing.
///
/// Folders whose names are not plain decimal numbers are left out.
///
/// # Errors
///
/// The folder cannot be read.
pub fn numbered_files(folder: &Path, name: &str, wanted: Wanted<'_>) -> io::Result<NumberedFiles> {
    let folders = numbered_folders(folder)?;
    let mut found = NumberedFiles { newest: folders.last().map(|last| last.0), ..NumberedFiles::default() };
    let mut path = folder.to_path_buf();
    for same in folders.chunk_by(|one, next| one.0 / wanted.length == next.0 / wanted.length) {
        let block = same[0].0 / wanted.length;
        if !wanted.has(block, same) {
            found.unseen.push(block);
            continue;
        }
        for (number, entry) in same {
            path.push(entry);
            path.push(name);
            if let Ok(file) = fs::metadata(&path) {
                let changed_ns = file.mtime().saturating_mul(1_000_000_000).saturating_add(file.mtime_nsec());
                found.files.push(NumberedFile { number: *number, size: file.size().cast_signed(), changed_ns });
            }
            path.pop();
            path.pop();
        }
    }
    Ok(found)
}

/// Returns the folders whose names are numbers, in order; none if the folder is missing.
fn numbered_folders(folder: &Path) -> io::Result<Vec<(i64, OsString)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        if let Some(number) = name.to_str().and_then(plain_number) {
            found.push((number, name));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn plain_number(name: &str) -> Option<i64> {
    let is_plain = !name.is_empty() && name.len() <= 18 && name.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| name.parse().ok()).flatten()
}
