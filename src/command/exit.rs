// SPDX-License-Identifier: GPL-3.0-or-later
//! Exit codes.

/// Exit code of sysexits.h for a configuration that cannot be used.
pub(crate) const EX_CONFIG: u8 = 78;

/// Exit code of sysexits.h for a command line that says too little or too much.
pub(crate) const EX_USAGE: u8 = 64;
