//! Write hole of a RAID-5 array without a protected log: the power fails between the writes of the data and the parity
//! of a row.
//!
//! ```text
//!   row of an array of four:   a   b   c   parity = a + b + c       (+ is exclusive or)
//!   power fails in a write of a:  a is new, the parity that of the old a, or the other way round
//!   a member is lost, b is rebuilt:  parity + a + c = b + (new a + old a): not b, which nobody had written
//! ```
//!
//! After a cut the parity of each unsynced page matches its content before or after the write, at random, whichever of
//! the two the page itself has. Then a randomly chosen member is lost and rebuilt from the others before the array is
//! checked. This can damage pages that were synced long ago, in any file that shares a row with an unsynced page.
//!
//! Limits: files get their place on the array in the order of their first use since the mount; a page that was neither
//! read nor written since the mount cannot be damaged. Files that were shortened and not synced are never damaged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use dyno_stats::rng::Xoshiro256;

use crate::DeviceError;
use crate::extents::{EXTENT_BYTES, Extents};
use crate::faults::{FaultKind, Rule};
use crate::journal::{PAGE_BYTES, Unsure, read_page};

/// Geometry of an array that has a write hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Number of members of the array; in each row, one member holds the parity.
    members: u64,
    /// Number of pages that a member has in each row.
    piece_pages: u64,
}

/// Number of members, if the rule does not state it.
const MEMBERS: u64 = 4;
/// Size of a member's piece in each row, if the rule does not state it [KB].
const STRIPE_KB: u64 = 64;
const PAGES_OF_EXTENT: u64 = EXTENT_BYTES / PAGE_BYTES;

/// Page of a row: the column of its piece, and the content of the page that the row's parity includes.
struct Part<'a> {
    column: u64,
    in_parity: &'a [u8],
    /// Exclusive or of `in_parity` and the page's actual content.
    differs: Vec<u8>,
}

/// A page of a file: node number of the file, and number of the page.
pub type Page = (u64, u64);

impl Hole {
    /// Returns the array that the first write-hole rule describes; `None` without such a rule.
    ///
    /// # Errors
    /// The geometry is impossible.
    pub fn of(rules: &[Rule]) -> Result<Option<Self>, DeviceError> {
        let Some(rule) = rules.iter().find(|rule| rule.kind == FaultKind::WriteHole) else { return Ok(None) };
        let or = |value, default| if value == 0 { default } else { value };
        let (members, stripe_kb) = (or(rule.members, MEMBERS), or(rule.stripe_kb, STRIPE_KB));
        if !(3..=256).contains(&members) || stripe_kb % 4 != 0 || stripe_kb > 1 << 20 {
            let found = format!("found {members} members and a stripe_kb of {stripe_kb}");
            return Err(DeviceError::Fault(format!(
                "write-hole needs 3 to 256 members and a stripe_kb that is a multiple of 4, up to 1,048,576; {found}"
            )));
        }
        Ok(Some(Self { members, piece_pages: (stripe_kb << 10) / PAGE_BYTES }))
    }

    fn columns(self) -> u64 {
        self.members - 1
    }

    /// Returns for a page of the device its row, its column, and its number within the piece.
    fn place(self, page: u64) -> (u64, u64, u64) {
        let unit = page / self.piece_pages;
        (unit / self.columns(), unit % self.columns(), page % self.piece_pages)
    }

    /// Returns the column that a member has in a row; `None` if the member has the row's parity.
    fn column_of(self, row: u64, member: u64) -> Option<u64> {
        let parity = self.columns() - row % self.members;
        let column = (member + self.members - parity - 1) % self.members;
        (column < self.columns()).then_some(column)
    }

    /// Loses a member after a cut and rebuilds it from the others; returns the pages whose content changes. `unsure`
    /// lists the pages that were not synced before the cut; `path` returns the path of a file that still exists.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn rebuild(
        self,
        dice: &mut Xoshiro256,
        extents: &Extents,
        unsure: &[Unsure],
        path: impl Fn(u64) -> Option<PathBuf>,
    ) -> io::Result<Vec<Page>> {
        let member = dice.below(self.members);
        let files = extents.files();
        let mut rows: BTreeMap<(u64, u64), Vec<Part>> = BTreeMap::new();
        for own in unsure {
            let in_parity = if dice.below(2) == 0 { &own.former } else { &own.latest };
            let Some(address) = extents.address(own.file, own.page * PAGE_BYTES) else { continue };
            let Some(now) = page_of(&path, (own.file, own.page))? else { continue };
            let (row, column, within) = self.place(address / PAGE_BYTES);
            let part = Part { column, in_parity, differs: xor(in_parity, &now) };
            rows.entry((row, within)).or_default().push(part);
        }
        let mut damaged = Vec::new();
        for ((row, within), parts) in rows {
            let Some(column) = self.column_of(row, member) else { continue };
            let address = (row * self.columns() + column) * self.piece_pages + within;
            let Some(&(file, extent)) = files.get(&(address / PAGES_OF_EXTENT)) else { continue };
            let page = (file, extent * PAGES_OF_EXTENT + address % PAGES_OF_EXTENT);
            let Some(now) = page_of(&path, page)? else { continue };
            let rebuilt = rebuilt(&now, column, &parts);
            if rebuilt != now && write_page(&path, page, &rebuilt)? {
                damaged.push(page);
            }
        }
        Ok(damaged)
    }
}

