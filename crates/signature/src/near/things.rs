// SPDX-License-Identifier: GPL-3.0-or-later
//! The other parts of a message with next to no text: pictures, files and links. docs/signatures.md defines which of them are the message,
//! and which only stand below it.

use super::document;
use super::picture::Band;
use super::pixels::{self, Pixels, Work};
use super::sample::{self, Scheme};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Words from which on a message is its text, whatever is attached. With fewer and no payload, the text is a formula that many people write
/// ("please find attached"), and no proof of a copy.
pub(super) const FEW: usize = 21;

/// Words beside a picture that still counts as alone: a name, a number.
const ALONE: usize = 2;

/// Pixels on a side, and in all, of a picture that fills the page: logos and banners are smaller.
const PAGE_SIDE: usize = 200;
const PAGE: usize = 90_000;

/// Bytes of an attached file below which it is a mark or an icon.
const SMALL: usize = 1024;

/// Attached files that are kept, and those that get signatures, the largest of all.
pub(super) const MAX_FILES: usize = 8;
const MAX_SIGNED: usize = 2;

/// Pictures with content that are kept. [`Work`] bounds the number of decoded ones.
pub(super) const MAX_DECODED: usize = 2;

/// Pictures on a page that are considered.
const MAX_SHOWN: usize = 16;

/// Links that are kept.
const MAX_LINKS: usize = 64;

/// Passages of a document, evenly weighted.
const DOCUMENT: Scheme = Scheme { slots: 16, probes: 1, head: false, last: Scheme::FULL, ..Scheme::SHIPPED };

/// An attached file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Enclosed {
    /// A digest of its main pieces, or of its beginning.
    pub(super) digest: [u8; 32],
    /// In bytes, as attached.
    pub(super) size: usize,
    /// The hash of the name by which HTML shows it.
    id: Option<u64>,
    look: Look,
}

/// An attached file as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Look {
    /// A document, or a picture that cannot be read.
    File,
    /// A picture of a logo's size.
    Logo,
    Picture {
        width: usize,
        height: usize,
        bands: Vec<Band>,
    },
}

impl Enclosed {
    /// Returns `None` for a file that is too small. A picture is only decoded if there is work left for it.
    pub(super) fn of(bytes: &[u8], id: Option<u64>, work: &mut Work) -> Option<Self> {
        if bytes.len() < SMALL {
            return None;
        }
        let digest = document::digest(bytes).unwrap_or_else(|| {
            // At least the first half: noise at the end does not change it.
            let length = 1 << (bytes.len() - bytes.len() / 8).ilog2();
            Sha256::digest(&bytes[..length]).into()
        });
        let look = match pixels::pixels(bytes, work) {
            Pixels::Other | Pixels::Unread => Look::File,
            Pixels::Small => Look::Logo,
            Pixels::Grey(grey) => {
                let bands = super::picture::bands(&grey);
                // A plain area has no features, so the file is identified by its bytes.
                if bands.is_empty() {
                    Look::File
                } else {
                    Look::Picture { width: grey.width, height: grey.height, bands }
                }
            }
        };
        Some(Self { digest, size: bytes.len(), id, look })
    }

    /// A text file, identified by one passage, so that most copies with a name in each agree. `None` if it is too small.
    pub(super) fn of_text(words: &[u64], bytes: usize) -> Option<Self> {
        let passage = Some(sample::first_hash(words)?).filter(|_| bytes >= SMALL)?;
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&passage.to_le_bytes());
        Some(Self { digest, size: bytes, id: None, look: Look::File })
    }

    /// An office document, identified by passages all over its text. Letters and bills of one company share most of it, and its copies all
    /// but a name.
    pub(super) fn of_document(words: &[u64], bytes: usize) -> Option<Self> {
        let passages = sample::sample(words, &DOCUMENT);
        let mut hash = Sha256::new_with_prefix(b"document text\0");
        passages.iter().flatten().for_each(|passage| hash.update(passage.hash.to_le_bytes()));
        let digest = (!passages.is_empty()).then(|| hash.finalize().into())?;
        Some(Self { digest, size: bytes, id: None, look: Look::File })
    }

    /// Whether its pixels were decoded.
    pub(super) const fn is_picture(&self) -> bool {
        matches!(self.look, Look::Picture { .. })
    }
}

/// A picture on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) source: Source,
    /// The size in its element.
    pub(super) size: (Option<u32>, Option<u32>),
    /// Whether a word stands before it.
    pub(super) behind_text: bool,
}

/// The place of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// In the message, by the hash of its name.
    Part(u64),
    /// On the web, by the hash of its path.
    Path(u64),
}

impl Shown {
    /// Its size on the page, from its element or the picture itself.
    fn size(&self, own: Option<(usize, usize)>) -> Option<(usize, usize)> {
        let side = |side: Option<u32>| side.map(|pixels| pixels as usize);
        match ((side(self.size.0), side(self.size.1)), own) {
            ((Some(width), Some(height)), _) => Some((width, height)),
            // The other side follows in proportion.
            ((Some(width), None), Some((w, h))) => Some((width, width.saturating_mul(h) / w.max(1))),
            ((None, Some(height)), Some((w, h))) => Some((height.saturating_mul(w) / h.max(1), height)),
            (_, own) => own,
        }
    }
}

