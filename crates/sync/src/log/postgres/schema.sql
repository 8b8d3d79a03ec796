-- SPDX-License-Identifier: GPL-3.0-or-later
-- The tables and functions of a fleet in PostgreSQL. Lines of "--;" separate statements. {reporter} and {aggregator} are the roles of all
-- milters and of all aggregators, {database} is the database, {made} a random number. "--; optional" precedes statements that another
-- database may not know and that can be left out.
--
-- No name is looked up in a search path, since functions run as their owner.
create schema if not exists bulkmark
--;
revoke all on schema bulkmark from public
--;
-- The identity of the log. Its row is written last: without it, the log is not set up.
create table if not exists bulkmark.log (
    one integer primary key check (one = 1),
    format integer not null,
    made bigint not null,
    keep_seconds bigint not null check (keep_seconds >= 0)
)
--;
-- The end of each kind of entry. A transaction that adds one locks this row first and changes it, too; so places have no gaps and become
-- visible in order, unlike the numbers of a sequence.
create table if not exists bulkmark.ends (
    name text primary key,
    last bigint not null,
    bytes bigint not null
)
--;
insert into bulkmark.ends (name, last, bytes)
values ('batches', 0, 0), ('steps', 0, 0), ('snapshots', 0, 0)
on conflict (name) do nothing
--;
-- The clients that may report, by role.
create table if not exists bulkmark.clients (
    name text primary key,
    influence bigint,
    quota bigint,
    withdrawn bigint not null
)
--;
-- Signatures a second that it may report; null for no limit.
alter table bulkmark.clients add column if not exists rate bigint
--;
-- Bytes reported by clients with a rate, minus those that their rate has allowed since; and the same for the steps of aggregators, as
-- "steps/NAME".
create table if not exists bulkmark.meters (
    client text primary key,
    at bigint not null,
    bytes bigint not null
)
--;
-- The roles that setup created, and may drop.
create table if not exists bulkmark.roles (
    name text primary key
)
--;
-- The last state report of each member, by role.
create table if not exists bulkmark.members (
    name text primary key,
    at bigint not null,
    word bytea not null
)
--;
create or replace view bulkmark.me as
select name, influence, quota, withdrawn from bulkmark.clients where name = session_user
--;
-- Each client has its own spools: nobody can take the numbers of another client's.
create table if not exists bulkmark.batches (
    place bigint primary key,
    client text not null,
    spool bigint not null,
    number bigint not null,
    attempt integer not null,
    at bigint not null,
    bytes bytea not null,
    unique (client, spool, number, attempt)
)
--;
-- total: bytes of all steps up to this one.
create table if not exists bulkmark.steps (
    place bigint primary key,
    at bigint not null,
    total bigint not null,
    bytes bytea not null
)
--;
-- batches, steps: the last of each when the snapshot was begun.
create table if not exists bulkmark.snapshots (
    number bigint primary key,
    id bigint not null unique,
    at bigint not null,
    parts integer not null,
    bytes bigint not null,
    batches bigint not null,
    steps bigint not null
)
--;
create table if not exists bulkmark.parts (
    id bigint not null,
    number integer not null,
    at bigint not null,
    bytes bytea not null,
    primary key (id, number)
)
--;
-- The role that put it. Nobody else adds to its snapshot, publishes or deletes it before it is published.
alter table bulkmark.parts add column if not exists owner text
--; optional
-- The content cannot be compressed further, and external storage gives its length without reading it.
alter table bulkmark.batches alter column bytes set storage external
--; optional
alter table bulkmark.steps alter column bytes set storage external
--; optional
alter table bulkmark.parts alter column bytes set storage external
--; optional
-- Its rows change with each batch and stay in one page.
alter table bulkmark.ends set (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0)
--; optional
alter table bulkmark.batches set (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05)
--; optional
alter table bulkmark.steps set (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05)
--; optional
alter table bulkmark.parts set (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05)
--; optional
-- A role's own functions must not run on the rows of others.
alter view bulkmark.me set (security_barrier = true)
--;
-- Appends batches of the connected role, and returns their places; for existing batches, the places that they have. From a client with a
-- rate it takes the first ones, as far as they fit, and fails if none does. The limit is a minute of the rate (18 bytes a signature) and
-- one whole batch. Each batch counts 200 bytes more, for its row.
create or replace function bulkmark.append(_spools bigint[], _numbers bigint[], _attempts integer[], _bodies bytea[])
returns bigint[]
language plpgsql
security definer
as $$
declare
    _client text;
    _rate bigint;
    _now bigint := floor(extract(epoch from clock_timestamp()))::bigint;
    _since bigint;
    _level bigint := 0;
    _last bigint;
    _place bigint;
    _places bigint[] := array[]::bigint[];
    _i integer := 1;
