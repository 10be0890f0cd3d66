//! Neighbourhood of a store in the code: which nearby instructions run exactly when the store does.

use std::collections::HashSet;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};

use crate::code::{Code, named};

/// Value that a store writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Constant.
    Known(u32),
    /// Contents of this register.
    Register(Register),
}

/// Store instruction that begins or ends a wait, and the place of its probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Address of the store.
    pub store: u64,
    /// Address of the probe.
    pub probe: u64,
    /// Value that is written.
    pub value: Value,
    /// True if the kernel must single-step a copy of the probed instruction.
    pub is_stepped: bool,
}

/// Largest distance from a store to a neighbour [instructions]: `AFTER` if the neighbour follows the store, `BEFORE` if
/// it precedes it.
const AFTER: usize = 16;
const BEFORE: usize = 4;
/// Largest number of instructions that are followed from a function's entry to its store, and after the store.
const ENTRY_WALK: usize = 2_000;

/// Name of a function that stores the wait events of many different callers.
pub(crate) const WAITS: &str = "WaitEventSetWait";

/// Returns the bit of a register, even if only a part of the register is named.
pub(crate) fn bit(register: Register) -> u16 {
    let whole = register.full_register();
    if whole.is_gpr64() { 1 << whole.number() } else { 0 }
}

/// Returns the bits of the registers that an instruction changes.
pub(crate) fn written(factory: &mut InstructionInfoFactory, at: &Instruction) -> u16 {
    let writes = |access| matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite);
    let used = factory.info(at).used_registers();
    used.iter().filter(|used| writes(used.access())).fold(0, |all, used| all | bit(used.register()))
}

fn changes(factory: &mut InstructionInfoFactory, at: &Instruction, value: Value) -> bool {
    matches!(value, Value::Register(register) if written(factory, at) & bit(register) != 0)
}

/// Returns the cheap instruction after the store that runs exactly when the store does.
///
/// The register of `value` must not change in between.
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

/// Returns the cheap instruction before the store that runs exactly when the store does.
///
/// The register of `value` must not change in between.
pub(crate) fn in_front(code: &Code<'_>, factory: &mut InstructionInfoFactory, store: u64, value: Value) -> Option<u64> {
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

/// Returns the addresses executed from `from` until `to` within a function, and whether all paths lead to `to`.
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
