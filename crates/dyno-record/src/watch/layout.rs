//! Places where a backend keeps its current statement, derived from the code that writes them.
//!
//! The server publishes the query id and the text of a statement in its entry of shared memory (`MyBEEntry`). Their
//! offsets change with the version; the functions that write them are exported, so their code shows the offsets. A
//! second watchpoint is on the query id: `pgstat_report_activity` clears it whenever a statement begins, and its
//! caller (the return address on the stack) shows whether it was Parse, Bind or Execute.

use std::collections::HashMap;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::code::Code;
use crate::elf::{Image, Symbol};
use crate::probes::{Kind, kind};

/// Places in an entry of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Address of the variable that points to the entry.
    pub entry: u64,
    /// Offset of the query id within the entry.
    pub query_id: u64,
    /// Offset, within the entry, of the pointer to the text.
    pub text: Option<u64>,
    /// Start and end of the function that begins statements.
    pub takes_up: (u64, u64),
    /// Kind of call that each return address shows.
    pub kinds: HashMap<u64, Kind>,
}

/// Number of stack bytes that are searched for the return address.
pub const STACK: u32 = 256;

fn instructions<'a>(code: &'a Code<'_>, function: Symbol) -> impl Iterator<Item = Instruction> + 'a {
    let end = function.addr + function.size;
    let mut next = function.addr;
    std::iter::from_fn(move || {
        let at = code.at(next).filter(|at| at.ip() < end)?;
        next = at.next_ip();
        Some(at)
    })
}

/// Returns true if the instruction stores through a pointer other than the stack pointer or the instruction pointer.
fn stores(at: &Instruction) -> bool {
    at.op0_kind() == OpKind::Memory
        && !at.is_ip_rel_memory_operand()
        && !matches!(at.memory_base(), Register::RSP | Register::None)
        && (at.memory_displacement64() as i64) >= 0
        && format!("{:?}", at.mnemonic()).starts_with("Mov")
}

/// Returns the offset to which `st_query_id = query_id` writes; this statement stores the function's argument
/// unchanged.
fn query_id(code: &Code<'_>, function: Symbol) -> Option<u64> {
    let found = |at: &Instruction| {
        stores(at)
            && at.op1_kind() == OpKind::Register
            && at.op1_register() == Register::RDI
            && at.memory_index() == Register::None
    };
    instructions(code, function).find(found).map(|at| at.memory_displacement64()).filter(|place| *place > 0)
}

/// Returns the offset from which `st_activity_raw[len] = '\0'` reads a pointer; it then stores a zero byte through that
/// pointer.
fn text(code: &Code<'_>, function: Symbol) -> Option<u64> {
    let all: Vec<Instruction> = instructions(code, function).collect();
    all.windows(2).find_map(|pair| {
        let reads = pair[0].mnemonic() == Mnemonic::Mov
            && pair[0].op0_kind() == OpKind::Register
            && pair[0].op0_register().is_gpr64()
            && pair[0].op1_kind() == OpKind::Memory
            && !pair[0].is_ip_rel_memory_operand();
        let ends = stores(&pair[1])
            && pair[1].memory_size().size() == 1
            && pair[1].op1_kind() == OpKind::Immediate8
            && pair[1].memory_base() == pair[0].op0_register();
        (reads && ends).then(|| pair[0].memory_displacement64())
    })
}

/// Returns the layout that the program's code shows, or `None` if the code is not as expected.
pub fn layout(code: &Code<'_>, image: &Image) -> Option<Layout> {
    let activity = image.symbol("pgstat_report_activity")?;
    let query_id = query_id(code, image.symbol("pgstat_report_query_id")?)?;
    let covers = |at: &Instruction| {
        let from = at.memory_displacement64();
        stores(at) && (from..from + at.memory_size().size() as u64).contains(&query_id)
    };
    if !instructions(code, activity).any(|at| covers(&at)) {
        return None;
    }
    let kinds = code.callers(activity.addr).iter();
    let kinds = kinds.filter_map(|caller| Some((code.at(*caller)?.next_ip(), kind(code, *caller)))).collect();
    Some(Layout {
        entry: image.symbol("MyBEEntry")?.addr,
        query_id,
        text: text(code, activity),
        takes_up: (activity.addr, activity.addr + activity.size),
        kinds,
    })
}

impl Layout {
    /// Returns the layout for processes in which the program is loaded `shift` bytes higher.
    #[must_use]
    pub fn shifted(self, shift: u64) -> Self {
        let up = |addr: u64| addr.wrapping_add(shift);
        Self {
            entry: up(self.entry),
            takes_up: (up(self.takes_up.0), up(self.takes_up.1)),
            kinds: self.kinds.into_iter().map(|(addr, kind)| (up(addr), kind)).collect(),
            ..self
        }
    }

    /// Returns true if the code at `ip` begins a statement.
    pub fn is_take_up(&self, ip: u64) -> bool {
        (self.takes_up.0..=self.takes_up.1).contains(&ip)
    }

    /// Returns the kind of call, from the return addresses on the stack.
    pub fn kind(&self, stack: &[u8]) -> Kind {
        let mut words = stack.chunks_exact(8).filter_map(|word| word.try_into().ok()).map(u64::from_le_bytes);
        words.find_map(|word| self.kinds.get(&word)).copied().unwrap_or(Kind::Exec)
    }
}
