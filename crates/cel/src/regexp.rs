//! Regular expressions as Go has them (RE2), by the `regex` crate: what Go's parser refuses is refused in its words, and what the two read
//! differently is written in the crate's form.
//!
//! `\d`, `\s`, `\w` and `\b` know ASCII only; a `[` in a class is itself; `\Q…\E`, octal escapes and `{` that repeats nothing are understood;
//! repetitions of repetitions are not. (`\B` alone stays the crate's: next to letters beyond ASCII it may differ.)

mod class;
mod parse;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use regex::{Regex, RegexBuilder};

/// How large a compiled expression may be, in bytes, if nobody says otherwise: what the crate allows.
pub const SIZE: usize = 10 << 20;

/// What is wrong with a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {}: `{at}`", .code.text())]
pub struct SyntaxError {
    code: Code,
    /// The part that is wrong.
    at: String,
}

impl SyntaxError {
    fn new(code: Code, at: &str) -> Self {
        Self {
            code,
            at: at.to_owned(),
        }
    }
}

/// The kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    CharRange,
    Escape,
    NamedCapture,
    PerlOp,
    RepeatOp,
    RepeatSize,
    MissingBracket,
    MissingParen,
    MissingRepeatArgument,
    TrailingBackslash,
    UnexpectedParen,
    NestingDepth,
    Large,
}

impl Code {
    fn text(self) -> &'static str {
        match self {
            Self::CharRange => "invalid character class range",
            Self::Escape => "invalid escape sequence",
            Self::NamedCapture => "invalid named capture",
            Self::PerlOp => "invalid or unsupported Perl syntax",
            Self::RepeatOp => "invalid nested repetition operator",
            Self::RepeatSize => "invalid repeat count",
            Self::MissingBracket => "missing closing ]",
            Self::MissingParen => "missing closing )",
            Self::MissingRepeatArgument => "missing argument to repetition operator",
            Self::TrailingBackslash => "trailing backslash at end of expression",
            Self::UnexpectedParen => "unexpected )",
            Self::NestingDepth => "expression nests too deeply",
            Self::Large => "expression too large",
        }
    }
}

/// Compiles an expression that needs no more than [`SIZE`].
///
/// # Errors
/// What is wrong with it, in Go's words.
pub fn compile(pattern: &str) -> Result<Regex, SyntaxError> {
    compile_within(pattern, SIZE)
}

/// Whether an expression can be compiled.
///
/// # Errors
/// As [`compile`].
pub fn check(pattern: &str) -> Result<(), SyntaxError> {
    let mut fine = FINE.lock().unwrap_or_else(PoisonError::into_inner);
    if fine.contains(pattern) {
        return Ok(());
    }
    compile(pattern)?;
    if fine.len() == REMEMBERED {
        fine.clear();
    }
    fine.insert(pattern.to_owned());
    Ok(())
}

/// What could be compiled lately: definitions of custom resources say the same few expressions over and over, and compiling one takes as long as
/// matching it thousands of times.
static FINE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// How many expressions are remembered.
const REMEMBERED: usize = 64;

/// Compiles an expression that needs no more than so many bytes.
///
/// # Errors
/// What is wrong with it, in Go's words.
pub fn compile_within(pattern: &str, size: usize) -> Result<Regex, SyntaxError> {
    let translated = parse::translate(pattern)?;
    let built = RegexBuilder::new(&translated).size_limit(size).build();
    built.map_err(|error| {
        let code = match error {
            regex::Error::CompiledTooBig(_) => Code::Large,
            // the crate nests less deeply
            _ => Code::NestingDepth,
        };
        SyntaxError::new(code, pattern)
    })
}

#[cfg(test)]
mod tests;
