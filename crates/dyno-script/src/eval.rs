//! Evaluation of expressions: the hot path of a load generator. It allocates only for `debug()` and errors.
//!
//! The rules are those of pgbench. NULL operands give NULL (except for IS, CASE conditions and `debug`). If one
//! operand is a double, the operation is done on doubles; `%` and the bit operators round doubles to integers. AND
//! and OR do not evaluate their right side if the left one decides, and a NULL on the left decides.

use crate::error::Fault;
use crate::expr::{Binary, Expr, Node};
use crate::function::{Function, MOST_ARGUMENTS};
use crate::random::{self, Skew};
use crate::value::Scalar;
use crate::{EvalError, Rng, Scope, Value};

/// Evaluates an expression; the result is never text.
///
/// # Errors
/// A variable is unset or not a number, a value has the wrong type, an operation overflows, an integer is divided by
/// zero, or an argument of a function is invalid.
pub fn eval(expr: &Expr, scope: &mut Scope, rng: &mut Rng) -> Result<Value, EvalError> {
    node(&expr.root, scope, rng).map(Value::from).map_err(|fault| *fault)
}

pub(crate) fn node(node: &Node, scope: &mut Scope, rng: &mut Rng) -> Result<Scalar, Fault> {
    match node {
        Node::Constant(scalar) => Ok(*scalar),
        Node::Variable(var, name) => scope.read(*var, name),
        Node::Binary(operator, operands) => {
            let left = self::node(&operands[0], scope, rng)?;
            let right = self::node(&operands[1], scope, rng)?;
            binary(*operator, left, right)
        }
        Node::And(operands) => logical(operands, false, scope, rng),
        Node::Or(operands) => logical(operands, true, scope, rng),
        Node::Not(operand) => match self::node(operand, scope, rng)? {
            Scalar::Null => Ok(Scalar::Null),
            other => other.to_bool().map(|truth| Scalar::Bool(!truth)),
        },
        Node::Is(operand, constant) => {
            let scalar = self::node(operand, scope, rng)?;
            Ok(Scalar::Bool(scalar == *constant))
        }
        Node::Case(case) => {
            for (when, then) in &case.branches {
                if self::node(when, scope, rng)?.truth() {
                    return self::node(then, scope, rng);
                }
            }
            self::node(&case.otherwise, scope, rng)
        }
        Node::Call(function, arguments) => call(*function, arguments, scope, rng),
    }
}

/// Evaluates AND (`decisive` false) and OR (`decisive` true).
fn logical(operands: &[Node; 2], decisive: bool, scope: &mut Scope, rng: &mut Rng) -> Result<Scalar, Fault> {
    match node(&operands[0], scope, rng)? {
        Scalar::Null => return Ok(Scalar::Null),
        left if left.to_bool()? == decisive => return Ok(Scalar::Bool(decisive)),
        _ => {}
    }
    match node(&operands[1], scope, rng)? {
        Scalar::Null => Ok(Scalar::Null),
        right => right.to_bool().map(Scalar::Bool),
    }
}

fn call(function: Function, arguments: &[Node], scope: &mut Scope, rng: &mut Rng) -> Result<Scalar, Fault> {
    // Separate cases by the number of arguments, so that the usual call fills no more than it needs.
    match arguments {
        [only] => {
            let values = [node(only, scope, rng)?];
            if function == Function::Debug {
                scope.note_debug(values[0]);
                return Ok(values[0]);
            }
            unless_null(function, &values, rng)
        }
        [first, second] => {
            let values = [node(first, scope, rng)?, node(second, scope, rng)?];
            unless_null(function, &values, rng)
        }
        _ => {
            let mut values = [Scalar::Null; MOST_ARGUMENTS];
            for (argument, value) in arguments.iter().zip(&mut values) {
                *value = node(argument, scope, rng)?;
            }
            unless_null(function, &values[..arguments.len().min(MOST_ARGUMENTS)], rng)
        }
    }
}

#[inline]
fn unless_null(function: Function, values: &[Scalar], rng: &mut Rng) -> Result<Scalar, Fault> {
    if values.contains(&Scalar::Null) { Ok(Scalar::Null) } else { apply(function, values, rng) }
}

/// Applies a function to the number of values that its signature requires, none of them NULL.
fn apply(function: Function, values: &[Scalar], rng: &mut Rng) -> Result<Scalar, Fault> {
    let int = |place: usize| values[place].to_int();
    let double = |place: usize| values[place].to_double();
    Ok(match function {
        Function::Random => {
            let (low, high) = (int(0)?, int(1)?);
            random::check_range(low, high)?;
            Scalar::Int(random::uniform(rng, low, high))
        }
        Function::RandomExponential | Function::RandomGaussian | Function::RandomZipfian => {
            let (low, high) = (int(0)?, int(1)?);
            random::check_range(low, high)?;
            let skew = match function {
                Function::RandomExponential => Skew::exponential(double(2)?)?,
                Function::RandomGaussian => Skew::gaussian(double(2)?)?,
                _ => Skew::zipfian(double(2)?)?,
            };
            Scalar::Int(skew.draw(rng, low, high))
        }
        Function::Mod => return binary(Binary::Modulo, values[0], values[1]),
        Function::Abs => return absolute(values[0]),
        Function::Greatest | Function::Least => return extremum(function, values),
        Function::Debug => values[0],
        Function::Int => Scalar::Int(int(0)?),
        Function::Double => Scalar::Double(double(0)?),
        Function::Exp => Scalar::Double(double(0)?.exp()),
        Function::Ln => Scalar::Double(double(0)?.ln()),
        Function::Sqrt => Scalar::Double(double(0)?.sqrt()),
        Function::Power => Scalar::Double(double(0)?.powf(double(1)?)),
        Function::Pi => Scalar::Double(std::f64::consts::PI),
        Function::HashFnv1a => Scalar::Int(random::hash_fnv1a(int(0)?, int(1)?)),
        Function::HashMurmur2 => Scalar::Int(random::hash_murmur2(int(0)?, int(1)?)),
        Function::Permute => {
            let (number, size, seed) = (int(0)?, int(1)?, int(2)?);
            if size <= 0 {
                return Err(EvalError::PermuteSize { size }.into());
            }
            Scalar::Int(random::permute(number, size, seed))
        }
    })
}

