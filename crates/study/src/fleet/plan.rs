// SPDX-License-Identifier: GPL-3.0-or-later
//! The machines' needs for a volume of mail.

use super::law::Law;
use super::member::{MAX_BATCH, MAX_BYTES};
use super::partial::Partial;
use super::sample::{CAPACITY, SIGNATURES, Sample, cells};

const DAY: f64 = 86_400.0;

/// The factor of spare signatures for which windows are made.
const HEADROOM: f64 = CAPACITY as f64 / SIGNATURES as f64;

/// Bytes of the program itself, after 100,000 messages (docs/sizing.md).
pub const PROGRAM: f64 = 22.5e6;

/// The most bytes of batches that an aggregator holds (`crates/sync/src/fleet/queue.rs`).
const QUEUE: f64 = (16 << 20) as f64;

/// The bytes that a draft takes for each signature and batch before it is encoded; and the most signatures of a draft
/// (`crates/counts/src/state/fleet/draft.rs`).
const DRAFT_SIGNATURE: f64 = 10.0;
const DRAFT_BATCH: f64 = 256.0;
const DRAFT_MOST: f64 = 131_072.0;

/// The interval of snapshots in seconds. One is also due when the bytes of steps reach its own size
/// (`crates/sync/src/fleet/snapshot.rs`).
const SNAPSHOT_EVERY: f64 = 600.0;
const SNAPSHOT_AFTER: [f64; 2] = [(64 << 20) as f64, (512 << 20) as f64];

/// The transport of counts from one machine to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Nothing: each milter counts separately.
    Embedded,
    /// A signature server.
    Https,
    /// A fleet on NATS JetStream.
    Nats,
    /// A fleet on PostgreSQL.
    Postgres,
}

/// The overhead of an engine in bytes and time: measured by `tests/fleet/model.rs`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Framing {
    /// Bytes in addition to a batch, from a milter to the log, and its acknowledgement.
    pub batch_up: f64,
    /// See `batch_up`.
    pub batch_down: f64,
    /// Bytes in addition to a step, to each follower.
    pub step: f64,
    /// Bytes in addition to a batch, to each aggregator, and of the request for it: NATS announces a batch live, and then each
    /// aggregator fetches it.
    pub read: f64,
    /// See `read`.
    pub asked: f64,
    /// Bytes a second on an idle connection, to the log and from it, for questions about its end.
    pub idle_up: f64,
    /// See `idle_up`.
    pub idle_down: f64,
    /// The further questions and answers of an aggregator: its clients, and the state of the log.
    pub look_up: f64,
    /// See `look_up`.
    pub look_down: f64,
    /// Bytes in addition to a batch or a step on a node's disk.
    pub stored: f64,
    /// Seconds from the milter into the log, and from the log to a follower.
    pub way: f64,
    /// Seconds without a log when its leader dies.
    pub leaderless: f64,
}

impl Engine {
    /// The overhead of the engine.
    #[must_use]
    pub const fn framing(self) -> Framing {
        let none = Framing {
            batch_up: 0.0,
            batch_down: 0.0,
            step: 0.0,
            read: 0.0,
            asked: 0.0,
            idle_up: 0.0,
            idle_down: 0.0,
            look_up: 0.0,
            look_down: 0.0,
            stored: 0.0,
            way: 0.0,
            leaderless: 0.0,
        };
        match self {
            Self::Embedded => none,
            Self::Https => Framing {
                batch_up: 330.0,
                batch_down: 170.0,
                step: 16.0,
                idle_up: 0.0,
                idle_down: 12.0,
                way: 0.005,
                ..none
            },
            Self::Nats => Framing {
                batch_up: 200.0,
                batch_down: 80.0,
                step: 150.0,
                read: 680.0,
                asked: 128.0,
                idle_up: 40.0,
                idle_down: 570.0,
                look_up: 120.0,
                look_down: 1250.0,
                stored: 150.0,
                way: 0.022,
                leaderless: 8.8,
            },
            Self::Postgres => Framing {
                batch_up: 100.0,
                batch_down: 60.0,
                step: 100.0,
                read: 100.0,
                asked: 15.0,
                idle_up: 16.0,
                idle_down: 30.0,
                look_up: 40.0,
                look_down: 155.0,
                stored: 150.0,
                way: 0.022,
                leaderless: 0.0,
            },
        }
    }