begin
    select c.name, c.rate into _client, _rate from bulkmark.clients c where c.name = session_user::text;
    if _client is null then
        raise exception 'role % is no client of this fleet', session_user using errcode = '42501';
    end if;
    if coalesce(array_length(_bodies, 1), 0) > 1000 then
        raise exception 'more than 1000 batches at once' using errcode = '22023';
    end if;
    -- Nobody waits for a transaction that appends nothing.
    if coalesce(array_length(_bodies, 1), 0) = 0 then
        return _places;
    end if;
    select e.last into _last from bulkmark.ends e where e.name = 'batches' for update;
    if _rate is not null then
        insert into bulkmark.meters (client, at, bytes) values (_client, _now, 0) on conflict (client) do nothing;
        select m.at, m.bytes into _since, _level from bulkmark.meters m where m.client = _client for update;
        _level := greatest(0, _level - greatest(0, _now - _since) * _rate * 18);
    end if;
    while _i <= coalesce(array_length(_bodies, 1), 0) loop
        if octet_length(_bodies[_i]) > 983040 then
            raise exception 'a batch of more than 983040 bytes' using errcode = '22023';
        end if;
        select b.place into _place from bulkmark.batches b
        where b.client = _client and b.spool = _spools[_i] and b.number = _numbers[_i] and b.attempt = _attempts[_i];
        if _place is null then
            if _rate is not null then
                if _level + octet_length(_bodies[_i]) + 200 > _rate * 1080 + 983240 then
                    exit when _i > 1;
                    raise exception '% may report % signatures a second, and has reported more', _client, _rate
                        using errcode = '53400';
                end if;
                _level := _level + octet_length(_bodies[_i]) + 200;
            end if;
            _last := _last + 1;
            _place := _last;
            insert into bulkmark.batches (place, client, spool, number, attempt, at, bytes)
            values (_place, _client, _spools[_i], _numbers[_i], _attempts[_i],
                _now, _bodies[_i]);
        end if;
        _places := array_append(_places, _place);
        _i := _i + 1;
    end loop;
    update bulkmark.ends set last = _last where name = 'batches' and last <> _last;
    if _rate is not null then
        update bulkmark.meters set at = _now, bytes = _level where client = _client;
    end if;
    return _places;
end
$$
--;
-- Stores the state report of the connected role, from a client with a rate once a second, and deletes those older than an hour.
create or replace function bulkmark.tell(_word bytea)
returns bigint
language plpgsql
security definer
as $$
declare
    _now bigint := floor(extract(epoch from clock_timestamp()))::bigint;
begin
    if octet_length(_word) > 32768 then
        raise exception 'a word of more than 32768 bytes' using errcode = '22023';
    end if;
    if exists (select 1 from bulkmark.members m join bulkmark.clients c on c.name = m.name
        where m.name = session_user::text and m.at = _now and c.rate is not null) then
        return 0;
    end if;
    insert into bulkmark.members (name, at, word) values (session_user::text, _now, _word)
    on conflict (name) do update set at = excluded.at, word = excluded.word;
    delete from bulkmark.members where at < _now - 3600;
    return 1;
end
$$
--;
-- Appends a step, and returns its place; null if another one is behind that place. From one aggregator it takes a hundred a second, and a
-- thousand at once, as when an aggregator appends again the steps that the log lost: so junk leaves room for the others' steps.
create or replace function bulkmark.append_step(_after bigint, _body bytea)
returns bigint
language plpgsql
security definer
as $$
declare
    _last bigint;
    _total bigint;
    _meter text := 'steps/' || session_user;
    _now bigint := floor(extract(epoch from clock_timestamp()))::bigint;
    _since bigint;
    _level bigint;
