// SPDX-License-Identifier: GPL-3.0-or-later
//! Places and cells that were visited or moved, counted in tests: this shows a bound of the cost, where a clock would show how busy the
//! machine is.

/// Counts visited places or cells. Does nothing outside of tests.
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

/// Returns the result of `work`, and how many places this thread touched in it.
#[cfg(test)]
pub(crate) fn touched<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = TOUCHED.get();
    let made = work();
    (made, TOUCHED.get() - before)
}
