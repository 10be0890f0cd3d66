//! Records in a ring of perf, parsed as far as they are needed. These functions are pure: they turn bytes into notes.
//!
//! Records have two forms. A full record ends with process, time and event. A light record ends with the time only,
//! because looking up process ids takes the kernel a tenth of the time of a note, and twice as much for a switch. The
//! fields of a defined tracepoint contain event and process anyway.

/// Contents of one record, as far as they are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// An event occurred.
    Sample {
        /// Id of the event.
        id: u64,
        /// Value of the requested register.
        register: u64,
        /// Fields of the tracepoint, as raw bytes.
        raw: Vec<u8>,
    },
    /// The task was taken off the processor (`true`) or put on it (`false`).
    Switch(bool),
    /// A process was created.
    Fork {
        /// Process id of the parent.
        parent: i32,
    },
    /// The process ended.
    Exit,
    /// This number of records was lost.
    Lost(u64),
}

/// Note with its time and process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time by the monotonic clock [ns].
    pub at_ns: u64,
    /// Process id; 0 if it is unknown.
    pub pid: i32,
    /// Contents of the record.
    pub note: Note,
}

pub(crate) fn u64_at(body: &[u8], at: usize) -> Option<u64> {
    body.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
}

fn u32_at(body: &[u8], at: usize) -> Option<u32> {
    body.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
}

const LOST: u32 = 2;
const EXIT: u32 = 4;
const FORK: u32 = 7;
/// Kind of a record that is a sample.
pub(crate) const SAMPLE: u32 = 9;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;
/// Flag of a switch: the task is taken off the processor.
const OUT: u16 = 1 << 13;

/// Parses a full record.
///
/// `holds` returns for an event id whether its samples contain a register, and whether they contain fields.
pub fn full(kind: u32, misc: u16, body: &[u8], holds: &dyn Fn(u64) -> (bool, bool)) -> Option<Record> {
    if kind == SAMPLE { sample(body, holds) } else { record(kind, misc, body) }
}

/// Parses a light record; `on` tracks which process is on the ring's processor.
pub fn light(kind: u32, misc: u16, body: &[u8], on: &mut Option<i32>) -> Option<Record> {
    if kind == SAMPLE { light_sample(body) } else { light_record(kind, misc, body, on) }
}

/// Parses a full record that is not a sample; all end with process, time and event.
pub(crate) fn record(kind: u32, misc: u16, body: &[u8]) -> Option<Record> {
    let trailer = body.len().checked_sub(24)?;
    let (pid, at_ns) = (u32_at(body, trailer)? as i32, u64_at(body, trailer + 8)?);
    if matches!(kind, SWITCH | SWITCH_CPU_WIDE) {
        return Some(Record { at_ns, pid, note: Note::Switch(misc & OUT != 0) });
    }
    other_record(kind, body, at_ns, pid)
}

/// Parses a light record that is not a sample.
///
/// A switch record names the task that gets the processor, or the task that had it before. So the task that is taken
/// off is the one that the previous switch of this processor put on.
fn light_record(kind: u32, misc: u16, body: &[u8], on: &mut Option<i32>) -> Option<Record> {
    let at_ns = u64_at(body, body.len().checked_sub(8)?)?;
    if kind == SWITCH_CPU_WIDE {
        let is_out = misc & OUT != 0;
        let pid = if is_out { on.replace(u32_at(body, 0)? as i32) } else { *on };
        return Some(Record { at_ns, pid: pid?, note: Note::Switch(is_out) });
    }
    if kind == LOST {
        *on = None;
    }
    other_record(kind, body, at_ns, 0)
}

fn other_record(kind: u32, body: &[u8], at_ns: u64, pid: i32) -> Option<Record> {
    let (pid, note) = match kind {
        // A thread is not a process.
        FORK if u32_at(body, 0)? == u32_at(body, 8)? => {
            (u32_at(body, 0)? as i32, Note::Fork { parent: u32_at(body, 4)? as i32 })
        }
        EXIT if u32_at(body, 0)? == u32_at(body, 8)? => (u32_at(body, 0)? as i32, Note::Exit),
        LOST => (pid, Note::Lost(u64_at(body, 8)?)),
        _ => return None,
    };
    Some(Record { at_ns, pid, note })
}

