//! CEL rules (`x-kubernetes-validations`) of schemas: what expressions know of the values at a node, and which rules a value breaks.
//!
//! Whether rules compile is for those to say who accept a definition ([`Rules::compile`]); a rule that does not compile breaks every value.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use gardener_apimachinery::field::{self, Error, ErrorList};
use gardener_cel::{
    CALL_LIMIT, Compiled, Declared, Elements, Environment, EvalError, Field, OBJECT_BUDGET, Program, Shape,
    Value as CelValue, escape,
};
use serde_json::Value;

use crate::json::same;
use crate::meta::OBJECT_META;
use crate::schema::{Kind, ListType, Schema};

/// How long the value of a message expression may be.
const MESSAGE_LENGTH: usize = 5 * 1024;

/// One rule, as it is written.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The expression.
    pub rule: String,
    /// What to say when it does not hold; empty: the expression is told.
    pub message: String,
    /// An expression for what to say.
    pub message_expression: String,
    /// The kind of error: `FieldValueInvalid` (default), `FieldValueForbidden`, `FieldValueRequired`, `FieldValueDuplicate`.
    pub reason: String,
    /// Where to report, relative to the rule's node: `.spec.name`.
    pub field_path: String,
    /// Whether the rule is evaluated where there was no value before.
    pub optional_old_self: bool,
}

impl Rule {
    /// Reads one element of `x-kubernetes-validations`; none without an expression.
    pub fn parse(document: &Value) -> Option<Self> {
        let text = |name: &str| {
            let value = document.get(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let rule = text("rule");
        (!rule.trim().is_empty()).then(|| Self {
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: text("reason"),
            field_path: text("fieldPath"),
            optional_old_self: document.get("optionalOldSelf") == Some(&Value::Bool(true)),
            rule,
        })
    }

    /// What stands for the rule in messages.
    fn shown(&self) -> &str {
        match self.message.is_empty() {
            true => self.rule.trim(),
            false => self.message.trim(),
        }
    }

    fn message(&self) -> String {
        match self.message.is_empty() {
            true => format!("failed rule: {}", self.rule.trim()),
            false => self.message.trim().to_owned(),
        }
    }
}

/// A rule, compiled.
#[derive(Clone, Debug)]
pub struct CompiledRule {
    /// The expression, or what is wrong with it.
    pub program: Result<Program, String>,
    /// The expression of the message, if there is one, or what is wrong with it.
    pub message: Option<Result<Program, String>>,
    /// Whether the rule looks at the value before.
    pub uses_old_self: bool,
}

/// The rules of one node.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// As they are written.
    pub rules: Vec<Rule>,
    compiled: OnceLock<Arc<(Arc<Declared>, Vec<CompiledRule>)>>,
}

impl Rules {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        Self {
            rules,
            compiled: OnceLock::new(),
        }
    }

    /// Compiles the rules of a node with this declaration.
    pub fn compile(rules: &[Rule], declared: &Arc<Declared>) -> Vec<CompiledRule> {
        let environment = |optional: bool| {
            let old = match optional {
                true => Arc::new(Declared::new(Shape::Optional(Arc::clone(declared)))),
                false => Arc::clone(declared),
            };
            Environment::new([("self", Arc::clone(declared)), ("oldSelf", old)])
        };
        rules
            .iter()
            .map(|rule| {
                let environment = environment(rule.optional_old_self);
                let program = environment
                    .compile(&rule.rule)
                    .map_err(|why| format!("compilation failed: {why}"))
                    .and_then(|program| match (program.result, &program.unusable) {
                        (Compiled::Bool, None) => Ok(program),
                        (Compiled::Bool, Some(why)) => Err(format!("program instantiation failed: {why}")),
                        _ => Err("cel expression must evaluate to a bool".to_owned()),
                    });
                let message = (!rule.message_expression.is_empty()).then(|| {
                    environment
                        .compile(&rule.message_expression)
                        .map_err(|why| format!("messageExpression compilation failed: {why}"))
                        .and_then(|program| match (program.result, &program.unusable) {
                            (Compiled::Text, None) => Ok(program),
                            (Compiled::Text, Some(why)) => {
                                Err(format!("messageExpression instantiation failed: {why}"))
                            }
                            _ => Err("messageExpression must evaluate to a string".to_owned()),
                        })
                });
                CompiledRule {
                    uses_old_self: program.as_ref().is_ok_and(|program| program.uses("oldSelf")),
                    program,
                    message,
                }
            })
            .collect()
    }

