//! What single functions cost, and how large their results are.

use super::range::Range;
use super::{Entries, Estimate, Estimator, ITEMS, is_number};
use crate::ast::{Expr, Literal, Node};
use crate::types::Type;

/// What going through a text or through bytes costs, for each character.
const TRAVERSAL: f64 = 0.1;
/// What a pattern costs, for each of its characters.
const PATTERN: f64 = 0.25;
/// The longest pattern of the formats that have names.
const LONGEST_FORMAT: f64 = 128.0;
/// What a call of the lists' and sets' libraries costs by itself.
const CALL: Range = Range { min: 1, max: 1 };
/// What a new list costs.
const LIST: Range = Range { min: 10, max: 10 };
/// Addresses have 4 or 16 bytes.
const ADDRESS: Range = Range { min: 4, max: 16 };

/// What a call costs.
pub(super) struct Called {
    pub(super) cost: Range,
    pub(super) size: Option<Range>,
    pub(super) entries: Option<Entries>,
    /// Whether `cost` has that of the arguments in it.
    pub(super) instead_of_args: bool,
}

fn costs(cost: Range) -> Called {
    Called {
        cost,
        size: None,
        entries: None,
        instead_of_args: false,
    }
}

fn makes(cost: Range, size: Range) -> Called {
    Called {
        size: Some(size),
        ..costs(cost)
    }
}

/// A list of that size is made.
fn allocates(by: f64, size: Range) -> Called {
    makes(size.by(by).plus(CALL).plus(LIST), size)
}

fn ceil_div(a: u64, b: u64) -> u64 {
    if b == 0 { 0 } else { a.div_ceil(b) }
}

fn integer(arg: Option<&Expr>) -> Option<i64> {
    match arg?.node {
        Node::Literal(Literal::Int(value)) => Some(value),
        _ => None,
    }
}

/// A number that is written down; what is less than nothing is nothing.
fn natural(arg: Option<&Expr>) -> Option<u64> {
    integer(arg).map(|value| u64::try_from(value).unwrap_or(0))
}

/// Sorting a list by a list of keys of this type.
pub(super) fn sorted(keys: &Type, size: Range) -> Called {
    let by = match keys {
        Type::List(key) if is_number(key) => 2.0,
        _ => 2.0 + TRAVERSAL,
    };
    allocates(by, size.times(size))
}

