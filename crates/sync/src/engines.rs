// SPDX-License-Identifier: GPL-3.0-or-later
//! Selects the engine of a log; the only place that knows all engines.

#[cfg(feature = "nats")]
use crate::log::nats;
#[cfg(feature = "postgres")]
use crate::log::postgres;
use crate::log::{LogError, Member, SetUp, Settings};

/// Opens the log of these settings and runs an expression with it, for any engine: `with_log!(settings, link, |log| ask(&log).await)`,
/// where [`LogError`](crate::log::LogError) is returned by `?`. The calling crate also needs the features `nats` and `postgres`.
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

/// Sets up the log of these settings for a fleet of these members. It may be repeated at any time. Members in the log that are not in the
/// list lose their access.
///
/// Returns a line for each change that it made or, with `dry_run`, would make; none if nothing differs.
///
/// # Errors
/// If the log cannot be reached, or this user lacks the rights.
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
