//! Instructions that store a backend's wait event, and the place of a probe beside each.
//!
//! PostgreSQL begins a wait by `*my_wait_event_info = event` and ends it by `*my_wait_event_info = 0`, inlined at some
//! 180 places. The program reads the pointer from its variable shortly before, so a short walk from each such read
//! finds the store. The probe is not placed on the store, which the kernel would have to single-step (five to ten times
//! the cost), but on a neighbour that the kernel can emulate and that runs exactly when the store does.
//!
//! Limits: jumps through tables are not recognized, so in theory a neighbour might be reached without its store; the
//! tests compare with a watchpoint on the word itself. If no neighbour is suitable, the probe is on the store.

use std::collections::{BTreeMap, HashMap};

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

use crate::RecordError;
use crate::code::Code;
use crate::ends;
use crate::place::{Site, Value, WAITS, behind, bit, in_front, ways, written};

/// Largest number of instructions of one walk; a store follows the read of the pointer by only a few instructions.
const WALK: usize = 400;
/// Smallest plausible number of stores; with fewer, the program is not a known server.
const SITES_MIN: usize = 60;
/// Registers that a call may change.
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

/// Finds all stores, in the order of their addresses; `pointer` is the address of `my_wait_event_info`.
///
/// # Errors
/// There are too few stores.
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
    // If an end and the next begin share a probe, the value written last counts.
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

/// Returns the bit of the register into which an instruction loads a value from memory; 0 if it is not such a load.
fn reading(found: &Instruction) -> u16 {
    let is_reading = found.mnemonic() == Mnemonic::Mov
        && found.op0_kind() == OpKind::Register
        && found.op1_kind() == OpKind::Memory
        && found.op0_register().is_gpr64();
    if is_reading { bit(found.op0_register()) } else { 0 }
}

/// Follows the registers that hold the pointer along every path from `from` on, and collects the stores.
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

/// Returns the value that the instruction stores as the wait event, or `None` if it is no such store.
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

/// Returns the bits of the registers that hold the pointer after the instruction.
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

/// Returns a store with the place of its probe.
fn placed(code: &Code<'_>, factory: &mut InstructionInfoFactory, store: u64, value: Value) -> Site {
    let probe = behind(code, factory, store, value).or_else(|| in_front(code, factory, store, value));
    let probe = probe.or_else(|| at_entry(code, store, value));
    Site { store, probe: probe.unwrap_or(store), value, is_stepped: probe.is_none() }
}

/// Returns the entry of `WaitEventSetWait` as the place of a probe, if it runs exactly when the store does.
///
/// The function gets its event as the fifth argument (r8) and stores it once, on every path. So if nothing beside the
/// store is cheap, its first instruction serves as well.
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
