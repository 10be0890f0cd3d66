//! Ends of waits in servers that were built for size.
//!
//! In such servers, no instruction beside the store is cheap to probe; the probe is placed right before or right after
//! the call of the function that contains the store.

use std::collections::{BTreeMap, HashMap};

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory};

use crate::code::Code;
use crate::place::{Site, Value, WAITS, behind, ways};

/// Moves the probes of wait ends that are in a tiny function to the calls of that function.
///
/// Builds for size make the end of a wait a function of three instructions, none of which is cheap to probe. The calls
/// of this function are cheap to probe: each call gets a probe, which comes a few nanoseconds before the store.
pub(crate) fn at_callers(code: &Code<'_>, places: &mut BTreeMap<u64, Site>) {
    let ends: HashMap<u64, Site> =
        stepped_ends(places).filter_map(|site| Some((small_function(code, site.store)?, *site))).collect();
    if ends.is_empty() {
        return;
    }
    let mut callers: HashMap<u64, Vec<Instruction>> = HashMap::new();
    for at in code.jumps_to(&ends.keys().copied().collect::<Vec<_>>()) {
        callers.entry(at.near_branch_target()).or_default().push(at);
    }
    for (function, callers) in callers {
        let is_plain =
            |at: &Instruction| matches!(at.flow_control(), FlowControl::Call | FlowControl::UnconditionalBranch);
        if callers.iter().all(|at| is_plain(at) && !places.contains_key(&at.ip())) {
            let site = |at: &Instruction| Site { probe: at.ip(), is_stepped: false, ..ends[&function] };
            moved(places, ends[&function], callers.iter().map(site));
        }
    }
}

/// Moves the probe of the wait end in `WaitEventSetWait` to the instructions after the calls of that function.
///
/// The function ends its wait once, right before it returns. If no instruction beside that store is cheap to probe,
/// each caller gets a probe after its call, a few nanoseconds after the store. This is done only if nobody else can
/// call the function: otherwise a wait begun by a library's call would never end.
pub(crate) fn at_returns(code: &Code<'_>, factory: &mut InstructionInfoFactory, places: &mut BTreeMap<u64, Site>) {
    let Some(function) = code.image.symbol(WAITS) else { return };
    let inside = function.addr..function.addr + function.size;
    let ends = |site: &&Site| site.value == Value::Known(0) && inside.contains(&site.store);
    let found: Vec<Site> = places.values().filter(ends).copied().collect();
    let [end] = found[..] else { return };
    if !end.is_stepped || !returns(code, end.store, &inside) || code.may_be_called_elsewhere(function.addr, WAITS) {
        return;
    }
    // If nothing cheap follows (in the postmaster's own loop, whose waits are not recorded), the probe directly
    // behind the call is single-stepped.
    let behind_call = |at: &Instruction| {
        let cheap = (at.flow_control() == FlowControl::Call).then(|| behind(code, factory, at.ip(), end.value))?;
        let place = cheap.or_else(|| (!code.is_target(at.next_ip())).then_some(at.next_ip()))?;
        (!places.contains_key(&place)).then_some(Site { probe: place, is_stepped: cheap.is_none(), ..end })
    };
    if let Some(all) = code.jumps_to(&[function.addr]).iter().map(behind_call).collect::<Option<Vec<Site>>>() {
        moved(places, end, all.into_iter());
    }
}

fn stepped_ends(places: &BTreeMap<u64, Site>) -> impl Iterator<Item = &Site> {
    places.values().filter(|site| site.is_stepped && site.value == Value::Known(0))
}

/// Replaces a site by sites at other places.
fn moved(places: &mut BTreeMap<u64, Site>, site: Site, to: impl Iterator<Item = Site>) {
    places.remove(&site.probe);
    places.extend(to.map(|site| (site.probe, site)));
}

/// Returns true if only a return follows an instruction: no call, and no way back into the function.
fn returns(code: &Code<'_>, store: u64, inside: &std::ops::Range<u64>) -> bool {
    let Some(next) = code.at(store).map(|at| at.next_ip()) else { return false };
    let (seen, _) = ways(code, next, store, inside);
    let calls = |at: &u64| {
        code.at(*at).is_none_or(|at| matches!(at.flow_control(), FlowControl::Call | FlowControl::IndirectCall))
    };
    !seen.contains(&store) && !seen.iter().any(calls)
}

/// Returns the start of a function of three instructions: reading the pointer, the store, and a return.
///
/// `None` if the function is larger, or if other code runs into it.
fn small_function(code: &Code<'_>, store: u64) -> Option<u64> {
    let reads = code.before(store).filter(|at| at.flow_control() == FlowControl::Next)?;
    let ends = code.at(code.at(store)?.next_ip())?;
    let before = code.before(reads.ip())?;
    let is_apart = matches!(before.flow_control(), FlowControl::Return | FlowControl::UnconditionalBranch);
    (is_apart && ends.flow_control() == FlowControl::Return && code.is_target(reads.ip())).then_some(reads.ip())
}
