// SPDX-License-Identifier: GPL-3.0-or-later
//! Ends members' open transactions that block `setup`.

use super::super::error::{is_locked, is_unknown, meaning};
use super::{Kind, Work, first_line, in_words, quoted};
use crate::log::types::LogError;
use std::collections::BTreeSet;

/// How often connections are ended that block one change of the schema.
const OBSTACLES: u32 = 3;

impl Work<'_> {
    /// Changes the schema. Connections with an open transaction that block it are ended, and it is repeated.
    pub(super) async fn change(&self, sql: &str, optional: bool) -> Result<(), LogError> {
        for _ in 0..OBSTACLES {
            match self.session.run(sql).await {
                Err(e) if optional && is_unknown(&e) => return Ok(()),
                Err(e) if is_locked(&e) => self.cut_off_all().await?,
                done => return done.map_err(|e| in_words(first_line(sql), meaning(&e))),
            }
        }
        self.session.run(sql).await.map_err(|e| in_words(first_line(sql), meaning(&e)))
    }

    /// Ends the connections of members with an open transaction.
    pub(super) async fn cut_off_all(&self) -> Result<(), LogError> {
        let mut roles = BTreeSet::new();
        for kind in Kind::ALL {
            roles.append(&mut self.inside(kind).await?);
        }
        for role in &roles {
            self.may_end_from_now_on(role).await?;
        }
        let sql = "select pg_terminate_backend(a.pid)::text from pg_catalog.pg_stat_activity a
            where a.usename::text = any($1) and a.xact_start is not null and pg_has_role(current_user, a.usesysid, 'usage')";
        match self.names(sql, &roles.into_iter().collect::<Vec<_>>()).await {
            Err(why @ LogError::Denied(_)) => Err(why),
            _ => Ok(()),
        }
    }

    /// Makes the owner a member of a role, so that it may end the role's connections; silently, if the server does not allow it.
    pub(super) async fn may_end_from_now_on(&self, role: &str) -> Result<(), LogError> {
        if self.may_end(role).await? {
            return Ok(());
        }
        match self
            .session
            .run(&format!("grant {} to current_user", quoted(role)))
            .await
            .map_err(|e| meaning(&e))
        {
            Err(LogError::Unavailable(what)) => Err(LogError::Unavailable(what)),
            _ => Ok(()),
        }
    }

    /// Ends the connections of these roles, whose open transactions would block all later changes. Does nothing if the database has no such
    /// function.
    pub(super) async fn cut_off(&self, roles: &[String]) -> Result<(), LogError> {
        let sql = "select pg_terminate_backend(a.pid)::text from pg_catalog.pg_stat_activity a
            where a.usename::text = any($1) and pg_has_role(current_user, a.usesysid, 'usage')";
        match self.names(sql, roles).await {
            Err(why @ LogError::Denied(_)) => Err(why),
            _ => Ok(()),
        }
    }

    /// Whether the owner may end a role's connections.
    pub(super) async fn may_end(&self, name: &str) -> Result<bool, LogError> {
        let sql = "select rolname::text from pg_catalog.pg_roles
            where rolname::text = any($1) and pg_has_role(current_user, oid, 'usage')";
        Ok(!self.names(sql, &[name.to_owned()]).await?.is_empty())
    }
}
