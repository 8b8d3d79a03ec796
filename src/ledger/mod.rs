// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger: how often was each signature reported, kept over restarts and crashes.
//!
//! [`Ledger`] is the handle that everybody holds. Behind it one thread, the writer, changes everything. It takes all reports that
//! wait, applies them, commits them in one transaction, and answers them; so a report that was answered is on disk, and many
//! messages share one fsync. Who only asks for counts reads them beside the writer, which keeps nobody out while the disk works.
//!
//! Three floors, each of which knows only those below it:
//!
//! - `disk`: the file; load, commit, read
//! - `state`: what is counted and who has what; one type for each role
//! - `history`: version vectors, updates, rows of snapshots
//!
//! Words: an [`Update`] is one step of an origin's history. A `Delta` (of the filter crate) is what one filter grew by; an
//! update is made up of them.

mod backup;
mod bulk;
mod busy;
mod clock;
mod condition;
#[cfg(test)]
mod convergence;
mod disk;
mod errors;
mod handle;
mod harvest;
mod history;
mod image;
mod new_ledger;
mod random;
mod seed;
mod settings;
mod shared;
mod state;
mod status;
mod writer;

pub use backup::Backup;
pub use bulk::BulkMoves;
pub use clock::now;
pub use disk::aside::{Kept, KeyChange, Standing, change_key, put_aside, standing};
pub use disk::copy::copy;
pub use disk::errors::OpenError;
pub use disk::fleet::OldStep;
pub use disk::fleet_snapshot::FleetSnapshot;
pub use disk::notes::{BulkPlace, BulkRows};
pub use disk::open::read;
pub use disk::read::{Behind, Reader, Snapshot};
pub use disk::schema::FILE_NAME;
pub use disk::tell::Missing;
pub use errors::LedgerError;
pub use handle::{FleetBatch, FleetMoves, Ledger, Moves};
pub use harvest::{Harvest, HarvestError};
pub use history::bulk::{BulkMark, Note, Section};
pub use history::carried::Carried;
pub use history::fleet::FleetMark;
pub use history::past::Past;
pub use history::refusal::{Refusal, StepRefusal};
pub use history::row::Row;
pub use history::sealed::OtherForm;
pub use history::step::{MAX_STEP, Step, StepError, StepHead, other_step, step_head};
pub use history::update::{Update, UpdateError, mark_of};
pub use history::vector::{Chain, Mark, Origin, ParseError, Vector};
pub use history::window::{PEOPLE_CAPACITY, PEOPLE_SHARE};
pub use image::{Difference, Image, MergeError};
pub use new_ledger::NewLedgerError;
pub use random::random_bytes;
pub use seed::{Seed, SeedError};
pub use settings::{Durability, Federation, Hold, Role, Settings};
pub use state::assembly::Assembly;
pub use state::fleet::assembly::FleetAssembly;
pub use state::fleet::draft::{Batched, Drafted, Terms};
pub use state::hearing::TakenBack;
pub use state::limited::{Limits, OverQuota};
pub use state::merged::Applied;
pub use state::overview::{Asked, Overview, SaidBy, SaidOf};
pub use state::receipts::{Backwards, Receipt, Reporter};
pub use state::report::{Report, RetryKey, Shared};
pub use state::reporters::{SpokenBy, SpokenOf, Unclear};
pub use state::room::Rows;
pub use state::saying::{Nominated, Said, Saying, Side, Weighing};
pub use state::server::NotCounted;
pub use state::shares::{Share, Shares};
pub use state::spool::{MAX_BATCH, Outgoing};
pub use state::thin::{BulkAssembly, NoteGap};
pub use status::{BulkStatus, Counted, LimitedStatus, NextCapacity, SliceStatus, Status};
