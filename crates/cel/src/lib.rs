//! The Common Expression Language as Kubernetes speaks it: parsed ([`parser`]), checked against declared types ([`check`]), its cost
//! estimated ([`cost`]) and evaluated within a budget ([`eval`]), with cel-go's messages.
//!
//! No expression and no value makes it panic, recurse without bound, or run longer than its budget: the depth of expressions is limited
//! when they are parsed, and every step of an evaluation is paid for before it is made. That is why no interpreter of others is used: those
//! that exist for Rust neither check types nor stop.
//!
//! Pure: no I/O and no clock. What authorizers decide is asked of [`Authorizer`].
#![forbid(unsafe_code)]

mod ast;
mod check;
mod cost;
mod declared;
mod errors;
mod eval;
mod functions;
mod instant;
mod lexer;
mod library;
mod literals;
mod made;
mod parser;
mod plan;
mod program;
mod qualified;
pub mod regexp;
mod templates;
mod types;
mod value;

pub use declared::{Declared, Elements, Field, REQUEST_SIZE, Shape, escape, is_identifier};
pub use eval::{Authorizer, Check, EvalError, Lazy};
pub use instant::Instant;
pub use made::{Made, OBJECT, PATCH};
pub use program::{Compiled, Environment, Evaluated, Program};
pub use value::Value;

/// What one evaluation may cost.
pub const CALL_LIMIT: u64 = 1_000_000;
/// What all evaluations for one object may cost.
pub const OBJECT_BUDGET: u64 = 10_000_000;
