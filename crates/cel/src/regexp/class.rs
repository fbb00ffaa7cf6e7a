//! Classes of characters and escapes.

use super::parse::{Flags, before};
use super::{Code, SyntaxError};

/// A class that nothing is in.
pub(super) const NOTHING: &str = r"[a&&b]";

/// The names of POSIX classes.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// The categories of Unicode, by their short names.
const CATEGORIES: &str = "C Cc Cf Cn Co Cs L Lc Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm \
    So Z Zl Zp Zs";

/// Other names of categories, as Go looks them up, and the short ones.
const ALIASES: &str = "Casedletter=Lc Closepunctuation=Pe Combiningmark=M Connectorpunctuation=Pc Control=Cc \
    Currencysymbol=Sc Dashpunctuation=Pd Decimalnumber=Nd Enclosingmark=Me Finalpunctuation=Pf Format=Cf \
    Initialpunctuation=Pi Letter=L Letternumber=Nl Lineseparator=Zl Lowercaseletter=Ll Mark=M Mathsymbol=Sm \
    Modifierletter=Lm Modifiersymbol=Sk Nonspacingmark=Mn Number=N Openpunctuation=Ps Other=C Otherletter=Lo \
    Othernumber=No Otherpunctuation=Po Othersymbol=So Paragraphseparator=Zp Privateuse=Co Punctuation=P Separator=Z \
    Spaceseparator=Zs Spacingmark=Mc Surrogate=Cs Symbol=S Titlecaseletter=Lt Unassigned=Cn Uppercaseletter=Lu \
    Cntrl=Cc Digit=Nd Punct=P";

/// Unicode's scripts. Those whose names have several words are none that Go finds.
const SCRIPTS: &str = "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi \
    Braille Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret \
    Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han \
    Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki \
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen \
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage Osmanya \
    Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese \
    Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai \
    Vithkuqi Wancho Yezidi Yi";

/// A class as it stands outside of another one.
pub(super) fn bracketed(class: &str, flags: Flags) -> String {
    match flags.fold {
        true => format!("(?i:[{class}])"),
        false => format!("[{class}]"),
    }
}

/// Reads a class in brackets.
pub(super) fn brackets(from: &str, flags: Flags) -> Result<(String, &str), SyntaxError> {
    let mut rest = from.get(1..).unwrap_or_default();
    let negated = rest.strip_prefix('^');
    rest = negated.unwrap_or(rest);
    let mut class = String::new();
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some((name, behind)) = posix(rest)? {
            class.push_str(name);
            rest = behind;
            continue;
        }
        if let Some((group, behind)) = group(rest)? {
            class.push_str(&group);
            rest = behind;
            continue;
        }
        let start = rest;
        let (low, behind) = character(rest, from)?;
        let (mut high, mut behind) = (low, behind);
        // a hyphen at the end is itself
        if let Some(after) = behind
            .strip_prefix('-')
            .filter(|after| !after.is_empty() && !after.starts_with(']'))
        {
            (high, behind) = character(after, from)?;
            if high < low {
                return Err(SyntaxError::new(Code::CharRange, before(start, behind)));
            }
        }
        push_range(&mut class, low, high);
        rest = behind;
    }
    let rest = rest.get(1..).unwrap_or_default();
    let class = match (class.is_empty(), negated.is_some()) {
        (true, true) => r"\x{0}-\x{10FFFF}".to_owned(),
        (true, false) => return Ok((NOTHING.to_owned(), rest)),
        (false, true) => format!("^{class}"),
        (false, false) => class,
    };
    Ok((bracketed(&class, flags), rest))
}

/// Adds a range. Halves of surrogate pairs are in no text, and none of the crate's characters.
fn push_range(class: &mut String, low: u32, high: u32) {
    let is_half = |code: u32| (0xD800..0xE000).contains(&code);
    let low = if is_half(low) { 0xE000 } else { low };
    let high = if is_half(high) { 0xD7FF } else { high };
    if low <= high {
        class.push_str(&format!("\\x{{{low:X}}}-\\x{{{high:X}}}"));
    }
}

/// Reads one character of the class that begins at `class`.
fn character<'p>(from: &'p str, class: &str) -> Result<(u32, &'p str), SyntaxError> {
    match from.chars().next() {
        None => Err(SyntaxError::new(Code::MissingBracket, class)),
        Some('\\') => escape(from),
        Some(plain) => Ok((plain as u32, from.get(plain.len_utf8()..).unwrap_or_default())),
    }
}

/// Reads `[:alpha:]`, as it stands in a class.
fn posix(from: &str) -> Result<Option<(&str, &str)>, SyntaxError> {
    let Some((name, behind)) = from.strip_prefix("[:").and_then(|inner| inner.split_once(":]")) else {
        return Ok(None);
    };
    let whole = before(from, behind);
    match POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
        true => Ok(Some((whole, behind))),
        false => Err(SyntaxError::new(Code::CharRange, whole)),
    }
}

