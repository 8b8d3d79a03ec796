// SPDX-License-Identifier: GPL-3.0-or-later
//! Decodes the bytes of a picture to the brightness of its pixels, within bounds. The only file that knows the decoders.

use super::picture::Grey;
use std::io::Cursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Pixels of the largest picture that is decoded: four times a large screen. At four bytes each they take 64 MB.
const MAX_PIXELS: usize = 16 << 20;

/// Pixels of the longest side; a longer picture is a line.
const MAX_SIDE: usize = 1 << 14;

/// Bytes that a decoder may allocate.
const MAX_BYTES: usize = 64 << 20;

/// Passes over a progressive JPEG: programs write about ten, and each costs as much as a picture.
const MAX_SCANS: usize = 24;

/// Pixels on a side, and in all, below which a picture is a logo, an icon or a line.
const SMALL_SIDE: usize = 64;
const SMALL: usize = 8_000;

/// Pictures of a message that are tried, with or without success.
const MOST_TRIES: usize = 8;

/// Pixels of all of them, counted once per pass of the decoder. Four of the largest ones take about 0.6 s; a progressive JPEG has one pass
/// per scan.
const MOST_WORK: usize = 4 * MAX_PIXELS;

/// The work left for the pictures of a message. It is spent before a picture is decoded, also on a damaged or plain one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Work {
    tries: usize,
    pixels: usize,
}

impl Work {
    /// The work for a new message.
    pub(super) const fn new() -> Self {
        Self { tries: MOST_TRIES, pixels: MOST_WORK }
    }

    /// Pictures that were tried.
    #[cfg(test)]
    pub(super) const fn tried(&self) -> usize {
        MOST_TRIES - self.tries
    }

    /// No work: pictures are only measured.
    pub(super) const fn none() -> Self {
        Self { tries: 0, pixels: 0 }
    }

    /// Takes the work for this many passes over a picture, if it is left.
    const fn take(&mut self, width: usize, height: usize, passes: usize) -> bool {
        let pixels = width.saturating_mul(height).saturating_mul(passes);
        if self.tries == 0 || pixels > self.pixels {
            return false;
        }
        self.tries -= 1;
        self.pixels -= pixels;
        true
    }
}

/// Whether a picture of this size is too small to be a message.
pub(super) const fn is_small(width: usize, height: usize) -> bool {
    width < SMALL_SIDE || height < SMALL_SIDE || width.saturating_mul(height) < SMALL
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pixels {
    /// No picture of a known kind.
    Other,
    /// A picture that is damaged, over the bounds, or not decoded.
    Unread,
    /// A picture of a logo's size.
    Small,
    /// A picture; the first frame of an animation.
    Grey(Grey),
}

/// The kinds of pictures that mail programs show, by their first bytes: mail programs ignore the header's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Png,
    Jpeg,
    Gif,
    WebP,
}

fn format(bytes: &[u8]) -> Option<Format> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some(Format::Png),
        [0xFF, 0xD8, 0xFF, ..] => Some(Format::Jpeg),
        [b'G', b'I', b'F', b'8', ..] => Some(Format::Gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::WebP),
        _ => None,
    }
}

/// Reads a picture, and decodes it if there is work left for it.
pub(super) fn pixels(bytes: &[u8], work: &mut Work) -> Pixels {
    let read = match format(bytes) {
        Some(Format::Png) => png(bytes, work),
        Some(Format::Jpeg) => jpeg(bytes, work),
        Some(Format::Gif) => gif(bytes, work),
        Some(Format::WebP) => webp(bytes, work),
        None => return Pixels::Other,
    };
    read.unwrap_or(Pixels::Unread)
}

/// The result for a picture that its size alone decides; `None` if it must be decoded.
fn by_size(width: usize, height: usize, passes: usize, work: &mut Work) -> Option<Pixels> {
    if is_small(width, height) {
        Some(Pixels::Small)
    } else if width > MAX_SIDE
        || height > MAX_SIDE
        || width * height > MAX_PIXELS
        || !work.take(width, height, passes)
    {
        Some(Pixels::Unread)
    } else {
        None
    }
}

fn grey(width: usize, height: usize, pixels: Vec<u8>) -> Option<Pixels> {
    (pixels.len() >= width * height).then_some(Pixels::Grey(Grey { width, height, pixels }))
}

/// The brightness of a colour, by ITU-R BT.601.
fn brightness(red: u8, green: u8, blue: u8) -> u8 {
    let sum = 77 * u32::from(red) + 150 * u32::from(green) + 29 * u32::from(blue);
    u8::try_from(sum >> 8).unwrap_or(u8::MAX)
}

/// The brightness of a translucent pixel on a white page.
fn on_white(brightness: u8, alpha: u8) -> u8 {
    let ink = u32::from(255 - brightness) * u32::from(alpha) / 255;
    255 - u8::try_from(ink).unwrap_or(u8::MAX)
}

/// The brightness of pixels with `each` samples: grey, grey and alpha, RGB, RGB and alpha.
fn brightnesses(samples: Vec<u8>, each: usize) -> Vec<u8> {
    match each {
        1 => samples,
        2 => samples.chunks_exact(2).map(|p| on_white(p[0], p[1])).collect(),
        3 => samples.chunks_exact(3).map(|p| brightness(p[0], p[1], p[2])).collect(),
        4 => samples.chunks_exact(4).map(|p| on_white(brightness(p[0], p[1], p[2]), p[3])).collect(),
        _ => Vec::new(),
    }
}