    fn compiled(&self, node: &Schema) -> Arc<(Arc<Declared>, Vec<CompiledRule>)> {
        Arc::clone(self.compiled.get_or_init(|| {
            let declared = declared(node).unwrap_or_else(|| Arc::new(Declared::new(Shape::Dyn)));
            let rules = Self::compile(&self.rules, &declared);
            Arc::new((declared, rules))
        }))
    }
}

/// What expressions know of a node's values; none for those that they cannot see.
pub fn declared(node: &Schema) -> Option<Arc<Declared>> {
    Declaring::default().node(node)
}

/// What expressions know of an object that they see as it is stored: all of it. What the schema does not tell may be anything.
pub fn declared_whole(node: &Schema) -> Arc<Declared> {
    let mut declaring = Declaring {
        whole: true,
        open: Vec::new(),
    };
    declaring.node(node).unwrap_or_else(anything)
}

fn anything() -> Arc<Declared> {
    Arc::new(Declared::new(Shape::Dyn))
}

/// A schema on its way to become a declaration.
#[derive(Default)]
struct Declaring {
    /// Whether expressions see all metadata, and what has no type.
    whole: bool,
    /// The definitions in which the node stands: those that contain themselves end there.
    open: Vec<String>,
}

impl Declaring {
    fn node(&mut self, node: &Schema) -> Option<Arc<Declared>> {
        let bound = |pick: fn(&crate::schema::Constraints) -> Option<u64>| node.constraints().find_map(pick);
        let text = |shape: Shape| {
            let longest = bound(|own| own.max_length);
            let factor = if matches!(shape, Shape::Bytes) { 1 } else { 4 };
            let enumerated = node
                .constraints()
                .find_map(|own| own.enumeration.as_ref())
                .map(|values| {
                    let lengths = values.iter().filter_map(Value::as_str).map(|value| value.len() as u64);
                    lengths.max().unwrap_or(0)
                });
            let plain = longest.map(|longest| longest.saturating_mul(factor));
            Declared::new(shape).at_most(plain.or(enumerated))
        };
        if !self.whole && node.definition_name() == Some(OBJECT_META) {
            let text = || Declared::new(Shape::Text);
            return Some(Arc::new(Declared::object(
                "object",
                vec![("name", text()), ("generateName", text())],
            )));
        }
        Some(Arc::new(match node.kind() {
            Kind::Any | Kind::Quantity if self.whole => Declared::new(Shape::Dyn),
            Kind::Any | Kind::Quantity => return None,
            Kind::IntOrString => {
                let longest = bound(|own| own.max_length).map(|longest| longest.saturating_mul(4));
                Declared::new(Shape::Dyn).at_most(longest.or(Some(gardener_cel::REQUEST_SIZE - 2)))
            }
            Kind::Boolean => Declared::new(Shape::Bool),
            Kind::Integer => Declared::new(Shape::Int),
            Kind::Number => Declared::new(Shape::Double),
            Kind::String => match node.format() {
                Some("byte") => text(Shape::Bytes),
                Some("duration") => Declared::new(Shape::Duration),
                Some("date") => {
                    let mut date = Declared::new(Shape::Timestamp);
                    (date.max_elements, date.min_size) = (12, 12);
                    date
                }
                Some("date-time") => Declared::new(Shape::Timestamp),
                _ => text(Shape::Text),
            },
            Kind::Array => {
                let items = self.inner(node.items())?;
                let elements = match node.list_type() {
                    Some(ListType::Set) => Elements::Set,
                    Some(ListType::Map) => Elements::Map(node.list_map_keys().map(str::to_owned).collect()),
                    _ => Elements::Atomic,
                };
                Declared::new(Shape::List { items, elements }).at_most(bound(|own| own.max_items))
            }
            Kind::Object => match node.additional().filter(|values| values.kind() != Kind::Any) {
                Some(values) => {
                    let values = self.inner(Some(values))?;
                    Declared::new(Shape::Map(values)).at_most(bound(|own| own.max_properties))
                }
                None => self.object(node),
            },
        }))
    }

    /// What is in a list or a map.
    fn inner(&mut self, node: Option<&Schema>) -> Option<Arc<Declared>> {
        let declared = node.and_then(|node| self.node(node));
        declared.or_else(|| self.whole.then(anything))
    }

