// SPDX-License-Identifier: GPL-3.0-or-later
//! Who said what here: so that each reporter counts once for a signature, and takes back what it said and no more.
//!
//! What a reporter said of a signature is a row of words, each in the window in which it was counted. It leaves with that window, as
//! the count does: the sum of the words that are left is what the counts hold of this reporter.

use crate::ledger::history::window::{Calendar, Window};
use crate::ledger::settings::Settings;
use crate::signature::{ReporterId, Signature, UNIT, revocation};
use crate::trust;
pub use crate::trust::Side;
use std::collections::{BTreeSet, HashMap};

/// Rows that are kept at most, about 50 MB. A message has up to nine, so this is what a thousand users say in a month who say
/// something twice a day.
const MAX_ROWS: usize = 1 << 19;

/// Words of a row at most: who goes on changing their mind is not heard any more until one of the words is over.
const MAX_WORDS: usize = 8;

/// What somebody says of the signatures of one message.
#[derive(Debug, Clone)]
pub struct Saying {
    /// Who.
    pub reporter: ReporterId,
    /// What.
    pub side: Side,
    /// Of what.
    pub nominations: Vec<Nominated>,
    /// What their word weighs, 1 to [`UNIT`], where that is fixed; else it is their standing that tells. What is taken back weighs what it
    /// weighed.
    pub fixed: Option<u32>,
    /// By which rules it is weighed.
    pub weighing: Weighing,
    /// The message's subject, where that may be kept; else nothing.
    pub subject: String,
    /// Whether they only take back what they said before.
    pub only_back: bool,
    /// The time, in seconds since 1970 (UTC).
    pub now: u64,
}

impl Default for Saying {
    /// Of nothing.
    fn default() -> Self {
        Self {
            reporter: ReporterId::from_bytes([0; 16]),
            side: Side::Spam,
            nominations: Vec::new(),
            fixed: None,
            weighing: Weighing::default(),
            subject: String::new(),
            only_back: false,
            now: 0,
        }
    }
}

/// One of the signatures of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nominated {
    /// The signature.
    pub of: Signature,
    /// Its [nomination](crate::signature::nomination).
    pub nomination: Signature,
    /// Whether other servers are told.
    pub shared: bool,
}

/// How words are weighed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weighing {
    /// What newcomers weigh, and from which weight on it is spam.
    pub settings: trust::Settings,
    /// The weight of what others' users say, in thousandths.
    pub thousandths: u32,
}

/// What became of it, by the number of signatures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    /// Their word was counted.
    pub counted: usize,
    /// What they said before was taken back.
    pub taken_back: usize,
    /// They had said so before.
    pub known: usize,
    /// They changed their mind too often.
    pub too_often: usize,
    /// There is no room to remember who said it.
    pub no_room: usize,
    /// Their word weighs nothing: nobody nominated what they revoke, newcomers said as much as they may, or they lost all trust.
    pub weightless: usize,
    /// What all that was counted weighs together, in units.
    pub units: u32,
}

/// What one reporter said of one signature at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word {
    /// The beginning of the window in which it is counted.
    pub(crate) window: u64,
    /// Above zero for spam, below for none.
    pub(crate) units: i8,
    /// Whether other servers were told.
    pub(crate) shared: bool,
}

/// A word that is about to be counted.
pub(crate) enum Wanted {
    /// A new one, that may weigh so many units at most.
    New(Side, u32),
    /// It takes back so many units.
    Back(u32),
}

/// Whose words, and of which nomination.
pub(crate) type VoiceKey = (ReporterId, Signature);

/// What the reporters of this mail server said by one tagged signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// By how much its count is higher for it.
    pub(crate) units: u32,
    /// How many of them there are.
    pub(crate) reporters: u32,
}

/// All rows.
pub(crate) struct Voices {
    calendar: Calendar,
    rows: HashMap<VoiceKey, Vec<Word>>,
    /// By tagged signature, what all reporters here said together.
    own: HashMap<Signature, Own>,
}

