//! Parser of expressions: precedence climbing over the levels of `operators`.

use crate::ScriptError;
use crate::expr::{Binary, Case, DEEPEST, Expr, Node};
use crate::expr_lexer::{Spanned, Token, tokens, too_large};
use crate::function::{self, MOST_ARGUMENTS, Signature};
use crate::names::Names;
use crate::operators::{BITS, COMPARISON, Infix, NOT, OR, SIGN, infix, is_keyword};
use crate::source::Source;
use crate::value::Scalar;

/// Parses an expression that begins at `start` and extends to the end of its line.
///
/// Returns the expression and the offset after the line.
pub(crate) fn parse(source: &Source, start: usize, names: &mut Names) -> Result<(Expr, usize), ScriptError> {
    let (tokens, end) = tokens(source, start)?;
    let mut parser = Parser { source, tokens, place: 0, nesting: 0, names };
    let tree = parser.expression(OR)?;
    match parser.peek().token {
        Token::End => Ok((Expr { root: tree.node }, end)),
        _ => Err(parser.unexpected("an operator or the end of the line")),
    }
}

/// Node and the height of its tree, which is limited so that evaluation cannot exhaust the stack.
struct Tree {
    node: Node,
    height: usize,
}

impl Tree {
    fn leaf(node: Node) -> Self {
        Self { node, height: 1 }
    }

    fn above(node: Node, height: usize) -> Self {
        let node = node.folded();
        let height = if matches!(node, Node::Constant(_)) { 1 } else { height + 1 };
        Self { node, height }
    }
}

struct Parser<'s, 'r> {
    source: &'s Source<'s>,
    tokens: Vec<Spanned<'s>>,
    place: usize,
    nesting: usize,
    names: &'r mut Names,
}

