//! Names of wait events, found by emulating the server's own code.
//!
//! The numbers of events change from version to version, and forks have their own. Every server has a function that
//! maps a number to the name shown in pg_stat_activity (`pgstat_get_wait_event`); it compares, looks the name up in a
//! table, and returns it. Emulating a few instructions therefore gives the names of exactly the program that runs,
//! without relying on a built-in table.
//!
//! Limits: names that are created at run time (events and lock tranches of extensions) are in the server's memory
//! instead of its program. Such events are named by their class and number.

use std::collections::HashMap;

use iced_x86::{Code as Op, ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::RecordError;
use crate::code::Code;

/// Largest number of instructions of one look-up.
const STEPS: usize = 400;

/// Class and name of each wait event, by its number.
pub type EventNames = HashMap<u32, (String, String)>;

/// Returns the names of all wait events (classes 1 to 11, with 160 numbers each), and the number of
/// `ClientRead`.
///
/// # Errors
/// The program does not export the functions that name events, or has no `ClientRead`.
pub(crate) fn all_events(code: &Code<'_>) -> Result<(EventNames, u32), RecordError> {
    let address = |name| code.image.need(name).map(|symbol| symbol.addr);
    let mut names = Names::new(code, address("pgstat_get_wait_event")?, address("pgstat_get_wait_event_type")?);
    let numbers = (1..=11u32).flat_map(|class| (0..160).map(move |at| class << 24 | at));
    let found: EventNames = numbers.map(|at| (at, names.of(at))).collect();
    let client_read = found.iter().find(|(_, name)| name.1 == "ClientRead").map(|(number, _)| *number);
    Ok((found, client_read.ok_or(RecordError::Symbol("the event ClientRead"))?))
}

/// Looks up names by emulating the server's code.
pub struct Names<'a> {
    code: &'a Code<'a>,
    event: u64,
    kind: u64,
    known: HashMap<u32, (String, String)>,
}

impl<'a> Names<'a> {
    /// Creates a look-up from the addresses of `pgstat_get_wait_event` and `pgstat_get_wait_event_type`.
    pub fn new(code: &'a Code<'a>, event: u64, kind: u64) -> Self {
        Self { code, event, kind, known: HashMap::new() }
    }

    /// Returns the class and the name of an event.
    pub fn of(&mut self, number: u32) -> (String, String) {
        if let Some(found) = self.known.get(&number) {
            return found.clone();
        }
        let class = self.ask(self.kind, number).unwrap_or_else(|| format!("class {:#04x}", number >> 24));
        let name = self.ask(self.event, number).unwrap_or_else(|| match class.as_str() {
            "Extension" => "Extension".to_owned(),
            _ => format!("{class} {}", number & 0xff_ffff),
        });
        self.known.insert(number, (class.clone(), name.clone()));
        (class, name)
    }

    fn ask(&self, function: u64, number: u32) -> Option<String> {
        let answer = Machine::new(self.code).call(function, u64::from(number))?;
        let text = self.code.image.text_at(answer).filter(|text| !text.is_empty())?;
        (text != "unknown wait event").then(|| text.to_owned())
    }
}

/// Emulator of the instructions that the lookup functions of the server use.
#[allow(clippy::struct_excessive_bools)] // its flags
struct Machine<'a> {
    code: &'a Code<'a>,
    registers: [u64; 16],
    stack: Vec<u64>,
    /// Contents of the function's stack slots, by address relative to the stack pointer.
    slots: HashMap<u64, u64>,
    /// Return addresses of calls.
    returns: Vec<u64>,
    zero: bool,
    carry: bool,
    sign: bool,
    overflow: bool,
}

fn mask(size: usize) -> u64 {
    if size >= 8 { u64::MAX } else { (1 << (size * 8)) - 1 }
}

impl<'a> Machine<'a> {
    fn new(code: &'a Code<'a>) -> Self {
        Self {
            code,
            registers: [0; 16],
            stack: Vec::new(),
            slots: HashMap::new(),
            returns: Vec::new(),
            zero: false,
            carry: false,
            sign: false,
            overflow: false,
        }
    }

    /// Calls the function and returns its result, or `None` if it uses an unknown instruction.
    fn call(mut self, function: u64, argument: u64) -> Option<u64> {
        self.registers[Register::RDI.number()] = argument;
        let mut next = function;
        for _ in 0..STEPS {
            let at = self.code.at(next)?;
            next = match at.flow_control() {
                FlowControl::Return => match self.returns.pop() {
                    Some(back) => back,
                    None => return Some(self.registers[0]),
                },
                FlowControl::Call => {
                    self.returns.push(at.next_ip());
                    at.near_branch_target()
                }
                FlowControl::UnconditionalBranch => at.near_branch_target(),
                FlowControl::IndirectBranch => self.read(&at, 0)?,
                FlowControl::ConditionalBranch if self.holds(at.condition_code())? => at.near_branch_target(),
                FlowControl::ConditionalBranch => at.next_ip(),
                FlowControl::Next => {
                    self.step(&at)?;
                    at.next_ip()
                }
                _ => return None,
            };
        }
        None
    }

    fn address(&self, at: &Instruction) -> u64 {
        if at.is_ip_rel_memory_operand() {
            return at.ip_rel_memory_address();
        }
        let of = |register: Register| if register == Register::None { 0 } else { self.register(register) };
        let index = of(at.memory_index()).wrapping_mul(u64::from(at.memory_index_scale()));
        of(at.memory_base()).wrapping_add(index).wrapping_add(at.memory_displacement64())
    }

    fn register(&self, register: Register) -> u64 {
        self.registers[register.full_register().number()] & mask(register.size())
    }

