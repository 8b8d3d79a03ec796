// SPDX-License-Identifier: GPL-3.0-or-later
//! The end of threads that run beside a test.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped. Threads that run until the flag is set then also end with a test that fails; otherwise the scope would
/// wait for them for ever, and nobody would see why the test failed.
#[must_use]
pub struct Ends<'a>(pub &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
