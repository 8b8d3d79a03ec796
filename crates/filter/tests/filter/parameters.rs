// SPDX-License-Identifier: GPL-3.0-or-later
//! Errors for filters that cannot be made name the parameter and the expected values.

use bulkmark_filter::{Bloom, Counting, Intuitive, Merged, ParameterError, Refined, Sharded};

fn error_text<T>(made: Result<T, ParameterError>) -> String {
    made.err().expect("it was made").to_string()
}

/// Returns the errors of each kind of counting filter for a number of blocks.
fn each(blocks: usize) -> [String; 3] {
    [error_text(Refined::new(blocks)), error_text(Intuitive::new(blocks)), error_text(Merged::new(blocks))]
}

#[test]
fn an_invalid_number_of_blocks() {
    for blocks in [0, (1 << 32) + 1, usize::MAX] {
        let expected = format!("blocks is {blocks}, expected 1 to 4294967296");
        assert_eq!(each(blocks), [(); 3].map(|()| expected.clone()));
    }
    // The blocks are divided among 16 parts.
    assert_eq!(error_text(Sharded::new(0)), "blocks is 0, expected 1 to 4294967296");
    assert_eq!(error_text(Sharded::new((1 << 36) + 1)), "blocks is 4294967297, expected 1 to 4294967296");
}

/// Whether the kernel promises more memory than there is, as it can be configured to do.
#[cfg(target_os = "linux")]
fn gives_out_too_much(bytes: u64) -> bool {
    let policy = std::fs::read_to_string("/proc/sys/vm/overcommit_memory").unwrap();
    let info = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kilobytes = |name| -> u64 {
        let line = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    policy.trim() == "1" || (kilobytes("MemTotal:") + kilobytes("SwapTotal:")) * 1024 > bytes / 2
}

/// 256 GiB of blocks, 128 GiB of bits.
#[cfg(target_os = "linux")]
#[test]
fn more_than_the_machine_has_memory_for() {
    if gives_out_too_much(1 << 37) {
        return;
    }
    let expected = "blocks is 4294967296, more than this machine has memory for";
    assert_eq!(each(1 << 32), [(); 3].map(|()| expected.to_owned()));
    assert_eq!(
        error_text(Bloom::new(1 << 40, 8)),
        "m is 1099511627776, more than this machine has memory for"
    );
}