    fn set(&mut self, register: Register, value: u64) {
        let place = &mut self.registers[register.full_register().number()];
        *place = match register.size() {
            8 => value,
            4 => value & mask(4),
            size => (*place & !mask(size)) | (value & mask(size)),
        };
    }

    fn read(&self, at: &Instruction, operand: u32) -> Option<u64> {
        match at.op_kind(operand) {
            OpKind::Register => Some(self.register(at.op_register(operand))),
            // The stack canary: any value will do, as long as it stays the same.
            OpKind::Memory if at.memory_segment() == Register::FS => Some(0),
            OpKind::Memory if at.memory_base() == Register::RSP => self.slots.get(&self.address(at)).copied(),
            OpKind::Memory => self.code.image.number(self.address(at), at.memory_size().size()),
            OpKind::NearBranch64 => Some(at.near_branch_target()),
            _ => Some(at.immediate(operand)),
        }
    }

    fn flags(&mut self, value: u64, size: usize) {
        let value = value & mask(size);
        self.zero = value == 0;
        self.sign = value >> (size * 8 - 1) & 1 == 1;
    }

    fn size(at: &Instruction) -> usize {
        match at.op0_kind() {
            OpKind::Register => at.op0_register().size(),
            _ => at.memory_size().size(),
        }
    }

    fn step(&mut self, at: &Instruction) -> Option<()> {
        let size = Self::size(at);
        match at.mnemonic() {
            Mnemonic::Nop | Mnemonic::Endbr64 => {}
            Mnemonic::Push => self.stack.push(self.read(at, 0)?),
            Mnemonic::Pop => {
                let value = self.stack.pop().unwrap_or(0);
                self.set(at.op0_register(), value);
            }
            Mnemonic::Mov if at.op0_kind() == OpKind::Memory && at.memory_base() == Register::RSP => {
                let value = self.read(at, 1)?;
                self.slots.insert(self.address(at), value);
            }
            // Values stored elsewhere are only read by code that cannot be followed anyway.
            Mnemonic::Mov if at.op0_kind() == OpKind::Memory => {}
            Mnemonic::Add | Mnemonic::Sub if at.op0_register() == Register::RSP => {}
            Mnemonic::Mov | Mnemonic::Movzx => {
                let value = self.read(at, 1)?;
                self.set(at.op0_register(), value);
            }
            Mnemonic::Movsxd | Mnemonic::Movsx | Mnemonic::Cdqe => {
                let (value, from) = match at.code() {
                    Op::Cdqe => (self.registers[0], 4),
                    _ if at.op1_kind() == OpKind::Memory => (self.read(at, 1)?, at.memory_size().size()),
                    _ => (self.read(at, 1)?, at.op1_register().size()),
                };
                let shift = 64 - from as u32 * 8;
                let extended = ((value << shift) as i64 >> shift) as u64;
                self.set(if at.code() == Op::Cdqe { Register::RAX } else { at.op0_register() }, extended);
            }
            Mnemonic::Lea => {
                let address = self.address(at);
                self.set(at.op0_register(), address);
            }
            Mnemonic::And | Mnemonic::Test | Mnemonic::Xor | Mnemonic::Or => self.logic(at, size)?,
            Mnemonic::Cmp | Mnemonic::Sub => self.subtract(at, size)?,
            Mnemonic::Add => {
                let value = self.read(at, 0)?.wrapping_add(self.read(at, 1)?);
                self.flags(value, size);
                self.carry = false;
                self.set(at.op0_register(), value);
            }
            Mnemonic::Shr => {
                let value = (self.read(at, 0)? & mask(size)) >> (self.read(at, 1)? & 63);
                self.flags(value, size);
                self.set(at.op0_register(), value);
            }
            _ if at.condition_code() != ConditionCode::None && at.op_count() == 2 => {
                let value = self.read(at, u32::from(self.holds(at.condition_code())?))?;
                self.set(at.op0_register(), value);
            }
            _ => return None,
        }
        Some(())
    }

    fn logic(&mut self, at: &Instruction, size: usize) -> Option<()> {
        let (left, right) = (self.read(at, 0)?, self.read(at, 1)?);
        let value = match at.mnemonic() {
            Mnemonic::Xor => left ^ right,
            Mnemonic::Or => left | right,
            _ => left & right,
        };
        self.flags(value, size);
        (self.carry, self.overflow) = (false, false);
        if at.mnemonic() != Mnemonic::Test {
            self.set(at.op0_register(), value);
        }
        Some(())
    }

    fn subtract(&mut self, at: &Instruction, size: usize) -> Option<()> {
        let (left, right) = (self.read(at, 0)? & mask(size), self.read(at, 1)? & mask(size));
        let value = left.wrapping_sub(right) & mask(size);
        self.flags(value, size);
        self.carry = left < right;
        self.overflow = ((left ^ right) & (left ^ value)) >> (size * 8 - 1) & 1 == 1;
        if at.mnemonic() == Mnemonic::Sub {
            self.set(at.op0_register(), value);
        }
        Some(())
    }

    fn holds(&self, condition: ConditionCode) -> Option<bool> {
        Some(match condition {
            ConditionCode::e => self.zero,
            ConditionCode::ne => !self.zero,
            ConditionCode::b => self.carry,
            ConditionCode::ae => !self.carry,
            ConditionCode::a => !self.carry && !self.zero,
            ConditionCode::be => self.carry || self.zero,
            ConditionCode::s => self.sign,
            ConditionCode::ns => !self.sign,
            ConditionCode::l => self.sign != self.overflow,
            ConditionCode::ge => self.sign == self.overflow,
            ConditionCode::g => !self.zero && self.sign == self.overflow,
            ConditionCode::le => self.zero || self.sign != self.overflow,
            _ => return None,
        })
    }
}
