//! Reads an expression as Go does, and writes it in the form of the `regex` crate.

use super::class;
use super::{Code, SyntaxError};

/// How often something may be repeated by a count, counts within counts multiplied.
const MAX_REPEAT: u64 = 1000;

/// How deep parts may stand in each other.
const MAX_HEIGHT: usize = 1000;

/// What flags say at a place.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    /// `i`: case does not matter.
    pub(super) fold: bool,
    /// `m`: `^` and `$` are about lines.
    multi_line: bool,
    /// `s`: `.` is a newline, too.
    dot_newline: bool,
    /// `U`: repetitions are lazy, and greedy with `?`.
    lazy: bool,
}

/// What is read and may still be repeated or grouped.
enum Item {
    /// An open parenthesis: the flags before it, and what it is written as.
    Open(Flags, Group),
    /// `|`.
    Bar,
    /// A part.
    Part(Part),
}

enum Group {
    Plain,
    Capture(String),
}

/// A part of the expression, written in the crate's form.
struct Part {
    text: String,
    /// Whether it stands for itself wherever it is put.
    whole: bool,
    height: usize,
    /// The least number of repetitions that must be allowed for it.
    repeats: u64,
}

impl Part {
    fn whole(text: String) -> Self {
        Self {
            text,
            whole: true,
            height: 1,
            repeats: 0,
        }
    }

    fn grouped(self) -> Self {
        match self.whole {
            true => self,
            false => Self {
                text: format!("(?:{})", self.text),
                whole: true,
                ..self
            },
        }
    }
}

/// A count: `{min,max}`; no maximum when open.
struct Count {
    min: u64,
    max: Option<u64>,
}

/// Writes an expression in the crate's form.
pub(super) fn translate(pattern: &str) -> Result<String, SyntaxError> {
    let mut parser = Parser {
        whole: pattern,
        flags: Flags::default(),
        stack: Vec::new(),
    };
    parser.run()?;
    let text = parser.close()?;
    match parser.stack.is_empty() {
        true => Ok(text.text),
        false => Err(SyntaxError::new(Code::MissingParen, pattern)),
    }
}

struct Parser<'p> {
    whole: &'p str,
    flags: Flags,
    stack: Vec<Item>,
}

/// What of `from` stands before `rest`, its end.
pub(super) fn before<'p>(from: &'p str, rest: &str) -> &'p str {
    from.get(..from.len().saturating_sub(rest.len())).unwrap_or(from)
}

/// The rest of a text that begins with this ASCII character.
fn after_one(text: &str) -> &str {
    text.get(1..).unwrap_or_default()
}

impl<'p> Parser<'p> {
    fn run(&mut self) -> Result<(), SyntaxError> {
        let mut rest = self.whole;
        // the last repetition, while nothing else stands behind it
        let mut last_repeat = "";
        while let Some(next) = rest.chars().next() {
            let mut repeat = "";
            match next {
                '(' if rest.starts_with("(?") => rest = self.open_special(rest)?,
                '(' => {
                    self.stack.push(Item::Open(self.flags, Group::Capture(String::new())));
                    rest = after_one(rest);
                }
                '|' => {
                    let part = self.concatenate()?;
                    self.stack.extend([Item::Part(part), Item::Bar]);
                    rest = after_one(rest);
                }
                ')' => {
                    self.close_group()?;
                    rest = after_one(rest);
                }
                '^' => {
                    self.write(if self.flags.multi_line { "(?m:^)" } else { r"\A" });
                    rest = after_one(rest);
                }
                '$' => {
                    self.write(if self.flags.multi_line { "(?m:$)" } else { r"\z" });
                    rest = after_one(rest);
                }
                '.' => {
                    self.write(if self.flags.dot_newline { "(?s:.)" } else { "." });
                    rest = after_one(rest);
                }
                '[' => {
                    let (text, behind) = class::brackets(rest, self.flags)?;
                    self.stack.push(Item::Part(Part::whole(text)));
                    rest = behind;
                }
                '*' | '+' | '?' => {
                    let behind = after_one(rest);
                    let operator = before(rest, behind);
                    let behind = self.repeat(operator, None, rest, behind, last_repeat)?;
                    repeat = rest;
                    rest = behind;
                }
                '{' => match count(rest) {
                    None => {
                        self.literal('{' as u32);
                        rest = after_one(rest);
                    }
                    Some((count, behind)) => {
                        let count = count.filter(|count| {
                            let most = count.max.unwrap_or(count.min);
                            count.min.max(most) <= MAX_REPEAT && count.min <= most
                        });
                        let count = count.ok_or_else(|| SyntaxError::new(Code::RepeatSize, before(rest, behind)))?;
                        let operator = match count.max {
                            Some(max) if max == count.min => format!("{{{max}}}"),
                            Some(max) => format!("{{{},{max}}}", count.min),
                            None => format!("{{{},}}", count.min),
                        };
                        let behind = self.repeat(&operator, Some(&count), rest, behind, last_repeat)?;
                        repeat = rest;
                        rest = behind;
                    }
                },
                '\\' => rest = self.escape(rest)?,
                other => {
                    self.literal(other as u32);
                    rest = rest.get(other.len_utf8()..).unwrap_or_default();
                }
            }
            last_repeat = repeat;
        }
        Ok(())
    }

