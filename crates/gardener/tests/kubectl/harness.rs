//! A landscape in a process of its own, and `kubectl` that talks to one of its clusters.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

/// How long something that must happen may take, in kubectl's words.
pub const PATIENCE: &str = "--timeout=180s";

/// Whether the tests can run here.
pub fn kubectl_exists() -> bool {
    Command::new("kubectl")
        .args(["version", "--client"])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Other versions of `kubectl` that are installed beside the one on `PATH`, as `kubectl.1.27` or `kubectl-1.27`.
pub fn other_versions() -> Vec<PathBuf> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let kubectl = std::env::split_paths(&on_path)
        .map(|dir| dir.join("kubectl"))
        .find(|path| path.is_file());
    let folder = kubectl.and_then(|path| Some(path.canonicalize().ok()?.parent()?.to_owned()));
    let mut found: Vec<PathBuf> = folder
        .and_then(|folder| std::fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("kubectl.1.") || name.starts_with("kubectl-1.")
        })
        .collect();
    found.sort();
    found
}

/// `gardener up` with a folder of its own; ends with this value.
pub struct Landscape {
    process: Process,
    dir: TempDir,
}

impl Landscape {
    /// Starts a landscape in memory and waits for the event that says that it is up.
    pub fn up(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        let mut process = Command::new(env!("CARGO_BIN_EXE_gardener"))
            .args([
                "up",
                "--memory",
                "--listen",
                "127.0.0.1:0",
                "-o",
                "json",
                "--kubeconfig",
            ])
            .arg(dir.path().join("kubeconfig"))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("gardener starts");
        let mut lines = BufReader::new(process.stdout.take().expect("standard output")).lines();
        let ready = lines.by_ref().find_map(|line| {
            let line = line.expect("a line");
            let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            (event["event"] == "ready").then_some(event)
        });
        if ready.is_none() {
            panic!("gardener up ended before it was ready: {:?}", process.wait());
        }
        let landscape = Self {
            process: Process(process),
            dir,
        };
        // what comes later must not fill the pipe
        std::thread::spawn(move || lines.for_each(drop));
        landscape
    }

    /// A folder for files of the test.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file into the folder of the test.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir().join(name);
        std::fs::write(&path, text).expect("file");
        path.display().to_string()
    }

    /// `kubectl` of the garden.
    pub fn garden(&self) -> Kubectl {
        self.kubectl("kubeconfig")
    }

    /// `kubectl` with the kubeconfig that `gardener kubeconfig <target>` writes.
    pub fn cluster(&self, target: &[&str]) -> Kubectl {
        let name = format!("{}.yaml", target.join("-").replace('/', "-"));
        let output = Command::new(env!("CARGO_BIN_EXE_gardener"))
            .arg("kubeconfig")
            .args(target)
            .arg("--kubeconfig")
            .arg(self.dir().join("kubeconfig"))
            .arg("-o")
            .arg(self.dir().join(&name))
            .output()
            .expect("gardener starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.kubectl(&name)
    }

    /// `kubectl` with a kubeconfig of the test's folder.
    pub fn kubectl(&self, kubeconfig: &str) -> Kubectl {
        Kubectl {
            program: "kubectl".into(),
            kubeconfig: self.dir().join(kubeconfig),
            cache: self.dir().join("cache"),
        }
    }
}

/// A process of ours, which ends with this value.
pub struct Process(Child);

impl Process {
    /// Starts a server that is asked nothing on its standard input.
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().expect("the server starts"))
    }

    /// Ends it with a signal, and tells how it ended.
    pub fn end(&mut self, signal: &str) -> ExitStatus {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        self.0.wait().expect("the server ends")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // one that ended already is as good
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Landscape {
    fn drop(&mut self) {
        if let Ok(Some(status)) = self.process.0.try_wait() {
            eprintln!("gardener up has ended before the test: {status}");
        }
    }
}

/// `kubectl` for one cluster.
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    cache: PathBuf,
}

/// What `kubectl` answered.
pub struct Answer {
    /// Whether it exited with 0.
    pub success: bool,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Kubectl {
    /// A program with a kubeconfig and a folder for what it remembers.
    pub fn new(program: PathBuf, kubeconfig: PathBuf, cache: PathBuf) -> Self {
        Self {
            program,
            kubeconfig,
            cache,
        }
    }

    /// The same cluster by another program, with a cache of its own.
    pub fn with_program(&self, program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            kubeconfig: self.kubeconfig.clone(),
            cache: self.cache.join(program.file_name().unwrap_or_default()),
        }
    }

    /// The command, for what the other methods do not offer.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .arg("--cache-dir")
            .arg(&self.cache)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `kubectl` with `input` on its standard input.
    pub fn run(&self, arguments: &[&str], input: &str) -> Answer {
        let mut process = self.command(arguments).spawn().expect("kubectl starts");
        let mut stdin = process.stdin.take().expect("standard input");
        // kubectl that reads no input closes its end
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = process.wait_with_output().expect("kubectl ends");
        Answer {
            success: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output of a command, given in words, that must succeed.
    pub fn ok(&self, line: &str) -> String {
        self.ok_args(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Standard output of a command that must succeed.
    pub fn ok_args(&self, arguments: &[&str]) -> String {
        self.ok_input(arguments, "")
    }

    /// Standard output of a command with an input that must succeed.
    pub fn ok_input(&self, arguments: &[&str], input: &str) -> String {
        let answer = self.run(arguments, input);
        assert!(
            answer.success,
            "{} {} failed:\n{}{}",
            self.program.display(),
            arguments.join(" "),
            answer.out,
            answer.err
        );
        answer.out
    }

    /// Standard error of a command that must fail.
    pub fn refused(&self, arguments: &[&str], input: &str) -> String {
        let answer = self.run(arguments, input);
        assert!(
            !answer.success,
            "kubectl {} succeeded:\n{}",
            arguments.join(" "),
            answer.out
        );
        answer.err
    }

    /// The arguments of a merge patch of the shoot `local`.
    pub fn shoot_patch(patch: &str) -> [&str; 8] {
        [
            "patch",
            "-n",
            "garden-local",
            "shoot",
            "local",
            "--type=merge",
            "-p",
            patch,
        ]
    }

    /// An object as JSON.
    pub fn json(&self, line: &str) -> Value {
        let text = self.ok(&format!("{line} -o json"));
        serde_json::from_str(&text).expect("JSON")
    }

    /// Asks until `wanted` holds of the answer, for as long as a loaded machine may need; `kubectl` itself takes the
    /// time between.
    pub fn until(&self, line: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let began = Instant::now();
        let mut answer = self.run(&arguments, "");
        while began.elapsed() < Duration::from_secs(300) {
            if wanted(&answer) {
                return answer;
            }
            answer = self.run(&arguments, "");
        }
        panic!(
            "kubectl {line} does not come to what is expected:\n{}{}",
            answer.out, answer.err
        );
    }
}
