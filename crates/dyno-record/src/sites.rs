//! The stores to the word that says what a backend waits for, and where a probe beside each is to stand.
//!
//! PostgreSQL tells a wait by `*my_wait_event_info = event` and its end by `*my_wait_event_info = 0`, inlined at some 180
//! places. The pointer is read from its variable just before, so a short walk from each reading finds the store. The
//! probe does not stand on the store, over which the kernel would have to single-step (five to ten times the price),
//! but on a neighbour that it can carry out itself and that runs exactly when the store does.
//!
//! Limits: jumps by a table are not seen as jumps, so a neighbour might, in theory, be reached past its store; the tests
//! compare with a watchpoint on the word itself. Where no neighbour will do, the probe stands on the store.

use std::collections::{BTreeMap, HashMap, HashSet};

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use crate::RecordError;
use crate::code::{Code, named};
use crate::ends;

/// What a store writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// This number.
    Known(u32),
    /// What is in this register (its number as perf counts: see [`crate::perf::REGISTERS`]).
    Register(Register),
}

/// A store and the place of its probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Where the store is.
    pub store: u64,
    /// Where the probe stands.
    pub probe: u64,
    /// What is written.
    pub value: Value,
    /// Whether the kernel must step over a copy of the instruction.
    pub is_stepped: bool,
}

/// Instructions of one walk; a store is a few behind the reading of the pointer.
const WALK: usize = 400;
/// How far a neighbour may be.
const AFTER: usize = 16;
const BEFORE: usize = 4;
/// A server has more; fewer mean that the code is not what we take it for.
const SITES_MIN: usize = 60;
/// What a call may change.
const CLOBBERED: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

fn bit(register: Register) -> u16 {
    let whole = register.full_register();
    if whole.is_gpr64() { 1 << whole.number() } else { 0 }
}

/// All stores, in the order of their addresses.
pub fn sites(code: &Code<'_>, pointer: u64) -> Result<Vec<Site>, RecordError> {
    let mut found = BTreeMap::new();
    let mut factory = InstructionInfoFactory::new();
    for user in code.users(pointer) {
        let Some(first) = code.at(*user) else { continue };
        let holds = reading(&first);
        if holds != 0 {
            walk(code, &mut factory, first.next_ip(), holds, &mut found);
        }
    }
    if found.len() < SITES_MIN {
        return Err(RecordError::Sites(found.len()));
    }
    // Where an end and the next begin have one place, what is written last holds.
    let mut places = BTreeMap::new();
    for (store, value) in found {
        let site = placed(code, &mut factory, store, value);
        places.insert(site.probe, site);
    }
    ends::at_callers(code, &mut places);
    ends::at_returns(code, &mut factory, &mut places);
    let mut sites: Vec<Site> = places.into_values().collect();
    sites.sort_by_key(|site| (site.store, site.probe));
    Ok(sites)
}

/// The register that a reading of the pointer fills.
fn reading(found: &Instruction) -> u16 {
    let is_reading = found.mnemonic() == Mnemonic::Mov
        && found.op0_kind() == OpKind::Register
        && found.op1_kind() == OpKind::Memory
        && found.op0_register().is_gpr64();
    if is_reading { bit(found.op0_register()) } else { 0 }
}

/// Follows the registers that hold the pointer along every way from `from` on.
fn walk(
    code: &Code<'_>,
    factory: &mut InstructionInfoFactory,
    from: u64,
    holds: u16,
    found: &mut BTreeMap<u64, Value>,
) {
    let mut seen: HashMap<u64, u16> = HashMap::new();
    let mut open = vec![(from, holds)];
    for _ in 0..WALK {
        let Some((addr, holds)) = open.pop() else { return };
        let known = seen.entry(addr).or_default();
        if holds & !*known == 0 {
            continue;
        }
        *known |= holds;
        let Some(at) = code.at(addr) else { continue };
        if let Some(value) = stored(&at, holds) {
            found.insert(addr, value);
        }
        let left = after(factory, &at, holds);
        if left == 0 {
            continue;
        }
        match at.flow_control() {
            FlowControl::UnconditionalBranch => open.push((at.near_branch_target(), left)),
            FlowControl::ConditionalBranch => open.extend([(at.near_branch_target(), left), (at.next_ip(), left)]),
            FlowControl::Next | FlowControl::Call => open.push((at.next_ip(), left)),
            _ => {}
        }
    }
}

/// What the instruction writes to the word, if it does.
fn stored(at: &Instruction, holds: u16) -> Option<Value> {
    let is_store = at.mnemonic() == Mnemonic::Mov
        && at.op0_kind() == OpKind::Memory
        && at.memory_size().size() == 4
        && at.memory_index() == Register::None
        && at.memory_displacement64() == 0
        && bit(at.memory_base()) & holds != 0;
    match at.op1_kind() {
        _ if !is_store => None,
        OpKind::Immediate32 => Some(Value::Known(at.immediate32())),
        OpKind::Register => Some(Value::Register(at.op1_register().full_register())),
        _ => None,
    }
}