    fn write(&mut self, text: &str) {
        self.stack.push(Item::Part(Part::whole(text.to_owned())));
    }

    fn literal(&mut self, code: u32) {
        let text = match char::from_u32(code) {
            Some(plain) if plain.is_ascii_alphanumeric() && !self.flags.fold => plain.to_string(),
            Some(_) if !self.flags.fold => format!("\\x{{{code:X}}}"),
            Some(_) => format!("(?i:\\x{{{code:X}}})"),
            // half of a surrogate pair is in no text
            None => class::NOTHING.to_owned(),
        };
        self.stack.push(Item::Part(Part::whole(text)));
    }

    fn escape(&mut self, from: &'p str) -> Result<&'p str, SyntaxError> {
        let behind = from.get(2..).unwrap_or_default();
        match from.as_bytes().get(1) {
            Some(b'A') => self.write(r"\A"),
            Some(b'b') => self.write(r"(?-u:\b)"),
            Some(b'B') => self.write(r"\B"),
            Some(b'C') => return Err(SyntaxError::new(Code::Escape, r"\C")),
            Some(b'Q') => {
                let (quoted, behind) = behind.split_once(r"\E").unwrap_or((behind, ""));
                quoted.chars().for_each(|c| self.literal(c as u32));
                return Ok(behind);
            }
            Some(b'z') => self.write(r"\z"),
            _ => {
                if let Some((text, behind)) = class::group(from)? {
                    self.stack
                        .push(Item::Part(Part::whole(class::bracketed(&text, self.flags))));
                    return Ok(behind);
                }
                let (code, behind) = class::escape(from)?;
                self.literal(code);
                return Ok(behind);
            }
        }
        Ok(behind)
    }

    /// Repeats the last part. Answers what stands behind.
    fn repeat(
        &mut self,
        operator: &str,
        count: Option<&Count>,
        from: &str,
        behind: &'p str,
        last_repeat: &str,
    ) -> Result<&'p str, SyntaxError> {
        let (behind, lazy) = match behind.strip_prefix('?') {
            Some(behind) => (behind, !self.flags.lazy),
            None => (behind, self.flags.lazy),
        };
        if !last_repeat.is_empty() {
            return Err(SyntaxError::new(Code::RepeatOp, before(last_repeat, behind)));
        }
        let own = before(from, behind);
        let part = match self.stack.pop() {
            Some(Item::Part(part)) => part.grouped(),
            _ => return Err(SyntaxError::new(Code::MissingRepeatArgument, own)),
        };
        let repeats = match count {
            Some(Count { max: Some(0), .. }) => 0,
            Some(Count { min, max }) => match max.unwrap_or(*min) {
                0 => part.repeats,
                most => most.saturating_mul(part.repeats.max(1)),
            },
            None => part.repeats,
        };
        if repeats > MAX_REPEAT && count.is_some_and(|count| count.max.unwrap_or(count.min) >= 2) {
            return Err(SyntaxError::new(Code::RepeatSize, own));
        }
        let part = Part {
            text: format!("{}{operator}{}", part.text, if lazy { "?" } else { "" }),
            whole: false,
            height: part.height + 1,
            repeats,
        };
        self.push(part)?;
        Ok(behind)
    }

    fn push(&mut self, part: Part) -> Result<(), SyntaxError> {
        if part.height > MAX_HEIGHT {
            return Err(SyntaxError::new(Code::NestingDepth, self.whole));
        }
        self.stack.push(Item::Part(part));
        Ok(())
    }