fn png(bytes: &[u8], work: &mut Work) -> Option<Pixels> {
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: MAX_BYTES });
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.ignore_checksums(true);
    let header = decoder.read_header_info().ok()?;
    let (width, height) = (header.width as usize, header.height as usize);
    if let Some(known) = by_size(width, height, 1, work) {
        return Some(known);
    }
    let mut reader = decoder.read_info().ok()?;
    let mut samples = vec![0xFF; reader.output_buffer_size()?];
    // A truncated picture is read as far as it goes, as mail programs show it.
    let _ = reader.next_frame(&mut samples);
    let each = reader.output_color_type().0.samples();
    samples.truncate(width * height * each);
    grey(width, height, brightnesses(samples, each))
}

/// The number of scans of a JPEG, by their start markers.
fn scans(bytes: &[u8]) -> usize {
    memchr::memmem::find_iter(bytes, b"\xFF\xDA").take(MAX_SCANS).count().max(1)
}

fn jpeg(bytes: &[u8], work: &mut Work) -> Option<Pixels> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(MAX_SIDE)
        .set_max_height(MAX_SIDE)
        .jpeg_set_max_scans(MAX_SCANS);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(Cursor::new(bytes), options);
    decoder.decode_headers().ok()?;
    let (width, height) = decoder.dimensions()?;
    if let Some(known) = by_size(width, height, scans(bytes), work) {
        return Some(known);
    }
    if let Some(ColorSpace::YCbCr | ColorSpace::Luma) = decoder.input_colorspace() {
        decoder.set_options(options.jpeg_set_out_colorspace(ColorSpace::Luma));
    }
    let samples = decoder.decode().ok()?;
    let each = decoder.output_colorspace()?.num_components();
    grey(width, height, brightnesses(samples, each))
}

fn gif(bytes: &[u8], work: &mut Work) -> Option<Pixels> {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::Indexed);
    options.set_memory_limit(gif::MemoryLimit::Bytes(std::num::NonZero::new(MAX_BYTES as u64)?));
    let mut decoder = options.read_info(Cursor::new(bytes)).ok()?;
    let frame = decoder.next_frame_info().ok()??;
    let (width, height, transparent) =
        (usize::from(frame.width), usize::from(frame.height), frame.transparent);
    if let Some(known) = by_size(width, height, 1, work) {
        return Some(known);
    }
    let palette: Vec<u8> =
        decoder.palette().ok()?.chunks_exact(3).map(|p| brightness(p[0], p[1], p[2])).collect();
    let mut indices = vec![transparent.unwrap_or_default(); decoder.buffer_size()];
    let _ = decoder.read_into_buffer(&mut indices);
    let shade = |index: &u8| {
        let shown = Some(*index) != transparent;
        palette.get(usize::from(*index)).filter(|_| shown).copied().unwrap_or(0xFF)
    };
    grey(width, height, indices.iter().map(shade).collect())
}

/// The pixels of the largest lossy frame, by its own size, whatever the picture's header declares: its decoder compares the two only at the
/// end.
fn inside(bytes: &[u8]) -> usize {
    let side = |low: u8, high: u8| usize::from(u16::from_le_bytes([low, high]) & 0x3FFF);
    let frames = memchr::memmem::find_iter(bytes, b"VP8 ").map(|at| match bytes[at + 4..] {
        // Bytes of the chunk, the frame's tag, a mark, width and height.
        [_, _, _, _, _, _, _, 0x9D, 0x01, 0x2A, w, x, h, y, ..] => side(w, x) * side(h, y),
        _ => 0,
    });
    frames.max().unwrap_or(0)
}

/// The passes over a picture whose frame has more pixels than it.
const fn passes(inside: usize, pixels: usize) -> usize {
    if inside > pixels && pixels > 0 { inside.div_ceil(pixels) } else { 1 }
}

fn webp(bytes: &[u8], work: &mut Work) -> Option<Pixels> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).ok()?;
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    let inside = inside(bytes);
    let passes = passes(inside, width.saturating_mul(height));
    if let Some(known) = by_size(width, height, passes, work) {
        return Some(known);
    }
    if inside > MAX_PIXELS {
        return Some(Pixels::Unread);
    }
    let each = if decoder.has_alpha() { 4 } else { 3 };
    let mut samples = vec![0xFF; decoder.output_buffer_size()?];
    decoder.read_image(&mut samples).ok()?;
    grey(width, height, brightnesses(samples, each))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame in a picture costs the pixels that it declares itself.
    #[test]
    fn frames_cost_their_own_size() {
        let frame = |side: u16| {
            let [low, high] = side.to_le_bytes();
            [&b"RIFF....WEBPVP8 ....\0\0\0\x9D\x01\x2A"[..], &[low, high, low, high]].concat()
        };
        assert_eq!(inside(&[frame(64), frame(4096), frame(100)].concat()), MAX_PIXELS);
        assert_eq!(inside(b"RIFF....WEBPVP8 ..."), 0);
        assert_eq!(
            [passes(0, 8000), passes(8000, 8000), passes(8001, 8000), passes(MAX_PIXELS, 8000)],
            [1, 1, 2, 2098]
        );
    }

    #[test]
    fn work_is_spent_once() {
        let mut work = Work::new();
        assert!(work.take(4096, 4096, 3) && !work.take(4096, 4096, 2) && work.take(4096, 4096, 1));
        assert!(!work.take(1, 1, 1));
        let mut work = Work::new();
        assert_eq!((0..100).filter(|_| work.take(100, 100, 1)).count(), MOST_TRIES);
        assert!(!Work::new().take(usize::MAX, 2, 2) && !Work::none().take(1, 1, 1));
        assert_eq!(scans(b"\xFF\xD8\xFF\xDA.\xFF\xDA."), 2);
        assert_eq!((scans(b""), scans(&b"\xFF\xDA".repeat(100))), (1, MAX_SCANS));
    }
}