/// The pictures and links of a page, and the amount of text beside them.
#[derive(Debug, Default)]
pub(super) struct Page {
    shown: Vec<Shown>,
    /// Hashes of link targets.
    pages: BTreeSet<u64>,
    /// Words on the page, also unread ones that are quoted or below a rule; up to [`FEW`].
    visible_words: usize,
}

impl Page {
    /// Appends the next part of the message.
    pub(super) fn append(&mut self, other: Self) {
        let behind_text = self.visible_words > 0;
        for picture in other.shown {
            self.show(Shown { behind_text: picture.behind_text || behind_text, ..picture });
        }
        other.pages.into_iter().for_each(|page| self.link(page));
        self.visible_words = FEW.min(self.visible_words + other.visible_words);
    }

    pub(super) fn show(&mut self, picture: Shown) {
        if self.has_room() {
            self.shown.push(picture);
        }
    }

    /// Whether another picture would be kept.
    pub(super) fn has_room(&self) -> bool {
        self.shown.len() < MAX_SHOWN
    }

    pub(super) fn link(&mut self, page: u64) {
        if self.pages.len() < MAX_LINKS {
            self.pages.insert(page);
        }
    }

    pub(super) fn has_links(&self) -> bool {
        !self.pages.is_empty()
    }

    /// Removes a link that was the source of a picture.
    pub(super) fn remove_link(&mut self, page: u64) {
        self.pages.remove(&page);
    }

    /// Counts words beside the pictures and links, read or not.
    pub(super) fn text(&mut self, text: &str) {
        self.visible_words += words_in(text, FEW - self.visible_words);
    }

    /// Whether it has nothing but text.
    pub(super) fn is_empty(&self) -> bool {
        self.shown.is_empty() && self.pages.is_empty()
    }
}

/// The number of words in a text, up to `at_most`, without links.
pub(super) fn words_in(text: &str, at_most: usize) -> usize {
    let is_word = |token: &&str| token.contains(char::is_alphanumeric) && !token.contains("://");
    text.split_whitespace().filter(is_word).take(at_most).count()
}

/// The things that are the message, and whether they are so whatever stands beside them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chosen<'a> {
    pub(super) bands: &'a [Band],
    /// Hashes of the paths of pictures on the web.
    pub(super) paths: Vec<u64>,
    pub(super) files: Vec<&'a [u8; 32]>,
    /// Hashes of all link targets, in order.
    pub(super) links: Option<Vec<u64>>,
    /// Whether nothing beside it could make it another message.
    pub(super) alone: bool,
}

/// Chooses the things that a message with this few words consists of.
pub(super) fn choose<'a>(words: usize, page: &Page, files: &'a [Enclosed]) -> Chosen<'a> {
    let mut chosen = Chosen { bands: &[], paths: Vec::new(), files: Vec::new(), links: None, alone: false };
    if words >= FEW {
        return chosen;
    }
    let documents = files.iter().filter(|file| file.look == Look::File);
    let documents: Vec<_> = documents.take(MAX_SIGNED).map(|file| &file.digest).collect();
    let alone = page.visible_words <= ALONE && documents.is_empty();
    if let Some((bands, first)) = largest(page, files, alone) {
        chosen.bands = bands;
        chosen.alone = alone || first && documents.is_empty();
    }
    if chosen.alone {
        return chosen;
    }
    chosen.files = documents;
    for picture in &page.shown {
        if let Source::Path(path) = picture.source
            && chosen.paths.len() < MAX_SIGNED
            && !chosen.paths.contains(&path)
            && picture.size(None).is_none_or(|(width, height)| !pixels::is_small(width, height))
            && (alone || !picture.behind_text)
        {
            chosen.paths.push(path);
        }
    }
    // Links below an unread text are in all mail of its author.
    if page.pages.len() > words.max(1) && page.visible_words <= words + ALONE {
        chosen.links = Some(page.pages.iter().copied().collect());
    }
    chosen
}

/// The largest of the enclosed pictures, and whether it fills the page before the text. `None` if it cannot be the message.
fn largest<'a>(page: &Page, files: &'a [Enclosed], alone: bool) -> Option<(&'a [Band], bool)> {
    let pictures = files.iter().filter_map(|file| {
        let Look::Picture { width, height, bands } = &file.look else { return None };
        let shown =
            page.shown.iter().find(|shown| file.id.is_some_and(|id| shown.source == Source::Part(id)));
        let (width, height) = shown.map_or(Some((*width, *height)), |s| s.size(Some((*width, *height))))?;
        let behind_text = shown.map_or(page.visible_words > 0, |shown| shown.behind_text);
        Some((width.saturating_mul(height), width.min(height), bands, behind_text))
    });
    let (area, side, bands, behind_text) = pictures.max_by_key(|&(area, ..)| area)?;
    let fills_page = area >= PAGE && side >= PAGE_SIDE;
    (alone && !pixels::is_small(side, area / side.max(1)) || fills_page)
        .then_some((&bands[..], fills_page && !behind_text))
}
