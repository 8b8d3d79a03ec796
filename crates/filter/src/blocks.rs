// SPDX-License-Identifier: GPL-3.0-or-later
//! The memory of a filter: a row of cache lines.

use crate::layout::BLOCK_BYTES;
use crate::params::ParameterError;
#[cfg(all(target_os = "linux", not(miri)))]
use memmap2::Advice;
use memmap2::MmapMut;
use std::ops::{Deref, DerefMut};

/// One cache line of packed cells.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// The largest filter: 2^32 blocks, 256 GiB.
const MAX_BLOCKS: u64 = 1 << 32;

/// The size from which the filter asks for huge pages. Below it the processor's address cache covers small pages, and a
/// page of 2 MB is large compared to the filter.
const HUGE_BYTES: usize = 32 << 20;

/// A huge page. Memory that is used everywhere takes no more on such pages.
const HUGE_PAGE: usize = 2 << 20;

/// Zeroed blocks of one cache line each, on pages that the kernel provides at the first write.
pub(crate) struct Blocks {
    memory: MmapMut,
}

impl Blocks {
    /// # Errors
    /// If `blocks` is 0 or above 2^32, or the machine lacks the memory.
    pub(crate) fn new(blocks: usize) -> Result<Self, ParameterError> {
        Self::mapped(blocks, HUGE_BYTES)
    }

    /// The same for blocks of which none stays empty for long.
    pub(crate) fn dense(blocks: usize) -> Result<Self, ParameterError> {
        Self::mapped(blocks, HUGE_PAGE)
    }

    fn mapped(blocks: usize, huge_from: usize) -> Result<Self, ParameterError> {
        ParameterError::check("blocks", blocks as u64, 1, MAX_BLOCKS)?;
        let memory = blocks.checked_mul(BLOCK_BYTES).and_then(|bytes| MmapMut::map_anon(bytes).ok());
        let memory = memory.ok_or_else(|| ParameterError::memory("blocks", blocks as u64))?;
        // Miri has no such advice, nor prefetches.
        #[cfg(any(not(target_os = "linux"), miri))]
        let _ = huge_from;
        #[cfg(all(target_os = "linux", not(miri)))]
        if memory.len() >= huge_from {
            // A kernel without huge pages refuses, and the filter is only slower.
            let _ = memory.advise(Advice::HugePage);
        }
        Ok(Self { memory })
    }

    /// Prefetches a block.
    #[inline]
    pub(crate) fn prefetch(&self, block: usize) {
        prefetch(&self[block]);
    }
}

impl Deref for Blocks {
    type Target = [Block];

    #[inline]
    fn deref(&self) -> &[Block] {
        self.memory.as_chunks().0
    }
}

impl DerefMut for Blocks {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Block] {
        self.memory.as_chunks_mut().0
    }
}

/// Prefetches the cache line in which `item` begins.
///
/// Prefetching makes a batch faster than single additions. Reading a byte of each block ahead instead takes longer (`make
/// bench-filter`), since a read that waits for memory holds up later instructions. The line goes to the second level of the cache:
/// the first was found to drop a few of the 64 lines of a batch, and each dropped line costs a full wait.
#[inline]
#[cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(
        unsafe_code,
        reason = "std has no safe prefetch yet (rust-lang/rust#146941); its gain is measured"
    )
)]
pub(crate) fn prefetch<T>(item: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint; it changes no memory and cannot fault. SSE, its feature, is part of every x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(item).cast());
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = item;
}
