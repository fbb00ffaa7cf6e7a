//! A file that gives way to a new one when it is full, with the names, limits and order of kube-apiserver's logs, which administrators' tools know:
//! `audit.log` becomes `audit-2026-01-31T23-59-59.999.log`. (Libraries that rotate logs have either a limit of files or one of their age.)

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use gardener_apimachinery::clock::Clock;
use k8s_openapi::jiff::civil::DateTime;
use k8s_openapi::jiff::tz::TimeZone;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

const STAMP: &str = "%Y-%m-%dT%H-%M-%S%.3f";
const COMPRESSED: &str = ".gz";

/// What is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of a file; 0: however many.
    pub(super) bytes: u64,
    /// Full files; 0: all.
    pub(super) files: usize,
    /// Days for which full files are kept; 0: for ever.
    pub(super) days: i64,
    /// Whether full files are compressed.
    pub(super) compress: bool,
}

/// A file that gives way to a new one when it is full.
pub(super) struct RotatingFile {
    path: PathBuf,
    file: File,
    length: u64,
    limits: Limits,
    clock: Clock,
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

impl RotatingFile {
    /// Goes on with the file that is there.
    pub(super) fn open(path: &Path, limits: Limits, clock: Clock) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file = append(path)?;
        Ok(Self {
            path: path.to_owned(),
            length: file.metadata()?.len(),
            file,
            limits,
            clock,
        })
    }

    /// Writes all of it into one file.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        if self.limits.bytes > 0 && self.length > 0 && self.length + length > self.limits.bytes {
            self.rotate()?;
        }
        self.file.write_all(bytes)?;
        self.length += length;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        fs::rename(&self.path, Backups::of(&self.path).at(now))?;
        self.file = append(&self.path)?;
        self.length = 0;
        let (backups, limits) = (Backups::of(&self.path), self.limits);
        // whoever writes does not wait until files are compressed
        std::thread::Builder::new()
            .name("audit-log-files".into())
            .spawn(move || {
                if let Err(error) = backups.tidy(limits, now) {
                    tracing::error!(%error, "old audit logs could not be tidied up");
                }
            })?;
        Ok(())
    }
}

/// The full files of a log.
struct Backups {
    folder: PathBuf,
    prefix: String,
    suffix: String,
}

impl Backups {
    fn of(path: &Path) -> Self {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let extension = path.extension().map(|extension| text(Some(extension)));
        Self {
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            prefix: text(path.file_stem()) + "-",
            suffix: extension.map_or_else(String::new, |extension| format!(".{extension}")),
        }
    }

    fn at(&self, time: Timestamp) -> PathBuf {
        let stamp = time.strftime(STAMP);
        self.folder.join(format!("{}{stamp}{}", self.prefix, self.suffix))
    }

    /// When a file became full; none, if it is another file.
    fn time_of(&self, name: &str) -> Option<Timestamp> {
        let name = name.strip_suffix(COMPRESSED).unwrap_or(name);
        let stamp = name.strip_prefix(&self.prefix)?.strip_suffix(&self.suffix)?;
        let time = DateTime::strptime(STAMP, stamp).ok()?;
        Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
    }

    /// Removes what is too old or too much, and compresses what is to be.
    fn tidy(&self, limits: Limits, now: Timestamp) -> io::Result<()> {
        let here = Path::new(".");
        let folder = Some(&*self.folder).filter(|folder| !folder.as_os_str().is_empty());
        let mut files = Vec::new();
        for entry in fs::read_dir(folder.unwrap_or(here))? {
            let entry = entry?;
            files.extend(
                self.time_of(&entry.file_name().to_string_lossy())
                    .map(|time| (time, entry.path())),
            );
        }
        files.sort_unstable();
        let oldest = match limits.days {
            0 => Timestamp::MIN,
            days => now
                .checked_sub(SignedDuration::from_hours(days.saturating_mul(24)))
                .unwrap_or(Timestamp::MIN),
        };
        let many = match limits.files {
            0 => 0,
            most => files.len().saturating_sub(most),
        };
        for (index, (time, file)) in files.into_iter().enumerate() {
            if index < many || time < oldest {
                fs::remove_file(file)?;
            } else if limits.compress && !file.to_string_lossy().ends_with(COMPRESSED) {
                compress(&file)?;
            }
        }
        Ok(())
    }
}

/// Puts a compressed file in the place of one. A file that is compressed half is not left behind.
fn compress(file: &Path) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(COMPRESSED);
    let compressed = PathBuf::from(name);
    let mut partial = compressed.clone().into_os_string();
    partial.push(".partial");
    let written = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&partial);
    let mut encoder = GzEncoder::new(written?, Compression::default());
    io::copy(&mut File::open(file)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::rename(partial, compressed)?;
    fs::remove_file(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_file_gives_way_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/audit.log");
        let clock = Clock::starting_at("2026-01-31T23:59:59.5Z".parse().unwrap());
        let limits = Limits {
            bytes: 10,
            files: 0,
            days: 0,
            compress: false,
        };
        let mut file = RotatingFile::open(&path, limits, clock.clone()).unwrap();
        for line in ["12345\n", "678\n", "more\n"] {
            file.write(line.as_bytes()).unwrap();
        }
        drop(file);
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        let mut file = RotatingFile::open(&path, limits, clock).unwrap();
        file.write(b"longer than a file\n").unwrap();
        let logs = folder.path().join("logs");
        let expected = [
            "audit-2026-01-31T23-59-59.500.log",
            "audit-2026-02-01T00-00-00.500.log",
            "audit.log",
        ];
        assert_eq!(names(&logs), expected);
        let texts = expected.map(|name| fs::read_to_string(logs.join(name)).unwrap());
        assert_eq!(texts, ["12345\n678\n", "more\n", "longer than a file\n"]);
    }

    #[test]
    fn old_files_go_and_others_are_compressed() {
        let folder = tempfile::tempdir().unwrap();
        let stamps = [
            "2026-01-01T00-00-00.000",
            "2026-01-10T00-00-00.000",
            "2026-01-11T00-00-00.000",
            "2026-01-12T00-00-00.000",
        ];
        for stamp in stamps {
            fs::write(folder.path().join(format!("audit-{stamp}.log")), stamp).unwrap();
        }
        fs::write(folder.path().join("audit-other.log"), "").unwrap();
        fs::write(folder.path().join("audit.log"), "").unwrap();
        let backups = Backups::of(&folder.path().join("audit.log"));
        let now = "2026-01-12T00:00:00Z".parse().unwrap();
        let limits = Limits {
            bytes: 0,
            files: 3,
            days: 1,
            compress: true,
        };
        backups.tidy(limits, now).unwrap();
        let left = [
            "audit-2026-01-11T00-00-00.000.log.gz",
            "audit-2026-01-12T00-00-00.000.log.gz",
            "audit-other.log",
            "audit.log",
        ];
        assert_eq!(names(folder.path()), left);
        let compressed = File::open(folder.path().join(left[0])).unwrap();
        let text = io::read_to_string(flate2::read::GzDecoder::new(compressed)).unwrap();
        assert_eq!(text, stamps[2]);
        backups.tidy(limits, now).unwrap();
        assert_eq!(names(folder.path()), left);
        backups.tidy(Limits { files: 1, ..limits }, now).unwrap();
        assert_eq!(names(folder.path()), left[1..]);
    }
}
