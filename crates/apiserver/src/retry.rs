//! Questions to other servers that are asked again when the other server has trouble that may pass.

use std::time::Duration;

use tokio::time::sleep;

/// How often a question is asked; as upstream.
const ATTEMPTS: u32 = 5;
/// How long until it is asked for the second time; then half as long again each time.
const PAUSE: Duration = Duration::from_millis(500);

/// Asks until there is an answer, or a failure that will not pass, or patience has ended; gives the last of it.
pub(crate) async fn repeated<T, E, F>(attempt: impl FnMut() -> F, passes: impl Fn(&E) -> bool) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    repeated_after(PAUSE, attempt, passes).await
}

/// As [`repeated`], with another pause until it is asked for the second time.
pub(crate) async fn repeated_after<T, E, F>(
    mut pause: Duration,
    mut attempt: impl FnMut() -> F,
    passes: impl Fn(&E) -> bool,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(error) if passes(&error) => {}
            outcome => return outcome,
        }
        sleep(pause).await;
        pause = pause * 3 / 2;
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_asked_again() {
        let begun = Instant::now();
        let mut asked = 0;
        let outcome: Result<(), u32> = repeated(
            || {
                asked += 1;
                std::future::ready(Err(asked))
            },
            |_| true,
        )
        .await;
        // the runtime's timers count whole milliseconds
        assert_eq!((outcome, begun.elapsed().as_millis()), (Err(5), 4063));
        let mut asked = 0;
        let outcome: Result<u32, u32> = repeated(
            || {
                asked += 1;
                std::future::ready(if asked == 2 { Err(asked) } else { Err(0) })
            },
            |error| *error == 0,
        )
        .await;
        assert_eq!(outcome, Err(2));
    }
}
