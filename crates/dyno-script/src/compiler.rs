//! Compiler from script text to commands: order of commands, branches, shared variables.

use crate::command::{Command, Script, Store};
use crate::expr::Expr;
use crate::expr_parser;
use crate::meta::{self, Meta, Word};
use crate::names::Names;
use crate::source::{Source, is_name};
use crate::sql;
use crate::sql_lexer::{self, Ended};
use crate::{ScriptError, Symbols, VarId};

/// Compiler for the scripts of one arm, which share their variables.
///
/// After compiling all scripts, create one [`Scope`](crate::Scope) per session from [`Compiler::symbols`].
#[derive(Debug, Clone, Default)]
pub struct Compiler {
    names: Names,
}

impl Compiler {
    /// Returns a compiler without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a variable that the caller sets, such as `scale` or `client_id`.
    ///
    /// # Errors
    /// The name is not a valid variable name.
    pub fn declare(&mut self, name: &str) -> Result<VarId, ScriptError> {
        if !is_name(name) {
            return Err(Source::new("variables", name).error(
                0,
                format!("{:?} cannot be a variable's name", crate::error::excerpt(name)),
                "use letters, digits and underscores, and do not begin with a digit",
            ));
        }
        Ok(self.names.assign(name))
    }

    /// Compiles one script.
    ///
    /// # Errors
    /// The first error in the script, with its position.
    pub fn compile(&mut self, name: &str, text: &str) -> Result<Script, ScriptError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = Source::new(name, text);
        if let Some(offset) = text.find('\0') {
            return Err(source.error(offset, "a zero byte", "save the script as UTF-8 text"));
        }
        let mut build = Build {
            source: &source,
            names: &mut self.names,
            commands: Vec::new(),
            branches: Vec::new(),
            storable: false,
            pipeline: None,
            conditional: false,
        };
        build.script()?;
        let commands = build.commands;
        Ok(Script { name: name.to_owned(), commands })
    }

    /// Returns the variables of all scripts compiled so far.
    pub fn symbols(&self) -> &Symbols {
        &self.names.symbols
    }

    /// Returns an error for each variable that a script reads but nothing can set.
    ///
    /// A variable can be set by `\set`, by `\gset` or `\aset` with a matching prefix, or by [`Compiler::declare`]. Such
    /// a variable is not an error in itself, because the branch that reads it may never run, but a client should refuse
    /// it. Variables inside quotes are not included.
    pub fn unassigned(&self) -> Vec<ScriptError> {
        self.names.unassigned()
    }
}

/// An `\if` that is still open.
struct Branch {
    offset: usize,
    /// Index of the jump command that skips the current branch; `None` after `\else`.
    unless: Option<usize>,
    /// Indexes of the jump commands that lead from the end of each branch to the end of the whole `\if`.
    exits: Vec<usize>,
    has_else: bool,
}

/// Script that is being compiled.
struct Build<'b> {
    source: &'b Source<'b>,
    names: &'b mut Names,
    commands: Vec<Command>,
    branches: Vec<Branch>,
    /// True if the last command is SQL, so that `\gset` may follow.
    storable: bool,
    /// Offset of the open `\startpipeline`.
    pipeline: Option<usize>,
    /// True after an `\if`: then it is only known at run time whether a pipeline is open.
    conditional: bool,
}

