//! Names of images.

/// The longest name of an image without tag and digest.
const NAME_MAX: usize = 255;
const TAG_MAX: usize = 128;

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Whether a text is a part of a repository's path: words with a dot, one or two underscores or any dashes between them.
fn is_component(part: &str) -> bool {
    let mut rest = part;
    loop {
        let word = rest.bytes().take_while(|byte| is_alphanumeric(*byte)).count();
        rest = rest.get(word..).unwrap_or_default();
        if word == 0 {
            return false;
        }
        if rest.is_empty() {
            return true;
        }
        let dashes = rest.bytes().take_while(|byte| *byte == b'-').count();
        let separator = match dashes {
            0 if rest.starts_with("__") => 2,
            0 if rest.starts_with(['_', '.']) => 1,
            dashes => dashes,
        };
        if separator == 0 {
            return false;
        }
        rest = rest.get(separator..).unwrap_or_default();
    }
}

/// Whether a text is a host, perhaps with a port.
fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            let is_address =
                !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
            return is_address && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_number));
        }
        None => domain
            .split_once(':')
            .map_or((domain, None), |(host, port)| (host, Some(port))),
    };
    let is_label = |label: &str| {
        let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        ends(label.bytes().next())
            && ends(label.bytes().last())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    host.split('.').all(is_label) && port.is_none_or(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
        && tag.len() <= TAG_MAX
}

/// The tag of an image that is named by a tag or by nothing but its repository, which means `latest`. None where a digest names it, or where
/// the name is malformed.
fn tag(image: &str) -> Option<&str> {
    if image.contains('@') || image.len() == 64 && image.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let (domain, path) = match image.split_once('/') {
        Some((domain, path))
            if domain.contains(['.', ':']) || domain == "localhost" || domain.to_lowercase() != domain =>
        {
            (Some(domain), path)
        }
        _ => (None, image),
    };
    let (path, tag) = path
        .split_once(':')
        .map_or((path, None), |(path, tag)| (path, Some(tag)));
    let is_right = domain.is_none_or(is_domain) && path.split('/').all(is_component) && tag.is_none_or(is_tag);
    let library = if path.contains('/') {
        "docker.io/"
    } else {
        "docker.io/library/"
    };
    let len = path.len() + domain.map_or(library.len(), |domain| domain.len() + 1);
    (is_right && len <= NAME_MAX).then(|| tag.unwrap_or("latest"))
}

/// Whether an image's name means the newest of its versions.
pub(super) fn is_latest(image: &str) -> bool {
    tag(image) == Some("latest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_tags() {
        for (image, expected) in [
            ("nginx", Some("latest")),
            ("nginx:1", Some("1")),
            ("library/nginx:1.2-a_b", Some("1.2-a_b")),
            ("registry.example.com:5000/a/b-c", Some("latest")),
            ("localhost/a:x", Some("x")),
            ("[::1]:5000/a", Some("latest")),
            ("a__b/c.d", Some("latest")),
            ("Host/a", Some("latest")),
            ("nginx@sha256:abc", None),
            ("Nginx", None),
            ("a___b", None),
            ("a//b", None),
            ("-a", None),
            ("a:", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
        assert_eq!(tag(&"a".repeat(64)), None);
        assert_eq!(tag(&"b".repeat(300)), None);
        assert!(is_latest("nginx:latest"));
    }
}
