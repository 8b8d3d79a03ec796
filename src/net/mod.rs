// SPDX-License-Identifier: GPL-3.0-or-later
//! What all that listen have in common: addresses, sockets, HTTP and TLS. It knows nothing of mail and counts.
//!
//! `address` is where to listen, as configurations write it, and `listen` that or nowhere; `socket` binds it, and `activation` takes a
//! socket that systemd opened. `accept` takes connections, as many as are allowed; `http` answers requests on them, by `tls` or plain,
//! and `body` is an answer that is made while it is sent. `seated` takes connections for whom there is a place, and `host` knows by
//! which names one is asked. `certificate` says for whom one is, and how long. `crowd` knows who is connected, and who has to go when
//! there are too many, by what was `heard` of them. `rate` says how often somebody may ask.

mod accept;
mod activation;
mod address;
mod body;
mod certificate;
mod crowd;
mod heard;
mod host;
mod http;
mod listen;
mod mode;
mod network;
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
pub use rate::{Paid, Rate};
pub use seated::serve_seated;
pub use socket::Socket;
pub use tls::{TlsError, TlsFiles, TlsKeys};
