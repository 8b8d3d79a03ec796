// SPDX-License-Identifier: GPL-3.0-or-later
//! The interfaces for other programs, while a daemon runs.

use super::supervisor::Supervisor;
use crate::activity::Interface;
use crate::interfaces::{OpenInterfaces, Settings};
use crate::judging::Service;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The time that an ending daemon waits for requests in progress, and between two checks. With the time of a milter's listeners before, it stays
/// below systemd's time limit.
const PATIENCE: Duration = Duration::from_secs(8);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Interfaces whose connections close after their requests, once no more are accepted.
const ANSWERING: [Interface; 2] = [Interface::Http, Interface::Dccifd];

/// Opens the interfaces separately: the failure of one does not close another. Log and status have the reason. Returns the number of open ones.
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

/// Waits until requests in progress are answered, for eight seconds at most. New connections are no longer accepted.
pub(super) async fn last_answers(service: &Service) {
    let (in_flight, interfaces) = (service.in_flight(), &service.activity.interfaces);
    let is_busy = || {
        *in_flight.borrow() > 0
            || ANSWERING.into_iter().any(|interface| interfaces.connections(interface).open() > 0)
    };
    let since = Instant::now();
    while is_busy() {
        if since.elapsed() > PATIENCE {
            return log::warn!(
                "ending while messages are being received at interfaces; their clients get no answer"
            );
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}
