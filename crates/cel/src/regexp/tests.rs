use proptest::prelude::*;

use super::*;

#[test]
fn what_go_refuses() {
    for (pattern, expected) in [
        ("[", "missing closing ]: `[`"),
        ("a[b", "missing closing ]: `[b`"),
        ("[[:alpha:]", "missing closing ]: `[[:alpha:]`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        (r"\p{L", r"invalid character class range: `\p{L`"),
        ("(a", "missing closing ): `(a`"),
        ("a)(", "unexpected ): `a)(`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("(?i)+?", "missing argument to repetition operator: `+?`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("((a{10}){10}){11}", "invalid repeat count: `{11}`"),
        (r"a\", "trailing backslash at end of expression: ``"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\u0041", r"invalid escape sequence: `\u`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
        ("(?P<a", "invalid named capture: `(?P<a`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<!a)", "invalid named capture: `(?<!a)`"),
        ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
    ] {
        let why = compile(pattern).map_err(|error| error.to_string());
        assert_eq!(
            why.unwrap_err(),
            format!("error parsing regexp: {expected}"),
            "{pattern}"
        );
    }
    let deep = format!("{}a{}", "(".repeat(1001), ")".repeat(1001));
    let why = compile(&deep).unwrap_err().to_string();
    assert!(
        why.starts_with("error parsing regexp: expression nests too deeply"),
        "{why}"
    );
    let why = compile_within(r"\pL{500}", 1 << 10).unwrap_err().to_string();
    assert!(why.starts_with("error parsing regexp: expression too large"), "{why}");
}

#[test]
fn what_go_reads_in_its_own_way() {
    for (pattern, matching, other) in [
        // names of classes know ASCII only
        (r"^\d$", "5", "٣"),
        (r"^\w$", "e", "é"),
        (r"^[^\W]$", "e", "é"),
        (r"é\b", "éa", "é "),
        // brackets and operators of the crate's classes are plain characters
        ("^[[a]$", "[", "b"),
        ("^[a&&b]$", "&", "c"),
        ("^[]a]$", "]", "b"),
        // what repeats nothing is itself
        ("^a{,2}$", "a{,2}", "aa"),
        ("^{a}$", "{a}", "a"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^\101$", "A", "1"),
        (r"^\<$", "<", ""),
        ("^(?i)k$", "\u{212A}", "l"),
        ("^a(?i)*$", "aa", "A"),
        ("^(?P<n>a)(?P<n>b)$", "ab", "a"),
        (r"^[^\x{D800}]$", "a", ""),
        (r"^\p{letter}$", "é", "1"),
    ] {
        let regex = compile(pattern).unwrap();
        assert!(regex.is_match(matching) && !regex.is_match(other), "{pattern}");
    }
    let found = |pattern: &str| compile(pattern).unwrap().find("aaa").unwrap().len();
    assert_eq!((found("(?U)a+"), found("(?U)a+?"), found("a+?")), (1, 3, 1));
}

proptest! {
    /// Whatever is read is the crate's, too: a failure there would be told as one of nesting.
    #[test]
    fn what_is_read_compiles(pattern in r"(\(\?:|\(|\)|\[\^?|\]|\||[a-cé.^$*+?-]|\{[0-9]?,?[0-9]?\}|\\[dDsSwWbBAzpQEnx1.]|\{L\}|\(\?[imsU-]{1,2}\))*") {
        if let Ok(translated) = parse::translate(&pattern) {
            prop_assert!(regex::Regex::new(&translated).is_ok(), "{} as {}", pattern, translated);
        }
    }

    #[test]
    fn no_pattern_panics(pattern in r"\PC{0,20}") {
        let _ = parse::translate(&pattern);
    }
}
