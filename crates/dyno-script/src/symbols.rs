//! Names of variables with their slot numbers, so that a running session never hashes a name.

use std::collections::HashMap;

/// Slot of a variable, which is the same in all scripts of one [`Compiler`](crate::Compiler).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub(crate) u32);

impl VarId {
    /// Returns the index of the slot, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names of all variables in the scripts of one compiler.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    names: Vec<String>,
    slots: HashMap<String, VarId>,
}

impl Symbols {
    /// Returns the slot of `name`, if a script mentions it or the caller declared it.
    pub fn lookup(&self, name: &str) -> Option<VarId> {
        self.slots.get(name).copied()
    }

    /// Returns the name of a slot; empty for a slot of another compiler.
    pub fn name(&self, var: VarId) -> &str {
        self.names.get(var.index()).map_or("", String::as_str)
    }

    /// Returns the number of variables.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns true if there are no variables.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns all slots with their names, in the order of the slots.
    pub fn iter(&self) -> impl Iterator<Item = (VarId, &str)> {
        self.names.iter().enumerate().map(|(slot, name)| (VarId(slot as u32), name.as_str()))
    }

    /// Returns the slot of `name`, which is created if it is new.
    pub(crate) fn intern(&mut self, name: &str) -> VarId {
        if let Some(var) = self.lookup(name) {
            return var;
        }
        let var = VarId(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.slots.insert(name.to_owned(), var);
        var
    }
}
