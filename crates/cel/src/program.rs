//! Compiling expressions and running them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Node};
use crate::check::check;
use crate::cost::estimate;
use crate::declared::{Declared, Field, Shape};
use crate::errors::shown;
use crate::eval::{Authorizer, Check, EvalError, Evaluation, Lazy, Scope};
use crate::parser::parse;
use crate::plan::unusable;
use crate::qualified;
use crate::types::Type;
use crate::value::Value;

/// The variables that expressions know.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, Arc<Declared>>,
    patches: bool,
}

/// What an expression's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiled {
    /// `true` or `false`.
    Bool,
    /// A text.
    Text,
    /// `null`.
    Null,
    /// Something else, or it is not known before.
    Other,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Program {
    source: String,
    expr: Arc<Expr>,
    /// What its value is.
    pub result: Compiled,
    /// The name of its type, for messages.
    pub output: String,
    /// The most it can cost, by what is declared of its variables.
    pub estimated_cost: u64,
    /// Why it cannot be used, though nothing is wrong with its types: a constant in it that always fails.
    pub unusable: Option<String>,
    /// What is known of its value, as expressions know it that use this one's value.
    pub declared: Arc<Declared>,
}

/// A value, or why there is none, and what it cost to find.
#[derive(Debug)]
pub struct Evaluated<'a> {
    /// The value.
    pub value: Result<Value<'a>, EvalError>,
    /// What the evaluation cost.
    pub cost: u64,
}

impl Environment {
    /// An environment with these variables.
    pub fn new(variables: impl IntoIterator<Item = (&'static str, Arc<Declared>)>) -> Self {
        let variables = variables
            .into_iter()
            .map(|(name, declared)| (name.to_owned(), declared));
        Self {
            variables: variables.collect(),
            patches: false,
        }
    }

    /// The same with one more variable. A name may have dots: `a.b` is then what it says, and not a field of `a`.
    #[must_use]
    pub fn with(mut self, name: &str, declared: Arc<Declared>) -> Self {
        self.variables.insert(name.to_owned(), declared);
        self
    }

    /// The same for expressions that may make objects that change others.
    #[must_use]
    pub fn with_patches(mut self) -> Self {
        self.patches = true;
        self
    }

    /// Adds a field to a variable that is an object; `variable.field` is found by itself, so that it may be a [`Lazy`] one.
    pub fn add_field(&mut self, variable: &str, field: &str, declared: Arc<Declared>) {
        if let Some(object) = self.variables.get_mut(variable)
            && let Shape::Object { fields, .. } = &mut Arc::make_mut(object).shape
        {
            let property = field.to_owned();
            let declared = Arc::clone(&declared);
            fields.insert(field.to_owned(), Field { property, declared });
        }
        self.variables.insert(format!("{variable}.{field}"), declared);
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with it, with the places.
    pub fn compile(&self, source: &str) -> Result<Program, String> {
        let mut expr = parse(source).map_err(|findings| shown(source, findings))?;
        qualified::resolve(&mut expr, &self.variables);
        let (found, types) = check(&expr, &self.variables, self.patches).map_err(|findings| shown(source, findings))?;
        Ok(Program {
            source: source.to_owned(),
            output: found.runtime_name(),
            result: match found {
                Type::Simple("bool") => Compiled::Bool,
                Type::Simple("string") => Compiled::Text,
                Type::Null => Compiled::Null,
                _ => Compiled::Other,
            },
            unusable: unusable(&expr),
            declared: Arc::new(found.declared()),
            estimated_cost: estimate(&expr, &self.variables, &types),
            expr: Arc::new(expr),
        })
    }
}

fn is_variable(node: &Node, variable: &str) -> bool {
    matches!(node, Node::Ident(name) if name == variable)
}

impl Program {
    /// The expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How deep the expression is.
    pub fn depth(&self) -> usize {
        self.expr.depth
    }

    /// Whether a variable stands in the expression.
    pub fn uses(&self, variable: &str) -> bool {
        self.has(|node| is_variable(node, variable))
    }

    /// Whether a field of a variable is asked for by its name: `variable.field`, `variable.?field` or `has(variable.field)`.
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        self.has(|node| match node {
            Node::Select {
                operand, field: own, ..
            }
            | Node::Has { operand, field: own } => own == field && is_variable(&operand.node, variable),
            _ => false,
        })
    }

    fn has(&self, wanted: impl Fn(&Node) -> bool) -> bool {
        let mut open: Vec<&Expr> = vec![&self.expr];
        while let Some(expr) = open.pop() {
            if wanted(&expr.node) {
                return true;
            }
            match &expr.node {
                Node::Literal(_) | Node::Ident(_) => {}
                Node::Struct { fields, .. } => open.extend(fields.iter().map(|field| &field.value)),
                Node::Select { operand, .. } | Node::Has { operand, .. } => open.push(operand),
                Node::Call { target, args, .. } => open.extend(target.iter().map(|target| &**target).chain(args)),
                Node::Logic { args, .. } => open.extend(args),
                Node::List(elements) => open.extend(elements.iter().map(|(_, element)| element)),
                Node::Map(entries) => open.extend(entries.iter().flat_map(|(_, key, value)| [key, value])),
                Node::Fold(fold) => open.extend([&fold.range, &fold.body].into_iter().chain(&fold.filter)),
            }
        }
        false
    }

    /// Evaluates the expression with these variables. It may cost as much as `limit`.
    pub fn run<'a>(
        &self,
        variables: Vec<(&str, Value<'a>)>,
        authorizer: Option<&dyn Authorizer>,
        limit: u64,
    ) -> Evaluated<'a> {
        self.run_with(variables, None, authorizer, limit)
    }

