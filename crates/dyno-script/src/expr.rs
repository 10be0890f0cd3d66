//! Syntax tree of an expression.

use crate::VarId;
use crate::function::Function;
use crate::value::Scalar;

/// Largest height of a tree: deeper expressions are refused, so that evaluation cannot exhaust the stack.
pub(crate) const DEEPEST: usize = 500;

/// Parsed expression.
#[derive(Debug, Clone)]
pub struct Expr {
    pub(crate) root: Node,
}

impl Expr {
    /// Returns true if the expression is a constant, which costs nothing to evaluate.
    pub fn is_constant(&self) -> bool {
        matches!(self.root, Node::Constant(_))
    }
}

/// One operation with its operands.
///
/// Operands are evaluated in the order listed here, which decides which of them draws random numbers first.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Constant(Scalar),
    Variable(VarId, Box<str>),
    Binary(Binary, Box<[Node; 2]>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Not(Box<Node>),
    Is(Box<Node>, Scalar),
    Case(Box<Case>),
    Call(Function, Box<[Node]>),
}

/// `case when ... then ... else ... end`.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Conditions and results, in order.
    pub(crate) branches: Vec<(Node, Node)>,
    /// Result if no condition is true.
    pub(crate) otherwise: Node,
}

/// Operators that always evaluate both operands. `>` and `>=` are `<` and `<=` with exchanged operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

impl Node {
    pub(crate) fn integer(number: i64) -> Self {
        Self::Constant(Scalar::Int(number))
    }
}