    /// Whether it is a log, with aggregators.
    #[must_use]
    pub const fn is_log(self) -> bool {
        matches!(self, Self::Nats | Self::Postgres)
    }
}

/// The input of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Messages a day, all mail servers together.
    pub messages: f64,
    /// Signatures of a message.
    pub width: f64,
    /// The repetition of mail.
    pub law: Law,
    /// Mail servers.
    pub milters: f64,
    /// Aggregators, or signature servers.
    pub aggregators: f64,
    /// Nodes of the log.
    pub nodes: f64,
    /// The transport of the counts.
    pub engine: Engine,
    /// Windows in memory: those of the retention, and one that is about to expire.
    pub windows: f64,
    /// Seconds between a milter's batches, and between steps.
    pub sync: f64,
    /// See `sync`.
    pub interval: f64,
}

/// The load a second, on average over a day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Different signatures of a window.
    pub distinct: f64,
    /// Signatures for which the first slice of a window is made.
    pub capacity: u32,
    /// Reports, each a signature of a message.
    pub reports: f64,
    /// Batches of all milters.
    pub batches: f64,
    /// Steps, or a server's updates.
    pub steps: f64,
    /// Milters with a batch in a step.
    pub marks: f64,
}

impl Plan {
    /// The load of a plan.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    pub fn load(&self) -> Load {
        let reports = self.messages * self.width / DAY;
        let alone = self.engine == Engine::Embedded;
        let seen = if alone { self.law.seen_by(self.milters.max(1.0)) } else { 1.0 };
        let distinct = self.messages * self.width / self.law.mean() * seen;
        let waiting = self.messages / DAY / self.milters * self.sync;
        let often = (1.0 - (-waiting).exp()).max(waiting * self.width / MAX_BATCH as f64) / self.sync;
        let batches = self.milters * often;
        let timely = (1.0 - (-batches * self.interval).exp()) / self.interval;
        let bytes = reports * DRAFT_SIGNATURE + batches * DRAFT_BATCH;
        let full = (bytes / MAX_BYTES as f64).max(reports / DRAFT_MOST);
        let steps = if self.engine.is_log() { timely.max(full) } else { timely };
        let marks = self.milters * (1.0 - (-batches / steps / self.milters).exp());
        let capacity = (distinct * HEADROOM).clamp(1e6, u32::MAX.into()) as u32;
        Load { distinct, capacity, reports, batches, steps, marks }
    }
}

/// Each machine's needs. Bytes; bytes a second, on average over a day; cores; seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// Memory of a milter with a full copy, of one with a partial copy, and of an aggregator or server.
    pub milter: f64,
    /// See `milter`.
    pub partial: f64,
    /// See `milter`.
    pub aggregator: f64,
    /// From a milter, and to one with a full or a partial copy.
    pub up: f64,
    /// See `up`.
    pub down: f64,
    /// See `up`.
    pub partial_down: f64,
    /// The part of the download for the marks of spools.
    pub marks: f64,
    /// To an aggregator, and from the one that makes the steps, with snapshots.
    pub read: f64,
    /// See `read`.
    pub written: f64,
    /// The part of this for snapshots.
    pub snapshots: f64,
    /// Between the nodes of the log, all together; and from all nodes to members.
    pub within: f64,
    /// See `within`.
    pub out: f64,
    /// Disk of a holder's ledger, and of a node of the log.
    pub file: f64,
    /// See `file`.
    pub log: f64,
    /// Bytes of a snapshot.
    pub snapshot: f64,
    /// CPU of a holder for steps, and of an aggregator.
    pub apply: f64,
    /// See `apply`.
    pub aggregate: f64,
    /// The share of the time for steps, one after the other, with their way to the log and back.
    pub serial: f64,
    /// The time from a message to all others: usually, and at most while all machines run.
    pub usual: f64,
    /// See `usual`.
    pub most: f64,
}

/// The most that a node of NATS keeps of batches and of steps, and for how long; those of PostgreSQL expire by time and by
/// snapshots (`crates/sync/src/log/nats/streams.rs`).
const KEPT_BYTES: f64 = (1 << 30) as f64;
const KEPT_BATCHES: f64 = DAY;
const KEPT_STEPS: f64 = 7.0 * DAY;

/// The most bytes of steps that a ledger keeps (docs/ledger.md).
const KEPT_HERE: f64 = (64 << 20) as f64;

