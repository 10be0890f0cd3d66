//! Unsynced file contents, and what remains of them after a power cut.
//!
//! The files in the underlying folder have the content that programs see. The journal keeps what a disk would still
//! have: the former content of each page written since the file was last synced, and how to undo each change of a
//! folder. At a power cut each page gets, independently of the others, its new content, its former content, or some
//! sectors of each. So later writes can survive although earlier ones are lost, as on a device that reorders writes at
//! will until a flush.
//!
//! A sync of a file makes its pages and its size durable. Changes of a folder become durable in the order in which they
//! were made, when the folder is synced; with [`Names::WithFiles`] any sync makes all of them durable, as on file
//! systems with one journal.
//!
//! Limits: after a power cut a page has its synced content or its latest one, never one in between. A shortened file is
//! either short or as long as before.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use dyno_stats::rng::Xoshiro256;
use serde::{Deserialize, Serialize};

use crate::faults::{FaultKind, FaultRow};

/// Unit in which unsynced content is kept [bytes].
pub const PAGE_BYTES: u64 = 4_096;

/// When changes of folders become durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// When the folder that was changed is synced, as POSIX guarantees.
    #[default]
    WithFolders,
    /// When any file or folder is synced, as in file systems with one journal.
    WithFiles,
}

/// Unsynced state of a file.
#[derive(Default)]
pub struct Unsynced {
    /// Former content of pages, by page number; the page in which the file formerly ended can be shorter.
    pages: BTreeMap<u64, Vec<u8>>,
    /// Former size [bytes].
    size: u64,
    /// Numbers of pages whose sync has failed; later syncs do not write them.
    dropped: HashSet<u64>,
}

/// Effects of a power cut on file contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lost {
    /// Number of files with unsynced pages.
    pub files: u64,
    /// Number of unsynced pages.
    pub pages: u64,
    /// Number of pages that got their former content back.
    pub pages_lost: u64,
    /// Number of pages in which some sectors got their former content back.
    pub pages_torn: u64,
    /// Number of changes of folders that were undone.
    pub names_undone: u64,
    /// Number of pages that a rebuild of a RAID-5 array damaged.
    pub pages_rebuilt: u64,
    /// Each lost, torn or damaged page, and each change of a folder that was undone.
    pub rows: Vec<FaultRow>,
}

/// How a power cut treats unsynced data: probabilities in sixteenths.
#[derive(Clone, Copy, Debug)]
pub struct Mood {
    /// Probability that a page is lost [1/16].
    pub lost_16: u64,
    /// Probability that a page is torn [1/16].
    pub torn_16: u64,
}

impl Mood {
    /// Draws the probabilities at random: often extreme or simple values, otherwise any value.
    pub fn draw(dice: &mut Xoshiro256) -> Self {
        let lost_16 = [0, 16, 8, 1, 15, dice.below(17)][dice.below(6) as usize];
        let torn_16 = [0, 4, 16 - lost_16][dice.below(3) as usize].min(16 - lost_16);
        Self { lost_16, torn_16 }
    }
}

/// Unsynced page of a file, with its synced content and its latest content.
pub struct Unsure {
    /// Node number of the file.
    pub file: u64,
    /// Page number.
    pub page: u64,
    /// Synced content, padded with zeros beyond the end of the file.
    pub former: Vec<u8>,
    /// Latest written content, padded in the same way.
    pub latest: Vec<u8>,
}

/// Unsynced content of files by node number.
#[derive(Default)]
pub struct Journal {
    files: HashMap<u64, Unsynced>,
}

