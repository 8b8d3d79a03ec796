// SPDX-License-Identifier: GPL-3.0-or-later
//! From what is reported on the control socket to the milter that counts it.

use crate::control::{KnowMailing, KnownBy, NameReporter, Report, Reported, TakeReport};
use crate::judging::{Refused, Service, Taken, UserReport, mailing_of, take_report};
use bulkmark_counts::{Said, Side};
use bulkmark_types::{ReporterId, ReporterKind, UNIT};
use std::sync::Arc;

/// Who counts what users say.
pub(super) fn reports(service: Arc<Service>) -> TakeReport {
    Box::new(move |report, message| {
        let service = Arc::clone(&service);
        Box::pin(async move { told(take_report(&service, message, word(&report)).await) })
    })
}

/// Who knows users by their names.
pub(super) fn reporter(service: Arc<Service>) -> NameReporter {
    Box::new(move |name| ReporterId::of(&service.rules.load().key, name))
}

/// Who makes the signatures of a mailing that somebody allows. Others are told that it is no spam, as far as anybody called it that.
pub(super) fn know_mailing(service: Arc<Service>) -> KnowMailing {
    Box::new(move |message, by| {
        let service = Arc::clone(&service);
        Box::pin(async move {
            let signatures = mailing_of(&service, message.clone()).await.map_err(|e| e.to_string())?;
            let reporter = [ReporterKind::User.prefix(), &by].concat().into_bytes();
            let word = UserReport { reporter, side: Side::NotSpam, force: true, only_back: false };
            let taken = take_report(&service, message, word).await;
            let shared = taken.is_ok_and(|taken| taken.is_shared && taken.tally.counted > 0);
            Ok(KnownBy { signatures, shared })
        })
    })
}

fn word(report: &Report) -> UserReport {
    let side = if report.spam { Side::Spam } else { Side::NotSpam };
    // A trap of the same name is somebody else.
    let reporter = [ReporterKind::User.prefix().as_bytes(), &report.user].concat();
    UserReport { reporter, side, force: report.force, only_back: report.forget }
}

/// What the word weighs for a signature, on average of those for which it was counted.
fn weight(said: Said) -> f64 {
    let counted = said.counted + said.taken_back;
    if counted == 0 { 0.0 } else { f64::from(said.units) / f64::from(UNIT) / counted as f64 }
}

fn told(taken: Result<Taken, Refused>) -> Reported {
    match taken {
        Ok(Taken { tally: said, signatures, is_shared }) => Reported {
            signatures,
            counted: said.counted,
            taken_back: said.taken_back,
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
            // That is told once a day, and not of each message of thousands.
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
