// SPDX-License-Identifier: GPL-3.0-or-later
//! What the file lacks until the next checkpoint, beside the rows that a commit writes.

/// How the merged counts in memory relate to those in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Merged {
    /// They follow from the file's cells and the updates or steps behind these.
    #[default]
    Follow,
    /// A snapshot was added, or the vector moved by something that is no update: the file lacks both.
    Apart,
    /// They took the place of the counts that the file still has, which a checkpoint deletes.
    Replace,
}

/// What a checkpoint has to write, and why it cannot wait.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwritten {
    /// How the file's merged counts differ.
    pub merged: Merged,
    /// Whether another list of bulk began; a checkpoint deletes the one that the file has.
    pub relisted: bool,
    /// Whether somebody asked for a checkpoint.
    pub asked: bool,
    /// Bytes of the steps since the last checkpoint.
    pub steps: usize,
}

impl Unwritten {
    /// Notes that what commits write is not enough to make the merged counts, or their list of bulk, from the file.
    pub fn part(&mut self) {
        self.merged = self.merged.max(Merged::Apart);
    }

    /// Whether updates and steps in the file lead to other merged counts than these.
    pub const fn is_apart(&self) -> bool {
        !matches!(self.merged, Merged::Follow)
    }
}