impl Estimator<'_> {
    /// The type and size of a list's elements.
    fn element(&self, list: &Estimate) -> Option<(Type, Range)> {
        let element = match &list.ty {
            Type::List(element) | Type::Map(element, _) | Type::Optional(element) => (**element).clone(),
            _ => return None,
        };
        let size = (!list.path.is_empty()).then(|| {
            let mut path = list.path.clone();
            path.push(ITEMS.to_owned());
            self.size_at(&path)
        });
        Some((element, size.flatten().unwrap_or(Range::UNKNOWN)))
    }

    pub(super) fn called(&self, name: &str, target: Option<&Estimate>, args: &[Estimate], sources: &[Expr]) -> Called {
        let arg = |at: usize| args.get(at).map_or(Range::UNKNOWN, Estimate::size_or_unknown);
        let one = costs(Range::exactly(1));
        match (name, target, args.len()) {
            ("check", Some(_), _) => costs(Range::exactly(350_000)),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(list), _) => {
                let size = list.size_or_unknown();
                match self.element(list) {
                    Some((Type::Simple("string" | "bytes"), element)) => {
                        costs(size.times(Range::exactly(1).plus(element.by(TRAVERSAL))))
                    }
                    Some(_) => costs(size),
                    None => costs(size.by(TRAVERSAL)),
                }
            }
            ("url" | "jsonpatch.escapeKey", None, 1) => makes(arg(0).by(TRAVERSAL), arg(0)),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                makes(text.size_or_unknown().by(TRAVERSAL), text.size_or_unknown())
            }
            ("replace", Some(text), 2..) => {
                let text = text.size_or_unknown();
                makes(text.by(2.0 * TRAVERSAL), replaced(text, arg(0), arg(1)))
            }
            ("split", Some(text), _) => {
                let text = text.size_or_unknown();
                // a limit below nothing is none at all
                let most = integer(sources.get(1)).map_or(text.max, |most| most as u64);
                makes(text.by(2.0 * TRAVERSAL), Range::up_to(most))
            }
            ("join", Some(list), count) => {
                let size = list.size_or_unknown();
                let elements = self.element(list);
                let mut joined = elements.map_or(Range::default(), |(_, element)| size.times(element));
                if count > 0 {
                    let separators = Range {
                        min: size.min.saturating_sub(1),
                        max: size.max.saturating_sub(1),
                    };
                    joined = joined.plus(arg(0).times(separators));
                }
                makes(joined.by(TRAVERSAL), joined)
            }
            ("find" | "findAll", Some(text), 1..) => {
                let text = text.size_or_unknown();
                let cost = text.plus(Range::exactly(1)).by(TRAVERSAL).times(arg(0).by(PATTERN));
                makes(cost, Range::up_to(text.max))
            }
            ("matches", ..) => {
                let (text, pattern) = match target {
                    Some(text) => (text.size_or_unknown(), arg(0)),
                    // a function of two arguments has no estimate of its own
                    None => return one,
                };
                costs(text.plus(Range::exactly(1)).by(TRAVERSAL).times(pattern.by(PATTERN)))
            }
            ("cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver", None, 1..) => {
                costs(arg(0).by(TRAVERSAL))
            }
            ("ip.isCanonical", None, 1..) => costs(arg(0).by(2.0 * TRAVERSAL)),
            ("containsIP" | "containsCIDR", Some(_), 1..) => {
                let mut cost = ADDRESS.plus(ADDRESS).by(TRAVERSAL);
                if name == "containsCIDR" {
                    cost = cost.plus(ADDRESS.by(TRAVERSAL)).plus(Range::exactly(1));
                }
                // a text is read first
                match args.first().map(|arg| &arg.ty) {
                    Some(Type::Abstract(_)) => {}
                    Some(Type::Simple(_)) => cost = cost.plus(arg(0).by(TRAVERSAL)),
                    _ => cost = cost.or(cost.plus(arg(0).by(TRAVERSAL))),
                }
                costs(cost)
            }
            ("validate", Some(_), 1..) => costs(arg(0).by(TRAVERSAL).by(LONGEST_FORMAT * PATTERN)),
            ("format", Some(text), 1) => costs(text.size_or_unknown().by(TRAVERSAL)),
            ("strings.quote", None, 1) => {
                let size = arg(0);
                let quoted = Range {
                    min: size.min.saturating_add(2),
                    max: size.max.saturating_mul(2).saturating_add(2),
                };
                makes(size.by(TRAVERSAL), quoted)
            }
            ("bytes", None, 1) => match args.first().map(|arg| &arg.ty) {
                Some(Type::Simple("bytes")) => one,
                _ => {
                    let size = arg(0);
                    let encoded = Range {
                        min: size.min,
                        max: size.max.saturating_mul(4),
                    };
                    makes(size.by(TRAVERSAL), encoded)
                }
            },
            ("string", None, 1) => match args.first().map(|arg| &arg.ty) {
                Some(Type::Simple("bytes")) => {
                    let size = arg(0);
                    let decoded = Range {
                        min: size.min / 4,
                        max: size.max,
                    };
                    makes(size.by(TRAVERSAL), decoded)
                }
                Some(ty) if ty.is_dyn() => costs(arg(0).by(TRAVERSAL).or(Range::exactly(1))),
                _ => one,
            },
            ("startsWith" | "endsWith", Some(_), 1) => costs(arg(0).by(TRAVERSAL)),
            ("contains", Some(text), 1) => costs(text.size_or_unknown().by(TRAVERSAL).times(arg(0).by(TRAVERSAL))),
            ("@in", None, 2) => match args.get(1).map(|arg| &arg.ty) {
                Some(Type::List(_)) => costs(arg(1)),
                Some(Type::Map(..)) => one,
                _ => costs(arg(1).or(Range::exactly(1))),
            },
            ("_?_:_", None, 3) => conditional(args),
            ("_+_", None, 2) => added(args),
            ("_==_" | "_!=_", None, 2) => match args {
                [left, right] if name == "_==_" && left.ty.is(&right.ty) && counts_as_one(&left.ty) => one,
                [
                    Estimate {
                        ty: Type::Abstract("kubernetes.URL"),
                        ..
                    },
                    right,
                ] if name == "_==_" => {
                    let max = right.size.map_or(1, |size| size.max);
                    costs(Range { min: 1, max }.by(TRAVERSAL))
                }
                _ => costs(compared(arg(0), arg(1))),
            },
            ("_<_" | "_<=_" | "_>_" | "_>=_", None, 2) => {
                let is = |arg: &Estimate, test: fn(&Type) -> bool| test(&arg.ty);
                if args.iter().any(|arg| is(arg, is_number)) {
                    one
                } else if args.iter().any(|arg| matches!(arg.ty, Type::Simple(_))) {
                    costs(compared(arg(0), arg(1)))
                } else {
                    costs(compared(arg(0), arg(1)).or(Range::exactly(1)))
                }
            }
            ("sets.contains" | "sets.intersects", None, 2) => costs(arg(0).times(arg(1)).plus(CALL)),
            ("sets.equivalent", None, 2) => costs(arg(0).times(arg(1)).by(2.0).plus(CALL)),
            ("slice", Some(list), 2) => {
                let end = natural(sources.get(1)).unwrap_or(list.size_or_unknown().max);
                // a beginning behind the end makes it endless
                let size = end.wrapping_sub(natural(sources.first()).unwrap_or(0));
                allocates(1.0, Range::exactly(size))
            }
            ("lists.range", None, 1) => allocates(1.0, Range::exactly(natural(sources.first()).unwrap_or(u64::MAX))),
            ("reverse", Some(list), 0) => allocates(1.0, list.size_or_unknown()),
            ("flatten", Some(list), 0 | 1) => {
                let depth = match args.is_empty() {
                    true => 1,
                    false => natural(sources.first()).unwrap_or(u64::MAX),
                };
                allocates(depth as f64, list.size_or_unknown())
            }
            ("distinct", Some(list), 0) => {
                let size = list.size_or_unknown();
                allocates(2.0, size.times(size))
            }
            ("sort", Some(list), 0) => sorted(&list.ty, list.size_or_unknown()),
            _ => one,
        }
    }
}

