//! What of an expression can be calculated beforehand.

use crate::eval;
use crate::expr::{Binary, Node};
use crate::rng::Rng;
use crate::scope::Scope;
use crate::symbols::Symbols;

impl Node {
    pub(crate) fn binary(operator: Binary, left: Self, right: Self) -> Self {
        Self::Binary(operator, Box::new([left, right])).folded()
    }

    /// The constant that this is, where all operands are constants, nothing is random, and the
    /// calculation succeeds. One that fails stays, and fails when (and if) it is evaluated.
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
