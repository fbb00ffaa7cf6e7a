//! A directed graph of objects [AUTH-3]: an edge A → B says that whoever has access to B has access to A. Questions are whether a path leads to
//! a vertex of one kind, the graph's *end*: seeds, or self-hosted shoots.
//!
//! Every vertex knows which ends it leads to: for each of them how many of its successors lead there. An edge that comes or goes changes those
//! counts backwards as far as something became reachable or unreachable, so that a question needs no search: one look-up, and one more for each end
//! from which the asked one is reached (a seed that runs as a shoot on it). An end counts as leading to itself only; where its own edges lead is
//! kept beside it. That is exact as long as all cycles go through ends, which [`Kind::rank`] sees to.
//!
//! Edges belong to the object that makes them, and several may make the same one. So the graph depends on the objects that are there, not on the
//! order in which they came. (Upstream's forgets edges of others when it deletes a vertex, until those others change or it restarts.)
//!
//! Costs: a question O(log ends) for each end behind the asked one; an edge O(ends × ancestors) where reachability changes, else O(log neighbours).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::vertex::{Kind, Vertex};

/// An edge.
pub type Edge = (Vertex, Vertex);

/// What one object adds to the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contribution {
    /// Vertices that are there whether they have edges or not.
    pub vertices: BTreeSet<Vertex>,
    /// Edges.
    pub edges: BTreeSet<Edge>,
}

type Id = u32;
/// Vertices of one kind and namespace by their names.
type Names = HashMap<Box<str>, Id>;

#[derive(Debug)]
struct Node {
    vertex: Vertex,
    /// How many objects say that it is there, with or without edges.
    holders: u32,
    /// Successors, and how many objects make the edge.
    successors: BTreeMap<Id, u32>,
    predecessors: BTreeSet<Id>,
    /// The ends to which successors lead, and how many successors do.
    leads_to: BTreeMap<Id, u32>,
    /// Of an end: the ends whose edges lead to it.
    behind: BTreeSet<Id>,
}

/// The graph.
#[derive(Debug)]
pub struct Graph {
    end: Kind,
    /// Vertices by kind, namespace and name; only looked up, never iterated.
    ids: Vec<HashMap<Box<str>, Names>>,
    nodes: Vec<Option<Node>>,
    free: Vec<Id>,
    contributions: HashMap<Vertex, Made>,
}

/// What an object adds, in the graph's numbers, sorted: half of a garden's objects add what takes more room than themselves otherwise.
#[derive(Debug, Default, PartialEq, Eq)]
struct Made {
    vertices: Box<[Id]>,
    edges: Box<[(Id, Id)]>,
}

impl Graph {
    /// An empty graph whose paths end in vertices of a kind.
    pub fn new(end: Kind) -> Self {
        Self {
            end,
            ids: (0..Kind::COUNT).map(|_| HashMap::new()).collect(),
            nodes: Vec::new(),
            free: Vec::new(),
            contributions: HashMap::new(),
        }
    }

    /// Sets what an object adds, in place of what it added before. The object itself need not be a vertex.
    pub fn set(&mut self, object: &Vertex, new: &Contribution) {
        if new.vertices.is_empty() && new.edges.is_empty() {
            if let Some(old) = self.contributions.remove(object) {
                self.replace(&old, &Made::default());
            }
            return;
        }
        // what is new is held before what is old is let go: so nothing that stays goes meanwhile
        let mut vertices: Vec<Id> = new.vertices.iter().map(|vertex| self.make(vertex)).collect();
        let edges = new.edges.iter().filter(|(from, to)| self.may_have(from, to));
        let edges: Vec<&Edge> = edges.collect();
        let mut edges: Vec<(Id, Id)> = edges
            .into_iter()
            .map(|(from, to)| (self.make(from), self.make(to)))
            .collect();
        vertices.sort_unstable();
        edges.sort_unstable();
        let new = Made {
            vertices: vertices.into(),
            edges: edges.into(),
        };
        let old = self.contributions.remove(object).unwrap_or_default();
        self.replace(&old, &new);
        self.contributions.insert(object.clone(), new);
    }

    fn replace(&mut self, old: &Made, new: &Made) {
        if old == new {
            return;
        }
        let only = |id: &Id, other: &Made| other.vertices.binary_search(id).is_err();
        let gone = |edge: &(Id, Id), other: &Made| other.edges.binary_search(edge).is_err();
        for id in new.vertices.iter().filter(|id| only(id, old)) {
            self.hold(*id);
        }
        for (from, to) in new.edges.iter().filter(|edge| gone(edge, old)) {
            self.add_edge(*from, *to);
        }
        for (from, to) in old.edges.iter().filter(|edge| gone(edge, new)) {
            self.remove_edge(*from, *to);
        }
        for id in old.vertices.iter().filter(|id| only(id, new)) {
            self.release(*id);
        }
    }

    /// Whether an edge closes no cycle but through an end.
    fn may_have(&self, from: &Vertex, to: &Vertex) -> bool {
        let may = from.kind == self.end || to.kind == self.end || from.kind.rank() < to.kind.rank();
        debug_assert!(may, "{from} → {to} may close a cycle");
        may
    }

