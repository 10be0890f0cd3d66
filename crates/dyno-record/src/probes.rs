//! Probes other than those of waits.
//!
//! They are at the places where a backend begins a statement, learns its query id, ends it or fails, and where a
//! process identifies itself.

use std::collections::{HashSet, VecDeque};

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::RecordError;
use crate::classes::{self, classes};
use crate::code::{Code, named};
use crate::elf::Image;
use crate::place::{Site, Value};
use crate::shed::Step;
use crate::sites::sites;
use crate::tracefs::{FIELDS, number};

/// Kind of call that a backend begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Statement by the simple protocol, or Execute.
    Exec = 0,
    /// Parse.
    Parse = 1,
    /// Bind.
    Bind = 2,
}

/// What a probe reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A wait begins, or ends (0).
    Wait(Value),
    /// A backend begins a statement; the text of the statement is included.
    Running(Kind),
    /// A statement is complete; its row count is included.
    Done,
    /// Query id of the statement.
    QueryId,
    /// SQLSTATE that is being reported, with the statement's text, because a failing bind has not reported its text
    /// earlier.
    ///
    /// Contains the address of the variable that points to the text, relative to the file's offsets, as the kernel
    /// requires.
    State(u64),
    /// The transaction is aborted after an error.
    Abort,
    /// The process is a parallel worker of this leader.
    Leader,
    /// Database and user of the process.
    Login,
}

/// Tracepoints with fields; all probes of one tracepoint have the same fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Event {
    /// A number and its meaning.
    Number,
    /// Text of the statement that is parsed or bound.
    Prepared,
    /// Query id.
    Id,
    /// Text of a statement that is executed.
    Text,
    /// Row count.
    Rows,
    /// Database and user.
    Login,
    /// Event number of a lightweight lock wait; the probes of this class can be removed separately.
    Lwlock,
    /// Event number of a wait of the class IPC; the probes of this class can be removed separately.
    Ipc,
    /// Event number of a wait of the class Timeout; the probes of this class can be removed separately.
    Timeout,
    /// Event number of a wait of the class IO; the probes of this class can be removed separately.
    Io,
    /// SQLSTATE and a statement's text.
    State,
}

impl Event {
    /// All tracepoints, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Number,
        Self::Prepared,
        Self::Id,
        Self::Text,
        Self::Rows,
        Self::Login,
        Self::Lwlock,
        Self::Ipc,
        Self::Timeout,
        Self::Io,
        Self::State,
    ];

    fn of_class(class: u8) -> Self {
        match class {
            classes::LWLOCK => Self::Lwlock,
            classes::IPC => Self::Ipc,
            classes::TIMEOUT => Self::Timeout,
            classes::IO => Self::Io,
            _ => Self::Number,
        }
    }

    /// Returns the step in which the tracepoint's probes are removed if they cost too much; `None` if they are never
    /// removed.
    pub fn step(self) -> Option<Step> {
        Some(match self {
            Self::Prepared | Self::Id => Step::Details,
            Self::Text | Self::Rows => Step::Statements,
            Self::Lwlock => Step::Class(classes::LWLOCK),
            Self::Ipc => Step::Class(classes::IPC),
            Self::Timeout => Step::Class(classes::TIMEOUT),
            Self::Io => Step::Class(classes::IO),
            Self::Number | Self::Login | Self::State => return None,
        })
    }

    /// Returns what a sample reports, and its number (0 if it has none); `None` if the sample is too short.
    pub fn meaning(self, raw: &[u8]) -> Option<(What, u64)> {
        match self {
            Self::Number | Self::Lwlock | Self::Ipc | Self::Timeout | Self::Io => {
                let value = number(raw, FIELDS)?;
                let what = match raw.get(FIELDS + 8)? {
                    0 => What::Wait(Value::Register(Register::None)),
                    2 => What::Leader,
                    _ => What::Abort,
                };
                Some((what, value))
            }
            Self::Text => Some((What::Running(Kind::Exec), 0)),
            Self::Prepared => {
                let is_parse = *raw.get(FIELDS + 4)? == Kind::Parse as u8;
                Some((What::Running(if is_parse { Kind::Parse } else { Kind::Bind }), 0))
            }
            Self::Id => Some((What::QueryId, number(raw, FIELDS)?)),
            Self::State => Some((What::State(0), number(raw, FIELDS)?)),
            Self::Rows => Some((What::Done, number(raw, FIELDS)?)),
            Self::Login => Some((What::Login, 0)),
        }
    }
}

