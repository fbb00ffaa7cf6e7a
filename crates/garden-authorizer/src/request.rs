//! The check that most kinds share [AUTH-2], and what it looks at.

use gardener_apimachinery::selector::{FieldSelector, LabelSelector, Requirement};

use crate::graph::Graph;
use crate::vertex::Kind;

/// What is asked to be allowed of a resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'r> {
    /// `get`, `list`, …
    pub verb: &'r str,
    /// API group.
    pub group: &'r str,
    /// Resource.
    pub resource: &'r str,
    /// Subresource; may be empty.
    pub subresource: &'r str,
    /// Namespace; empty across namespaces and for cluster-scoped resources, but for namespaces themselves.
    pub namespace: &'r str,
    /// Name; empty for collections. A list or watch of one object has its name, too.
    pub name: &'r str,
    /// The field selector of a list or watch.
    pub field_selector: &'r str,
    /// Its label selector.
    pub label_selector: &'r str,
}

/// The answer. It is never a clear no: roles may still allow what is not allowed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Allow,
    /// Not by what belongs to whom; why, may be empty.
    NoOpinion(String),
}

impl Answer {
    /// No opinion, without a reason.
    pub(crate) fn silent() -> Self {
        Self::NoOpinion(String::new())
    }

    /// Yes if `allowed`, else no opinion without a reason.
    pub(crate) fn allow_if(allowed: bool) -> Self {
        if allowed { Self::Allow } else { Self::silent() }
    }
}

/// What may be done with objects of a kind. Lists are in alphabetic order, as reasons tell them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule<'a> {
    /// Verbs that are allowed if a path leads from the object to the end.
    pub(crate) verbs: &'a [&'a str],
    /// Verbs that are allowed whatever the object.
    pub(crate) always: &'a [&'a str],
    /// Subresources that may be used.
    pub(crate) subresources: &'a [&'a str],
    /// Namespaces in which it is allowed; all if empty.
    pub(crate) namespaces: &'a [&'a str],
    /// Fields by which lists and watches may be narrowed; one of them is enough.
    pub(crate) fields: &'a [(&'a str, &'a str)],
    /// A label by which lists and watches may be narrowed.
    pub(crate) label: Option<(&'a str, &'a str)>,
}

/// What rules are written on top of: nothing is allowed, anywhere.
pub(crate) const NOTHING: Rule<'static> = Rule {
    verbs: &[],
    always: &[],
    subresources: &[],
    namespaces: &[],
    fields: &[],
    label: None,
};

/// Reading, where each object must belong to the end.
pub(crate) const READ: Rule<'static> = Rule {
    verbs: &["get", "list", "watch"],
    ..NOTHING
};

/// Reading one by one, each of which must belong to the end.
pub(crate) const GET: Rule<'static> = Rule {
    verbs: &["get"],
    ..NOTHING
};

/// Reading, whatever the object.
pub(crate) const READ_ALL: Rule<'static> = Rule {
    always: &["get", "list", "watch"],
    ..NOTHING
};

/// Reading and changing what belongs to the end.
pub(crate) const CHANGED: Rule<'static> = Rule {
    verbs: &["get", "list", "patch", "update", "watch"],
    ..NOTHING
};

/// Making, and reading and changing one by one.
pub(crate) const MADE: Rule<'static> = Rule {
    verbs: &["get", "patch", "update"],
    always: &["create"],
    ..NOTHING
};

/// What gardenlets make, keep and delete.
pub(crate) const KEPT: Rule<'static> = Rule {
    verbs: &["delete", "get", "list", "patch", "update", "watch"],
    always: &["create"],
    ..NOTHING
};

/// WorkloadIdentities are read, and tokens of theirs are made.
pub(crate) const WORKLOAD_IDENTITY: Rule<'static> = Rule {
    verbs: &["create", "get", "list", "patch", "watch"],
    subresources: &["token"],
    ..NOTHING
};

const NAME_FIELD: &str = "metadata.name";

/// The end for which is asked, and the graph.
#[derive(Clone, Copy)]
pub(crate) struct Checker<'g> {
    pub(crate) graph: &'g Graph,
    /// Empty for seeds.
    pub(crate) namespace: &'g str,
    pub(crate) name: &'g str,
}