begin
    if octet_length(_body) > 983040 then
        raise exception 'a step of more than 983040 bytes' using errcode = '22023';
    end if;
    -- A late caller locks nothing.
    if _after is null or not exists (select 1 from bulkmark.ends e where e.name = 'steps' and e.last = _after) then
        return null;
    end if;
    insert into bulkmark.meters (client, at, bytes) values (_meter, _now, 0) on conflict (client) do nothing;
    select m.at, m.bytes into _since, _level from bulkmark.meters m where m.client = _meter for update;
    _level := greatest(0, _level - greatest(0, _now - _since) * 100);
    if _level >= 1000 then
        raise exception '% has appended more than 100 steps a second', session_user using errcode = '53400';
    end if;
    select e.last, e.bytes into _last, _total from bulkmark.ends e where e.name = 'steps' for update;
    if _last <> _after then
        return null;
    end if;
    update bulkmark.meters set at = _now, bytes = _level + 1 where client = _meter;
    _last := _last + 1;
    _total := _total + octet_length(_body);
    insert into bulkmark.steps (place, at, total, bytes)
    values (_last, floor(extract(epoch from clock_timestamp()))::bigint, _total, _body);
    update bulkmark.ends set last = _last, bytes = _total where name = 'steps';
    return _last;
end
$$
--;
create or replace function bulkmark.put_part(_id bigint, _number integer, _body bytea)
returns bigint
language plpgsql
security definer
as $$
begin
    if octet_length(_body) > 983040 then
        raise exception 'a part of more than 983040 bytes' using errcode = '22023';
    end if;
    if exists (select 1 from bulkmark.parts p where p.id = _id and p.owner is distinct from session_user::text) then
        raise exception 'another aggregator puts the snapshot %', _id using errcode = '42501';
    end if;
    insert into bulkmark.parts (id, number, at, bytes, owner)
    values (_id, _number, floor(extract(epoch from clock_timestamp()))::bigint, _body, session_user::text);
    return 1;
end
$$
--;
-- Makes these parts of the connected role the newest snapshot, if all are there, from the first one on. It cannot cover batches and steps that do not exist yet.
-- From one aggregator it takes one in five seconds, and sixty at once.
create or replace function bulkmark.publish(_id bigint, _parts integer, _batches bigint, _steps bigint)
returns bigint
language plpgsql
security definer
as $$
declare
    _last bigint;
    _found bigint;
    _bytes bigint;
    _lowest integer;
    _highest integer;
    _ended_batches bigint;
    _ended_steps bigint;
    _meter text := 'snapshots/' || session_user;
    _now bigint := floor(extract(epoch from clock_timestamp()))::bigint;
    _since bigint;
    _level bigint;
begin
    select count(*), coalesce(sum(octet_length(p.bytes)), 0), min(p.number), max(p.number)
    into _found, _bytes, _lowest, _highest from bulkmark.parts p where p.id = _id and p.owner = session_user::text;
    if _parts < 1 or _found <> _parts or _lowest <> 0 or _highest <> _parts - 1 then
        raise exception 'the snapshot has % of its % parts', _found, _parts using errcode = '55000';
    end if;
    insert into bulkmark.meters (client, at, bytes) values (_meter, _now, 0) on conflict (client) do nothing;
    select m.at, m.bytes into _since, _level from bulkmark.meters m where m.client = _meter for update;
    _level := greatest(0, _level - greatest(0, _now - _since));
    if _level >= 300 then
        raise exception '% has put more than a snapshot each five seconds', session_user using errcode = '53400';
    end if;
    update bulkmark.meters set at = _now, bytes = _level + 5 where client = _meter;
    select e.last into _last from bulkmark.ends e where e.name = 'snapshots' for update;
    select e.last into _ended_batches from bulkmark.ends e where e.name = 'batches';
    select e.last into _ended_steps from bulkmark.ends e where e.name = 'steps';
    _last := _last + 1;
    insert into bulkmark.snapshots (number, id, at, parts, bytes, batches, steps)
    values (_last, _id, _now, _parts, _bytes, least(_batches, _ended_batches), least(_steps, _ended_steps));
    update bulkmark.ends set last = _last where name = 'snapshots';
    return _last;