impl What {
    /// Returns the tracepoint and its fields, in the syntax of tracefs.
    fn fields(self) -> (Event, String) {
        let number = |code: u8| {
            let value = match (self, self.register()) {
                (_, Some(register)) => format!("%{}", spelled(register)),
                (Self::Wait(Value::Known(value)), None) => format!("\\{value}"),
                _ => "\\0".to_owned(),
            };
            (Event::Number, format!("value={value}:u64 what=\\{code}:u8"))
        };
        match self {
            Self::Wait(_) => number(0),
            Self::QueryId => (Event::Id, "value=%di:u64".to_owned()),
            Self::State(query) => (Event::State, format!("value=%di:u64 text=+0(@+{query:#x}):string")),
            Self::Leader => number(2),
            Self::Abort => number(3),
            Self::Running(Kind::Exec) => (Event::Text, "text=+0(%si):string".to_owned()),
            Self::Running(kind) => (Event::Prepared, format!("text=+0(%si):string kind=\\{}:u8", kind as u8)),
            Self::Done => (Event::Rows, "rows=+8(%di):u64".to_owned()),
            Self::Login => (Event::Login, "database=+0(%di):string user=+0(%dx):string".to_owned()),
        }
    }

    /// Describes what the probe reports; `name` returns the name of a wait event.
    pub fn said(self, name: &dyn Fn(u32) -> Option<String>) -> String {
        match self {
            Self::Wait(Value::Known(0)) => "a wait ends".to_owned(),
            Self::Wait(Value::Known(event)) => {
                format!("a wait begins: {}", name(event).unwrap_or_else(|| format!("{event:#010x}")))
            }
            Self::Wait(Value::Register(_)) => "a wait begins: any of several".to_owned(),
            Self::Running(Kind::Exec) => "a statement is taken up".to_owned(),
            Self::Running(Kind::Parse) => "parse".to_owned(),
            Self::Running(Kind::Bind) => "bind".to_owned(),
            Self::Done => "a statement is done".to_owned(),
            Self::QueryId => "query id".to_owned(),
            Self::State(_) => "SQLSTATE".to_owned(),
            Self::Abort => "a transaction is aborted".to_owned(),
            Self::Leader => "a parallel worker's leader".to_owned(),
            Self::Login => "login".to_owned(),
        }
    }

    /// Returns the register that must be recorded; `None` if there is none.
    pub fn register(self) -> Option<Register> {
        match self {
            Self::Wait(Value::Register(register)) => Some(register),
            Self::QueryId | Self::State(_) => Some(Register::RDI),
            Self::Leader => Some(Register::RSI),
            _ => None,
        }
    }
}

/// Returns a register's name in the syntax of tracefs: `ax`, `r12`.
fn spelled(register: Register) -> String {
    let name = format!("{register:?}").to_lowercase();
    let is_old = !name.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    if is_old { name.trim_start_matches('r').to_owned() } else { name }
}

/// Probe: its place in the program file, and what it reports.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Address of the probe in the program.
    pub addr: u64,
    /// Offset of the probe in the program file.
    pub offset: u64,
    /// What the probe reports.
    pub what: What,
    /// Class of the wait that the probe reports, if the probes of this class can be removed separately; otherwise 0.
    pub class: u8,
    /// True if the kernel must single-step a copy of the probed instruction.
    pub is_stepped: bool,
}

impl Probe {
    /// Returns the tracepoint and its fields, in the syntax of tracefs.
    pub fn fields(&self) -> (Event, String) {
        let (event, fields) = self.what.fields();
        (if self.class == 0 { event } else { Event::of_class(self.class) }, fields)
    }

    /// Returns the step with which the probe is removed; see [`Event::step`].
    pub fn step(&self) -> Option<Step> {
        self.fields().0.step()
    }
}

/// Version of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Version text of the program: `15.16 (Debian 15.16-0+deb12u1)`.
    pub text: String,
    /// Major version.
    pub major: u32,
}

impl Version {
    /// Reads the version from the program.
    ///
    /// # Errors
    /// There is no version text, or the major version is not 14 to 18.
    pub fn of(image: &Image) -> Result<Self, RecordError> {
        let text = image.server_version().ok_or(RecordError::Symbol("its version"))?;
        let major = text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
        if !(14..=18).contains(&major) {
            return Err(RecordError::Version(text));
        }
        Ok(Self { text, major })
    }

    /// Returns the values of `STATE_RUNNING` and `STATE_FASTPATH`; version 18 has one more state before them.
    pub fn running(&self) -> [u64; 2] {
        if self.major >= 18 { [3, 5] } else { [2, 4] }
    }
}

/// Probes of a server, and the store instructions from which they were derived.
pub struct Plan {
    /// Probes to set.
    pub probes: Vec<Probe>,
    /// Store instructions that publish waits.
    pub sites: Vec<Site>,
}

/// Distance after the start of a statement within which its kind is searched for, over all paths [instructions].
const KIND_WITHIN: usize = 300;

