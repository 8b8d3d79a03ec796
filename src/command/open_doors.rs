// SPDX-License-Identifier: GPL-3.0-or-later
//! The doors for others, as long as a daemon lives.

use super::supervisor::Supervisor;
use crate::activity::Door;
use crate::doors::{OpenDoors, Settings};
use crate::judging::Service;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a daemon that ends waits for who is being answered, and how often it looks. With what a milter's listeners take before it stays
/// below the time that systemd waits.
const PATIENCE: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(20);

/// Doors at which a connection is open no longer than for its requests, once no more are taken.
const ANSWERING: [Door; 2] = [Door::Http, Door::Dccifd];

/// Opens the doors, each for itself: what one cannot have is no reason to send away who asks at another. The log and the status have the
/// reason. Returns how many are open.
pub(super) async fn open_doors(
    settings: &Settings,
    (service, state_dir): (&Arc<Service>, &Path),
    end: &watch::Receiver<bool>,
    tasks: &mut Supervisor,
) -> usize {
    let doors = &service.activity.doors;
    let (open, closed) = OpenDoors::bind(settings, service, state_dir).await;
    for (door, error) in closed {
        let address = settings.address(door).map(ToString::to_string).unwrap_or_default();
        log::error!("the door {} is not open: {error}", door.as_str());
        doors.opened(door, address, Some(error.to_string()));
    }
    let (addresses, open) = (open.addresses(), Arc::new(open));
    for (door, address) in &addresses {
        doors.opened(*door, address.clone(), None);
        log::info!("the door {} is at {address}", door.as_str());
        let (door, open, service, end) = (*door, Arc::clone(&open), Arc::clone(service), end.clone());
        tasks.run(door.as_str(), move || {
            let (open, service, end) = (Arc::clone(&open), Arc::clone(&service), end.clone());
            async move { open.serve(door, &service, end).await }
        });
    }
    addresses.len()
}

/// Waits until those who asked have their answers, for eight seconds at most. No more connections are taken.
pub(super) async fn last_answers(service: &Service) {
    let (in_flight, doors) = (service.in_flight(), &service.activity.doors);
    let is_asked =
        || *in_flight.borrow() > 0 || ANSWERING.into_iter().any(|door| doors.connections(door).open() > 0);
    let since = Instant::now();
    while is_asked() {
        if since.elapsed() > PATIENCE {
            return log::warn!("ending while messages are being received at doors; who asks gets no answer");
        }
        tokio::time::sleep(LOOK).await;
    }
}
