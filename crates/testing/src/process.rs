// SPDX-License-Identifier: GPL-3.0-or-later
//! Processes: the system's data about them, and servers started by scripts.

use super::Daemon;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// Ticks of the kernel's accounts in a second.
const TICKS: f64 = 100.0;

/// CPU seconds of a process so far, in user and system mode; 0 if it has ended.
pub fn processor(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(')') else { return 0.0 };
    let ticks = rest.split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS
}

/// Kilobytes in a line of its status: `VmRSS` is its current memory, `VmHWM` the maximum so far.
pub fn kilobytes(pid: u32, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
    value.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}

/// A daemon's memory in kilobytes.
pub fn resident(daemon: &Daemon) -> u64 {
    kilobytes(daemon.pid(), "VmRSS")
}

/// Starts a script that prints the number of its server's process and ends with its standard input. Returns it with that number.
pub(crate) fn start_server(command: &mut Command) -> (Child, String) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    (child, pid.trim().to_owned())
}
