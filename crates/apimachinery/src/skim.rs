//! JSON objects taken apart without being read: [`members`] tells where the value of each member stands.
//!
//! Only as much of a value is looked at as its end needs. Whoever takes a value of unknown origin has to parse it, or to compare it with one that
//! was parsed; an object whose keys and values are well-formed is well-formed.

/// What was skimmed is no JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a JSON object, found something else at byte {at}")]
pub struct NoObject {
    /// Where it ceases to be one.
    pub at: usize,
}

/// The members of a JSON object in their order: the key as it is written between its quotes, and the value. Ends with what is wrong, if something is.
pub const fn members(json: &[u8]) -> Members<'_> {
    Members {
        json,
        at: 0,
        next: Next::Object,
        depth: 0,
    }
}

/// Tells of what stands at these JSON pointers in an object, each once where it is there, and goes through the object once for all of them. Of
/// pointers of which one leads into another's value, the shorter is told. What is behind the last member that a pointer leads to is not looked
/// at, and need not be there: the head of a stored object does, where all pointers lead into its metadata. None, if up to there it is no object,
/// or a key may be another one, written otherwise; what was told before may have been told.
pub fn pick<'t, 'p>(json: &'t [u8], pointers: &[&'p str], found: &mut impl FnMut(&'p str, &'t [u8])) -> Option<()> {
    let pointers: Vec<_> = pointers.iter().map(|pointer| (*pointer, *pointer)).collect();
    members(json).pick(&pointers, found)
}

/// How many members of an object these JSON pointers lead to or into.
fn members_led_to(pointers: &[(&str, &str)]) -> usize {
    let name = |at: usize| {
        pointers
            .get(at)
            .and_then(|(rest, _)| rest.strip_prefix('/')?.split('/').next())
    };
    let is_first = |at: &usize| (0..*at).all(|before| name(before) != name(*at));
    (0..pointers.len()).filter(is_first).count()
}

/// The value of a member with a key that nothing of needs escaping. None, if there is none, or something is wrong in front of it.
pub fn member<'t>(json: &'t [u8], key: &str) -> Option<&'t [u8]> {
    let mut members = members(json).map_while(Result::ok);
    members
        .find(|(found, _)| *found == key.as_bytes())
        .map(|(_, value)| value)
}

/// A key that is written as it is: one that is not may be another key, written otherwise.
pub fn plain(key: &[u8]) -> Option<&str> {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'\\';
    std::str::from_utf8(key).ok().filter(|key| key.bytes().all(is_plain))
}

/// See [`members`].
#[derive(Clone, Debug)]
pub struct Members<'t> {
    json: &'t [u8],
    at: usize,
    next: Next,
    /// In how many other objects the object is.
    depth: usize,
}

/// What is to come.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The object itself.
    Object,
    /// A comma with a member, or the end.
    Another,
    /// Nothing.
    Nothing,
}

impl<'t> Iterator for Members<'t> {
    type Item = Result<(&'t [u8], &'t [u8]), NoObject>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_like(|_| None)
    }
}

/// A member, or the end of the object; none, where there is neither.
type Step<'t> = Option<Option<(&'t [u8], &'t [u8])>>;

