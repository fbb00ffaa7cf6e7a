//! What a request asks to be allowed, read from its method, path and query.

use std::borrow::Cow;

use gardener_apimachinery::selector::FieldSelector;
use http::Method;

use crate::authz::Attributes;
use crate::request::{Query, ResourcePath, Target};
use crate::user::UserInfo;

/// A request as authorizers judge it, whoever makes it.
pub(crate) struct Question<'a> {
    /// `get`, `list`, …; empty for methods that no resource has.
    pub(crate) verb: Cow<'a, str>,
    place: Place<'a>,
}

enum Place<'a> {
    Path(&'a str),
    Resource {
        path: &'a ResourcePath,
        name: Cow<'a, str>,
        field_selector: &'a str,
        label_selector: &'a str,
    },
}

impl<'a> Question<'a> {
    /// What a request asks.
    pub(crate) fn of(method: &Method, target: &'a Target, query: &'a Query) -> Self {
        match target {
            Target::Other(path) => Self::of_path(method, path),
            Target::Resource(path) => Self::of_resource(verb(method, path, query), path, query),
        }
    }

    /// What a request for something that is no resource asks.
    pub(crate) fn of_path(method: &Method, path: &'a str) -> Self {
        Self {
            verb: method.as_str().to_lowercase().into(),
            place: Place::Path(path),
        }
    }

    /// What a request for a resource asks, of which `verb` was made by [`verb`].
    pub(crate) fn of_resource(verb: &'static str, path: &'a ResourcePath, query: &'a Query) -> Self {
        let selector = |name: &str| match verb {
            "list" | "watch" | "deletecollection" => query.get(name).unwrap_or_default(),
            _ => "",
        };
        // a list or watch of one name is a question about that name
        let selected = || {
            let selected = FieldSelector::parse(query.get("fieldSelector")?).ok()?;
            selected.exact("metadata.name").map(|name| Cow::Owned(name.to_owned()))
        };
        let name = match path.name.is_empty() && matches!(verb, "list" | "watch") {
            true => selected().unwrap_or_default(),
            false => Cow::Borrowed(path.name.as_str()),
        };
        Self {
            verb: verb.into(),
            place: Place::Resource {
                path,
                name,
                field_selector: selector("fieldSelector"),
                label_selector: selector("labelSelector"),
            },
        }
    }

    /// The question as `user` asks it.
    pub(crate) fn by<'q>(&'q self, user: &'q UserInfo) -> Attributes<'q> {
        let nowhere = Attributes {
            user,
            verb: &self.verb,
            group: "",
            version: "",
            resource: "",
            subresource: "",
            namespace: "",
            name: "",
            path: "",
            is_resource: false,
            field_selector: "",
            label_selector: "",
        };
        match &self.place {
            Place::Path(path) => Attributes { path, ..nowhere },
            Place::Resource {
                path,
                name,
                field_selector,
                label_selector,
            } => Attributes {
                group: &path.group,
                version: &path.version,
                resource: &path.resource,
                subresource: &path.subresource,
                namespace: &path.namespace,
                name,
                is_resource: true,
                field_selector,
                label_selector,
                ..nowhere
            },
        }
    }
}

/// What a method does with a resource.
pub(crate) fn verb(method: &Method, path: &ResourcePath, query: &Query) -> &'static str {
    let watching = *method == Method::GET
        && (path.legacy_watch || path.name.is_empty() && query.flag("watch"))
        && path.subresource.is_empty();
    match (method, path.name.is_empty()) {
        _ if watching => "watch",
        (&Method::GET | &Method::HEAD, true) => "list",
        (&Method::GET | &Method::HEAD, false) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "deletecollection",
        (&Method::DELETE, false) => "delete",
        // not of any resource; refused once it is clear that the caller may know
        _ => "",
    }
}
