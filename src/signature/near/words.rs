// SPDX-License-Identifier: GPL-3.0-or-later
//! From lines to words, and to the links among them.

use super::fold::fold;
use crate::signature::text::stands_alone;

/// Letters and digits of a string that makes each copy another, at least.
const RANDOM: usize = 8;

/// Turns from letters to digits and back that no word has.
const TURNS: usize = 3;

/// Bytes of the longest word.
const LONGEST: usize = 40;

/// What a token of a text is.
pub(super) enum Token<'a> {
    /// A word, folded and as it stands.
    Word(&'a str, &'a str),
    /// Where a link leads.
    Link(&'a str),
}

/// What stands in a token, a bit for each.
mod class {
    pub(super) const DIGIT: u8 = 1;
    pub(super) const COLON: u8 = 2;
    pub(super) const AT: u8 = 4;
    pub(super) const DOT: u8 = 8;
    pub(super) const WIDE: u8 = 16;
}

const CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0u8;
    loop {
        table[b as usize] = match b {
            b'0'..=b'9' => class::DIGIT,
            b':' => class::COLON,
            b'@' => class::AT,
            b'.' => class::DOT,
            0x80.. => class::WIDE,
            _ => 0,
        };
        if b == u8::MAX {
            break table;
        }
        b += 1;
    }
};

/// Shows the words and links of a line. Addresses of people and strings that look random are left out: they differ in each copy.
pub(super) fn tokens(line: &str, folded: &mut String, see: &mut dyn FnMut(Token<'_>)) {
    if line.is_ascii() {
        let mut start = 0;
        for (end, _) in line.bytes().enumerate().filter(|&(_, b)| b <= b' ').chain([(line.len(), 0)]) {
            if start < end {
                token(&line[start..end], folded, see);
            }
            start = end + 1;
        }
    } else {
        line.split_whitespace().for_each(|piece| token(piece, folded, see));
    }
}

fn token(token: &str, folded: &mut String, see: &mut dyn FnMut(Token<'_>)) {
    let has = token.bytes().fold(0, |has, b| has | CLASSES[usize::from(b)]);
    if has & class::COLON != 0 && token.contains("://") || has & class::DOT != 0 && token.starts_with("www.")
    {
        see(Token::Link(token));
        return;
    }
    let is_wide = has & class::WIDE != 0;
    let is_address = has & class::AT != 0 && is_address(token);
    if is_address || !is_wide && (token.len() > LONGEST || has & class::DIGIT != 0 && is_random(token)) {
        return;
    }
    if is_wide && (token.len() > LONGEST || token.contains(stands_alone)) {
        // A text without spaces, or one in a charset that is not told: each character is a word.
        for c in token.chars() {
            word(c.encode_utf8(&mut [0; 4]), folded, see);
        }
    } else {
        word(token, folded, see);
    }
}

fn word(token: &str, folded: &mut String, see: &mut dyn FnMut(Token<'_>)) {
    folded.clear();
    fold(token, folded);
    if !folded.is_empty() {
        see(Token::Word(folded, token));
    }
}

fn is_address(token: &str) -> bool {
    token.rsplit_once('@').is_some_and(|(_, domain)| domain.contains('.'))
}

/// A string that makes each copy another: letters and digits in turn.
fn is_random(token: &str) -> bool {
    let (mut kinds, mut turns, mut last) = (0, 0, None);
    for b in token.bytes().filter(u8::is_ascii_alphanumeric) {
        let digit = b.is_ascii_digit();
        kinds += 1;
        turns += usize::from(last.is_some_and(|last| last != digit));
        last = Some(digit);
    }
    kinds >= RANDOM && turns >= TURNS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(line: &str) -> String {
        let mut all = Vec::new();
        tokens(line, &mut String::new(), &mut |token| {
            all.push(match token {
                Token::Word(word, _) => word.to_owned(),
                Token::Link(link) => format!("<{link}>"),
            });
        });
        all.join(" ")
    }

    #[test]
    fn what_is_a_word() {
        assert_eq!(seen("Dear friend@example.org, only 3 days!"), "dear only 3 days");
        assert_eq!(seen("kx83jd92ks0 ab12cd34 windows2000 x86"), "wlndowszooo x86".replace("x86", "xb6"));
        assert_eq!(
            seen("see http://a.example/x or www.b.example"),
            "see <http://a.example/x> or <www.b.example>"
        );
        assert_eq!(seen("买一送一 ok"), "买 一 送 一 ok");
    }
}
