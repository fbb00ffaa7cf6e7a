//! One container of a pod: waiting, running, ended, and when it starts again.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Config, Engine, Invocation, NodeState, PodKey, Program};

/// The first wait after a container ended twice; it doubles up to [`MAX_BACKOFF`].
const BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(300);
/// A container that ran for so long starts at once when it ends.
const STABLE: i64 = 600;
/// The exit code of a container that was killed.
const KILLED: i32 = 137;

/// A program under way.
pub(super) struct Run {
    stop: CancellationToken,
    ready: watch::Receiver<bool>,
    exit: Arc<OnceLock<i32>>,
    task: AbortHandle,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ended {
    pub exit: i32,
    pub started: Time,
    pub finished: Time,
    pub id: String,
}

/// What a container does now.
pub(super) enum State {
    /// It was never started.
    Waiting,
    /// It starts at this time.
    Starting(Instant),
    Running {
        since: Time,
        /// When a simulated container becomes ready.
        ready_at: Instant,
        /// When a simulated container ends by itself, or because it was asked to, and with which code.
        ends: Option<(Instant, i32)>,
        run: Option<Run>,
        stopping: bool,
    },
    /// It ended, and starts again at the time given.
    Ended(Ended, Option<Instant>),
}

/// A container as the kubelet tracks it.
pub(super) struct Tracked {
    pub state: State,
    pub last: Option<Ended>,
    pub restarts: i32,
    pub id: String,
    /// How often in a row it ended early.
    failures: u32,
}

impl Tracked {
    pub fn new() -> Self {
        Self {
            state: State::Waiting,
            last: None,
            restarts: 0,
            id: String::new(),
            failures: 0,
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Whether it ended for good with code 0.
    pub fn succeeded(&self) -> bool {
        matches!(&self.state, State::Ended(ended, None) if ended.exit == 0)
    }

    /// Whether it neither runs nor is about to.
    pub fn is_over(&self) -> bool {
        !matches!(self.state, State::Running { .. } | State::Starting(_))
    }

    pub fn is_ready(&self, now: Instant) -> bool {
        match &self.state {
            State::Running {
                run: Some(run),
                stopping,
                ..
            } => !stopping && *run.ready.borrow(),
            State::Running { ready_at, stopping, .. } => !stopping && now >= *ready_at,
            _ => false,
        }
    }

    /// When something happens next by itself.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        match &self.state {
            State::Starting(at) | State::Ended(_, Some(at)) => Some(*at),
            State::Running {
                ready_at, ends, run, ..
            } => {
                let ready = Some(*ready_at).filter(|at| run.is_none() && *at > now);
                let ends = ends.map(|(at, _)| at);
                ready.into_iter().chain(ends).min()
            }
            State::Waiting | State::Ended(_, None) => None,
        }
    }

    /// Moves on to where the time and the program have come. Answers whether the container has to be started now.
    pub fn advance(&mut self, now: Instant, time: &Time, policy: &str, deleting: bool) -> bool {
        match &self.state {
            State::Starting(at) => *at <= now,
            State::Ended(_, Some(at)) if *at <= now && !deleting => true,
            State::Running { since, ends, run, .. } => {
                let exit = match run {
                    Some(run) => run.exit.get().copied(),
                    None => ends.filter(|(at, _)| *at <= now).map(|(_, exit)| exit),
                };
                let since = since.clone();
                if let Some(exit) = exit {
                    self.end(exit, since, time, now, policy, deleting);
                }
                false
            }
            _ => false,
        }
    }

    fn end(&mut self, exit: i32, started: Time, time: &Time, now: Instant, policy: &str, deleting: bool) {
        let again = !deleting && (policy == "Always" || policy == "OnFailure" && exit != 0);
        if time.0.duration_since(started.0).as_secs() >= STABLE {
            self.failures = 0;
        }
        let wait = match self.failures {
            0 => Duration::ZERO,
            failures => BACKOFF
                .saturating_mul(1u32.checked_shl(failures - 1).unwrap_or(u32::MAX))
                .min(MAX_BACKOFF),
        };
        self.failures = self.failures.saturating_add(1);
        let ended = Ended {
            exit,
            started,
            finished: time.clone(),
            id: self.id.clone(),
        };
        self.state = State::Ended(ended, again.then(|| now + wait));
    }

    /// Asks a running container to end; what did not run yet never will.
    pub fn stop(&mut self, container: &Container, config: &Config, now: Instant) {
        match &mut self.state {
            State::Running {
                run: Some(run),
                stopping,
                ..
            } => {
                *stopping = true;
                run.stop.cancel();
            }
            State::Running { ends, stopping, .. } if !*stopping => {
                *stopping = true;
                let at = now + config.end + pre_stop(container);
                // what handles the signal ends with success
                *ends = Some((at, 0));
            }
            State::Starting(_) => self.state = State::Waiting,
            State::Ended(_, again) => *again = None,
            _ => {}
        }
    }

