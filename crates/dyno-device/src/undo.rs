//! Changes of folders that are not yet durable, and how to undo them.
//!
//! Removed and replaced files are kept in a hidden folder until the change is durable. A power cut keeps the earliest
//! few changes and undoes the rest, in reverse order.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dyno_stats::rng::Xoshiro256;

use crate::journal::Names;

/// Name of the hidden folder that keeps removed files.
pub const KEPT: &str = ".dbdyno-removed";

/// A name in a folder: node number of the folder, and the name.
pub type Place = (u64, OsString);

/// A change of folders.
pub enum Change {
    /// A file, folder or link was created.
    Made(Place),
    /// A file was removed; its content is kept at this path.
    Removed(Place, u64, PathBuf),
    /// An empty folder was removed.
    RemovedFolder(Place),
    /// A file or folder was renamed; a file that had the new name before is kept.
    Renamed {
        /// Former name.
        from: Place,
        /// New name.
        to: Place,
        /// Number of the renamed node.
        number: u64,
        /// Node number of the file that had the new name before, and the path where it is kept.
        replaced: Option<(u64, PathBuf)>,
    },
}

impl Change {
    fn concerns(&self, folder: u64) -> bool {
        match self {
            Self::Made((of, _)) | Self::Removed((of, _), ..) | Self::RemovedFolder((of, _)) => *of == folder,
            Self::Renamed { from, to, .. } => from.0 == folder || to.0 == folder,
        }
    }

    /// Returns the name that the change created or removed; for a rename, the new name.
    fn place(&self) -> &Place {
        match self {
            Self::Made(place) | Self::Removed(place, ..) | Self::RemovedFolder(place) => place,
            Self::Renamed { to, .. } => to,
        }
    }

    /// Returns the node number and path of the file that is kept for this change; `None` if there is no such file.
    fn kept(&self) -> Option<(u64, &Path)> {
        match self {
            Self::Removed(_, number, path) | Self::Renamed { replaced: Some((number, path)), .. } => {
                Some((*number, path))
            }
            _ => None,
        }
    }
}

/// Changes that a power cut can undo, in order.
pub struct Changes {
    kept: PathBuf,
    names: Names,
    pending: Vec<Change>,
    number: u64,
}

impl Changes {
    /// Returns an empty list of changes, and creates the hidden folder.
    ///
    /// # Errors
    /// The hidden folder cannot be created.
    pub fn new(root: &Path, names: Names) -> io::Result<Self> {
        let kept = root.join(KEPT);
        fs::create_dir_all(&kept)?;
        Ok(Self { kept, names, pending: Vec::new(), number: 0 })
    }

    /// Adds a change.
    pub fn add(&mut self, change: Change) {
        self.pending.push(change);
    }

    /// Moves a file into the hidden folder; returns its path there.
    ///
    /// # Errors
    /// The file cannot be moved.
    pub fn keep(&mut self, path: &Path) -> io::Result<PathBuf> {
        self.number += 1;
        let kept = self.kept.join(self.number.to_string());
        fs::rename(path, &kept)?;
        Ok(kept)
    }

    /// Makes durable the changes that a sync covers: a sync of `folder`, or of a file if `folder` is `None`. Returns
    /// the node numbers of files that are now removed permanently.
    pub fn sync(&mut self, folder: Option<u64>) -> Vec<u64> {
        let durable = match (self.names, folder) {
            (Names::WithFiles, _) => self.pending.len(),
            (Names::WithFolders, None) => 0,
            (Names::WithFolders, Some(folder)) => {
                self.pending.iter().rposition(|change| change.concerns(folder)).map_or(0, |last| last + 1)
            }
        };
        let mut gone = Vec::new();
        for change in self.pending.drain(..durable) {
            if let Some((number, path)) = change.kept() {
                // A file that cannot be removed is removed with the folder.
                let _ = fs::remove_file(path);
                gone.push(number);
            }
        }
        gone
    }

    /// Undoes a random number of the latest changes, and returns the paths of the names that they affected. `path`
    /// returns the path of a name in the underlying folder; `moved` is called for each file that has its former name
    /// again.
    ///
    /// # Errors
    /// A change cannot be undone.
    pub fn cut(
        &mut self,
        dice: &mut Xoshiro256,
        path: impl Fn(&Place) -> Option<PathBuf>,
        mut moved: impl FnMut(u64, &Place),
    ) -> io::Result<Vec<PathBuf>> {
        let all = self.pending.len();
        let left = [0, all, dice.below(all as u64 + 1) as usize][dice.below(3) as usize];
        let mut undone = Vec::with_capacity(all - left);
        for change in self.pending.drain(left..).rev() {
            undone.push(path(change.place()).unwrap_or_default());
            undo(change, &path, &mut moved)?;
        }
        self.pending.clear();
        Ok(undone)
    }

    /// Removes the hidden folder.
    ///
    /// # Errors
    /// The hidden folder cannot be removed.
    pub fn end(&self) -> io::Result<()> {
        if self.kept.exists() { fs::remove_dir_all(&self.kept) } else { Ok(()) }
    }
}

fn undo(
    change: Change,
    path: &impl Fn(&Place) -> Option<PathBuf>,
    moved: &mut impl FnMut(u64, &Place),
) -> io::Result<()> {
    match change {
        Change::Made(place) => match path(&place) {
            Some(made) if made.is_dir() && !made.is_symlink() => fs::remove_dir_all(made),
            Some(made) if made.is_symlink() || made.exists() => fs::remove_file(made),
            _ => Ok(()),
        },
        Change::Removed(place, number, kept) => {
            let Some(back) = path(&place) else { return Ok(()) };
            moved(number, &place);
            fs::rename(kept, back)
        }
        Change::RemovedFolder(place) => path(&place).map_or(Ok(()), fs::create_dir),
        Change::Renamed { from, to, number, replaced } => {
            let (Some(former), Some(new)) = (path(&from), path(&to)) else { return Ok(()) };
            fs::rename(&new, former)?;
            moved(number, &from);
            if let Some((number, kept)) = replaced {
                fs::rename(kept, new)?;
                moved(number, &to);
            }
            Ok(())
        }
    }
}

/// Returns true for names in the mounted folder that dbdyno uses itself and hides from programs.
pub fn is_hidden(name: &OsStr) -> bool {
    name == KEPT
}
