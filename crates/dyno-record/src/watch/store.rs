//! Value that a store has written, derived from the registers after it.
//!
//! A watchpoint stops the process after the instruction that wrote, and reports the address after it; the written value
//! is in the instruction or in one of its registers. Instructions are read from the program file, because a short-lived
//! backend is gone when its notes are read. Where the instruction begins is not reported. So known stores to the word
//! are tried first; elsewhere every instruction length is tried, and only a plain store of the right size to exactly
//! the watched address counts.

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::elf::Image;

/// Length of the longest instruction [bytes]; [`SHORTEST`] is the length of the shortest store.
const LONGEST: u64 = 15;
const SHORTEST: u64 = 2;

/// Decoder of the stores that end at the places where watchpoints stopped.
pub struct Stores {
    image: Image,
    /// Difference between addresses in the processes and in the program file.
    shift: u64,
    in_front: HashMap<u64, Vec<Instruction>>,
}

fn is_store(found: &Instruction) -> bool {
    found.mnemonic() == Mnemonic::Mov && found.op0_kind() == OpKind::Memory
}

/// Returns every store that could end at address `end`, the longest first; `bytes` are the bytes before that address.
fn candidates(bytes: &[u8], end: u64) -> Vec<Instruction> {
    let mut found = Vec::new();
    for length in (SHORTEST..=LONGEST.min(bytes.len() as u64)).rev() {
        let begin = bytes.len() - length as usize;
        let mut decoder = Decoder::with_ip(64, &bytes[begin..], end.wrapping_sub(length), DecoderOptions::NONE);
        let one = decoder.decode();
        if !one.is_invalid() && one.len() as u64 == length && is_store(&one) {
            found.push(one);
        }
    }
    found
}

fn register(registers: &[u64; 16], which: Register) -> u64 {
    if which == Register::None { 0 } else { registers[which.full_register().number()] }
}

fn address(at: &Instruction, registers: &[u64; 16], shift: u64) -> u64 {
    if at.is_ip_rel_memory_operand() {
        return at.ip_rel_memory_address().wrapping_add(shift);
    }
    let index = register(registers, at.memory_index()).wrapping_mul(u64::from(at.memory_index_scale()));
    register(registers, at.memory_base()).wrapping_add(index).wrapping_add(at.memory_displacement64())
}

/// Returns what the instruction wrote to `place`, or `None` if it cannot have written there.
fn written(at: &Instruction, place: u64, bytes: usize, registers: &[u64; 16], shift: u64) -> Option<u64> {
    if at.memory_size().size() != bytes || address(at, registers, shift) != place {
        return None;
    }
    let whole = match at.op1_kind() {
        OpKind::Register if at.op1_register().is_gpr() => register(registers, at.op1_register()),
        OpKind::Immediate32 | OpKind::Immediate32to64 => at.immediate(1),
        _ => return None,
    };
    Some(if bytes == 4 { whole & 0xffff_ffff } else { whole })
}

impl Stores {
    /// Creates the decoder for a program that is loaded `shift` bytes above the addresses in its file; `known` are the
    /// known stores in the program.
    pub fn new(image: Image, shift: u64, known: Vec<Instruction>) -> Self {
        Self { image, shift, in_front: known.into_iter().map(|at| (at.next_ip(), vec![at])).collect() }
    }

    /// Returns what the instruction before `ip` wrote to the `bytes` bytes at `place`.
    ///
    /// `memory` reads the bytes before `ip` if they do not belong to the program (but to an extension).
    pub fn value(
        &mut self,
        ip: u64,
        place: u64,
        bytes: usize,
        registers: &[u64; 16],
        memory: &dyn Fn(u64, &mut [u8]) -> Option<()>,
    ) -> Option<u64> {
        let (end, shift) = (ip.wrapping_sub(self.shift), self.shift);
        if self.image.file_offset(end.wrapping_sub(1)).is_none() {
            let mut read = [0; LONGEST as usize];
            memory(ip - LONGEST, &mut read)?;
            return candidates(&read, ip).iter().find_map(|at| written(at, place, bytes, registers, 0));
        }
        let found = self.in_front.entry(end).or_insert_with(|| {
            let before = self.image.bytes(end.wrapping_sub(LONGEST));
            candidates(before.get(..LONGEST as usize).unwrap_or_default(), end)
        });
        found.iter().find_map(|at| written(at, place, bytes, registers, shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = 0x1000;

    fn value(bytes: &[u8], place: u64, size: usize, registers: [u64; 16]) -> Option<u64> {
        candidates(bytes, END).iter().find_map(|at| written(at, place, size, &registers, 0))
    }

    fn with(set: &[(usize, u64)]) -> [u64; 16] {
        let mut registers = [0; 16];
        for (at, value) in set {
            registers[*at] = *value;
        }
        registers
    }

    #[test]
    fn a_number_a_register_and_a_place_beside_the_program_counter_are_told() {
        let number = [0x90, 0xc7, 0x00, 0x01, 0x00, 0x00, 0x0a]; // mov dword [rax], 0x0a000001
        assert_eq!(value(&number, 0x5000, 4, with(&[(0, 0x5000)])), Some(0x0a00_0001));
        let held = [0x90, 0x44, 0x89, 0x23]; // mov [rbx], r12d
        assert_eq!(value(&held, 0x5000, 4, with(&[(3, 0x5000), (12, 0xffff_0000_0600_0000)])), Some(0x0600_0000));
        let far = [0x48, 0x89, 0xb8, 0xa8, 0x01, 0x00, 0x00]; // mov [rax+0x1a8], rdi
        assert_eq!(value(&far, 0x51a8, 8, with(&[(0, 0x5000), (7, u64::MAX)])), Some(u64::MAX));
        let beside = [0xc7, 0x05, 0xf0, 0x0f, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00]; // mov dword [rip+0xff0], 7
        assert_eq!(value(&beside, 0x1ff0, 4, with(&[])), Some(7));
    }

    #[test]
    fn what_wrote_elsewhere_or_in_another_size_is_not_told() {
        let number = [0xc7, 0x00, 0x01, 0x00, 0x00, 0x0a];
        assert_eq!(value(&number, 0x5004, 4, with(&[(0, 0x5000)])), None);
        assert_eq!(value(&number, 0x5000, 8, with(&[(0, 0x5000)])), None);
        let string = [0xf3, 0xa5]; // rep movsd: it stops at itself
        assert_eq!(value(&string, 0x5000, 4, with(&[(7, 0x5000)])), None);
        assert_eq!(value(&[], 0x5000, 4, with(&[])), None);
    }

    #[test]
    fn the_longest_encoding_is_believed_first() {
        // mov [r8], eax; without its first byte: mov [rax], eax
        let prefixed = [0x41, 0x89, 0x00];
        assert_eq!(value(&prefixed, 0x5000, 4, with(&[(8, 0x5000), (0, 3)])), Some(3));
        let both = [0x44, 0x89, 0x00]; // mov [rax], r8d, not mov [rax], eax
        assert_eq!(value(&both, 0x5000, 4, with(&[(0, 0x5000), (8, 9)])), Some(9));
    }
}
