//! Flows under a paused clock.

use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// What happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    /// A task that takes `seconds` and then succeeds.
    fn task(&self, name: &'static str, seconds: u32) -> Task<'static> {
        let log = self.clone();
        Task::new(name, move || {
            let log = log.clone();
            async move {
                tokio::time::sleep(SECOND * seconds).await;
                log.add(name);
                Ok(())
            }
        })
    }
}

fn failing(name: &'static str, error: TaskError) -> Task<'static> {
    Task::new(name, move || {
        let error = error.clone();
        async move { Err(error) }
    })
}

async fn run(graph: Graph<'_>) -> Result<(), FlowError> {
    graph.run(&ProgressReporter::none(), &CancellationToken::new()).await
}

fn status(state: TaskState, number: usize) -> Vec<TaskStatus> {
    let one = TaskStatus {
        name: "x".into(),
        after: Arc::new([]),
        state,
    };
    vec![one; number]
}

#[test]
fn cp_21_percent_and_description() {
    use TaskState::{Pending, Running, Skipped, Succeeded};
    let flow: Arc<str> = "Shoot cluster reconciliation".into();
    let table = [
        // CP-C2: 13 of 40 succeeded.
        (vec![(Succeeded, 13), (Running, 1), (Pending, 26)], 32, "x"),
        (
            vec![(Succeeded, 13), (Running, 2), (Pending, 25), (Skipped, 20)],
            32,
            "x, x",
        ),
        (
            vec![(Running, 1), (Pending, 3)],
            0,
            "Starting Shoot cluster reconciliation",
        ),
        (
            vec![(Succeeded, 1), (Running, 1), (Pending, 199)],
            0,
            "Starting Shoot cluster reconciliation",
        ),
        (
            vec![(Succeeded, 3), (Skipped, 2)],
            100,
            "Shoot cluster reconciliation finished",
        ),
        (vec![], 100, "Shoot cluster reconciliation finished"),
    ];
    for (states, percent, description) in table {
        let tasks = states
            .into_iter()
            .flat_map(|(state, number)| status(state, number))
            .collect();
        let progress = Progress::of(Arc::clone(&flow), tasks);
        assert_eq!(
            (progress.percent, progress.description.as_str()),
            (percent, description)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn cp_20_tasks_start_when_their_dependencies_are_done_or_skipped() {
    let log = Log::default();
    let mut graph = Graph::new("flow");
    let slow = graph.add(log.task("slow", 5));
    let fast = graph.add(log.task("fast", 1));
    let skipped = graph.add(log.task("skipped", 1).skip_if(true).after(&[fast]));
    let after_fast = graph.add(log.task("after fast", 1).after(&[skipped]));
    graph.add(log.task("last", 1).after(&[slow, after_fast]));
    let start = Instant::now();
    run(graph).await.unwrap();
    assert_eq!(log.take(), ["fast", "after fast", "slow", "last"]);
    assert_eq!(start.elapsed(), SECOND * 6);
}

#[tokio::test(start_paused = true)]
async fn cp_c13_a_failed_task_stops_its_dependants_only() {
    let log = Log::default();
    let mut graph = Graph::new("Shoot cluster reconciliation");
    let infrastructure = graph.add(log.task("F12", 3));
    graph.add(log.task("F13", 3).after(&[infrastructure]));
    let error = TaskError::new("no \"quota\"").with_codes(["ERR_INFRA_QUOTA_EXCEEDED"]);
    let api = graph.add(failing("Deploying Kubernetes API server", error));
    let wait = graph.add(log.task("F21", 1).after(&[api]));
    graph.add(log.task("F22", 1).after(&[wait, infrastructure]));
    let error = run(graph).await.unwrap_err();
    assert_eq!(log.take(), ["F12", "F13"]);
    assert_eq!(
        error.to_string(),
        "flow \"Shoot cluster reconciliation\" encountered task errors: \
         [task \"Deploying Kubernetes API server\" failed: no \"quota\"]"
    );
    let [failure] = error.failures() else { panic!("{error}") };
    assert_eq!(failure.task, "Deploying Kubernetes API server");
    assert_eq!(error.codes(), ["ERR_INFRA_QUOTA_EXCEEDED"]);
}

#[tokio::test(start_paused = true)]
async fn cp_20_all_errors_are_collected_and_panics_become_errors() {
    let mut graph = Graph::new("flow");
    graph.add(failing("a", TaskError::new("one").with_codes(["X", "Y"])));
    graph.add(Task::new("b", || async { panic!("number {}", 2) }).retry(SECOND, SECOND * 9));
    graph.add(failing("c", TaskError::new("three").with_codes(["Y", "Z"])));
    let start = Instant::now();
    let error = run(graph).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "flow \"flow\" encountered task errors: \
         [task \"a\" failed: one task \"b\" failed: panicked: number 2 task \"c\" failed: three]"
    );
    assert_eq!(error.codes(), ["X", "Y", "Z"]);
    assert_eq!(start.elapsed(), Duration::ZERO, "a panic is not retried");
}

#[tokio::test(start_paused = true)]
async fn cp_23_retries_until_success_severe_error_or_timeout() {
    // (succeeds at attempt, severe at attempt) → (error, attempts, seconds)
    let table = [
        (Some(3), None, None, 3, 10),
        (None, Some(2), Some("attempt 2"), 2, 5),
        // Attempts at 0, 5, …, 25 s; the deadline at 30 s ends the wait before the next one.
        (None, None, Some("attempt 6"), 6, 30),
    ];
    for (succeeds, severe, expected, attempts, seconds) in table {
        let mut made = 0;
        let count = Mutex::new(0);
        let counted = &count;
        let mut graph = Graph::new("flow");
        graph.add(
            Task::new("task", move || {
                made += 1;
                *counted.lock() = made;
                async move {
                    let error = TaskError::new(format!("attempt {made}"));
                    match made {
                        _ if Some(made) == succeeds => Ok(()),
                        _ if Some(made) == severe => Err(error.severe()),
                        _ => Err(error),
                    }
                }
            })
            .retry(SECOND * 5, SECOND * 30),
        );
        let start = Instant::now();
        let result = run(graph).await;
        let told = result.err().map(|error| error.failures()[0].error.message().to_owned());
        assert_eq!(told.as_deref(), expected);
        assert_eq!(*counted.lock(), attempts);
        assert_eq!(start.elapsed(), SECOND * seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn cp_23_a_hanging_attempt_is_dropped_at_the_timeout() {
    let mut graph = Graph::new("flow");
    graph.add(Task::new("hang", std::future::pending).retry(SECOND, SECOND * 30));
    let error = run(graph).await.unwrap_err();
    assert_eq!(error.failures()[0].error.message(), "did not finish within 30s");
}

#[tokio::test(start_paused = true)]
async fn cp_c14_skipped_tasks_are_not_executed_and_do_not_count() {
    let log = Log::default();
    let told = Log::default();
    let reporter = {
        let told = told.clone();
        ProgressReporter::new(move |progress| {
            told.add(format!("{} {}", progress.percent, progress.description));
            async {}
        })
    };
    let workerless = true;
    let mut graph = Graph::new("flow");
    let first = graph.add(log.task("F1", 1));
    let nodes = graph.add(log.task("F8", 1).skip_if(workerless).after(&[first]));
    let second = graph.add(log.task("F9", 1).after(&[nodes]));
    graph.add(log.task("F27", 1).skip_if(workerless).after(&[second]));
    assert_eq!(graph.progress().tasks.len(), 4);
    graph.run(&reporter, &CancellationToken::new()).await.unwrap();
    assert_eq!(log.take(), ["F1", "F9"]);
    assert_eq!(told.take(), ["0 Starting flow", "50 F9", "100 flow finished"]);
}

#[tokio::test(start_paused = true)]
async fn cp_21_reports_are_spaced_and_the_last_one_is_always_told() {
    let told = Log::default();
    let start = Instant::now();
    let reporter = {
        let told = told.clone();
        ProgressReporter::new(move |progress| {
            let second = start.elapsed().as_secs();
            told.add(format!("{second}s {}", progress.percent));
            async {}
        })
        .at_most_every(SECOND * 3)
    };
    let log = Log::default();
    let mut graph = Graph::new("flow");
    let mut last = Vec::new();
    for name in ["1", "2", "3", "4", "5"] {
        last = vec![graph.add(log.task(name, 1).after(&last))];
    }
    graph.run(&reporter, &CancellationToken::new()).await.unwrap();
    assert_eq!(told.take(), ["0s 0", "3s 40", "5s 100"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reporter_does_not_slow_the_flow() {
    let told = Log::default();
    let reporter = {
        let told = told.clone();
        ProgressReporter::new(move |progress| {
            told.add(progress.percent.to_string());
            tokio::time::sleep(SECOND * 3)
        })
    };
    let log = Log::default();
    let mut graph = Graph::new("flow");
    let mut last = Vec::new();
    for name in ["1", "2", "3", "4"] {
        last = vec![graph.add(log.task(name, 1).after(&last))];
    }
    let start = Instant::now();
    graph.run(&reporter, &CancellationToken::new()).await.unwrap();
    // Told at 0 s and at 3 s; the flow ends at 4 s, then the report under way and the last one are waited for.
    assert_eq!(start.elapsed(), SECOND * 9);
    let told = told.take();
    assert_eq!((told.first(), told.last()), (Some(&"0".into()), Some(&"100".into())));
    assert_eq!(told.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn cp_22_successes_are_told_before_dependants_start() {
    let log = Log::default();
    let reporter = {
        let log = log.clone();
        ProgressReporter::none().on_success(move |name| {
            let log = log.clone();
            async move {
                tokio::time::sleep(SECOND).await;
                log.add(format!("cleaned {name}"));
            }
        })
    };
    let mut graph = Graph::new("flow");
    let first = graph.add(log.task("a", 1));
    graph.add(failing("fails", TaskError::new("no")));
    graph.add(log.task("b", 1).after(&[first]));
    let result = graph.run(&reporter, &CancellationToken::new()).await;
    result.unwrap_err();
    assert_eq!(log.take(), ["a", "cleaned a", "b", "cleaned b"]);
}

#[tokio::test(start_paused = true)]
async fn st_125_cancellation_drops_what_runs_and_tells_what_failed() {
    let log = Log::default();
    let cancel = CancellationToken::new();
    let mut graph = Graph::new("flow");
    graph.add(failing("bad", TaskError::new("no")));
    let slow = graph.add(log.task("slow", 10));
    graph.add(log.task("never", 1).after(&[slow]));
    let reporter = ProgressReporter::none();
    let running = graph.run(&reporter, &cancel);
    let canceling = async {
        tokio::time::sleep(SECOND).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(running, canceling);
    assert_eq!(
        result.unwrap_err().to_string(),
        "flow \"flow\" was canceled: context canceled. \
         Encountered task errors: [task \"bad\" failed: no]"
    );
    assert!(log.take().is_empty());
}

#[test]
fn st_142_two_tasks_must_not_share_a_name() {
    let log = Log::default();
    let mut graph = Graph::new("flow");
    graph.add(log.task("a", 0));
    graph.add(log.task("a", 0));
    let result = run(graph).now_or_never().unwrap();
    assert!(matches!(result, Err(FlowError::Malformed { .. })));
}