impl<'t> Members<'t> {
    /// The next member. `like`: what the value of a key may be, itself a whole value; where it is that, its end need not be looked for.
    pub fn next_like<'l>(&mut self, like: impl FnOnce(&[u8]) -> Option<&'l [u8]>) -> Option<<Self as Iterator>::Item> {
        if matches!(self.next, Next::Nothing) {
            return None;
        }
        match self.step(like) {
            Some(Some(member)) => {
                self.next = Next::Another;
                Some(Ok(member))
            }
            end => {
                self.next = Next::Nothing;
                end.is_none().then_some(Err(NoObject { at: self.at }))
            }
        }
    }

    fn step<'l>(&mut self, like: impl FnOnce(&[u8]) -> Option<&'l [u8]>) -> Step<'t> {
        let Some(key) = self.key()? else {
            return Some(None);
        };
        let value = self.value(key, like)?;
        Some(Some((key, value)))
    }

    /// See [`pick`]; each pointer stands beside what of it is still to go.
    fn pick<'p>(&mut self, pointers: &[(&'p str, &'p str)], found: &mut impl FnMut(&'p str, &'t [u8])) -> Option<()> {
        let mut left = members_led_to(pointers);
        while let Some(key) = self.key()? {
            let name = plain(key)?;
            let behind = |(rest, pointer): &(&'p str, &'p str)| {
                let rest = rest.strip_prefix('/')?.strip_prefix(name)?;
                (rest.is_empty() || rest.starts_with('/')).then_some((rest, *pointer))
            };
            let inside: Vec<_> = pointers.iter().filter_map(behind).collect();
            let leads_on = !inside.is_empty() && inside.iter().all(|(rest, _)| !rest.is_empty());
            if leads_on && self.peek()? == b'{' {
                self.depth += 1;
                self.next = Next::Object;
                self.pick(&inside, found)?;
                self.depth -= 1;
            } else {
                let value = self.value(key, |_| None)?;
                let whole = inside.iter().filter(|(rest, _)| rest.is_empty());
                whole.for_each(|(_, pointer)| found(pointer, value));
            }
            self.next = Next::Another;
            left -= usize::from(!inside.is_empty()).min(left);
            if left == 0 && self.depth == 0 {
                break;
            }
        }
        Some(())
    }

    /// The key of the next member, where its value is next; nothing at the end of the object.
    fn key(&mut self) -> Option<Option<&'t [u8]>> {
        let is_first = matches!(self.next, Next::Object);
        if is_first {
            self.take(b'{')?;
        }
        if self.peek()? == b'}' {
            self.take(b'}')?;
            // nothing but space may follow the outermost
            return (self.depth > 0 || self.peek().is_none()).then_some(None);
        }
        if !is_first {
            self.take(b',')?;
        }
        self.peek()?;
        let key = self.text()?;
        let key = key.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        self.take(b':')?;
        Some(Some(key))
    }

    fn value<'l>(&mut self, key: &[u8], like: impl FnOnce(&[u8]) -> Option<&'l [u8]>) -> Option<&'t [u8]> {
        let first = self.peek()?;
        let start = self.at;
        match like(key) {
            Some(like) if self.begins_with(like) => self.at += like.len(),
            _ => match first {
                b'"' => drop(self.text()?),
                b'{' | b'[' => self.nested()?,
                _ => self.at += self.rest().iter().position(ends_word)?,
            },
        }
        self.json.get(start..self.at)
    }

    /// Whether this value stands here, and no longer one of which it is the beginning.
    fn begins_with(&self, value: &[u8]) -> bool {
        let behind = self.rest().strip_prefix(value);
        !value.is_empty() && behind.is_some_and(|behind| behind.first().is_some_and(ends_word))
    }

    fn rest(&self) -> &'t [u8] {
        self.json.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is no space, where it stands then.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.json.get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// A text with its quotes.
    fn text(&mut self) -> Option<&'t [u8]> {
        let start = self.at;
        if self.json.get(start) != Some(&b'"') {
            return None;
        }
        self.at = end_of_text(self.json, start + 1)?;
        self.json.get(start..self.at)
    }

    /// An object or a list, up to the bracket that closes the first.
    fn nested(&mut self) -> Option<()> {
        let (mut at, mut depth) = (self.at, 0_usize);
        while let Some(byte) = self.json.get(at) {
            at += 1;
            match byte {
                b'"' => at = end_of_text(self.json, at)?,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at = at;
                        return Some(());
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// Whether a number or a word such as `null` is over before this byte.
const fn ends_word(byte: &u8) -> bool {
    matches!(byte, b',' | b'}' | b' ' | b'\t' | b'\n' | b'\r')
}

const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);

/// The first byte of eight, in their order in memory, that is zero; 8, if none is.
const fn zero_byte(word: u64) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // the highest bit of each byte that is zero; those above it may be wrong, the lowest is not
    let zeros = word.wrapping_sub(ONES) & !word & HIGHS;
    zeros.trailing_zeros() as usize / 8
}

/// Where the text is over that goes on here.
fn end_of_text(json: &[u8], mut at: usize) -> Option<usize> {
    // most texts are shorter than it takes to get ready to search long ones
    for _ in 0..4 {
        let Some(bytes) = json.get(at..)?.first_chunk::<8>() else {
            break;
        };
        let word = u64::from_le_bytes(*bytes);
        match (zero_byte(word ^ QUOTES), zero_byte(word ^ BACKSLASHES)) {
            (8, 8) => at += 8,
            (quote, backslash) if quote < backslash => return Some(at + quote + 1),
            // whatever is escaped ends nothing
            (_, backslash) => at += backslash + 2,
        }
    }
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        match json.get(at)? {
            b'"' => return Some(at + 1),
            // whatever is escaped ends nothing
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn skimmed(json: &str) -> Result<Vec<(&str, &str)>, NoObject> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        members(json.as_bytes())
            .map(|member| member.map(|(key, value)| (text(key), text(value))))
            .collect()
    }

    #[test]
    fn members_are_told_in_their_order() {
        let json =
            " { \"b\" : {\"x\":[1,{\"y\":\"}\\\"]\"}]} ,\"a\":\"t\\\\\", \"n\":-1.5e3 ,\"\\u0061\":[],\"l\":null}\n";
        assert_eq!(
            skimmed(json),
            Ok(vec![
                ("b", r#"{"x":[1,{"y":"}\"]"}]}"#),
                ("a", r#""t\\""#),
                ("n", "-1.5e3"),
                ("\\u0061", "[]"),
                ("l", "null"),
            ])
        );
        assert_eq!(skimmed("{}"), Ok(Vec::new()));
        assert_eq!(skimmed(" { } "), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_object_is_told() {
        for json in [
            "",
            "1",
            "[]",
            "{",
            "{,}",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{\"a\":\"",
            "{\"a\":\"\\",
            "{\"a\":1 2}",
            "{\"a\":1}x",
            "{a:1}",
            "{\"a\":[1}",
            "{} {}",
        ] {
            assert!(skimmed(json).is_err(), "{json}: {:?}", skimmed(json));
        }
        assert_eq!(skimmed("[]"), Err(NoObject { at: 0 }));
        assert_eq!(skimmed("{} {}"), Err(NoObject { at: 3 }));
    }

    #[test]
    fn one_member_is_found_without_what_follows() {
        let json = br#"{"kind":"A","metadata":{"name":"n"},"spec":"#;
        assert_eq!(member(json, "metadata"), Some(&br#"{"name":"n"}"#[..]));
        assert_eq!(member(json, "spec"), None);
        assert_eq!(member(json, "name"), None);
    }

    #[test]
    fn texts_end_where_they_do() {
        for length in 0..70 {
            for escaped in ["", "\\\"", "\\\\", "\\n"] {
                for at in 0..=length {
                    let text = format!("{}{escaped}{}\"", "a".repeat(at), "b".repeat(length - at));
                    let json = format!("{text} rest\"");
                    assert_eq!(end_of_text(json.as_bytes(), 0), Some(text.len()), "{json}");
                }
            }
        }
        for json in ["", "a", "abcdefgh", "abcdefg\\", "abcdefg\\\"", "\\"] {
            assert_eq!(end_of_text(json.as_bytes(), 0), None, "{json}");
        }
    }

    #[test]
    fn what_is_asked_for_is_picked() {
        let json = br#" {"a":{"b":[1],"c":{"d":"x"}, "e":null},"ab":2, "f":{"a":{"b":3}}} "#;
        type Told<'t> = [(&'t str, &'t str)];
        let cases: [(&[&str], &Told<'_>); 6] = [
            (&["/a/c/d", "/ab"], &[("/a/c/d", "\"x\""), ("/ab", "2")]),
            (&["/a/c", "/a/c/d"], &[("/a/c", r#"{"d":"x"}"#)]),
            (&["/f/a/b", "/a/b"], &[("/a/b", "[1]"), ("/f/a/b", "3")]),
            (&["/a/e", "/a/e/x", "/a/b/0"], &[("/a/e", "null")]),
            (&["/none", "a", "/a/none"], &[]),
            (&[], &[]),
        ];
        for (pointers, wanted) in cases {
            let mut found = Vec::new();
            let whole = pick(json, pointers, &mut |pointer, value| {
                found.push((pointer, std::str::from_utf8(value).unwrap()));
            });
            assert_eq!((whole, found.as_slice()), (Some(()), wanted), "{pointers:?}");
        }
        for json in [
            r#"{"a":{"b":1"#,
            r#"{"c":1,"a":{"c":1},,"#,
            r#"{"c":{"b":1}"#,
            r#"{"c":{"b":1}}}"#,
            r#"{"\u0061":1}"#,
            "[]",
            "",
            r#"{"a":{"b":1,}}"#,
        ] {
            let found = pick(json.as_bytes(), &["/a/b", "/a/c", "/d"], &mut |_, _| {});
            assert_eq!(found, None, "{json}");
        }
    }

    #[test]
    fn nothing_is_needed_behind_what_is_asked_for() {
        let json = r#"{"x":1,"a":{"b":1,"c":{"d":2}},"e":3,"f":{}}"#;
        let picked = |json: &str, pointers: &[&str]| {
            let mut found = Vec::new();
            let end = pick(json.as_bytes(), pointers, &mut |_, value| found.push(value.to_vec()));
            end.map(|()| found)
        };
        for (pointers, last) in [
            (&["/a/b", "/a/c/d", "/a/none"][..], r#","a":{"b":1,"c":{"d":2}}"#),
            (&["/a/none"], r#","a":{"b":1,"c":{"d":2}}"#),
            (&["/e", "/a/b", "/e/none"], r#","e":3"#),
            (&["/x"], "1"),
        ] {
            let end = json.find(last).unwrap() + last.len();
            // a number ends with what is behind it
            let enough = json.get(..=end).unwrap();
            let wanted = picked(json, pointers);
            assert!(wanted.is_some());
            assert_eq!(picked(enough, pointers), wanted, "{pointers:?}");
            assert_eq!(picked(json.get(..end - 1).unwrap(), pointers), None, "{pointers:?}");
        }
    }

    #[test]
    fn values_that_are_known_are_told_as_others() {
        let json = br#"{"a":{"x":1},"b":12,"c":"d"}"#;
        for known in ["{\"x\":1}", "{\"x\":2}", "1", "12", "\"d\"", "\"d", ""] {
            let mut members = members(json);
            let mut found = Vec::new();
            while let Some(member) = members.next_like(|_| Some(known.as_bytes())) {
                found.push(member);
            }
            assert_eq!(found, super::members(json).collect::<Vec<_>>(), "{known}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\\\\\"{}\\[\\],:\\n ]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_object_is_taken_apart(members in proptest::collection::btree_map(any::<String>(), value(), 0..6), pretty in any::<bool>()) {
            let object = Value::Object(members.into_iter().collect());
            let json = match pretty {
                true => serde_json::to_string_pretty(&object).unwrap(),
                false => object.to_string(),
            };
            let apart = skimmed(&json).unwrap().into_iter().map(|(key, value)| {
                let key: String = serde_json::from_str(&format!("\"{key}\"")).unwrap();
                (key, serde_json::from_str::<Value>(value).unwrap())
            });
            prop_assert_eq!(Value::Object(apart.collect()), serde_json::from_str::<Value>(&json).unwrap());
        }

        /// What is made of well-formed keys and values is well-formed, and nothing else is: the law that lets others skim what clients send.
        #[test]
        fn an_object_is_well_formed_if_its_members_are(json in "[{}\\[\\]:,\"\\\\ a1n\\n]{0,24}") {
            let of_parts = skimmed(&json).is_ok_and(|members| members.iter().all(|(key, value)| {
                serde_json::from_str::<String>(&format!("\"{key}\"")).is_ok() && serde_json::from_str::<Value>(value).is_ok()
            }));
            let whole = serde_json::from_str::<serde_json::Map<String, Value>>(&json).is_ok();
            prop_assert_eq!(of_parts, whole, "{}", json);
        }
    }
}
