//! The functions that expressions can call, with their overloads.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::types::Type;

/// One way to call a function.
pub(crate) struct Overload {
    /// Whether the first parameter stands before the dot.
    pub(crate) member: bool,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
}

/// `name(params)->result`; `T.name(params)->result` for members. `A` and `B` are type parameters.
const OVERLOADS: &str = "
_+_(int,int)->int; _+_(uint,uint)->uint; _+_(double,double)->double; _+_(string,string)->string; _+_(bytes,bytes)->bytes
_+_(list(A),list(A))->list(A); _+_(timestamp,duration)->timestamp; _+_(duration,timestamp)->timestamp; _+_(duration,duration)->duration
_-_(int,int)->int; _-_(uint,uint)->uint; _-_(double,double)->double; _-_(timestamp,timestamp)->duration
_-_(timestamp,duration)->timestamp; _-_(duration,duration)->duration
_*_(int,int)->int; _*_(uint,uint)->uint; _*_(double,double)->double
_/_(int,int)->int; _/_(uint,uint)->uint; _/_(double,double)->double
_%_(int,int)->int; _%_(uint,uint)->uint
-_(int)->int; -_(double)->double; !_(bool)->bool
_==_(A,A)->bool; _!=_(A,A)->bool
@in(A,list(A))->bool; @in(A,map(A,B))->bool
_[_](list(A),int)->A; _[_](map(A,B),A)->B; _[_](optional(list(A)),int)->optional(A); _[_](optional(map(A,B)),A)->optional(B)
_[?_](list(A),int)->optional(A); _[?_](map(A,B),A)->optional(B); _[?_](optional(list(A)),int)->optional(A); _[?_](optional(map(A,B)),A)->optional(B)
_?_:_(bool,A,A)->A
size(string)->int; size(bytes)->int; size(list(A))->int; size(map(A,B))->int
string.size()->int; bytes.size()->int; list(A).size()->int; map(A,B).size()->int
string.contains(string)->bool; string.startsWith(string)->bool; string.endsWith(string)->bool
string.matches(string)->bool; matches(string,string)->bool
int(int)->int; int(uint)->int; int(double)->int; int(string)->int; int(timestamp)->int; int(duration)->int
uint(uint)->uint; uint(int)->uint; uint(double)->uint; uint(string)->uint
double(double)->double; double(int)->double; double(uint)->double; double(string)->double
string(string)->string; string(int)->string; string(uint)->string; string(double)->string; string(bool)->string; string(bytes)->string
string(timestamp)->string; string(duration)->string; string(ip)->string; string(cidr)->string
bytes(bytes)->bytes; bytes(string)->bytes; bool(bool)->bool; bool(string)->bool; dyn(A)->dyn; type(A)->type(A)
timestamp(timestamp)->timestamp; timestamp(string)->timestamp; timestamp(int)->timestamp
duration(duration)->duration; duration(string)->duration; duration(int)->duration
timestamp.getFullYear()->int; timestamp.getMonth()->int; timestamp.getDayOfYear()->int; timestamp.getDayOfMonth()->int
timestamp.getDate()->int; timestamp.getDayOfWeek()->int; timestamp.getHours()->int; timestamp.getMinutes()->int
timestamp.getSeconds()->int; timestamp.getMilliseconds()->int
timestamp.getFullYear(string)->int; timestamp.getMonth(string)->int; timestamp.getDayOfYear(string)->int; timestamp.getDayOfMonth(string)->int
timestamp.getDate(string)->int; timestamp.getDayOfWeek(string)->int; timestamp.getHours(string)->int; timestamp.getMinutes(string)->int
timestamp.getSeconds(string)->int; timestamp.getMilliseconds(string)->int
duration.getHours()->int; duration.getMinutes()->int; duration.getSeconds()->int; duration.getMilliseconds()->int
string.charAt(int)->string; string.indexOf(string)->int; string.indexOf(string,int)->int; string.lastIndexOf(string)->int
string.lastIndexOf(string,int)->int; string.lowerAscii()->string; string.upperAscii()->string; string.trim()->string
string.replace(string,string)->string; string.replace(string,string,int)->string; string.split(string)->list(string)
string.split(string,int)->list(string); string.substring(int)->string; string.substring(int,int)->string
list(string).join()->string; list(string).join(string)->string; string.format(list(dyn))->string; strings.quote(string)->string
jsonpatch.escapeKey(string)->string
string.find(string)->string; string.findAll(string)->list(string); string.findAll(string,int)->list(string)
list(int).isSorted()->bool; list(uint).isSorted()->bool; list(double).isSorted()->bool; list(bool).isSorted()->bool
list(string).isSorted()->bool; list(bytes).isSorted()->bool; list(timestamp).isSorted()->bool; list(duration).isSorted()->bool
list(int).sum()->int; list(uint).sum()->uint; list(double).sum()->double; list(duration).sum()->duration
list(int).min()->int; list(uint).min()->uint; list(double).min()->double; list(bool).min()->bool; list(string).min()->string
list(bytes).min()->bytes; list(timestamp).min()->timestamp; list(duration).min()->duration
list(int).max()->int; list(uint).max()->uint; list(double).max()->double; list(bool).max()->bool; list(string).max()->string
list(bytes).max()->bytes; list(timestamp).max()->timestamp; list(duration).max()->duration
list(A).indexOf(A)->int; list(A).lastIndexOf(A)->int
list(A).slice(int,int)->list(A); list(list(A)).flatten()->list(A); list(dyn).flatten(int)->list(dyn); lists.range(int)->list(int)
list(A).distinct()->list(A); list(A).reverse()->list(A); list(A).first()->optional(A); list(A).last()->optional(A)
list(int).sort()->list(int); list(uint).sort()->list(uint); list(double).sort()->list(double); list(bool).sort()->list(bool)
list(string).sort()->list(string); list(bytes).sort()->list(bytes); list(timestamp).sort()->list(timestamp)
list(duration).sort()->list(duration)
list(A).@sortByAssociatedKeys(list(int))->list(A); list(A).@sortByAssociatedKeys(list(uint))->list(A)
list(A).@sortByAssociatedKeys(list(double))->list(A); list(A).@sortByAssociatedKeys(list(bool))->list(A)
list(A).@sortByAssociatedKeys(list(string))->list(A); list(A).@sortByAssociatedKeys(list(bytes))->list(A)
list(A).@sortByAssociatedKeys(list(timestamp))->list(A); list(A).@sortByAssociatedKeys(list(duration))->list(A)
sets.contains(list(A),list(A))->bool; sets.equivalent(list(A),list(A))->bool; sets.intersects(list(A),list(A))->bool
optional.none()->optional(A); optional.of(A)->optional(A); optional.ofNonZeroValue(A)->optional(A)
optional.unwrap(list(optional(A)))->list(A); list(optional(A)).unwrapOpt()->list(A)
optional(A).hasValue()->bool; optional(A).value()->A; optional(A).or(optional(A))->optional(A); optional(A).orValue(A)->A
url(string)->url; isURL(string)->bool; url.getScheme()->string; url.getHost()->string; url.getHostname()->string; url.getPort()->string
url.getEscapedPath()->string; url.getQuery()->map(string,list(string))
quantity(string)->quantity; isQuantity(string)->bool; sign(quantity)->int; quantity.asInteger()->int; quantity.isInteger()->bool
quantity.asApproximateFloat()->double; quantity.isGreaterThan(quantity)->bool; quantity.isLessThan(quantity)->bool
quantity.compareTo(quantity)->int; quantity.add(quantity)->quantity; quantity.add(int)->quantity; quantity.sub(quantity)->quantity
quantity.sub(int)->quantity
ip(string)->ip; isIP(string)->bool; ip.isCanonical(string)->bool; ip.family()->int; ip.isUnspecified()->bool; ip.isLoopback()->bool
ip.isLinkLocalMulticast()->bool; ip.isLinkLocalUnicast()->bool; ip.isGlobalUnicast()->bool
cidr(string)->cidr; isCIDR(string)->bool; cidr.containsIP(string)->bool; cidr.containsIP(ip)->bool; cidr.containsCIDR(string)->bool
cidr.containsCIDR(cidr)->bool; cidr.ip()->ip; cidr.masked()->cidr; cidr.prefixLength()->int
semver(string)->semver; semver(string,bool)->semver; isSemver(string)->bool; isSemver(string,bool)->bool; semver.major()->int
semver.minor()->int; semver.patch()->int; semver.isGreaterThan(semver)->bool; semver.isLessThan(semver)->bool; semver.compareTo(semver)->int
format.named(string)->optional(format); format.validate(string)->optional(list(string))
format.dns1123Label()->format; format.dns1123Subdomain()->format; format.dns1035Label()->format; format.qualifiedName()->format
format.dns1123LabelPrefix()->format; format.dns1123SubdomainPrefix()->format; format.dns1035LabelPrefix()->format
format.labelValue()->format; format.uri()->format; format.uuid()->format; format.byte()->format; format.date()->format; format.datetime()->format
authorizer.path(string)->pathcheck; pathcheck.check(string)->decision; authorizer.group(string)->groupcheck
authorizer.serviceAccount(string,string)->authorizer; groupcheck.resource(string)->resourcecheck
resourcecheck.subresource(string)->resourcecheck; resourcecheck.namespace(string)->resourcecheck; resourcecheck.name(string)->resourcecheck
resourcecheck.fieldSelector(string)->resourcecheck; resourcecheck.labelSelector(string)->resourcecheck
resourcecheck.check(string)->decision; decision.allowed()->bool; decision.reason()->string; decision.error()->string; decision.errored()->bool
";

