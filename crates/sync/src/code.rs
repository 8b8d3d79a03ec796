// SPDX-License-Identifier: GPL-3.0-or-later
//! Why a server refuses, for programs: a code in a header of the answer. The text of the body is for people only.

use reqwest::StatusCode;
use std::fmt;
use std::str::FromStr;

/// The header that carries it.
pub const HEADER: &str = "bulkmark-error";

/// Why a server refuses; docs/protocol.md says what a client does then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The request has no token, and needs one.
    TokenMissing,
    /// Its token is not valid.
    TokenInvalid,
    /// Too many tokens from its address were not.
    TokenBlocked,
    /// The client has another role.
    Role,
    /// The client sends or asks too much.
    Rate,
    /// The client brought as many different signatures as it may in this window.
    Quota,
    /// The client's signatures are made up, and nothing is taken of it until the administrator says otherwise.
    MadeUp,
    /// The client has too many connections or streams at a time.
    TooMany,
    /// The client counts otherwise.
    Parameters,
    /// Both clocks do not agree.
    Clock,
    /// What stands in the address cannot be read.
    Request,
    /// The body is not what was expected.
    Body,
    /// The body has a form of another version.
    BodyVersion,
    /// It is too long.
    BodyTooLong,
    /// It did not come in time.
    BodyTooSlow,
    /// A batch with a higher number was counted already.
    BatchNumber,
    /// Updates that the client lacks are not kept any more.
    UpdatesGone,
    /// The client knows another history of an origin.
    OtherHistory,
    /// The snapshot is not kept any more.
    SnapshotGone,
    /// The server's disk takes or tells nothing.
    Unavailable,
    /// The server is an aggregator of a fleet, and takes reports from its log only.
    Fleet,
    /// The server's operator has not approved the client yet.
    Unapproved,
    /// No site may register by itself.
    RegistrationClosed,
}

impl Code {
    /// All of them.
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

    /// As the header has it.
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

    /// The status of the answer.
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

    /// What an answer without a code means, which a proxy may have given: nothing for which counts would be dropped or taken
    /// again, unless it cannot be otherwise.
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

/// A code that is not known here: of a newer server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownCode;

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(name: &str) -> Result<Self, UnknownCode> {
        Self::ALL.into_iter().find(|code| code.name() == name).ok_or(UnknownCode)
    }
}
