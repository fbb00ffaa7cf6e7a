//! What a cluster's API counts of itself, under kube-apiserver's names: requests by what they asked and how they ended, how long they took,
//! how many run, watches, and how many objects there are.
//!
//! A landscape has a hundred such APIs, so the counts of one kind of request take a few hundred bytes. Only resources that are served are
//! counted: nobody makes labels by asking for what is not there.

pub(crate) mod access;
pub(crate) mod admission;
pub(crate) mod waits;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use gardener_apimachinery::metrics::{Durations, Text, process};
use http::{HeaderName, Method};
use parking_lot::Mutex;

use self::access::Access;
use self::admission::{Steps, Webhooks};
use crate::cluster::LogicalCluster;
use crate::request::{Query, ResourcePath, Target};
use crate::time_limit;

/// Upper bounds, in seconds, of the steps in which durations are counted.
const STEPS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
/// The content type of what [`Metrics::text`] writes.
pub use gardener_apimachinery::metrics::CONTENT_TYPE;

/// The header that tells scrapers since when numbers are counted, in seconds of Unix's time.
pub(crate) const STARTED: HeaderName = HeaderName::from_static("process-start-time-unix");

/// The counts of one cluster.
#[derive(Default)]
pub struct Metrics {
    /// By group, version, resource and subresource, with a slash between them.
    resources: Mutex<BTreeMap<String, Counts>>,
    /// Requests that run and change something, watches not counted.
    mutating: AtomicI64,
    /// Requests that run and only read.
    reading: AtomicI64,
    /// What health checks found, by their names and the path that asked for them.
    checks: Mutex<BTreeMap<(&'static str, &'static str), Checked>>,
    /// Resources that were asked for and are to go, as `resources` names them, with the release that has them no more, if that is known.
    deprecated: Mutex<BTreeMap<String, String>>,
    /// Who was let in, and what they were allowed.
    pub(crate) access: Access,
    /// What admission did.
    pub(crate) admission: Steps,
    /// What admission webhooks did.
    pub(crate) webhooks: Webhooks,
}

/// What one health check found so far.
#[derive(Default)]
struct Checked {
    /// Whether all was well when it was asked last.
    is_well: bool,
    well: u64,
    failed: u64,
}

/// The counts of one resource.
#[derive(Default)]
struct Counts {
    requests: Vec<(Kind, Ended)>,
    /// Watches that run, by scope.
    watches: BTreeMap<&'static str, i64>,
}

impl Counts {
    /// The counts of one kind of request.
    fn ended(&mut self, kind: Kind) -> &mut Ended {
        let at = self.requests.iter().position(|(own, _)| *own == kind);
        let at = at.unwrap_or_else(|| {
            self.requests.push((kind, Ended::default()));
            self.requests.len() - 1
        });
        #[allow(clippy::indexing_slicing)] // it was found or put there
        &mut self.requests[at].1
    }
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    verb: &'static str,
    scope: &'static str,
    /// `All`, `invalid`, or nothing for what is no dry run.
    dry_run: &'static str,
}

#[derive(Default)]
struct Ended {
    /// By status code.
    codes: Vec<(u16, u64)>,
    /// How many of these were refused because too many ran; how long they took is not counted.
    refused: u64,
    durations: Durations<{ STEPS.len() }>,
    /// Durations without what was waited for webhooks; none, as long as no request waited.
    without_waits: Option<Box<Durations<{ STEPS.len() }>>>,
}

impl Ended {
    fn count(&mut self, code: u16) {
        match self.codes.iter_mut().find(|(own, _)| *own == code) {
            Some((_, number)) => *number += 1,
            None => self.codes.push((code, 1)),
        }
    }

    fn add(&mut self, code: u16, taken: Duration, waited: Duration) {
        self.count(code);
        if !waited.is_zero() && self.without_waits.is_none() {
            self.without_waits = Some(Box::new(self.durations.clone()));
        }
        self.durations.add(&STEPS, taken);
        if let Some(without) = &mut self.without_waits {
            without.add(&STEPS, taken.saturating_sub(waited));
        }
    }

    /// Writes them as a histogram.
    fn tell(&self, out: &mut Text, name: &str, labels: &str) {
        out.durations(name, labels, &STEPS, &self.durations);
    }

