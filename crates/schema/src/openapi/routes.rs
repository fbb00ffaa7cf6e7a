//! Which requests an API server answers for a resource, as its documents tell of them. kube-apiserver registers one set for kinds that it is
//! built with and a smaller one for custom kinds; both are here. How a route is written is in [`super::operations`].

use super::operations::words;
use super::{Access, Information, Resource, Subresource};

/// A request that is answered.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// `get`, `post`; as in a path item.
    pub(super) method: &'static str,
    /// From the root, `/api/v1/namespaces/{namespace}/pods`.
    pub(super) path: String,
    /// What begins the operation's name: `read`.
    pub(super) verb: &'static str,
    /// What ends it, after group and version: `NamespacedPod`.
    pub(super) subject: String,
    /// What is done, and to which kind (group, version, kind). Requests that are not about a resource have none.
    pub(super) action: Option<(&'static str, [String; 3])>,
    /// What may be in the path and the query.
    pub(super) parameters: Vec<Parameter>,
    /// What a body may be; none for requests without one.
    pub(super) body: Option<Body>,
    /// What an answer is.
    pub(super) answer: Form,
    /// The codes of answers of that form.
    pub(super) codes: &'static [u16],
    /// The media types of answers.
    pub(super) produces: Vec<&'static str>,
}

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parameter {
    /// Its name.
    pub(super) name: &'static str,
    /// `path` or `query`.
    pub(super) place: &'static str,
    /// Its type.
    pub(super) kind: &'static str,
}

/// A body.
#[derive(Clone, Debug)]
pub(super) struct Body {
    /// What it is.
    pub(super) form: Form,
    /// Whether it must be there.
    pub(super) required: bool,
    /// Its media types.
    pub(super) consumes: &'static [&'static str],
}

/// What a body is.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// An object of a kind (group, version, kind).
    Kind([String; 3]),
    /// What all groups share, by the name of its component.
    Shared(&'static str),
    /// Text.
    Text,
}

const ANY: &[&str] = &["*/*"];
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// What objects of built-in kinds are sent as.
pub(super) const OBJECTS: [&str; 3] = [JSON, YAML, "application/vnd.kubernetes.protobuf"];
const STREAMS: [&str; 2] = [
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const CUSTOM: &[&str] = &[JSON, YAML];
const PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];
const CUSTOM_PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
];

pub(super) const STATUS_COMPONENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const STATUS: Form = Form::Shared(STATUS_COMPONENT);
pub(super) const DELETE_OPTIONS_COMPONENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const DELETE_OPTIONS: Form = Form::Shared(DELETE_OPTIONS_COMPONENT);
pub(super) const PATCH_COMPONENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const PATCH: Form = Form::Shared(PATCH_COMPONENT);
const WATCH_EVENT: Form = Form::Shared("io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent");

type Options = &'static [(&'static str, &'static str)];
const OF_GET: Options = &[("resourceVersion", "string")];
const OF_WRITE: Options = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
];
const OF_DELETE: Options = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const OF_COLLECTION: Options = &[
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("shardSelector", "string"),
    ("timeoutSeconds", "integer"),
];
const OF_WATCH: Options = &[("allowWatchBookmarks", "boolean"), ("watch", "boolean")];
const PRETTY: Options = &[("pretty", "string")];

/// The methods of requests that connect to something, and their verbs, if they have one.
const CONNECTED: [(&str, &str); 7] = [
    ("get", "get"),
    ("post", "create"),
    ("put", "update"),
    ("patch", "patch"),
    ("delete", "delete"),
    ("head", ""),
    ("options", ""),
];

