//! Numbers for names in a trace: events, kinds of calls, types of LOBs.

use super::super::events::{KINDS, kind_of};
use super::super::record::{Batch, Call, CallKind, Wait};
use super::super::rows::{Named, Sink};
use super::super::statements::hash64;
use super::Reader;

/// Marks an event that is not known yet.
pub(super) const NO_EVENT: u32 = u32::MAX;
/// Largest number of distinct names of LOB calls.
const LOB_CALLS_MAX: u32 = 1 << 15;

impl<S: Sink> Reader<S> {
    #[inline]
    pub(super) fn kind(&mut self, batch: &Batch, call: &Call) -> u16 {
        if call.kind == CallKind::Lob {
            let name = batch.bytes_of(call.name);
            let known = self.lob_calls.len();
            let number = self.lob_calls.number(name, hash64(name) as u32);
            if self.lob_calls.len() > known {
                self.sink.name(Named::LobCall, number, name);
            }
            return KINDS.len() as u16 + number.min(LOB_CALLS_MAX) as u16;
        }
        kind_of(call.kind)
    }

    #[inline]
    pub(super) fn lob_type(&mut self, batch: &Batch, call: &Call) -> u16 {
        if call.kind != CallKind::Lob || call.lob_type.len == 0 {
            return 0;
        }
        let name = batch.bytes_of(call.lob_type);
        let known = self.lob_types.len();
        let number = self.lob_types.number(name, hash64(name) as u32);
        if self.lob_types.len() > known {
            self.sink.name(Named::LobType, number, name);
        }
        number.min(LOB_CALLS_MAX) as u16 + 1
    }

    /// Returns the number of a wait's event; its name is looked up once per batch.
    #[inline]
    pub(super) fn event_of(&mut self, batch: &Batch, wait: &Wait) -> u32 {
        let at = wait.nam_number.0 as usize;
        match self.batch_events.get(at) {
            Some(&known) if known != NO_EVENT => known,
            _ => {
                let event = self.event(batch.bytes_of(wait.nam), wait.nam_hash);
                if let Some(place) = self.batch_events.get_mut(at) {
                    *place = event;
                }
                event
            }
        }
    }

    pub(super) fn event(&mut self, name: &[u8], hash: u32) -> u32 {
        let known = self.events.len();
        let number = self.events.number(name, hash);
        if self.events.len() > known {
            self.sink.name(Named::Event, number, name);
        }
        number
    }
}
