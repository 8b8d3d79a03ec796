// SPDX-License-Identifier: GPL-3.0-or-later
//! The statements for requests to a log.

use super::append::fits;
use super::database::{Database, INT8, signed, unsigned};
use super::signals::Channel;
use crate::log::types::{Client, Ends, LogError, Place, StateReport};
use bulkmark_counts::Limits;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// See [`crate::log::Log::ends`].
pub(super) async fn ends(database: &Database) -> Result<Ends, LogError> {
    let sql = "select l.made, b.last, s.last, coalesce((select min(place) from bulkmark.steps), s.last + 1),
        extract(epoch from now())::bigint
        from bulkmark.log l, bulkmark.ends b, bulkmark.ends s where b.name = 'batches' and s.name = 'steps'";
    let rows = database.ask(sql, &[]).await?;
    let missing = || LogError::NotSetUp("the log has no ends: bulkmark fleet setup makes them".to_owned());
    let row = rows.first().ok_or_else(missing)?;
    database.link.compare_clock(unsigned(row.get(4)));
    Ok(Ends {
        made: unsigned(row.get(0)),
        batches: Place(unsigned(row.get(1))),
        steps: Place(unsigned(row.get(2))),
        first_step: Place(unsigned(row.get(3))),
    })
}

/// See [`crate::log::Log::first_batch`].
pub(super) async fn first_batch(database: &Database) -> Result<Place, LogError> {
    let sql = "select coalesce((select min(place) from bulkmark.batches), b.last + 1) from bulkmark.ends b where b.name = 'batches'";
    let rows = database.ask(sql, &[]).await?;
    Ok(Place(rows.first().map_or(0, |row| unsigned(row.get(0)))))
}

/// See [`crate::log::Log::append_step`].
pub(super) async fn append_step(
    database: &Database,
    after: Place,
    bytes: &[u8],
) -> Result<Option<Place>, LogError> {
    fits(bytes, "a step")?;
    let session = database.session().await?;
    database.link.sent(bytes.len());
    let after = signed(after.0);
    let parameters = [(&after as _, INT8), (&bytes as _, Type::BYTEA)];
    let sql = "select bulkmark.append_step($1, $2)";
    let rows = session.ask_and_notify(sql, &parameters, Channel::Steps).await?;
    let place: Option<i64> = rows.first().and_then(|row| row.get(0));
    Ok(place.map(|place| Place(unsigned(place))))
}

/// See [`crate::log::Log::clients`]. A milter may read only its own entry.
pub(super) async fn clients(database: &Database) -> Result<Vec<Client>, LogError> {
    let allowed = database.ask("select has_table_privilege('bulkmark.clients', 'select')", &[]).await?;
    let sql = if allowed.first().is_some_and(|row| row.get(0)) {
        "select name, influence, quota, withdrawn from bulkmark.clients order by name"
    } else {
        "select name, influence, quota, withdrawn from bulkmark.me"
    };
    let rows = database.ask(sql, &[]).await?;
    Ok(rows.iter().map(client).collect())
}

/// See [`crate::log::Log::publish_state`]. The database checks the role and the size.
pub(super) async fn publish_state(database: &Database, report: &[u8]) -> Result<(), LogError> {
    database.ask("select bulkmark.tell($1)", &[(&report as _, Type::BYTEA)]).await.map(drop)
}

/// See [`crate::log::Log::end_stuck`].
pub(super) async fn end_stuck(database: &Database) -> Result<Vec<String>, LogError> {
    let rows = database.ask("select bulkmark.end_stuck()", &[]).await?;
    Ok(rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default())
}

/// See [`crate::log::Log::exposures`]: functions that docs/fleet-postgres.md revokes, and prepared transactions, which keep their locks
/// without a connection that could be ended.
pub(super) async fn exposures(database: &Database) -> Result<Vec<String>, LogError> {
    let sql = "select distinct p.proname::text from pg_catalog.pg_proc p
        where p.pronamespace = 'pg_catalog'::regnamespace and has_function_privilege(p.oid, 'execute')
            and p.proname ~ '^(lo_|lowrite|pg_logical_emit_message|pg_notify|pg_advisory_|pg_try_advisory_)'
        union all select 'PREPARE TRANSACTION' where current_setting('max_prepared_transactions')::integer > 0
        order by 1";
    Ok(database.ask(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// See [`crate::log::Log::state_reports`].
pub(super) async fn state_reports(database: &Database) -> Result<Vec<StateReport>, LogError> {
    let sql = "select m.name, m.age, m.word from (
            select name, word, floor(extract(epoch from clock_timestamp()))::bigint - at as age from bulkmark.members) m
        where m.age < 3600 order by m.name";
    let rows = database.ask(sql, &[]).await?;
    let report = |row: &Row| StateReport {
        name: row.get(0),
        seconds_ago: u64::try_from(row.get::<_, i64>(1)).unwrap_or_default(),
        bytes: row.get(2),
    };
    Ok(rows.iter().map(report).collect())
}

/// See [`crate::log::Log::aggregators`]: the members of their role, except the owner, which a server may add to it.
pub(super) async fn aggregators(database: &Database) -> Result<Vec<String>, LogError> {
    let sql = "select r.rolname::text from pg_catalog.pg_auth_members m
        join pg_catalog.pg_roles g on g.oid = m.roleid join pg_catalog.pg_roles r on r.oid = m.member
        where g.rolname::text = current_database()::text || '_aggregator' and r.rolcanlogin and r.oid not in (
            select n.nspowner from pg_catalog.pg_namespace n where n.nspname::text = 'bulkmark')
        order by 1";
    Ok(database.ask(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// Converts a row of `clients`, without the rate, which the database enforces.
pub(super) fn client(row: &Row) -> Client {
    let number = |i| row.get::<_, Option<i64>>(i).map(|number| u32::try_from(number).unwrap_or_default());
    let limits = number(1).zip(number(2)).map(|(influence, quota)| Limits { influence, quota });
    Client { name: row.get(0), limits, withdrawn: number(3).unwrap_or_default(), rate: None }
}