/// The routes of a resource.
pub(super) fn of(resource: &Resource) -> Vec<Route> {
    let mut routes = Routes {
        resource,
        subresource: None,
        found: Vec::new(),
    };
    let base = super::base_path(&resource.group, &resource.version);
    let plural = &resource.plural;
    if resource.namespaced {
        routes.of_collection(&base, plural, true);
        routes.of_collection(&base, &format!("namespaces/{{namespace}}/{plural}"), false);
        routes.of_object(&base, &format!("namespaces/{{namespace}}/{plural}/{{name}}"));
    } else {
        routes.of_collection(&base, plural, false);
        routes.of_object(&base, &format!("{plural}/{{name}}"));
    }
    let namespace = if resource.namespaced {
        "namespaces/{namespace}/"
    } else {
        ""
    };
    for subresource in &resource.subresources {
        routes.subresource = Some(subresource);
        let path = format!("{namespace}{plural}/{{name}}/{}", subresource.name);
        match subresource.access {
            Access::Object | Access::Text(_) => {
                if routes.has("create") {
                    routes.write(&base, &path, "create");
                }
                routes.of_object(&base, &path);
            }
            Access::Connection { options, beneath } => {
                routes.of_connection(&base, &path, options, "");
                if beneath {
                    routes.of_connection(&base, &format!("{path}/{{path}}"), options, "WithPath");
                }
            }
        }
    }
    routes.found
}

/// The route to something that is no resource.
pub(super) fn information(path: &str, information: Information) -> Route {
    Route {
        method: "get",
        path: path.to_owned(),
        verb: "get",
        subject: information.subject.to_owned(),
        action: None,
        parameters: Vec::new(),
        body: None,
        answer: information.component.map_or(Form::Text, Form::Shared),
        codes: &[200],
        produces: information.produces.to_vec(),
    }
}

struct Routes<'a> {
    resource: &'a Resource,
    subresource: Option<&'a Subresource>,
    found: Vec<Route>,
}

