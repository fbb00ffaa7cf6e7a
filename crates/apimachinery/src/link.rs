//! URLs as Go reads them, which takes more for a URL than the URL standard does, and keeps them as they are written.

use crate::field::go_quote;

/// A URL in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    scheme: String,
    /// What follows a scheme without slashes.
    opaque: String,
    user: Option<String>,
    host: String,
    /// As it is written.
    path: String,
    query: String,
    fragment: String,
}

/// What stands unescaped in paths when they are escaped anew.
const IN_PATHS: &[u8] = b"-_.~$&+,/:;=@";
/// What besides that may stand in paths that are written already.
const WRITTEN: &[u8] = b"!'()*[]%";
const IN_HOSTS: &[u8] = b"-_.~!$&'()*+,;=:[]<>\"";
const IN_USERS: &[u8] = b"-._:~!$&'()*+,;=%@";

impl Link {
    /// Reads any URL, as Go's `url.Parse` does.
    ///
    /// # Errors
    /// Go's, which shows the whole text.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text, false).map_err(|why| failed(text, &why))
    }

    /// Reads an absolute URL, or an absolute path, as expressions do.
    ///
    /// # Errors
    /// Go's, which shows the whole text.
    pub fn parse_absolute(text: &str) -> Result<Self, String> {
        // the first look takes no fragment for one, and no host without scheme
        let first = Self::read(text, true);
        let read = first.and_then(|first| match text.split_once('#') {
            None if !text.starts_with("//") => Ok(first),
            _ => Self::read(text, false),
        });
        read.map_err(|why| failed(text, &why))
    }

    /// Why a text is no absolute URL and no absolute path.
    pub fn wrong(text: &str) -> Option<String> {
        Self::read(text, true).err().map(|why| failed(text, &why))
    }

    fn read(text: &str, request: bool) -> Result<Self, String> {
        let (text, fragment) = match request {
            true => (text, ""),
            false => text.split_once('#').unwrap_or((text, "")),
        };
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && request {
            return Err("empty url".to_owned());
        }
        let mut link = Self {
            fragment: unescaped(fragment, false)?,
            ..Self::default()
        };
        if text == "*" {
            text.clone_into(&mut link.path);
            return Ok(link);
        }
        let (scheme, rest) = scheme(text)?;
        link.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        query.clone_into(&mut link.query);
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                rest.clone_into(&mut link.opaque);
                return Ok(link);
            }
            if request {
                return Err("invalid URI for request".to_owned());
            }
            // a scheme that is none
            if rest.split('/').next().is_some_and(|first| first.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let hosts = !scheme.is_empty() || !request && !rest.starts_with("///");
        let path = match rest.strip_prefix("//").filter(|_| hosts) {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
                link.authority(authority)?;
                path
            }
            None => rest,
        };
        unescaped(path, false)?;
        path.clone_into(&mut link.path);
        Ok(link)
    }

    fn authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let port = match (host.starts_with('['), host.rfind(']'), host.rfind(':')) {
            (true, None, _) => return Err("missing ']' in host".to_owned()),
            (true, Some(end), _) => host.get(end + 1..).unwrap_or_default(),
            (false, _, Some(colon)) => host.get(colon..).unwrap_or_default(),
            (false, _, None) => "",
        };
        if !is_port(port) {
            return Err(format!("invalid port {} after host", go_quote(port)));
        }
        self.host = unescaped(host, true)?;
        if let Some(user) = user {
            let may = |byte: u8| byte.is_ascii_alphanumeric() || IN_USERS.contains(&byte);
            if !user.bytes().all(may) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            self.user = Some(unescaped(user, false)?);
        }
        Ok(())
    }

    /// The scheme in small letters.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The host with its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host without port and brackets, and the port.
    fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':').and_then(|colon| self.host.split_at_checked(colon)) {
            Some((host, port)) if is_port(port) => (host, port.trim_start_matches(':')),
            _ => (self.host.as_str(), ""),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port)
    }

    /// Who asks, as `name` or `name:password`; empty, if the URL has only the sign behind it.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The query as it is written.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// What follows `#`.
    pub fn fragment(&self) -> &str {
        &self.fragment
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &str {
        self.host_and_port().0
    }

    /// The port's digits.
    pub fn port(&self) -> &str {
        self.host_and_port().1
    }

    /// The path, escaped as it is written or, where that cannot be, anew.
    pub fn escaped_path(&self) -> String {
        let may = |byte: u8| byte.is_ascii_alphanumeric() || IN_PATHS.contains(&byte);
        if self.path.bytes().all(|byte| may(byte) || WRITTEN.contains(&byte)) {
            return self.path.clone();
        }
        let mut out = String::with_capacity(self.path.len());
        for byte in unescaped_bytes(&self.path, false).unwrap_or_default() {
            match may(byte) {
                true => out.push(char::from(byte)),
                false => out.push_str(&format!("%{byte:02X}")),
            }
        }
        out
    }

    /// The names and values of the query. What is malformed is left out.
    pub fn query_pairs(&self) -> Vec<(String, String)> {
        let parts = self.query.split('&');
        let parts = parts.filter(|part| !part.is_empty() && !part.contains(';'));
        let spaced = |text: &str| unescaped(&text.replace('+', " "), false).ok();
        parts
            .filter_map(|part| {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                Some((spaced(key)?, spaced(value)?))
            })
            .collect()
    }
}