    /// As [`Ended::tell`], without what was waited for webhooks.
    fn tell_without_waits(&self, out: &mut Text, name: &str, labels: &str) {
        let durations = self.without_waits.as_deref().unwrap_or(&self.durations);
        out.durations(name, labels, &STEPS, durations);
    }
}

/// A request that is counted.
pub struct Asked {
    resource: String,
    kind: Kind,
}

impl Asked {
    /// What a request asks of a resource.
    pub fn of(method: &Method, path: &ResourcePath, query: &Query, content_type: &str) -> Self {
        let watching = path.legacy_watch || query.flag("watch");
        let verb = match (method, path.name.is_empty()) {
            _ if time_limit::lasts(path) => "CONNECT",
            (&Method::GET | &Method::HEAD, true) if watching => "WATCH",
            (&Method::GET | &Method::HEAD, true) => "LIST",
            (&Method::GET | &Method::HEAD, false) if path.legacy_watch => "WATCH",
            (&Method::GET | &Method::HEAD, false) => "GET",
            (&Method::POST, _) => "POST",
            (&Method::PUT, _) => "PUT",
            (&Method::PATCH, _) if content_type.starts_with("application/apply-patch") => "APPLY",
            (&Method::PATCH, _) => "PATCH",
            (&Method::DELETE, _) => "DELETE",
            _ => "other",
        };
        let is_one = !path.name.is_empty() || verb == "POST";
        let scope = match (is_one, path.namespace.is_empty()) {
            (true, _) => "resource",
            (false, false) => "namespace",
            (false, true) => "cluster",
        };
        let dry_run = match query.has("dryRun") {
            true if query.all("dryRun").all(|value| value == "All") => "All",
            true => "invalid",
            false => "",
        };
        Self {
            resource: name(path),
            kind: Kind { verb, scope, dry_run },
        }
    }

    fn changes(&self) -> bool {
        !matches!(self.kind.verb, "GET" | "LIST" | "WATCH")
    }
}

/// How a resource is known here.
fn name(path: &ResourcePath) -> String {
    format!("{}/{}/{}/{}", path.group, path.version, path.resource, path.subresource)
}

/// A request that runs; it is counted as running until this value goes.
pub struct Running<'m> {
    metrics: &'m Metrics,
    changes: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.metrics.running(self.changes).fetch_sub(1, Ordering::Relaxed);
    }
}

/// A watch that runs; it is counted as running until this value goes.
pub struct Watching {
    cluster: Arc<LogicalCluster>,
    resource: String,
    scope: &'static str,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut resources = self.cluster.metrics().resources.lock();
        if let Some(counts) = resources.get_mut(&self.resource) {
            *counts.watches.entry(self.scope).or_default() -= 1;
        }
    }
}

impl Watching {
    /// Counts a watch of a cluster.
    pub fn begin(cluster: Arc<LogicalCluster>, asked: &Asked) -> Self {
        let mut resources = cluster.metrics().resources.lock();
        let counts = resources.entry(asked.resource.clone()).or_default();
        *counts.watches.entry(asked.kind.scope).or_default() += 1;
        drop(resources);
        Self {
            cluster,
            resource: asked.resource.clone(),
            scope: asked.kind.scope,
        }
    }
}

impl Metrics {
    fn running(&self, changes: bool) -> &AtomicI64 {
        if changes { &self.mutating } else { &self.reading }
    }

