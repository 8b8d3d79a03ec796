// SPDX-License-Identifier: GPL-3.0-or-later
//! The common parts of all listeners: addresses, sockets, HTTP and TLS. It knows nothing of mail and counts.
//!
//! `address` has the addresses of configurations, and `listen` optional ones; `socket` binds them, and `activation` takes sockets that
//! systemd opened. `accept` accepts connections, with `prompt` acknowledgements if needed; `http` answers requests on them, with `tls` or
//! plain, and `body` is an answer that is made while it is sent. `seated` accepts connections within the bounds of `crowd`, which chooses
//! those to close when there are too many, by their `patience`. `host` checks the host that a request names, `certificate` names and
//! validity of certificates, `mode` is that of a Unix socket, `network` groups addresses, and `rate` limits how often an act is allowed.

mod accept;
mod activation;
mod address;
mod body;
mod certificate;
mod crowd;
mod host;
mod http;
mod listen;
mod mode;
mod network;
mod patience;
mod prompt;
mod rate;
mod seated;
mod socket;
mod tls;

pub use accept::{Accepted, Acceptor, Stream};
pub use activation::{Activation, ActivationError};
pub use address::{Address, Endpoint};
pub use body::{Budget, Gone, Sender, streamed};
pub use certificate::{Certificate, CertificateError};
pub use crowd::{Bounds, Busy, Crowd, Member, Seat, TooMany};
pub use host::{asks_for_ours, own_name};
pub use http::{Caller, HttpListener, Open};
pub use listen::Listen;
pub use mode::Mode;
pub use network::network_of;
pub use rate::{Paid, Rate, Sweeps};
pub use seated::serve_seated;
pub use socket::Socket;
pub use tls::{TlsError, TlsFiles, TlsKeys};
