//! `Warning` headers of an answer: each sentence once, and no more of them than clients read.

use http::header::WARNING;
use http::{HeaderValue, Response};

use crate::respond::Body;

/// How many characters all sentences may have together before each is cut.
const ALL: usize = 4 * 1024;

/// How many characters a sentence keeps when there are too many.
const EACH: usize = 256;

/// What an answer's headers tell.
#[derive(Clone, Default)]
struct Told {
    /// Headers of another server whose answer it is: they stay as they are.
    others: Vec<HeaderValue>,
    sentences: Vec<String>,
}

/// Adds sentences behind those that the answer has.
pub fn warn(response: &mut Response<Body>, sentences: &[String]) {
    tell(response, |told| told.extend_from_slice(sentences));
}

/// Adds a sentence in front of those that the answer has.
pub fn warn_first(response: &mut Response<Body>, sentence: String) {
    tell(response, |told| told.insert(0, sentence));
}

fn tell(response: &mut Response<Body>, change: impl FnOnce(&mut Vec<String>)) {
    let before = response.extensions_mut().remove::<Told>();
    let mut told = before.unwrap_or_else(|| Told {
        others: response.headers().get_all(WARNING).iter().cloned().collect(),
        sentences: Vec::new(),
    });
    change(&mut told.sentences);
    let own = headers_of(&told.sentences).into_iter();
    let own = own.filter_map(|text| HeaderValue::from_bytes(text.as_bytes()).ok());
    let headers = response.headers_mut();
    headers.remove(WARNING);
    for header in told.others.iter().cloned().chain(own) {
        headers.append(WARNING, header);
    }
    response.extensions_mut().insert(told);
}

/// The headers' texts. A sentence with control characters cannot be told.
fn headers_of(sentences: &[String]) -> Vec<String> {
    let mut once: Vec<&str> = Vec::new();
    for sentence in sentences.iter().map(String::as_str) {
        if !sentence.is_empty() && !once.contains(&sentence) && !sentence.contains(char::is_control) {
            once.push(sentence);
        }
    }
    let length = |sentence: &str| sentence.chars().count();
    if once.iter().map(|sentence| length(sentence)).sum::<usize>() <= ALL {
        return once.into_iter().map(quoted).collect();
    }
    let mut written = 0;
    let mut headers = Vec::new();
    for sentence in once {
        if written >= ALL {
            break;
        }
        let cut: String = sentence.chars().take(EACH).collect();
        written += length(&cut);
        headers.push(quoted(&cut));
    }
    headers
}

fn quoted(sentence: &str) -> String {
    let escaped = sentence.replace('\\', "\\\\").replace('"', "\\\"");
    format!("299 - \"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_told_once_and_quoted() {
        let sentences = ["a \"b\" \\", "", "two\nlines", "c", "a \"b\" \\"].map(str::to_owned);
        assert_eq!(headers_of(&sentences), ["299 - \"a \\\"b\\\" \\\\\"", "299 - \"c\""]);
    }

    #[test]
    fn too_many_are_cut() {
        let long = |number: usize| format!("{number:04}{}", "é".repeat(296));
        let few: Vec<String> = (0..13).map(long).collect();
        assert_eq!(headers_of(&few).first(), Some(&quoted(&long(0))));
        let many: Vec<String> = (0..40).map(long).collect();
        let headers = headers_of(&many);
        let cut: String = long(15).chars().take(EACH).collect();
        assert_eq!((headers.len(), headers.last()), (16, Some(&quoted(&cut))));
    }

    #[test]
    fn the_first_stays_the_first() {
        let mut response = Response::new(crate::respond::full(""));
        let of_another = HeaderValue::from_static("299 - \"other\"");
        response.headers_mut().insert(WARNING, of_another);
        warn(&mut response, &["b".to_owned()]);
        warn_first(&mut response, "a".to_owned());
        warn(&mut response, &["c".to_owned(), "b".to_owned()]);
        let headers: Vec<_> = response.headers().get_all(WARNING).iter().collect();
        assert_eq!(
            headers,
            ["299 - \"other\"", "299 - \"a\"", "299 - \"b\"", "299 - \"c\""]
        );
    }
}
