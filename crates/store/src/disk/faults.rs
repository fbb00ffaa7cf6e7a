//! For tests: a folder in memory whose disk fails, tears writes, fills up, is slow, and loses power.
//!
//! What was written but not synced may be there after a power loss or not, sector by sector; so may names that the folder has not synced.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redb::StorageBackend;

use super::folder::Folder;
use crate::dice::Dice;

/// What a disk keeps or loses at once.
const SECTOR: usize = 512;
/// What a file system gives to a file at once.
const BLOCK: usize = 4096;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing works any more.
    Gone,
    /// One write fails after it was made in part; all others work.
    TornWrite,
    /// One sync fails and forgets what it was to write, as Linux does; all others work.
    FailedSync,
    /// The program's own code gives up.
    Panic,
}

/// The disk, with one folder of files. Clones are the same disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    files: Vec<File>,
    /// As programs see them, and as they are after a power loss.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    unsynced_names: Vec<Naming>,
    /// How often it lost power: who had files open before has them no more.
    lives: u64,
    dice: Dice,
    fault: Option<(u64, Fault)>,
    gone: bool,
    blocks: Option<usize>,
    sync_takes: Duration,
    sync_lies: bool,
    syncs: u64,
}

#[derive(Debug, Default)]
struct File {
    current: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Step>,
    blocks: BTreeSet<usize>,
}

#[derive(Clone, Debug)]
enum Naming {
    Set(String, usize),
    Remove(String),
    Rename(String, String),
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set(name, file) => drop(names.insert(name.clone(), *file)),
            Self::Remove(name) => drop(names.remove(name)),
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Length(usize),
    Write(usize, Vec<u8>),
}

impl Step {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Length(length) => image.resize(*length, 0),
            Self::Write(at, data) => {
                if image.len() < at + data.len() {
                    image.resize(at + data.len(), 0);
                }
                image[*at..at + data.len()].copy_from_slice(data);
            }
        }
    }

    /// What of it survives when nobody waited for it.
    fn in_part(&self, dice: &mut Dice) -> Vec<Step> {
        match (dice.below(3), self) {
            (0, _) => Vec::new(),
            (1, Self::Write(at, data)) => {
                // sectors lie at multiples of their size
                let first = SECTOR - at % SECTOR;
                let ends = (first..data.len()).step_by(SECTOR).chain([data.len()]);
                let starts = [0].into_iter().chain((first..data.len()).step_by(SECTOR));
                let sectors = starts.zip(ends).filter(|_| dice.one_in(2));
                sectors
                    .map(|(start, end)| Self::Write(at + start, data[start..end].to_vec()))
                    .collect()
            }
            _ => vec![self.clone()],
        }
    }
}

fn failure(reason: &'static str) -> io::Error {
    io::Error::other(reason)
}

impl State {
    /// One operation that changes something.
    fn operate(&mut self, write: bool, sync: bool) -> io::Result<Option<Fault>> {
        if self.gone {
            return Err(failure("the disk is gone"));
        }
        match &mut self.fault {
            Some((0, fault)) => {
                let fault = *fault;
                let meets = match fault {
                    Fault::TornWrite => write,
                    Fault::FailedSync => sync,
                    Fault::Gone | Fault::Panic => true,
                };
                if !meets {
                    return Ok(None);
                }
                self.fault = None;
                if fault == Fault::Gone {
                    self.gone = true;
                    return Err(failure("the disk is gone"));
                }
                Ok(Some(fault))
            }
            Some((left, _)) => {
                *left -= 1;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn name(&mut self, naming: Naming) -> io::Result<()> {
        self.operate(false, false)?;
        naming.apply(&mut self.names);
        self.unsynced_names.push(naming);
        Ok(())
    }
}

impl Disk {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            lives: 0,
            dice: Dice::new(seed),
            fault: None,
            gone: false,
            blocks: None,
            sync_takes: Duration::ZERO,
            sync_lies: false,
            syncs: 0,
        })))
    }

    /// Something goes wrong after so many operations that change something.
    pub(crate) fn fail_after(&self, operations: u64, fault: Fault) {
        self.0.lock().fault = Some((operations, fault));
    }

    /// How many more blocks of 4 KiB there are; as many as wanted if none.
    pub(crate) fn limit(&self, blocks: Option<usize>) {
        let mut state = self.0.lock();
        let used: usize = state.files.iter().map(|file| file.blocks.len()).sum();
        state.blocks = blocks.map(|more| used + more);
    }

    /// How long each sync takes.
    pub(crate) fn slow_down(&self, sync_takes: Duration) {
        self.0.lock().sync_takes = sync_takes;
    }

    /// From now on it says that it has synced, and has not.
    pub(crate) fn lie(&self) {
        self.0.lock().sync_lies = true;
    }

    /// How many syncs there were.
    pub(crate) fn syncs(&self) -> u64 {
        self.0.lock().syncs
    }

    /// Loses power, and has it again: nobody has its files open any more, nothing is wrong with it any more.
    pub(crate) fn lose_power(&self) {
        let mut state = self.0.lock();
        let State {
            files,
            names,
            durable_names,
            unsynced_names,
            lives,
            dice,
            ..
        } = &mut *state;
        *lives += 1;
        for file in files {
            for step in std::mem::take(&mut file.unsynced) {
                step.in_part(dice).iter().for_each(|step| step.apply(&mut file.durable));
            }
            file.current = file.durable.clone();
            file.blocks = (0..file.current.len().div_ceil(BLOCK)).collect();
        }
        // file systems keep names in the order of their journal
        let kept = dice.below(unsynced_names.len() as u64 + 1) as usize;
        unsynced_names
            .drain(..)
            .take(kept)
            .for_each(|naming| naming.apply(durable_names));
        *names = durable_names.clone();
        state.fault = None;
        state.gone = false;
        state.blocks = None;
        state.sync_takes = Duration::ZERO;
        state.sync_lies = false;
    }

    fn handle(&self, file: usize, state: &State) -> Handle {
        Handle {
            disk: self.clone(),
            file,
            life: state.lives,
        }
    }
}