fn absolute(value: Scalar) -> Result<Scalar, Fault> {
    match value {
        Scalar::Int(number) => number
            .checked_abs()
            .map(Scalar::Int)
            .ok_or_else(|| EvalError::IntegerRange { operation: "an absolute value" }.into()),
        // Not f64::abs: pgbench keeps the sign of a zero.
        Scalar::Double(number) => Ok(Scalar::Double(if number < 0.0 { -number } else { number })),
        other => other.to_double().map(Scalar::Double),
    }
}

fn extremum(function: Function, values: &[Scalar]) -> Result<Scalar, Fault> {
    let greatest = function == Function::Greatest;
    if values.iter().any(|value| matches!(value, Scalar::Double(_))) {
        let mut best = values[0].to_double()?;
        for value in &values[1..] {
            let other = value.to_double()?;
            // Written so that a NaN loses or wins as in pgbench.
            let keep = if greatest { best > other } else { best < other };
            best = if keep { best } else { other };
        }
        return Ok(Scalar::Double(best));
    }
    let mut best = values[0].to_int()?;
    for value in &values[1..] {
        let other = value.to_int()?;
        best = if greatest { best.max(other) } else { best.min(other) };
    }
    Ok(Scalar::Int(best))
}

fn binary(operator: Binary, left: Scalar, right: Scalar) -> Result<Scalar, Fault> {
    if left == Scalar::Null || right == Scalar::Null {
        return Ok(Scalar::Null);
    }
    let doubles = matches!(left, Scalar::Double(_)) || matches!(right, Scalar::Double(_));
    if doubles && let Some(result) = on_doubles(operator, left, right)? {
        return Ok(result);
    }
    on_integers(operator, left.to_int()?, right.to_int()?)
}

/// Evaluates an operator on doubles; returns `None` for operators that work on integers only.
fn on_doubles(operator: Binary, left: Scalar, right: Scalar) -> Result<Option<Scalar>, Fault> {
    if matches!(
        operator,
        Binary::Modulo | Binary::BitAnd | Binary::BitOr | Binary::BitXor | Binary::ShiftLeft | Binary::ShiftRight
    ) {
        return Ok(None);
    }
    let (left, right) = (left.to_double()?, right.to_double()?);
    #[allow(clippy::float_cmp)] // the script requests an exact comparison
    let result = match operator {
        Binary::Add => Scalar::Double(left + right),
        Binary::Subtract => Scalar::Double(left - right),
        Binary::Multiply => Scalar::Double(left * right),
        Binary::Divide => Scalar::Double(left / right),
        Binary::Equal => Scalar::Bool(left == right),
        Binary::NotEqual => Scalar::Bool(left != right),
        Binary::Less => Scalar::Bool(left < right),
        Binary::LessOrEqual => Scalar::Bool(left <= right),
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn on_integers(operator: Binary, left: i64, right: i64) -> Result<Scalar, Fault> {
    let fits = |result: Option<i64>, operation: &'static str| {
        result.map(Scalar::Int).ok_or_else(|| EvalError::IntegerRange { operation }.into())
    };
    match operator {
        Binary::Add => fits(left.checked_add(right), "an addition"),
        Binary::Subtract => fits(left.checked_sub(right), "a subtraction"),
        Binary::Multiply => fits(left.checked_mul(right), "a multiplication"),
        Binary::Divide | Binary::Modulo if right == 0 => Err(EvalError::DivisionByZero.into()),
        Binary::Divide => fits(left.checked_div(right), "a division"),
        Binary::Modulo => Ok(Scalar::Int(left.wrapping_rem(right))),
        Binary::Equal => Ok(Scalar::Bool(left == right)),
        Binary::NotEqual => Ok(Scalar::Bool(left != right)),
        Binary::Less => Ok(Scalar::Bool(left < right)),
        Binary::LessOrEqual => Ok(Scalar::Bool(left <= right)),
        Binary::BitAnd => Ok(Scalar::Int(left & right)),
        Binary::BitOr => Ok(Scalar::Int(left | right)),
        Binary::BitXor => Ok(Scalar::Int(left ^ right)),
        // The count is taken modulo 64, as on the processors on which pgbench runs.
        Binary::ShiftLeft => Ok(Scalar::Int(left.wrapping_shl(right as u32))),
        Binary::ShiftRight => Ok(Scalar::Int(left.wrapping_shr(right as u32))),
    }
}