    fn object(&mut self, node: &Schema) -> Declared {
        let own = node.definition_name().map(str::to_owned);
        if self.whole && (node.fields().next().is_none() || own.as_ref().is_some_and(|own| self.open.contains(own))) {
            return Declared::new(Shape::Dyn);
        }
        let outside = self.open.len();
        self.open.extend(own);
        let mut fields = BTreeMap::new();
        let mut min_size = 2;
        let required: Vec<&str> = node.required().collect();
        for (name, child) in node.fields() {
            let Some(declared) = self.node(child) else { continue };
            if required.contains(&name) && child.default_value().is_none() {
                min_size += name.len() as u64 + declared.min_size + 4;
            }
            if let Some(escaped) = escape(name) {
                let property = name.to_owned();
                fields.insert(escaped, Field { property, declared });
            }
        }
        self.open.truncate(outside);
        let name = "object".to_owned();
        Declared {
            min_size,
            ..Declared::new(Shape::Object { name, fields })
        }
    }
}

/// The value before, as rules and ratcheting know it.
#[derive(Clone, Copy)]
struct Before<'a> {
    /// For transition rules.
    old: Option<&'a Value>,
    /// For ratcheting: known in fewer places than the old value.
    correlated: Option<&'a Value>,
    /// Whether the nearest parent that is correlated is as it was.
    parent_is_same: bool,
}

/// A pass over one object.
struct Pass {
    budget: i64,
    errors: ErrorList,
    /// Rules that were broken before, by values that are as they were.
    still_broken: ErrorList,
}

impl Schema {
    /// Which rules a value breaks that is otherwise valid.
    pub(crate) fn broken_rules(&self, value: &Value, old: Option<&Value>, path: &field::Path) -> Findings {
        let mut pass = Pass {
            budget: i64::try_from(OBJECT_BUDGET).unwrap_or(i64::MAX),
            errors: ErrorList::new(),
            still_broken: ErrorList::new(),
        };
        let before = Before {
            old,
            correlated: old,
            parent_is_same: false,
        };
        // a pass that ran out of its budget has said so
        let _ = pass.node(self, value, before, path);
        Findings {
            errors: pass.errors,
            still_broken: pass.still_broken,
        }
    }
}

/// The budget is spent.
struct Spent;

/// What a validation found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Why the value is refused.
    pub errors: ErrorList,
    /// Rules that the value breaks as it did before, in parts that are as they were: they refuse nothing, and are warned of.
    pub still_broken: ErrorList,
}