    /// As [`Program::run`], with variables besides that are found when they are asked for.
    pub fn run_with<'a>(
        &self,
        variables: Vec<(&str, Value<'a>)>,
        lazy: Option<&dyn Lazy<'a>>,
        authorizer: Option<&dyn Authorizer>,
        limit: u64,
    ) -> Evaluated<'a> {
        let mut evaluation = Evaluation {
            spent: 0,
            limit,
            authorizer,
        };
        let scope = Scope {
            names: variables,
            lazy,
            parent: None,
        };
        let value = evaluation.eval(&self.expr, &scope);
        Evaluated {
            value,
            cost: evaluation.spent,
        }
    }
}

impl Declared {
    /// The variable by which expressions ask the authorizer.
    pub fn authorizer() -> Self {
        Self::new(Shape::Authorizer)
    }

    /// A question to the authorizer about a resource.
    pub fn resource_check() -> Self {
        Self::new(Shape::ResourceCheck)
    }
}

impl Value<'_> {
    /// The value of the variable by which expressions ask the authorizer.
    pub fn authorizer() -> Self {
        Self::check(Check::default())
    }

    /// A question to the authorizer.
    pub fn check(check: Check) -> Self {
        Self::Check(Arc::new(check))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::declared::Elements;

    fn declared() -> Arc<Declared> {
        let list = |items: Shape| Declared::list_of(Declared::new(items));
        Arc::new(Declared::object(
            "object",
            vec![
                ("a", Declared::new(Shape::Int)),
                ("s", Declared::new(Shape::Text)),
                ("l", list(Shape::Text)),
                ("n", list(Shape::Int)),
                ("m", Declared::new(Shape::Map(Arc::new(Declared::new(Shape::Int))))),
                ("d", Declared::new(Shape::Timestamp)),
                ("i", Declared::new(Shape::Dyn)),
                ("o", Declared::object("o", vec![("x", Declared::new(Shape::Int))])),
            ],
        ))
    }

    fn run(source: &str) -> Result<String, String> {
        let declared = declared();
        let environment = Environment::new([("self", Arc::clone(&declared))]);
        let program = environment.compile(source)?;
        let json = json!({
            "a": 3, "s": "héllo", "l": ["a", "b", "c"], "n": [3, 1, 2], "m": {"x": 1, "y": 2},
            "d": "2026-01-02T03:04:05Z", "i": "text", "o": {},
        });
        let value = Value::of_json(&json, Some(&declared));
        let evaluated = program.run(vec![("self", value)], None, crate::CALL_LIMIT);
        match evaluated.value {
            Ok(Value::Bool(value)) => Ok(value.to_string()),
            Ok(other) => Ok(format!("{other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What is wrong with a source, a line each, without the source.
    fn wrong(source: &str) -> Vec<String> {
        let told = run(source).unwrap_err();
        let lines = told.lines().filter(|line| !line.starts_with(" | "));
        lines
            .map(|line| line.replace("ERROR: <input>:1:", "").replace("Syntax error: ", ""))
            .collect()
    }

    #[test]
    fn what_follows_something_wrong_is_told_too() {
        const EXPRESSION: &str = "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
        let mismatched = |at: &str, found: &str| format!("{at}: mismatched input '{found}' {EXPRESSION}");
        for (source, expected) in [
            ("f(1", vec!["4: missing ')' at '<EOF>'".to_owned()]),
            ("[f(1", vec!["5: mismatched input '<EOF>' expecting ')'".to_owned()]),
            ("self.l[f(1]", vec!["11: missing ')' at ']'".to_owned()]),
            ("(self.a b", vec!["9: mismatched input 'b' expecting ')'".to_owned()]),
            ("{'a' 1}", vec!["6: missing ':' at '1'".to_owned()]),
            ("[1 2]", vec!["4: extraneous input '2' expecting {']', ','}".to_owned()]),
            ("self.a + +", vec![mismatched("10", "+"), mismatched("11", "<EOF>")]),
            ("in", vec![mismatched("1", "in"), mismatched("3", "<EOF>")]),
            (
                "? 1 : 2",
                vec![
                    format!("1: extraneous input '?' {EXPRESSION}"),
                    "5: mismatched input ':' expecting <EOF>".to_owned(),
                ],
            ),
        ] {
            assert_eq!(wrong(source), expected, "{source}");
        }
        assert_eq!(run("[,] == [] && {,} == {}"), Ok("true".to_owned()));
    }

    #[test]
    fn no_more_is_told_than_can_be_read() {
        let told = wrong(&"+ ".repeat(10_000));
        assert_eq!(told.len(), 32);
        assert_eq!(told[31], "61: error recovery attempt limit exceeded: 30");
        let told = wrong(&"@".repeat(10_000));
        assert_eq!((told.len(), told[100].as_str()), (101, "1 more errors were truncated"));
    }

    #[test]
    fn expressions_and_their_values() {
        for source in [
            "self.a == 3 && self.a < 4 && self.a + 2 * 3 - 1 == 8 && -self.a == -3 && 7 % 4 == 3 && 7 / 2 == 3",
            "self.a == 3 || self.o.x == 1",
            "!(has(self.o.x) || self.a == 4)",
            "self.l.all(x, size(x) == 1) && self.l.exists(x, x == 'b') && self.l.exists_one(x, x == 'c')",
            "self.l.map(x, x + x) == ['aa', 'bb', 'cc'] && self.l.filter(x, x > 'a').size() == 2",
            "self.n.map(x, x > 1, x * 10) == [30, 20] && self.n.all(i, v, v > i - 3)",
            "self.m.all(k, self.m[k] > 0) && 'x' in self.m && !('z' in self.m) && self.m == {'y': 2, 'x': 1}",
            "self.m.transformMap(k, v, v + 1) == {'x': 2, 'y': 3} && self.m.transformList(k, v, v) == [1, 2]",
            "self.s.size() == 5 && self.s.startsWith('h') && self.s.endsWith('llo') && self.s.contains('ll')",
            "self.s.matches('^h.*o$') && self.s.charAt(1) == 'é' && self.s.indexOf('l') == 2 && self.s.lastIndexOf('l') == 3",
            "self.s.substring(1, 3) == 'él' && self.s.upperAscii() == 'HéLLO' && ' x '.trim() == 'x'",
            "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && ['a', 'b'].join('-') == 'a-b'",
            "'abc'.split('') == ['a', 'b', 'c'] && 'aaa'.replace('a', 'b', 2) == 'bba'",
            "'%s is %d, %.2f, %x, %s'.format(['x', 7, 1.5, 255, [1, 'a']]) == 'x is 7, 1.50, ff, [1, \"a\"]'",
            "self.n.sum() == 6 && self.n.min() == 1 && self.n.max() == 3 && !self.n.isSorted() && self.n.indexOf(2) == 2",
            "sets.contains(self.n, [1]) && sets.equivalent([1, 1, 2], [2, 1]) && sets.intersects([1], [1, 2])",
            "self.d < timestamp('2026-02-01T00:00:00Z') && self.d.getFullYear() == 2026 && self.d.getHours('+02:00') == 5",
            "self.d + duration('1h') > self.d && duration('90m').getHours() == 1 && duration('1.5s') == duration('1500ms')",
            "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1500m').add(quantity('500m')).asInteger() == 2",
            "isQuantity('1Mi') && !isQuantity('x') && quantity('1').compareTo(quantity('1000m')) == 0",
            "ip('192.168.0.1').family() == 4 && isIP('::1') && !isIP('x') && ip('::1').isLoopback() && ip.isCanonical('::1')",
            "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8')",
            "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0') && !isSemver('1.0') && semver('v1.0', true).minor() == 0",
            "url('https://me.example.com:80/a?b=c&b=d').getHost() == 'me.example.com:80' && url('/x/y').getEscapedPath() == '/x/y' && isURL('https://a')",
            "!format.dns1123Label().validate('ok').hasValue() && format.named('dns1123Label').value().validate('-').hasValue()",
            "self.i == 'text' && type(self.i) == string && type(self.a) == int && (self.i == 1) == false",
            "self.?o.?x.orValue(7) == 7 && optional.of(1).value() == 1 && !optional.none().hasValue() && self.l[?9] == optional.none()",
            "[1, ?self.?o.?x] == [1] && {'a': 1, ?'b': optional.none()} == {'a': 1}",
            "'\\u00e9' == 'é' && r'\\d' == '\\\\d' && b'a' == bytes('a') && 0x10 == 16 && 1u == uint(1) && 1e3 == 1000.0",
            "(self.a > 1 ? 'yes' : 'no') == 'yes' && string(self.a) == '3' && int('7') == 7 && double(1) == 1.0",
            "self.l + ['d'] == ['a', 'b', 'c', 'd'] && self.l[0] == 'a' && 'a' in self.l",
            "self.s.find('l+') == 'll' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
            "self.l.existsOne(i, x, x == 'a') && self.l.exists(i, v, i == 2 && v == 'c')",
        ] {
            assert_eq!(run(source), Ok("true".to_owned()), "{source}");
        }
    }

    #[test]
    fn what_is_no_map_has_no_fields() {
        for source in [
            "!has(dyn(null).x) && !has(dyn(1).x) && !has(self.i.x)",
            "!has(optional.none().x) && !has(optional.of(dyn(1)).x) && has(optional.of(self).a)",
            "dyn(null)[?'a'] == optional.none() && self.i[?0].orValue('q') == 'q' && self.i.?x == optional.none()",
            "dyn(self.l)[0.0] == 'a' && self.l[dyn(1u)] == 'b' && self.l[?9] == optional.none() && self.m[?'z'] == optional.none()",
        ] {
            assert_eq!(run(source), Ok("true".to_owned()), "{source}");
        }
        for (source, expected) in [
            ("dyn(null).a == 1", "no such key: a"),
            ("has(self.i.x.y)", "no such key: x"),
            ("dyn(null)['a'] == 1", "no such key: a"),
            ("self.i[0] == 1", "no such key: 0"),
            ("dyn(self.m)[1.5] == 1", "no such overload"),
            ("dyn({'a': 1})[1.5] == 1", "no such key: 1.5"),
            ("has(dyn([1]).b)", "unsupported index type 'string' in list"),
            ("dyn(self.l).b == 1", "unsupported index type 'string' in list"),
            (
                "dyn(self.l)[?'b'] == optional.none()",
                "unsupported index type 'string' in list",
            ),
            (
                "dyn(self).l.?b == optional.none()",
                "unsupported index type 'string' in list",
            ),
            ("self.l[dyn(true)] == 'a'", "unsupported index type 'bool' in list"),
            ("self.l[dyn(0.5)] == 'a'", "unsupported index value 0.5 in list"),
            ("self.l[-1] == 'a'", "index out of bounds: -1"),
            (
                "self.m[dyn(self.l)] == 1",
                "invalid qualifier type: *common.unstructuredList",
            ),
        ] {
            assert_eq!(run(source), Err(expected.to_owned()), "{source}");
        }
    }

    #[test]
    fn objects_that_change_others() {
        let environment = Environment::new([("self", declared())]).with_patches();
        let run = |source: &str| {
            let program = environment.compile(source).map_err(|why| why.to_string())?;
            let evaluated = program.run(Vec::new(), None, crate::CALL_LIMIT);
            Ok::<_, String>((
                program.output,
                evaluated.value.map_err(|why| why.to_string())?,
                evaluated.cost,
            ))
        };
        let source =
            "Object{spec: Object.spec{replicas: 3, ?paused: optional.none(), list: [Object.spec.list{name: 'a'}]}}";
        let (output, value, cost) = run(source).expect("it is an object");
        let expected = json!({"spec": {"replicas": 3, "list": [{"name": "a"}]}});
        assert_eq!((output.as_str(), value.configuration()), ("Object", Ok(expected)));
        assert_eq!(cost, 40 * 3 + 10 + 1);
        let (_, value, _) = run("Object{spec: Object.metadata{}}").expect("it is one");
        let why = value.configuration().expect_err("it is misnamed");
        assert_eq!(
            why,
            "type mismatch: unexpected type name \"Object.metadata\", expected \"Object.spec\", which matches field name path from root Object type"
        );
        let source =
            "true ? [] : [JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a/b~c'), value: Object.x{y: 1.0}}]";
        assert_eq!(run(source).map(|found| found.0), Ok("list(JSONPatch)".to_owned()));
        let (_, value, _) = run(&source.replace("true", "false")).expect("it is a patch");
        let expected = json!([{"op": "add", "path": "/a~1b~0c", "value": {"y": 1}}]);
        assert_eq!(value.json_patch(), Ok(expected));
        for (source, expected) in [
            (
                "JSONPatch{op: 1}",
                "expected type of field 'op' is 'string' but provided type is 'int'",
            ),
            ("Other{}", "undeclared reference to 'Other' (in container '')"),
            ("string{}", "'string' is not a message type"),
            ("self{}", "'object' is not a type"),
        ] {
            let why = run(source).expect_err(source);
            assert!(why.contains(expected), "{source}: {why}");
        }
        let unknown = Environment::default()
            .compile("Object{}")
            .expect_err("it is no such expression");
        assert!(unknown.contains("undeclared reference to 'Object'"), "{unknown}");
    }

    #[test]
    fn conversions_and_texts() {
        for (source, expected) in [
            ("string(1e100) + string(1e21)", "1e+1001e+21"),
            (
                "string(123456789.0) + ' ' + string(1e-7) + ' ' + string(100000.5)",
                "1.23456789e+08 1e-07 100000.5",
            ),
            (
                "string(timestamp('2020-01-01T00:00:00+02:00'))",
                "2020-01-01T00:00:00+02:00",
            ),
            (
                "string(timestamp('9999-12-31T23:59:59Z').getFullYear('-02:00'))",
                "9999",
            ),
            (
                "string('x'.indexOf('x', 2)) + string('x'.lastIndexOf('x', 9)) + string('aba'.lastIndexOf('a', 1))",
                "-1-10",
            ),
            (
                "string('x'.indexOf('', 7)) + string({'a': 1, 'a': 2}['a']) + {1.5: 'b'}[1.5]",
                "72b",
            ),
            (
                "'%e|%.12e|%.2e'.format([1234.5, double('NaN'), 0.00012345])",
                "1.234500×10⁰³|         NaN|1.234500×10⁻⁰⁴",
            ),
            (
                "'%f|%.0f|%f'.format([1234.5678912, -2.5, double('-Infinity')])",
                "1,234.567891|-2|-∞",
            ),
            (
                "'%s'.format([[1, 'a', 1.5, null, b'x', duration('1s')]])",
                "[1, \"a\", 1.500000, null, b\"x\", duration(\"1s\")]",
            ),
            (
                "'%s %s'.format([{'b': dyn(1), 'a': dyn('x')}, {1: 'a'}])",
                "{\"a\":\"x\", \"b\":1} {1:\"a\"}",
            ),
        ] {
            let shown = run(source).map(|shown| shown.replace("\\\"", "\""));
            assert_eq!(shown, Ok(format!("Text(\"{expected}\")")), "{source}");
        }
        for (source, expected) in [
            ("int(self.s) == 1", "type conversion error from 'string' to 'int'"),
            (
                "double('1e40' + '0') > 1.0",
                "type conversion error from 'string' to 'double'",
            ),
            (
                "timestamp(self.s + 'x') == self.d",
                "type conversion error from 'string' to 'google.protobuf.Timestamp'",
            ),
            ("string(dyn(self.m)) == ''", "no such overload: string(map)"),
            ("self.s.split(dyn(1)) == []", "no such overload: split(string, int)"),
            ("[dyn(1)].join(',') == ''", "no such overload: join(list, string)"),
            ("dyn(null) < 1", "no such overload: _<_"),
            ("semver('1.2').major() == 1", "No Major.Minor.Patch elements found"),
            (
                "semver('1.02.3').major() == 1",
                "Minor number must not contain leading zeroes \"02\"",
            ),
            (
                "semver('1.2.3-a_b').major() == 1",
                "Invalid character(s) found in prerelease \"a_b\"",
            ),
            (
                "semver('v1-a', true).major() == 1",
                "short version cannot contain PreRelease/Build meta data",
            ),
            ("dyn('a') < 1", "no such overload"),
            (
                "'%d'.format([self.i]) == ''",
                "error during formatting: decimal clause can only be used on integers, was given string",
            ),
            (
                "ip('1.2.' + '3').family() == 4",
                "IP Address \"1.2.3\" parse error during conversion from string: ParseAddr(\"1.2.3\"): IPv4 address too short",
            ),
            ("cidr('10.0.0.0/8').containsIP('zz')", "no such overload"),
            (
                "timestamp('9999-12-31T23:59:59Z') + duration('1s') == self.d",
                "timestamp overflow",
            ),
        ] {
            assert_eq!(run(source), Err(expected.to_owned()), "{source}");
        }
        for (source, expected) in [
            ("timestamp('2020-01-01') == self.d", "1:11: invalid timestamp argument"),
            (
                "{?'a': 1} == {}",
                "1:8: expected type 'optional_type(int)' but found 'int'",
            ),
            ("'%d %d'.format([1]) == ''", "1:15: index 1 out of range"),
            (
                "'%d'.format([1, 2]) == ''",
                "1:12: too many arguments supplied to string.format (expected 1, got 2)",
            ),
            (
                "'%z'.format([1]) == ''",
                "1:12: could not parse formatting clause: unrecognized formatting clause \"z\"",
            ),
            (
                "'%f'.format([1]) == ''",
                "1:14: error during formatting: fixed-point clause can only be used on doubles, was given int",
            ),
        ] {
            let found = run(source).unwrap_err();
            let first = found.lines().next().unwrap();
            assert_eq!(first, format!("ERROR: <input>:{expected}"), "{source}");
        }
    }

    #[test]
    fn constants_that_always_fail_make_expressions_unusable() {
        let environment = Environment::new([("self", declared())]);
        for (source, expected) in [
            (
                "true || int('x') == 1",
                Some("type conversion error from 'string' to 'int'"),
            ),
            ("self.l.all(x, int(1e30) == 1)", Some("integer overflow")),
            ("int(dyn(null)) == 1", Some("no such overload: int(null_type)")),
            (
                "string(b'\\xff') == ''",
                Some("invalid UTF-8 in bytes, cannot convert to string"),
            ),
            ("self.m[dyn(null)] == 1", Some("invalid qualifier type: types.Null")),
            (
                "self.m[?dyn([1])] == optional.none()",
                Some("invalid qualifier type: *types.baseList"),
            ),
            (
                "self.s.find('(') == ''",
                Some("error parsing regexp: missing closing ): `(`"),
            ),
            ("{'a': [uint(-1)]}.size() == 1", Some("unsigned integer overflow")),
            ("int(self.s) == 1 && 1 / 0 == 1 && [1][dyn('a')] == 1", None),
        ] {
            let program = environment.compile(source).unwrap();
            assert_eq!(program.unusable.as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn links_are_kept_as_they_are_written() {
        for source in [
            "url('https://u:p@A.b:8080/x/../y?q=1#f').getEscapedPath() == '/x/../y'",
            "url('HTTPS://A.b:443').getHost() == 'A.b:443' && url('https://a:443').getPort() == '443' && url('https://a').getEscapedPath() == ''",
            "url('http://[::1]:80/').getHostname() == '::1' && url('http://a/b c').getEscapedPath() == '/b%20c' && url('//a/b').getHost() == 'a'",
            "url('mailto:a@b').getScheme() == 'mailto' && url('/a?c=d;e=f&g=h+i').getQuery() == {'g': ['h i']}",
            "isURL('*') && isURL('http://a<b/') && !isURL('a/b') && !isURL('http://a b') && !isURL('') && !isURL(':a')",
            "!format.uri().validate('/a').hasValue() && format.uuid().validate('1').hasValue() && format.byte().validate('').hasValue()",
        ] {
            assert_eq!(run(source), Ok("true".to_owned()), "{source}");
        }
        for (source, expected) in [
            ("url('')", "parse \"\": empty url"),
            ("url('x')", "parse \"x\": invalid URI for request"),
            (
                "url('http://a b')",
                "parse \"http://a b\": invalid character \" \" in host name",
            ),
            (
                "url('http://a:x/')",
                "parse \"http://a:x/\": invalid port \":x\" after host",
            ),
            (
                "url('http://a/%zz')",
                "parse \"http://a/%zz\": invalid URL escape \"%zz\"",
            ),
        ] {
            let expected = format!("URL parse error during conversion from string: {expected}");
            assert_eq!(run(source), Err(expected), "{source}");
        }
    }

    #[test]
    fn lists_are_cut_and_put_in_order() {
        for source in [
            "self.l.slice(1, 3) == ['b', 'c'] && self.l.slice(0, 0) == [] && self.l.reverse() == ['c', 'b', 'a']",
            "[[1], [], [2, 3]].flatten() == [1, 2, 3] && [[[1]], [[2]]].flatten(2) == [1, 2] && [[[1]]].flatten(1) == [[1]]",
            "dyn([1, 2]).flatten() == [1, 2] && [[1]].flatten(0) == [[1]]",
            "lists.range(3) == [0, 1, 2] && lists.range(-1) == [] && [1, 2, 1].distinct() == [1, 2]",
            "self.n.sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [].sort() == []",
            "self.n.sortBy(x, -x) == [3, 2, 1] && self.l.sortBy(x, x == 'b') == ['a', 'c', 'b']",
            "self.l.first().value() == 'a' && self.l.last() == optional.of('c') && ![].first().hasValue()",
            "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(2)].unwrapOpt() == [2]",
            "lists.range(3).sortBy(x, [2, 0, 1][x]).map(x, x * 2) == [2, 4, 0] && sign(quantity('-1')) == -1",
        ] {
            assert_eq!(run(source), Ok("true".to_owned()), "{source}");
        }
        for (source, expected) in [
            (
                "[1].slice(-1, 0) == []",
                "cannot slice(-1, 0), negative indexes not supported",
            ),
            (
                "[1].slice(1, 0) == []",
                "cannot slice(1, 0), start index must be less than or equal to end index",
            ),
            ("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1"),
            ("[[1]].flatten(-1) == []", "level must be non-negative"),
            (
                "[dyn(1), dyn('a')].sort() == []",
                "list elements must have the same type",
            ),
            ("dyn([[1], [2]]).sort() == []", "list elements must be comparable"),
            ("self.n.sortBy(x, dyn([x])) == []", "list elements must be comparable"),
            ("dyn(1).sort() == []", "no such overload: sort"),
            ("dyn(1).reverse() == []", "no such overload: reverse(int)"),
            (
                "[1].sortBy(x, [x]) == []",
                "ERROR: <input>:1:11: found no matching overload for '@sortByAssociatedKeys' applied to 'list(int).(list(list(int)))'\n | [1].sortBy(x, [x]) == []\n | ..........^",
            ),
            (
                "{'a': 1}.sortBy(x, x) == []",
                "ERROR: <input>:1:1: sortBy can only be applied to a list, identifier, comprehension, call or select expression\n | {'a': 1}.sortBy(x, x) == []\n | ^",
            ),
            (
                "[1].sortBy(1, 2) == []",
                "ERROR: <input>:1:12: argument is not an identifier\n | [1].sortBy(1, 2) == []\n | ...........^",
            ),
        ] {
            assert_eq!(run(source), Err(expected.to_owned()), "{source}");
        }
    }

    #[test]
    fn what_fails_says_why() {
        for (source, expected) in [
            ("self.o.x == 1", "no such key: x"),
            ("self.l[5] == 'a'", "index out of bounds: 5"),
            ("self.m['z'] == 1", "no such key: z"),
            ("1 / (self.a - 3) == 1", "division by zero"),
            ("9223372036854775807 + self.a > 0", "integer overflow"),
            ("self.i + 1 == 2", "no such overload"),
            ("optional.none().value() == 1", "optional.none() dereference"),
            (
                "self.nope == 1",
                "ERROR: <input>:1:5: undefined field 'nope'\n | self.nope == 1\n | ....^",
            ),
            (
                "['a', 1].size() == 2",
                "ERROR: <input>:1:7: expected type 'string' but found 'int'\n | ['a', 1].size() == 2\n | ......^",
            ),
            (
                "self.a == 'x'",
                "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(int, string)'\n | self.a == 'x'\n | .......^",
            ),
        ] {
            assert_eq!(run(source), Err(expected.to_owned()), "{source}");
        }
    }

    #[test]
    fn members_with_any_names_are_fields_too() {
        let any = || Arc::new(Declared::new(Shape::Dyn));
        let claims = Arc::new(Declared::new(Shape::Named(any())));
        let environment = Environment::new([("claims", Arc::clone(&claims))]);
        let json = json!({"a.b": [{"c/d": 1, "x__dot__y": 2}], "e": {"f-g": "h"}, "n": 1.0});
        for (source, expected) in [
            (
                "claims.a__dot__b[0].c__slash__d == 1 && claims['a.b'][0]['c/d'] == 1",
                Ok("true"),
            ),
            ("claims['a__dot__b'].exists(own, own.c__slash__d == 1)", Ok("true")),
            (
                "has(claims.e.f__dash__g) && claims.?e.?f__dash__g.orValue('') == 'h'",
                Ok("true"),
            ),
            ("claims.a__dot__b[0].x__dot__y == 2", Err("no such key: x__dot__y")),
            ("claims.missing", Err("no such key: missing")),
            (
                "size(claims) == 3 && 'e' in claims && !('a__dot__c' in claims)",
                Ok("true"),
            ),
            ("claims.n + 1.0 == 2.0", Ok("true")),
        ] {
            let program = environment.compile(source).unwrap();
            let found = program.run(
                vec![("claims", Value::of_json(&json, Some(&claims)))],
                None,
                crate::CALL_LIMIT,
            );
            match (found.value, expected) {
                (Ok(value), Ok(expected)) => assert_eq!(crate::functions::shown(&value).unwrap(), expected, "{source}"),
                (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected, "{source}"),
                (found, _) => panic!("{source}: {found:?}"),
            }
        }
        for (source, selects) in [
            ("claims.e", true),
            ("claims.?e.orValue('')", true),
            ("[1].all(x, has(claims.e))", true),
            ("claims.e.f__dash__g == 'x' ? 1 : 2", true),
            ("claims['e']", false),
            ("claims.x.e", false),
        ] {
            assert_eq!(
                environment.compile(source).unwrap().selects("claims", "e"),
                selects,
                "{source}"
            );
        }
    }

    /// Finds `own.a` and fails at `own.b`; counts how often it is asked.
    struct Found(std::cell::Cell<u32>);

    impl<'a> Lazy<'a> for Found {
        fn value(&self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
            self.0.set(self.0.get() + 1);
            match name {
                "own.a" => Some(Ok(Value::Int(3))),
                "own.b" => Some(Err(EvalError::Failed("b failed".into()))),
                _ => None,
            }
        }
    }

    #[test]
    fn variables_with_dots_and_those_found_when_asked_for() {
        let mut environment = Environment::default()
            .with("own", Arc::new(Declared::object("own", Vec::new())))
            .with("x", Arc::new(Declared::new(Shape::Dyn)))
            .with("x.y", Arc::new(Declared::new(Shape::Int)));
        for name in ["a", "b"] {
            environment.add_field("own", name, Arc::new(Declared::new(Shape::Int)));
        }
        let json = json!({"y": 8, "z": 9});
        for (source, expected, asked) in [
            ("own.a == 3 && has(own.a)", Ok("true"), 2),
            ("own.a == 3 || own.b == 1", Ok("true"), 1),
            ("own.b == 1 || own.a == 3", Ok("true"), 2),
            ("own.b == 1", Err("b failed"), 1),
            // the longest name counts, and names that macros bind hide variables
            ("x.y == 7 && x.z == 9", Ok("true"), 0),
            ("[{'a': 5}].all(own, own.a == 5)", Ok("true"), 0),
            (
                "own.c == 1",
                Err("ERROR: <input>:1:4: undefined field 'c'\n | own.c == 1\n | ...^"),
                0,
            ),
            (
                "own.a == 'x'",
                Err(
                    "ERROR: <input>:1:7: found no matching overload for '_==_' applied to '(int, string)'\n | own.a == 'x'\n | ......^",
                ),
                0,
            ),
        ] {
            let found = Found(std::cell::Cell::new(0));
            let evaluated = environment.compile(source).and_then(|program| {
                let known = vec![("x", Value::of_json(&json, None)), ("x.y", Value::Int(7))];
                let evaluated = program.run_with(known, Some(&found), None, crate::CALL_LIMIT);
                match evaluated.value {
                    Ok(value) => Ok(matches!(value, Value::Bool(true)).to_string()),
                    Err(error) => Err(error.to_string()),
                }
            });
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!((evaluated, found.0.get()), (expected, asked), "{source}");
        }
    }

    #[test]
    fn nothing_runs_beyond_its_budget() {
        let numbers: Vec<u32> = (0..2000).collect();
        let json = json!({"n": numbers, "s": "x".repeat(100_000)});
        let declared = declared();
        let environment = Environment::new([("self", Arc::clone(&declared))]);
        for source in [
            "self.n.all(a, self.n.all(b, self.n.all(c, a + b + c >= 0)))",
            "self.s.replace('', self.s).size() > 0",
            "[self.s].map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).size() > 0",
            "[self.n].map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).size() > 0",
            "self.s.matches('(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y(a|b|c|d|x)*y')",
        ] {
            let program = environment.compile(source).unwrap();
            let value = Value::of_json(&json, Some(&declared));
            let evaluated = program.run(vec![("self", value)], None, crate::CALL_LIMIT);
            assert_eq!(evaluated.value.unwrap_err(), EvalError::CostLimit, "{source}");
        }
    }

    #[test]
    fn asking_for_fields_makes_comparisons_of_truth_values() {
        let environment = Environment::new([("self", declared())]);
        for source in [
            "has(self.s) == has(self.l)",
            "has(self.m) != has(self.s)",
            "has(self.a) == has(self.a)",
        ] {
            // two variables and a comparison
            let program = environment.compile(source).unwrap();
            assert_eq!(program.estimated_cost, 3, "{source}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let environment = Environment::default();
        for source in [
            format!("{}1{} == 1", "(".repeat(100_000), ")".repeat(100_000)),
            format!("{}1{} == 1", "(".repeat(249), ")".repeat(249)),
            format!("1{} == 1", " + 1".repeat(20_000)),
            format!("{}true", "!".repeat(90_000)),
            format!("{}[]{} == []", "[".repeat(20_000), "]".repeat(20_000)),
            format!("'a'{}", ".trim()".repeat(10_000)),
            format!("true{}", " && true".repeat(10_000)),
            format!("true{} false", " ? true : ".repeat(9_000)),
        ] {
            let compiled = environment.compile(&source);
            if let Ok(program) = compiled {
                let _ = program.run(Vec::new(), None, crate::CALL_LIMIT);
            }
        }
    }

    #[test]
    fn lists_that_are_sets_or_maps_are_compared_so() {
        let list = |items: Declared, elements: Elements| {
            Arc::new(Declared::new(Shape::List {
                items: Arc::new(items),
                elements,
            }))
        };
        let set = list(Declared::new(Shape::Int), Elements::Set);
        let field = |declared: &Arc<Declared>| Field {
            property: "s".into(),
            declared: Arc::clone(declared),
        };
        let object = Arc::new(Declared::new(Shape::Object {
            name: "object".into(),
            fields: [("s".to_owned(), field(&set))].into(),
        }));
        let environment = Environment::new([("self", Arc::clone(&object))]);
        let json = json!({"s": [1, 2, 3]});
        for (source, expected) in [
            ("self.s == [3, 2, 1]", true),
            ("self.s == [3, 2]", false),
            ("self.s + [3, 4] == [1, 2, 3, 4]", true),
        ] {
            let program = environment.compile(source).unwrap();
            let value = Value::of_json(&json, Some(&object));
            let found = program.run(vec![("self", value)], None, crate::CALL_LIMIT).value;
            assert!(
                matches!(found, Ok(Value::Bool(value)) if value == expected),
                "{source}: {found:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_source_panics(source in "[a-z0-9 .,()\\[\\]{}?:!&|<>=+*/%'\"\\\\-]{0,60}") {
            let _ = run(&source);
        }

        #[test]
        fn no_expression_panics(parts in prop::collection::vec(prop::sample::select(vec![
            "self", ".a", ".s", ".l", ".m", ".i", "[0]", "['x']", "(", ")", " + ", " == ", " && ", "1", "'a'", "-", "!",
            ".size()", ".all(x, ", ".map(x, ", "x", " in ", " ? ", " : ", "[", "]", "{", "}", ", ", "has(", "duration('1s')",
            "timestamp('2026-01-01T00:00:00Z')", ".substring(1)", ".replace('', 'x')", ".format([1])", "null", "1.5", "2u",
        ]), 0..14)) {
            let _ = run(&parts.concat());
        }
    }
}
