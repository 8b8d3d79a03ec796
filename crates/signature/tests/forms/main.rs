// SPDX-License-Identifier: GPL-3.0-or-later
//! From which forms of a message the same signatures come.

mod body;
mod programs;
mod reading;
