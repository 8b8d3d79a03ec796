// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests that need root: small disks and frozen ones, owners of files, systemd's units, and `bulkmark doctor`.

mod doctor;
mod federation_disk;
mod fleet_disk;
mod ledger_disk;
mod state_directory;
mod systemd;
mod verdict_deadline;
