//! Which web pages of other origins may read answers, as the CORS filter of k8s.io/apiserver tells browsers.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderMap, HeaderValue, ORIGIN,
};
use regex::Regex;

/// What such pages may do, and which headers of requests and answers they may set and see.
const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, OPTIONS, PUT, DELETE, PATCH");
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
);
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static("Date");

/// Why a pattern of origins cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// There is no text.
    #[error("empty value in --cors-allowed-origins: expected a regular expression")]
    Empty,
    /// It is no regular expression.
    #[error("--cors-allowed-origins has an invalid regular expression: {0}")]
    Invalid(#[from] regex::Error),
    /// Other hosts would match, whose names have an allowed one in them.
    #[error(
        "--cors-allowed-origins has an invalid regular expression: regular expression {0:?} does not pin to start/end of host in the origin header: begin it with ^ or //, and end it with $ or :"
    )]
    Open(String),
}

/// The origins whose pages may read answers.
#[derive(Clone, Debug, Default)]
pub struct Origins(Vec<Regex>);

impl Origins {
    /// Those that match one of these patterns.
    ///
    /// # Errors
    /// [`PatternError`] of the first one that cannot be used.
    pub fn matching(patterns: &[String]) -> Result<Self, PatternError> {
        let compiled = patterns.iter().map(|pattern| {
            if pattern.is_empty() {
                return Err(PatternError::Empty);
            }
            let compiled = Regex::new(pattern)?;
            let has_one_of = |marks: [&str; 2]| marks.iter().any(|mark| pattern.contains(mark));
            match has_one_of(["^", "//"]) && has_one_of(["$", ":"]) {
                true => Ok(compiled),
                false => Err(PatternError::Open(pattern.clone())),
            }
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// The origin that a request tells, if answers to it may be read.
    pub(crate) fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let text = origin.to_str().ok()?;
        self.0
            .iter()
            .any(|pattern| pattern.is_match(text))
            .then(|| origin.clone())
    }
}

/// Tells a browser that pages of an origin may read this answer.
pub(crate) fn allow(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, ANSWER_HEADERS);
    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_must_name_whole_hosts() {
        let read = |pattern: &str| Origins::matching(&[pattern.to_owned()]).is_ok();
        for (pattern, good) in [
            (r"^https://example\.com$", true),
            (r"//example\.com(:|$)", true),
            (r"example\.com$", false),
            (r"^example\.com", false),
            ("", false),
            ("^(:", false),
        ] {
            assert_eq!(read(pattern), good, "{pattern:?}");
        }
        let origins = Origins::matching(&[r"//example\.com(:|$)".to_owned()]).unwrap();
        let allowed = |origin: &'static str| {
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))]);
            origins.allowed(&headers)
        };
        assert_eq!(allowed("https://example.com:8443").unwrap(), "https://example.com:8443");
        assert_eq!(allowed("https://example.com.evil.org"), None);
        assert_eq!(origins.allowed(&HeaderMap::new()), None);
    }
}
