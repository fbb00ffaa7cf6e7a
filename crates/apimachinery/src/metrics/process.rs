//! What Prometheus' clients tell of the process that they are in.

use super::Text;

/// Writes what Linux tells of this process; elsewhere, and where it tells nothing, nothing.
#[cfg(target_os = "linux")]
pub fn tell(out: &mut Text) {
    use procfs::process::{LimitValue, Process};

    let Ok(process) = Process::myself() else { return };
    let mut one = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            out.family(name, kind, help);
            out.sample(name, "", value);
        }
    };
    if let Ok(stat) = process.stat() {
        let ticks = procfs::ticks_per_second() as f64;
        let taken = (stat.utime + stat.stime) as f64 / ticks;
        one(
            "process_cpu_seconds_total",
            "counter",
            "Processor time, in seconds.",
            Some(taken),
        );
        let resident = stat.rss as f64 * procfs::page_size() as f64;
        one(
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory, in bytes.",
            Some(resident),
        );
        one(
            "process_virtual_memory_bytes",
            "gauge",
            "Virtual memory, in bytes.",
            Some(stat.vsize as f64),
        );
        let booted = procfs::boot_time_secs().ok();
        let started = booted.map(|booted| booted as f64 + stat.starttime as f64 / ticks);
        one(
            "process_start_time_seconds",
            "gauge",
            "When it started, in seconds of Unix's time.",
            started,
        );
    }
    let open = process.fd_count().ok().map(|number| number as f64);
    one("process_open_fds", "gauge", "Open files.", open);
    let limits = process.limits().ok();
    let most = limits.and_then(|limits| match limits.max_open_files.soft_limit {
        LimitValue::Value(most) => Some(most as f64),
        LimitValue::Unlimited => None,
    });
    one("process_max_fds", "gauge", "How many files it may open.", most);
}

/// Nothing is known.
#[cfg(not(target_os = "linux"))]
pub fn tell(_: &mut Text) {}
