// SPDX-License-Identifier: GPL-3.0-or-later
//! Which engine a log has: the one place that knows all of them.

#[cfg(feature = "nats")]
use crate::log::nats;
#[cfg(feature = "postgres")]
use crate::log::postgres;
use crate::log::{LogError, Member, SetUp, Settings};

/// Opens the log of these settings and does something with it, whichever its engine is:
/// `with_log!(settings, link, |log| ask(&log).await)`, where [`LogError`](crate::log::LogError) is returned by `?`. The crate that calls
/// it has the features `nats` and `postgres`, too.
#[macro_export]
macro_rules! with_log {
    ($settings:expr, $link:expr, |$log:ident| $then:expr) => {
        match $settings.address()?.engine {
            #[cfg(feature = "nats")]
            $crate::log::Engine::Nats => {
                let $log = $crate::log::nats::Nats::new($settings, $link).await?;
                $then
            }
            #[cfg(feature = "postgres")]
            $crate::log::Engine::Postgres => {
                let $log = $crate::log::postgres::Postgres::new($settings, $link)?;
                $then
            }
            #[cfg(not(all(feature = "nats", feature = "postgres")))]
            engine => Err(engine.missing())?,
        }
    };
}

/// Makes the log of these settings ready for a fleet of these members. It may be called again at any time. Members who are in the log and
/// not in the list lose their access.
///
/// Returns a line for each thing that it did, or with `dry_run` would do; none when all is as it should be.
///
/// # Errors
/// When the log cannot be reached, or does not let this user do so.
pub async fn set_up(settings: &Settings, members: &[Member], how: &SetUp) -> Result<Vec<String>, LogError> {
    match settings.address()?.engine {
        #[cfg(feature = "nats")]
        crate::log::Engine::Nats => nats::setup(settings, members, how).await,
        #[cfg(feature = "postgres")]
        crate::log::Engine::Postgres => postgres::setup(settings, members, how).await,
        #[cfg(not(all(feature = "nats", feature = "postgres")))]
        engine => Err(engine.missing()),
    }
}
