// SPDX-License-Identifier: GPL-3.0-or-later
//! Sets up a database for a fleet, with access for its members.

mod obstacles;

use super::database::{Database, FORMAT, all_of, shown};
use super::engine::client;
use super::error::{is_unknown, meaning};
use super::session::Session;
use crate::log::members::{Duty, Member, SetUp};
use crate::log::settings::{Host, Settings};
use crate::log::types::{Client, LogError};
use crate::state::Link;
use bulkmark_ledger::random_bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use tokio_postgres::types::Type;

const SCHEMA: &str = include_str!("schema.sql");

/// The revision of the schema, raised by each change of `schema.sql` that an older program can do without.
const REVISION: i32 = 5;

/// Maximum of connections of one role: one for each daemon, and some for commands and for dead ones that the server has not noticed yet. So
/// one machine cannot take all.
const CONNECTIONS: u32 = 10;

/// Sets up the database, and gives access to these members and no others; see [`set_up`](crate::engines::set_up). `settings` are those of
/// the database's owner, who may create roles. Two fleets need two databases.
///
/// # Errors
/// When a change fails. Earlier changes stay, and the next run makes the rest.
pub async fn setup(settings: &Settings, members: &[Member], how: &SetUp) -> Result<Vec<String>, LogError> {
    // Check that all files can be read before any change.
    for member in members {
        crate::log::check_name(&member.name).map_err(LogError::Setup)?;
        as_member(settings, member).password()?;
    }
    let address = settings.address()?;
    let database = address.database.clone().unwrap_or_default();
    let link = Arc::new(Link::new(&settings.log));
    Database::new(settings, Arc::clone(&link))?;
    let mut failures = Vec::new();
    for host in &address.hosts {
        match Session::open(settings, host, &database, &link).await {
            Ok(session) => {
                let place = Place { settings, host, database: &database, link: &link };
                let mut work = Work { session, place, dry_run: how.dry_run, lines: Vec::new() };
                work.schema().await?;
                work.members(members).await?;
                return Ok(work.lines);
            }
            Err(why) => failures.push((shown(host), why)),
        }
    }
    Err(all_of(failures))
}

/// The database that is set up.
struct Place<'a> {
    settings: &'a Settings,
    host: &'a Host,
    database: &'a str,
    link: &'a Arc<Link>,
}

struct Work<'a> {
    session: Session,
    place: Place<'a>,
    dry_run: bool,
    /// A line for each change.
    lines: Vec<String>,
}

/// The rights of a member, by its group role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Reporter,
    Aggregator,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Reporter, Self::Aggregator];

    fn of(member: &Member) -> Self {
        match member.duty {
            Duty::Milter { .. } => Self::Reporter,
            Duty::Aggregator => Self::Aggregator,
        }
    }

    /// Returns the group role. Roles belong to the whole server, so its name contains the database's.
    fn role(self, database: &str) -> String {
        match self {
            Self::Reporter => format!("{database}_reporter"),
            Self::Aggregator => format!("{database}_aggregator"),
        }
    }
}

