// SPDX-License-Identifier: GPL-3.0-or-later
//! Connects the control socket's reports to the milter that counts them.

use crate::control::{KnowMailing, KnownBy, NameReporter, Report, Reported, TakeReport};
use crate::judging::{Refused, Service, Taken, UserReport, mailing_of, take_report};
use bulkmark_counts::{Side, Tally};
use bulkmark_types::{ReporterId, ReporterKind, UNIT};
use std::sync::Arc;

/// Returns a function that counts user reports.
pub(super) fn reports(service: Arc<Service>) -> TakeReport {
    Box::new(move |report, message| {
        let service = Arc::clone(&service);
        Box::pin(async move { reported(take_report(&service, message, submission(&report)).await) })
    })
}

/// Returns a function that finds reporters by their names.
pub(super) fn reporter(service: Arc<Service>) -> NameReporter {
    Box::new(move |name| ReporterId::of(&service.rules.load().key, name))
}

/// Returns a function that makes the signatures of an allowed mailing, and reports to other servers that it is no spam, as far as anybody
/// reported it as spam.
pub(super) fn know_mailing(service: Arc<Service>) -> KnowMailing {
    Box::new(move |message, by| {
        let service = Arc::clone(&service);
        Box::pin(async move {
            let (signatures, is_private) =
                mailing_of(&service, message.clone()).await.map_err(|e| e.to_string())?;
            let reporter = [ReporterKind::User.prefix(), &by].concat().into_bytes();
            let submission = UserReport { reporter, side: Side::NotSpam, force: true, only_withdraws: false };
            let taken = take_report(&service, message, submission).await;
            let shared = taken.is_ok_and(|taken| taken.is_shared && taken.tally.counted > 0);
            Ok(KnownBy { signatures, shared, is_private })
        })
    })
}

fn submission(report: &Report) -> UserReport {
    let side = if report.spam { Side::Spam } else { Side::NotSpam };
    // A trap of the same name is another reporter.
    let reporter = [ReporterKind::User.prefix().as_bytes(), &report.user].concat();
    UserReport { reporter, side, force: report.force, only_withdraws: report.forget }
}

/// Returns the weight of the report for a signature, on average of those for which it was counted.
fn weight(tally: Tally) -> f64 {
    let counted = tally.counted + tally.withdrawn;
    if counted == 0 { 0.0 } else { f64::from(tally.units) / f64::from(UNIT) / counted as f64 }
}

fn reported(taken: Result<Taken, Refused>) -> Reported {
    match taken {
        Ok(Taken { tally, signatures, is_shared }) => Reported {
            signatures,
            counted: tally.counted,
            taken_back: tally.withdrawn,
            known: tally.known,
            too_often: tally.too_often,
            no_room: tally.no_room,
            weightless: tally.weightless,
            weight: weight(tally),
            shared: is_shared,
            refused: None,
            later: tally.no_room > 0,
            too_many: false,
        },
        Err(why) => {
            let too_many = matches!(why, Refused::TooMany);
            // This limit is logged once a day, not for each of thousands of messages.
            if !too_many {
                log::info!("a report was refused: {why}");
            }
            Reported {
                too_many,
                later: matches!(why, Refused::Ledger(_) | Refused::TooMany | Refused::Unreadable),
                refused: Some(why.to_string()),
                ..Reported::default()
            }
        }
    }
}