    /// Counts a request as running.
    pub fn begin(&self, asked: &Asked) -> Running<'_> {
        let changes = asked.changes();
        self.running(changes).fetch_add(1, Ordering::Relaxed);
        Running { metrics: self, changes }
    }

    /// Counts a request that ended, and that waited for webhooks meanwhile.
    pub fn count(&self, asked: Asked, code: u16, taken: Duration, waited: Duration) {
        let mut resources = self.resources.lock();
        let counts = resources.entry(asked.resource).or_default();
        counts.ended(asked.kind).add(code, taken, waited);
    }

    /// Counts a request that is refused because too many run.
    pub(crate) fn refused(&self, cluster: &LogicalCluster, method: &Method, target: &Target, query: &Query) {
        const REFUSED: u16 = 429;
        let Target::Resource(path) = target else { return };
        if cluster.find(&path.group, &path.resource).is_none() {
            return;
        }
        let asked = Asked::of(method, path, query, "");
        let mut resources = self.resources.lock();
        let ended = resources.entry(asked.resource).or_default().ended(asked.kind);
        ended.count(REFUSED);
        ended.refused += 1;
    }

    /// Notes that somebody asks for what is to go, and in which release.
    pub(crate) fn deprecated(&self, path: &ResourcePath, removed: Option<&str>) {
        let mut deprecated = self.deprecated.lock();
        deprecated
            .entry(name(path))
            .or_insert_with(|| removed.unwrap_or_default().to_owned());
    }

    /// Notes what a health check found.
    pub(crate) fn checked(&self, name: &'static str, path: &'static str, is_well: bool) {
        let mut checks = self.checks.lock();
        let checked = checks.entry((name, path)).or_default();
        checked.is_well = is_well;
        match is_well {
            true => checked.well += 1,
            false => checked.failed += 1,
        }
    }

    /// What health checks found, in Prometheus' text form: upstream's service level indicators.
    pub(crate) fn checks_text(&self) -> String {
        let mut out = Text::default();
        let checks = self.checks.lock();
        if checks.is_empty() {
            return out.into_text();
        }
        let name = "kubernetes_healthcheck";
        out.family(name, "gauge", "Whether a health check was well when it was asked last.");
        for ((check, path), checked) in checks.iter() {
            let labels = format!("name=\"{check}\",type=\"{path}\"");
            out.sample(name, &labels, u8::from(checked.is_well));
        }
        let name = "kubernetes_healthchecks_total";
        out.family(name, "counter", "Health checks by what they found.");
        for ((check, path), checked) in checks.iter() {
            for (status, number) in [("error", checked.failed), ("success", checked.well)] {
                if number > 0 {
                    let labels = format!("name=\"{check}\",status=\"{status}\",type=\"{path}\"");
                    out.sample(name, &labels, number);
                }
            }
        }
        out.into_text()
    }

    /// Everything in Prometheus' text form.
    pub fn text(&self, cluster: &LogicalCluster) -> String {
        let mut out = Text::default();
        let resources = self.resources.lock();
        let requests = || {
            resources.iter().flat_map(|(resource, counts)| {
                counts
                    .requests
                    .iter()
                    .map(move |(kind, durations)| (resource.as_str(), *kind, durations))
            })
        };
        out.family(
            "apiserver_request_total",
            "counter",
            "Requests by what they asked and their status code.",
        );
        for (resource, kind, durations) in requests() {
            for (code, number) in &durations.codes {
                let labels = format!("{},code=\"{code}\"", request_labels(resource, kind));
                out.sample("apiserver_request_total", &labels, number);
            }
        }
        let name = "apiserver_request_terminations_total";
        out.family(name, "counter", "Requests that were refused because too many ran.");
        for (resource, kind, ended) in requests().filter(|(_, _, ended)| ended.refused > 0) {
            let place = place_labels(resource, kind.scope);
            out.sample(
                name,
                &format!("code=\"429\",verb=\"{}\",{place}", kind.verb),
                ended.refused,
            );
        }
        let name = "apiserver_request_duration_seconds";
        out.family(
            name,
            "histogram",
            "How long requests took, watches not counted, in seconds.",
        );
        let were_served = |ended: &Ended| ended.durations.number() > 0;
        for (resource, kind, durations) in
            requests().filter(|(_, kind, ended)| kind.verb != "WATCH" && were_served(ended))
        {
            durations.tell(&mut out, name, &request_labels(resource, kind));
        }
        let name = "apiserver_request_sli_duration_seconds";
        out.family(
            name,
            "histogram",
            "How long requests took without what they waited for webhooks, watches and dry runs not counted, in seconds.",
        );
        let told = |kind: &Kind| kind.verb != "WATCH" && kind.dry_run.is_empty();
        for (resource, kind, durations) in requests().filter(|(_, kind, ended)| told(kind) && were_served(ended)) {
            let labels = format!("verb=\"{}\",{}", kind.verb, place_labels(resource, kind.scope));
            durations.tell_without_waits(&mut out, name, &labels);
        }
        out.family(
            "apiserver_current_inflight_requests",
            "gauge",
            "Requests that run, watches not counted.",
        );
        for (kind, running) in [("mutating", &self.mutating), ("readOnly", &self.reading)] {
            let labels = format!("request_kind=\"{kind}\"");
            out.sample(
                "apiserver_current_inflight_requests",
                &labels,
                running.load(Ordering::Relaxed),
            );
        }
        out.family("apiserver_longrunning_requests", "gauge", "Watches that run.");
        for (resource, counts) in resources.iter() {
            for (scope, number) in &counts.watches {
                let labels = format!("verb=\"WATCH\",{}", place_labels(resource, scope));
                out.sample("apiserver_longrunning_requests", &labels, number);
            }
        }
        drop(resources);
        let prefix = cluster.path("", "");
        let counted: Vec<(String, String, usize)> = cluster
            .definitions()
            .iter()
            .map(|definition| {
                let number = cluster.store().count(&definition.topic, &prefix);
                (definition.group.clone(), definition.plural.clone(), number)
            })
            .collect();
        out.family("apiserver_resource_objects", "gauge", "Stored objects by kind.");
        for (group, resource, number) in &counted {
            out.sample(
                "apiserver_resource_objects",
                &format!("group=\"{group}\",resource=\"{resource}\""),
                number,
            );
        }
        out.family(
            "apiserver_storage_objects",
            "gauge",
            "Stored objects by kind; use apiserver_resource_objects.",
        );
        for (group, resource, number) in &counted {
            let full = if group.is_empty() {
                resource.clone()
            } else {
                format!("{resource}.{group}")
            };
            out.sample("apiserver_storage_objects", &format!("resource=\"{full}\""), number);
        }
        let name = "apiserver_requested_deprecated_apis";
        out.family(name, "gauge", "Resources that were asked for and are to go.");
        for (resource, removed) in self.deprecated.lock().iter() {
            let labels = format!("{},removed_release=\"{removed}\"", resource_labels(resource));
            out.sample(name, &labels, 1);
        }
        let name = "aggregator_unavailable_apiservice";
        out.family(
            name,
            "gauge",
            "Whether another server that serves a version is not available.",
        );
        for backend in cluster.aggregation().backends(cluster).iter() {
            let labels = format!("name=\"{}\"", backend.name);
            out.sample(name, &labels, u8::from(!backend.available));
        }
        if let Some(flow_control) = cluster.used_flow_control() {
            flow_control.tell(&mut out);
        }
        self.access.tell(&mut out);
        self.admission.tell(&mut out);
        self.webhooks.tell(&mut out);
        cluster.config().authenticator.tell(&mut out);
        cluster.config().authorizer.tell(&mut out);
        out.family("kubernetes_build_info", "gauge", "The version that is served.");
        let version = &cluster.config().git_version;
        out.sample("kubernetes_build_info", &format!("git_version=\"{version}\""), 1);
        process::tell(&mut out);
        out.into_text()
    }
}

