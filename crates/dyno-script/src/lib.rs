//! pgbench's script language, compiled to a flat list of commands.
//!
//! A load generator runs the same script millions of times. So everything that can be known in advance is determined
//! once, by the compiler: where a command ends, which slot a variable has, which parts of an expression are constant,
//! where a branch continues. What remains per run is small: evaluate an expression over slots, append a value's text
//! to a buffer.
//!
//! ```
//! use dyno_script::{Command, Compiler, Scope, Seeds, Value, eval};
//!
//! let mut compiler = Compiler::new();
//! let scale = compiler.declare("scale")?;
//! let script = compiler.compile(
//!     "one.sql",
//!     "\\set aid random(1, 100000 * :scale)\nselect abalance from accounts where aid = :aid;\n",
//! )?;
//!
//! let mut scope = Scope::new(compiler.symbols());
//! scope.set(scale, Value::Int(1));
//! let mut rng = Seeds::new(7).session();
//! for command in &script.commands {
//!     match command {
//!         Command::Set { var, expr, .. } => {
//!             let value = eval(expr, &mut scope, &mut rng)?;
//!             scope.set(*var, value);
//!         }
//!         Command::Sql(sql) => {
//!             assert_eq!(sql.text, "select abalance from accounts where aid = $1");
//!             let mut parameter = Vec::new();
//!             assert!(scope.write_text(sql.params[0], &mut parameter));
//!             assert_eq!(parameter, b"46505"); // as with pgbench --random-seed=7
//!         }
//!         _ => {}
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From text to commands
//!
//! text -> `sql_lexer` (where a command ends) and `meta` (backslash commands, whose expressions `expr_lexer` and
//! `expr_parser` read) -> `compiler` (slots, jumps) -> [`Script`]. Each session then has a [`Scope`] and an [`Rng`]
//! and calls [`eval`].
//!
//! # The same values as pgbench
//!
//! With the number of `pgbench --random-seed`, [`Seeds`] returns the generators of client 0, 1, 2, ... in pgbench's
//! order. The random, hash and permutation functions make the same draws as pgbench 15 to 18, also in the order in
//! which the operands of `>` are evaluated. Both programs compute doubles with the platform's mathematical library,
//! so the last bit is equal if both use the same library and pgbench's compiler did not fuse multiplications and
//! additions.
//!
//! # Differences from pgbench's language
//!
//! - `\redo` is an addition; `\shell` and `\setshell` are refused: a script never runs a program.
//! - Errors that pgbench finds only when a command runs, or leaves to the server, are found when the script is
//!   compiled: an invalid variable name, an unclosed quote, more than 16 arguments.
//! - A variable inside quotes or a comment is not a parameter of the extended protocol ([`Sql::quoted`]); pgbench
//!   sends a statement that cannot work.
//! - `\:` is a colon that never begins a variable. `abs` of the smallest integer and of a boolean is an error
//!   (undefined in pgbench). NULL is sent as NULL in the extended protocol (pgbench sends the word).
//!
//! The crate is pure: no input, no output, no clock.

mod command;
mod compiler;
mod error;
mod eval;
mod expr;
mod expr_lexer;
mod expr_parser;
mod fold;
mod function;
mod meta;
mod names;
mod number_text;
mod operators;
mod random;
mod rng;
mod scope;
mod source;
mod spelling;
mod sql;
mod sql_lexer;
mod sql_quotes;
mod symbols;
mod value;

pub use command::{Command, Piece, Script, SleepTime, Sql, SqlKind, Store};
pub use compiler::Compiler;
pub use error::{EvalError, ScriptError};
pub use eval::eval;
pub use expr::Expr;
pub use rng::{Rng, Seeds};
pub use scope::Scope;
pub use symbols::{Symbols, VarId};
pub use value::Value;
