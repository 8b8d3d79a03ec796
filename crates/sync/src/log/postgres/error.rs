// SPDX-License-Identifier: GPL-3.0-or-later
//! The meaning of PostgreSQL's errors for a fleet.

use crate::log::types::LogError;
use bulkmark_types::remote_text;
use std::error::Error as _;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Converts an error.
pub(super) fn meaning(error: &Error) -> LogError {
    let Some(known) = error.as_db_error() else { return without_code(error) };
    // It may quote text of others.
    let text = remote_text(&format!("{} ({})", known.message(), known.code().code()));
    let code = known.code();
    if *code == SqlState::INSUFFICIENT_PRIVILEGE || code.code().starts_with("28") {
        return LogError::Denied(text);
    }
    let missing = [
        SqlState::INVALID_CATALOG_NAME,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_FUNCTION,
    ];
    if missing.contains(code) {
        return LogError::NotSetUp(format!("{text}: bulkmark fleet setup makes it"));
    }
    if *code == SqlState::CONFIGURATION_LIMIT_EXCEEDED {
        return LogError::RateLimited(text);
    }
    if *code == SqlState::DISK_FULL {
        return LogError::Full(text);
    }
    LogError::Unavailable(text)
}

/// Converts an error without a code from the server.
fn without_code(error: &Error) -> LogError {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    if text.ends_with("password missing") {
        return LogError::Denied("it asks for a password, and there is no secret-file".to_owned());
    }
    if text.ends_with("unsupported authentication method") {
        return LogError::Denied(
            "it asks for Kerberos or the like; a password or a certificate can be had".to_owned(),
        );
    }
    LogError::Unavailable(remote_text(&text))
}

/// Whether the connection is unusable: it ended, or leads to a read-only server.
pub(super) fn is_end(error: &Error) -> bool {
    error.as_db_error().is_none_or(|known| {
        let code = known.code().code();
        code == SqlState::READ_ONLY_SQL_TRANSACTION.code()
            || code.starts_with("57P")
            || code.starts_with("08")
            || known.parsed_severity().is_some_and(|severity| {
                use tokio_postgres::error::Severity;
                matches!(severity, Severity::Fatal | Severity::Panic)
            })
    })
}

/// Whether the statement may be repeated at once: it conflicted with another one and was rolled back.
pub(super) fn is_conflict(error: &Error) -> bool {
    let conflicts = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    error.code().is_some_and(|code| conflicts.contains(code))
}

/// Whether waiting for another session's lock timed out.
pub(super) fn is_locked(error: &Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether the database does not know a feature, as databases that only share PostgreSQL's protocol may not.
pub(super) fn is_unknown(error: &Error) -> bool {
    let unknown = [
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::SYNTAX_ERROR,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::UNDEFINED_PARAMETER,
        SqlState::INVALID_PARAMETER_VALUE,
        SqlState::UNDEFINED_OBJECT,
    ];
    error.code().is_some_and(|code| unknown.contains(code))
}