impl Routes<'_> {
    fn has(&self, verb: &str) -> bool {
        let verbs = self.subresource.map_or(&self.resource.verbs, |own| &own.verbs);
        verbs.iter().any(|known| known == verb)
    }

    /// `everywhere`: in all namespaces, where objects are only looked at.
    fn of_collection(&mut self, base: &str, path: &str, everywhere: bool) {
        let suffix = if everywhere { "ForAllNamespaces" } else { "" };
        let custom = self.resource.custom;
        if self.has("list") {
            let mut route = self.route("get", base, path, ("list", "list"), suffix);
            route.add(OF_COLLECTION);
            route.add(OF_WATCH);
            route.answer = self.kind(&self.resource.list_kind);
            if !custom {
                route.produces.extend(STREAMS);
            }
            self.found.push(route);
        }
        if !everywhere {
            if self.has("create") {
                self.write(base, path, "create");
            }
            if self.has("deletecollection") {
                let mut route = self.route("delete", base, path, ("delete", "deletecollection"), suffix);
                route.subject = format!("Collection{}", route.subject);
                route.add(OF_COLLECTION);
                if custom {
                    route.add(OF_WATCH);
                } else {
                    route.add(OF_DELETE);
                    route.body = Some(body(DELETE_OPTIONS, false, ANY));
                }
                route.answer = STATUS;
                self.found.push(route);
            }
        }
        if self.has("list") && self.has("watch") && !custom {
            self.watch(base, path, "watchlist", &format!("List{suffix}"));
        }
    }

    fn of_object(&mut self, base: &str, path: &str) {
        let custom = self.resource.custom;
        if self.has("get") {
            let mut route = self.route("get", base, path, ("read", "get"), "");
            if custom {
                route.add(OF_GET);
            }
            if let Some(Access::Text(options)) = self.subresource.map(|own| own.access) {
                route.add(options);
                route.answer = Form::Text;
                route.produces.insert(0, "text/plain");
            }
            self.found.push(route);
        }
        for verb in ["update", "patch"] {
            if self.has(verb) {
                self.write(base, path, verb);
            }
        }
        if self.has("delete") {
            let mut route = self.route("delete", base, path, ("delete", "delete"), "");
            route.add(OF_DELETE);
            let consumes = if custom { CUSTOM } else { ANY };
            route.body = Some(body(DELETE_OPTIONS, false, consumes));
            if !self.resource.answers_deleted_object {
                route.answer = STATUS;
            }
            route.codes = &[200, 202];
            self.found.push(route);
        }
        if self.has("watch") && !custom {
            self.watch(base, path, "watch", "");
        }
    }

    /// Creates, replaces or patches.
    fn write(&mut self, base: &str, path: &str, verb: &str) {
        let custom = self.resource.custom;
        let (method, names, codes): (_, _, &[u16]) = match verb {
            "create" => ("post", ("create", "post"), &[200, 201, 202]),
            "update" => ("put", ("replace", "put"), &[200, 201]),
            _ if custom => ("patch", ("patch", "patch"), &[200]),
            _ => ("patch", ("patch", "patch"), &[200, 201]),
        };
        let mut route = self.route(method, base, path, names, "");
        route.add(OF_WRITE);
        route.codes = codes;
        let (form, consumes) = match verb {
            "patch" => {
                route.add(&[("force", "boolean")]);
                (PATCH, if custom { CUSTOM_PATCHES } else { PATCHES })
            }
            _ => (route.answer.clone(), if custom { CUSTOM } else { ANY }),
        };
        route.body = Some(body(form, true, consumes));
        self.found.push(route);
    }

    fn watch(&mut self, base: &str, path: &str, action: &'static str, suffix: &str) {
        let mut route = self.route("get", base, &format!("watch/{path}"), ("watch", action), suffix);
        route.add(OF_COLLECTION);
        route.add(OF_WATCH);
        route.answer = WATCH_EVENT;
        route.produces.extend(STREAMS);
        self.found.push(route);
    }

    fn of_connection(&mut self, base: &str, path: &str, options: Options, suffix: &str) {
        let all = self.has("delete");
        for (method, verb) in CONNECTED {
            if !(self.has(verb) || all && verb.is_empty()) {
                continue;
            }
            let mut route = self.route(method, base, path, ("connect", "connect"), suffix);
            route.subject = format!("{}{}", words(method), route.subject);
            route.parameters.retain(|parameter| parameter.name != "pretty");
            route.add(options);
            route.answer = Form::Text;
            route.produces = ANY.to_vec();
            self.found.push(route);
        }
    }

    /// A route with what all have: the parameters of its path, and answers with an object of its kind.
    fn route(
        &self,
        method: &'static str,
        base: &str,
        path: &str,
        (verb, action): (&'static str, &'static str),
        suffix: &str,
    ) -> Route {
        let resource = self.resource;
        let (kind, answer, sub) = match self.subresource {
            // of a custom resource every route is said to be about its own kind
            Some(own) if resource.custom => (self.gvk(&resource.kind), gvk(own), words(&own.name)),
            Some(own) => (gvk(own), gvk(own), words(&own.name)),
            None => (self.gvk(&resource.kind), self.gvk(&resource.kind), String::new()),
        };
        let namespaced = resource.namespaced && !suffix.ends_with("ForAllNamespaces");
        let mut route = Route {
            method,
            path: format!("{base}/{path}"),
            verb,
            subject: format!(
                "{}{}{sub}{suffix}",
                if namespaced { "Namespaced" } else { "" },
                resource.kind
            ),
            action: Some((action, kind)),
            parameters: Vec::new(),
            body: None,
            answer: Form::Kind(answer),
            codes: &[200],
            produces: if resource.custom {
                CUSTOM.to_vec()
            } else {
                OBJECTS.to_vec()
            },
        };
        route.add(PRETTY);
        for name in ["namespace", "name", "path"] {
            if route.path.contains(&format!("{{{name}}}")) {
                route.parameters.push(Parameter {
                    name,
                    place: "path",
                    kind: "string",
                });
            }
        }
        route
    }

    fn gvk(&self, kind: &str) -> [String; 3] {
        [&self.resource.group, &self.resource.version, kind].map(Into::into)
    }

    fn kind(&self, kind: &str) -> Form {
        Form::Kind(self.gvk(kind))
    }
}

impl Route {
    fn add(&mut self, options: Options) {
        self.parameters.extend(options.iter().map(|&(name, kind)| Parameter {
            name,
            place: "query",
            kind,
        }));
        // what several options have
        self.parameters.sort();
        self.parameters.dedup();
    }
}

fn body(form: Form, required: bool, consumes: &'static [&'static str]) -> Body {
    Body {
        form,
        required,
        consumes,
    }
}

fn gvk(subresource: &Subresource) -> [String; 3] {
    [&subresource.group, &subresource.version, &subresource.kind].map(Clone::clone)
}
