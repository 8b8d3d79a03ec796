// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger: the number of reports of each signature, kept across restarts and crashes.
//!
//! [`Ledger`] is a handle that can be cloned. One thread behind it, the writer, makes all changes. It takes all waiting reports,
//! applies them, commits them in one transaction and answers them; so an answered report is on disk, and many messages share one
//! fsync. Counts are read beside the writer, which blocks no reader while the disk works.
//!
//! `disk` is the file: load, commit, read. The counts, and the data that travels between ledgers, are in `bulkmark-counts`, which does
//! no I/O. Beside the ledger stand its [`directory`] and the [`correspondents`] of a site's own users.
//!
//! Terms: an [`Update`](bulkmark_counts::Update) is one step of an origin's history. A `Delta` (of the filter crate) is the growth of
//! one filter; an update consists of deltas.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

mod backup;
mod busy;
mod clock;
mod condition;
#[cfg(test)]
mod convergence;
pub mod correspondents;
pub mod directory;
mod disk;
mod errors;
mod fleet_counts;
mod handle;
mod image;
mod new_ledger;
mod random;
mod seed;
mod shared;
mod status;
mod writer;

pub use backup::Backup;
pub use clock::now;
pub use disk::aside::{KeyChange, NextStart, PutAside, change_key, next_start, put_aside};
pub use disk::chain::OldStep;
pub use disk::copy::copy;
pub use disk::errors::OpenError;
pub use disk::fleet_snapshot::FleetSnapshot;
pub use disk::missing::Missing;
pub use disk::notes::{BulkPlace, BulkRows};
pub use disk::open::read;
pub use disk::read::{Behind, Reader};
pub use disk::schema::{FILE_NAME, FileFormat};
pub use disk::snapshot::Snapshot;
pub use errors::LedgerError;
pub use fleet_counts::{FleetCounts, FleetCountsError};
pub use handle::{BulkChanges, FleetBatch, Ledger, VectorChanges};
pub use image::{Difference, Image, MergeError, VersionDifference};
pub use new_ledger::NewLedgerError;
pub use random::random_bytes;
pub use seed::{Seed, SeedError};
pub use status::{BulkStatus, Counted, LimitedStatus, NextCapacity, SliceStatus, Status};