impl Pass {
    fn node(&mut self, node: &Schema, value: &Value, before: Before<'_>, path: &field::Path) -> Result<(), Spent> {
        if !node.has_rules || value.is_null() {
            return Ok(());
        }
        for constraints in node.constraints() {
            if !constraints.rules.rules.is_empty() {
                self.rules(node, &constraints.rules, value, before, path)?;
            }
            for branch in &constraints.all_of {
                let uncorrelated = Before {
                    correlated: None,
                    ..before
                };
                self.node(branch, value, uncorrelated, path)?;
            }
        }
        let parent_is_same = match before.correlated {
            Some(correlated) => same(value, correlated),
            None => before.parent_is_same,
        };
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let Some(child) = node.child(name) else { continue };
                    let path = match node.field(name).is_some() {
                        true => path.child(name),
                        false => path.key(name),
                    };
                    let member = |before: Option<&'_ Value>| before.and_then(|before| before.get(name)).cloned();
                    let (old, correlated) = (member(before.old), member(before.correlated));
                    let before = Before {
                        old: old.as_ref(),
                        correlated: correlated.as_ref(),
                        parent_is_same,
                    };
                    self.node(child, value, before, &path)?;
                }
            }
            Value::Array(elements) => {
                let Some(items) = node.items() else { return Ok(()) };
                for (at, value) in elements.iter().enumerate() {
                    let counterpart = before.old.and_then(|old| counterpart(node, old, value));
                    let before = Before {
                        old: counterpart,
                        correlated: counterpart.filter(|_| before.correlated.is_some()),
                        parent_is_same,
                    };
                    self.node(items, value, before, &path.index(at))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rules(
        &mut self,
        node: &Schema,
        rules: &Rules,
        value: &Value,
        before: Before<'_>,
        path: &field::Path,
    ) -> Result<(), Spent> {
        let compiled = rules.compiled(node);
        let (declared, programs) = &*compiled;
        let kind = node.kind().type_name();
        let shown = |why: String| Error::invalid(path, kind, why);
        for (rule, compiled) in rules.rules.iter().zip(programs) {
            let program = match &compiled.program {
                Ok(program) => program,
                Err(why) => {
                    self.errors.push(shown(format!("rule compile error: {why}")));
                    continue;
                }
            };
            if compiled.uses_old_self && before.old.is_none() && !rule.optional_old_self {
                continue;
            }
            let this = CelValue::of_json(value, Some(declared));
            let old = before.old.map(|old| CelValue::of_json(old, Some(declared)));
            let old = match rule.optional_old_self {
                true => CelValue::Optional(old.map(Box::new)),
                false => old.unwrap_or(CelValue::Null),
            };
            let variables = vec![("self", this), ("oldSelf", old)];
            let evaluated = program.run(variables.clone(), None, CALL_LIMIT);
            self.budget = after(self.budget, evaluated.cost);
            if self.budget < 0 {
                let why =
                    "validation failed due to running out of cost budget, no further validation rules will be run";
                self.errors.push(shown(why.to_owned()));
                return Err(Spent);
            }
            match evaluated.value {
                Ok(CelValue::Bool(true)) => continue,
                Ok(_) => {}
                Err(EvalError::CostLimit) => {
                    self.errors.push(shown(format!(
                        "'{}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        EvalError::CostLimit,
                        rule.shown()
                    )));
                    return Err(Spent);
                }
                Err(error) if error.to_string().starts_with("no such overload") => {
                    self.errors.push(shown(format!(
                        "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                        rule.shown()
                    )));
                    continue;
                }
                Err(error) => {
                    self.errors
                        .push(shown(format!("{error} evaluating rule: {}", rule.shown())));
                    continue;
                }
            }
            let unchanged = match before.correlated {
                Some(correlated) => same(value, correlated),
                None => before.parent_is_same,
            };
            // what was broken before and was not touched stays
            let told = match unchanged && !compiled.uses_old_self {
                true => &mut self.still_broken,
                false => &mut self.errors,
            };
            let message = match &compiled.message {
                // upstream gives messages the old value itself, which has no methods of an optional one
                Some(Ok(program)) if rule.optional_old_self && program.uses("oldSelf") => None,
                Some(Ok(program)) => {
                    let evaluated = program.run(variables, None, CALL_LIMIT);
                    self.budget = after(self.budget, evaluated.cost);
                    if self.budget < 0 || matches!(evaluated.value, Err(EvalError::CostLimit)) {
                        let why = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run";
                        told.push(shown(why.to_owned()));
                        return Err(Spent);
                    }
                    usable_message(evaluated.value)
                }
                _ => None,
            };
            let message = message.unwrap_or_else(|| rule.message());
            told.push(broken(rule, value, path, message));
        }
        Ok(())
    }
}

/// What is left of a budget.
fn after(budget: i64, cost: u64) -> i64 {
    budget.saturating_sub(i64::try_from(cost).unwrap_or(i64::MAX))
}

fn usable_message(value: Result<CelValue<'_>, EvalError>) -> Option<String> {
    let Ok(CelValue::Text(text)) = value else { return None };
    let text = text.trim();
    (!text.is_empty() && text.len() <= MESSAGE_LENGTH && !text.contains('\n')).then(|| text.to_owned())
}

fn broken(rule: &Rule, value: &Value, path: &field::Path, message: String) -> Error {
    let path = match rule.field_path.as_str() {
        "" => path.clone(),
        below => field::Path::new(format!("{}{}", path.as_str(), normalized(below)).trim_start_matches('.')),
    };
    match rule.reason.as_str() {
        "FieldValueForbidden" => Error::forbidden(&path, message),
        "FieldValueRequired" => Error::required(&path, message),
        "FieldValueDuplicate" => {
            let mut error = Error::duplicate(&path, value.clone());
            // as upstream, neither the value nor the message
            error.show_as("");
            error
        }
        _ if value.is_object() || value.is_array() => Error::invalid_part(&path, message),
        _ => Error::invalid(&path, value.clone(), message),
    }
}

/// `['a']` is shown as `[a]`, as paths show keys.
fn normalized(path: &str) -> String {
    path.replace("['", "[").replace("']", "]")
}

/// The element of the old list that has the same keys; lists that are no maps have none.
fn counterpart<'a>(node: &Schema, old: &'a Value, element: &Value) -> Option<&'a Value> {
    if node.list_type() != Some(ListType::Map) {
        return None;
    }
    let keys = node.list_map_keys();
    let mut old = old.as_array()?.iter();
    old.find(|old| keys.clone().all(|key| old.get(key) == element.get(key)))
}
