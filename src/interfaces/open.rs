// SPDX-License-Identifier: GPL-3.0-or-later
//! Opens the interfaces of a configuration.

use super::access::Access;
use super::dccifd;
use super::http;
use super::pyzor;
use super::razor;
use super::settings::{DccifdSettings, HttpSettings, PyzorSettings, RazorSettings, Settings};
use crate::activity::{Interface, Open};
use crate::judging::Service;
use crate::net::{Accepted, Address, Bounds, Crowd, HttpListener, Member, Mode, Socket, serve_seated};
use bulkmark_policy::Network;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// An interface cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// The address cannot be used.
    #[error("cannot listen on {address} (interfaces.{interface}.listen): {reason}")]
    Bind {
        /// The address in the configuration.
        address: String,
        /// The interface.
        interface: &'static str,
        /// The system's error.
        reason: io::Error,
    },
    /// Other machines can reach the address.
    #[error(
        "{address} (interfaces.{interface}.listen) can be reached from other machines, and {missing} is not set"
    )]
    Remote {
        /// The bound address.
        address: String,
        /// The interface.
        interface: &'static str,
        /// The missing key, which restricts access.
        missing: &'static str,
    },
    /// The token cannot be used.
    #[error("interfaces.http.token-file: {0}")]
    Token(String),
    /// The accounts of Razor's users cannot be used.
    #[error("interfaces.razor: {path}: {reason}")]
    Accounts {
        /// Their file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// The accounts of Pyzor's users cannot be used.
    #[error("interfaces.pyzor: {0}")]
    PyzorAccounts(String),
}

/// Interfaces that are bound, but do not answer yet.
pub struct OpenInterfaces {
    http: Option<(Arc<HttpListener>, Arc<http::Context>)>,
    dccifd: Option<(Arc<Socket>, Arc<dccifd::Context>)>,
    razor: Option<(Arc<Socket>, Arc<razor::Context>)>,
    pyzor: Option<Arc<pyzor::Context>>,
    bounds: [Bounds; 3],
}

/// Clients are not known by name, and all come from a few addresses.
const fn bounds(most: usize) -> Bounds {
    Bounds { all: most, address: usize::MAX, known: usize::MAX }
}

/// Completes when the daemon must end.
async fn ended(mut end: watch::Receiver<bool>) {
    // The sender is dropped only after it sent.
    let _ = end.wait_for(|ended| *ended).await;
}

impl OpenInterfaces {
    /// Binds the interfaces in these settings independently, and also returns the errors. Their files are in `state_dir`.
    pub async fn bind(
        settings: &Settings,
        service: &Arc<Service>,
        state_dir: &Path,
    ) -> (Self, Vec<(Interface, InterfaceError)>) {
        let Settings { http, dccifd, razor, pyzor, .. } = settings;
        let most = [http.max_connections, dccifd.max_connections, razor.max_connections];
        let mut interfaces = Self {
            http: None,
            dccifd: None,
            razor: None,
            pyzor: None,
            bounds: most.map(|most| bounds(most.get())),
        };
        let mut closed = Vec::new();
        for interface in Interface::BESIDE {
            let Some(address) = settings.address(interface) else { continue };
            let bound = match interface {
                Interface::Milter => Ok(()),
                Interface::Http => {
                    bind_http(address, http, service).await.map(|bound| interfaces.http = Some(bound))
                }
                Interface::Dccifd => {
                    bind_dccifd(address, dccifd, service).await.map(|bound| interfaces.dccifd = Some(bound))
                }
                Interface::Razor => bind_razor(address, razor, service, state_dir)
                    .await
                    .map(|bound| interfaces.razor = Some(bound)),
                Interface::Pyzor => {
                    bind_pyzor(address, pyzor, service).await.map(|bound| interfaces.pyzor = Some(bound))
                }
            };
            closed.extend(bound.err().map(|error| (interface, error)));
        }
        (interfaces, closed)
    }

    /// Their addresses, for the log.
    #[must_use]
    pub fn addresses(&self) -> Vec<(Interface, String)> {
        let http = self.http.as_ref().map(|(listener, _)| (Interface::Http, listener.address()));
        let dccifd = self.dccifd.as_ref().map(|(socket, _)| (Interface::Dccifd, socket.address()));
        let razor = self.razor.as_ref().map(|(socket, _)| (Interface::Razor, socket.address()));
        let pyzor = self.pyzor.as_ref().map(|context| (Interface::Pyzor, context.address()));
        http.into_iter().chain(dccifd).chain(razor).chain(pyzor).collect()
    }

