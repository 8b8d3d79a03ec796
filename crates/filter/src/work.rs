// SPDX-License-Identifier: GPL-3.0-or-later
//! Places and cells that were looked at or moved, counted in tests: a bound of cost is shown by it, where a clock would show how
//! busy the machine is.

/// Counts so many places or cells. It does nothing outside of tests.
#[inline]
pub(crate) fn touch(count: usize) {
    #[cfg(test)]
    TOUCHED.set(TOUCHED.get() + count);
    #[cfg(not(test))]
    let _ = count;
}

#[cfg(test)]
thread_local! {
    static TOUCHED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What `work` returns, and how much this thread touched for it.
#[cfg(test)]
pub(crate) fn touched<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = TOUCHED.get();
    let made = work();
    (made, TOUCHED.get() - before)
}
