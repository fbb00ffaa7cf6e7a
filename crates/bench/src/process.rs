//! What Linux tells about a process: memory and processor time.

use anyhow::Context;

/// Clock ticks per second in `/proc/<pid>/stat`: Linux tells user space 100 on every architecture Rust runs on.
const TICKS: f64 = 100.0;

/// The most resident memory the process ever had, in MiB.
pub fn peak_memory(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("the process has ended")?;
    mebibytes(&status, "VmHWM:").context("/proc tells no VmHWM")
}

/// The resident memory the process has, in MiB.
pub fn memory(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("the process has ended")?;
    mebibytes(&status, "VmRSS:").context("/proc tells no VmRSS")
}

/// Processor time the process has taken, in seconds.
pub fn processor_time(pid: u32) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("the process has ended")?;
    ticks_of(&stat)
        .map(|ticks| ticks / TICKS)
        .context("/proc/<pid>/stat is not understood")
}

fn mebibytes(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes / 1024.0)
}

fn ticks_of(stat: &str) -> Option<f64> {
    // the name, in parentheses, may hold blanks
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_tells() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!(mebibytes(status, "VmHWM:"), Some(2.0));
        assert_eq!(mebibytes(status, "VmRSS:"), Some(1.0));
        assert_eq!(mebibytes("Name:\tx\n", "VmHWM:"), None);
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 100 1 1";
        assert_eq!(ticks_of(stat), Some(300.0));
        assert_eq!(ticks_of(""), None);
    }
}
