// SPDX-License-Identifier: GPL-3.0-or-later
//! Metrics that every process has, under the names of Prometheus' own libraries; from /proc.

use super::exposition::Text;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::sync::LazyLock;

/// Writes the kernel's data about this process; missing data are omitted.
pub(super) fn process_metrics(text: &mut Text) {
    let memory = |text: &mut Text, name: &str, help: &str, bytes: Option<u64>| {
        if let Some(bytes) = bytes {
            text.one(name, "gauge", help, bytes);
        }
    };
    if let Some(stat) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(Stat::read) {
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        text.one(
            "process_cpu_seconds_total",
            "counter",
            "Time that the process spent on CPUs, in user and system mode.",
            stat.cpu_ticks as f64 / ticks,
        );
        text.one(
            "process_start_time_seconds",
            "gauge",
            "When the process was started, in seconds since 1970.",
            *BOOT + stat.start_ticks as f64 / ticks,
        );
        let resident = stat.resident_pages.saturating_mul(rustix::param::page_size() as u64);
        memory(text, "process_resident_memory_bytes", "Memory of the process.", Some(resident));
        memory(
            text,
            "process_virtual_memory_bytes",
            "Memory that is mapped, in use or not.",
            Some(stat.virtual_bytes),
        );
    }
    let open = fs::read_dir("/proc/self/fd").map(|files| files.count() as u64).ok();
    // One of them is the directory itself.
    memory(text, "process_open_fds", "Open files.", open.map(|open| open.saturating_sub(1)));
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    memory(text, "process_max_fds", "Files that may be open.", most);
}

/// Fields of proc(5)'s `stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    /// Ticks since the machine was started.
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn read(text: &str) -> Option<Self> {
        // The name of the program is in brackets, and may contain any letter.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        // The state is field 3 of proc(5).
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// The start of the machine, in seconds since 1970, computed at the first use. By clocks, since systemd's hardening hides all of /proc but the
/// processes.
static BOOT: LazyLock<f64> = LazyLock::new(|| {
    let seconds = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    (seconds(ClockId::Realtime) - seconds(ClockId::Boottime)).round()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_whatever_the_program_is_called() {
        let text = "7 (a) R (b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 99000 123456789 2048 1 1";
        let expected =
            Stat { cpu_ticks: 300, start_ticks: 99_000, virtual_bytes: 123_456_789, resident_pages: 2048 };
        assert_eq!(Stat::read(text), Some(expected));
        assert_eq!(Stat::read("7 (a) S 1"), None);
    }
}
