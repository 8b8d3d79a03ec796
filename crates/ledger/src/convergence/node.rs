// SPDX-License-Identifier: GPL-3.0-or-later
//! One ledger: the state that the writer owns, and its file, which is in memory.

use crate::disk::backup::{Build, dump};
use crate::disk::chain::{knows_step, steps_since};
use crate::disk::commit;
use crate::disk::fleet_snapshot::FleetSnapshot;
use crate::disk::load::{Loaded, load};
use crate::disk::missing::Missing;
use crate::disk::read::{Behind, Reader};
use bulkmark_counts::history::refusal::Refusal;
use bulkmark_counts::history::update::Update;
use bulkmark_counts::history::vector::{Chain, Origin, Vector};
use bulkmark_counts::history::window::{Calendar, Window};
use bulkmark_counts::settings::{Role, Settings};
use bulkmark_counts::state::assembly::Assembly;
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::layer::Layer;
use bulkmark_counts::state::merged::{Applied, MergedCounts};
use bulkmark_counts::state::roles::State;
use bulkmark_types::Signature;
use parking_lot::Mutex;
use redb::{Database, StorageBackend};
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

/// The time at which a schedule begins, and the length of a window.
pub(super) const NOW: u64 = 20_000 * DAY + 1000;
pub(super) const DAY: u64 = 86_400;

/// A file in memory.
#[derive(Debug, Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

fn range(offset: u64, length: usize) -> Range<usize> {
    let start = usize::try_from(offset).unwrap();
    start..start + length
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        out.copy_from_slice(&self.0.lock()[range(offset, out.len())]);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.lock().resize(usize::try_from(length).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.lock()[range(offset, data.len())].copy_from_slice(data);
        Ok(())
    }
}

/// A ledger. Others receive only data that is in its file.
pub(super) struct Node {
    pub(super) name: String,
    role: Role,
    settings: Settings,
    file: Memory,
    loaded: Option<Loaded>,
    /// The last random number, for new origins and spools.
    names: u64,
    pub(super) now: u64,
}

impl Node {
    pub(super) fn new(name: String, role: Role, settings: Settings, number: u64) -> Self {
        let mut node = Self {
            name,
            role,
            settings,
            file: Memory::default(),
            loaded: None,
            names: (number + 1) << 32,
            now: NOW,
        };
        node.open();
        node
    }

    pub(super) fn new_name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    fn open(&mut self) {
        let random = [self.new_name(), self.new_name()];
        let db = Database::builder().create_with_backend(self.file.clone()).unwrap();
        let loaded = load(db, self.role, &self.settings, random).unwrap_or_else(|_| panic!("{}", self.name));
        self.loaded = Some(loaded);
    }

    pub(super) fn state(&mut self) -> &mut State {
        &mut self.loaded.as_mut().unwrap().state
    }

    pub(super) fn view(&self) -> &State {
        &self.loaded.as_ref().unwrap().state
    }

    /// Commits changes, as the writer does.
    pub(super) fn commit(&mut self) {
        if self.view().needs_checkpoint() {
            return self.checkpoint(&Expired::default());
        }
        let Loaded { db, state, .. } = self.loaded.as_mut().unwrap();
        assert_eq!(state.counts().broken, None);
        let changes = std::mem::take(&mut state.counts_mut().changes);
        if !changes.is_empty() {
            commit::commit(db, state, &changes).unwrap();
        }
    }

    pub(super) fn checkpoint(&mut self, expired: &Expired) {
        let Loaded { db, state, .. } = self.loaded.as_mut().unwrap();
        state.cut(self.now);
        let changes = std::mem::take(&mut state.counts_mut().changes);
        commit::checkpoint(db, state, &changes, expired).unwrap();
        commit::mark_clean(state);
    }

    /// Writes a checkpoint at the node's time: expired windows are dropped.
    pub(super) fn checkpoint_in_time(&mut self) {
        let now = self.now;
        let expired = self.state().take_expired(now);
        self.checkpoint(&expired);
    }