fn sample(body: &[u8], holds: &dyn Fn(u64) -> (bool, bool)) -> Option<Record> {
    let id = u64_at(body, 0)?;
    let (pid, at_ns) = (u32_at(body, 8)? as i32, u64_at(body, 16)?);
    let (has_register, has_raw) = holds(id);
    let (mut at, mut raw, mut register) = (24, Vec::new(), 0);
    if has_raw {
        let size = u32_at(body, at)? as usize;
        raw = body.get(at + 4..at + 4 + size)?.to_vec();
        at += 4 + size;
    }
    if has_register && u64_at(body, at)? != 0 {
        register = u64_at(body, at + 8)?;
    }
    Some(Record { at_ns, pid, note: Note::Sample { id, register, raw } })
}

/// Parses a sample that consists of a time and fields.
///
/// The fields begin with the tracepoint's number (two bytes) and, two bytes later, the thread id in the initial pid
/// namespace; the server's processes have one thread.
fn light_sample(body: &[u8]) -> Option<Record> {
    let at_ns = u64_at(body, 0)?;
    let size = u32_at(body, 8)? as usize;
    let raw = body.get(12..12 + size)?.to_vec();
    let (id, pid) = (u64::from(u32_at(&raw, 0)? & 0xffff), u32_at(&raw, 4)? as i32);
    Some(Record { at_ns, pid, note: Note::Sample { id, register: 0, raw } })
}

#[cfg(test)]
mod tests {
    use super::{FORK, LOST, Note, OUT, Record, SWITCH_CPU_WIDE, light_record, light_sample};

    fn switch(at_ns: u64, is_out: bool, other: u32, on: &mut Option<i32>) -> Option<Record> {
        let body = [other.to_le_bytes(), other.to_le_bytes()].concat();
        let misc = if is_out { OUT } else { 0 };
        light_record(SWITCH_CPU_WIDE, misc, &[body, at_ns.to_le_bytes().to_vec()].concat(), on)
    }

    #[test]
    fn who_goes_off_a_processor_is_who_came_on_it_last() {
        let mut on = None;
        assert_eq!(switch(1, true, 7, &mut on), None, "who was there before the first switch is not known");
        let told = |at_ns, pid, is_out| Some(Record { at_ns, pid, note: Note::Switch(is_out) });
        assert_eq!(switch(2, false, 5, &mut on), told(2, 7, false));
        assert_eq!(switch(3, true, 0, &mut on), told(3, 7, true));
        assert_eq!(switch(3, false, 7, &mut on), told(3, 0, false));
    }

    #[test]
    fn nobody_is_known_to_be_on_a_processor_whose_notes_were_lost() {
        let mut on = Some(7);
        let lost = [1u64.to_le_bytes(), 12u64.to_le_bytes(), 9u64.to_le_bytes()].concat();
        let told = light_record(LOST, 0, &lost, &mut on).map(|record| record.note);
        assert_eq!((told, on), (Some(Note::Lost(12)), None));
        assert_eq!(switch(10, true, 8, &mut on), None);
    }

    #[test]
    fn a_light_note_names_its_process_by_its_fields_and_a_fork_by_its_body() {
        let fields = [&[0x34, 0x12, 0, 0][..], &77u32.to_le_bytes(), &[9; 8]].concat();
        let body = [&5u64.to_le_bytes()[..], &16u32.to_le_bytes(), &fields].concat();
        let told = light_sample(&body).expect("a whole sample");
        assert_eq!((told.at_ns, told.pid), (5, 77));
        assert_eq!(told.note, Note::Sample { id: 0x1234, register: 0, raw: fields });
        let ids = [8u32, 7, 8, 7].map(u32::to_le_bytes).concat();
        let fork = light_record(FORK, 0, &[ids, vec![0; 8], 6u64.to_le_bytes().to_vec()].concat(), &mut None);
        assert_eq!(fork, Some(Record { at_ns: 6, pid: 8, note: Note::Fork { parent: 7 } }));
    }
}
