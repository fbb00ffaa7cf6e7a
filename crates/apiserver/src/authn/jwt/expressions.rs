//! Expressions about claims, and about the users that come of them.

use std::sync::{Arc, LazyLock};

use gardener_cel::{CALL_LIMIT, Compiled, Declared, Environment, Program, Shape, Value as CelValue};
use serde_json::Value;

use crate::intercept::expressions::{self, Fault, Returns};

const CLAIMS: &str = "claims";
const USER: &str = "user";

/// Claims: anything under any name, also under names that are no identifiers.
static CLAIMS_DECLARED: LazyLock<Arc<Declared>> =
    LazyLock::new(|| Arc::new(Declared::new(Shape::Named(Arc::new(Declared::new(Shape::Dyn))))));

/// A user, as a TokenReview tells it.
static USER_DECLARED: LazyLock<Arc<Declared>> = LazyLock::new(|| {
    let text = || Declared::new(Shape::Text);
    let texts = || Declared::list_of(text());
    Arc::new(Declared::object(
        "kubernetes.UserInfo",
        vec![
            ("username", text()),
            ("uid", text()),
            ("groups", texts()),
            ("extra", Declared::new(Shape::Named(Arc::new(texts())))),
        ],
    ))
});

static ABOUT_CLAIMS: LazyLock<Environment> =
    LazyLock::new(|| Environment::new([(CLAIMS, Arc::clone(&CLAIMS_DECLARED))]));
static ABOUT_USERS: LazyLock<Environment> = LazyLock::new(|| Environment::new([(USER, Arc::clone(&USER_DECLARED))]));

/// What an expression is about, and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Tells a part of a user from claims.
    Mapping,
    /// Judges claims.
    ClaimRule,
    /// Judges a user.
    UserRule,
}

/// Why an expression tells no texts.
#[derive(Debug, thiserror::Error)]
pub(super) enum Untold {
    /// It fails.
    #[error("{0}")]
    Failed(String),
    /// It tells something else.
    #[error("expression must return a string or a list of strings")]
    Unfit,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression(Program);

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn compile(subject: Subject, source: &str) -> Result<Self, Fault> {
        let environment = match subject {
            Subject::Mapping | Subject::ClaimRule => &*ABOUT_CLAIMS,
            Subject::UserRule => &*ABOUT_USERS,
        };
        let program = expressions::compile(environment, source, Returns::Any)?;
        match subject != Subject::Mapping && program.result != Compiled::Bool {
            true => Err(Fault::Invalid("must evaluate to bool".to_owned())),
            false => Ok(Self(program)),
        }
    }

    /// Its source.
    pub(crate) fn source(&self) -> &str {
        self.0.source()
    }

    /// Whether it asks for a claim by its name.
    pub(crate) fn asks_for(&self, claim: &str) -> bool {
        self.0.selects(CLAIMS, claim)
    }

    fn run<'v>(&self, variable: &str, value: &'v Value, declared: &'v Declared) -> Result<CelValue<'v>, String> {
        let value = CelValue::of_json(value, Some(declared));
        let found = self.0.run(vec![(variable, value)], None, CALL_LIMIT).value;
        found.map_err(|error| format!("expression '{}' resulted in error: {error}", self.source()))
    }

    fn of_claims<'v>(&self, claims: &'v Value) -> Result<CelValue<'v>, String> {
        self.run(CLAIMS, claims, &CLAIMS_DECLARED)
    }

    /// The text that it tells from claims; `what` says of what.
    ///
    /// # Errors
    /// It fails, or tells something else.
    pub(super) fn text(&self, claims: &Value, what: &str) -> Result<String, String> {
        match self.of_claims(claims)? {
            CelValue::Text(text) => Ok(text.into_owned()),
            _ => Err(format!("{what} claim expression must return a string")),
        }
    }

    /// The texts that it tells from claims: one or many, of which empty ones do not count.
    ///
    /// # Errors
    /// [`Untold`].
    pub(super) fn texts(&self, claims: &Value) -> Result<Vec<String>, Untold> {
        let texts: Vec<String> = match self.of_claims(claims).map_err(Untold::Failed)? {
            CelValue::Null => Vec::new(),
            CelValue::Text(text) => vec![text.into_owned()],
            CelValue::List(elements) => {
                let texts = elements.iter().map(|element| match element {
                    CelValue::Text(text) => Ok(text.clone().into_owned()),
                    _ => Err(Untold::Unfit),
                });
                texts.collect::<Result<_, _>>()?
            }
            CelValue::Json(Value::Array(elements), _) => {
                let texts = elements.iter().map(|element| match element {
                    Value::String(text) => Ok(text.clone()),
                    _ => Err(Untold::Unfit),
                });
                texts.collect::<Result<_, _>>()?
            }
            _ => return Err(Untold::Unfit),
        };
        Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
    }

    fn judged(&self, message: &str, found: &CelValue<'_>) -> Result<(), String> {
        match found {
            CelValue::Bool(true) => Ok(()),
            CelValue::Bool(false) => Err(format!("validation expression '{}' failed: {message}", self.source())),
            _ => Err("validation expression must return a boolean".to_owned()),
        }
    }
}

/// Whether all rules hold for claims.
///
/// # Errors
/// Which does not, or fails. Rules that fail are told before those that do not hold, as with upstream.
pub(super) fn judge_claims(rules: &[(Expression, String)], claims: &Value) -> Result<(), String> {
    let found: Vec<CelValue<'_>> = rules
        .iter()
        .map(|(rule, _)| rule.of_claims(claims))
        .collect::<Result<_, _>>()?;
    let mut judged = rules.iter().zip(&found);
    judged.try_for_each(|((rule, message), found)| rule.judged(message, found))
}

/// Whether all rules hold for a user.
///
/// # Errors
/// As [`judge_claims`].
pub(super) fn judge_user(rules: &[(Expression, String)], user: &Value) -> Result<(), String> {
    let found: Vec<CelValue<'_>> = rules
        .iter()
        .map(|(rule, _)| rule.run(USER, user, &USER_DECLARED))
        .collect::<Result<_, _>>()?;
    let mut judged = rules.iter().zip(&found);
    judged.try_for_each(|((rule, message), found)| rule.judged(message, found))
}
