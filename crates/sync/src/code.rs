// SPDX-License-Identifier: GPL-3.0-or-later
//! Machine-readable reasons for refusals: a code in a header of the answer. The text in the body is for people only.

use reqwest::StatusCode;
use std::fmt;
use std::str::FromStr;

/// The header with the code.
pub const HEADER: &str = "bulkmark-error";

/// Reasons for refusals; docs/protocol.md says how a client reacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The request needs a token and has none.
    TokenMissing,
    /// Its token is not valid.
    TokenInvalid,
    /// Too many tokens from its address were invalid.
    TokenBlocked,
    /// The client has another role.
    Role,
    /// The client sends too many reports or questions.
    Rate,
    /// The client reached its quota of different signatures in this window.
    Quota,
    /// The client's signatures are made up. Its reports are refused until the administrator gives it another token.
    MadeUp,
    /// The client has too many connections or streams at a time.
    TooMany,
    /// The client has other parameters.
    Parameters,
    /// The clocks do not agree.
    Clock,
    /// The query in the address cannot be parsed.
    Request,
    /// The body cannot be parsed.
    Body,
    /// The body's format has another version.
    BodyVersion,
    /// The body is too long.
    BodyTooLong,
    /// The body did not arrive in time.
    BodyTooSlow,
    /// A batch with a higher number was counted already.
    BatchNumber,
    /// Updates that the client lacks are no longer kept.
    UpdatesGone,
    /// The client knows another history of an origin.
    OtherHistory,
    /// The snapshot is no longer kept.
    SnapshotGone,
    /// The server's disk cannot be read or written.
    Unavailable,
    /// The server is an aggregator of a fleet, which takes reports from its log only.
    Fleet,
    /// The server's operator has not approved the client yet.
    Unapproved,
    /// Sites cannot register by themselves.
    RegistrationClosed,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 23] = [
        Self::TokenMissing,
        Self::TokenInvalid,
        Self::TokenBlocked,
        Self::Role,
        Self::Rate,
        Self::Quota,
        Self::MadeUp,
        Self::TooMany,
        Self::Parameters,
        Self::Clock,
        Self::Request,
        Self::Body,
        Self::BodyVersion,
        Self::BodyTooLong,
        Self::BodyTooSlow,
        Self::BatchNumber,
        Self::UpdatesGone,
        Self::OtherHistory,
        Self::SnapshotGone,
        Self::Unavailable,
        Self::Fleet,
        Self::Unapproved,
        Self::RegistrationClosed,
    ];

    /// Returns the code as it is in the header.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenMissing => "token-missing",
            Self::TokenInvalid => "token-invalid",
            Self::TokenBlocked => "token-blocked",
            Self::Role => "role",
            Self::Rate => "rate",
            Self::Quota => "quota",
            Self::MadeUp => "made-up",
            Self::TooMany => "too-many",
            Self::Parameters => "parameters",
            Self::Clock => "clock",
            Self::Request => "request",
            Self::Body => "body",
            Self::BodyVersion => "body-version",
            Self::BodyTooLong => "body-too-long",
            Self::BodyTooSlow => "body-too-slow",
            Self::BatchNumber => "batch-number",
            Self::UpdatesGone => "updates-gone",
            Self::OtherHistory => "other-history",
            Self::SnapshotGone => "snapshot-gone",
            Self::Unavailable => "unavailable",
            Self::Fleet => "fleet",
            Self::Unapproved => "unapproved",
            Self::RegistrationClosed => "registration-closed",
        }
    }

    /// Returns the status of the answer.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Request | Self::Body | Self::BodyVersion => StatusCode::BAD_REQUEST,
            Self::TokenMissing | Self::TokenInvalid => StatusCode::UNAUTHORIZED,
            Self::Role | Self::Fleet | Self::Unapproved | Self::RegistrationClosed => StatusCode::FORBIDDEN,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Parameters | Self::Clock | Self::BatchNumber | Self::OtherHistory => StatusCode::CONFLICT,
            Self::UpdatesGone | Self::SnapshotGone => StatusCode::GONE,
            Self::BodyTooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TokenBlocked | Self::Rate | Self::Quota | Self::MadeUp | Self::TooMany => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the code for an answer without one, which may be a proxy's. Codes that make a client drop counts or fetch them again are
    /// returned only for an unmistakable status.
    #[must_use]
    pub fn of_status(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::UNAUTHORIZED => Some(Self::TokenInvalid),
            StatusCode::FORBIDDEN => Some(Self::Role),
            StatusCode::GONE => Some(Self::UpdatesGone),
            StatusCode::PAYLOAD_TOO_LARGE => Some(Self::BodyTooLong),
            StatusCode::TOO_MANY_REQUESTS => Some(Self::Rate),
            StatusCode::SERVICE_UNAVAILABLE => Some(Self::Unavailable),
            _ => None,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown code, from a newer server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownCode;

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(name: &str) -> Result<Self, UnknownCode> {
        Self::ALL.into_iter().find(|code| code.name() == name).ok_or(UnknownCode)
    }
}