impl Work<'_> {
    fn group(&self, kind: Kind) -> String {
        kind.role(self.place.database)
    }

    /// Makes a change and describes it, or only shows its SQL in a dry run. `hidden` is a text that must not be shown.
    async fn act(&mut self, what: &str, sql: &str, hidden: &str) -> Result<(), LogError> {
        if self.dry_run {
            let sql = if hidden.is_empty() { sql.to_owned() } else { sql.replace(hidden, "...") };
            self.lines.push(format!("{sql};"));
            return Ok(());
        }
        self.session.run(sql).await.map_err(|e| in_words(what, meaning(&e)))?;
        self.lines.push(what.to_owned());
        Ok(())
    }

    /// Returns the names in the first column of a query's result.
    async fn names(&self, sql: &'static str, about: &[String]) -> Result<BTreeSet<String>, LogError> {
        let rows = self.session.ask(sql, &[(&about, Type::TEXT_ARRAY)]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Returns those of these roles that exist.
    async fn roles(&self, about: &[String]) -> Result<BTreeSet<String>, LogError> {
        self.names("select rolname::text from pg_catalog.pg_roles where rolname::text = any($1)", about).await
    }

    async fn schema(&mut self) -> Result<(), LogError> {
        let found = match self.session.ask("select format from bulkmark.log", &[]).await {
            Ok(rows) => rows.first().map(|row| row.get::<_, i32>(0)),
            Err(LogError::NotSetUp(_)) => None,
            Err(why) => return Err(why),
        };
        let groups = Kind::ALL.map(|kind| self.group(kind));
        let there = self.roles(&groups).await?;
        for role in groups.iter().filter(|role| !there.contains(*role)) {
            self.act(&format!("role {role}"), &format!("create role {} nologin", quoted(role)), "").await?;
        }
        match found {
            Some(FORMAT) if there.len() == groups.len() && self.is_whole(&groups).await? => return Ok(()),
            Some(newer) if newer > FORMAT => {
                return Err(LogError::NotSetUp(format!(
                    "the log in {} is of version {newer}, this program knows {FORMAT}: a newer bulkmark is needed here",
                    self.place.database
                )));
            }
            _ => (),
        }
        // Only half of the range, so that all readers see a number without a sign.
        let [made] = random_bytes::<8>()
            .map(|bytes| [i64::from_le_bytes(bytes) >> 1 & i64::MAX])
            .map_err(|e| LogError::Setup(e.to_string()))?;
        for (sql, optional) in statements(self.place.database, &groups, made) {
            if self.dry_run {
                self.lines.push(format!("{sql};"));
                continue;
            }
            self.change(&sql, optional).await?;
        }
        if !self.dry_run {
            self.lines.push(format!("schema bulkmark in {}, version {FORMAT}", self.place.database));
        }
        Ok(())
    }

    /// Whether the schema has all additions since its first version.
    async fn is_whole(&self, groups: &[String; 2]) -> Result<bool, LogError> {
        let sql = "select grantee::text from information_schema.role_routine_grants
            where routine_schema = 'bulkmark' and routine_name = 'tell' and grantee::text = any($1)";
        if self.names(sql, groups).await?.len() < groups.len() || !self.has("revision").await? {
            return Ok(false);
        }
        let rows = self.session.ask("select revision from bulkmark.log", &[]).await?;
        let found: Option<i32> = rows.first().and_then(|row| row.get(0));
        Ok(found.is_some_and(|found| found >= REVISION))
    }

    /// Whether the table `log` has this column.
    async fn has(&self, column: &str) -> Result<bool, LogError> {
        let sql = "select column_name::text from information_schema.columns
            where table_schema = 'bulkmark' and table_name = 'log' and column_name::text = any($1)";
        Ok(!self.names(sql, &[column.to_owned()]).await?.is_empty())
    }

    /// Returns the rates of clients that have one, in signatures a second.
    async fn rates(&self) -> Result<BTreeMap<String, i64>, LogError> {
        if !self.has("has_rates").await? {
            return Ok(BTreeMap::new());
        }
        let sql = "select name, rate from bulkmark.clients where rate is not null";
        let rows = self.session.ask(sql, &[]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    async fn members(&mut self, members: &[Member]) -> Result<(), LogError> {
        let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        let roles = self.roles(&names).await?;
        let mut inside = BTreeMap::new();
        let made = self.made().await?;
        for kind in Kind::ALL {
            inside.insert(kind, self.inside(kind).await?);
        }
        for member in members {
            let there = roles.contains(&member.name);
            let known =
                made.contains(&member.name) || inside.values().any(|roles| roles.contains(&member.name));
            self.member(member, there, known, &inside).await?;
        }
        let leave: Vec<String> = (made.iter().filter(|role| !names.contains(role)).cloned()).collect();
        if !self.dry_run {
            self.cut_off(&leave).await?;
        }
        for kind in Kind::ALL {
            for role in &inside[&kind] {
                let stays = members.iter().any(|member| member.name == *role && Kind::of(member) == kind);
                if !stays {
                    let group = self.group(kind);
                    let sql = format!("revoke {} from {}", quoted(&group), quoted(role));
                    self.act(&format!("role {role} is no longer a member of {group}"), &sql, "").await?;
                }
            }
        }
        for role in made.iter().filter(|role| !names.contains(role)) {
            let sql = format!(
                "drop role if exists {}; delete from bulkmark.roles where name = '{role}'; \
                 delete from bulkmark.members where name = '{role}'; \
                 delete from bulkmark.meters where client in ('{role}', 'steps/{role}', 'snapshots/{role}')",
                quoted(role)
            );
            self.act(&format!("role {role} is dropped"), &sql, "").await?;
        }
        self.clients(members).await
    }

    /// Returns the roles that setup created.
    async fn made(&self) -> Result<BTreeSet<String>, LogError> {
        match self.session.ask("select name from bulkmark.roles", &[]).await {
            Ok(rows) => Ok(rows.iter().map(|row| row.get(0)).collect()),
            Err(LogError::NotSetUp(_)) if self.dry_run => Ok(BTreeSet::new()),
            Err(why) => Err(why),
        }
    }

    /// Returns the members of a group role, without its owner.
    async fn inside(&self, kind: Kind) -> Result<BTreeSet<String>, LogError> {
        let sql = "select r.rolname::text from pg_catalog.pg_auth_members m
            join pg_catalog.pg_roles g on g.oid = m.roleid join pg_catalog.pg_roles r on r.oid = m.member
            where g.rolname::text = any($1) and r.rolname <> current_user";
        self.names(sql, &[self.group(kind)]).await
    }

    async fn member(
        &mut self,
        member: &Member,
        there: bool,
        known: bool,
        inside: &BTreeMap<Kind, BTreeSet<String>>,
    ) -> Result<(), LogError> {
        let (name, kind) = (&member.name, Kind::of(member));
        let (role, group) = (quoted(name), self.group(kind));
        let verifier = as_member(self.place.settings, member)
            .password()?
            .map(|password| postgres_protocol::password::scram_sha_256(password.as_bytes()));
        if there && !known {
            return Err(LogError::Setup(format!(
                "the server has a role {name} that is not of this fleet: take another name, or let it in with GRANT {} TO {role}",
                quoted(&group),
            )));
        }
        let secret = verifier.as_deref().unwrap_or_default();
        if !there {
            let password =
                verifier.as_ref().map(|secret| format!(" password '{secret}'")).unwrap_or_default();
            let sql = format!(
                "insert into bulkmark.roles (name) values ('{name}') on conflict (name) do nothing; \
                 create role {role} login{password}; grant {role} to current_user"
            );
            self.act(&format!("role {name}"), &sql, secret).await?;
            self.limit(&role).await?;
        } else if verifier.is_some() && !self.opens(member).await? {
            let sql = format!("alter role {role} password '{secret}'");
            self.act(&format!("role {name} has another password"), &sql, secret).await?;
        }
        if there && !self.may_end(name).await? {
            // Otherwise nobody could end this role's connections; see end_stuck in schema.sql.
            let sql = format!("grant {role} to current_user");
            match self.act(&format!("connections of {name} can be ended"), &sql, "").await {
                // The role was created by somebody else. The aggregators' log says so when it matters.
                Err(LogError::Denied(what)) => log::warn!("{what}"),
                done => done?,
            }
        }
        if !inside[&kind].contains(name) {
            let sql = format!("grant {} to {role}", quoted(&group));
            self.act(&format!("role {name} is a member of {group}"), &sql, "").await?;
        }
        Ok(())
    }

    /// Limits the connections of a new role, if the database can.
    async fn limit(&mut self, role: &str) -> Result<(), LogError> {
        let sql = format!("alter role {role} connection limit {CONNECTIONS}");
        if self.dry_run {
            self.lines.push(format!("{sql};"));
            return Ok(());
        }
        match self.session.run(&sql).await {
            Err(e) if !is_unknown(&e) => Err(in_words(&sql, meaning(&e))),
            _ => Ok(()),
        }
    }

    /// Whether a member's password works. PostgreSQL does not show passwords to users who may create roles.
    async fn opens(&self, member: &Member) -> Result<bool, LogError> {
        let settings = as_member(self.place.settings, member);
        match Session::open(&settings, self.place.host, self.place.database, self.place.link).await {
            Ok(_) => Ok(true),
            Err(LogError::Denied(_)) => Ok(false),
            Err(why) => Err(why),
        }
    }

    async fn clients(&mut self, members: &[Member]) -> Result<(), LogError> {
        let wanted: Vec<Client> = members.iter().filter_map(Member::client).collect();
        let sql = "select name, influence, quota, withdrawn from bulkmark.clients";
        let found: Vec<Client> = match self.session.ask(sql, &[]).await {
            Ok(rows) => rows.iter().map(client).collect(),
            Err(LogError::NotSetUp(_)) if self.dry_run => Vec::new(),
            Err(why) => return Err(why),
        };
        let rates = self.rates().await?;
        let is_there = |one: &Client| {
            let rate = rates.get(&one.name).copied();
            rate == one.rate.map(|rate| i64::from(rate.get()))
                && found.contains(&Client { rate: None, ..one.clone() })
        };
        for one in wanted.iter().filter(|one| !is_there(one)) {
            let number =
                |limit: Option<u32>| limit.map_or_else(|| "null".to_owned(), |number| number.to_string());
            let (influence, quota) = (
                number(one.limits.map(|limits| limits.influence)),
                number(one.limits.map(|limits| limits.quota)),
            );
            let rate = number(one.rate.map(NonZeroU32::get));
            let sql = format!(
                "insert into bulkmark.clients (name, influence, quota, withdrawn, rate) \
                 values ('{}', {influence}, {quota}, {}, {rate}) \
                 on conflict (name) do update set influence = excluded.influence, quota = excluded.quota, \
                 withdrawn = excluded.withdrawn, rate = excluded.rate",
                one.name, one.withdrawn
            );
            let limits = one.limits.map_or_else(
                || "without limits".to_owned(),
                |limits| format!("with influence {} and quota {}", limits.influence, limits.quota),
            );
            let at_most =
                one.rate.map(|rate| format!(", at most {rate} signatures a second")).unwrap_or_default();
            let what = format!("client {} {limits}, withdrawn {} times{at_most}", one.name, one.withdrawn);
            self.act(&what, &sql, "").await?;
        }
        for one in found.iter().filter(|one| !wanted.iter().any(|wanted| wanted.name == one.name)) {
            let name = one.name.replace('\'', "''");
            let sql = format!("delete from bulkmark.clients where name = '{name}'");
            self.act(&format!("{} is no longer a client", one.name), &sql, "").await?;
        }
        Ok(())
    }
}

/// Returns a member's own configuration, as far as it is known here.
fn as_member(settings: &Settings, member: &Member) -> Settings {
    Settings {
        name: Some(member.name.clone()),
        secret_file: member.password_file.clone(),
        cert_file: None,
        ..settings.clone()
    }
}

/// Returns the statements of the schema, and whether each is optional.
fn statements(database: &str, groups: &[String; 2], made: i64) -> Vec<(String, bool)> {
    let sql = SCHEMA
        .replace("{database}", &quoted(database))
        .replace("{reporter}", &quoted(&groups[0]))
        .replace("{aggregator}", &quoted(&groups[1]))
        .replace("{format}", &FORMAT.to_string())
        .replace("{revision}", &REVISION.to_string())
        .replace("{made}", &made.to_string());
    let mut statements = Vec::new();
    for (i, piece) in sql.split("\n--;").enumerate() {
        let (mark, statement) = piece.split_once('\n').unwrap_or(("", piece));
        // The first one follows the file's licence.
        let statement = if i == 0 { &piece[piece.find("create").unwrap_or(0)..] } else { statement };
        statements.push((statement.trim().to_owned(), mark.trim() == "optional"));
    }
    statements
}

fn first_line(sql: &str) -> &str {
    sql.lines().find(|line| !line.starts_with("--")).unwrap_or(sql)
}

/// Adds the failed change to an error.
fn in_words(what: &str, why: LogError) -> LogError {
    match why {
        LogError::Denied(reason) => LogError::Denied(format!("{what}: {reason}")),
        LogError::NotSetUp(reason) | LogError::Unavailable(reason) => {
            LogError::Unavailable(format!("{what}: {reason}"))
        }
        other => other,
    }
}

/// Quotes a name for SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_whole_and_ends_with_its_version() {
        let groups = ["bulk-1_reporter".to_owned(), "bulk-1_aggregator".to_owned()];
        let all = statements("bulk-1", &groups, 17);
        assert!(all.len() > 40, "{}", all.len());
        assert_eq!(all[0], ("create schema if not exists bulkmark".to_owned(), false));
        let (last, optional) = all.last().unwrap();
        assert!(last.contains("values (1, 1, 17, 86400, 5)") && !optional, "{last}");
        assert!(all.iter().any(|(sql, _)| sql.contains("to \"bulk-1_reporter\", \"bulk-1_aggregator\"")));
        assert!(all.iter().all(|(sql, _)| !sql.contains('{') && !sql.contains("--;") && !sql.is_empty()));
        let optional: Vec<_> =
            all.iter().filter(|(_, optional)| *optional).map(|(sql, _)| first_line(sql)).collect();
        assert!(optional.iter().all(|sql| sql.starts_with("alter ")), "{optional:?}");
    }
}
