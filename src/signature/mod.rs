// SPDX-License-Identifier: GPL-3.0-or-later
//! From a message to its signatures. The canonical forms are specified in docs/signatures.md.

mod body;
mod canary;
mod foreign;
mod groups;
mod guard;
mod key;
mod message;
pub mod near;
mod people;
mod settings;
mod sources;
mod text;
mod types;

pub use body::body;
pub use canary::{Canary, NoCanary};
pub use foreign::{Foreign, foreign};
pub use groups::{Belongs, Groups};
pub use key::{FederationKey, KeyError};
pub use message::{Signatures, signatures};
pub use people::{ReporterId, ReporterKind, UNIT, correspondence, nomination, revocation, weigh};
pub use settings::Settings;
pub use sources::{BUCKETS, ClientNetwork, PRESENT, outbound, source_bucket, source_count};
pub use types::{Kind, LowInformation, ParseSignatureError, Signature};