/// Functions whose names have a dot: what stands before it is no value.
const NAMESPACES: [&str; 7] = ["optional", "sets", "lists", "strings", "format", "ip", "jsonpatch"];
/// A function that only expressions know that change objects.
pub(crate) const ESCAPE_KEY: &str = "jsonpatch.escapeKey";
const GLOBAL: [&str; 25] = [
    ESCAPE_KEY,
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "optional.unwrap",
    "lists.range",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "strings.quote",
    "format.named",
    "ip.isCanonical",
    "format.dns1123Label",
    "format.dns1123Subdomain",
    "format.dns1035Label",
    "format.qualifiedName",
    "format.dns1123LabelPrefix",
    "format.dns1123SubdomainPrefix",
    "format.dns1035LabelPrefix",
    "format.labelValue",
    "format.uri",
    "format.uuid",
    "format.byte",
    "format.date",
    "format.datetime",
];

static FUNCTIONS: LazyLock<BTreeMap<String, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: BTreeMap<String, Vec<Overload>> = BTreeMap::new();
    let entries = OVERLOADS
        .split([';', '\n'])
        .map(str::trim)
        .filter(|entry| !entry.is_empty());
    for (name, overload) in entries.filter_map(read) {
        functions.entry(name).or_default().push(overload);
    }
    functions
});