/// Which registers hold the pointer behind the instruction.
fn after(factory: &mut InstructionInfoFactory, at: &Instruction, holds: u16) -> u16 {
    if at.flow_control() == FlowControl::Call {
        return holds & !CLOBBERED.iter().fold(0, |all, register| all | bit(*register));
    }
    let written = written(factory, at);
    let copied = at.mnemonic() == Mnemonic::Mov
        && at.op0_kind() == OpKind::Register
        && at.op0_register().is_gpr64()
        && at.op1_kind() == OpKind::Register
        && bit(at.op1_register()) & holds != 0;
    let left = holds & !written;
    if copied { left | bit(at.op0_register()) } else { left }
}

fn written(factory: &mut InstructionInfoFactory, at: &Instruction) -> u16 {
    let writes = |access| matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite);
    let used = factory.info(at).used_registers();
    used.iter().filter(|used| writes(used.access())).fold(0, |all, used| all | bit(used.register()))
}

/// The place of a store's probe.
fn placed(code: &Code<'_>, factory: &mut InstructionInfoFactory, store: u64, value: Value) -> Site {
    let probe = behind(code, factory, store, value).or_else(|| in_front(code, factory, store, value));
    let probe = probe.or_else(|| at_entry(code, store, value));
    Site { store, probe: probe.unwrap_or(store), value, is_stepped: probe.is_none() }
}

fn changes(factory: &mut InstructionInfoFactory, at: &Instruction, value: Value) -> bool {
    matches!(value, Value::Register(register) if written(factory, at) & bit(register) != 0)
}

/// The cheap instruction behind one that runs exactly when that does; what `value` is in must stay what it is.
pub(crate) fn behind(code: &Code<'_>, factory: &mut InstructionInfoFactory, store: u64, value: Value) -> Option<u64> {
    let mut next = code.at(store)?.next_ip();
    for _ in 0..AFTER {
        let at = code.at(next)?;
        if code.is_target(next) || named(&at) == Some(0) {
            return None;
        }
        if code.is_cheap(&at) {
            return Some(next);
        }
        if at.flow_control() != FlowControl::Next || changes(factory, &at, value) {
            return None;
        }
        next = at.next_ip();
    }
    None
}

fn in_front(code: &Code<'_>, factory: &mut InstructionInfoFactory, store: u64, value: Value) -> Option<u64> {
    let mut next = store;
    for _ in 0..BEFORE {
        if code.is_target(next) {
            return None;
        }
        let at = code.before(next)?;
        if at.flow_control() != FlowControl::Next || changes(factory, &at, value) {
            return None;
        }
        if code.is_cheap(&at) {
            return Some(at.ip());
        }
        next = at.ip();
    }
    None
}

/// Instructions that are followed from a function's entry to its store, and behind it.
const ENTRY_WALK: usize = 2_000;

/// The function whose waits have many callers.
pub(crate) const WAITS: &str = "WaitEventSetWait";

/// `WaitEventSetWait` has its event as the fifth argument (r8) and stores it once, on every way: where nothing beside the
/// store is cheap, the first instruction of the function is as good.
fn at_entry(code: &Code<'_>, store: u64, value: Value) -> Option<u64> {
    let function = code.image.symbol(WAITS)?;
    let inside = function.addr..function.addr + function.size;
    if value != Value::Register(Register::R8) || !inside.contains(&store) || !code.is_cheap(&code.at(function.addr)?) {
        return None;
    }
    let (to, is_sure) = ways(code, function.addr, store, &inside);
    let (behind, _) = ways(code, code.at(store)?.next_ip(), store, &inside);
    (is_sure && to.contains(&store) && !behind.contains(&store)).then_some(function.addr)
}

/// What is executed from `from` on until `to`, inside of a function; whether all ways lead there.
pub(crate) fn ways(code: &Code<'_>, from: u64, to: u64, inside: &std::ops::Range<u64>) -> (HashSet<u64>, bool) {
    let (mut open, mut seen, mut is_sure) = (vec![from], HashSet::new(), true);
    while let Some(addr) = open.pop() {
        if !seen.insert(addr) || addr == to {
            continue;
        }
        let Some(at) = code.at(addr).filter(|_| inside.contains(&addr) && seen.len() < ENTRY_WALK) else {
            is_sure = false;
            continue;
        };
        match at.flow_control() {
            FlowControl::UnconditionalBranch => open.push(at.near_branch_target()),
            FlowControl::ConditionalBranch => open.extend([at.near_branch_target(), at.next_ip()]),
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => open.push(at.next_ip()),
            _ => is_sure = false,
        }
    }
    (seen, is_sure)
}
