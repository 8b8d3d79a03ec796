// SPDX-License-Identifier: GPL-3.0-or-later
//! The look of a picture in a few numbers, most of which survive scaling, compression and noise.
//!
//! docs/signatures.md describes the computation, docs/decisions/pictures.md gives reasons. All arithmetic is in integers, so that every
//! machine gets the same result.

/// Fine cells on each side of a picture, the basis of all else: averaging removes noise in single pixels.
const FINE: usize = 256;

/// Cells on each side of the transformed area.
const CELLS: usize = 32;

/// Steps per level of grey of a decoded picture.
const STEP: u32 = 16;

/// Radius of a cell's surroundings. Features beyond it, such as a dark frame, then have no effect.
const REACH: usize = 3;

/// Added to the usual difference around a cell, so that small differences stay small.
const FLOOR: i64 = 6 * STEP as i64;

/// Difference from its surroundings from which on a cell is more than noise or paper grain.
const FAINT: i64 = 2 * STEP as i64;

/// Difference between two fine cells that makes a visible edge, and edges that make a row or column more than dust.
const EDGE: u32 = 24 * STEP;
const EDGES: usize = 3;

/// Fine cells at each side that are left out of the whole: frames are changed easily.
const RIM: usize = 12;

/// The largest difference of a cell, in 1024ths of the usual one: the edge of a window counts no more than a word.
const STEEPEST: i64 = 1536;

/// Cells that must differ from their surroundings; with fewer, it is a plain area, a line or a dot.
const LEAST: usize = 160;

/// Bits of each number.
pub(super) const BITS: usize = 24;

/// Numbers for the whole picture, and for its busy part.
pub(super) const WHOLE: usize = 4;
pub(super) const PART: usize = 3;

/// Least certain bits of a number, which are looked up both ways.
const UNSURE: usize = 4;

/// The brightness of a picture's pixels, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grey {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<u8>,
}

/// One of the numbers: its value, and its values with the least certain bits flipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Band {
    pub(super) number: u8,
    pub(super) bits: u32,
    pub(super) others: Vec<u32>,
}

/// The numbers of a picture; none if it has too little content.
pub(super) fn bands(grey: &Grey) -> Vec<Band> {
    if grey.width == 0 || grey.height == 0 || grey.pixels.len() < grey.width * grey.height {
        return Vec::new();
    }
    let rows = grey.pixels.chunks_exact(grey.width).take(grey.height);
    let fine = reduce::<_, FINE>(rows, grey.width, grey.height, STEP);
    let whole = Frame { left: RIM, top: RIM, width: FINE - 2 * RIM, height: FINE - 2 * RIM };
    let mut all = of_frame(&fine, whole, WHOLE, 0);
    if !all.is_empty() {
        all.extend(of_frame(&fine, busy(&fine), PART, WHOLE));
    }
    all
}

/// A part of the fine cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

fn of_frame(fine: &[u32], frame: Frame, count: usize, first: usize) -> Vec<Band> {
    let rows = fine.chunks_exact(FINE).skip(frame.top).take(frame.height);
    let rows = rows.map(|row| &row[frame.left..frame.left + frame.width]);
    let cells = reduce::<_, CELLS>(rows, frame.width, frame.height, 1);
    let Some(relief) = relief(&cells) else { return Vec::new() };
    let waves = waves(&relief, count * BITS);
    (0..count)
        .map(|band| {
            // Each band has waves of all lengths.
            let own: Vec<i64> = waves.iter().skip(band).step_by(count).copied().collect();
            let number = u8::try_from(first + band).unwrap_or(u8::MAX);
            let bits = own.iter().fold(0, |bits, &wave| bits << 1 | u32::from(wave > 0));
            let mut unsure: Vec<usize> = (0..own.len()).collect();
            unsure.sort_by_key(|&i| own[i].abs());
            let flips = unsure.iter().take(UNSURE).map(|&i| 1u32 << (own.len() - 1 - i));
            let flips: Vec<u32> = flips.collect();
            let others = (1..1u32 << flips.len())
                .map(|set| {
                    let chosen = flips.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
                    chosen.fold(bits, |bits, (_, flip)| bits ^ flip)
                })
                .collect();
            Band { number, bits, others }
        })
        .collect()
}

