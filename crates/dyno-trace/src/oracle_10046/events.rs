//! Names of events and calls as small numbers, and the common class of an Oracle event.
//!
//! The name stays Oracle's own (`log file sync`); the class (`commit`) is the one that every engine's
//! events share. A class is found by the longest known beginning of the name; what is not known is
//! `other`. Think time (a long message from the client) is `idle`, which a row decides, not a name.

use super::record::CallKind;

/// Words of the call kinds that are not LOB calls, by number.
pub const KINDS: [&str; 8] = ["parse", "exec", "fetch", "unmap", "sort unmap", "close", "lob", "rpc exec"];

/// The common classes, by number.
pub const CLASSES: [&str; 11] = [
    "commit",
    "log write",
    "data read",
    "data write",
    "free buffer",
    "lock",
    "latch",
    "network",
    "CPU",
    "idle",
    "other",
];

/// Class of think time.
pub const IDLE: u8 = 9;
/// Class of CPU time.
pub const CPU: u8 = 8;
/// Class of all that is not known.
pub const OTHER: u8 = 10;

/// Beginnings of names and their classes; the longest that fits counts.
const BEGINNINGS: [(&str, &str); 81] = [
    ("log file sync", "commit"),
    ("log file parallel write", "log write"),
    ("log file single write", "log write"),
    ("log file sequential read", "data read"),
    ("log file switch", "log write"),
    ("log buffer space", "log write"),
    ("log switch", "log write"),
    ("LGWR", "log write"),
    ("LNS", "log write"),
    ("LNS wait", "log write"),
    ("ARCH wait", "log write"),
    ("db file parallel write", "data write"),
    ("db file single write", "data write"),
    ("db file async I/O submit", "data write"),
    ("db file", "data read"),
    ("db flash cache", "data read"),
    ("db flash cache write", "data write"),
    ("direct path read", "data read"),
    ("direct path sync", "data write"),
    ("direct path write", "data write"),
    ("cell ", "data read"),
    ("cell smart flash", "data write"),
    ("read by other session", "data read"),
    ("control file parallel write", "data write"),
    ("control file single write", "data write"),
    ("control file", "data read"),
    ("local write wait", "data write"),
    ("write complete waits", "free buffer"),
    ("free buffer", "free buffer"),
    ("Disk file operations I/O", "data read"),
    ("Disk file Mirror", "data read"),
    ("Datapump dump file I/O", "data read"),
    ("BFILE", "data read"),
    ("external table read", "data read"),
    ("external table write", "data write"),
    ("utl_file I/O", "data read"),
    ("securefile direct-read", "data read"),
    ("securefile direct-write", "data write"),
    ("enq:", "lock"),
    ("enqueue", "lock"),
    ("row cache lock", "lock"),
    ("library cache lock", "lock"),
    ("library cache load lock", "lock"),
    ("library cache pin", "lock"),
    ("library cache: mutex", "latch"),
    ("library cache: bucket mutex", "latch"),
    ("global enqueue", "lock"),
    ("DFS lock handle", "lock"),
    ("latch", "latch"),
    ("wait list latch", "latch"),
    ("cursor:", "latch"),
    ("cursor: pin S wait on X", "lock"),
    ("row cache mutex", "latch"),
    ("row cache read", "latch"),
    ("buffer busy", "latch"),
    ("gc buffer busy", "latch"),
    ("gc ", "network"),
    ("ges ", "network"),
    ("SQL*Net", "network"),
    ("TCP Socket", "network"),
    ("Virtual Circuit", "network"),
    ("virtual circuit", "network"),
    ("dispatcher timer", "idle"),
    ("HS message to agent", "network"),
    ("remote db", "network"),
    ("resmgr:", "CPU"),
    ("PX Deq: Execution Msg", "idle"),
    ("PX Deq Credit: need buffer", "idle"),
    ("PX Idle Wait", "idle"),
    ("PX Deq", "idle"),
    ("PL/SQL lock timer", "idle"),
    ("pipe get", "idle"),
    ("pmon timer", "idle"),
    ("smon timer", "idle"),
    ("rdbms ipc message", "idle"),
    ("Streams AQ: waiting", "idle"),
    ("wait for unread message", "idle"),
    ("jobq slave wait", "idle"),
    ("single-task message", "idle"),
    ("class slave wait", "idle"),
    ("Space Manager: slave idle wait", "idle"),
];

/// The event whose long waits are the user's own time.
pub const FROM_CLIENT: &str = "SQL*Net message from client";

/// Number in [`CLASSES`] of an event's class.
pub fn class_of(event: &str) -> u8 {
    BEGINNINGS
        .iter()
        .filter(|(beginning, _)| event.starts_with(beginning))
        .max_by_key(|(beginning, _)| beginning.len())
        .and_then(|(_, class)| CLASSES.iter().position(|known| known == class))
        .map_or(OTHER, |at| at as u8)
}

