// SPDX-License-Identifier: GPL-3.0-or-later
//! The available memory: a kernel promises more, and kills processes that use it.

use bulkmark_filter::ParameterError;

/// Bytes of free memory by the kernel's estimate; `None` if it has none.
#[must_use]
pub fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Checks that so many bytes are available. `name` and `value` are the parameter that needs them.
pub(super) fn check(name: &'static str, value: u64, bytes: u64) -> Result<(), ParameterError> {
    if free_memory().is_some_and(|free| bytes > free) {
        return Err(ParameterError::memory(name, value));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_refused_by_name() {
        assert!(free_memory().is_none_or(|bytes| bytes > 1 << 20));
        assert_eq!(check("elements", 5, 4096), Ok(()));
        if free_memory().is_some() {
            let told = check("elements", 7, 1 << 60).unwrap_err().to_string();
            assert_eq!(told, "elements is 7, more than this machine has memory for");
        }
    }
}