impl Folder for Disk {
    type File = Handle;

    fn path(&self) -> &Path {
        Path::new("simulated")
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        let state = self.0.lock();
        let file = state.names.get(name);
        Ok(file.map(|file| state.files[*file].current.len() as u64))
    }

    fn create(&self, name: &str) -> io::Result<Handle> {
        let mut state = self.0.lock();
        let file = state.files.len();
        state.name(Naming::Set(name.to_owned(), file))?;
        state.files.push(File::default());
        Ok(self.handle(file, &state))
    }

    fn open(&self, name: &str) -> io::Result<Handle> {
        let state = self.0.lock();
        let file = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(file, &state))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().name(Naming::Remove(name.to_owned()))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.lock().name(Naming::Rename(from.to_owned(), to.to_owned()))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.operate(false, true)?.is_some() {
            return Err(failure("the folder was not synced"));
        }
        let State {
            durable_names,
            unsynced_names,
            ..
        } = &mut *state;
        unsynced_names.drain(..).for_each(|naming| naming.apply(durable_names));
        Ok(())
    }
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Handle {
    disk: Disk,
    file: usize,
    life: u64,
}

impl Handle {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.0.lock();
        if state.lives != self.life {
            return Err(failure("the power went"));
        }
        act(&mut state)
    }
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        self.with(|state| Ok(state.files[self.file].current.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.with(|state| {
            let at = offset as usize;
            let found = state.files[self.file].current.get(at..at + out.len());
            out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let fault = self.with(|state| {
            let fault = state.operate(false, false)?;
            let step = Step::Length(len as usize);
            let file = &mut state.files[self.file];
            step.apply(&mut file.current);
            file.blocks.split_off(&(len as usize).div_ceil(BLOCK));
            file.unsynced.push(step);
            Ok(fault)
        })?;
        assert_ne!(fault, Some(Fault::Panic), "told to");
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let takes = self.with(|state| {
            state.syncs += 1;
            Ok(state.sync_takes)
        })?;
        if !takes.is_zero() {
            #[allow(clippy::disallowed_methods)] // in the committer's thread, as a disk is slow
            std::thread::sleep(takes);
        }
        let fault = self.with(|state| {
            let fault = state.operate(false, true)?;
            let State {
                files, dice, sync_lies, ..
            } = &mut *state;
            let file = &mut files[self.file];
            if *sync_lies {
                return Ok(fault);
            }
            for step in std::mem::take(&mut file.unsynced) {
                let steps = match fault {
                    Some(Fault::FailedSync) => step.in_part(dice),
                    _ => vec![step],
                };
                steps.iter().for_each(|step| step.apply(&mut file.durable));
            }
            Ok(fault)
        })?;
        assert_ne!(fault, Some(Fault::Panic), "told to");
        match fault {
            Some(_) => Err(failure("the disk did not sync")),
            None => Ok(()),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let fault = self.with(|state| {
            let fault = state.operate(true, false)?;
            let at = offset as usize;
            let used: usize = state.files.iter().map(|file| file.blocks.len()).sum();
            let State {
                files, dice, blocks, ..
            } = &mut *state;
            let file = &mut files[self.file];
            let wanted: Vec<usize> = (at / BLOCK..(at + data.len()).div_ceil(BLOCK))
                .filter(|block| !file.blocks.contains(block))
                .collect();
            if blocks.is_some_and(|blocks| used + wanted.len() > blocks) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            file.blocks.extend(wanted);
            let step = Step::Write(at, data.to_vec());
            let steps = match fault {
                Some(Fault::TornWrite) => step.in_part(dice),
                _ => vec![step],
            };
            for step in steps {
                step.apply(&mut file.current);
                file.unsynced.push(step);
            }
            Ok(fault)
        })?;
        assert_ne!(fault, Some(Fault::Panic), "told to");
        match fault {
            Some(_) => Err(failure("the disk took a part of it")),
            None => Ok(()),
        }
    }
}
