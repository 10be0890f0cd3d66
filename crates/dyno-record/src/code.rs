//! Machine code of the server, decoded once: instruction starts, jump targets, and callers.

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::elf::Image;

/// Decoded code of a program. Jumps through tables are not known: see [`crate::sites`].
pub struct Code<'a> {
    /// The program.
    pub image: &'a Image,
    /// True if the kernel emulates long `nop`s.
    pub long_nops: bool,
    begin: u64,
    bytes: &'a [u8],
    /// Offset of each instruction.
    starts: Vec<u32>,
    /// One bit per byte of the code, set if something jumps to that byte.
    targets: Vec<u64>,
    /// Calls, and jumps out of a function, by the function that they go to.
    callers: HashMap<u64, Vec<u64>>,
    /// Instructions that name one of the requested addresses, by address.
    users: HashMap<u64, Vec<u64>>,
}

impl<'a> Code<'a> {
    /// Decodes the code; records the callers of `functions` and the users of `addresses`.
    pub fn read(image: &'a Image, functions: &[u64], addresses: &[u64]) -> Self {
        let (begin, bytes) = image.text();
        let mut code = Self {
            image,
            long_nops: false,
            begin,
            bytes,
            starts: Vec::with_capacity(bytes.len() / 4),
            targets: vec![0; bytes.len() / 64 + 1],
            callers: HashMap::new(),
            users: HashMap::new(),
        };
        let mut decoder = Decoder::with_ip(64, bytes, begin, DecoderOptions::NONE);
        let mut found = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut found);
            code.starts.push((found.ip() - begin) as u32);
            if matches!(found.op0_kind(), OpKind::NearBranch64) {
                let target = found.near_branch_target();
                code.mark(target);
                if functions.contains(&target) {
                    code.callers.entry(target).or_default().push(found.ip());
                }
            } else if let Some(address) = named(&found)
                && addresses.contains(&address)
            {
                code.users.entry(address).or_default().push(found.ip());
            }
        }
        code
    }

    fn mark(&mut self, target: u64) {
        if let Some(at) = target.checked_sub(self.begin).map(|at| at as usize)
            && at < self.bytes.len()
        {
            self.targets[at / 64] |= 1 << (at % 64);
        }
    }

    /// Returns true if something jumps to this address or calls it.
    pub fn is_target(&self, addr: u64) -> bool {
        addr.checked_sub(self.begin)
            .map(|at| at as usize)
            .and_then(|at| self.targets.get(at / 64).map(|bits| bits >> (at % 64) & 1 == 1))
            .unwrap_or(false)
    }

    /// Returns the addresses of the calls to the function at `addr`, if it was requested.
    pub fn callers(&self, addr: u64) -> &[u64] {
        self.callers.get(&addr).map_or(&[], Vec::as_slice)
    }

    /// Returns the jumps and calls to any of these addresses, in the order of the code.
    ///
    /// The addresses need not have been requested from [`Code::read`].
    pub fn jumps_to(&self, addresses: &[u64]) -> Vec<Instruction> {
        let all = self.starts.iter().filter_map(|start| self.at(self.begin + u64::from(*start)));
        let is_it =
            |at: &Instruction| at.op0_kind() == OpKind::NearBranch64 && addresses.contains(&at.near_branch_target());
        all.filter(is_it).collect()
    }

    /// Returns true if a function may be called other than directly in this code: see [`Image::is_handed_out`].
    pub fn may_be_called_elsewhere(&self, addr: u64, name: &str) -> bool {
        let mut all = self.starts.iter().filter_map(|start| self.at(self.begin + u64::from(*start)));
        all.any(|at| named(&at) == Some(addr)) || self.image.is_handed_out(addr, name)
    }

    /// Returns the addresses of the instructions that name `addr`, if it was requested.
    pub fn users(&self, addr: u64) -> &[u64] {
        self.users.get(&addr).map_or(&[], Vec::as_slice)
    }

    /// Returns the instruction at `addr`, or `None` outside of the code.
    pub fn at(&self, addr: u64) -> Option<Instruction> {
        let from = addr.checked_sub(self.begin)? as usize;
        let bytes = self.bytes.get(from..)?;
        let mut decoder = Decoder::with_ip(64, bytes, addr, DecoderOptions::NONE);
        let found = decoder.can_decode().then(|| decoder.decode())?;
        (!found.is_invalid()).then_some(found)
    }

    /// Returns the instruction before the one at `addr`.
    pub fn before(&self, addr: u64) -> Option<Instruction> {
        let at = u32::try_from(addr.checked_sub(self.begin)?).ok()?;
        let place = self.starts.binary_search(&at).ok()?;
        let before = *self.starts.get(place.checked_sub(1)?)?;
        self.at(self.begin + u64::from(before))
    }
}

/// Returns the address that an instruction names: relative to itself, as a memory operand, or as an immediate.
pub fn named(found: &Instruction) -> Option<u64> {
    for at in 0..found.op_count() {
        match found.op_kind(at) {
            OpKind::Memory if found.is_ip_rel_memory_operand() => return Some(found.ip_rel_memory_address()),
            OpKind::Memory if found.memory_base() == Register::None && found.memory_index() == Register::None => {
                return Some(found.memory_displacement64());
            }
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 if found.immediate(at) > 0x1000 => {
                return Some(found.immediate(at));
            }
            _ => {}
        }
    }
    None
}

/// The only long `nop` that is not probed.
///
/// New kernels turn it into a call, which writes below the stack pointer, where a leaf function may keep data.
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// Returns true for segment prefixes: the kernel refuses probes on instructions that have one (ENOTSUPP), even if the
/// prefix is only padding.
fn is_refused(prefix: u8) -> bool {
    matches!(prefix, 0x26 | 0x2e | 0x36 | 0x3e)
}

/// Returns true if the kernel emulates a probed instruction instead of single-stepping a copy.
///
/// `long_nops` is true if this kernel emulates long `nop`s.
pub fn is_emulated(found: &Instruction, bytes: &[u8], long_nops: bool) -> bool {
    match bytes {
        [0x90 | 0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..] => true,
        [0xe8 | 0xe9 | 0xeb | 0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..] => {
            matches!(
                found.flow_control(),
                FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
            )
        }
        _ => {
            let is_nop = found.mnemonic() == Mnemonic::Nop && found.op_count() == 1;
            long_nops
                && is_nop
                && bytes != NOP5
                && !bytes.iter().take_while(|byte| **byte != 0x0f).any(|byte| is_refused(*byte))
        }
    }
}

impl Code<'_> {
    /// Returns true if a probe on this instruction is cheap.
    pub fn is_cheap(&self, found: &Instruction) -> bool {
        let bytes = self.image.bytes(found.ip());
        is_emulated(found, &bytes[..found.len().min(bytes.len())], self.long_nops)
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::is_emulated;

    fn emulated(bytes: &[u8]) -> bool {
        let found = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        assert_eq!(found.len(), bytes.len());
        is_emulated(&found, bytes, true)
    }

    #[test]
    fn no_probe_stands_on_a_nop_with_a_segment_prefix_which_the_kernel_refuses() {
        assert!(emulated(&[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00]));
        assert!(!emulated(&[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00]));
        assert!(!emulated(&[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00]));
    }
}
