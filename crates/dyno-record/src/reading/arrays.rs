//! Arrays of the server's processes in its shared memory: `PGPROC` and `PgBackendStatus`.
//!
//! Sizes and offsets change with the version and the build, so they are taken from the running server: from pointers
//! that its processes have to their own elements, and from values that the server writes into every element when it
//! starts. Each result is checked in a second way, and refused if it does not fit.

use std::collections::HashSet;

use super::memory::Memory;

/// Largest plausible size of an element [bytes] (`BYTES_MOST`) and number of elements (`COUNT_MOST`).
const BYTES_MOST: u64 = 4096;
const COUNT_MOST: usize = 1 << 18;
/// Size of a process's application name in the server, NUL included [bytes].
pub const NAME_BYTES: u64 = 64;
/// Offset of the number of elements in the header that `ProcGlobal` points to, after four pointers.
const COUNT_AT: u64 = 32;
/// Offsets in `PgBackendStatus` that are the same in versions 14 to 18 [bytes].
pub const PID_AT: u64 = 4;
/// Offset of the start of the transaction [microseconds since 2000].
pub const XACT_AT: u64 = 24;
/// Offset of the start of the statement [microseconds since 2000].
pub const STATEMENT_AT: u64 = 32;
/// Offset of the start of the state [microseconds since 2000].
pub const STATE_AT: u64 = 40;

/// A process's pointers to its own elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Process id.
    pub pid: i32,
    /// Address of the process's element of the process array.
    pub proc: u64,
    /// Address of the process's wait word.
    pub word: u64,
    /// Address of the process's element of the status array, once it has one.
    pub entry: Option<u64>,
}

/// Offsets of a statement's query id and text in `PgBackendStatus`, found in the code that writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Offset of the query id.
    pub query_id: u64,
    /// Offset of the pointer to the text.
    pub text: u64,
}

/// Array in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// Address of the first element.
    pub first: u64,
    /// Size of an element [bytes].
    pub bytes: u64,
    /// Number of elements.
    pub count: usize,
}

impl Array {
    /// Returns the address of an element.
    pub fn at(&self, number: usize) -> u64 {
        self.first + self.bytes * number as u64
    }

    /// Returns the number of the element that begins at an address.
    pub fn number(&self, addr: u64) -> Option<usize> {
        let from = addr.checked_sub(self.first).filter(|from| from.is_multiple_of(self.bytes))?;
        Some((from / self.bytes) as usize).filter(|number| *number < self.count)
    }
}

/// Addresses of the server's process array and status array, and the offsets of the fields in an element of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrays {
    /// Process array.
    pub procs: Array,
    /// Offset of the process id in an element of the process array.
    pub pid: u64,
    /// Offset of the wait word in an element of the process array.
    pub word: u64,
    /// Status array.
    pub entries: Array,
    /// Offset of the state in an element of the status array.
    pub state: u64,
    /// Offsets of the statement's fields in an element of the status array.
    pub published: Published,
    /// Room for the text of a statement [bytes].
    pub text_bytes: usize,
}

/// Finds the arrays; `header` is the address to which `ProcGlobal` points.
///
/// # Errors
/// A phrase that says what does not fit.
pub fn find(memory: &dyn Memory, header: u64, samples: &[Sample], published: Published) -> Result<Arrays, String> {
    let entries = samples.iter().filter_map(|one| Some((one.pid, one.entry?))).collect::<Vec<_>>();
    let (Some(one), Some(entry)) = (samples.first(), entries.first()) else {
        return Err("no process of the server shows its place in it".to_owned());
    };
    let (procs, pid) = processes(memory, header, samples)?;
    let (entries, text_bytes) = statuses(memory, &entries, published)?;
    let state = published.text - 16;
    match memory.u32(entry.1 + state) {
        Some(0..=8) => {}
        found => return Err(format!("a session's state is {found:?}")),
    }
    Ok(Arrays { procs, pid, word: one.word - one.proc, entries, state, published, text_bytes })
}

