// SPDX-License-Identifier: GPL-3.0-or-later
//! Checks that name servers answer, if mail is verified here.

use super::report::Report;
use crate::lookup::Resolver;
use bulkmark_policy::Authentication;
use std::time::Instant;

/// A name for which every name server has an answer: whether domains under `example` have rules for mail.
const ASKED: &str = "_dmarc.example.";

/// Asks the name servers for it.
pub(super) async fn examine(settings: &Authentication, report: &mut Report) {
    if !settings.is_here() {
        return;
    }
    const ADVICE: &str = "bulk that a white list wants if it is verified is only marked until then; look at /etc/resolv.conf, or \
                          name servers in authentication.nameservers";
    let resolver = match Resolver::new(settings) {
        Ok(resolver) => resolver,
        Err(e) => return report.error("name servers", e, ADVICE),
    };
    let (servers, began) = (resolver.addresses().join(", "), Instant::now());
    match resolver.answers(ASKED).await {
        Ok(()) => {
            report.ok("name servers", format!("{servers}: an answer in {} ms", began.elapsed().as_millis()))
        }
        Err(e) => report.error("name servers", format!("{servers}: {e}"), ADVICE),
    }
}
