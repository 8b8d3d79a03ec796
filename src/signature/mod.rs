// SPDX-License-Identifier: GPL-3.0-or-later
//! From a message to its signatures. The canonical forms are specified in docs/signatures.md.

mod body;
mod guard;
mod key;
mod settings;
mod types;

pub use body::body;
pub use key::{FederationKey, KeyError};
pub use settings::Settings;
pub use types::{Kind, LowInformation, ParseSignatureError, Signature};
