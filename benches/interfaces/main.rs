// SPDX-License-Identifier: GPL-3.0-or-later
//! The interfaces other than the milter's, under load, and the programs that they replace: the work of each in a CPU second.
//!
//!     cargo bench --bench interfaces [-- dccifd] [-- pyzor] [-- razor]
//!
//! Starts the real program with a fresh ledger on the project's disk and sends it requests as the clients do. Seconds are the
//! server process's user and system time (from /proc), so other load on the machine matters little; latencies include all of it.
//! Contenders take turns in one run: the milter's socket, `dccifd`'s and that of a program that only answers; and `pyzord` of PyPI,
//! in an environment that pip makes in the target folder, where PyPI can be reached.

#[path = "../load/mod.rs"]
mod load;

mod dccifd;
mod pyzor;
mod pyzord;
mod razor;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [of, path] = &args[..]
        && of == dccifd::ONLY_ANSWERS
    {
        return dccifd::only_answer(path);
    }
    // `cargo test --benches` runs this without `--bench`: then there is nothing to measure.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let all: [(&str, fn()); 3] = [("dccifd", dccifd::run), ("pyzor", pyzor::run), ("razor", razor::run)];
    let is_chosen = |name: &str| args.iter().any(|arg| arg == name);
    let chooses = all.iter().any(|(name, _)| is_chosen(name));
    for (_, run) in all.iter().filter(|(name, _)| !chooses || is_chosen(name)) {
        run();
        println!();
    }
}
