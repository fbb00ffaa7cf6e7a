//! What an API server's answer about its health means [ST-53].

use super::Finding;

/// What came back from `/healthz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing, or a refusal; why.
    Error(String),
    /// An answer: its status code and its text.
    Told(u16, String),
}

/// Whether an API server is available. A status from 400 on is an error of the request, as clients see it.
///
/// # Errors
/// What is wrong.
pub fn is_available(answer: &Answer) -> Result<(), Finding> {
    let failed = |error: &str| {
        // nobody measures it, upstream neither: a figure that changes would make news of every look
        let text = format!("Request to API server /healthz endpoint failed. [response_time:0ms] ({error})");
        Err(Finding::new("HealthzRequestFailed", text))
    };
    match answer {
        Answer::Error(error) => failed(error),
        Answer::Told(200, _) => Ok(()),
        Answer::Told(code @ 400.., body) => failed(&format!("{code}: {}", body.trim())),
        Answer::Told(code, body) => {
            let text = format!("API server /healthz endpoint check returned a non ok status code {code}. ({body})");
            Err(Finding::new("HealthzRequestError", text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_53_answers() {
        let told = |code: u16, body: &str| Answer::Told(code, body.to_owned());
        let failed = "Request to API server /healthz endpoint failed. [response_time:0ms] ";
        let table = [
            (told(200, "ok"), None),
            (
                Answer::Error("connection refused".to_owned()),
                Some(("HealthzRequestFailed", format!("{failed}(connection refused)"))),
            ),
            (
                told(500, "etcd failed\n"),
                Some(("HealthzRequestFailed", format!("{failed}(500: etcd failed)"))),
            ),
            (
                told(204, "x"),
                Some((
                    "HealthzRequestError",
                    "API server /healthz endpoint check returned a non ok status code 204. (x)".to_owned(),
                )),
            ),
        ];
        for (answer, expected) in table {
            let expected = expected.map(|(reason, message)| Finding::new(reason, message));
            assert_eq!(is_available(&answer).err(), expected, "{answer:?}");
        }
    }
}
