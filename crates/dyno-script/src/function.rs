//! Functions that expressions can call, one table row for each.
//!
//! The parser, its messages and the list in the documentation are made from these rows.

use crate::spelling;

/// Largest number of arguments of a function, as in pgbench.
pub(crate) const MOST_ARGUMENTS: usize = 16;

/// Function that a call evaluates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Mod,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

impl Function {
    /// Returns true if equal arguments give an equal result and there are no side effects.
    pub(crate) fn is_pure(self) -> bool {
        !matches!(
            self,
            Self::Debug | Self::Random | Self::RandomExponential | Self::RandomGaussian | Self::RandomZipfian
        )
    }
}

/// Signature of a function, as the author of a script sees it.
#[derive(Debug)]
pub(crate) struct Signature {
    /// Name in lower case; scripts may write it in any case.
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    /// Smallest number of arguments.
    pub(crate) fewest: usize,
    /// Largest number of arguments.
    pub(crate) most: usize,
    /// True if `:default_seed` replaces the last argument when that is omitted.
    pub(crate) seeded: bool,
    /// Syntax of a call, for messages.
    pub(crate) usage: &'static str,
}

const fn row(name: &'static str, function: Function, arguments: (usize, usize), usage: &'static str) -> Signature {
    Signature { name, function, fewest: arguments.0, most: arguments.1, seeded: false, usage }
}

const fn seeded(name: &'static str, function: Function, arguments: (usize, usize), usage: &'static str) -> Signature {
    Signature { name, function, fewest: arguments.0, most: arguments.1, seeded: true, usage }
}

/// All functions, in alphabetical order.
pub(crate) const SIGNATURES: &[Signature] = &[
    row("abs", Function::Abs, (1, 1), "abs(number)"),
    row("debug", Function::Debug, (1, 1), "debug(value)"),
    row("double", Function::Double, (1, 1), "double(number)"),
    row("exp", Function::Exp, (1, 1), "exp(number)"),
    row("greatest", Function::Greatest, (1, MOST_ARGUMENTS), "greatest(number, ...)"),
    seeded("hash", Function::HashMurmur2, (1, 2), "hash(number [, seed])"),
    seeded("hash_fnv1a", Function::HashFnv1a, (1, 2), "hash_fnv1a(number [, seed])"),
    seeded("hash_murmur2", Function::HashMurmur2, (1, 2), "hash_murmur2(number [, seed])"),
    row("int", Function::Int, (1, 1), "int(number)"),
    row("least", Function::Least, (1, MOST_ARGUMENTS), "least(number, ...)"),
    row("ln", Function::Ln, (1, 1), "ln(number)"),
    row("mod", Function::Mod, (2, 2), "mod(integer, integer)"),
    seeded("permute", Function::Permute, (2, 3), "permute(number, size [, seed])"),
    row("pi", Function::Pi, (0, 0), "pi()"),
    row("pow", Function::Power, (2, 2), "pow(base, exponent)"),
    row("power", Function::Power, (2, 2), "power(base, exponent)"),
    row("random", Function::Random, (2, 2), "random(low, high)"),
    row("random_exponential", Function::RandomExponential, (3, 3), "random_exponential(low, high, parameter)"),
    row("random_gaussian", Function::RandomGaussian, (3, 3), "random_gaussian(low, high, parameter)"),
    row("random_zipfian", Function::RandomZipfian, (3, 3), "random_zipfian(low, high, parameter)"),
    row("sqrt", Function::Sqrt, (1, 1), "sqrt(number)"),
];

/// Returns the function with this name, ignoring case.
pub(crate) fn find(name: &str) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|signature| signature.name.eq_ignore_ascii_case(name))
}

/// Returns a hint for a name that is not a function.
pub(crate) fn suggestion(name: &str) -> String {
    let names = || SIGNATURES.iter().map(|signature| signature.name);
    spelling::nearest(name, names()).map_or_else(
        || format!("the functions are {}", names().collect::<Vec<_>>().join(", ")),
        |nearest| format!("the nearest function is {nearest}"),
    )
}
