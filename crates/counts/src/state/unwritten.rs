// SPDX-License-Identifier: GPL-3.0-or-later
//! State that the file lacks until the next checkpoint, beside the rows that a commit writes.

/// The relation of the merged counts in memory to those in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Merged {
    /// They follow from the file's cells and the later updates or steps.
    #[default]
    Follow,
    /// A snapshot was added, or the vector moved without an update: the file lacks both.
    Apart,
    /// They replaced the counts in the file, which a checkpoint deletes.
    Replace,
}

/// The work of the next checkpoint, and the reasons why it cannot wait.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwritten {
    /// The difference of the file's merged counts.
    pub merged: Merged,
    /// Whether another list of bulk began; a checkpoint deletes the one in the file.
    pub relisted: bool,
    /// Whether a checkpoint was requested.
    pub asked: bool,
    /// Bytes of the steps since the last checkpoint.
    pub steps: usize,
}

impl Unwritten {
    /// Records that commits are not enough to restore the merged counts, or their list of bulk, from the file.
    pub fn part(&mut self) {
        self.merged = self.merged.max(Merged::Apart);
    }

    /// Whether updates and steps in the file lead to other merged counts.
    pub const fn is_apart(&self) -> bool {
        !matches!(self.merged, Merged::Follow)
    }
}
