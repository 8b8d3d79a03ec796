// SPDX-License-Identifier: GPL-3.0-or-later
//! Exit codes.

/// Exit code of sysexits.h for a configuration that cannot be used.
pub(super) const EX_CONFIG: u8 = 78;
