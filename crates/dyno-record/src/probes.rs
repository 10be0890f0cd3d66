//! What is probed beside the waits: the places where a backend takes up a statement, learns its query id, ends it, fails,
//! and where a process says who it is.

use std::collections::{HashSet, VecDeque};

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::RecordError;
use crate::code::{Code, named};
use crate::elf::Image;
use crate::sites::{Site, Value, sites};

/// What kind of call a backend takes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A statement by the simple protocol, or Execute.
    Exec,
    /// Parse.
    Parse,
    /// Bind.
    Bind,
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
    /// The SQLSTATE of what is being reported.
    State,
    /// The transaction is aborted after an error.
    Abort,
    /// The process is a parallel worker of this leader.
    Leader,
    /// The database and the user of the process.
    Login,
}

impl What {
    /// Fields to take from memory, as tracefs spells them.
    pub fn fields(self) -> Option<&'static str> {
        match self {
            Self::Running(_) => Some("text=+0(%si):string"),
            Self::Done => Some("rows=+8(%di):u64"),
            Self::Login => Some("database=+0(%di):string user=+0(%dx):string"),
            _ => None,
        }
    }

    /// The register to note.
    pub fn register(self) -> Option<Register> {
        match self {
            Self::Wait(Value::Register(register)) => Some(register),
            Self::QueryId | Self::State => Some(Register::RDI),
            Self::Leader => Some(Register::RSI),
            _ => None,
        }
    }
}

/// A probe: its place in the program file, and what it tells.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Offset in the file.
    pub offset: u64,
    /// What it tells.
    pub what: What,
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

/// Plans the probes; query ids only where the server computes them.
pub fn plan(code: &Code<'_>, version: &Version, query_ids: bool) -> Result<Plan, RecordError> {
    let image = code.image;
    let sites = sites(code, image.need("my_wait_event_info")?.addr)?;
    let mut probes = Vec::new();
    let mut add = |addr: u64, what: What| {
        if let Some(offset) = image.file_offset(addr) {
            probes.push(Probe { offset, what });
        }
    };
    for site in &sites {
        add(site.probe, What::Wait(site.value));
    }
    for caller in code.callers(image.need("pgstat_report_activity")?.addr) {
        if let Some(state) = state(code, *caller)
            && version.running().contains(&state)
        {
            add(*caller, What::Running(kind(code, *caller)));
        }
    }
    for caller in code.callers(image.need("EndCommand")?.addr) {
        add(*caller, What::Done);
    }
    if query_ids {
        let function = image.need("pgstat_report_query_id")?.addr;
        let starts = ["ExecutorStart", "standard_ExecutorStart"].map(|name| image.symbol(name));
        let inside = |addr: &&u64| starts.iter().flatten().any(|s| **addr >= s.addr && **addr < s.addr + s.size);
        let callers: Vec<u64> = code.callers(function).iter().filter(inside).copied().collect();
        if callers.is_empty() {
            add(function, What::QueryId);
        }
        callers.into_iter().for_each(|caller| add(caller, What::QueryId));
    }
    for (name, what) in [
        ("errcode", What::State),
        ("AbortCurrentTransaction", What::Abort),
        ("BecomeLockGroupMember", What::Leader),
        ("InitPostgres", What::Login),
    ] {
        add(image.need(name)?.addr, what);
    }
    Ok(Plan { probes, sites })
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
fn kind(code: &Code<'_>, caller: u64) -> Kind {
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