/// Number of a call's kind as far as its name does not matter.
#[inline]
pub fn kind_of(kind: CallKind) -> u16 {
    match kind {
        CallKind::Parse => 0,
        CallKind::Exec => 1,
        CallKind::Fetch => 2,
        CallKind::Unmap => 3,
        CallKind::SortUnmap => 4,
        CallKind::Close => 5,
        CallKind::Lob => 6,
        CallKind::Rpc => 7,
    }
}

/// The most different names that are kept; beyond, all count as the last one. Damage makes names.
const NAMES_MAX: usize = 1 << 16;

/// Distinct names in the order of their first appearance; found by a hash made elsewhere.
#[derive(Clone, Debug)]
pub struct Names {
    list: Vec<Vec<u8>>,
    hashes: Vec<u32>,
    /// Number plus one by hash; a power of two long, at most half full.
    slots: Vec<u32>,
}

impl Default for Names {
    fn default() -> Self {
        Self { list: Vec::new(), hashes: Vec::new(), slots: vec![0; 512] }
    }
}

impl Names {
    /// Number of a name, which is added if it is new.
    #[inline]
    pub fn number(&mut self, name: &[u8], hash: u32) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return self.add(name, hash);
            }
            let known = (slot - 1) as usize;
            if self.hashes[known] == hash && self.list[known] == name {
                return slot - 1;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn add(&mut self, name: &[u8], hash: u32) -> u32 {
        if self.list.len() >= NAMES_MAX {
            return self.list.len() as u32 - 1;
        }
        self.list.push(name.to_vec());
        self.hashes.push(hash);
        if self.list.len() * 2 > self.slots.len() {
            self.slots = vec![0; self.slots.len() * 2];
            (0..self.list.len() - 1).for_each(|number| self.place(number));
        }
        self.place(self.list.len() - 1);
        self.list.len() as u32 - 1
    }

    fn place(&mut self, number: usize) {
        let mask = self.slots.len() - 1;
        let mut at = self.hashes[number] as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = number as u32 + 1;
    }

    /// A name by its number; empty for a number that is none.
    pub fn name(&self, number: u32) -> &[u8] {
        self.list.get(number as usize).map_or(b"", |name| name)
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is no name yet.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Events of a file: names with their classes.
#[derive(Clone, Debug, Default)]
pub struct Events {
    names: Names,
    classes: Vec<u8>,
    from_client: Option<u32>,
}

impl Events {
    /// Number of an event, which is added if it is new.
    #[inline]
    pub fn number(&mut self, name: &[u8], hash: u32) -> u32 {
        let number = self.names.number(name, hash);
        if number as usize >= self.classes.len() {
            self.learn(number, name);
        }
        number
    }

    #[cold]
    fn learn(&mut self, number: u32, name: &[u8]) {
        self.classes.push(class_of(&String::from_utf8_lossy(name)));
        if name == FROM_CLIENT.as_bytes() {
            self.from_client = Some(number);
        }
    }

    /// Whether this is the message from the client.
    #[inline]
    pub fn is_from_client(&self, number: u32) -> bool {
        self.from_client == Some(number)
    }

    /// Number of the class of an event.
    #[inline]
    pub fn class(&self, number: u32) -> u8 {
        self.classes.get(number as usize).copied().unwrap_or(OTHER)
    }

    /// Name of an event.
    pub fn name(&self, number: u32) -> String {
        String::from_utf8_lossy(self.names.name(number)).into_owned()
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no event yet.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_known_beginning_tells_the_class() {
        let class = |name| CLASSES[usize::from(class_of(name))];
        assert_eq!(class("log file sync"), "commit");
        assert_eq!(class("db file sequential read"), "data read");
        assert_eq!(class("db file parallel write"), "data write");
        assert_eq!(class("enq: TX - row lock contention"), "lock");
        assert_eq!(class("cursor: pin S wait on X"), "lock");
        assert_eq!(class("cursor: pin S"), "latch");
        assert_eq!(class("SQL*Net more data to client"), "network");
        assert_eq!(class("no such event"), "other");
    }

    #[test]
    fn every_beginning_names_a_class_that_exists() {
        for (_, class) in BEGINNINGS {
            assert!(CLASSES.contains(&class), "{class}");
        }
    }

    #[test]
    fn names_with_the_same_hash_are_kept_apart() {
        let mut names = Names::default();
        assert_eq!(names.number(b"a", 7), 0);
        assert_eq!(names.number(b"b", 7), 1);
        assert_eq!((names.number(b"a", 7), names.number(b"b", 7)), (0, 1));
    }

    #[test]
    fn the_table_grows() {
        let mut names = Names::default();
        for n in 0..5000u32 {
            assert_eq!(names.number(&n.to_le_bytes(), n.wrapping_mul(0x9E37_79B9)), n);
        }
        for n in 0..5000u32 {
            assert_eq!(names.number(&n.to_le_bytes(), n.wrapping_mul(0x9E37_79B9)), n);
        }
        assert_eq!(names.name(4999), 4999u32.to_le_bytes());
    }
}
