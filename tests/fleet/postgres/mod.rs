// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's log in a real PostgreSQL: the requirements for every log, and those for PostgreSQL alone.

mod copies;
mod roles;
mod servers;
mod set_up;
mod stuck;

use bulkmark_sync::Link;
use bulkmark_sync::log::postgres::{Postgres, setup};
use bulkmark_sync::log::{Client, Duty, Member, Place, SetUp, Settings};
use bulkmark_testing::postgres as server;
use std::sync::Arc;

/// A server with a log.
struct Rig {
    server: server::Postgres,
    members: Vec<Member>,
}

const HOW: SetUp = SetUp { dry_run: false, accounts: None, replicas: 1 };

impl Rig {
    /// The configuration of a role.
    fn settings(&self, user: &str, password_file: &str) -> Settings {
        Settings {
            log: format!("postgres://127.0.0.1:{}/{}", self.server.port, server::DATABASE),
            name: Some(user.to_owned()),
            secret_file: Some(self.server.path(password_file)),
            ..Settings::default()
        }
    }

    fn log(&self, user: &str) -> Postgres {
        open(&self.settings(user, &format!("{user}.password")))
    }

    async fn set_up(&self) {
        setup(&self.owner(), &self.members, &HOW).await.unwrap();
    }

    fn owner(&self) -> Settings {
        self.settings(server::OWNER, "owner.password")
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql(sql).unwrap()
    }

    /// The same as another role.
    fn sql_as(&self, role: &str, sql: &str) -> Result<String, String> {
        self.server.sql_as(role, sql)
    }
}

/// A server whose log is not set up.
fn bare() -> Option<Rig> {
    let server = server::Postgres::start()?;
    server.secret("owner.password", server::OWNER_PASSWORD);
    Some(Rig { server, members: Vec::new() })
}

fn milter(server: &server::Postgres, name: &str) -> Member {
    member(server, name, Duty::Milter { limits: None, withdrawn: 0, rate: None })
}

fn open(settings: &Settings) -> Postgres {
    Postgres::new(settings, Arc::new(Link::new(&settings.log))).unwrap()
}

fn member(server: &server::Postgres, name: &str, duty: Duty) -> Member {
    let password = server.secret(&format!("{name}.password"), &format!("{name}'s own\n"));
    Member { name: name.to_owned(), duty, nkey: None, password_file: Some(password) }
}

impl crate::conformance::Engine for Rig {
    type Log = Postgres;

    async fn fresh(clients: &[Client]) -> Option<Self> {
        let server = server::Postgres::start()?;
        server.secret("owner.password", server::OWNER_PASSWORD);
        let milter = |client: &Client| {
            member(
                &server,
                &client.name,
                Duty::Milter { limits: client.limits, withdrawn: client.withdrawn, rate: client.rate },
            )
        };
        let members = clients.iter().map(milter).chain([member(&server, "agg", Duty::Aggregator)]).collect();
        let rig = Self { server, members };
        rig.set_up().await;
        Some(rig)
    }

    async fn aggregator(&self) -> Postgres {
        self.log("agg")
    }

    async fn client(&self, name: &str) -> Postgres {
        self.log(name)
    }

    /// The only server restarts automatically.
    async fn kill_leader(&self) {
        self.server.kill_one();
    }

    async fn kill_all(&self) {
        self.server.kill_all();
    }

    async fn restart(&self) {
        self.server.run();
    }

    async fn cut(&self) {
        // It may be restarting at this moment, and then all connections are cut anyway.
        let _ = self.server.cut();
    }

    async fn drop_steps_before(&self, place: Place) {
        self.sql(&format!("delete from bulkmark.steps where place < {}", place.0));
    }

    async fn renew_batches(&self) {
        self.sql("drop schema bulkmark cascade");
        self.set_up().await;
    }
}

crate::log_conformance!(Rig);
