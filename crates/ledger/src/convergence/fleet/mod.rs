// SPDX-License-Identifier: GPL-3.0-or-later
//! Does a fleet count each report once, despite loss, repetition, reordering, delay, restored copies and a new log? Random schedules of
//! a log in memory, with aggregators that compete for each step, and milters.

mod log;
mod member;
mod schedules;
mod world;
