//! Outgoing messages of one SQL command, encoded once; only the values are written for each execution.

use bytes::BytesMut;
use dyno_script::{Piece, Scope, Sql, Symbols, VarId};
use postgres_protocol::message::frontend;

use super::WireError;

/// The message `Sync`.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];
/// The message `Flush`.
pub const FLUSH: [u8; 5] = [b'H', 0, 0, 0, 4];

/// Encoded messages of one SQL command.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// `Parse` with the statement's name, and `Describe` if the result is kept.
    parse_named: Vec<u8>,
    /// `Parse` and `Describe` without a name.
    parse_unnamed: Vec<u8>,
    /// `Bind` up to its values; its length is filled in later.
    bind_named: Vec<u8>,
    bind_unnamed: Vec<u8>,
    /// `Execute` for the unnamed portal, without a row limit.
    execute: Vec<u8>,
    params: Vec<VarId>,
    pieces: Vec<Piece>,
}

impl Statement {
    /// Encodes a script's command; `name` must be unique on the connection.
    ///
    /// # Errors
    /// The command is too long for the protocol or has too many parameters.
    pub fn new(name: &str, sql: &Sql) -> Result<Self, WireError> {
        Self::encode(name, &sql.text, &sql.params, &sql.pieces, sql.store.is_some())
    }

    /// Encodes internal SQL without parameters, whose result is kept.
    ///
    /// # Errors
    /// The SQL is too long for the protocol.
    pub fn fixed(name: &str, text: &str) -> Result<Self, WireError> {
        Self::encode(name, text, &[], &[Piece::Text(text.to_owned())], true)
    }

    fn encode(name: &str, text: &str, params: &[VarId], pieces: &[Piece], describe: bool) -> Result<Self, WireError> {
        let parse = |name: &str| -> Result<Vec<u8>, WireError> {
            let mut out = BytesMut::new();
            frontend::parse(name, text, [], &mut out)?;
            if describe {
                frontend::describe(b'S', name, &mut out)?;
            }
            Ok(out.to_vec())
        };
        let mut execute = BytesMut::new();
        frontend::execute("", 0, &mut execute)?;
        Ok(Self {
            parse_named: parse(name)?,
            parse_unnamed: parse("")?,
            bind_named: bind_head(name, params.len())?,
            bind_unnamed: bind_head("", params.len())?,
            execute: execute.to_vec(),
            params: params.to_vec(),
            pieces: pieces.to_vec(),
        })
    }

    /// Appends `Parse`.
    pub fn write_parse(&self, named: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(if named { &self.parse_named } else { &self.parse_unnamed });
    }

    /// Appends `Bind` with the current values, and `Execute`.
    #[inline]
    pub fn write_execute(&self, named: bool, scope: &Scope, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(if named { &self.bind_named } else { &self.bind_unnamed });
        for &var in &self.params {
            let at = out.len();
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            if scope.write_text(var, out) {
                set_length(out, at, 4);
            }
        }
        out.extend_from_slice(&[0, 0]); // results as text
        set_length(out, start + 1, 0);
        out.extend_from_slice(&self.execute);
    }

    /// Appends `Query` as text that contains the values.
    ///
    /// A variable without a value is sent as it is written in the script.
    pub fn write_query(&self, scope: &Scope, symbols: &Symbols, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[b'Q', 0, 0, 0, 0]);
        write_pieces(&self.pieces, scope, symbols, out);
        out.push(0);
        set_length(out, start + 1, 0);
    }
}

/// Appends the pieces of a command as text; a variable without a value is written as in the script.
pub fn write_pieces(pieces: &[Piece], scope: &Scope, symbols: &Symbols, out: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Var(var) if scope.write_text(*var, out) => {}
            Piece::Var(var) if scope.is_set(*var) => out.extend_from_slice(b"NULL"),
            Piece::Var(var) => {
                out.push(b':');
                out.extend_from_slice(symbols.name(*var).as_bytes());
            }
        }
    }
}

/// Appends `Query` with this text.
pub fn write_text_query(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[b'Q', 0, 0, 0, 0]);
    out.extend(text.bytes().filter(|&b| b != 0));
    out.push(0);
    set_length(out, start + 1, 0);
}

/// Writes the number of bytes from `at` to the end, minus `not_counted`, at position `at`.
fn set_length(out: &mut [u8], at: usize, not_counted: usize) {
    let length = (out.len() - at - not_counted) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn bind_head(name: &str, params: usize) -> Result<Vec<u8>, WireError> {
    let count =
        u16::try_from(params).map_err(|_| WireError::Protocol(format!("{params} parameters in one command")))?;
    let mut head = vec![b'B', 0, 0, 0, 0, 0];
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(&[0, 0, 0]); // end of the name, parameters as text
    head.extend_from_slice(&count.to_be_bytes());
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_script::{Command, Compiler, Value};

    fn compile(text: &str) -> (Compiler, Sql) {
        let mut compiler = Compiler::new();
        let script = compiler.compile("test", text).expect("compiles");
        let Some(Command::Sql(sql)) = script.commands.first() else { panic!("no SQL") };
        (compiler, sql.clone())
    }

    #[test]
    fn patched_bytes_equal_those_of_the_codec() {
        let (compiler, sql) = compile("update t set v = :v where id in (:id, :id);");
        let mut scope = Scope::new(compiler.symbols());
        let var = |name| compiler.symbols().lookup(name).expect("known");
        scope.set(var("v"), Value::Null);
        scope.set(var("id"), Value::Int(-42));
        let statement = Statement::new("s1", &sql).expect("encodes");
        let mut ours = Vec::new();
        statement.write_parse(true, &mut ours);
        statement.write_execute(true, &scope, &mut ours);
        ours.extend_from_slice(&SYNC);

        let mut theirs = BytesMut::new();
        frontend::parse("s1", "update t set v = $1 where id in ($2, $3)", [], &mut theirs).expect("encodes");
        let values = [None, Some("-42"), Some("-42")];
        let encoded = frontend::bind(
            "",
            "s1",
            [],
            values,
            |value: Option<&str>, out| {
                Ok(match value {
                    Some(text) => {
                        out.extend_from_slice(text.as_bytes());
                        postgres_protocol::IsNull::No
                    }
                    None => postgres_protocol::IsNull::Yes,
                })
            },
            [],
            &mut theirs,
        );
        assert!(encoded.is_ok());
        frontend::execute("", 0, &mut theirs).expect("encodes");
        frontend::sync(&mut theirs);
        assert_eq!(ours, theirs.to_vec());
    }

    #[test]
    fn the_simple_protocol_writes_values_into_the_text() {
        let (compiler, sql) = compile("select :a, :b, :c;");
        let mut scope = Scope::new(compiler.symbols());
        let var = |name| compiler.symbols().lookup(name).expect("known");
        scope.set(var("a"), Value::Int(7));
        scope.set(var("b"), Value::Null);
        let mut ours = Vec::new();
        let statement = Statement::new("s1", &sql).expect("encodes");
        statement.write_query(&scope, compiler.symbols(), &mut ours);
        let mut theirs = BytesMut::new();
        frontend::query("select 7, NULL, :c", &mut theirs).expect("encodes");
        assert_eq!(ours, theirs.to_vec());
    }
}
