// SPDX-License-Identifier: GPL-3.0-or-later
//! The interfaces at which messages arrive, and the requests at each.

use super::connections::Connections;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The interface of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interface {
    /// The mail server, by the milter protocol.
    Milter,
    /// A program, by HTTP.
    Http,
    /// A client of DCC's interface daemon.
    Dccifd,
    /// A client of Razor, by signatures.
    Razor,
    /// A client of Pyzor.
    Pyzor,
}

impl Interface {
    /// All but the milter's.
    pub const BESIDE: [Self; 4] = [Self::Http, Self::Dccifd, Self::Razor, Self::Pyzor];

    /// Returns its name in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Milter => "milter",
            Self::Http => "http",
            Self::Dccifd => "dccifd",
            Self::Razor => "razor",
            Self::Pyzor => "pyzor",
        }
    }

    const fn place(self) -> usize {
        self as usize
    }
}

/// The result of a request at an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// A message was judged and counted.
    Counted,
    /// A message was judged and not counted.
    Asked,
    /// A message was nominated.
    Nominated,
    /// It was refused: the client may not ask, or the request is malformed.
    Refused,
    /// It did not arrive in time.
    TimedOut,
}

impl Done {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Counted, Self::Asked, Self::Nominated, Self::Refused, Self::TimedOut];

    /// Returns its name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Asked => "asked",
            Self::Nominated => "nominated",
            Self::Refused => "refused",
            Self::TimedOut => "timed-out",
        }
    }
}

/// A configured interface, since the daemon was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// Its address, or the intended address.
    pub address: String,
    /// The reason if it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Open connections.
    pub open: usize,
    /// All connections.
    pub connections: u64,
    /// Requests by result.
    pub requests: BTreeMap<String, u64>,
}

/// The address of an interface, and the reason if it is not open.
type Place = (String, Option<String>);

/// Counters of all interfaces beside the milter's.
#[derive(Debug, Default)]
pub struct Interfaces {
    requests: [[AtomicU64; Done::ALL.len()]; 1 + Interface::BESIDE.len()],
    connections: [Arc<Connections>; 1 + Interface::BESIDE.len()],
    /// The configured interfaces.
    places: Mutex<BTreeMap<Interface, Place>>,
}

impl Interfaces {
    /// Counts a request.
    pub fn add(&self, interface: Interface, request: Done) {
        self.requests[interface.place()][request as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of such requests.
    #[must_use]
    pub fn requests(&self, interface: Interface, request: Done) -> u64 {
        self.requests[interface.place()][request as usize].load(Ordering::Relaxed)
    }

    /// Returns the connections of an interface.
    #[must_use]
    pub fn connections(&self, interface: Interface) -> &Arc<Connections> {
        &self.connections[interface.place()]
    }

    /// Records that an interface was opened at this address, or could not be.
    pub fn opened(&self, interface: Interface, address: String, error: Option<String>) {
        self.places.lock().insert(interface, (address, error));
    }

    /// Returns the status of the configured interfaces.
    #[must_use]
    pub fn status(&self) -> Vec<InterfaceStatus> {
        let places = self.places.lock().clone();
        let status = |(interface, (address, error)): (Interface, Place)| InterfaceStatus {
            name: interface.as_str().to_owned(),
            address,
            error,
            open: self.connections(interface).open(),
            connections: self.connections(interface).total(),
            requests: Done::ALL
                .map(|request| (request.as_str().to_owned(), self.requests(interface, request)))
                .into(),
        };
        places.into_iter().map(status).collect()
    }
}
