//! Patterns of images that a kubelet uses without asking for credentials again: names of images, and beginnings of names.

/// The longest name of an image without its registry, in bytes.
const PATH_MAX: usize = 255;

/// What is wrong with a pattern. The kubelet refuses the same ones.
pub(super) fn wrong_pattern(pattern: &str) -> Option<String> {
    if pattern != pattern.trim() {
        return Some("leading/trailing spaces are not allowed".into());
    }
    let beginning = pattern.ends_with("/*");
    let fixed = match beginning {
        true => &pattern[..pattern.len() - 1],
        false => pattern,
    };
    if fixed.is_empty() {
        return Some("the supplied pattern is too short".into());
    }
    if fixed.contains('*') {
        return Some("not a valid wildcard pattern, only patterns ending with '/*' are allowed".into());
    }
    match (beginning, fixed) {
        (true, "/") => Some("at least registry hostname is required".into()),
        (true, _) => None,
        (false, image) => match parse(image) {
            Ok(true) => None,
            Ok(false) => Some("neither tag nor digest is accepted in an image reference".into()),
            Err(why) => Some(format!("failed to parse as an image name: {why}")),
        },
    }
}

/// Whether a reference to an image is a name alone, without tag and digest.
///
/// # Errors
/// It is no such reference.
fn parse(text: &str) -> Result<bool, &'static str> {
    let Some(reference) = Reference::of(text) else {
        return Err(match Reference::of(&text.to_lowercase()) {
            Some(_) => "repository name must be lowercase",
            None => "invalid reference format",
        });
    };
    if reference.path.len() > PATH_MAX {
        return Err("repository name must not be more than 255 characters");
    }
    if let Some(digest) = reference.digest {
        check_digest(digest)?;
    }
    Ok(!reference.tagged && reference.digest.is_none())
}

struct Reference<'a> {
    path: &'a str,
    tagged: bool,
    digest: Option<&'a str>,
}

impl<'a> Reference<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (named, digest) = match text.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (text, None),
        };
        // a colon before the last slash stands before a port
        let last = named.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match named[last..].find(':') {
            Some(colon) => (&named[..last + colon], Some(&named[last + colon + 1..])),
            None => (named, None),
        };
        let path = match name.split_once('/') {
            Some((domain, path)) if is_domain(domain) => path,
            _ => name,
        };
        let fits = path.split('/').all(is_component) && tag.is_none_or(is_tag) && digest.is_none_or(has_digest_form);
        let tagged = tag.is_some();
        fits.then_some(Self { path, tagged, digest })
    }
}

/// `localhost:5000`, `registry.example.com`, `[::1]:5000`.
fn is_domain(text: &str) -> bool {
    let (host, rest) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            let hexadecimal = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
            if address.is_empty() || !address.bytes().all(hexadecimal) {
                return false;
            }
            (None, rest)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            (Some(&text[..end]), &text[end..])
        }
    };
    let port = rest.is_empty()
        || rest
            .strip_prefix(':')
            .is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    port && host.is_none_or(|host| host.split('.').all(label))
}

/// Lower case letters and digits with one dot, up to two underscores or any number of dashes between them.
fn is_component(text: &str) -> bool {
    let alphanumeric = |byte: char| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let separators: Vec<&str> = text.split(alphanumeric).filter(|own| !own.is_empty()).collect();
    let known = |own: &&str| matches!(*own, "." | "_" | "__") || own.bytes().all(|byte| byte == b'-');
    text.starts_with(alphanumeric) && text.ends_with(alphanumeric) && separators.iter().all(known)
}

fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

/// An algorithm's name, and 32 digits at least.
fn has_digest_form(text: &str) -> bool {
    let Some((algorithm, sum)) = text.split_once(':') else {
        return false;
    };
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(part)
        && sum.len() >= 32
        && sum.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a digest is one of a known algorithm.
fn check_digest(digest: &str) -> Result<(), &'static str> {
    const FORMAT: &str = "invalid checksum digest format";
    let (algorithm, sum) = digest.split_once(':').unwrap_or_default();
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        other if other.contains(|letter: char| letter.is_ascii_uppercase()) => return Err(FORMAT),
        _ => return Err("unsupported digest algorithm"),
    };
    if sum.len() != length {
        return Err("invalid checksum digest length");
    }
    match sum.contains(|letter: char| letter.is_ascii_uppercase()) {
        true => Err(FORMAT),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let sum = "0".repeat(64);
        let long = "a".repeat(256);
        let parse = "failed to parse as an image name: ";
        let format = format!("{parse}invalid reference format");
        let tagged = "neither tag nor digest is accepted in an image reference";
        let wildcard = "not a valid wildcard pattern, only patterns ending with '/*' are allowed";
        for (pattern, expected) in [
            ("nginx", ""),
            ("registry.example.com/team/app__one", ""),
            ("localhost:5000/app", ""),
            ("[::1]:5000/app", ""),
            ("Registry.example.com/app", ""),
            ("registry.example.com/*", ""),
            ("x/y/*", ""),
            (" nginx", "leading/trailing spaces are not allowed"),
            ("", "the supplied pattern is too short"),
            ("*", wildcard),
            ("a*/*", wildcard),
            ("a/b*", wildcard),
            ("/*", "at least registry hostname is required"),
            ("nginx:1.25", tagged),
            (&format!("nginx@sha256:{sum}"), tagged),
            (&format!("nginx:1@sha256:{sum}"), tagged),
            ("nginx:", &format),
            ("a//b", &format),
            ("a b", &format),
            ("a._b", &format),
            ("-a", &format),
            ("host:port/app", &format),
            ("nginx@sha256:abc", &format),
            ("Nginx", &format!("{parse}repository name must be lowercase")),
            (
                &long,
                &format!("{parse}repository name must not be more than 255 characters"),
            ),
            (
                &format!("nginx@sha512:{sum}"),
                &format!("{parse}invalid checksum digest length"),
            ),
            (
                &format!("nginx@md5:{sum}"),
                &format!("{parse}unsupported digest algorithm"),
            ),
            (
                &format!("nginx@sha256:{}", "A".repeat(64)),
                &format!("{parse}invalid checksum digest format"),
            ),
        ] {
            assert_eq!(wrong_pattern(pattern).unwrap_or_default(), expected, "{pattern:?}");
        }
    }
}
