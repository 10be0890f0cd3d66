//! Class of the waits that each store instruction begins or ends, as far as the code shows it.
//!
//! With the classes, the probes of one class can be removed while those of the others stay. The store at the start of a
//! wait writes its event number, whose first byte is the class; the store at its end writes zero, whatever the class.
//! So each start is followed to the ends that it reaches, and the stores that are connected in this way have one class
//! or none. A number that is passed in a register gets the class of its function. Waits of many classes (client,
//! heavyweight locks, idle) go through the same store in the latch's code, which therefore has no class: its probes are
//! never removed separately.

use std::collections::{HashMap, HashSet};

use iced_x86::FlowControl;

use crate::code::Code;
use crate::place::{Site, Value};

/// Class of lightweight locks.
pub const LWLOCK: u8 = 0x01;
/// Class of waits for other processes.
pub const IPC: u8 = 0x08;
/// Class of timeouts.
pub const TIMEOUT: u8 = 0x09;
/// Class of input and output.
pub const IO: u8 = 0x0a;
/// Classes whose probes can be removed separately.
pub const CLASSES: [u8; 4] = [LWLOCK, IPC, TIMEOUT, IO];

/// Functions whose waits have their event number in a register.
const LOCKING: [&str; 3] = ["LWLockAcquire", "LWLockAcquireOrWait", "LWLockWaitForVar"];
const FILING: [&str; 11] = [
    "FileRead",
    "FileReadV",
    "FileWrite",
    "FileWriteV",
    "FileSync",
    "FileTruncate",
    "FilePrefetch",
    "FileWriteback",
    "FileZero",
    "FileFallocate",
    "pgaio_io_perform_synchronously",
];
/// Largest number of instructions searched for the end of a wait, from the store that begins it.
const WALK: usize = 3_000;

/// Number of instructions at the start of a function among which a store that ends a wait is searched for.
const AT_ONCE: usize = 3;

/// Returns the name of a class.
pub fn name(class: u8) -> &'static str {
    match class {
        LWLOCK => "LWLock",
        IPC => "IPC",
        TIMEOUT => "Timeout",
        IO => "IO",
        _ => "any",
    }
}

/// Returns the class of each store, by its address; stores without a class are left out.
pub fn classes(code: &Code<'_>, sites: &[Site]) -> HashMap<u64, u8> {
    let stores: HashMap<u64, usize> = sites.iter().enumerate().map(|(at, site)| (site.store, at)).collect();
    let mut groups: Vec<usize> = (0..sites.len()).collect();
    let mut labels = vec![None; sites.len()];
    for (at, site) in sites.iter().enumerate().filter(|(_, site)| site.value != Value::Known(0)) {
        let ends = ends(code, site.store, &stores, sites);
        // Without an end, its probe would open a wait that nothing closes once the other classes' probes are gone.
        labels[at] = Some(if ends.is_empty() { 0 } else { label(code, site) });
        for end in ends {
            let (one, other) = (root(&groups, at), root(&groups, end));
            groups[one] = other;
        }
    }
    let mut of_group: HashMap<usize, HashSet<u8>> = HashMap::new();
    for (at, label) in labels.iter().enumerate() {
        of_group.entry(root(&groups, at)).or_default().extend(*label);
    }
    let class = |at: usize| match of_group.get(&root(&groups, at)).map(|found| found.iter().collect::<Vec<_>>()) {
        Some(found) if found.len() == 1 && CLASSES.contains(found[0]) => Some(*found[0]),
        _ => None,
    };
    sites.iter().enumerate().filter_map(|(at, site)| Some((site.store, class(at)?))).collect()
}

fn root(groups: &[usize], mut at: usize) -> usize {
    while groups[at] != at {
        at = groups[at];
    }
    at
}

/// Returns the stores of zero that the code after the start of a wait reaches before any other store.
fn ends(code: &Code<'_>, begin: u64, stores: &HashMap<u64, usize>, sites: &[Site]) -> Vec<usize> {
    let (mut open, mut seen, mut found) = (vec![begin], HashSet::new(), Vec::new());
    while let Some(addr) = open.pop().filter(|_| seen.len() < WALK) {
        let Some(at) = code.at(addr).filter(|_| seen.insert(addr)) else { continue };
        if let Some(end) = stores.get(&addr).filter(|_| addr != begin) {
            found.extend(Some(*end).filter(|end| sites[*end].value == Value::Known(0)));
            continue;
        }
        match at.flow_control() {
            FlowControl::UnconditionalBranch => open.push(at.near_branch_target()),
            FlowControl::ConditionalBranch => open.extend([at.next_ip(), at.near_branch_target()]),
            FlowControl::Call => match called(code, at.near_branch_target(), stores) {
                Some(end) => found.extend(Some(end).filter(|end| sites[*end].value == Value::Known(0))),
                None => open.push(at.next_ip()),
            },
            FlowControl::Next | FlowControl::IndirectCall => open.push(at.next_ip()),
            _ => {}
        }
    }
    found
}

/// Returns the store with which a called function starts; `None` if it starts with no store. Builds for size put the
/// end of a wait in a function.
fn called(code: &Code<'_>, function: u64, stores: &HashMap<u64, usize>) -> Option<usize> {
    let mut next = function;
    for _ in 0..AT_ONCE {
        if let Some(store) = stores.get(&next) {
            return Some(*store);
        }
        let at = code.at(next).filter(|at| at.flow_control() == FlowControl::Next)?;
        next = at.next_ip();
    }
    None
}

/// Returns the class of the wait that a store instruction begins; 0 if it is unknown.
fn label(code: &Code<'_>, site: &Site) -> u8 {
    let inside = |names: &[&str]| {
        let of = |name: &&str| code.image.symbol(name);
        names.iter().filter_map(of).any(|s| (s.addr..s.addr + s.size).contains(&site.store))
    };
    match site.value {
        Value::Known(event) => (event >> 24) as u8,
        Value::Register(_) if inside(&LOCKING) => LWLOCK,
        // The caller passes which IO event it is.
        Value::Register(_) if inside(&FILING) => IO,
        Value::Register(_) => 0,
    }
}