/// Types that Kubernetes compares at once.
fn counts_as_one(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Abstract("net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver")
    )
}

fn compared(left: Range, right: Range) -> Range {
    let max = left.max.min(right.max);
    let range = Range {
        min: u64::from(max > 0),
        max,
    };
    range.by(TRAVERSAL)
}

fn conditional(args: &[Estimate]) -> Called {
    let [condition, then, otherwise] = args else {
        return costs(Range::exactly(1));
    };
    Called {
        cost: condition.cost.plus(then.cost.or(otherwise.cost)),
        size: Some(then.size_or_unknown().or(otherwise.size_or_unknown())),
        entries: Entries::or(then.entries, otherwise.entries),
        instead_of_args: true,
    }
}

fn added(args: &[Estimate]) -> Called {
    let [left, right] = args else {
        return costs(Range::exactly(1));
    };
    let size = left.size_or_unknown().plus(right.size_or_unknown());
    let known = args.iter().find(|arg| !arg.ty.is_dyn()).map(|arg| &arg.ty);
    let cost = match known {
        Some(Type::List(_)) => Range::exactly(1),
        Some(ty) if is_number(ty) => return costs(Range::exactly(1)),
        Some(_) => size.by(TRAVERSAL),
        None => size.by(TRAVERSAL).or(Range::exactly(1)),
    };
    Called {
        entries: Entries::or(left.entries, right.entries),
        ..makes(cost, size)
    }
}

/// How long a text is in which something was replaced.
fn replaced(text: Range, from: Range, to: Range) -> Range {
    let (most, kept_most) = if from.min == 0 {
        // each place between characters may get a replacement
        (text.max.saturating_add(1), text.max)
    } else if to.max <= from.min {
        (0, text.max)
    } else {
        (ceil_div(text.max, from.min), 0)
    };
    let (fewest, kept_least) = if from.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if from.max <= to.min {
        (0, text.min)
    } else {
        (ceil_div(text.min, from.max), 0)
    };
    let count = Range { min: fewest, max: most };
    let kept = Range {
        min: kept_least,
        max: kept_most,
    };
    count.times(to).plus(kept)
}