impl Journal {
    /// Saves the content that a write to this range will replace.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn before_write(&mut self, number: u64, file: &File, offset: u64, bytes: u64) -> io::Result<()> {
        let size = file.metadata()?.len();
        let unsynced = self.files.entry(number).or_insert_with(|| Unsynced { size, ..Unsynced::default() });
        let last = (offset + bytes.max(1) - 1) / PAGE_BYTES;
        for page in offset / PAGE_BYTES..=last {
            if bytes > 0 && !unsynced.pages.contains_key(&page) {
                unsynced.pages.insert(page, read_page(file, page)?);
            }
        }
        Ok(())
    }

    /// Saves the content that a new size will remove.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn before_resize(&mut self, number: u64, file: &File, new_size: u64) -> io::Result<()> {
        let size = file.metadata()?.len();
        let removed = size.saturating_sub(new_size);
        self.before_write(number, file, new_size.min(size), removed)
    }

    /// Records that the content and size of a file are durable.
    pub fn sync(&mut self, number: u64, size: u64) {
        let Some(unsynced) = self.files.get_mut(&number) else { return };
        let dropped = std::mem::take(&mut unsynced.dropped);
        unsynced.pages.retain(|page, _| dropped.contains(page));
        unsynced.size = size;
        if unsynced.pages.is_empty() {
            self.files.remove(&number);
        } else {
            unsynced.dropped = dropped;
        }
    }

    /// Records a failed sync: the system considers the pages written, but the device does not have them.
    pub fn fail_sync(&mut self, number: u64) {
        if let Some(unsynced) = self.files.get_mut(&number) {
            unsynced.dropped = unsynced.pages.keys().copied().collect();
        }
    }

    /// Records a new write to a page whose sync has failed, so that the next sync writes it.
    pub fn rewrite(&mut self, number: u64, offset: u64, bytes: u64) {
        if let Some(unsynced) = self.files.get_mut(&number).filter(|unsynced| !unsynced.dropped.is_empty()) {
            let last = (offset + bytes.max(1) - 1) / PAGE_BYTES;
            unsynced.dropped.retain(|page| !(offset / PAGE_BYTES..=last).contains(page));
        }
    }

    /// Forgets a file that no longer exists.
    pub fn forget(&mut self, number: u64) {
        self.files.remove(&number);
    }

    /// Returns the unsynced pages of the files that still exist, in order; shortened files are left out.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn unsynced(&self, path: impl Fn(u64) -> Option<std::path::PathBuf>) -> io::Result<Vec<Unsure>> {
        let mut all = Vec::new();
        for (&number, unsynced) in &self.files {
            let Some(path) = path(number).filter(|path| path.is_file()) else { continue };
            let file = File::open(path)?;
            if file.metadata()?.len() < unsynced.size {
                continue;
            }
            for (&page, former) in &unsynced.pages {
                let whole = |mut content: Vec<u8>| {
                    content.resize(PAGE_BYTES as usize, 0);
                    content
                };
                let (former, latest) = (whole(former.clone()), whole(read_page(&file, page)?));
                all.push(Unsure { file: number, page, former, latest });
            }
        }
        all.sort_unstable_by_key(|own| (own.file, own.page));
        Ok(all)
    }

    /// Restores each unsynced file to the content that the device has. `path` returns the path of a file that still
    /// exists; `note` is called with the kind of fault, the file and the page number of each page that is lost or torn.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn cut(
        &mut self,
        dice: &mut Xoshiro256,
        sector_bytes: u64,
        path: impl Fn(u64) -> Option<std::path::PathBuf>,
        mut note: impl FnMut(FaultKind, u64, u64),
    ) -> io::Result<Lost> {
        let mut lost = Lost::default();
        let mut numbers: Vec<u64> = self.files.keys().copied().collect();
        numbers.sort_unstable();
        let mood = Mood::draw(dice);
        for number in numbers {
            let Some(unsynced) = self.files.remove(&number) else { continue };
            if let Some(path) = path(number).filter(|path| path.is_file()) {
                lost.files += 1;
                cut_file(&path, &unsynced, mood, sector_bytes, dice, |kind, page| {
                    match kind {
                        FaultKind::TornPage => lost.pages_torn += 1,
                        _ => lost.pages_lost += 1,
                    }
                    note(kind, number, page);
                })?;
                lost.pages += unsynced.pages.len() as u64;
            }
        }
        Ok(lost)
    }
}

/// Reads a page of a file; the content is shorter than a page if the file ends within it.
///
/// # Errors
/// The file cannot be read.
pub fn read_page(file: &File, page: u64) -> io::Result<Vec<u8>> {
    let mut content = vec![0; PAGE_BYTES as usize];
    let mut have = 0;
    while have < content.len() {
        match file.read_at(&mut content[have..], page * PAGE_BYTES + have as u64)? {
            0 => break,
            more => have += more,
        }
    }
    content.truncate(have);
    Ok(content)
}

fn cut_file(
    path: &Path,
    unsynced: &Unsynced,
    mood: Mood,
    sector_bytes: u64,
    dice: &mut Xoshiro256,
    mut note: impl FnMut(FaultKind, u64),
) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let now = file.metadata()?.len();
    if now < unsynced.size {
        return cut_shortened(&file, unsynced, mood, dice, note);
    }
    // A new size that is not synced survives or does not; without it nothing beyond the former end does.
    let keeps_size = now == unsynced.size || dice.below(16) >= mood.lost_16;
    for (&page, former) in &unsynced.pages {
        let fate = dice.below(16);
        let at = page * PAGE_BYTES;
        let mut former = former.clone();
        former.resize(PAGE_BYTES as usize, 0);
        if fate < mood.lost_16 {
            note(FaultKind::LostPage, page);
            file.write_all_at(&former[..(now.saturating_sub(at)).min(PAGE_BYTES) as usize], at)?;
        } else if fate < mood.lost_16 + mood.torn_16 {
            note(FaultKind::TornPage, page);
            for (sector, former) in former.chunks(sector_bytes as usize).enumerate() {
                let at = at + sector as u64 * sector_bytes;
                let length = now.saturating_sub(at).min(sector_bytes) as usize;
                if dice.below(2) == 0 && length > 0 {
                    file.write_all_at(&former[..length], at)?;
                }
            }
        }
    }
    if keeps_size { Ok(()) } else { file.set_len(unsynced.size) }
}

/// Keeps a shortened file as it is, or restores its former content.
fn cut_shortened(
    file: &File,
    unsynced: &Unsynced,
    mood: Mood,
    dice: &mut Xoshiro256,
    mut note: impl FnMut(FaultKind, u64),
) -> io::Result<()> {
    if dice.below(16) >= mood.lost_16 {
        return Ok(());
    }
    file.set_len(unsynced.size)?;
    for (&page, former) in &unsynced.pages {
        note(FaultKind::LostPage, page);
        let at = page * PAGE_BYTES;
        let length = unsynced.size.saturating_sub(at).min(former.len() as u64) as usize;
        file.write_all_at(&former[..length], at)?;
    }
    Ok(())
}