end
$$
--;
-- Deletes the connected role's parts of a snapshot that was not published.
create or replace function bulkmark.drop_parts(_id bigint)
returns bigint
language plpgsql
security definer
as $$
begin
    delete from bulkmark.parts where id = _id and owner = session_user::text
        and not exists (select 1 from bulkmark.snapshots s where s.id = _id);
    return 1;
end
$$
--;
-- Deletes up to so many rows that nobody needs (of parts, which are large, a twentieth), and returns their number. Steps: those before the
-- snapshot before last, as far as the remaining steps have as many bytes as the larger of both snapshots: then reading the snapshot is less
-- work. Batches: those from before the snapshot before last that are older than keep_seconds. That snapshot counts once it is a minute old:
-- by then aggregators have replaced one that cannot be read. Snapshots: all but the last two, and parts that were begun and not continued
-- for an hour.
create or replace function bulkmark.prune(_most integer)
returns bigint
language plpgsql
security definer
as $$
declare
    _now bigint := floor(extract(epoch from clock_timestamp()))::bigint;
    _newest bigint;
    _room bigint;
    _steps bigint;
    _batches bigint;
    _keep bigint;
    _total bigint;
    _stale bigint;
    _rows bigint;
    _sum bigint := 0;
begin
    select max(s.number), max(s.bytes) into _newest, _room from bulkmark.snapshots s;
    select s.steps, s.batches into _steps, _batches from bulkmark.snapshots s
    where s.number < _newest and s.at < _now - 60 order by s.number desc limit 1;
    select e.bytes into _total from bulkmark.ends e where e.name = 'steps';
    select l.keep_seconds into _keep from bulkmark.log l;
    with gone as (
        delete from bulkmark.steps where place in (
            select s.place from bulkmark.steps s
            where s.place <= _steps and s.total < _total - _room
            order by s.place limit _most)
        returning 1)
    select count(*) into _rows from gone;
    _sum := _sum + _rows;
    with gone as (
        delete from bulkmark.batches where place in (
            select b.place from bulkmark.batches b
            where b.place <= _batches and b.at < _now - _keep
            order by b.place limit _most)
        returning 1)
    select count(*) into _rows from gone;
    _sum := _sum + _rows;
    select p.id into _stale from bulkmark.parts p
    left join bulkmark.snapshots s on s.id = p.id
    where s.number is null or s.number < _newest - 1
    group by p.id, s.number having s.number is not null or max(p.at) < _now - 3600
    limit 1;
    with gone as (
        delete from bulkmark.parts where id = _stale and number in (
            select p.number from bulkmark.parts p where p.id = _stale order by p.number limit _most / 20 + 1)
        returning 1)
    select count(*) into _rows from gone;
    _sum := _sum + _rows;
    delete from bulkmark.snapshots where number < _newest - 1
        and not exists (select 1 from bulkmark.parts p where p.id = bulkmark.snapshots.id);
    return _sum;
end
$$
--;
-- Ends the connections of members with a transaction that is open for more than 10 s, or idle and open for 3 s, because all others wait for
-- its locks, and returns names and reasons. Members' own statements are one transaction each, and take no longer. All other transactions of
-- such a member end as well: they wait for the same locks, ahead of others. Also ends the connections of listeners that do not read, once a
-- fiftieth of the common queue of notifications is waiting.
create or replace function bulkmark.end_stuck()
returns text[]
language plpgsql
security definer
as $$
declare
    _now timestamptz := clock_timestamp();
    _one record;
    _ended text[] := array[]::text[];
