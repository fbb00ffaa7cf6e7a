//! What belongs to whom in a garden: the graphs for seeds and for self-hosted shoots, kept up to date object by object [AUTH-3].
//!
//! Most kinds' edges follow from the object alone. A ManagedSeed's and a Gardenlet's depend on the Seed of their name, too: a bootstrap token
//! counts only while the gardenlet cannot get in otherwise, that is, also on what time it is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::edges::{MakesEdges, Registered, Scope, issuer};
use crate::graph::{Contribution, Graph};
use crate::objects;
use crate::source::{Object, Of, Source};
use crate::vertex::{Kind, Vertex};

/// Objects by name and namespace: those of one name stand together.
type ByName<K> = BTreeMap<(String, String), K>;

/// The graphs of a garden.
#[derive(Debug)]
pub struct Belongings {
    seeds: Graph,
    shoots: Graph,
    follows_shoots: bool,
    /// When the client certificate of each seed's gardenlet expires, where that is known.
    registered: BTreeMap<String, Option<Timestamp>>,
    /// Which of those times are still to come.
    to_expire: BTreeSet<(Timestamp, String)>,
    managed_seeds: ByName<objects::ManagedSeed>,
    gardenlets: ByName<objects::Gardenlet>,
    /// Projects by namespace.
    projects: BTreeMap<String, BTreeSet<String>>,
    /// Each project's namespace.
    namespaces: BTreeMap<String, String>,
    /// By namespace: the uids of shoots whose issuer the landscape manages.
    issuers: BTreeMap<String, BTreeMap<String, String>>,
    now: Timestamp,
}

impl Default for Belongings {
    fn default() -> Self {
        Self::new()
    }
}

impl Belongings {
    /// Nothing belongs to any seed yet. What belongs to self-hosted shoots is not followed: most gardens have none.
    pub fn of_seeds() -> Self {
        Self {
            follows_shoots: false,
            ..Self::new()
        }
    }

    /// Whether it is followed what belongs to self-hosted shoots.
    pub fn follows_shoots(&self) -> bool {
        self.follows_shoots
    }

    /// Nothing belongs to anybody yet.
    pub fn new() -> Self {
        Self {
            seeds: Graph::new(Kind::Seed),
            shoots: Graph::new(Kind::Shoot),
            follows_shoots: true,
            registered: BTreeMap::new(),
            to_expire: BTreeSet::new(),
            managed_seeds: BTreeMap::new(),
            gardenlets: BTreeMap::new(),
            projects: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            issuers: BTreeMap::new(),
            now: Timestamp::MIN,
        }
    }

    /// The graph whose paths end in seeds.
    pub fn seeds(&self) -> &Graph {
        &self.seeds
    }

    /// The graph whose paths end in self-hosted shoots.
    pub fn shoots(&self) -> &Graph {
        &self.shoots
    }

    /// It is so late now. Certificates of gardenlets expire.
    pub fn at(&mut self, now: Timestamp) {
        self.now = now;
        while let Some((when, seed)) = self.to_expire.first().cloned() {
            // at that very moment it is still good
            if when >= now {
                break;
            }
            self.to_expire.pop_first();
            self.refresh(&seed);
        }
    }

    /// An object is there in this form (JSON), or it is there no longer. One that cannot be read is as if it were not there.
    pub fn set(&mut self, source: Source, namespace: &str, name: &str, object: Option<&[u8]>) {
        self.put(source, namespace, name, object.and_then(|json| source.read(json)));
    }

    /// An object is there as [`Source::read`] read it, or it is there no longer.
    pub fn put(&mut self, source: Source, namespace: &str, name: &str, object: Option<Object>) {
        match source {
            Source::BackupBucket => self.plain::<objects::BackupBucket>(source, namespace, name, object),
            Source::BackupEntry => self.plain::<objects::BackupEntry>(source, namespace, name, object),
            Source::Bastion => self.plain::<objects::Bastion>(source, namespace, name, object),
            Source::CertificateSigningRequest => {
                self.plain::<objects::CertificateSigningRequest>(source, namespace, name, object);
            }
            Source::ControllerDeployment => {
                self.plain::<objects::ControllerDeployment>(source, namespace, name, object);
            }
            Source::ControllerInstallation => {
                self.plain::<objects::ControllerInstallation>(source, namespace, name, object);
            }
            Source::CredentialsBinding => self.plain::<objects::CredentialsBinding>(source, namespace, name, object),
            Source::SecretBinding => self.plain::<objects::SecretBinding>(source, namespace, name, object),
            Source::ServiceAccount => self.plain::<objects::ServiceAccount>(source, namespace, name, object),
            Source::Gardenlet => {
                keep(&mut self.gardenlets, namespace, name, object.and_then(Of::of));
                self.gardenlet(namespace, name);
            }
            Source::ManagedSeed => {
                keep(&mut self.managed_seeds, namespace, name, object.and_then(Of::of));
                self.managed_seed(namespace, name);
            }
            Source::Project => self.project(name, object.and_then(Of::of)),
            Source::Seed => self.seed(name, object.and_then(Of::of)),
            Source::Shoot => self.shoot(namespace, name, object.and_then(Of::of)),
        }
    }

    /// The graphs for which edges are made.
    fn scopes(&self) -> impl Iterator<Item = Scope> + use<> {
        std::iter::once(Scope::Seeds).chain(self.follows_shoots.then_some(Scope::Shoots))
    }

    fn graph(&mut self, scope: Scope) -> &mut Graph {
        match scope {
            Scope::Seeds => &mut self.seeds,
            Scope::Shoots => &mut self.shoots,
        }
    }

