// SPDX-License-Identifier: GPL-3.0-or-later
//! Does a fleet count each report once, whatever is lost, repeated, overtaken, late, put back or made anew? Random schedules of a log
//! in memory, with aggregators that race for each step, and milters.

mod log;
mod member;
mod schedules;
mod world;
