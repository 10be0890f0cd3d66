//! Names of events and calls as small numbers, and the common class of an Oracle event.
//!
//! The name stays Oracle's own (`log file sync`); the class (`commit`) is the catalogue's, with one exception. In the
//! catalogue `SQL*Net message from client` is `idle`. Here it is a round trip (`network`), unless the single wait is so
//! long that it is think time.

use dyno_evidence::catalogue::{self, Class, Engine};

use super::record::CallKind;

/// Names of the call kinds other than LOB calls, by number.
pub const KINDS: [&str; 8] = ["parse", "exec", "fetch", "unmap", "sort unmap", "close", "lob", "rpc exec"];

/// Number of the class of think time.
pub const IDLE: u8 = Class::Idle as u8;
/// Number of the class of CPU time.
pub const CPU: u8 = Class::Cpu as u8;
/// Number of the class of everything unknown.
pub const OTHER: u8 = Class::Other as u8;

/// Event whose long waits are think time.
pub const FROM_CLIENT: &str = "SQL*Net message from client";

/// Returns the number of an event's class.
pub fn class_of(event: &str) -> u8 {
    let class = if event == FROM_CLIENT { Class::Network } else { catalogue::class_of(Engine::Oracle, "", event) };
    class as u8
}

/// Returns the name of a class by its number.
pub fn class_name(number: u8) -> &'static str {
    Class::ALL.get(usize::from(number)).map_or(Class::Other.name(), |class| class.name())
}

/// Returns the number of a class by its name.
pub fn class_number(name: &str) -> Option<u8> {
    Class::named(name).map(|class| class as u8)
}

/// Returns the number of a call's kind; LOB calls are numbered by name elsewhere.
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

/// Largest number of distinct names; all later names count as the last name. Damaged traces contain random names.
const NAMES_MAX: usize = 1 << 16;

/// Distinct names in the order of their first appearance, found by a hash that the caller computes.
#[derive(Clone, Debug)]
pub struct Names {
    list: Vec<Vec<u8>>,
    hashes: Vec<u32>,
    /// Hash table of the names' numbers plus one, 0 for an empty slot; its length is a power of two, and at most half
    /// of it is used.
    slots: Vec<u32>,
}

impl Default for Names {
    fn default() -> Self {
        Self { list: Vec::new(), hashes: Vec::new(), slots: vec![0; 512] }
    }
}

impl Names {
    /// Returns the number of a name, which is added if it is new.
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

    /// Returns a name by its number, or an empty one if the number is unknown.
    pub fn name(&self, number: u32) -> &[u8] {
        self.list.get(number as usize).map_or(b"", |name| name)
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns true if there is no name yet.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Events of a file: names and classes.
#[derive(Clone, Debug, Default)]
pub struct Events {
    names: Names,
    classes: Vec<u8>,
    from_client: Option<u32>,
}

impl Events {
    /// Returns the number of an event, which is added if it is new.
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

    /// Returns true if the event is the message from the client.
    #[inline]
    pub fn is_from_client(&self, number: u32) -> bool {
        self.from_client == Some(number)
    }

    /// Returns the number of the class of an event.
    #[inline]
    pub fn class(&self, number: u32) -> u8 {
        self.classes.get(number as usize).copied().unwrap_or(OTHER)
    }

    /// Returns the name of an event.
    pub fn name(&self, number: u32) -> String {
        String::from_utf8_lossy(self.names.name(number)).into_owned()
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns true if there is no event yet.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_from_the_client_is_a_round_trip_until_a_row_says_that_it_is_think_time() {
        assert_eq!(class_name(class_of(FROM_CLIENT)), "network");
        assert_eq!(class_name(class_of("log file sync")), "commit");
        assert_eq!(class_number("CPU"), Some(CPU));
        assert_eq!(class_number("no class"), None);
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