/// The overloads of a function; none when there is no such function.
pub(crate) fn function(name: &str) -> Option<&'static [Overload]> {
    FUNCTIONS.get(name).map(Vec::as_slice)
}

/// Whether a name with a dot is a function's.
pub(crate) fn is_global(name: &str) -> bool {
    GLOBAL.contains(&name)
}

fn read(entry: &str) -> Option<(String, Overload)> {
    let (call, result) = entry.split_once("->")?;
    let open = match call.starts_with("_[") || call.starts_with("_?") {
        true => call.find('(')?,
        false => opening(call)?,
    };
    let (head, params) = (call.get(..open)?, call.get(open + 1..call.len() - 1)?);
    let mut types: Vec<Type> = split(params).iter().filter_map(|text| parse(text)).collect();
    let dot = head.rfind('.').filter(|_| !is_global(head));
    let (name, member) = match dot {
        Some(dot) => {
            types.insert(0, parse(head.get(..dot)?)?);
            (head.get(dot + 1..)?, true)
        }
        None => (head, false),
    };
    debug_assert!(member || dot.is_some() || !head.contains('.') || NAMESPACES.iter().any(|own| head.starts_with(own)));
    let overload = Overload {
        member,
        params: types,
        result: parse(result)?,
    };
    Some((name.to_owned(), overload))
}

/// Where the parameters of a call begin: at the bracket whose partner is the last character.
fn opening(call: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in call.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits at commas outside of brackets.
fn split(list: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0_i32);
    for c in list.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        match (c, parts.last_mut()) {
            (',', _) if depth == 0 => parts.push(String::new()),
            (c, Some(part)) => part.push(c),
            _ => {}
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn parse(text: &str) -> Option<Type> {
    if let Some((name, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let mut inner = split(inner).into_iter().filter_map(|text| parse(&text)).map(Box::new);
        let first = inner.next()?;
        return Some(match name {
            "list" => Type::List(first),
            "map" => Type::Map(first, inner.next()?),
            "optional" => Type::Optional(first),
            _ => Type::Of(first),
        });
    }
    Some(match text {
        "A" => Type::Param('A'),
        "B" => Type::Param('B'),
        "dyn" => Type::Dyn,
        "quantity" => Type::Abstract("kubernetes.Quantity"),
        "url" => Type::Abstract("kubernetes.URL"),
        "ip" => Type::Abstract("net.IP"),
        "cidr" => Type::Abstract("net.CIDR"),
        "semver" => Type::Abstract("kubernetes.Semver"),
        "format" => Type::Abstract("kubernetes.NamedFormat"),
        "authorizer" => Type::Abstract("kubernetes.authorization.Authorizer"),
        "pathcheck" => Type::Abstract("kubernetes.authorization.PathCheck"),
        "groupcheck" => Type::Abstract("kubernetes.authorization.GroupCheck"),
        "resourcecheck" => Type::Abstract("kubernetes.authorization.ResourceCheck"),
        "decision" => Type::Abstract("kubernetes.authorization.Decision"),
        other => return simple(other),
    })
}

/// A type by its name in expressions.
pub(crate) fn simple(name: &str) -> Option<Type> {
    const NAMES: [&str; 8] = [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "timestamp",
        "duration",
    ];
    NAMES.iter().find(|own| **own == name).map(|own| Type::Simple(own))
}

/// The comparisons, which many types have alike.
pub(crate) fn is_comparison(name: &str) -> bool {
    matches!(name, "_<_" | "_<=_" | "_>_" | "_>=_")
}

/// Pairs of types that can be compared by order.
pub(crate) fn comparable(left: &Type, right: &Type) -> bool {
    let ordered = |ty: &Type| match ty {
        Type::Simple(name) => Some(*name),
        _ => None,
    };
    let number = |name: &str| matches!(name, "int" | "uint" | "double");
    match (ordered(left), ordered(right)) {
        (Some(a), Some(b)) => a == b || number(a) && number(b),
        (Some(_), None) => right.is_dyn(),
        (None, Some(_)) => left.is_dyn(),
        (None, None) => left.is_dyn() && right.is_dyn(),
    }
}