    /// Receives a peer's version vector.
    pub(super) fn receive_vector(&mut self, peer: &str, theirs: &Vector) {
        let (now, new) = (self.now, Origin(self.new_name()));
        self.state().server().unwrap().receive(peer, theirs, now, new).unwrap();
        self.commit();
    }

    /// Stops waiting for its peers.
    pub(super) fn stop_waiting(&mut self) {
        let (now, new) = (self.now, Origin(self.new_name()));
        self.state().server().unwrap().stop_waiting(now, new).unwrap();
        self.commit();
    }

    /// Whether a report of a signature made at the time `at` still counts.
    pub(super) fn is_live(&self, signature: Signature, at: u64) -> bool {
        let calendar = Calendar::new(&self.settings);
        calendar.is_live(calendar.of(signature, at), self.now)
    }

    /// Returns a copy of the file.
    pub(super) fn copy(&self) -> Vec<u8> {
        Self::bytes(&self.file)
    }

    fn bytes(file: &Memory) -> Vec<u8> {
        file.0.lock().clone()
    }

    /// Makes a backup while the ledger is in use.
    pub(super) fn backup(&self) -> Vec<u8> {
        let (db, copy) = (&self.loaded.as_ref().unwrap().db, Memory::default());
        let mut build = Build::new(Database::builder().create_with_backend(copy.clone()).unwrap())
            .unwrap_or_else(|_| panic!());
        let mut pushed = true;
        let given = dump(db, &mut |piece| {
            pushed &= build.push(piece).is_ok();
            pushed
        });
        assert!(matches!(given, Ok(true)) && pushed, "{}", self.name);
        drop(build.finish().unwrap_or_else(|_| panic!("{}", self.name)));
        Self::bytes(&copy)
    }

    /// Sets the capacity of windows from the next start on.
    pub(super) fn set_capacity(&mut self, capacity: u32) {
        self.settings.capacity = NonZeroU32::new(capacity).unwrap();
    }

    /// Restarts with the data on disk, or with this copy.
    pub(super) fn restart(&mut self, from: Option<&[u8]>) {
        let bytes = from.map_or_else(|| self.copy(), <[u8]>::to_vec);
        // The old database may still write when it is dropped, which a killed process does not.
        self.file = Memory(Arc::new(Mutex::new(bytes)));
        self.loaded = None;
        self.open();
    }

    fn reader(&self) -> Reader {
        let Loaded { db, state, .. } = self.loaded.as_ref().unwrap();
        Reader::new(Arc::clone(db), Arc::new(state.own_origins()))
    }

    /// Returns the updates that a holder at `theirs` lacks, about so many bytes of them.
    pub(super) fn updates(&self, theirs: &Vector, bytes: usize) -> Result<Vec<Arc<[u8]>>, Refusal> {
        match self.reader().updates(&self.view().vector(), theirs, bytes) {
            Ok(updates) => Ok(updates),
            Err(Behind::Refused(refusal)) => Err(refusal),
            Err(Behind::Ledger(e)) => panic!("{e}"),
        }
    }

    /// Returns the data that a server at `theirs` lacks.
    pub(super) fn missing(&self, theirs: &Vector, bytes: usize, skip_gaps: bool) -> Result<Missing, Refusal> {
        let missing =
            self.reader().missing_at_server(&self.view().vector(), theirs, bytes, self.now, skip_gaps);
        missing.map_err(|behind| match behind {
            Behind::Refused(refusal) => refusal,
            Behind::Ledger(e) => panic!("{e}"),
        })
    }

    /// Returns a snapshot after its transfer, with the updates that came after it if it would be a step back for a holder at `theirs`.
    pub(super) fn snapshot(&self, theirs: &Vector) -> MergedCounts {
        let snapshot = self.reader().snapshot().unwrap();
        let mut assembly = Assembly::new(&self.settings, snapshot.vector().clone(), self.now);
        for row in snapshot.rows(0, usize::MAX).unwrap() {
            assert!(assembly.add(&row).unwrap());
        }
        if !assembly.vector().covers(theirs) {
            for bytes in self.updates(assembly.vector(), usize::MAX).unwrap() {
                assembly.apply(&Update::decode(&bytes).unwrap(), &bytes, self.now).unwrap();
            }
        }
        assembly.into_counts()
    }

