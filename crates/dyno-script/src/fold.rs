//! Constant folding of expressions.

use crate::eval;
use crate::expr::{Binary, Node};
use crate::rng::Rng;
use crate::scope::Scope;
use crate::symbols::Symbols;

impl Node {
    pub(crate) fn binary(operator: Binary, left: Self, right: Self) -> Self {
        Self::Binary(operator, Box::new([left, right])).folded()
    }

    /// Returns the node, replaced by a constant if its value is known at compile time.
    ///
    /// That requires constant operands, no randomness, and a calculation that succeeds. A calculation that fails is
    /// kept unchanged, and fails only if it is evaluated.
    pub(crate) fn folded(self) -> Self {
        if !self.is_foldable() {
            return self;
        }
        let mut scope = Scope::new(&Symbols::default());
        match eval::node(&self, &mut scope, &mut Rng::new(0)) {
            Ok(scalar) => Self::Constant(scalar),
            Err(_) => self,
        }
    }

    fn is_foldable(&self) -> bool {
        let constant = |node: &Self| matches!(node, Self::Constant(_));
        match self {
            Self::Constant(_) | Self::Variable(..) => false,
            Self::Binary(_, pair) | Self::And(pair) | Self::Or(pair) => pair.iter().all(constant),
            Self::Not(operand) | Self::Is(operand, _) => constant(operand),
            Self::Case(case) => {
                constant(&case.otherwise) && case.branches.iter().all(|(when, then)| constant(when) && constant(then))
            }
            Self::Call(function, arguments) => function.is_pure() && arguments.iter().all(constant),
        }
    }
}