/// Reads `\d` and its like, or `\p{Greek}`, as it stands in a class.
pub(super) fn group(from: &str) -> Result<Option<(String, &str)>, SyntaxError> {
    let Some(rest) = from.strip_prefix('\\') else {
        return Ok(None);
    };
    let behind = rest.get(1..).unwrap_or_default();
    let perl = match rest.as_bytes().first() {
        Some(b'd') => "0-9",
        Some(b'D') => "[^0-9]",
        Some(b's') => r"\t\n\x0C\r\x20",
        Some(b'S') => r"[^\t\n\x0C\r\x20]",
        Some(b'w') => "0-9A-Za-z_",
        Some(b'W') => "[^0-9A-Za-z_]",
        Some(b'p' | b'P') => return unicode(from).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((perl.to_owned(), behind)))
}

fn unicode(from: &str) -> Result<(String, &str), SyntaxError> {
    let mut negated = from.starts_with(r"\P");
    let named = from.get(2..).unwrap_or_default();
    let (name, behind) = match named.strip_prefix('{') {
        Some(inner) => inner
            .split_once('}')
            .ok_or_else(|| SyntaxError::new(Code::CharRange, from))?,
        None => {
            let length = named.chars().next().map_or(0, char::len_utf8);
            named.split_at(length)
        }
    };
    let name = match name.strip_prefix('^') {
        Some(name) => {
            negated = !negated;
            name
        }
        None => name,
    };
    let name = canonical(name);
    let has = |list: &str| list.split(' ').any(|own| own == name);
    let alias = || {
        let mut pairs = ALIASES.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.find(|(own, _)| *own == name).map(|(_, category)| category)
    };
    let category = match has(CATEGORIES) {
        true => Some(name.as_str()),
        false => alias(),
    };
    let sign = if negated { 'P' } else { 'p' };
    let text = match (name.as_str(), category) {
        (_, Some("Cs")) if negated => r"\x{0}-\x{10FFFF}".to_owned(),
        (_, Some("Cs")) => NOTHING.to_owned(),
        ("Any" | "Assigned", _) => format!("\\{sign}{{{name}}}"),
        ("Ascii", _) => format!("\\{sign}{{ASCII}}"),
        (_, Some(category)) => format!("\\{sign}{{gc={category}}}"),
        (script, None) if has(SCRIPTS) => format!("\\{sign}{{sc={script}}}"),
        _ => return Err(SyntaxError::new(Code::CharRange, before(from, behind))),
    };
    Ok((text, behind))
}

/// A name as Go looks it up: a capital, then small letters, and nothing between words.
fn canonical(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    let cased = letters.enumerate().map(|(at, c)| match at {
        0 => c.to_ascii_uppercase(),
        _ => c.to_ascii_lowercase(),
    });
    cased.collect()
}

/// Reads an escaped character.
pub(super) fn escape(from: &str) -> Result<(u32, &str), SyntaxError> {
    let mut chars = from.chars();
    chars.next();
    let Some(kind) = chars.next() else {
        return Err(SyntaxError::new(Code::TrailingBackslash, ""));
    };
    let invalid = |rest: &str| SyntaxError::new(Code::Escape, before(from, rest));
    let rest = chars.as_str();
    let is_octal = |c: char| c.is_digit(8);
    match kind {
        '1'..='7' if !rest.starts_with(is_octal) => Err(invalid(rest)),
        '0'..='7' => {
            let more: String = rest.chars().take(2).take_while(|c| is_octal(*c)).collect();
            let digits = format!("{kind}{more}");
            let rest = rest.get(more.len()..).unwrap_or_default();
            u32::from_str_radix(&digits, 8)
                .map(|code| (code, rest))
                .map_err(|_| invalid(rest))
        }
        'x' => hexadecimal(rest).map_err(invalid),
        'a' => Ok((0x07, rest)),
        'f' => Ok((0x0C, rest)),
        'n' => Ok((0x0A, rest)),
        'r' => Ok((0x0D, rest)),
        't' => Ok((0x09, rest)),
        'v' => Ok((0x0B, rest)),
        other if other.is_ascii() && !other.is_ascii_alphanumeric() => Ok((other as u32, rest)),
        _ => Err(invalid(rest)),
    }
}

/// Reads what stands behind `\x`. The error is what was not looked at any more.
fn hexadecimal(from: &str) -> Result<(u32, &str), &str> {
    let mut chars = from.chars();
    match chars.next() {
        None => Err(from),
        Some('{') => {
            let mut code: Option<u32> = None;
            loop {
                let next = chars.next();
                let rest = chars.as_str();
                match (next, next.and_then(|c| c.to_digit(16))) {
                    (Some('}'), _) => return code.map(|code| (code, rest)).ok_or(rest),
                    (Some(_), Some(digit)) => {
                        let more = code.unwrap_or(0) * 16 + digit;
                        if more > 0x0010_FFFF {
                            return Err(rest);
                        }
                        code = Some(more);
                    }
                    _ => return Err(rest),
                }
            }
        }
        Some(first) => {
            let second = chars.next();
            let rest = chars.as_str();
            let (high, low) = (first.to_digit(16), second.and_then(|c| c.to_digit(16)));
            high.zip(low).map(|(high, low)| (high * 16 + low, rest)).ok_or(rest)
        }
    }
}