    /// Takes the parts since the last parenthesis or bar as one.
    fn concatenate(&mut self) -> Result<Part, SyntaxError> {
        let is_part = |item: &Item| matches!(item, Item::Part(_));
        let start = self
            .stack
            .iter()
            .rposition(|item| !is_part(item))
            .map_or(0, |at| at + 1);
        let parts = self.stack.drain(start..).filter_map(|item| match item {
            Item::Part(part) => Some(part),
            _ => None,
        });
        let part = joined(parts.collect(), "");
        match part.height > MAX_HEIGHT {
            true => Err(SyntaxError::new(Code::NestingDepth, self.whole)),
            false => Ok(part),
        }
    }

    /// Takes all since the last parenthesis as one.
    fn close(&mut self) -> Result<Part, SyntaxError> {
        let mut branches = vec![self.concatenate()?];
        while let Some(Item::Bar) = self.stack.last() {
            self.stack.pop();
            if let Some(Item::Part(part)) = self.stack.pop() {
                branches.push(part);
            }
        }
        branches.reverse();
        Ok(joined(branches, "|"))
    }

    fn close_group(&mut self) -> Result<(), SyntaxError> {
        let part = self.close()?;
        let Some(Item::Open(flags, group)) = self.stack.pop() else {
            return Err(SyntaxError::new(Code::UnexpectedParen, self.whole));
        };
        self.flags = flags;
        let part = match group {
            Group::Plain => part.grouped(),
            Group::Capture(name) => Part {
                text: format!("({name}{})", part.text),
                whole: true,
                height: part.height + 1,
                ..part
            },
        };
        self.push(part)
    }

    /// Reads what begins with `(?`: a name, flags, or a group that captures nothing.
    fn open_special(&mut self, from: &'p str) -> Result<&'p str, SyntaxError> {
        let long = from.len() > 4 && from.starts_with("(?P<");
        let named = match long {
            true => from.get(4..),
            false if from.len() > 3 => from.strip_prefix("(?<"),
            false => None,
        };
        if let Some(named) = named {
            let Some((name, behind)) = named.split_once('>') else {
                return Err(SyntaxError::new(Code::NamedCapture, from));
            };
            let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(SyntaxError::new(Code::NamedCapture, before(from, behind)));
            }
            // nobody asks for groups by name, and the crate wants each name once
            self.stack.push(Item::Open(self.flags, Group::Capture(String::new())));
            return Ok(behind);
        }
        let mut rest = from.get(2..).unwrap_or_default();
        let mut flags = self.flags;
        let (mut negated, mut saw_flag) = (false, false);
        while let Some(next) = rest.chars().next() {
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
            match next {
                'i' => flags.fold = !negated,
                'm' => flags.multi_line = !negated,
                's' => flags.dot_newline = !negated,
                'U' => flags.lazy = !negated,
                '-' if !negated => (negated, saw_flag) = (true, false),
                ':' | ')' if !negated || saw_flag => {
                    if next == ':' {
                        self.stack.push(Item::Open(self.flags, Group::Plain));
                    }
                    self.flags = flags;
                    return Ok(rest);
                }
                _ => return Err(SyntaxError::new(Code::PerlOp, before(from, rest))),
            }
            saw_flag |= next != '-';
        }
        Err(SyntaxError::new(Code::PerlOp, from))
    }
}

fn joined(mut parts: Vec<Part>, between: &str) -> Part {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return only;
    }
    let height = parts.iter().map(|part| part.height).max().unwrap_or_default() + 1;
    let repeats = parts.iter().map(|part| part.repeats).max().unwrap_or_default();
    let texts: Vec<String> = parts.into_iter().map(|part| part.text).collect();
    Part {
        text: texts.join(between),
        whole: false,
        height,
        repeats,
    }
}

/// Reads `{n}`, `{n,}` or `{n,m}`; none when it is no count, and no numbers when they are too large.
fn count(from: &str) -> Option<(Option<Count>, &str)> {
    let (min, rest) = number(from.strip_prefix('{')?)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (min.map(Some), rest),
        Some(rest) if rest.starts_with('}') => (Some(None), rest),
        Some(rest) => {
            let (max, rest) = number(rest)?;
            (max.map(Some), rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    let count = min.zip(max).map(|(min, max)| Count { min, max });
    Some((count, rest))
}

/// Reads a number without leading zeros; no value when it is large.
fn number(from: &str) -> Option<(Option<u64>, &str)> {
    let rest = from.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = before(from, rest);
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().ok().filter(|value| *value <= 1_000_000_000), rest))
}
