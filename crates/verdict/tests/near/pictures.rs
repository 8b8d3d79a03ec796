// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages that are pictures: copies of one are counted together, others are not, and logos join no letters.

use crate::memory::Ledger;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fmt::Write;

/// A picture in shades of grey.
#[derive(Clone)]
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

fn below(random: &mut SplitMix64, n: usize) -> usize {
    usize::try_from(random.next_u64() % n as u64).unwrap()
}

impl Picture {
    /// Black letters in lines on a white page, as pictures of text are.
    fn of_text(number: u64, width: usize, height: usize) -> Self {
        let mut random = SplitMix64::seed_from_u64(number);
        let mut page = Self { width, height, pixels: vec![255; width * height] };
        for top in (20..height - 30).step_by(20) {
            let mut left = 20;
            while left < width - 100 {
                let letters = 1 + below(&mut random, 9);
                for letter in 0..letters {
                    page.letter(left + letter * 12, top, random.next_u64());
                }
                left += (letters + 1) * 12;
            }
        }
        page
    }

    /// Five times seven squares, some of them black.
    fn letter(&mut self, left: usize, top: usize, squares: u64) {
        for y in 0..14 {
            for x in (0..10).filter(|x| squares >> (y / 2 * 5 + x / 2) & 1 == 1) {
                self.pixels[(top + y) * self.width + left + x] = 20;
            }
        }
    }

    /// Stripes, as a logo is.
    fn logo(width: usize, height: usize) -> Self {
        let pixels =
            (0..width * height).map(|i| if i % width % 40 < 15 { 200 } else { (i / width * 2) as u8 });
        Self { width, height, pixels: pixels.collect() }
    }

    fn map(&self, change: impl FnMut(u8) -> u8) -> Self {
        Self { pixels: self.pixels.iter().copied().map(change).collect(), ..*self }
    }

    fn noisy(&self, number: u64) -> Self {
        let mut random = SplitMix64::seed_from_u64(number);
        self.map(|grey| grey.saturating_add_signed(below(&mut random, 60) as i8 - 30))
    }

    /// Each pixel is the nearest one.
    fn scaled(&self, percent: usize) -> Self {
        let (width, height) = (self.width * percent / 100, self.height * percent / 100);
        let at = |i: usize| self.pixels[i / width * 100 / percent * self.width + i % width * 100 / percent];
        Self { width, height, pixels: (0..width * height).map(at).collect() }
    }

    fn cut(&self, pixels: usize) -> Self {
        let rows = self.pixels.chunks_exact(self.width).skip(pixels);
        let pixels: Vec<u8> = rows.flat_map(|row| &row[..row.len() - 1]).copied().collect();
        Self { width: self.width - 1, height: pixels.len() / (self.width - 1), pixels }
    }

    fn framed(&self, grey: u8) -> Self {
        let (w, h) = (self.width, self.height);
        let edge = |i: usize| i % w < 4 || i % w >= w - 4 || i / w < 4 || i / w >= h - 4;
        let pixels = self.pixels.iter().enumerate().map(|(i, &old)| if edge(i) { grey } else { old });
        Self { pixels: pixels.collect(), ..*self }
    }

    /// The picture as PNG.
    fn png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_compression(png::Compression::Fast);
        encoder.write_header().unwrap().write_image_data(&self.pixels).unwrap();
        bytes
    }

    /// The picture as GIF.
    fn gif(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let palette: Vec<u8> = (0..=255).flat_map(|grey| [grey; 3]).collect();
        let (width, height) = (self.width as u16, self.height as u16);
        let mut encoder = gif::Encoder::new(&mut bytes, width, height, &palette).unwrap();
        let frame = gif::Frame { width, height, buffer: (&self.pixels).into(), ..gif::Frame::default() };
        encoder.write_frame(&frame).unwrap();
        drop(encoder);
        bytes
    }

    /// The picture as lossless WebP.
    fn webp(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let encoder = image_webp::WebPEncoder::new(&mut bytes);
        let (width, height) = (self.width as u32, self.height as u32);
        encoder.encode(&self.pixels, width, height, image_webp::ColorType::L8).unwrap();
        bytes
    }
}

fn quoted_printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(24) {
        line.iter().for_each(|b| write!(text, "={b:02X}").unwrap());
        text.push_str("=\n");
    }
    text
}

/// A page that shows the enclosed file at `{}`.
fn page(html: &str, bytes: &[u8]) -> Vec<u8> {
    let html = html.replace("{}", "<a href='https://shop.example/'><img src='cid:p@x.example'></a>");
    format!(
        "Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n{html}\n--b\n\
         Content-Type: image/png\nContent-ID: <p@x.example>\nContent-Transfer-Encoding: quoted-printable\n\n{}\n--b--\n",
        quoted_printable(bytes)
    )
    .into_bytes()
}