/// Returns the content of a page as rebuilt from the parity and the other pieces of its row.
fn rebuilt(now: &[u8], column: u64, parts: &[Part]) -> Vec<u8> {
    let own = parts.iter().find(|part| part.column == column);
    let begin = own.map_or(now, |part| part.in_parity).to_vec();
    let others = parts.iter().filter(|part| part.column != column);
    others.fold(begin, |sum, part| xor(&sum, &part.differs))
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}

/// Returns a page of a file, padded with zeros beyond the file's end; `None` if the file or the page does not exist.
fn page_of(path: &impl Fn(u64) -> Option<PathBuf>, (file, page): Page) -> io::Result<Option<Vec<u8>>> {
    let Some(path) = path(file).filter(|path| path.is_file()) else { return Ok(None) };
    let mut content = read_page(&File::open(path)?, page)?;
    if content.is_empty() {
        return Ok(None);
    }
    content.resize(PAGE_BYTES as usize, 0);
    Ok(Some(content))
}

/// Writes a page of a file up to the file's end; returns false if that changes nothing.
fn write_page(path: &impl Fn(u64) -> Option<PathBuf>, (file, page): Page, content: &[u8]) -> io::Result<bool> {
    let Some(path) = path(file) else { return Ok(false) };
    let file = File::options().read(true).write(true).open(path)?;
    let former = read_page(&file, page)?;
    let content = &content[..former.len()];
    if content == former {
        return Ok(false);
    }
    file.write_all_at(content, page * PAGE_BYTES)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_model::device::Kind;

    const HOLE: Hole = Hole { members: 4, piece_pages: 16 };

    #[test]
    fn each_member_has_one_piece_of_a_row_or_its_parity() {
        for row in 0..9 {
            let mut columns: Vec<_> = (0..4).map(|member| HOLE.column_of(row, member)).collect();
            assert_eq!(columns.iter().position(Option::is_none), Some(3 - (row % 4) as usize));
            columns.sort_unstable();
            assert_eq!(columns, [None, Some(0), Some(1), Some(2)]);
        }
        assert_eq!([0, 16, 47, 48].map(|page| HOLE.place(page)), [(0, 0, 0), (0, 1, 0), (0, 2, 15), (1, 0, 0)]);
    }

    #[test]
    fn a_rule_has_a_geometry_or_is_refused() {
        let of = |text: &str| Hole::of(&[serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}"))]);
        assert_eq!(of(r#"{"kind": "write-hole"}"#).ok(), Some(Some(HOLE)));
        assert_eq!(of(r#"{"kind": "eio"}"#).ok(), Some(None));
        for wrong in [r#"{"kind": "write-hole", "members": 2}"#, r#"{"kind": "write-hole", "stripe_kb": 6}"#] {
            let refused = of(wrong).map_or_else(|error| error.to_string(), |_| String::new());
            assert!(refused.contains("3 to 256 members"), "{refused}");
        }
    }

    /// A file fills a row, and a power cut interrupts the write of its first page: the rebuild of a lost member yields
    /// correct pages, or damages them.
    #[test]
    fn only_pages_of_the_row_and_offset_of_an_unsynced_page_are_damaged_by_the_exclusive_or_of_its_versions() {
        let folder = std::env::temp_dir().join(format!("dyno-hole-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{error}"));
        let file = folder.join("file");
        let former: Vec<u8> = (0..96 * PAGE_BYTES).map(|at| (at / PAGE_BYTES) as u8).collect();
        let page = PAGE_BYTES as usize;
        let mut extents = Extents::new(1 << 30);
        extents.pieces(Kind::Write, 7, 0, former.len() as u64);
        let (mut seen, mut harmless) = (std::collections::BTreeSet::new(), 0);
        for seed in 0..200 {
            let mut after = former.clone();
            after[..page].fill(200);
            let unsure = [Unsure { file: 7, page: 0, former: former[..page].to_vec(), latest: after[..page].to_vec() }];
            std::fs::write(&file, &after).unwrap_or_else(|error| panic!("{error}"));
            let mut dice = Xoshiro256::new(seed);
            let damaged = HOLE.rebuild(&mut dice, &extents, &unsure, |number| (number == 7).then(|| file.clone()));
            let found = std::fs::read(&file).unwrap_or_else(|error| panic!("{error}"));
            for (_, own) in damaged.unwrap_or_else(|error| panic!("{error}")) {
                let at = own as usize * page;
                let versions = 0xc8 ^ former[0];
                let wanted = if own == 0 { former[0] } else { former[at] ^ versions };
                assert_eq!(found[at..at + page], vec![wanted; page], "page {own}");
                after[at..at + page].fill(wanted);
                seen.insert(own);
            }
            harmless += i32::from(found == former);
            assert_eq!(found, after, "seed {seed}");
        }
        std::fs::remove_dir_all(&folder).unwrap_or_else(|error| panic!("{error}"));
        // The pages at the same place of the other two pieces, and its own former content.
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 16, 32]);
        assert!(harmless > 0);
    }
}