fn only(what: &str, allowed: &[&str]) -> Answer {
    Answer::NoOpinion(format!(
        "only the following {what} are allowed for this resource type: [{}]",
        allowed.join(" ")
    ))
}

/// Why a verb is not allowed, if it is none of those.
pub(crate) fn check_verb(request: &Request<'_>, allowed: &[&str]) -> Result<(), Answer> {
    if allowed.contains(&request.verb) {
        return Ok(());
    }
    Err(only("verbs", allowed))
}

/// Why a subresource is not allowed, if it is none of those.
pub(crate) fn check_subresource(request: &Request<'_>, allowed: &[&str]) -> Result<(), Answer> {
    if request.subresource.is_empty() || allowed.contains(&request.subresource) {
        return Ok(());
    }
    Err(only("subresources", allowed))
}

impl Checker<'_> {
    /// The check [AUTH-2].
    pub(crate) fn check(&self, kind: Kind, request: &Request<'_>, rule: &Rule<'_>) -> Answer {
        match self.try_check(kind, request, rule) {
            Ok(()) => Answer::Allow,
            Err(answer) => answer,
        }
    }

    fn try_check(&self, kind: Kind, request: &Request<'_>, rule: &Rule<'_>) -> Result<(), Answer> {
        if !rule.namespaces.is_empty() && !rule.namespaces.contains(&request.namespace) {
            return Err(only("namespaces", rule.namespaces));
        }
        check_subresource(request, rule.subresources)?;
        // what is created stands in no graph yet: admission looks at it
        if rule.always.contains(&request.verb) {
            return Ok(());
        }
        if !rule.verbs.contains(&request.verb) {
            let mut verbs: Vec<&str> = rule.always.iter().chain(rule.verbs).copied().collect();
            verbs.sort_unstable();
            return Err(only("verbs", &verbs));
        }
        let by_name = rule.fields.iter().any(|(field, _)| *field == NAME_FIELD);
        if matches!(request.verb, "list" | "watch") && (request.name.is_empty() || by_name) {
            return if narrowed(request, rule) {
                Ok(())
            } else {
                Err(Answer::NoOpinion(format!(
                    "must specify field or label selector for name {}",
                    self.name
                )))
            };
        }
        self.belongs(kind, request)
    }

    fn belongs(&self, kind: Kind, request: &Request<'_>) -> Result<(), Answer> {
        if request.name.is_empty() {
            return Err(Answer::NoOpinion("No Object name found".to_owned()));
        }
        let namespace = if kind == Kind::Namespace { "" } else { request.namespace };
        // Deleting what is not there may be repeated. Upstream allows it for what nobody names, too, even in the namespace of another seed.
        let gone = || !self.graph.has_vertex(kind, namespace, request.name) && !self.is_of_another_seed(namespace);
        if request.verb == "delete" && gone() {
            return Ok(());
        }
        if !self
            .graph
            .has_path((kind, namespace, request.name), (self.namespace, self.name))
        {
            return Err(Answer::NoOpinion("no relationship found".to_owned()));
        }
        Ok(())
    }

    fn is_of_another_seed(&self, namespace: &str) -> bool {
        let seed = namespace.strip_prefix(gardener_apis::constants::SEED_NAMESPACE_PREFIX);
        seed.is_some_and(|seed| !self.namespace.is_empty() || seed != self.name)
    }
}

/// Whether a list or watch shows nothing but what a rule's selectors select.
///
/// Upstream takes any requirement on labels that an object with the rule's label alone would meet; so `!other` opens every object. Here the
/// requirement must be one on that label, and one that objects without it do not meet.
fn narrowed(request: &Request<'_>, rule: &Rule<'_>) -> bool {
    let fields = FieldSelector::parse(request.field_selector).unwrap_or_default();
    let by_field = fields.terms().iter().any(|(path, equal, value)| {
        let wanted = rule.fields.iter().find(|(field, _)| field == path);
        *equal && wanted.is_some_and(|(_, wanted)| !wanted.is_empty() && wanted == value)
    });
    let by_label = || {
        let Some((key, value)) = rule.label else { return false };
        let labels = LabelSelector::parse(request.label_selector).unwrap_or_default();
        labels.requirements().iter().any(|requirement| match requirement {
            Requirement::Exists(own) => own == key,
            Requirement::In(own, values) => own == key && values.iter().any(|own| own == value),
            _ => false,
        })
    };
    by_field || by_label()
}