/// The mean of each of N times N equal cells of a picture, in `step` steps per level; pixels at an edge count for both sides.
fn reduce<'a, T: Copy + Into<u32> + 'a, const N: usize>(
    rows: impl Iterator<Item = &'a [T]>,
    width: usize,
    height: usize,
    step: u32,
) -> Vec<u32> {
    let mut sums = vec![0u64; N * N];
    let mut row_sums = vec![0u64; N];
    for (y, row) in rows.enumerate() {
        // Units: a pixel is N wide, and a cell is as wide as the picture.
        let (mut sum, mut before, mut from) = (0u64, 0u64, 0);
        for (i, cell) in row_sums.iter_mut().enumerate() {
            let edge = (i + 1) * width;
            let (to, part) = (edge / N, edge % N);
            sum += row[from..to].iter().map(|&value| u64::from(value.into())).sum::<u64>();
            from = to;
            let part = if part == 0 { 0 } else { part as u64 * u64::from(row[to].into()) };
            let here = sum * N as u64 + part;
            *cell = here - before;
            before = here;
        }
        let (top, bottom) = (y * N, (y + 1) * N);
        for j in top / height..N {
            if j * height >= bottom {
                break;
            }
            let share = (bottom.min((j + 1) * height) - top.max(j * height)) as u64;
            for (sum, cell) in sums[j * N..(j + 1) * N].iter_mut().zip(&row_sums) {
                *sum += cell * share;
            }
        }
    }
    let area = (width * height) as u64;
    sums.into_iter().map(|sum| u32::try_from(sum * u64::from(step) / area).unwrap_or(u32::MAX)).collect()
}

/// The busy part: from the first to the last row and column with edges.
fn busy(fine: &[u32]) -> Frame {
    let (mut columns, mut rows) = ([0usize; FINE], [0usize; FINE]);
    for y in 0..FINE - 1 {
        for x in 0..FINE - 1 {
            let at = fine[y * FINE + x];
            if at.abs_diff(fine[y * FINE + x + 1]) + at.abs_diff(fine[(y + 1) * FINE + x]) >= EDGE {
                columns[x] += 1;
                rows[y] += 1;
            }
        }
    }
    let span = |counts: &[usize; FINE]| {
        let from = counts.iter().position(|&count| count >= EDGES).unwrap_or(0);
        let to = counts.iter().rposition(|&count| count >= EDGES).map_or(FINE, |last| last + 2);
        (from, to.min(FINE) - from)
    };
    let ((left, width), (top, height)) = (span(&columns), span(&rows));
    Frame { left, top, width, height }
}

/// The difference of each cell from its surroundings, relative to the usual difference there. `None` if too few cells differ.
fn relief(cells: &[u32]) -> Option<Vec<i64>> {
    let cells: Vec<i64> = cells.iter().map(|&cell| i64::from(cell)).collect();
    let means = surroundings(&cells);
    let differences: Vec<i64> = cells.iter().zip(&means).map(|(cell, mean)| cell - mean).collect();
    let sizes: Vec<i64> = differences.iter().map(|difference| difference.abs()).collect();
    if sizes.iter().filter(|&&size| size >= FAINT).count() < LEAST {
        return None;
    }
    let usual = surroundings(&sizes);
    let steep =
        |(difference, usual): (&i64, i64)| (difference * 1024 / (usual + FLOOR)).clamp(-STEEPEST, STEEPEST);
    Some(differences.iter().zip(usual).map(steep).collect())
}

/// The mean of the cells around each cell, itself included.
fn surroundings(cells: &[i64]) -> Vec<i64> {
    let mut means = Vec::with_capacity(cells.len());
    for y in 0..CELLS {
        for x in 0..CELLS {
            let (left, right) = (x.saturating_sub(REACH), (x + REACH + 1).min(CELLS));
            let (top, bottom) = (y.saturating_sub(REACH), (y + REACH + 1).min(CELLS));
            let rows = (top..bottom).map(|row| &cells[row * CELLS + left..row * CELLS + right]);
            let sum: i64 = rows.map(|row| row.iter().sum::<i64>()).sum();
            means.push(sum.div_euclid(((right - left) * (bottom - top)) as i64));
        }
    }
    means
}

/// 4096 times the cosine of `angle` 64ths of a half turn.
fn cosine(angle: usize) -> i64 {
    const QUARTER: [i64; 33] = [
        4096, 4091, 4076, 4052, 4017, 3973, 3920, 3857, 3784, 3703, 3612, 3513, 3406, 3290, 3166, 3035, 2896,
        2751, 2598, 2440, 2276, 2106, 1931, 1751, 1567, 1380, 1189, 995, 799, 601, 401, 201, 0,
    ];
    match angle % 128 {
        a @ 0..=32 => QUARTER[a],
        a @ 33..=64 => -QUARTER[64 - a],
        a @ 65..=96 => -QUARTER[a - 64],
        a => QUARTER[128 - a],
    }
}

/// The first coefficients of the cosine transform, without those for margins and columns alone.
fn waves(relief: &[i64], count: usize) -> Vec<i64> {
    let mut wanted = (5..).flat_map(|both| (1..both).map(move |across| (across, both - across)));
    // The waves of each row, for the lengths needed.
    let mut across = vec![None; CELLS];
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let Some((u, v)) = wanted.next() else { break };
        let sums: &Vec<i64> = across[u % CELLS].get_or_insert_with(|| {
            let rows = relief.chunks_exact(CELLS);
            rows.map(|row| row.iter().enumerate().map(|(x, value)| value * cosine((2 * x + 1) * u)).sum())
                .collect()
        });
        all.push(sums.iter().enumerate().map(|(y, sum)| sum / 4096 * cosine((2 * y + 1) * v)).sum());
    }
    all
}