    /// Whether something speaks of this object.
    pub fn has_vertex(&self, kind: Kind, namespace: &str, name: &str) -> bool {
        self.id(kind, namespace, name).is_some()
    }

    /// Whether a path leads from an object to an end. Every vertex leads to itself.
    pub fn has_path(&self, from: (Kind, &str, &str), to: (&str, &str)) -> bool {
        let (Some(from), Some(to)) = (self.id(from.0, from.1, from.2), self.id(self.end, to.0, to.1)) else {
            return false;
        };
        let Some(start) = self.node(from) else { return false };
        let is_end = start.vertex.kind == self.end;
        let leads = |end: Id| {
            if is_end {
                end == from
            } else {
                start.leads_to.contains_key(&end)
            }
        };
        if leads(to) {
            return true;
        }
        // ends whose own edges lead to the asked one
        let mut seen = BTreeSet::from([to]);
        let mut next = vec![to];
        while let Some(end) = next.pop() {
            for behind in self.node(end).into_iter().flat_map(|node| &node.behind) {
                if seen.insert(*behind) {
                    if leads(*behind) {
                        return true;
                    }
                    next.push(*behind);
                }
            }
        }
        false
    }

    /// How many vertices and edges there are.
    pub fn size(&self) -> (usize, usize) {
        let nodes = self.nodes.iter().flatten();
        nodes.fold((0, 0), |(vertices, edges), node| {
            (vertices + 1, edges + node.successors.len())
        })
    }

    fn id(&self, kind: Kind, namespace: &str, name: &str) -> Option<Id> {
        self.ids.get(kind as usize)?.get(namespace)?.get(name).copied()
    }

    fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id as usize)?.as_ref()
    }

    fn node_mut(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(id as usize)?.as_mut()
    }

    fn make(&mut self, vertex: &Vertex) -> Id {
        if let Some(id) = self.id(vertex.kind, &vertex.namespace, &vertex.name) {
            return id;
        }
        let node = Some(Node {
            vertex: vertex.clone(),
            holders: 0,
            successors: BTreeMap::new(),
            predecessors: BTreeSet::new(),
            leads_to: BTreeMap::new(),
            behind: BTreeSet::new(),
        });
        let id = match self.free.pop() {
            Some(id) => {
                if let Some(place) = self.nodes.get_mut(id as usize) {
                    *place = node;
                }
                id
            }
            None => {
                self.nodes.push(node);
                Id::try_from(self.nodes.len() - 1).unwrap_or(Id::MAX)
            }
        };
        if let Some(namespaces) = self.ids.get_mut(vertex.kind as usize) {
            let names = namespaces.entry(vertex.namespace.clone()).or_default();
            names.insert(vertex.name.clone(), id);
        }
        id
    }

    fn hold(&mut self, id: Id) {
        if let Some(node) = self.node_mut(id) {
            node.holders += 1;
        }
    }

    /// One less says that the vertex is there; the last takes it away.
    fn release(&mut self, id: Id) {
        let Some(node) = self.node_mut(id) else { return };
        node.holders = node.holders.saturating_sub(1);
        if node.holders > 0 {
            return;
        }
        let Some(node) = self.nodes.get_mut(id as usize).and_then(Option::take) else {
            return;
        };
        self.free.push(id);
        let Vertex { kind, namespace, name } = node.vertex;
        if let Some(namespaces) = self.ids.get_mut(kind as usize)
            && let Some(names) = namespaces.get_mut(&namespace)
        {
            names.remove(&name);
            if names.is_empty() {
                namespaces.remove(&namespace);
            }
        }
    }

    fn add_edge(&mut self, source: Id, target: Id) {
        self.hold(source);
        self.hold(target);
        let Some(node) = self.node_mut(source) else { return };
        let makers = node.successors.entry(target).or_insert(0);
        *makers += 1;
        if *makers > 1 {
            return;
        }
        for end in self.ends_of(target) {
            self.gain(source, end);
        }
        if let Some(node) = self.node_mut(target) {
            node.predecessors.insert(source);
        }
    }

    fn remove_edge(&mut self, source: Id, target: Id) {
        if let Some(node) = self.node_mut(source)
            && let Some(makers) = node.successors.get_mut(&target)
        {
            *makers -= 1;
            if *makers == 0 {
                node.successors.remove(&target);
                if let Some(node) = self.node_mut(target) {
                    node.predecessors.remove(&source);
                }
                for end in self.ends_of(target) {
                    self.lose(source, end);
                }
            }
        }
        self.release(source);
        self.release(target);
    }

    /// The ends to which a vertex leads, without passing another end.
    fn ends_of(&self, id: Id) -> Vec<Id> {
        match self.node(id) {
            Some(node) if node.vertex.kind == self.end => vec![id],
            Some(node) => node.leads_to.keys().copied().collect(),
            None => Vec::new(),
        }
    }

    /// One more successor of a vertex leads to an end.
    fn gain(&mut self, id: Id, end: Id) {
        let kind = self.end;
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            let Some(node) = self.node_mut(id) else { continue };
            let count = node.leads_to.entry(end).or_insert(0);
            *count += 1;
            if *count > 1 {
                continue;
            }
            if node.vertex.kind != kind {
                next.extend(&node.predecessors);
            } else if let Some(node) = self.node_mut(end) {
                node.behind.insert(id);
            }
        }
    }

    /// One successor less of a vertex leads to an end.
    fn lose(&mut self, id: Id, end: Id) {
        let kind = self.end;
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            let Some(node) = self.node_mut(id) else { continue };
            let Some(count) = node.leads_to.get_mut(&end) else {
                continue;
            };
            *count -= 1;
            if *count > 0 {
                continue;
            }
            node.leads_to.remove(&end);
            if node.vertex.kind != kind {
                next.extend(&node.predecessors);
            } else if let Some(node) = self.node_mut(end) {
                node.behind.remove(&id);
            }
        }
    }

    /// All vertices and edges, in order.
    #[cfg(test)]
    pub(crate) fn dump(&self) -> (BTreeSet<Vertex>, BTreeSet<Edge>) {
        let nodes = || self.nodes.iter().flatten();
        let edges = nodes().flat_map(|node| {
            let successors = node.successors.keys().filter_map(|id| self.node(*id));
            successors.map(|to| (node.vertex.clone(), to.vertex.clone()))
        });
        (nodes().map(|node| node.vertex.clone()).collect(), edges.collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether a path leads from one vertex to another, found by search.
    fn searched(edges: &BTreeSet<Edge>, from: &Vertex, to: &Vertex) -> bool {
        let mut seen = BTreeSet::from([from.clone()]);
        let mut next = vec![from.clone()];
        while let Some(vertex) = next.pop() {
            if vertex == *to {
                return true;
            }
            for (_, successor) in edges.iter().filter(|(source, _)| *source == vertex) {
                if seen.insert(successor.clone()) {
                    next.push(successor.clone());
                }
            }
        }
        false
    }

    const KINDS: [Kind; 7] = [
        Kind::Secret,
        Kind::Namespace,
        Kind::BackupEntry,
        Kind::Gardenlet,
        Kind::Seed,
        Kind::ManagedSeed,
        Kind::Shoot,
    ];

    fn vertex() -> impl Strategy<Value = Vertex> {
        (0..KINDS.len(), 0..2_u8, 0..3_u8).prop_map(|(kind, namespace, name)| {
            Vertex::new(KINDS[kind], ["", "n"][usize::from(namespace)], &format!("{name}"))
        })
    }

    fn contribution(end: Kind) -> impl Strategy<Value = Contribution> {
        let edges = proptest::collection::btree_set((vertex(), vertex()), 0..6);
        (edges, proptest::collection::btree_set(vertex(), 0..2)).prop_map(move |(edges, vertices)| Contribution {
            vertices,
            edges: edges
                .into_iter()
                .filter(|(from, to)| from.kind == end || to.kind == end || from.kind.rank() < to.kind.rank())
                .collect(),
        })
    }

    proptest! {
        /// Whatever came and went: the graph is what the objects that are there make it, and its answers are those of a search.
        #[test]
        fn graphs_depend_on_the_objects_that_are_there(
            end in prop_oneof![Just(Kind::Seed), Just(Kind::Shoot)],
            changes in Just(()).prop_flat_map(|()| proptest::collection::vec((0..5_u8, contribution(Kind::Seed), contribution(Kind::Shoot)), 1..24)),
        ) {
            let mut graph = Graph::new(end);
            let mut last: BTreeMap<u8, Contribution> = BTreeMap::new();
            for (object, for_seeds, for_shoots) in changes {
                let new = if end == Kind::Seed { for_seeds } else { for_shoots };
                last.insert(object, new.clone());
                graph.set(&Vertex::global(Kind::Project, &object.to_string()), &new);
            }
            let edges: BTreeSet<Edge> = last.values().flat_map(|own| own.edges.clone()).collect();
            let mut vertices: BTreeSet<Vertex> = last.values().flat_map(|own| own.vertices.clone()).collect();
            for (from, to) in &edges {
                vertices.extend([from.clone(), to.clone()]);
            }
            prop_assert_eq!(graph.dump(), (vertices.clone(), edges.clone()));
            for to in vertices.iter().filter(|vertex| vertex.kind == end) {
                for from in &vertices {
                    let found = graph.has_path((from.kind, &from.namespace, &from.name), (&to.namespace, &to.name));
                    prop_assert_eq!(found, searched(&edges, from, to), "{} ⇝ {}", from, to);
                }
            }
            for object in last.keys() {
                graph.set(&Vertex::global(Kind::Project, &object.to_string()), &Contribution::default());
            }
            prop_assert_eq!(graph.size(), (0, 0));
            prop_assert!(graph.contributions.is_empty() && graph.ids.iter().all(HashMap::is_empty));
        }
    }
}