fn failed(text: &str, why: &str) -> String {
    format!("parse {}: {why}", go_quote(text))
}

/// The scheme of a URL, if it has one, and the rest.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    let in_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let end = text.find(|c| !in_scheme(c)).unwrap_or(text.len());
    let (scheme, rest) = text.split_at_checked(end).unwrap_or(("", text));
    match rest.strip_prefix(':') {
        Some(_) if scheme.is_empty() => Err("missing protocol scheme".to_owned()),
        Some(rest) if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) => Ok((scheme, rest)),
        _ => Ok(("", text)),
    }
}

/// Whether this is no port, or a colon with digits or none.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn unescaped(text: &str, host: bool) -> Result<String, String> {
    unescaped_bytes(text, host).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn unescaped_bytes(text: &str, host: bool) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let shown = String::from_utf8_lossy(rest.get(..3).unwrap_or(rest)).into_owned();
            let wrong = || Err(format!("invalid URL escape {}", go_quote(&shown)));
            let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
            let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                return wrong();
            };
            // hosts hide no ASCII but the percent sign of a zone
            if host && high < 8 && shown != "%25" {
                return wrong();
            }
            out.extend(u8::try_from(high * 16 + low));
            rest = tail.get(2..).unwrap_or_default();
            continue;
        }
        if host && first.is_ascii() && !first.is_ascii_alphanumeric() && !IN_HOSTS.contains(first) {
            let shown = go_quote(&char::from(*first).to_string());
            return Err(format!("invalid character {shown} in host name"));
        }
        out.push(*first);
        rest = tail;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_as_go_does() {
        let parse = |text: &str| Link::parse(text).map(|link| (link.scheme, link.host));
        for (text, expected) in [
            ("https://host/path", Ok(("https", "host"))),
            ("https://host:443", Ok(("https", "host:443"))),
            ("https://", Ok(("https", ""))),
            ("host/path", Ok(("", ""))),
            ("", Ok(("", ""))),
            (
                "https://host:port/",
                Err("parse \"https://host:port/\": invalid port \":port\" after host"),
            ),
            (":x", Err("parse \":x\": missing protocol scheme")),
            (
                "1host:443/x",
                Err("parse \"1host:443/x\": first path segment in URL cannot contain colon"),
            ),
            ("https://[::1]:8443/x", Ok(("https", "[::1]:8443"))),
            (
                "https://a b/",
                Err("parse \"https://a b/\": invalid character \" \" in host name"),
            ),
        ] {
            let expected = expected
                .map(|(scheme, host)| (scheme.to_owned(), host.to_owned()))
                .map_err(str::to_owned);
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
