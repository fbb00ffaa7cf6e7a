//! An etcd of three members, each of which can be killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::contract::FORM;
use crate::etcd::process::{FLAGS, Flat, free_url};
use crate::{EtcdConfig, EtcdStore, Options};

/// Three running members; they end with this value.
pub(super) struct Members {
    commands: Vec<Command>,
    processes: Vec<Child>,
    endpoints: Vec<String>,
    _data: tempfile::TempDir,
}

impl Members {
    pub(super) fn start(program: &Path) -> Self {
        let data = tempfile::tempdir().unwrap();
        let urls: Vec<_> = (0..6).map(|_| free_url()).collect();
        let (clients, peers) = urls.split_at(3);
        let cluster: Vec<_> = (0..3).map(|number| format!("m{number}={}", peers[number])).collect();
        let commands = (0..3).map(|number| {
            let (client, peer) = (&clients[number], &peers[number]);
            let mut command = Command::new(program);
            command
                .arg(format!("--name=m{number}"))
                .arg(format!("--data-dir={}", data.path().join(number.to_string()).display()))
                .arg(format!("--listen-client-urls={client}"))
                .arg(format!("--advertise-client-urls={client}"))
                .arg(format!("--listen-peer-urls={peer}"))
                .arg(format!("--initial-advertise-peer-urls={peer}"))
                .arg(format!("--initial-cluster={}", cluster.join(",")))
                .args(FLAGS)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        });
        let mut commands: Vec<_> = commands.collect();
        let processes = commands.iter_mut().map(|command| command.spawn().unwrap()).collect();
        Self {
            commands,
            processes,
            endpoints: clients.to_vec(),
            _data: data,
        }
    }

    /// A store that asks this member first.
    pub(super) async fn store(&mut self, first: usize, options: Options) -> EtcdStore {
        let mut endpoints = self.endpoints.clone();
        endpoints.rotate_left(first);
        let config = EtcdConfig {
            endpoints,
            ..EtcdConfig::default()
        };
        let mut last = None;
        // each try waits for seconds; a machine may have much else to do
        for _ in 0..10 {
            match EtcdStore::open(&config, Arc::new(Flat), FORM, options.clone()).await {
                Ok(store) => return store,
                Err(error) => last = Some(error),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let ended: Vec<_> = self
            .processes
            .iter_mut()
            .map(|process| process.try_wait().unwrap())
            .collect();
        panic!("the members do not come together: {last:?}; ended: {ended:?}");
    }

    pub(super) fn kill(&mut self, member: usize) {
        self.processes[member].kill().unwrap();
        self.processes[member].wait().unwrap();
    }

    pub(super) fn again(&mut self, member: usize) {
        self.processes[member] = self.commands[member].spawn().unwrap();
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // it may have ended
            process.kill().ok();
            process.wait().ok();
        }
    }
}