fn counts(messages: impl IntoIterator<Item = Vec<u8>>) -> Vec<u32> {
    let mut ledger = Ledger::default();
    messages.into_iter().map(|message| ledger.see(&message)).collect()
}

/// The counts of `number` messages, all counted together.
fn all(number: u32) -> Vec<u32> {
    (1..=number).collect()
}

#[test]
fn a_picture_is_the_same_with_noise_in_another_size_cut_and_framed() {
    let text = Picture::of_text(1, 600, 400);
    let copies: [Picture; 8] = [
        text.clone(),
        text.noisy(1),
        text.noisy(2),
        text.scaled(110),
        text.scaled(90).noisy(3),
        text.cut(1),
        text.framed(200),
        text.map(|grey| grey / 2 + 60),
    ];
    // A copy may differ in a band or two.
    let counts = counts(copies.map(|copy| page("{}", &copy.png())));
    assert!(counts.iter().zip(1..).all(|(&count, n)| count + 1 >= n), "{counts:?}");
}

#[test]
fn a_picture_is_the_same_in_another_format_and_with_bytes_behind_it() {
    let text = Picture::of_text(2, 400, 300);
    let behind = [&text.png()[..], b"some bytes that no program reads"].concat();
    let copies = [text.png(), text.gif(), text.webp(), behind];
    assert_eq!(counts(copies.map(|copy| page("{}", &copy))), all(4));
}

/// Nearly all of each is white, and lines stand at the same places.
#[test]
fn pictures_of_other_text_are_others() {
    let pictures = (0..80).map(|number| page("{}", &Picture::of_text(number, 360, 300).png()));
    assert_eq!(counts(pictures), vec![1; 80]);
}

/// Random words after a picture as large as the page do not matter.
#[test]
fn words_behind_a_large_picture_do_not_matter() {
    let picture = Picture::of_text(3, 500, 400).png();
    let copies = (0..30).map(|n| page(&format!("{{}}<p>word{n} other{n} third{n}"), &picture));
    assert_eq!(counts(copies), all(30));
}

/// Neither does a logo of any size, nor a seasonal card below a few words.
#[test]
fn logos_join_no_letters() {
    for (logo, letter) in [
        (Picture::logo(140, 44), "<p>OWN</p>{}"),
        (Picture::logo(140, 44), "{}"),
        (Picture::logo(300, 100), "<p>OWN</p>{}"),
        (Picture::logo(300, 100), "{}<p>OWN</p>"),
        // A seasonal card, or a fair's banner.
        (Picture::of_text(4, 600, 400), "<p>OWN</p>{}"),
    ] {
        let logo = logo.png();
        let letters = (0..40).map(|n| page(&letter.replace("OWN", &format!("yes word{n} thanks")), &logo));
        let counts = counts(letters);
        assert!(counts.iter().all(|&count| count <= 4), "{letter} {counts:?}");
    }
}

#[test]
fn pictures_on_the_net_are_known_by_their_path() {
    let remote = |path: &str, n: usize| {
        format!(
            "Content-Type: text/html\n\n<a href='http://a{n}.example/{n}'><img src='http://h{n}.example/{path}?u={n}'></a>\
             <img src='http://t.example/o/{n}.gif' width=1 height=1>"
        )
        .into_bytes()
    };
    assert_eq!(counts((0..25).map(|n| remote("pictures/autumn-prices-at-the-harbour.jpg", n))), all(25));
    assert!(counts((0..25).map(|n| remote("img/logo.png", n))).iter().all(|&count| count <= 1));
    // Below a text, it may be part of all of a sender's letters.
    let below = |n| {
        [
            &b"Content-Type: text/html\n\n"[..],
            format!("<p>yes word{n} thanks").as_bytes(),
            &remote("autumn-prices-at-the-harbour.jpg", 1)[25..],
        ]
        .concat()
    };
    assert!(counts((0..25).map(below)).iter().all(|&count| count <= 4));
}

/// A header with an impossible size, a truncated picture, one with other data after its first bytes: none is decoded beyond the bounds, and
/// the rest of the message is read.
#[test]
fn bombs_and_broken_pictures_are_files() {
    let whole = Picture::of_text(5, 400, 300).png();
    let mut huge = whole.clone();
    huge[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
    let mut zip = whole.clone();
    zip[60..].fill(b'P');
    let mut gif = Picture::of_text(5, 400, 300).gif();
    gif[6..10].fill(0xFF);
    let jpeg = [&[0xFF, 0xD8, 0xFF, 0xC0, 0, 17, 8, 0x75, 0x30, 0x75, 0x30, 3][..], &[0x11; 5000]].concat();
    for picture in [huge, zip, gif, jpeg, whole[..1500].to_vec(), whole[..whole.len() * 3 / 4].to_vec()] {
        let copies = (0..3).map(|n| page("{}", &[&picture[..], &[n; 1]].concat()));
        assert_eq!(counts(copies), all(3));
    }
}