    /// Ends a container whose grace period is over.
    pub fn kill(&mut self, time: &Time, now: Instant) {
        if let State::Running { since, run, .. } = &self.state {
            if let Some(run) = run {
                run.task.abort();
            }
            let since = since.clone();
            self.end(KILLED, since, time, now, "Never", true);
        }
    }
}

/// How long the `preStop` hook sleeps.
fn pre_stop(container: &Container) -> Duration {
    let hook = container
        .lifecycle
        .as_ref()
        .and_then(|lifecycle| lifecycle.pre_stop.as_ref());
    let seconds = |hook: &LifecycleHandler| {
        let slept = hook.sleep.as_ref().map(|sleep| sleep.seconds);
        slept.or_else(|| {
            sleeps(
                hook.exec
                    .as_ref()
                    .and_then(|exec| exec.command.as_deref())
                    .unwrap_or_default(),
            )
        })
    };
    let seconds = hook.and_then(seconds).unwrap_or(0);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// The number behind a word in a command, also within a shell's argument.
fn number_behind(command: &[String], word: &str) -> Option<i64> {
    let words: Vec<&str> = command
        .iter()
        .flat_map(|part| part.split(|c: char| c.is_whitespace() || c == ';' || c == '&'))
        .filter(|part| !part.is_empty())
        .collect();
    words
        .windows(2)
        .filter(|pair| pair[0].rsplit('/').next() == Some(word))
        .find_map(|pair| pair[1].parse().ok())
}

fn sleeps(command: &[String]) -> Option<i64> {
    number_behind(command, "sleep")
}

/// How long a simulated container runs that ends by itself, and its exit code.
pub(super) fn simulated_run(container: &Container, config: &Config) -> (Duration, i32) {
    let mut command = container.command.clone().unwrap_or_default();
    command.extend(container.args.clone().unwrap_or_default());
    let seconds = sleeps(&command).and_then(|seconds| u64::try_from(seconds).ok());
    let exit = number_behind(&command, "exit").and_then(|code| i32::try_from(code).ok());
    let fails = command
        .first()
        .is_some_and(|first| first.rsplit('/').next() == Some("false"));
    (
        seconds.map_or(config.run, Duration::from_secs),
        exit.unwrap_or(i32::from(fails)),
    )
}

/// Who runs a container: a program, or nobody (then it is simulated).
pub(super) fn program_of(config: &Config, pod: &Pod, container: &Container) -> Option<Arc<dyn Program>> {
    config
        .programs
        .iter()
        .find(|program| program.runs(pod, container))
        .cloned()
}

/// Starts a program; what it does reaches the pod's key in the engine's queue.
pub(super) fn spawn(
    engine: &Arc<Engine>,
    node: &NodeState,
    key: &PodKey,
    pod: &Arc<Pod>,
    container: &Container,
    program: Arc<dyn Program>,
) -> Run {
    let stop = node.stop.child_token();
    let (sender, ready) = watch::channel(false);
    let exit: Arc<OnceLock<i32>> = Arc::default();
    let invocation = Invocation {
        cluster: node.config.cluster.clone(),
        node: node.config.name.clone(),
        pod: Arc::clone(pod),
        container: container.clone(),
        stop: stop.clone(),
        ready: sender,
    };
    let (mut changes, told, queue, key) = (ready.clone(), Arc::clone(&exit), engine.pods.clone(), key.clone());
    let task = tokio::spawn(async move {
        let run = AssertUnwindSafe(async move { program.run(invocation).await }).catch_unwind();
        let mut run = std::pin::pin!(run);
        let mut follows = true;
        let code = loop {
            tokio::select! {
                biased;
                code = &mut run => break code.unwrap_or(2),
                changed = changes.changed(), if follows => {
                    follows = changed.is_ok();
                    queue.add(key.clone());
                }
            }
        };
        // set once, here only
        let _ = told.set(code);
        queue.add(key);
    });
    Run {
        stop,
        ready,
        exit,
        task: task.abort_handle(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(command: &[&str]) -> Container {
        Container {
            command: Some(command.iter().map(|part| (*part).to_owned()).collect()),
            ..Container::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn commands_tell_how_a_simulated_container_ends() {
        let config = Config::new(gardener_apimachinery::clock::Clock::starting_at(
            k8s_openapi::jiff::Timestamp::UNIX_EPOCH,
        ));
        let run = |command: &[&str]| {
            let (duration, exit) = simulated_run(&container(command), &config);
            (duration.as_secs(), exit)
        };
        assert_eq!(run(&["true"]), (1, 0));
        assert_eq!(run(&["/bin/false"]), (1, 1));
        assert_eq!(run(&["sh", "-c", "sleep 30; exit 3"]), (30, 3));
        assert_eq!(run(&["/bin/sleep", "5"]), (5, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn containers_that_keep_ending_wait_longer_each_time() {
        let time = Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH);
        let mut tracked = Tracked::new();
        let mut waits = Vec::new();
        for _ in 0..8 {
            let now = Instant::now();
            tracked.end(1, time.clone(), &time, now, "Always", false);
            let State::Ended(_, Some(at)) = tracked.state else {
                panic!()
            };
            waits.push((at - now).as_secs());
        }
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        tracked.end(0, time.clone(), &time, Instant::now(), "OnFailure", false);
        assert!(tracked.succeeded());
    }
}