impl Build<'_> {
    fn script(&mut self) -> Result<(), ScriptError> {
        let mut offset = 0;
        loop {
            let scanned = sql_lexer::scan(self.source, offset)?;
            let ended = scanned.ended;
            if let Some(sql) = sql::build(self.source, scanned, self.names)? {
                self.commands.push(Command::Sql(sql));
                self.storable = true;
            }
            match ended {
                Ended::Semicolon(next) => offset = next,
                Ended::Backslash(backslash) => offset = self.meta(backslash)?,
                Ended::EndOfScript => return self.finish(),
            }
        }
    }

    fn finish(&self) -> Result<(), ScriptError> {
        if let Some(branch) = self.branches.last() {
            return Err(self.error(branch.offset, "\\if without \\endif", "add \\endif"));
        }
        if let Some(offset) = self.pipeline.filter(|_| !self.conditional) {
            return Err(self.error(
                offset,
                "\\startpipeline without \\endpipeline",
                "add \\endpipeline before the script ends",
            ));
        }
        if self.commands.is_empty() {
            return Err(self.error(0, "the script has no command", "write SQL, or \\set and \\sleep"));
        }
        Ok(())
    }

    /// Compiles the backslash command at an offset; returns the offset after its line.
    fn meta(&mut self, backslash: usize) -> Result<usize, ScriptError> {
        let (meta, name, offset) = meta::command(self.source, backslash)?;
        let line = self.source.line(backslash);
        let storable = std::mem::take(&mut self.storable);
        if matches!(meta, Meta::Set | Meta::If | Meta::Elif) {
            return self.with_expression(meta, offset, backslash, line);
        }
        let most = match meta {
            Meta::Sleep => 2,
            Meta::Gset | Meta::Aset => 1,
            _ => 0,
        };
        let (words, end) = meta::words(self.source, name, offset, most)?;
        match meta {
            Meta::Sleep => {
                let time = meta::sleep_time(self.source, name, &words, self.names)?;
                self.commands.push(Command::Sleep { time, line });
            }
            Meta::Gset | Meta::Aset => self.store(meta, name, words.first(), storable)?,
            Meta::Else => self.other_branch(backslash)?,
            Meta::Endif => self.end_branches(backslash)?,
            Meta::Redo => self.commands.push(Command::RedoPosition { line }),
            _ => self.pipeline(meta, backslash, line)?,
        }
        Ok(end)
    }

    fn with_expression(
        &mut self,
        meta: Meta,
        mut offset: usize,
        backslash: usize,
        line: u32,
    ) -> Result<usize, ScriptError> {
        let mut assigned = None;
        if meta == Meta::Set {
            let (word, end) = meta::variable_name(self.source, offset)?;
            assigned = Some(word.text);
            offset = end;
        }
        let (expr, end) = expr_parser::parse(self.source, offset, self.names)?;
        match (meta, assigned) {
            (Meta::Set, Some(name)) => {
                let var = self.names.assign(name);
                self.commands.push(Command::Set { var, expr, line });
            }
            (Meta::If, _) => {
                self.conditional = true;
                let unless = Some(self.jump_unless(expr, line));
                let branch = Branch { offset: backslash, unless, exits: Vec::new(), has_else: false };
                self.branches.push(branch);
            }
            _ => {
                self.leave_branch(backslash, "\\elif")?;
                let unless = self.jump_unless(expr, line);
                if let Some(branch) = self.branches.last_mut() {
                    branch.unless = Some(unless);
                }
            }
        }
        Ok(end)
    }

    fn jump_unless(&mut self, expr: Expr, line: u32) -> usize {
        self.commands.push(Command::JumpUnless { expr, target: usize::MAX, line });
        self.commands.len() - 1
    }

    fn other_branch(&mut self, backslash: usize) -> Result<(), ScriptError> {
        self.leave_branch(backslash, "\\else")?;
        if let Some(branch) = self.branches.last_mut() {
            branch.has_else = true;
        }
        Ok(())
    }

    /// Ends the current branch with a jump to the end of the `\if`, and lets the jump that skips the branch lead to the
    /// command after it.
    fn leave_branch(&mut self, backslash: usize, name: &str) -> Result<(), ScriptError> {
        let Some(branch) = self.branches.last_mut() else {
            return Err(self.error(backslash, format!("{name} without \\if"), "put \\if before it"));
        };
        if branch.has_else {
            let message = format!("{name} behind \\else");
            return Err(self.error(backslash, message, "\\else is the last branch of an \\if"));
        }
        branch.exits.push(self.commands.len());
        let unless = branch.unless.take();
        self.commands.push(Command::Jump { target: usize::MAX });
        self.land(unless);
        Ok(())
    }

    fn end_branches(&mut self, backslash: usize) -> Result<(), ScriptError> {
        let Some(branch) = self.branches.pop() else {
            return Err(self.error(backslash, "\\endif without \\if", "put \\if before it"));
        };
        self.land(branch.unless);
        for exit in branch.exits {
            self.land(Some(exit));
        }
        Ok(())
    }

    /// Sets the target of a jump to the next command.
    fn land(&mut self, jump: Option<usize>) {
        let here = self.commands.len();
        if let Some(Command::JumpUnless { target, .. } | Command::Jump { target }) =
            jump.and_then(|jump| self.commands.get_mut(jump))
        {
            *target = here;
        }
    }

    fn store(&mut self, meta: Meta, name: Word, prefix: Option<&Word>, storable: bool) -> Result<(), ScriptError> {
        let backslash = name.start - 1;
        if let Some(prefix) = prefix {
            meta::check_name(self.source, *prefix)?;
        }
        if self.pipeline.is_some() && !self.conditional {
            let message = format!("\\{} within a pipeline", name.text);
            return Err(self.error(backslash, message, "put it behind \\endpipeline"));
        }
        let sql = match self.commands.last_mut() {
            Some(Command::Sql(sql)) if storable => sql,
            _ => {
                let message = format!("\\{} does not follow an SQL command", name.text);
                return Err(self.error(backslash, message, "put it right behind the SQL"));
            }
        };
        let prefix = prefix.map_or_else(String::new, |word| word.text.to_owned());
        self.names.assign_columns(&prefix);
        sql.store = Some(Store { prefix, all_rows: meta == Meta::Aset });
        Ok(())
    }

    fn pipeline(&mut self, meta: Meta, backslash: usize, line: u32) -> Result<(), ScriptError> {
        let certain = !self.conditional;
        let open = self.pipeline.is_some();
        match meta {
            Meta::StartPipeline if certain && open => {
                return Err(self.error(
                    backslash,
                    "\\startpipeline within a pipeline",
                    "end the first pipeline with \\endpipeline",
                ));
            }
            Meta::SyncPipeline | Meta::EndPipeline if certain && !open => {
                return Err(self.error(backslash, "no pipeline is open here", "begin one with \\startpipeline"));
            }
            Meta::StartPipeline => {
                self.pipeline = Some(backslash);
                self.commands.push(Command::StartPipeline { line });
            }
            Meta::SyncPipeline => self.commands.push(Command::SyncPipeline { line }),
            _ => {
                self.pipeline = None;
                self.commands.push(Command::EndPipeline { line });
            }
        }
        Ok(())
    }

    fn error(&self, offset: usize, message: impl Into<String>, hint: impl Into<String>) -> ScriptError {
        self.source.error(offset, message, hint)
    }
}
