//! Lines of one device in a controller's memory.

use std::collections::{BTreeMap, BTreeSet};

/// State of a line in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Dirty,
    Destaging,
    /// Written again while being destaged.
    Again,
}

/// First and last line of a write to the device below.
pub(super) type Run = (u64, u64);

/// Lines of one device in the memory of a controller.
#[derive(Default)]
pub(super) struct Lines {
    held: BTreeMap<u64, Line>,
    /// Dirty lines that are not being destaged.
    dirty: BTreeSet<u64>,
    /// Dirty lines that a flush must write.
    due: BTreeSet<u64>,
    /// Line after the end of the last destage.
    swept: u64,
    taken: u64,
    pub absorbed: u64,
    written: u64,
}

impl Lines {
    /// Returns the number of lines that are dirty or being destaged.
    pub fn len(&self) -> u64 {
        self.held.len() as u64
    }

    /// Returns true if a line is in memory.
    pub fn has(&self, line: u64) -> bool {
        self.held.contains_key(&line)
    }

    /// Returns the number of lines of a request that are not in memory yet.
    pub fn new_lines(&self, (first, last): Run) -> u64 {
        (first..=last).filter(|line| !self.has(*line)).count() as u64
    }

    /// Returns true if one of these lines is being destaged.
    pub fn on_their_way(&self, (first, last): Run) -> bool {
        self.held.range(first..=last).any(|(_, line)| *line != Line::Dirty)
    }

    /// Returns true if there is a dirty line.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Writes a line into memory.
    pub fn write(&mut self, line: u64) {
        self.taken += 1;
        match self.held.get_mut(&line) {
            None => {
                self.held.insert(line, Line::Dirty);
                self.dirty.insert(line);
            }
            Some(Line::Dirty | Line::Again) => self.absorbed += 1,
            Some(kind) => *kind = Line::Again,
        }
    }

    /// Marks all dirty lines as due.
    pub fn flush(&mut self) {
        self.due.clone_from(&self.dirty);
    }

    /// Returns a run of dirty lines and marks it as being destaged. The run begins at the first due line (with `any`:
    /// dirty line) at or after the end of the last run, or else at the first such line of all.
    pub fn sweep(&mut self, longest: u64, any: bool) -> Option<Run> {
        let wanted = if any { &self.dirty } else { &self.due };
        let from = wanted.range(self.swept..).next().or_else(|| wanted.first());
        let (first, mut last) = (*from?, *from?);
        while last + 1 - first < longest && self.dirty.contains(&(last + 1)) {
            last += 1;
        }
        for line in first..=last {
            self.dirty.remove(&line);
            self.due.remove(&line);
            self.held.insert(line, Line::Destaging);
        }
        self.swept = last + 1;
        Some((first, last))
    }

    /// Handles a run that has been written to the device; returns the number of lines that are free again.
    pub fn swept(&mut self, (first, last): Run) -> u64 {
        let before = self.len();
        for line in first..=last {
            self.written += 1;
            if self.held.get(&line) == Some(&Line::Again) {
                self.held.insert(line, Line::Dirty);
                self.dirty.insert(line);
            } else {
                self.held.remove(&line);
            }
        }
        before - self.len()
    }

    /// Returns true if no line is lost: lines in = absorbed + written below + held. A line that was written again while
    /// being destaged counts as held twice.
    pub fn holds(&self) -> bool {
        let again = self.held.values().filter(|&&line| line == Line::Again).count() as u64;
        self.taken == self.absorbed + self.written + self.len() + again
    }
}
