// SPDX-License-Identifier: GPL-3.0-or-later
//! A server's certificate and key: do they go together, and will others take them?

use super::files;
use super::report::Report;
use crate::config;
use crate::net::{Endpoint, TlsFiles};
use bulkmark_ledger::directory::User;
use std::time::SystemTime;

const CHECK: &str = "certificate";

pub(super) fn examine(tls: &TlsFiles, listen: &Endpoint, user: &User, report: &mut Report) {
    files::examine_file(CHECK, &tls.cert, false, user, report);
    files::examine_file(CHECK, &tls.key, true, user, report);
    let tested = match config::test_certificates(tls, listen, SystemTime::now()) {
        Ok(tested) => tested,
        Err(e) => {
            let advice =
                "put the certificate and its key there, as PEM; the server does not start with these";
            return report.error(CHECK, e, advice);
        }
    };
    for doubt in &tested.doubts {
        report.warning(CHECK, doubt, "get a new one, put it there, and systemctl reload bulkmark-server");
    }
    if let ([], Some(first)) = (&*tested.doubts, tested.certificates.first()) {
        report.ok(CHECK, format!("it is for {}, until {}", first.names.join(", "), first.last_day()));
    }
}
