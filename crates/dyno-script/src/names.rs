//! The variables of the scripts of one arm, and who sets and reads them.

use std::collections::HashSet;

use crate::source::Source;
use crate::{ScriptError, Symbols, VarId};

/// Slots, and what is known of their use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub(crate) symbols: Symbols,
    assigned: HashSet<VarId>,
    /// Prefixes of `\gset` and `\aset`.
    prefixes: Vec<String>,
    /// The first place where each variable is read, as an error in waiting.
    reads: Vec<(VarId, ScriptError)>,
    read: HashSet<VarId>,
}

impl Names {
    /// The slot of a variable that is set.
    pub(crate) fn assign(&mut self, name: &str) -> VarId {
        let var = self.symbols.intern(name);
        self.assigned.insert(var);
        var
    }

    /// Columns of a result are stored under names with this prefix.
    pub(crate) fn assign_columns(&mut self, prefix: &str) {
        self.prefixes.push(prefix.to_owned());
    }

    /// The slot of a variable that is read at `offset`.
    pub(crate) fn read(&mut self, source: &Source, name: &str, offset: usize) -> VarId {
        let var = self.symbols.intern(name);
        if self.read.insert(var) {
            let message = format!("nothing sets the variable :{name}");
            let hint = format!("add \\set {name}, or give it a value where the run is described");
            self.reads.push((var, source.error(offset, message, hint)));
        }
        var
    }

    /// The slot of a variable that may be read, or be no variable at all.
    pub(crate) fn mention(&mut self, name: &str) -> VarId {
        self.symbols.intern(name)
    }

    /// Variables that are read but that nothing can set, each with the first place.
    pub(crate) fn unassigned(&self) -> Vec<ScriptError> {
        let lost = self.reads.iter().filter(|(var, _)| !self.is_settable(*var));
        lost.map(|(_, error)| error.clone()).collect()
    }

    fn is_settable(&self, var: VarId) -> bool {
        let name = self.symbols.name(var);
        let stored = |prefix: &String| name.len() > prefix.len() && name.starts_with(&**prefix);
        self.assigned.contains(&var) || self.prefixes.iter().any(stored)
    }
}