impl<'s> Parser<'s, '_> {
    fn peek(&self) -> Spanned<'s> {
        self.tokens[self.place.min(self.tokens.len() - 1)]
    }

    fn take(&mut self) -> Spanned<'s> {
        let token = self.peek();
        self.place += 1;
        token
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek().token, Token::Word(w) if w.eq_ignore_ascii_case(word));
        self.place += usize::from(found);
        found
    }

    fn takes_symbol(&mut self, symbol: &'static str) -> bool {
        let found = self.peek().token == Token::Symbol(symbol);
        self.place += usize::from(found);
        found
    }

    /// Parses an expression of operators that bind at least as tightly as level `least`.
    fn expression(&mut self, least: u8) -> Result<Tree, ScriptError> {
        self.nesting += 1;
        if self.nesting > DEEPEST / 4 {
            return Err(self.too_deep());
        }
        let mut left = self.prefix()?;
        let mut compared = false;
        while let Some((level, infix)) = infix(self.peek().token) {
            if level < least {
                break;
            }
            if level == COMPARISON && compared {
                return Err(self.source.error(
                    self.peek().start,
                    "comparisons cannot be chained",
                    "join two comparisons by and, or use parentheses",
                ));
            }
            compared = level == COMPARISON;
            left = self.infix(left, level, &infix)?;
            if left.height > DEEPEST {
                return Err(self.too_deep());
            }
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn infix(&mut self, left: Tree, level: u8, infix: &Infix) -> Result<Tree, ScriptError> {
        if let Infix::Test = infix {
            return self.test(left);
        }
        self.take();
        let right = self.expression(level + 1)?;
        let height = left.height.max(right.height);
        let node = match infix {
            Infix::Or => Node::Or(Box::new([left.node, right.node])),
            Infix::And => Node::And(Box::new([left.node, right.node])),
            Infix::Operator(operator, true) => Node::binary(*operator, right.node, left.node),
            Infix::Operator(operator, false) => Node::binary(*operator, left.node, right.node),
            Infix::Test => left.node,
        };
        Ok(Tree::above(node, height))
    }

    /// Parses `is [not] null`, `is [not] true`, `is [not] false`, `isnull` and `notnull`.
    fn test(&mut self, left: Tree) -> Result<Tree, ScriptError> {
        let (negated, constant) = if self.takes_word("isnull") {
            (false, Scalar::Null)
        } else if self.takes_word("notnull") {
            (true, Scalar::Null)
        } else {
            self.take(); // is
            let negated = self.takes_word("not");
            if self.takes_word("null") {
                (negated, Scalar::Null)
            } else if self.takes_word("true") {
                (negated, Scalar::Bool(true))
            } else if self.takes_word("false") {
                (negated, Scalar::Bool(false))
            } else {
                return Err(self.unexpected("null, true or false behind is"));
            }
        };
        let test = Tree::above(Node::Is(Box::new(left.node), constant), left.height);
        if negated { Ok(not(test)) } else { Ok(test) }
    }

    /// Parses an operand with its prefix operators.
    fn prefix(&mut self) -> Result<Tree, ScriptError> {
        if self.takes_symbol("+") {
            return self.expression(SIGN + 1);
        }
        if self.takes_symbol("-") {
            if self.peek().token == Token::SmallestMagnitude {
                self.take();
                return Ok(Tree::leaf(Node::integer(i64::MIN)));
            }
            let operand = self.expression(SIGN + 1)?;
            let node = Node::binary(Binary::Subtract, Node::integer(0), operand.node);
            return Ok(Tree::above(node, operand.height));
        }
        if self.takes_symbol("~") {
            let operand = self.expression(BITS + 1)?;
            let node = Node::binary(Binary::BitXor, Node::integer(-1), operand.node);
            return Ok(Tree::above(node, operand.height));
        }
        if self.takes_word("not") {
            return Ok(not(self.expression(NOT + 1)?));
        }
        self.operand()
    }

    fn operand(&mut self) -> Result<Tree, ScriptError> {
        let Spanned { token, start, end } = self.peek();
        let leaf = match token {
            Token::Integer(number) => Node::integer(number),
            Token::Double(number) => Node::Constant(Scalar::Double(number)),
            Token::SmallestMagnitude => {
                return Err(too_large(self.source, start, &self.source.text[start..end]));
            }
            Token::Variable(name) => Node::Variable(self.names.read(self.source, name, start), name.into()),
            Token::Symbol("(") => {
                self.take();
                let inner = self.expression(OR)?;
                self.close("( expression )")?;
                return Ok(inner);
            }
            Token::Word(word) => return self.word(word),
            Token::Symbol(_) | Token::End => return Err(self.unexpected("a value")),
        };
        self.take();
        Ok(Tree::leaf(leaf))
    }

    fn word(&mut self, word: &'s str) -> Result<Tree, ScriptError> {
        for (name, scalar) in [("null", Scalar::Null), ("true", Scalar::Bool(true)), ("false", Scalar::Bool(false))] {
            if self.takes_word(name) {
                return Ok(Tree::leaf(Node::Constant(scalar)));
            }
        }
        if self.takes_word("case") {
            return self.case();
        }
        if is_keyword(word) {
            return Err(self.unexpected("a value"));
        }
        let start = self.take().start;
        let called = self.peek().token == Token::Symbol("(");
        match function::find(word) {
            Some(signature) if called => self.call(signature, start),
            Some(signature) => Err(self.source.error(
                start,
                format!("the function {} has no arguments", signature.name),
                format!("write {}", signature.usage),
            )),
            None if called => {
                Err(self.source.error(start, format!("unknown function {word}"), function::suggestion(word)))
            }
            None => Err(self.source.error(
                start,
                format!("{word} is neither a value nor a function"),
                format!("write a colon before the name of a variable: :{word}"),
            )),
        }
    }

    fn call(&mut self, signature: &Signature, start: usize) -> Result<Tree, ScriptError> {
        self.take(); // the opening parenthesis
        let mut arguments = Vec::new();
        let mut height = 0;
        if self.peek().token != Token::Symbol(")") {
            loop {
                let argument = self.expression(OR)?;
                height = height.max(argument.height);
                arguments.push(argument.node);
                if !self.takes_symbol(",") {
                    break;
                }
            }
        }
        self.close(signature.usage)?;
        if !(signature.fewest..=signature.most).contains(&arguments.len()) {
            return Err(self.source.error(
                start,
                format!("{} does not take {}", signature.name, count(arguments.len())),
                if arguments.len() > MOST_ARGUMENTS {
                    format!("a function takes at most {MOST_ARGUMENTS} arguments; nest two calls")
                } else {
                    format!("write {}", signature.usage)
                },
            ));
        }
        if signature.seeded && arguments.len() < signature.most {
            let seed = self.names.read(self.source, "default_seed", start);
            arguments.push(Node::Variable(seed, "default_seed".into()));
            height = height.max(1);
        }
        Ok(Tree::above(Node::Call(signature.function, arguments.into()), height))
    }

    /// Parses a `case` expression after its keyword.
    fn case(&mut self) -> Result<Tree, ScriptError> {
        let mut branches = Vec::new();
        let mut height = 1;
        while self.takes_word("when") {
            let when = self.expression(OR)?;
            if !self.takes_word("then") {
                return Err(self.unexpected("then"));
            }
            let then = self.expression(OR)?;
            height = height.max(when.height).max(then.height);
            branches.push((when.node, then.node));
        }
        if branches.is_empty() {
            return Err(self.unexpected("when"));
        }
        let mut otherwise = Node::Constant(Scalar::Null);
        if self.takes_word("else") {
            let tree = self.expression(OR)?;
            height = height.max(tree.height);
            otherwise = tree.node;
        }
        if !self.takes_word("end") {
            return Err(self.unexpected("when, else or end"));
        }
        Ok(Tree::above(Node::Case(Box::new(Case { branches, otherwise })), height))
    }

    fn close(&mut self, what: &str) -> Result<(), ScriptError> {
        if self.takes_symbol(")") {
            return Ok(());
        }
        let mut error = self.unexpected("a closing parenthesis");
        error.hint = format!("add what is missing: {what}");
        Err(error)
    }

    fn unexpected(&self, wanted: &str) -> ScriptError {
        let Spanned { token, start, end } = self.peek();
        let what = match token {
            Token::End => "the line ends where the expression goes on".to_owned(),
            _ => format!("unexpected {:?} in an expression", &self.source.text[start..end]),
        };
        self.source.error(start, what, format!("put {wanted} here"))
    }

    fn too_deep(&self) -> ScriptError {
        self.source.error(
            self.peek().start,
            "the expression is too deep",
            "divide it: put parts of it into variables with \\set",
        )
    }
}

fn not(operand: Tree) -> Tree {
    Tree::above(Node::Not(Box::new(operand.node)), operand.height)
}

fn count(arguments: usize) -> String {
    match arguments {
        0 => "an empty list of arguments".to_owned(),
        1 => "1 argument".to_owned(),
        many => format!("{many} arguments"),
    }
}
