// SPDX-License-Identifier: GPL-3.0-or-later
//! Merges the values of several files: lists add up, and the last one of other values holds.

use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// Lists that name a choice and are replaced as a whole.
const CHOICES: [&str; 3] = ["exempt", "act-despite", "authentication.methods"];

/// The key of the listeners, which may be an address, a list, or tables `[listen.NAME]`.
const LISTEN: &str = "listen";

/// Keys that name an entry of a list: a later file replaces an entry of the same name.
const NAMES: [&str; 2] = ["url", "name"];

/// A value that a later file replaced by another one.
#[derive(Debug)]
pub(super) struct Replaced {
    /// The key of the value, or of the list with the entry, with its tables: `ledger.window`.
    pub(super) key: String,
    pub(super) value: toml::Value,
    /// The place of its key.
    pub(super) at: usize,
}

/// Merges the tables of files, in their order.
#[derive(Default)]
pub(super) struct Merge<'i> {
    pub(super) table: DeTable<'i>,
    pub(super) replaced: Vec<Replaced>,
}

impl<'i> Merge<'i> {
    /// Puts a file over those before: tables key by key, lists joined, all else replaced.
    pub(super) fn lay_over(&mut self, piece: DeTable<'i>) {
        lay_over(&mut self.table, piece, "", &mut self.replaced);
    }
}

fn lay_over<'i>(below: &mut DeTable<'i>, piece: DeTable<'i>, prefix: &str, replaced: &mut Vec<Replaced>) {
    for (name, value) in piece {
        let key = format!("{prefix}{}", name.get_ref());
        let Some((old_name, old)) = below.remove_entry(&**name.get_ref()) else {
            below.insert(name, value);
            continue;
        };
        let at = old_name.span().start;
        let span = value.span();
        if key == LISTEN && !(old.get_ref().is_str() && value.get_ref().is_str()) {
            let note = &mut |value, at| replaced.push(Replaced { key: key.clone(), value, at });
            below.insert(name, Spanned::new(span, listeners([old, value], note)));
            continue;
        }
        let joined = match (old.into_inner(), value.into_inner()) {
            (DeValue::Table(mut old), DeValue::Table(new)) => {
                lay_over(&mut old, new, &format!("{key}."), replaced);
                DeValue::Table(old)
            }
            (DeValue::Array(old), DeValue::Array(new)) if !CHOICES.contains(&&*key) => {
                let note = &mut |value, at| replaced.push(Replaced { key: key.clone(), value, at });
                let lists = [old, new].map(|list| list.into_iter().collect());
                DeValue::Array(add_up(lists, named, note).into_iter().collect())
            }
            (old, new) => {
                let (was, is) = (plain(old), plain(new.clone()));
                let was = was.filter(|was| Some(was) != is.as_ref());
                replaced.extend(was.map(|value| Replaced { key, value, at }));
                new
            }
        };
        // The key, too, is now that of the later file.
        below.insert(name, Spanned::new(span, joined));
    }
}

type Entry<'i> = Spanned<DeValue<'i>>;

/// Called with each replaced entry and its place.
type Note<'a> = &'a mut dyn FnMut(toml::Value, usize);

/// Joins the entries of both lists. An entry that is repeated, by its value or its name, is put at its last place.
fn add_up<'i>(
    [old, new]: [Vec<Entry<'i>>; 2],
    name: fn(&toml::Value) -> Option<String>,
    note: Note<'_>,
) -> Vec<Entry<'i>> {
    let values = |list: &[Entry<'i>]| -> Vec<_> {
        let plain = |entry: &Entry<'i>| plain(entry.get_ref().clone());
        list.iter().map(|entry| plain(entry).map(|value| (name(&value), value))).collect()
    };
    let (before, after) = (values(&old), values(&new));
    let stays = |(entry, value): (Entry<'i>, Option<(Option<String>, toml::Value)>)| {
        let Some((name, value)) = value else { return Some(entry) };
        let mut after = after.iter().flatten();
        if after.clone().any(|(_, other)| *other == value) {
            return None;
        }
        if name.is_none() || !after.any(|(other, _)| *other == name) {
            return Some(entry);
        }
        note(value, entry.span().start);
        None
    };
    let mut all: Vec<_> = old.into_iter().zip(before).filter_map(stays).collect();
    all.extend(new);
    all
}

/// The name of an entry that is a table.
fn named(value: &toml::Value) -> Option<String> {
    let table = value.as_table()?;
    NAMES.iter().find_map(|key| table.get(*key)?.as_str().map(str::to_owned))
}

/// Returns the listeners of both files as one list; in a list, one listener may lack a name.
fn listeners<'i>(both: [Entry<'i>; 2], note: Note<'_>) -> DeValue<'i> {
    let name = |value: &toml::Value| if value.is_str() { Some(String::new()) } else { named(value) };
    match both.map(entries) {
        [Ok(old), Ok(new)] => DeValue::Array(add_up([old, new], name, note).into_iter().collect()),
        // Its error is reported where it is read.
        [_, Err(wrong)] | [Err(wrong), Ok(_)] => wrong,
    }
}

fn entries(value: Entry<'_>) -> Result<Vec<Entry<'_>>, DeValue<'_>> {
    let span = value.span();
    match value.into_inner() {
        DeValue::Array(list) => Ok(list.into_iter().collect()),
        DeValue::Table(table) if table.values().all(|listener| listener.get_ref().is_table()) => {
            Ok(table.into_iter().map(|(name, listener)| with_name(name, listener)).collect())
        }
        address @ DeValue::String(_) => Ok(vec![Spanned::new(span, address)]),
        wrong => Err(wrong),
    }
}

/// Returns `[listen.NAME]` as an entry of the list.
fn with_name<'i>(name: Spanned<std::borrow::Cow<'i, str>>, mut listener: Entry<'i>) -> Entry<'i> {
    let span = name.span();
    if let DeValue::Table(table) = listener.get_mut() {
        let name = Spanned::new(span.clone(), DeValue::String(name.into_inner()));
        table.insert(Spanned::new(span, "name".into()), name);
    }
    listener
}

/// Returns the value without its places.
fn plain(value: DeValue<'_>) -> Option<toml::Value> {
    toml::Value::deserialize(ValueDeserializer::from(Spanned::new(0..0, value))).ok()
}