impl Voices {
    /// Of nobody yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { calendar: Calendar::new(settings), rows: HashMap::new(), own: HashMap::new() }
    }

    /// Puts a row back that was read from disk.
    pub(crate) fn restore(&mut self, key: VoiceKey, words: Vec<Word>) {
        self.add_row(key.1, &words);
        self.rows.insert(key, words);
    }

    pub(crate) fn row(&self, key: &VoiceKey) -> Option<&[Word]> {
        self.rows.get(key).map(Vec::as_slice)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What reporters here said by a tagged signature.
    pub(crate) fn own(&self, signature: Signature) -> Own {
        self.own.get(&signature).copied().unwrap_or_default()
    }

    /// What the counts must be raised by for what somebody says: tagged signatures, by how much, and whether others are told. Rows that
    /// changed are added to `changed`.
    pub(crate) fn say(
        &mut self,
        saying: &Saying,
        changed: &mut BTreeSet<VoiceKey>,
        mut weigh: impl FnMut(usize, Wanted) -> u32,
    ) -> (Said, Vec<(Signature, u32, bool)>) {
        let (mut said, mut raise) = (Said::default(), Vec::new());
        for (at, &Nominated { nomination, shared, .. }) in saying.nominations.iter().enumerate() {
            let key = (saying.reporter, nomination);
            let next = self.next_word(&key, saying, |wanted| weigh(at, wanted));
            let outcome = match next {
                Ok((units, is_back)) => {
                    // As it was told, so it is taken back.
                    let told = self.row(&key).and_then(<[Word]>::last).filter(|_| is_back);
                    let shared = told.map_or(shared, |word| word.shared);
                    said.units += u32::from(units.unsigned_abs());
                    let signature = if units > 0 { nomination } else { revocation(nomination) };
                    raise.push((signature, u32::from(units.unsigned_abs()), shared));
                    let window = self.calendar.of_people(saying.now).start;
                    let row = self.rows.entry(key).or_default();
                    let is_first = !row.iter().any(|word| word.units.signum() == units.signum());
                    row.push(Word { window, units, shared });
                    self.add_own(nomination, units, is_first);
                    changed.insert(key);
                    if is_back { &mut said.taken_back } else { &mut said.counted }
                }
                Err(NoWord::Known) => &mut said.known,
                Err(NoWord::TooOften) => &mut said.too_often,
                Err(NoWord::NoRoom) => &mut said.no_room,
                Err(NoWord::Weightless) => &mut said.weightless,
            };
            *outcome += 1;
        }
        (said, raise)
    }

    /// What is counted when a reporter says that, and whether it takes back what was said before.
    fn next_word(
        &self,
        key: &VoiceKey,
        saying: &Saying,
        weigh: impl FnOnce(Wanted) -> u32,
    ) -> Result<(i8, bool), NoWord> {
        let words = self.row(key).unwrap_or_default();
        let live = || words.iter().filter(|word| !self.is_over(word, saying.now));
        let stands: i32 = live().map(|word| i32::from(word.units)).sum();
        let wanted = match saying.side {
            _ if saying.only_back => -stands.signum(),
            Side::Spam => 1,
            Side::NotSpam => -1,
        };
        if wanted == 0 || stands.signum() == wanted {
            return Err(NoWord::Known);
        }
        // What is said can be taken back in any case.
        if words.len() >= MAX_WORDS && !saying.only_back {
            return Err(NoWord::TooOften);
        }
        if words.is_empty() && self.rows.len() >= MAX_ROWS {
            return Err(NoWord::NoRoom);
        }
        // The oldest words leave first, with their windows, so what is left later is the end of the row: that must not weigh more than one
        // word, either.
        let window = self.calendar.of_people(saying.now).start;
        let most = ends(live, window).map(|end| wanted * end).max().unwrap_or(0).max(0);
        let most = u32::try_from(i32::try_from(UNIT).unwrap_or(0) - most).unwrap_or(0);
        if most == 0 {
            return Err(NoWord::Known);
        }
        let side = if wanted > 0 { Side::Spam } else { Side::NotSpam };
        let units = match stands.unsigned_abs() {
            0 => weigh(Wanted::New(side, most)),
            stands => weigh(Wanted::Back(stands.min(most))),
        };
        match i8::try_from(units).unwrap_or(0) {
            0 => Err(NoWord::Weightless),
            units => Ok((if wanted > 0 { units } else { -units }, stands != 0)),
        }
    }

    fn is_over(&self, word: &Word, now: u64) -> bool {
        self.calendar.is_over(Window { start: word.window, ..self.calendar.of_people(now) }, now)
    }

    fn add_own(&mut self, nomination: Signature, units: i8, is_first: bool) {
        let signature = if units > 0 { nomination } else { revocation(nomination) };
        let own = self.own.entry(signature).or_default();
        own.units = own.units.saturating_add(u32::from(units.unsigned_abs()));
        own.reporters += u32::from(is_first);
    }

    fn add_row(&mut self, nomination: Signature, words: &[Word]) {
        let (mut has_said, mut has_revoked) = (false, false);
        for word in words {
            let has = if word.units > 0 { &mut has_said } else { &mut has_revoked };
            let is_first = !std::mem::replace(has, true);
            self.add_own(nomination, word.units, is_first);
        }
    }

    /// What this reporter said something of that stands.
    pub(crate) fn of_reporter(&self, reporter: ReporterId, now: u64) -> Vec<Signature> {
        let rows = self.rows.iter().filter(|((who, _), _)| *who == reporter);
        let stand = rows.filter(|(_, words)| self.stands(words, now) != 0);
        stand.map(|((_, nomination), _)| *nomination).collect()
    }

    /// What stands of these words: above zero for spam, below for none.
    pub(crate) fn stands(&self, words: &[Word], now: u64) -> i32 {
        words.iter().filter(|word| !self.is_over(word, now)).map(|word| i32::from(word.units)).sum()
    }

    /// All rows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&VoiceKey, &[Word])> {
        self.rows.iter().map(|(key, words)| (key, &**words))
    }

    /// Whether anybody's word of this nomination is left.
    pub(crate) fn is_spoken_of(&self, nomination: Signature) -> bool {
        [nomination, revocation(nomination)].iter().any(|signature| self.own.contains_key(signature))
    }

    /// Takes out words whose windows are over. The rows that changed are returned.
    pub(crate) fn take_expired(&mut self, now: u64) -> BTreeSet<VoiceKey> {
        let mut changed = BTreeSet::new();
        let over: Vec<VoiceKey> = self
            .rows
            .iter()
            .filter(|(_, words)| words.iter().any(|word| self.is_over(word, now)))
            .map(|(key, _)| *key)
            .collect();
        for key in over {
            let Some(mut words) = self.rows.remove(&key) else { continue };
            words.retain(|word| !self.is_over(word, now));
            if !words.is_empty() {
                self.rows.insert(key, words);
            }
            changed.insert(key);
        }
        if !changed.is_empty() {
            self.own.clear();
            let rows = std::mem::take(&mut self.rows);
            rows.iter().for_each(|((_, nomination), words)| self.add_row(*nomination, words));
            self.rows = rows;
        }
        changed
    }
}

/// What would stand of these words, and of one in `window`, if only the windows from each of theirs on were left.
fn ends<'a, I: Iterator<Item = &'a Word>>(words: impl Fn() -> I, window: u64) -> impl Iterator<Item = i32> {
    let left = move |from: u64, words: I| {
        words.filter(|word| word.window >= from).map(|word| i32::from(word.units)).sum()
    };
    let windows = words().map(|word| word.window).filter(move |&from| from <= window);
    windows.chain([window]).map(move |from| left(from, words()))
}

/// Why a word is not counted.
enum NoWord {
    Known,
    TooOften,
    NoRoom,
    Weightless,
}