    fn made_by(&mut self, own: &Vertex, object: Option<&impl MakesEdges>) {
        for scope in self.scopes() {
            let made = object.map_or_else(Contribution::default, |object| object.edges(own.clone(), scope));
            self.graph(scope).set(own, &made);
        }
    }

    fn plain<K: MakesEdges + Of>(&mut self, source: Source, namespace: &str, name: &str, object: Option<Object>) {
        let own = Vertex::new(source.kind(), namespace, name);
        self.made_by(&own, object.and_then(K::of).as_ref());
    }

    fn seed(&mut self, name: &str, seed: Option<objects::Seed>) {
        self.made_by(&Vertex::global(Kind::Seed, name), seed.as_ref());
        let status = |seed: objects::Seed| seed.status.and_then(|own| own.client_certificate_expiration_timestamp);
        let expires = seed.map(status);
        let before = self.registered.get(name).copied();
        if before == expires {
            return;
        }
        if let Some(Some(when)) = before {
            self.to_expire.remove(&(when, name.to_owned()));
        }
        match expires {
            Some(expires) => {
                self.registered.insert(name.to_owned(), expires);
                if let Some(when) = expires {
                    self.to_expire.insert((when, name.to_owned()));
                }
            }
            None => {
                self.registered.remove(name);
            }
        }
        self.refresh(name);
    }

    /// What depends on a seed's registration is made anew.
    fn refresh(&mut self, seed: &str) {
        for namespace in namespaces_of(&self.managed_seeds, seed) {
            self.managed_seed(&namespace, seed);
        }
        for namespace in namespaces_of(&self.gardenlets, seed) {
            self.gardenlet(&namespace, seed);
        }
    }

    fn is_registered(&self, seed: &str) -> Registered {
        match self.registered.get(seed) {
            None => Registered::No,
            Some(Some(expires)) if *expires < self.now => Registered::Expired,
            Some(_) => Registered::Yes,
        }
    }

    fn managed_seed(&mut self, namespace: &str, name: &str) {
        let own = Vertex::new(Kind::ManagedSeed, namespace, name);
        let seed = self.is_registered(name);
        let object = self.managed_seeds.get(&key(namespace, name));
        let made = |scope| object.map_or_else(Contribution::default, |object| object.edges(&own, scope, seed));
        let made: Vec<(Scope, Contribution)> = self.scopes().map(|scope| (scope, made(scope))).collect();
        for (scope, made) in made {
            self.graph(scope).set(&own, &made);
        }
    }

    fn gardenlet(&mut self, namespace: &str, name: &str) {
        let own = Vertex::new(Kind::Gardenlet, namespace, name);
        let seed = self.is_registered(name);
        let object = self.gardenlets.get(&key(namespace, name));
        let made = |scope| object.map_or_else(Contribution::default, |object| object.edges(&own, scope, seed));
        let made: Vec<(Scope, Contribution)> = self.scopes().map(|scope| (scope, made(scope))).collect();
        for (scope, made) in made {
            self.graph(scope).set(&own, &made);
        }
    }

    fn project(&mut self, name: &str, project: Option<objects::Project>) {
        self.made_by(&Vertex::global(Kind::Project, name), project.as_ref());
        let namespace = project.and_then(|project| project.spec?.namespace);
        let before = self.namespaces.get(name).cloned();
        if before == namespace {
            return;
        }
        if let Some(before) = before {
            if let Some(projects) = self.projects.get_mut(&before) {
                projects.remove(name);
                if projects.is_empty() {
                    self.projects.remove(&before);
                }
            }
            self.namespaces.remove(name);
            self.issuer(&before);
        }
        if let Some(namespace) = namespace {
            self.projects
                .entry(namespace.clone())
                .or_default()
                .insert(name.to_owned());
            self.namespaces.insert(name.to_owned(), namespace.clone());
            self.issuer(&namespace);
        }
    }

    fn shoot(&mut self, namespace: &str, name: &str, shoot: Option<objects::Shoot>) {
        self.made_by(&Vertex::new(Kind::Shoot, namespace, name), shoot.as_ref());
        let uid = shoot.as_ref().and_then(objects::Shoot::managed_issuer);
        let before = self.issuers.get(namespace).and_then(|shoots| shoots.get(name));
        if before.map(String::as_str) == uid {
            return;
        }
        let shoots = self.issuers.entry(namespace.to_owned()).or_default();
        match uid {
            Some(uid) => shoots.insert(name.to_owned(), uid.to_owned()),
            None => shoots.remove(name),
        };
        if shoots.is_empty() {
            self.issuers.remove(namespace);
        }
        self.issuer(namespace);
    }

    fn issuer(&mut self, namespace: &str) {
        let mut made = Contribution::default();
        let projects = self.projects.get(namespace).into_iter().flatten();
        let shoots = || self.issuers.get(namespace).into_iter().flatten();
        for project in projects {
            made.edges.extend(issuer(namespace, project, shoots()).edges);
        }
        let own = Vertex::global(Kind::Namespace, namespace);
        for scope in self.scopes() {
            self.graph(scope).set(&own, &made);
        }
    }
}

fn key(namespace: &str, name: &str) -> (String, String) {
    (name.to_owned(), namespace.to_owned())
}

fn keep<K>(all: &mut ByName<K>, namespace: &str, name: &str, object: Option<K>) {
    match object {
        Some(object) => all.insert(key(namespace, name), object),
        None => all.remove(&key(namespace, name)),
    };
}

fn namespaces_of<K>(all: &ByName<K>, name: &str) -> Vec<String> {
    let from = (name.to_owned(), String::new());
    let of_name = all.range(from..).take_while(|((own, _), _)| own == name);
    of_name.map(|((_, namespace), _)| namespace.clone()).collect()
}
