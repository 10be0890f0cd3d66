//! What is probed beside the waits: the places where a backend takes up a statement, learns its query id, ends it, fails,
//! and where a process says who it is.

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

/// What kind of call a backend takes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A statement by the simple protocol, or Execute.
    Exec = 0,
    /// Parse.
    Parse = 1,
    /// Bind.
    Bind = 2,
}

/// What a probe tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A wait begins, or ends (0).
    Wait(Value),
    /// A backend takes up a statement; its text.
    Running(Kind),
    /// A statement is done; its rows.
    Done,
    /// The query id of the statement.
    QueryId,
    /// The SQLSTATE of what is being reported, and the statement: a bind that fails has told none. With the place of the
    /// statement's variable, counted from the file's offsets as the kernel wants it.
    State(u64),
    /// The transaction is aborted after an error.
    Abort,
    /// The process is a parallel worker of this leader.
    Leader,
    /// The database and the user of the process.
    Login,
}

/// Events with fields: all probes of one have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Event {
    /// A number and what it is.
    Number,
    /// The text of what is parsed or bound.
    Prepared,
    /// A query id.
    Id,
    /// A statement's text and its kind.
    Text,
    /// Rows.
    Rows,
    /// Database and user.
    Login,
    /// A number, of a wait of one class that can be given up alone.
    Lwlock,
    /// The same.
    Ipc,
    /// The same.
    Timeout,
    /// The same.
    Io,
    /// A SQLSTATE and a statement's text.
    State,
}

impl Event {
    /// All, in the order of their numbers.
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

    /// What it is given up with where probes are too dear; none: never.
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

    /// What a sample of it tells, and its number where it has one.
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
    /// The event and its fields, as tracefs spells them.
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

    /// What it tells, in words; `name` is that of an event.
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

    /// The register to note.
    pub fn register(self) -> Option<Register> {
        match self {
            Self::Wait(Value::Register(register)) => Some(register),
            Self::QueryId | Self::State(_) => Some(Register::RDI),
            Self::Leader => Some(Register::RSI),
            _ => None,
        }
    }
}

/// A register as tracefs spells it: `ax`, `r12`.
fn spelled(register: Register) -> String {
    let name = format!("{register:?}").to_lowercase();
    let is_old = !name.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    if is_old { name.trim_start_matches('r').to_owned() } else { name }
}

/// A probe: its place in the program file, and what it tells.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Address in the program.
    pub addr: u64,
    /// Offset in the file.
    pub offset: u64,
    /// What it tells.
    pub what: What,
    /// The class of its wait where that can be given up alone, else 0.
    pub class: u8,
    /// Whether the kernel must step over a copy of the instruction.
    pub is_stepped: bool,
}

impl Probe {
    /// The event and its fields, as tracefs spells them.
    pub fn fields(&self) -> (Event, String) {
        let (event, fields) = self.what.fields();
        (if self.class == 0 { event } else { Event::of_class(self.class) }, fields)
    }

    /// See [`Event::step`].
    pub fn step(&self) -> Option<Step> {
        self.fields().0.step()
    }
}

/// What a version's numbers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// As the program says it: `15.16 (Debian 15.16-0+deb12u1)`.
    pub text: String,
    /// The number in front.
    pub major: u32,
}

impl Version {
    /// What the program says of itself.
    pub fn of(image: &Image) -> Result<Self, RecordError> {
        let text = image.server_version().ok_or(RecordError::Symbol("its version"))?;
        let major = text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
        if !(14..=18).contains(&major) {
            return Err(RecordError::Version(text));
        }
        Ok(Self { text, major })
    }

    /// `STATE_RUNNING` and `STATE_FASTPATH`: 18 put a state in front.
    fn running(&self) -> [u64; 2] {
        if self.major >= 18 { [3, 5] } else { [2, 4] }
    }
}

/// All probes of a server and what was found on the way.
pub struct Plan {
    /// Them.
    pub probes: Vec<Probe>,
    /// The stores.
    pub sites: Vec<Site>,
}

/// How far behind the taking up of a statement its kind is told, in instructions on all ways.
const KIND_WITHIN: usize = 300;

/// Addresses that the code must be read for: functions and data.
pub fn wanted(image: &Image) -> Result<(Vec<u64>, Vec<u64>), RecordError> {
    let functions = ["pgstat_report_activity", "EndCommand", "pgstat_report_query_id"];
    let functions = functions.into_iter().map(|name| image.need(name).map(|symbol| symbol.addr));
    Ok((functions.collect::<Result<_, _>>()?, vec![image.need("my_wait_event_info")?.addr]))
}

/// Plans the probes; query ids only where the server computes them, the begin of binds only where `details` are asked for.
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

/// Where a variable is, seen from a probe on a function: the kernel adds the difference of the function's address and its
/// offset in the file.
fn from_offsets(image: &Image, function: &'static str, variable: &'static str) -> Result<u64, RecordError> {
    let addr = image.need(function)?.addr;
    let offset = image.file_offset(addr).ok_or(RecordError::Symbol(function))?;
    Ok(image.need(variable)?.addr.wrapping_sub(addr).wrapping_add(offset))
}

/// The state that a call reports: the number that was put into edi before it.
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

/// Parse and Bind put their names into the process's title soon after; what is nearest counts.
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
