// SPDX-License-Identifier: GPL-3.0-or-later
//! The interfaces for others, as long as a daemon lives.

use super::supervisor::Supervisor;
use crate::activity::Interface;
use crate::interfaces::{OpenInterfaces, Settings};
use crate::judging::Service;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a daemon that ends waits for who is being answered, and how often it looks. With what a milter's listeners take before it stays
/// below the time that systemd waits.
const PATIENCE: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(20);

/// Interfaces at which a connection is open no longer than for its requests, once no more are taken.
const ANSWERING: [Interface; 2] = [Interface::Http, Interface::Dccifd];

/// Opens the interfaces, each for itself: what one cannot have is no reason to send away who asks at another. The log and the status have the
/// reason. Returns how many are open.
pub(super) async fn open_interfaces(
    settings: &Settings,
    (service, state_dir): (&Arc<Service>, &Path),
    end: &watch::Receiver<bool>,
    tasks: &mut Supervisor,
) -> usize {
    let interfaces = &service.activity.interfaces;
    let (open, closed) = OpenInterfaces::bind(settings, service, state_dir).await;
    for (interface, error) in closed {
        let address = settings.address(interface).map(ToString::to_string).unwrap_or_default();
        log::error!("the interface {} is not open: {error}", interface.as_str());
        interfaces.opened(interface, address, Some(error.to_string()));
    }
    let (addresses, open) = (open.addresses(), Arc::new(open));
    for (interface, address) in &addresses {
        interfaces.opened(*interface, address.clone(), None);
        log::info!("the interface {} is at {address}", interface.as_str());
        let (interface, open, service, end) =
            (*interface, Arc::clone(&open), Arc::clone(service), end.clone());
        tasks.run(interface.as_str(), move || {
            let (open, service, end) = (Arc::clone(&open), Arc::clone(&service), end.clone());
            async move { open.serve(interface, &service, end).await }
        });
    }
    addresses.len()
}

/// Waits until those who asked have their answers, for eight seconds at most. No more connections are taken.
pub(super) async fn last_answers(service: &Service) {
    let (in_flight, interfaces) = (service.in_flight(), &service.activity.interfaces);
    let is_asked = || {
        *in_flight.borrow() > 0
            || ANSWERING.into_iter().any(|interface| interfaces.connections(interface).open() > 0)
    };
    let since = Instant::now();
    while is_asked() {
        if since.elapsed() > PATIENCE {
            return log::warn!(
                "ending while messages are being received at interfaces; who asks gets no answer"
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}