begin
    for _one in
        with seen as (
            select a.pid, a.usename::text as name, a.xact_start is not null as is_open,
                case
                    when a.wait_event = 'ClientWrite' and pg_notification_queue_usage() > 0.02
                        then 'which does not read its messages'
                    when a.xact_start < _now - interval '10 seconds'
                        or a.state like 'idle in transaction%' and a.xact_start < _now - interval '3 seconds'
                        then 'whose transaction is open for ' || floor(extract(epoch from _now - a.xact_start))::bigint || ' s (' || a.state || ')'
                end as why
            from pg_catalog.pg_stat_activity a
            where a.datname = current_database() and a.pid <> pg_backend_pid()
                and a.usename in (
                    select r.rolname from pg_catalog.pg_auth_members m
                    join pg_catalog.pg_roles g on g.oid = m.roleid join pg_catalog.pg_roles r on r.oid = m.member
                    where g.rolname::text in (current_database() || '_reporter', current_database() || '_aggregator')
                        and r.rolname <> current_user))
        select s.pid, s.name, s.why from seen s
        where s.why is not null
            or s.is_open and exists (select 1 from seen t where t.name = s.name and t.why like 'whose %')
    loop
        begin
            if pg_terminate_backend(_one.pid) and _one.why is not null then
                _ended := array_append(_ended, _one.name || ', ' || _one.why);
            end if;
        exception when insufficient_privilege then
            -- A role that existed before, and that the owner is no member of.
            _ended := array_append(_ended, _one.name || ', ' || coalesce(_one.why, 'which waits') || ', and which cannot be ended: GRANT ' || quote_ident(_one.name) || ' TO ' || quote_ident(current_user));
        end;
    end loop;
    return _ended;
end
$$
--; optional
alter function bulkmark.append(bigint[], bigint[], integer[], bytea[]) set search_path = pg_catalog, pg_temp
--; optional
alter function bulkmark.tell(bytea) set search_path = pg_catalog, pg_temp
--; optional
alter function bulkmark.append_step(bigint, bytea) set search_path = pg_catalog, pg_temp
--; optional
alter function bulkmark.put_part(bigint, integer, bytea) set search_path = pg_catalog, pg_temp
--; optional
alter function bulkmark.publish(bigint, integer, bigint, bigint) set search_path = pg_catalog, pg_temp
--; optional
alter function bulkmark.drop_parts(bigint) set search_path = pg_catalog, pg_temp
--; optional
alter function bulkmark.prune(integer) set search_path = pg_catalog, pg_temp
--; optional
alter function bulkmark.end_stuck() set search_path = pg_catalog, pg_temp
--;
revoke all on function bulkmark.end_stuck() from public
--;
revoke all on function bulkmark.append(bigint[], bigint[], integer[], bytea[]) from public
--;
revoke all on function bulkmark.tell(bytea) from public
--;
revoke all on function bulkmark.append_step(bigint, bytea) from public
--;
revoke all on function bulkmark.put_part(bigint, integer, bytea) from public
--;
revoke all on function bulkmark.publish(bigint, integer, bigint, bigint) from public
--;
revoke all on function bulkmark.drop_parts(bigint) from public
--;
revoke all on function bulkmark.prune(integer) from public
--;
grant connect on database {database} to {reporter}, {aggregator}
--;
grant usage on schema bulkmark to {reporter}, {aggregator}
--;
grant select on bulkmark.log, bulkmark.ends, bulkmark.steps, bulkmark.snapshots, bulkmark.parts, bulkmark.me to {reporter}, {aggregator}
--;
grant execute on function bulkmark.append(bigint[], bigint[], integer[], bytea[]) to {reporter}
--;
grant select on bulkmark.batches, bulkmark.clients, bulkmark.members to {aggregator}
--;
grant execute on function bulkmark.append_step(bigint, bytea) to {aggregator}
--;
grant execute on function bulkmark.put_part(bigint, integer, bytea) to {aggregator}
--;
grant execute on function bulkmark.publish(bigint, integer, bigint, bigint) to {aggregator}
--;
grant execute on function bulkmark.drop_parts(bigint) to {aggregator}
--;
grant execute on function bulkmark.prune(integer) to {aggregator}
--;
grant execute on function bulkmark.end_stuck() to {aggregator}
--;
grant execute on function bulkmark.tell(bytea) to {reporter}, {aggregator}
--;
-- An older version reads this column to see whether setup is complete.
alter table bulkmark.log add column if not exists has_rates boolean
--;
-- This version reads this one to see whether all of the above is done.
alter table bulkmark.log add column if not exists revision integer
--;
insert into bulkmark.log (one, format, made, keep_seconds, revision) values (1, {format}, {made}, 86400, {revision})
on conflict (one) do update set format = excluded.format, revision = excluded.revision
