//! From tokens to trees.

use crate::ast::{Expr, Fold, FoldKind, Init, Literal, Node};
use crate::errors::Finding;
use crate::lexer::{Kind, Token, tokens};

/// How deep trees may be: what walks them recursively must fit on a stack.
pub(crate) const MAX_DEPTH: usize = 100;
/// How deep brackets may nest, which takes more of a stack than what stands in them.
const MAX_BRACKETS: usize = 40;
/// How long sources may be, in characters.
pub(crate) const MAX_LENGTH: usize = 100_000;
const EXPRESSION: &str =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// How often parsing goes on behind something wrong.
const MAX_RECOVERIES: usize = 30;
/// What an index begins with.
const INDEX: &str = "{'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// What is behind the bracket of a call.
const ARGUMENTS: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// What is behind the bracket of a list.
const ELEMENTS: &str = "{'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// What is behind the bracket of a map.
const ENTRIES: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// Words that are kept for languages to come.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Reads a source.
pub(crate) fn parse(source: &str) -> Result<Expr, Vec<Finding>> {
    let length = source.chars().count();
    if length > MAX_LENGTH {
        let why = format!("expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}");
        return Err(vec![Finding::new(0, why)]);
    }
    let (tokens, findings) = tokens(source);
    let mut parser = Parser {
        tokens,
        at: 0,
        findings,
        depth: 0,
    };
    let parsed = parser.expression();
    if parsed.is_some() && parser.sign() != Some("end") {
        parser.unexpected_end();
    }
    match parsed {
        Some(expr) if parser.findings.is_empty() => Ok(expr),
        _ => Err(parser.findings),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    findings: Vec<Finding>,
    depth: usize,
}

/// Binary operators by how tightly they bind.
fn binary(sign: &str) -> Option<(u8, &'static str)> {
    Some(match sign {
        "<" => (1, "_<_"),
        "<=" => (1, "_<=_"),
        ">" => (1, "_>_"),
        ">=" => (1, "_>=_"),
        "==" => (1, "_==_"),
        "!=" => (1, "_!=_"),
        "in" => (1, "@in"),
        "+" => (2, "_+_"),
        "-" => (2, "_-_"),
        "*" => (3, "_*_"),
        "/" => (3, "_/_"),
        "%" => (3, "_%_"),
        _ => return None,
    })
}

/// Whether an expression may begin with a token.
fn begins(token: &Token) -> bool {
    match &token.kind {
        Kind::Sign(sign) => matches!(*sign, "[" | "{" | "(" | "." | "-" | "!" | "true" | "false" | "null"),
        Kind::End | Kind::Quoted(_) => false,
        _ => true,
    }
}

fn call(at: usize, name: &str, args: Vec<Expr>) -> Expr {
    Expr::new(
        at,
        Node::Call {
            name: name.to_owned(),
            target: None,
            args,
        },
    )
}

impl Parser {
    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at).or_else(|| self.tokens.last())
    }

    fn place(&self) -> usize {
        self.token().map_or(0, |token| token.at)
    }

    fn shown(&self) -> String {
        self.token().map_or_else(String::new, |token| token.text.clone())
    }

    fn sign(&self) -> Option<&'static str> {
        match self.token().map(|token| &token.kind) {
            Some(Kind::Sign(sign)) => Some(sign),
            Some(Kind::End) | None => Some("end"),
            _ => None,
        }
    }

    fn too_deep(&mut self) -> Option<Expr> {
        let why = format!("expression recursion limit exceeded: {MAX_DEPTH}");
        self.findings = vec![Finding::new(self.place(), why)];
        None
    }

    /// Hands on a tree that is not too deep.
    fn shallow(&mut self, expr: Expr) -> Option<Expr> {
        match expr.depth > MAX_DEPTH {
            true => self.too_deep(),
            false => Some(expr),
        }
    }

    /// Takes a sign, if it is next.
    fn take(&mut self, sign: &str) -> bool {
        let taken = self.sign() == Some(sign);
        self.at += usize::from(taken);
        taken
    }

    fn fail<T>(&mut self, message: String) -> Option<T> {
        self.findings.push(Finding::syntax(self.place(), message));
        None
    }

    fn unexpected_end(&mut self) {
        let found = self.shown();
        let follows = self.tokens.get(self.at + 1).is_none_or(|next| next.kind == Kind::End);
        let verb = if follows { "extraneous" } else { "mismatched" };
        let _: Option<()> = self.fail(format!("{verb} input '{found}' expecting <EOF>"));
    }

    /// Whether the sign stands behind what is next, so that that alone is too much.
    fn next_is(&self, sign: &str) -> bool {
        let next = self.tokens.get(self.at + 1).map(|token| &token.kind);
        self.sign() != Some("end") && matches!(next, Some(Kind::Sign(own)) if *own == sign)
    }

    fn expect(&mut self, sign: &'static str, expected: &str) -> Option<()> {
        if self.take(sign) {
            return Some(());
        }
        let found = self.shown();
        if self.next_is(sign) {
            return self.fail(format!("extraneous input '{found}' expecting '{sign}'"));
        }
        self.fail(match self.goes_on_behind(sign) {
            true => format!("missing '{sign}' at '{found}'"),
            false => format!("mismatched input '{found}' expecting {expected}"),
        })
    }

    /// Whether what is next may stand behind a sign, so that only the sign is missing.
    fn goes_on_behind(&self, sign: &str) -> bool {
        if sign == ":" {
            return self.token().is_some_and(begins);
        }
        let mut open = Vec::new();
        for token in self.tokens.iter().take(self.at) {
            match token.kind {
                Kind::Sign(sign @ ("(" | "[" | "{")) => open.push(sign),
                Kind::Sign(")" | "]" | "}") => drop(open.pop()),
                _ => {}
            }
        }
        // the sign would close the last of them
        open.pop();
        let around = open.last().copied();
        match self.sign() {
            Some("end") => around.is_none(),
            Some(")") => around == Some("("),
            Some("]") => around == Some("["),
            Some("}") => around == Some("{"),
            Some(sign) => binary(sign).is_some() || matches!(sign, "&&" | "||" | "?" | "." | "["),
            None => false,
        }
    }

    /// Whether an expression, or one of these signs, is next; if not, that is told.
    fn is_next(&mut self, others: &[&str], expected: &str) -> bool {
        let is_other = self.sign().is_some_and(|sign| others.contains(&sign));
        is_other || self.token().is_some_and(begins) || self.leaves_out(expected)
    }

    fn expression(&mut self) -> Option<Expr> {
        self.depth += 1;
        if self.depth > MAX_BRACKETS {
            return self.too_deep();
        }
        let condition = self.logic(false)?;
        let at = self.place();
        let parsed = if self.take("?") {
            let yes = self.logic(false)?;
            self.expect(":", "':'")?;
            let no = self.expression()?;
            call(at, "_?_:_", vec![condition, yes, no])
        } else {
            condition
        };
        self.depth -= 1;
        self.shallow(parsed)
    }

    fn logic(&mut self, and: bool) -> Option<Expr> {
        let sign = if and { "&&" } else { "||" };
        let next = |parser: &mut Self| match and {
            true => parser.binary(1),
            false => parser.logic(true),
        };
        let first = next(self)?;
        let at = self.place();
        let mut args = vec![first];
        while self.take(sign) {
            args.push(next(self)?);
        }
        match args.len() {
            1 => args.pop(),
            _ => Some(Expr::new(at, Node::Logic { and, args })),
        }
    }

    fn binary(&mut self, least: u8) -> Option<Expr> {
        let mut left = self.unary()?;
        while let Some((binds, name)) = self.sign().and_then(binary).filter(|(binds, _)| *binds >= least) {
            let at = self.place();
            self.at += 1;
            let right = self.binary(binds + 1)?;
            left = self.shallow(call(at, name, vec![left, right]))?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr> {
        let sign = match self.sign() {
            Some(sign @ ("!" | "-")) => sign,
            _ => return self.member(),
        };
        let at = self.place();
        let (mut count, mut last) = (0_usize, at);
        while self.sign() == Some(sign) {
            last = self.place();
            self.at += 1;
            count += 1;
        }
        if !self.token().is_some_and(begins) {
            let found = self.shown();
            if sign == "!" {
                let _: Option<()> = self.fail(format!("extraneous input '{found}' expecting {EXPRESSION}"));
                self.goes_wrong_behind();
                return None;
            }
            // whether it is a sign or a number's is not to be seen
            let space = " ".repeat(self.place().saturating_sub(last + 1));
            let between = match self.sign() {
                Some("end") => String::new(),
                _ => format!("{space}{found}"),
            };
            let _: Option<()> = self.fail(format!("no viable alternative at input '-{between}'"));
        }
        if sign == "-"
            && count == 1
            && let Some(Kind::Int(text)) = self.token().map(|token| token.kind.clone())
        {
            let Some(value) = integer(&format!("-{text}")) else {
                self.findings.push(Finding::new(at, "invalid int literal"));
                return None;
            };
            // the smallest number has no positive counterpart
            self.at += 1;
            let literal = Expr::new(at, Node::Literal(Literal::Int(value)));
            return self.suffixes(literal);
        }
        if sign == "-"
            && count == 1
            && let Some(Kind::Double(value)) = self.token().map(|token| token.kind.clone())
        {
            self.at += 1;
            let literal = Expr::new(at, Node::Literal(Literal::Double(-value)));
            return self.suffixes(literal);
        }
        let operand = self.member()?;
        Some(match (count % 2, sign) {
            (0, _) => operand,
            (_, "!") => call(at, "!_", vec![operand]),
            _ => call(at, "-_", vec![operand]),
        })
    }

    fn member(&mut self) -> Option<Expr> {
        let primary = self.primary()?;
        self.suffixes(primary)
    }

    fn suffixes(&mut self, mut expr: Expr) -> Option<Expr> {
        loop {
            expr = self.shallow(expr)?;
            let at = self.place();
            if self.take(".") {
                let optional = self.take("?");
                let field = match self.token().map(|token| token.kind.clone()) {
                    Some(Kind::Ident(name)) => name,
                    Some(Kind::Quoted(_)) => {
                        let why = "unsupported syntax: '`'";
                        self.findings.push(Finding::new(self.place(), why));
                        return None;
                    }
                    _ => {
                        let found = self.shown().replace("<EOF>", "");
                        let _: Option<()> = self.fail(format!("no viable alternative at input '.{found}'"));
                        self.goes_wrong_behind();
                        return None;
                    }
                };
                self.at += 1;
                let open = self.place();
                if !optional && self.take("(") {
                    let args = self.arguments()?;
                    expr = self.macro_or_call(open, field, Some(expr), args)?;
                } else {
                    expr = Expr::new(
                        at,
                        Node::Select {
                            operand: Box::new(expr),
                            field,
                            optional,
                        },
                    );
                }
            } else if self.take("[") {
                if !self.is_next(&["?"], INDEX) {
                    return None;
                }
                let optional = self.take("?");
                let index = self.expression()?;
                self.expect("]", "']'")?;
                expr = call(at, if optional { "_[?_]" } else { "_[_]" }, vec![expr, index]);
            } else if self.sign() == Some("{")
                && let Some(name) = qualified(&expr)
            {
                expr = self.structure(at, name)?;
            } else {
                return Some(expr);
            }
        }
    }

    fn structure(&mut self, at: usize, name: String) -> Option<Expr> {
        self.at += 1;
        let mut fields = Vec::new();
        while !self.take("}") {
            let optional = self.take("?");
            let field = match self.token().map(|token| token.kind.clone()) {
                Some(Kind::Ident(name) | Kind::Quoted(name)) => name,
                _ => {
                    let found = self.shown();
                    let _: Option<()> = self.fail(format!(
                        "mismatched input '{found}' expecting {{'}}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}}"
                    ));
                    self.goes_wrong_behind();
                    return None;
                }
            };
            self.at += 1;
            let colon = self.place();
            self.expect(":", "':'")?;
            fields.push(Init {
                at: colon,
                name: field,
                optional,
                value: self.expression()?,
            });
            if !self.is_next_in_row("}")? && self.sign() != Some("}") {
                return None;
            }
        }
        Some(Expr::new(at, Node::Struct { name, fields }))
    }

    fn arguments(&mut self) -> Option<Vec<Expr>> {
        let mut args = Vec::new();
        if !self.is_next(&[")"], ARGUMENTS) {
            return None;
        }
        if self.take(")") {
            return Some(args);
        }
        loop {
            args.push(self.expression()?);
            if !self.take(",") {
                self.expect(")", "')'")?;
                return Some(args);
            }
        }
    }

    fn primary(&mut self) -> Option<Expr> {
        let at = self.place();
        let literal = |literal: Literal| Some(Expr::new(at, Node::Literal(literal)));
        let kind = self.token().map_or(Kind::End, |token| token.kind.clone());
        let parsed = match kind {
            Kind::Text(text) => literal(Literal::Text(text)),
            Kind::Bytes(bytes) => literal(Literal::Bytes(bytes)),
            Kind::Double(value) if value.is_infinite() => {
                self.findings.push(Finding::new(at, "invalid double literal"));
                None
            }
            Kind::Double(value) => literal(Literal::Double(value)),
            Kind::Int(text) => match integer(&text) {
                Some(value) => literal(Literal::Int(value)),
                None => {
                    self.findings.push(Finding::new(at, "invalid int literal"));
                    None
                }
            },
            Kind::Uint(text) => match unsigned(&text) {
                Some(value) => literal(Literal::Uint(value)),
                None => {
                    self.findings.push(Finding::new(at, "invalid uint literal"));
                    None
                }
            },
            Kind::Sign("true") => literal(Literal::Bool(true)),
            Kind::Sign("false") => literal(Literal::Bool(false)),
            Kind::Sign("null") => literal(Literal::Null),
            Kind::Sign("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")", "')'")?;
                return Some(inner);
            }
            Kind::Sign("[") => return self.list(at),
            Kind::Sign("{") => return self.map(at),
            Kind::Sign(".") => {
                self.at += 1;
                if !matches!(self.token().map(|token| &token.kind), Some(Kind::Ident(_))) {
                    let found = self.shown().replace("<EOF>", "");
                    return self.fail(format!("no viable alternative at input '.{found}'"));
                }
                return self.identifier(self.place());
            }
            Kind::Ident(_) => return self.identifier(at),
            _ => return self.leaves_out(EXPRESSION).then(|| self.primary()).flatten(),
        };
        self.at += 1;
        parsed
    }

    /// Tells of something that begins no expression. Leaves it out, if one follows it.
    fn leaves_out(&mut self, expected: &str) -> bool {
        let left_out = self.tells_of_wrong(expected);
        if !left_out {
            self.goes_wrong_behind();
        }
        left_out
    }

    fn tells_of_wrong(&mut self, expected: &str) -> bool {
        let found = self.shown();
        let extraneous = self.sign() != Some("end") && self.tokens.get(self.at + 1).is_some_and(begins);
        let verb = if extraneous { "extraneous" } else { "mismatched" };
        let _: Option<()> = self.fail(format!("{verb} input '{found}' expecting {expected}"));
        self.at += usize::from(extraneous);
        extraneous
    }

    /// A sign in the wrong place that joins expressions is one all the same: what is behind it is wrong, too, if it begins none.
    fn goes_wrong_behind(&mut self) {
        let joins = |sign: &str| binary(sign).is_some() || matches!(sign, "&&" | "||");
        while self.sign().is_some_and(joins) {
            if self.findings.len() > MAX_RECOVERIES {
                let why = format!("error recovery attempt limit exceeded: {MAX_RECOVERIES}");
                let _: Option<()> = self.fail(why);
                return;
            }
            self.at += 1;
            if self.token().is_some_and(begins) || self.tells_of_wrong(EXPRESSION) {
                return;
            }
        }
    }

    fn identifier(&mut self, at: usize) -> Option<Expr> {
        let Some(Kind::Ident(name)) = self.token().map(|token| token.kind.clone()) else {
            let found = self.shown();
            return self.fail(format!("mismatched input '{found}' expecting IDENTIFIER"));
        };
        if RESERVED.contains(&name.as_str()) {
            let why = format!("reserved identifier: {name}");
            self.findings.push(Finding::new(at, why));
            return None;
        }
        self.at += 1;
        let open = self.place();
        if self.take("(") {
            let args = self.arguments()?;
            return self.macro_or_call(open, name, None, args);
        }
        Some(Expr::new(at, Node::Ident(name)))
    }

    fn list(&mut self, at: usize) -> Option<Expr> {
        self.at += 1;
        let mut elements = Vec::new();
        if !self.is_next(&["?", ",", "]"], ELEMENTS) {
            return None;
        }
        while self.goes_on_with_element() {
            let optional = self.take("?");
            elements.push((optional, self.expression()?));
            if !self.is_next_in_row("]")? {
                break;
            }
        }
        self.close(!elements.is_empty(), "]", "']'")?;
        Some(Expr::new(at, Node::List(elements)))
    }

    fn map(&mut self, at: usize) -> Option<Expr> {
        self.at += 1;
        let mut entries = Vec::new();
        if !self.is_next(&["?", ",", "}"], ENTRIES) {
            return None;
        }
        while self.goes_on_with_element() {
            let optional = self.take("?");
            let key = self.expression()?;
            self.expect(":", "':'")?;
            let value = self.expression()?;
            entries.push((optional, key, value));
            if !self.is_next_in_row("}")? {
                break;
            }
        }
        self.close(!entries.is_empty(), "}", "'}'")?;
        Some(Expr::new(at, Node::Map(entries)))
    }

    fn goes_on_with_element(&self) -> bool {
        self.sign() == Some("?") || self.token().is_some_and(begins)
    }

    /// Takes the comma between elements. Answers false where the row ends.
    fn is_next_in_row(&mut self, close: &'static str) -> Option<bool> {
        if self.take(",") {
            return Some(true);
        }
        if self.sign() == Some(close) {
            return Some(false);
        }
        let found = self.shown();
        let verb = match self.next_is(close) || self.next_is(",") {
            true => "extraneous",
            false => "mismatched",
        };
        self.fail(format!("{verb} input '{found}' expecting {{'{close}', ','}}"))
    }

    /// The end of a row; without elements a comma may stand in it, too.
    fn close(&mut self, has_elements: bool, close: &'static str, expected: &str) -> Option<()> {
        if !has_elements {
            self.take(",");
        }
        self.expect(close, expected)
    }

    fn macro_or_call(&mut self, at: usize, name: String, target: Option<Expr>, mut args: Vec<Expr>) -> Option<Expr> {
        let Some(target) = target else {
            if name == "has" && args.len() == 1 {
                let arg = args.pop()?;
                return match arg.node {
                    Node::Select {
                        operand,
                        field,
                        optional: false,
                    } => Some(Expr::new(at, Node::Has { operand, field })),
                    _ => {
                        self.findings
                            .push(Finding::new(arg.at, "invalid argument to has() macro"));
                        None
                    }
                };
            }
            return Some(call(at, &name, args));
        };
        if let Some((kind, names, filtered)) = shape(&name, args.len()) {
            return self.fold(at, kind, names, filtered, target, args);
        }
        Some(Expr::new(
            at,
            Node::Call {
                name,
                target: Some(Box::new(target)),
                args,
            },
        ))
    }

    fn fold(
        &mut self,
        at: usize,
        kind: FoldKind,
        names: usize,
        filtered: bool,
        range: Expr,
        args: Vec<Expr>,
    ) -> Option<Expr> {
        if kind == FoldKind::SortBy && matches!(range.node, Node::Literal(_) | Node::Map(_) | Node::Struct { .. }) {
            let why = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            self.findings.push(Finding::new(range.at, why));
            return None;
        }
        let mut args = args.into_iter();
        let mut bound = Vec::new();
        for arg in args.by_ref().take(names) {
            match arg.node {
                Node::Ident(name) if name == ACCUMULATOR => {
                    let why = "iteration variable overwrites accumulator variable";
                    self.findings.push(Finding::new(arg.at, why));
                    return None;
                }
                Node::Ident(name) if bound.contains(&name) => {
                    let why = format!("duplicate variable name: {name}");
                    self.findings.push(Finding::new(arg.at, why));
                    return None;
                }
                Node::Ident(name) => bound.push(name),
                _ => {
                    self.findings.push(Finding::new(arg.at, no_name(kind, names)));
                    return None;
                }
            }
        }
        let filter = if filtered { args.next() } else { None };
        let body = args.next()?;
        Some(Expr::new(
            at,
            Node::Fold(Box::new(Fold {
                kind,
                range,
                names: bound,
                filter,
                body,
            })),
        ))
    }
}