/// Finds the process array, and the offset of the process id.
fn processes(memory: &dyn Memory, header: u64, samples: &[Sample]) -> Result<(Array, u64), String> {
    let first = memory.u64(header).ok_or("the process array is not in it")?;
    let count = memory.u32(header + COUNT_AT).unwrap_or(0) as usize;
    if !(samples.len()..=COUNT_MOST).contains(&count) {
        return Err(format!("the process array has {count} elements"));
    }
    let word = samples[0].word.wrapping_sub(samples[0].proc);
    if word >= BYTES_MOST || samples.iter().any(|one| one.word.wrapping_sub(one.proc) != word) {
        return Err("the wait words are not at one place of their processes".to_owned());
    }
    let is_pid = |at: &u64| samples.iter().all(|one| memory.u32(one.proc + at) == Some(one.pid as u32));
    // The first place is the latch's owner. It is emptied when a process ends; its own id behind it is not, before 17.
    let pid = (0..word).step_by(4).find(is_pid).ok_or("no place has the process ids")?;
    if samples.iter().any(|one| one.proc < first) {
        return Err("a process is in front of the process array".to_owned());
    }
    let apart = samples.iter().fold(0, |found, one| divisor(found, one.proc - first));
    let bytes = element_bytes(memory, first, count, (word + 4, apart)).ok_or("the size of a process is unknown")?;
    let procs = Array { first, bytes, count };
    if samples.iter().any(|one| procs.number(one.proc).is_none()) {
        return Err("a process is not in the process array".to_owned());
    }
    Ok((procs, pid))
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Returns the size of an array element: the smallest divisor of the known elements' distances that fits.
///
/// A size fits if nearly all elements then have empty lists at the same offsets as the first one. When the server starts it makes each process's lists of held locks empty: such a list points to itself.
fn element_bytes(memory: &dyn Memory, first: u64, count: usize, (least, apart): (u64, u64)) -> Option<u64> {
    let is_empty_list = |addr: u64| memory.u64(addr) == Some(addr) && memory.u64(addr + 8) == Some(addr);
    let sizes =
        (least.next_multiple_of(8)..=BYTES_MOST.min(apart)).step_by(8).filter(|size| apart.is_multiple_of(*size));
    let fits = |size: &u64| {
        let lists: Vec<u64> = (0..*size).step_by(8).filter(|at| is_empty_list(first + at)).collect();
        // A few lists are in use wherever sessions hold locks.
        let alike = (0..count).filter(|number| {
            let element = first + size * *number as u64;
            lists.iter().filter(|at| is_empty_list(element + **at)).count() * 2 > lists.len()
        });
        !lists.is_empty() && alike.count() * 10 >= count * 9
    };
    let mut sizes = sizes;
    sizes.find(fits)
}

/// Finds the status array, and the room for a text in it.
///
/// Every element has a pointer to its own place for an application name, and those places follow one another.
fn statuses(memory: &dyn Memory, known: &[(i32, u64)], published: Published) -> Result<(Array, usize), String> {
    if published.text < 16 + STATEMENT_AT {
        return Err("the place of a text is unknown".to_owned());
    }
    let name_of = |entry: u64| memory.u64(entry + published.text - 8);
    let is_next = |entry: u64, other: u64, by: u64| matches!((name_of(entry), name_of(other)), (Some(a), Some(b)) if b == a.wrapping_add(by));
    let (_, one) = known[0];
    let is_size =
        |size: &u64| is_next(one, one + size, NAME_BYTES) || is_next(one.wrapping_sub(*size), one, NAME_BYTES);
    let mut sizes = (published.query_id + 8..BYTES_MOST).step_by(8);
    let bytes = sizes.find(is_size).ok_or("the size of a status is unknown")?;
    let mut first = one;
    while is_next(first.wrapping_sub(bytes), first, NAME_BYTES) {
        first -= bytes;
    }
    let mut count = ((one - first) / bytes) as usize + 1;
    while count < COUNT_MOST && is_next(first + bytes * (count as u64 - 1), first + bytes * count as u64, NAME_BYTES) {
        count += 1;
    }
    let entries = Array { first, bytes, count };
    let mut places = HashSet::new();
    for (pid, entry) in known {
        if entries.number(*entry).is_none() || memory.u32(entry + PID_AT) != Some(*pid as u32) {
            return Err(format!("process {pid} is not where the status array has it"));
        }
        places.insert(entry);
    }
    let text = |number: usize| memory.u64(entries.at(number) + published.text);
    let text_bytes = match (text(0), text(1)) {
        (Some(a), Some(b)) if count > 1 && (100..=1 << 20).contains(&b.wrapping_sub(a)) => (b - a) as usize,
        _ => return Err("the room for a text is unknown".to_owned()),
    };
    if places.len() < known.len() { Err("two processes have one status".to_owned()) } else { Ok((entries, text_bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7000_0000;
    const PROC: u64 = 880;
    const ENTRY: u64 = 432;
    const PUBLISHED: Published = Published { query_id: 0x1a8, text: 0xf8 };

    struct Fake(Vec<u8>);

    impl Memory for Fake {
        fn read(&self, addr: u64, into: &mut [u8]) -> Option<()> {
            let from = addr.checked_sub(BASE)? as usize;
            into.copy_from_slice(self.0.get(from..from + into.len())?);
            Some(())
        }
    }

    impl Fake {
        fn put(&mut self, addr: u64, value: u64) {
            self.0[(addr - BASE) as usize..][..8].copy_from_slice(&value.to_le_bytes());
        }

        fn put_pid(&mut self, addr: u64, pid: i32) {
            self.0[(addr - BASE) as usize..][..4].copy_from_slice(&pid.to_le_bytes());
        }
    }

    /// Returns a server with twelve processes: header, processes, statuses.
    fn server(lists: u64) -> (Fake, Vec<Sample>) {
        let mut memory = Fake(vec![0; 1 << 16]);
        let (procs, entries) = (BASE + 0x100, BASE + 0x4000);
        memory.put(BASE, procs);
        memory.put(BASE + COUNT_AT, 12);
        for number in 0..12 {
            for at in 0..16 {
                let list = procs + number * PROC + lists + at * 16;
                memory.put(list, list);
                memory.put(list + 8, list);
            }
            memory.put(entries + number * ENTRY + 0xf0, BASE + 0x8000 + number * NAME_BYTES);
            memory.put(entries + number * ENTRY + 0xf8, BASE + 0x9000 + number * 1024);
        }
        // The elements 2, 6 and 10: their distances alone would allow four times the size.
        let sample = |number: u64| {
            let proc = procs + number * PROC;
            Sample { pid: 1000 + number as i32, proc, word: proc + 0x2c8, entry: Some(entries + number * ENTRY) }
        };
        let samples = vec![sample(2), sample(6), sample(10)];
        for one in &samples {
            memory.put_pid(one.proc + 0x24, one.pid);
            memory.put_pid(one.proc + 0x3c, one.pid);
            memory.put_pid(one.entry.unwrap_or_default() + PID_AT, one.pid);
        }
        (memory, samples)
    }

    #[test]
    fn sizes_and_places_are_those_that_every_element_shows() {
        let (memory, samples) = server(0x1a0);
        let found = find(&memory, BASE, &samples, PUBLISHED).expect("it fits");
        assert_eq!(found.procs, Array { first: BASE + 0x100, bytes: PROC, count: 12 });
        assert_eq!(found.entries, Array { first: BASE + 0x4000, bytes: ENTRY, count: 12 });
        assert_eq!((found.pid, found.word, found.state, found.text_bytes), (0x24, 0x2c8, 0xe8, 1024));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_it_is() {
        let refused = |change: &dyn Fn(&mut Fake, &mut Vec<Sample>)| {
            let (mut memory, mut samples) = server(0x1a0);
            change(&mut memory, &mut samples);
            find(&memory, BASE, &samples, PUBLISHED).expect_err("it does not fit")
        };
        assert!(refused(&|_, samples| samples.clear()).contains("no process"));
        assert!(refused(&|_, samples| samples[1].word += 8).contains("wait words"));
        assert!(refused(&|_, samples| samples[1].pid = 7).contains("no place has the process ids"));
        assert!(refused(&|memory, _| memory.put(BASE + COUNT_AT, 0)).contains("0 elements"));
        let elsewhere = |memory: &mut Fake, samples: &mut Vec<Sample>| {
            memory.put_pid(samples[1].entry.unwrap_or_default() + PID_AT, 7);
        };
        assert!(refused(&elsewhere).contains("process 1006 is not where"));
        let state = |memory: &mut Fake, samples: &mut Vec<Sample>| {
            memory.put(samples[0].entry.unwrap_or_default() + 0xe8, 99);
        };
        assert!(refused(&state).contains("state"));
    }

    #[test]
    fn processes_without_a_pattern_of_their_own_are_not_guessed() {
        let (mut memory, samples) = server(0x1a0);
        for at in (0x100..0x4000).step_by(8) {
            if memory.u64(BASE + at).is_some_and(|value| value == BASE + at) {
                memory.put(BASE + at, 0);
            }
        }
        assert!(find(&memory, BASE, &samples, PUBLISHED).is_err());
    }
}