    pub(super) fn apply(&mut self, bytes: &Arc<[u8]>) -> Result<Applied, Refusal> {
        let (update, new, now) = (Update::decode(bytes).unwrap(), Origin(self.new_name()), self.now);
        match self.state() {
            State::Cache(cache) => cache.apply(&update, Arc::clone(bytes), now),
            State::Server(server) => server.apply(&update, Arc::clone(bytes), now, new),
            State::Site(_) => unreachable!("a site receives nothing"),
        }
    }

    pub(super) fn adopt(&mut self, snapshot: MergedCounts, forked: bool) -> Result<(), Refusal> {
        match self.state() {
            State::Cache(cache) => cache.adopt(snapshot, forked),
            State::Server(server) => server.adopt(snapshot),
            State::Site(_) => unreachable!("a site receives nothing"),
        }
    }

    /// Returns the parts of a fleet's snapshot, as of the last checkpoint; `None` before the first step.
    pub(super) fn fleet_snapshot(&self) -> Option<Vec<Vec<u8>>> {
        let (db, window) = (&self.loaded.as_ref().unwrap().db, self.settings.window.as_secs());
        let parts = FleetSnapshot::new(db, self.settings.federation.key_id, window);
        Some(parts.unwrap_or_else(|_| panic!("{}", self.name))?.map(Result::unwrap).collect())
    }

    /// Returns the kept steps after a version.
    pub(super) fn steps_since(&self, version: u64) -> Vec<(u64, Arc<[u8]>)> {
        let db = &self.loaded.as_ref().unwrap().db;
        steps_since(db, version, usize::MAX).unwrap_or_else(|_| panic!("{}", self.name))
    }

    /// Whether a kept step has this hash.
    pub(super) fn knows_step(&self, version: u64, chain: Chain) -> bool {
        let db = &self.loaded.as_ref().unwrap().db;
        knows_step(db, version, chain).unwrap_or_else(|_| panic!("{}", self.name))
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns how often a signature was counted here or by others, without reports in the spool.
    pub(super) fn counted(&self, signature: Signature) -> u32 {
        match self.view() {
            State::Server(server) => server.count(signature, self.now),
            other => other.counts().count(signature, self.now),
        }
    }

    /// Returns all live cells, own and others' together; then those of each limited client.
    pub(super) fn cells(&self) -> (Vec<u8>, BTreeMap<Origin, Vec<Vec<u8>>>) {
        let counts = self.view().counts();
        let mut sum = MergedCounts::new(&self.settings);
        for generation in counts.local.generations.iter() {
            sum.merge_generation(generation).unwrap();
        }
        sum.add_all(&counts.merged).unwrap();
        // In the order of their sizes, whichever came first.
        let calendar = Calendar::new(&self.settings);
        let live = |window: Window| calendar.is_live(window, self.now);
        let mut windows: Vec<_> = sum.windows().iter().filter(|window| live(window.window)).collect();
        windows.sort_by_key(|window| (window.window, window.capacity));
        let slices = windows.into_iter().flat_map(|window| &window.slices);
        let cells = slices.flat_map(|slice| slice.bytes(0..slice.blocks())).collect();
        let layer = |layer: &Layer| {
            let windows = layer.windows.iter().filter(|(window, _)| live(**window));
            windows.filter_map(|(_, held)| held.part(0)).collect()
        };
        let mut layers: BTreeMap<_, _> =
            counts.merged.layers().iter().map(|(origin, held)| (origin, layer(held))).collect();
        if let State::Server(server) = self.view() {
            layers.extend(server.limited.iter().map(|(_, member)| (member.origin, layer(&member.layer))));
        }
        layers.retain(|_, parts: &mut Vec<_>| !parts.is_empty());
        (cells, layers)
    }
}