impl Plan {
    /// The results of a plan.
    #[must_use]
    pub fn needs(&self, load: &Load, sample: &Sample, partial: &Partial) -> Needs {
        let (frame, is_log) = (self.engine.framing(), self.engine.is_log());
        let shared = f64::from(u8::from(self.engine != Engine::Embedded));
        let window = cells(load.distinct, load.capacity) + sample.beyond * load.distinct;
        let all = self.windows * window;
        let bulk = self.windows * (partial.empty + partial.memory * load.distinct);
        let snapshot = sample.snapshot * all * f64::from(u8::from(is_log));
        let head = if is_log { sample.empty_step - sample.mark } else { 60.0 };
        let marks = if is_log { load.steps * load.marks * sample.mark } else { 0.0 };
        let told = load.steps * head + marks + load.reports * sample.step;
        let told_bulk = load.steps + load.reports * partial.note;
        let reported = load.batches * sample.empty_batch + load.reports * sample.batch;
        let of_each = |bytes: f64| bytes / self.milters;
        let framed_down =
            load.steps * frame.step + frame.idle_down + of_each(load.batches) * frame.batch_down;
        // In a log, steps include both.
        let partial_told = if is_log { told + told_bulk } else { told_bulk };
        let read = reported + load.batches * frame.read + frame.look_down;
        let asks = load.batches * frame.asked + frame.idle_up + frame.look_up;
        let [much, most] = SNAPSHOT_AFTER;
        let snapshots = snapshot / SNAPSHOT_EVERY.min((snapshot / 2.0).clamp(much, most) / told.max(1.0));
        let down = shared * (told + framed_down);
        let aggregate = load.reports * (sample.make + sample.apply);
        let serial = aggregate + load.steps * 2.0 * frame.way;
        let out = self.milters * down + self.aggregators * (read + down);
        Needs {
            milter: PROGRAM + all,
            partial: PROGRAM + if shared > 0.0 { bulk } else { all },
            aggregator: PROGRAM + all + if is_log { QUEUE } else { 0.0 },
            up: shared * (of_each(reported + load.batches * frame.batch_up) + frame.idle_up),
            down,
            partial_down: shared * (partial_told + framed_down),
            marks,
            read: shared * (read + if is_log { down } else { 0.0 }),
            written: shared * (told + load.steps * frame.batch_up + snapshots + asks),
            snapshots,
            within: self.within(reported + load.batches * frame.stored, told, snapshots),
            out: shared * out,
            file: 2.0 * sample.file * all + if is_log { KEPT_HERE } else { 0.0 },
            log: self.disk(
                reported + load.batches * frame.stored,
                told + load.steps * frame.stored,
                snapshot,
            ),
            snapshot,
            apply: shared * load.reports * sample.apply,
            aggregate: if is_log { aggregate } else { 0.0 },
            serial,
            usual: shared * (self.sync / 2.0 + self.interval / 2.0 + 2.0 * frame.way),
            most: shared * (self.sync + self.interval + 4.0 * frame.way),
        }
    }

    /// Bytes a second between nodes. In NATS, each message goes from the member's node to the stream's leader, unless both are the
    /// same, and from there to each other node. In PostgreSQL, each standby receives all writes.
    fn within(&self, batches: f64, steps: f64, snapshots: f64) -> f64 {
        let others = self.nodes - 1.0;
        match self.engine {
            Engine::Nats => {
                let forwarded = others / self.nodes.max(1.0);
                // Steps are also announced live, on each node.
                (batches + snapshots) * (forwarded + others) + steps * (forwarded + 2.0 * others)
            }
            Engine::Postgres => others * (batches + steps + snapshots),
            Engine::Embedded | Engine::Https => 0.0,
        }
    }

    /// Bytes on a node.
    fn disk(&self, batches: f64, steps: f64, snapshot: f64) -> f64 {
        match self.engine {
            Engine::Nats => {
                let kept = |bytes: f64, time: f64| (bytes * time).min(KEPT_BYTES);
                kept(batches, KEPT_BATCHES) + kept(steps, KEPT_STEPS) + 2.0 * snapshot
            }
            // Steps expire when their bytes reach the size of a snapshot.
            Engine::Postgres => batches * KEPT_BATCHES + (steps * KEPT_STEPS).min(snapshot) + 2.0 * snapshot,
            Engine::Embedded | Engine::Https => 0.0,
        }
    }
}
