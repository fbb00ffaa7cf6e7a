//! Tokens of a source.

use crate::errors::Finding;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Ident(String),
    /// An identifier in backticks.
    Quoted(String),
    Int(String),
    Uint(String),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// Operators, brackets, `true`, `false`, `null`, `in`.
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) at: usize,
    /// As in the source.
    pub(crate) text: String,
}

const SIGNS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}", "=", "&",
];

/// Splits a source. What is no token is reported and skipped.
pub(crate) fn tokens(source: &str) -> (Vec<Token>, Vec<Finding>) {
    let mut lexer = Lexer {
        chars: source.chars().collect(),
        at: 0,
        tokens: Vec::new(),
        findings: Vec::new(),
    };
    lexer.run();
    (lexer.tokens, lexer.findings)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
    findings: Vec<Finding>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn text(&self, from: usize) -> String {
        self.chars.get(from..self.at).unwrap_or_default().iter().collect()
    }

    fn push(&mut self, from: usize, kind: Kind) {
        let text = self.text(from);
        self.tokens.push(Token { kind, at: from, text });
    }

    fn unknown(&mut self, from: usize) {
        let text = self.text(from);
        let why = format!("token recognition error at: '{}'", escaped(&text));
        self.findings.push(Finding::syntax(from, why));
    }

    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            let from = self.at;
            if matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}') {
                self.at += 1;
            } else if c == '/' && self.peek(1) == Some('/') {
                while self.peek(0).is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
            } else if let Some((raw, bytes, quote)) = self.quote() {
                self.literal(from, raw, bytes, quote);
            } else if c.is_ascii_alphabetic() || c == '_' {
                while self.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.at += 1;
                }
                let text = self.text(from);
                self.push(
                    from,
                    match text.as_str() {
                        "true" => Kind::Sign("true"),
                        "false" => Kind::Sign("false"),
                        "null" => Kind::Sign("null"),
                        "in" => Kind::Sign("in"),
                        _ => Kind::Ident(text),
                    },
                );
            } else if c.is_ascii_digit() || c == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
                self.number(from);
            } else if c == '`' {
                self.backticks(from);
            } else {
                self.sign(from);
            }
        }
        self.push(self.at, Kind::End);
        if let Some(end) = self.tokens.last_mut() {
            end.text = "<EOF>".to_owned();
        }
    }

    fn sign(&mut self, from: usize) {
        let found = SIGNS.iter().find(|sign| {
            let mut chars = sign.chars().enumerate();
            chars.all(|(ahead, c)| self.peek(ahead) == Some(c))
        });
        match found.copied() {
            Some("=" | "&") | None => {
                self.at += 1;
                // a lone `=` or `&` begins a token that the next character cannot go on
                if found.is_some() && self.peek(0).is_some() {
                    self.at += 1;
                }
                self.unknown(from);
            }
            Some(sign) => {
                self.at += sign.chars().count();
                self.push(from, Kind::Sign(sign));
            }
        }
    }

    fn backticks(&mut self, from: usize) {
        self.at += 1;
        while self
            .peek(0)
            .is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' '))
        {
            self.at += 1;
        }
        let inner = self.text(from + 1);
        if self.peek(0) == Some('`') && !inner.is_empty() {
            self.at += 1;
            self.push(from, Kind::Quoted(inner));
        } else {
            self.unknown(from);
        }
    }

    fn number(&mut self, from: usize) {
        let digits = |lexer: &mut Self| {
            while lexer.peek(0).is_some_and(|c| c.is_ascii_digit()) {
                lexer.at += 1;
            }
        };
        if self.peek(0) == Some('0')
            && matches!(self.peek(1), Some('x' | 'X'))
            && self.peek(2).is_some_and(|c| c.is_ascii_hexdigit())
        {
            self.at += 2;
            while self.peek(0).is_some_and(|c| c.is_ascii_hexdigit()) {
                self.at += 1;
            }
            return self.whole(from);
        }
        digits(self);
        let mut double = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            double = true;
            self.at += 1;
            digits(self);
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit()) {
                double = true;
                self.at += 1 + sign;
                digits(self);
            }
        }
        if !double {
            return self.whole(from);
        }
        let value = self.text(from).parse().unwrap_or(f64::INFINITY);
        self.push(from, Kind::Double(value));
    }

    fn whole(&mut self, from: usize) {
        let text = self.text(from);
        if matches!(self.peek(0), Some('u' | 'U')) {
            self.at += 1;
            self.push(from, Kind::Uint(text));
        } else {
            self.push(from, Kind::Int(text));
        }
    }

    /// Whether a string begins here: raw, bytes, and its quote.
    fn quote(&self) -> Option<(bool, bool, String)> {
        let (mut raw, mut bytes, mut ahead) = (false, false, 0);
        while ahead < 2 {
            match self.peek(ahead) {
                Some('r' | 'R') if !raw => raw = true,
                Some('b' | 'B') if !bytes => bytes = true,
                _ => break,
            }
            ahead += 1;
        }
        let quote = self.peek(ahead).filter(|c| matches!(c, '"' | '\''))?;
        let three = self.peek(ahead + 1) == Some(quote) && self.peek(ahead + 2) == Some(quote);
        Some((raw, bytes, quote.to_string().repeat(if three { 3 } else { 1 })))
    }

    fn literal(&mut self, from: usize, raw: bool, bytes: bool, quote: String) {
        self.at += usize::from(raw) + usize::from(bytes) + quote.len();
        let ends = |lexer: &Self| quote.chars().enumerate().all(|(ahead, c)| lexer.peek(ahead) == Some(c));
        let mut out = Vec::new();
        loop {
            if ends(self) {
                self.at += quote.len();
                break;
            }
            let Some(c) = self.peek(0) else {
                return self.unknown(from);
            };
            if quote.len() == 1 && matches!(c, '\n' | '\r') {
                return self.unknown(from);
            }
            self.at += 1;
            if c != '\\' || raw {
                out.extend(c.to_string().into_bytes());
                continue;
            }
            match self.escape() {
                Some(Escape::Char(c)) => out.extend(c.to_string().into_bytes()),
                Some(Escape::Byte(byte)) if bytes => out.push(byte),
                Some(Escape::Byte(byte)) => out.extend(char::from(byte).to_string().into_bytes()),
                None => {
                    if self.at < self.chars.len() {
                        self.at += 1;
                    }
                    return self.unknown(from);
                }
            }
        }
        match bytes {
            true => self.push(from, Kind::Bytes(out)),
            false => self.push(from, Kind::Text(String::from_utf8_lossy(&out).into_owned())),
        }
    }

    fn escape(&mut self) -> Option<Escape> {
        let c = self.peek(0)?;
        let plain = match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '`' | '?' => c,
            'x' | 'X' => return self.digits(1, 2, 16),
            'u' => return self.digits(1, 4, 16),
            'U' => return self.digits(1, 8, 16),
            '0'..='3' => return self.digits(0, 3, 8),
            _ => return None,
        };
        self.at += 1;
        Some(Escape::Char(plain))
    }

    fn digits(&mut self, skip: usize, count: usize, radix: u32) -> Option<Escape> {
        let from = self.at + skip;
        let text: String = self.chars.get(from..from + count)?.iter().collect();
        let value = u32::from_str_radix(&text, radix).ok()?;
        self.at = from + count;
        match count {
            2 | 3 => u8::try_from(value).ok().map(Escape::Byte),
            _ => char::from_u32(value).map(Escape::Char),
        }
    }
}

enum Escape {
    Char(char),
    Byte(u8),
}

fn escaped(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}