    /// Answers at an interface until the end, and then waits forever.
    pub async fn serve(&self, interface: Interface, service: &Arc<Service>, end: watch::Receiver<bool>) {
        let open = || service.activity.interfaces.connections(interface).begin();
        match interface {
            Interface::Milter => (),
            Interface::Http => {
                if let Some((listener, context)) = &self.http {
                    let (router, crowd) = (http::router(Arc::clone(context)), Crowd::new(self.bounds[0]));
                    listener.serve(router, crowd, open, ended(end)).await.closed().await;
                }
            }
            Interface::Dccifd => {
                if let Some((socket, context)) = &self.dccifd {
                    let answer = |accepted, of| dccifd::connection(accepted, of, Arc::clone(context));
                    serve_each((socket, self.bounds[1]), open, end, answer).await;
                }
            }
            Interface::Razor => {
                if let Some((socket, context)) = &self.razor {
                    let answer = |accepted, of| razor::connection(accepted, of, Arc::clone(context));
                    serve_each((socket, self.bounds[2]), open, end, answer).await;
                }
            }
            Interface::Pyzor => {
                if let Some(context) = &self.pyzor {
                    pyzor::serve(Arc::clone(context), ended(end)).await;
                }
            }
        }
        std::future::pending().await
    }
}

/// Answers each connection of an interface in its own task, until the end.
async fn serve_each<F: Future<Output = ()> + Send + 'static>(
    (socket, bounds): (&Arc<Socket>, Bounds),
    open: impl Fn() -> Open,
    end: watch::Receiver<bool>,
    answer: impl Fn(Accepted, Member) -> F,
) {
    serve_seated(Arc::clone(socket), Crowd::new(bounds), ended(end), |accepted, member| {
        let (open, answered) = (open(), answer(accepted, member));
        async move {
            answered.await;
            drop(open);
        }
    })
    .await;
}

/// Binds an interface. If a key is `missing`, other machines must not reach it.
async fn bind(
    address: &Address,
    mode: Mode,
    interface: Interface,
    missing: Option<&'static str>,
) -> Result<Socket, InterfaceError> {
    let (bound, interface) = (Socket::bind(address, mode.bits()).await, interface.as_str());
    let socket =
        bound.map_err(|reason| InterfaceError::Bind { address: address.to_string(), interface, reason })?;
    match missing {
        Some(missing) if !socket.is_local() => {
            Err(InterfaceError::Remote { address: socket.address(), interface, missing })
        }
        _ => Ok(socket),
    }
}

/// The key that is missing if other machines can reach an interface.
fn networks(of: &[Network]) -> Option<&'static str> {
    of.is_empty().then_some("interfaces.networks")
}

async fn bind_http(
    address: &Address,
    settings: &HttpSettings,
    service: &Arc<Service>,
) -> Result<(Arc<HttpListener>, Arc<http::Context>), InterfaceError> {
    let names = matches!(address, Address::Tcp(_)).then(Vec::new);
    let access = Access::new(settings.token_file.as_deref(), names).map_err(InterfaceError::Token)?;
    let missing = settings.token_file.is_none().then_some("token-file");
    let socket = bind(address, settings.listen_mode, Interface::Http, missing).await?;
    let context = http::Context { service: Arc::clone(service), access, timeout: settings.timeout };
    Ok((Arc::new(HttpListener::new(socket, None).with_long_heads()), Arc::new(context)))
}

async fn bind_dccifd(
    address: &Address,
    settings: &DccifdSettings,
    service: &Arc<Service>,
) -> Result<(Arc<Socket>, Arc<dccifd::Context>), InterfaceError> {
    let socket = bind(address, settings.listen_mode, Interface::Dccifd, networks(&settings.networks)).await?;
    let context = dccifd::Context { service: Arc::clone(service), settings: settings.clone() };
    Ok((Arc::new(socket), Arc::new(context)))
}

async fn bind_razor(
    address: &Address,
    settings: &RazorSettings,
    service: &Arc<Service>,
    state_dir: &Path,
) -> Result<(Arc<Socket>, Arc<razor::Context>), InterfaceError> {
    let socket = bind(address, Mode::default(), Interface::Razor, networks(&settings.networks)).await?;
    let accounts = razor::Accounts::read(state_dir)
        .map_err(|reason| InterfaceError::Accounts { path: state_dir.join(razor::ACCOUNTS), reason })?;
    let public_address = settings.public_address(&socket.address());
    let context = razor::Context {
        service: Arc::clone(service),
        settings: settings.clone(),
        accounts: Arc::new(accounts),
        public_address,
    };
    Ok((Arc::new(socket), Arc::new(context)))
}

async fn bind_pyzor(
    address: &Address,
    settings: &PyzorSettings,
    service: &Arc<Service>,
) -> Result<Arc<pyzor::Context>, InterfaceError> {
    let accounts = pyzor::Accounts::load(settings.home.as_deref());
    let accounts = accounts.map_err(InterfaceError::PyzorAccounts)?;
    pyzor::log_faults(&accounts);
    let bound = pyzor::Context::bind(address, settings, accounts, service).await;
    let context = bound.map_err(|reason| InterfaceError::Bind {
        address: address.to_string(),
        interface: Interface::Pyzor.as_str(),
        reason,
    })?;
    if !context.is_local() && settings.networks.is_empty() {
        return Err(InterfaceError::Remote {
            address: context.address(),
            interface: "pyzor",
            missing: "interfaces.networks",
        });
    }
    Ok(Arc::new(context))
}
