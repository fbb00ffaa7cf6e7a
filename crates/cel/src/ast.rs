//! Expressions as trees. Macros are nodes of their own, so that evaluation and cost need no rewriting.

/// A node and where it is in the source, in characters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub(crate) at: usize,
    pub(crate) node: Node,
    /// How many nodes stand in each other, this one included.
    pub(crate) depth: usize,
}

impl Expr {
    pub(crate) fn new(at: usize, node: Node) -> Self {
        let deepest = match &node {
            Node::Literal(_) | Node::Ident(_) => 0,
            Node::Struct { fields, .. } => fields.iter().map(|field| field.value.depth).max().unwrap_or(0),
            Node::Select { operand, .. } | Node::Has { operand, .. } => operand.depth,
            Node::Call { target, args, .. } => {
                let all = target
                    .iter()
                    .map(|target| target.depth)
                    .chain(args.iter().map(|arg| arg.depth));
                all.max().unwrap_or(0)
            }
            Node::Logic { args, .. } => args.iter().map(|arg| arg.depth).max().unwrap_or(0),
            Node::List(elements) => elements.iter().map(|(_, element)| element.depth).max().unwrap_or(0),
            Node::Map(entries) => {
                let all = entries.iter().map(|(_, key, value)| key.depth.max(value.depth));
                all.max().unwrap_or(0)
            }
            Node::Fold(fold) => {
                let filter = fold.filter.as_ref().map_or(0, |filter| filter.depth);
                fold.range.depth.max(fold.body.depth).max(filter)
            }
        };
        Self {
            at,
            node,
            depth: deepest + 1,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Literal(Literal),
    Ident(String),
    /// `a.b`; `optional`: `a.?b`.
    Select {
        operand: Box<Expr>,
        field: String,
        optional: bool,
    },
    /// `has(a.b)`.
    Has {
        operand: Box<Expr>,
        field: String,
    },
    Call {
        name: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    /// `&&` or `||` of two or more.
    Logic {
        and: bool,
        args: Vec<Expr>,
    },
    /// Elements, and whether each is one only if it has a value.
    List(Vec<(bool, Expr)>),
    Map(Vec<(bool, Expr, Expr)>),
    /// `Name{field: value}`.
    Struct {
        name: String,
        fields: Vec<Init>,
    },
    Fold(Box<Fold>),
}

/// A field of an object that an expression makes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Init {
    pub(crate) at: usize,
    pub(crate) name: String,
    /// Whether it is there only if it has a value.
    pub(crate) optional: bool,
    pub(crate) value: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    /// To a list.
    Map,
    Filter,
    TransformMap,
    TransformMapEntry,
    OptMap,
    OptFlatMap,
    /// The elements in the order of the body's values.
    SortBy,
}

/// A macro that binds names for each element of a range.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fold {
    pub(crate) kind: FoldKind,
    pub(crate) range: Expr,
    /// One name, or key and value.
    pub(crate) names: Vec<String>,
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Expr,
}
