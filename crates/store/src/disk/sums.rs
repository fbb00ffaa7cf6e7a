//! Sums of a closed store file's bytes, kept beside it. A file that still has them is as the database left it, and is not checked page by page before it
//! is read: for a large store that is a third of the start.
//!
//! `store.redb.sums` is text: the file's length, the CRC-32 of each MiB of it, and the CRC-32 of these lines. It is a hint and is not made durable: where it is
//! missing, torn or old, the database checks its file itself.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, available_parallelism};

use redb::StorageBackend;

use super::file::FILE;
use super::folder::Folder;

pub(super) const SUMS: &str = "store.redb.sums";
/// How many bytes have one sum.
const BLOCK: usize = 1 << 20;
/// How many threads read at most: more of them wait for memory.
const MOST_THREADS: usize = 4;

/// Whether a folder's store file is, byte for byte, as it was when its sums were kept. What cannot be read is not.
pub(super) fn unchanged<F: Folder>(folder: &F) -> bool {
    let kept = text(folder).and_then(|text| parsed(&text));
    let Some((length, wanted)) = kept else { return false };
    let same = || -> io::Result<bool> {
        let file = folder.open(FILE)?;
        Ok(file.len()? == length && sums(&file, length, Some(&wanted))?.is_some())
    };
    same().unwrap_or(false)
}

/// Keeps the sums of a folder's store file, which nobody has open.
pub(super) fn keep<F: Folder>(folder: &F) -> io::Result<()> {
    let file = folder.open(FILE)?;
    let length = file.len()?;
    let sums = sums(&file, length, None)?.unwrap_or_default();
    let text = written(length, &sums);
    if folder.length(SUMS)?.is_some() {
        folder.remove(SUMS)?;
    }
    let kept = folder.create(SUMS)?;
    kept.set_len(text.len() as u64)?;
    kept.write(0, text.as_bytes())
}

fn written(length: u64, sums: &[u32]) -> String {
    let lines = sums.iter().map(|sum| format!("{sum:08x}\n"));
    let text: String = [format!("{length}\n")].into_iter().chain(lines).collect();
    let own = crc32fast::hash(text.as_bytes());
    format!("{text}{own:08x}\n")
}

fn parsed(text: &str) -> Option<(u64, Vec<u32>)> {
    let sum = |line: &str| u32::from_str_radix(line, 16).ok();
    let (lines, own) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    if sum(own)? != crc32fast::hash(format!("{lines}\n").as_bytes()) {
        return None;
    }
    let (length, sums) = lines.split_once('\n').unwrap_or((lines, ""));
    Some((length.parse().ok()?, sums.lines().map(sum).collect::<Option<_>>()?))
}

fn text<F: Folder>(folder: &F) -> Option<String> {
    let length = folder.length(SUMS).ok()??;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    folder.open(SUMS).and_then(|file| file.read(0, &mut bytes)).ok()?;
    String::from_utf8(bytes).ok()
}

/// The sum of each block; none as soon as one is not as wanted.
fn sums(file: &impl StorageBackend, length: u64, wanted: Option<&[u32]>) -> io::Result<Option<Vec<u32>>> {
    let blocks = usize::try_from(length.div_ceil(BLOCK as u64)).map_err(io::Error::other)?;
    let threads = available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let other = AtomicBool::new(wanted.is_some_and(|wanted| wanted.len() != blocks));
    // with n threads each takes every n-th block, so that the first ones, where a database that was not closed tells so, are looked at first
    let work = |first: usize| -> io::Result<Vec<u32>> {
        let mut buffer = vec![0; BLOCK.min(usize::try_from(length).unwrap_or(BLOCK))];
        let mut found = Vec::new();
        for block in (first..blocks).step_by(threads) {
            if other.load(Ordering::Relaxed) {
                break;
            }
            let start = block as u64 * BLOCK as u64;
            let rest = usize::try_from(length - start).unwrap_or(BLOCK);
            let read = buffer.get_mut(..rest.min(BLOCK)).unwrap_or_default();
            file.read(start, read)?;
            let sum = crc32fast::hash(read);
            if wanted.is_some_and(|wanted| wanted.get(block) != Some(&sum)) {
                other.store(true, Ordering::Relaxed);
            }
            found.push(sum);
        }
        Ok(found)
    };
    let found: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|first| scope.spawn(move || work(first))).collect();
        let joined = started.into_iter().map(|thread| thread.join());
        let ended = joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect::<io::Result<_>>()
    })?;
    if other.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let block = |block: usize| {
        found
            .get(block % threads)
            .and_then(|own| own.get(block / threads))
            .copied()
    };
    Ok((0..blocks).map(block).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::faults::Disk;

    /// A disk with a store file of some bytes.
    fn disk(bytes: &[u8]) -> Disk {
        let disk = Disk::new(1);
        write(&disk, FILE, bytes);
        disk
    }

    fn write(disk: &Disk, name: &str, bytes: &[u8]) {
        if disk.length(name).unwrap().is_some() {
            disk.remove(name).unwrap();
        }
        disk.create(name).unwrap().write(0, bytes).unwrap();
    }

    #[test]
    fn any_other_byte_or_length_is_noticed() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let disk = disk(&bytes);
            assert!(!unchanged(&disk), "nothing is kept yet");
            keep(&disk).unwrap();
            assert!(unchanged(&disk), "{length} bytes");
            for at in [0, length / 2, length.saturating_sub(1)] {
                let mut other = bytes.clone();
                if let Some(byte) = other.get_mut(at) {
                    *byte ^= 1;
                    write(&disk, FILE, &other);
                    assert!(!unchanged(&disk), "byte {at} of {length}");
                }
            }
            write(&disk, FILE, &[&bytes[..], &[0]].concat());
            assert!(!unchanged(&disk), "{length} bytes and one more");
            write(&disk, FILE, &bytes);
            assert!(unchanged(&disk));
            keep(&disk).unwrap();
            assert!(unchanged(&disk), "kept again");
        }
    }

    #[test]
    fn torn_sums_count_for_nothing() {
        let disk = disk(&[7; 3 * BLOCK]);
        keep(&disk).unwrap();
        let whole = text(&disk).unwrap();
        for end in 0..whole.len() {
            write(&disk, SUMS, &whole.as_bytes()[..end]);
            assert!(!unchanged(&disk), "{end} bytes of {}", whole.len());
        }
        write(&disk, SUMS, b"\xff\xfe");
        assert!(!unchanged(&disk));
        write(&disk, SUMS, whole.as_bytes());
        assert!(unchanged(&disk));
    }
}