/// What a member call of this name and number of arguments binds: kind, names, and whether there is a filter.
fn shape(name: &str, args: usize) -> Option<(FoldKind, usize, bool)> {
    Some(match (name, args) {
        ("all", 2) => (FoldKind::All, 1, false),
        ("all", 3) => (FoldKind::All, 2, false),
        ("exists", 2) => (FoldKind::Exists, 1, false),
        ("exists", 3) => (FoldKind::Exists, 2, false),
        ("exists_one", 2) => (FoldKind::ExistsOne, 1, false),
        ("existsOne", 3) => (FoldKind::ExistsOne, 2, false),
        ("map", 2) => (FoldKind::Map, 1, false),
        ("map", 3) => (FoldKind::Map, 1, true),
        ("filter", 2) => (FoldKind::Filter, 1, false),
        ("transformList", 3) => (FoldKind::Map, 2, false),
        ("transformList", 4) => (FoldKind::Map, 2, true),
        ("transformMap", 3) => (FoldKind::TransformMap, 2, false),
        ("transformMap", 4) => (FoldKind::TransformMap, 2, true),
        ("transformMapEntry", 3) => (FoldKind::TransformMapEntry, 2, false),
        ("transformMapEntry", 4) => (FoldKind::TransformMapEntry, 2, true),
        ("optMap", 2) => (FoldKind::OptMap, 1, false),
        ("optFlatMap", 2) => (FoldKind::OptFlatMap, 1, false),
        ("sortBy", 2) => (FoldKind::SortBy, 1, false),
        _ => return None,
    })
}

/// A name that macros keep for themselves.
const ACCUMULATOR: &str = "__result__";

/// What is said of an argument of a macro that should be a name.
fn no_name(kind: FoldKind, names: usize) -> &'static str {
    match kind {
        FoldKind::OptMap => "optMap() variable name must be a simple identifier",
        FoldKind::OptFlatMap => "optFlatMap() variable name must be a simple identifier",
        FoldKind::Map | FoldKind::Filter | FoldKind::SortBy if names == 1 => "argument is not an identifier",
        _ => "argument must be a simple name",
    }
}

/// `a.b.c` of identifiers only.
pub(crate) fn qualified(expr: &Expr) -> Option<String> {
    match &expr.node {
        Node::Ident(name) => Some(name.clone()),
        Node::Select {
            operand,
            field,
            optional: false,
        } => Some(format!("{}.{field}", qualified(operand)?)),
        _ => None,
    }
}

fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = i128::from(unsigned(digits)?);
    i64::try_from(if negative { -value } else { value }).ok()
}

fn unsigned(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