/// Returns the addresses that [`Code::read`] must be asked for: functions and data.
///
/// # Errors
/// A symbol is missing.
pub fn wanted(image: &Image) -> Result<(Vec<u64>, Vec<u64>), RecordError> {
    let functions = ["pgstat_report_activity", "EndCommand", "pgstat_report_query_id"];
    let functions = functions.into_iter().map(|name| image.need(name).map(|symbol| symbol.addr));
    Ok((functions.collect::<Result<_, _>>()?, vec![image.need("my_wait_event_info")?.addr]))
}

/// Plans the probes of a server.
///
/// Query ids are probed only if the server computes them (`query_ids`), the start of binds only if `details` are
/// requested.
///
/// # Errors
/// A symbol is missing, or there are too few stores.
pub fn plan(code: &Code<'_>, version: &Version, query_ids: bool, details: bool) -> Result<Plan, RecordError> {
    let image = code.image;
    let sites = sites(code, image.need("my_wait_event_info")?.addr)?;
    let mut probes = Vec::new();
    let of_store = classes(code, &sites);
    let mut add = |addr: u64, what: What, class: u8| {
        if let Some(offset) = image.file_offset(addr) {
            let is_stepped = !code.at(addr).is_some_and(|found| code.is_cheap(&found));
            probes.push(Probe { addr, offset, what, class, is_stepped });
        }
    };
    for site in &sites {
        add(site.probe, What::Wait(site.value), of_store.get(&site.store).copied().unwrap_or(0));
    }
    for caller in code.callers(image.need("pgstat_report_activity")?.addr) {
        if let Some(state) = state(code, *caller)
            && version.running().contains(&state)
        {
            let kind = kind(code, *caller);
            if kind != Kind::Bind || details {
                add(*caller, What::Running(kind), 0);
            }
        }
    }
    for caller in code.callers(image.need("EndCommand")?.addr) {
        add(*caller, What::Done, 0);
    }
    if query_ids {
        let function = image.need("pgstat_report_query_id")?.addr;
        let starts = ["ExecutorStart", "standard_ExecutorStart"].map(|name| image.symbol(name));
        let inside = |addr: &&u64| starts.iter().flatten().any(|s| **addr >= s.addr && **addr < s.addr + s.size);
        let callers: Vec<u64> = code.callers(function).iter().filter(inside).copied().collect();
        if callers.is_empty() {
            add(function, What::QueryId, 0);
        }
        for caller in callers {
            add(caller, What::QueryId, 0);
        }
    }
    for (name, what) in [
        ("errcode", What::State(from_offsets(image, "errcode", "debug_query_string")?)),
        ("AbortCurrentTransaction", What::Abort),
        ("BecomeLockGroupMember", What::Leader),
        ("InitPostgres", What::Login),
    ] {
        add(image.need(name)?.addr, what, 0);
    }
    Ok(Plan { probes, sites })
}

/// Returns the place of a variable relative to a probe on a function.
///
/// The kernel adds the difference between the function's address and its offset in the file.
fn from_offsets(image: &Image, function: &'static str, variable: &'static str) -> Result<u64, RecordError> {
    let addr = image.need(function)?.addr;
    let offset = image.file_offset(addr).ok_or(RecordError::Symbol(function))?;
    Ok(image.need(variable)?.addr.wrapping_sub(addr).wrapping_add(offset))
}

/// Returns the state that a call reports: the constant that was put into edi before it.
fn state(code: &Code<'_>, caller: u64) -> Option<u64> {
    let mut at = caller;
    for _ in 0..12 {
        let before = code.before(at)?;
        let sets = before.op0_kind() == OpKind::Register && before.op0_register().full_register() == Register::RDI;
        if sets && before.mnemonic() == Mnemonic::Mov {
            return matches!(before.op1_kind(), OpKind::Immediate32 | OpKind::Immediate32to64)
                .then(|| before.immediate(1));
        }
        at = before.ip();
    }
    None
}

/// Returns the kind of a call: Parse and Bind set the process title soon after, and the nearest title text decides.
pub(crate) fn kind(code: &Code<'_>, caller: u64) -> Kind {
    let word = |at: &Instruction| match code.image.text_at(named(at)?)? {
        "PARSE" => Some(Kind::Parse),
        "BIND" => Some(Kind::Bind),
        _ => None,
    };
    let (mut open, mut seen) = (VecDeque::from([caller]), HashSet::new());
    while let Some(addr) = open.pop_front().filter(|_| seen.len() < KIND_WITHIN) {
        let Some(at) = code.at(addr).filter(|_| seen.insert(addr)) else { continue };
        if let Some(found) = word(&at) {
            return found;
        }
        match at.flow_control() {
            FlowControl::UnconditionalBranch => open.push_back(at.near_branch_target()),
            FlowControl::ConditionalBranch => open.extend([at.next_ip(), at.near_branch_target()]),
            FlowControl::Next | FlowControl::Call => open.push_back(at.next_ip()),
            _ => {}
        }
    }
    Kind::Exec
}
