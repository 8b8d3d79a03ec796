// SPDX-License-Identifier: GPL-3.0-or-later
//! Connects the control socket's reports to the milter that counts them.

use crate::control::{KnowMailing, KnownBy, NameReporter, Report, Reported, TakeReport};
use crate::judging::{Refused, Service, Taken, Word, mailing_of, take_report};
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
            let signatures = mailing_of(&service, message.clone()).await.map_err(|e| e.to_string())?;
            let reporter = [ReporterKind::User.prefix(), &by].concat().into_bytes();
            let submission = Word { reporter, side: Side::NotSpam, force: true, only_withdraws: false };
            let taken = take_report(&service, message, submission).await;
            let shared = taken.is_ok_and(|taken| taken.is_shared && taken.said.counted > 0);
            Ok(KnownBy { signatures, shared })
        })
    })
}

fn submission(report: &Report) -> Word {
    let side = if report.spam { Side::Spam } else { Side::NotSpam };
    // A trap of the same name is another reporter.
    let reporter = [ReporterKind::User.prefix().as_bytes(), &report.user].concat();
    Word { reporter, side, force: report.force, only_withdraws: report.forget }
}

/// Returns the weight of the report for a signature, on average of those for which it was counted.
fn weight(said: Tally) -> f64 {
    let counted = said.counted + said.withdrawn;
    if counted == 0 { 0.0 } else { f64::from(said.units) / f64::from(UNIT) / counted as f64 }
}

fn reported(taken: Result<Taken, Refused>) -> Reported {
    match taken {
        Ok(Taken { said, signatures, is_shared }) => Reported {
            signatures,
            counted: said.counted,
            taken_back: said.withdrawn,
            known: said.known,
            too_often: said.too_often,
            no_room: said.no_room,
            weightless: said.weightless,
            weight: weight(said),
            shared: is_shared,
            refused: None,
            later: said.no_room > 0,
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