fn resource_labels(resource: &str) -> String {
    let mut parts = resource.splitn(4, '/');
    let mut next = || parts.next().unwrap_or_default();
    let (group, version, resource, subresource) = (next(), next(), next(), next());
    format!("group=\"{group}\",version=\"{version}\",resource=\"{resource}\",subresource=\"{subresource}\"")
}

fn request_labels(resource: &str, kind: Kind) -> String {
    let Kind { verb, scope, dry_run } = kind;
    format!(
        "verb=\"{verb}\",dry_run=\"{dry_run}\",{}",
        place_labels(resource, scope)
    )
}

/// The labels that tell of what requests are, and of how much of it.
fn place_labels(resource: &str, scope: &str) -> String {
    format!(
        "{},scope=\"{scope}\",component=\"apiserver\"",
        resource_labels(resource)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, path: &str, query: &str, content_type: &str) -> Asked {
        match crate::request::target(path) {
            crate::request::Target::Resource(path) => Asked::of(&method, &path, &Query::parse(query), content_type),
            crate::request::Target::Other(path) => panic!("{path} is no resource"),
        }
    }

    #[test]
    fn requests_are_told_apart() {
        const POD: &str = "/api/v1/namespaces/a/pods/b";
        for (method, path, query, content_type, verb, scope) in [
            (Method::GET, "/api/v1/pods", "", "", "LIST", "cluster"),
            (
                Method::GET,
                "/api/v1/namespaces/a/pods",
                "watch=1",
                "",
                "WATCH",
                "namespace",
            ),
            (Method::GET, POD, "", "", "GET", "resource"),
            (Method::POST, "/api/v1/namespaces/a/pods", "", "", "POST", "resource"),
            (
                Method::GET,
                "/api/v1/namespaces/a/pods/b/log",
                "",
                "",
                "CONNECT",
                "resource",
            ),
            (Method::TRACE, POD, "", "", "other", "resource"),
            (
                Method::PATCH,
                POD,
                "",
                "application/apply-patch+yaml",
                "APPLY",
                "resource",
            ),
            (
                Method::PATCH,
                POD,
                "",
                "application/json-patch+json",
                "PATCH",
                "resource",
            ),
            (Method::DELETE, POD, "", "", "DELETE", "resource"),
            (
                Method::DELETE,
                "/api/v1/namespaces/a/pods",
                "",
                "",
                "DELETE",
                "namespace",
            ),
        ] {
            let found = asked(method, path, query, content_type).kind;
            assert_eq!((found.verb, found.scope), (verb, scope), "{path}?{query}");
        }
    }

    #[test]
    fn durations_are_counted_in_steps() {
        let metrics = Metrics::default();
        for (milliseconds, code) in [(1, 200), (5, 200), (30, 404), (100_000, 200)] {
            let asked = asked(Method::GET, "/apis/apps/v1/namespaces/a/deployments/b/scale", "", "");
            metrics.count(asked, code, Duration::from_millis(milliseconds), Duration::ZERO);
        }
        let mut text = Text::default();
        let resources = metrics.resources.lock();
        let (resource, counts) = resources.first_key_value().unwrap();
        let (kind, durations) = counts.requests.first().unwrap();
        assert_eq!(
            request_labels(resource, *kind),
            "verb=\"GET\",dry_run=\"\",group=\"apps\",version=\"v1\",resource=\"deployments\",subresource=\"scale\",scope=\"resource\",component=\"apiserver\""
        );
        assert_eq!(durations.codes, [(200, 3), (404, 1)]);
        durations.tell(&mut text, "x", "a=\"b\"");
        let text = text.into_text();
        for line in [
            "x_bucket{a=\"b\",le=\"0.005\"} 2\n",
            "x_bucket{a=\"b\",le=\"0.05\"} 3\n",
            "x_bucket{a=\"b\",le=\"45\"} 3\n",
            "x_bucket{a=\"b\",le=\"+Inf\"} 4\n",
            "x_sum{a=\"b\"} 100.036\n",
            "x_count{a=\"b\"} 4\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn waits_for_webhooks_are_left_out_of_service_levels() {
        let mut ended = Ended::default();
        let milliseconds = Duration::from_millis;
        ended.add(200, milliseconds(30), Duration::ZERO);
        ended.add(200, milliseconds(300), milliseconds(260));
        ended.add(200, milliseconds(30), Duration::ZERO);
        let mut text = Text::default();
        ended.tell(&mut text, "x", "");
        ended.tell_without_waits(&mut text, "y", "");
        let text = text.into_text();
        for line in [
            "x_bucket{le=\"0.05\"} 2\n",
            "x_bucket{le=\"0.4\"} 3\n",
            "y_bucket{le=\"0.05\"} 3\n",
            "y_count 3\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn dry_runs_are_told_apart() {
        const PODS: &str = "/api/v1/namespaces/a/pods";
        for (query, dry_run) in [
            ("", ""),
            ("dryRun=All", "All"),
            ("dryRun=All&dryRun=All", "All"),
            ("dryRun=", "invalid"),
            ("dryRun=All&dryRun=Some", "invalid"),
        ] {
            assert_eq!(asked(Method::POST, PODS, query, "").kind.dry_run, dry_run, "{query}");
        }
    }
}
