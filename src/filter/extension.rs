// SPDX-License-Identifier: GPL-3.0-or-later
//! The two counting extensions of a Bloom filter, on any row of cells (Yan & Cho, section 4).

/// A row of counters.
pub trait Cells {
    /// The largest value of a cell; a cell that reached it stays there.
    const MAX: u32;
    /// The value of cell `i`.
    fn get(&self, i: u32) -> u32;
    /// Sets cell `i` to at most [`MAX`](Self::MAX).
    fn set(&mut self, i: u32, value: u32);
}

/// How often the element with these cells was added: the smallest of them. Never below the truth.
pub fn count(cells: &impl Cells, at: &[u32]) -> u32 {
    at.iter().map(|&i| cells.get(i)).min().unwrap_or(0)
}

/// The intuitive extension: raises each cell of the element by `times`; a cell on which two hashes fall, once (H2).
pub fn add_intuitive<C: Cells>(cells: &mut C, at: &[u32], times: u32) {
    for (n, &i) in at.iter().enumerate() {
        if !at[..n].contains(&i) {
            cells.set(i, cells.get(i).saturating_add(times).min(C::MAX));
        }
    }
}

/// The refined extension: raises only the smallest cells of the element (H1), each once (H2), `times` times over. So
/// each cell becomes the larger of what it was and the smallest plus `times`.
pub fn add_refined<C: Cells>(cells: &mut C, at: &[u32], times: u32) {
    let target = count(cells, at).saturating_add(times).min(C::MAX);
    for &i in at {
        if cells.get(i) < target {
            cells.set(i, target);
        }
    }
}

/// Cells of 32 bits, for studies in which none may saturate.
pub struct Wide(Vec<u32>);

impl Wide {
    /// A row of `cells` zeros.
    #[must_use]
    pub fn new(cells: usize) -> Self {
        Self(vec![0; cells])
    }
}

impl Cells for Wide {
    const MAX: u32 = u32::MAX;

    fn get(&self, i: u32) -> u32 {
        self.0[i as usize]
    }

    fn set(&mut self, i: u32, value: u32) {
        self.0[i as usize] = value;
    }
}
