// SPDX-License-Identifier: GPL-3.0-or-later
//! Do all ledgers become equal, whatever is lost, repeated, cut off, restarted or put back? Thousands of random schedules of a
//! federation without network: its servers and milters are the states that the daemons have, with their files in memory.

mod faults;
mod fleet;
mod node;
mod schedules;
mod world;
