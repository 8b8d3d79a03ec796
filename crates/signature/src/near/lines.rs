// SPDX-License-Identifier: GPL-3.0-or-later
//! Sorts the lines of a text: the author's own lines, the answered message, and footers below all messages of a list, a company or a
//! person. Nothing is lost: other lines are kept by kind, since they are the message if it has no own lines.

use super::armour::{armour, armour_within};
use super::line::{Line, is_field, is_from};
use crate::text::{count, is_blank};
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use std::sync::LazyLock;

/// Bytes of the longest footer; a longer text below a rule is content.
pub(crate) const FOOTER: usize = 1500;

/// Bytes of the longest signature above which less stands than in it. A longer one is content, whatever mark stands above it.
pub(crate) const SIGNATURE: usize = 500;

/// Marks that make a line a rule.
const RULE: usize = 20;

/// Words of a line with a name, a place or a telephone number.
const SHORT: usize = 5;

/// Such lines at the end of a text.
const SIGN_OFF: usize = 10;

/// Words of such lines, at most.
const NAMES: usize = 30;

/// Letters and digits before the `>` of a quoted line (`Tim> text`).
const QUOTED_BY: usize = 8;

/// The most lines of an attribution ("On ... wrote:"): mail programs wrap it.
const ATTRIBUTION: usize = 3;

/// Header fields that are shown above an answered message.
const FIELDS: usize = 8;

/// Bytes of such a line, at most.
const FIELD_LINE: usize = 80;

/// Bytes of a line that only explains how to leave a list.
const LEAVE: usize = 200;

/// Levels of quoting and footers that are unfolded.
const LEVELS: usize = 16;

/// Words below which a text has too few passages.
pub(super) const TOO_FEW: usize = 9;

/// The lines of a text that are not empty, by kind.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    /// The lines written for this message.
    pub(super) own: Vec<Line<'a>>,
    /// The message that is answered or forwarded, without quote marks.
    pub(super) quoted: Vec<Line<'a>>,
    /// Text behind a rule or a signature mark, or text that explains how to leave a list.
    pub(super) footer: Vec<Line<'a>>,
    /// Short lines below the text: the author's name and place.
    pub(super) names: Vec<Line<'a>>,
}

impl<'a> Lines<'a> {
    /// The lines of a text.
    pub(super) fn of(text: &'a str) -> Self {
        let numbered = (1..).zip(text.split_inclusive('\n'));
        Self::sort(numbered, text.len())
    }

    /// All lines of a text that are not empty. Their line numbers continue behind other lines.
    pub(super) fn all(text: &'a str) -> impl Iterator<Item = Line<'a>> {
        (1..).zip(text.split_inclusive('\n')).filter_map(full)
    }

    /// Sorts lines; `length` is the bytes of all of them.
    fn sort(mut lines: impl Iterator<Item = Line<'a>> + Clone, length: usize) -> Self {
        let mut sorted = Self::default();
        let (mut before, mut unseen) = (0, Unseen::default());
        // Index among the own lines of the first line of the current paragraph.
        let (mut paragraph, mut in_quote) = (0, false);
        while let Some((number, line)) = lines.next() {
            before += line.len();
            let line = line.trim();
            if line.is_empty() {
                paragraph = sorted.own.len();
                continue;
            }
            if let Some(quoted) = quoted(line) {
                if !in_quote {
                    sorted.leave_out_attribution(paragraph);
                }
                in_quote = true;
                sorted.quoted.push((number, quoted));
                continue;
            }
            if in_quote {
                paragraph = sorted.own.len();
                in_quote = false;
            }
            if let Some(length) = armour(line, lines.clone()) {
                lines.by_ref().take(length).for_each(|(_, line)| before += line.len());
                continue;
            }
            let line = sorted.leave_out_armour(number, line);
            let rest = length.saturating_sub(before);
            if rest <= FOOTER && is_rule(line) {
                // The text below a rule is the message if it is longer than all text above: a filled-in form, a ticket, a forwarded note. So is
                // that below a signature mark if it is too long for a name and an address.
                let is_most = !sorted.own.is_empty()
                    && (line != "--" || rest > SIGNATURE)
                    && rest > before.saturating_sub(unseen.above(&sorted));
                if !is_most {
                    sorted.footer.extend(lines.filter_map(full));
                    break;
                }
            }
            if (!sorted.own.is_empty() || line.len() > LEAVE)
                && is_small(rest, before, line)
                && leaves_list(line)
                && is_small(rest, before.saturating_sub(unseen.above(&sorted)), line)
            {
                sorted.footer.push((number, line));
                sorted.footer.extend(lines.filter_map(full));
                break;
            }
            if begins_answered(line, lines.clone()) || sorted.leave_out_bare_attribution(paragraph, line) {
                sorted.quoted.extend(without_fields(lines));
                break;
            }
            if !line.is_empty() {
                sorted.own.push((number, line));
            }
        }
        let own_end = sorted.own.len() - sign_off(&sorted.own);
        sorted.names = sorted.own.split_off(own_end);
        sorted
    }

    /// The text behind all armour within a line; the text before it is the author's own.
    fn leave_out_armour(&mut self, number: usize, mut line: &'a str) -> &'a str {
        while let Some((before, after)) = armour_within(line) {
            if !before.is_empty() {
                self.own.push((number, before));
            }
            line = after;
        }
        line
    }

    /// Drops a paragraph that ends with this line, if it names author and time of a message, which follows without marks: `On ..., Tim
    /// <tim@...> wrote:`, in any language.
    fn leave_out_bare_attribution(&mut self, paragraph: usize, line: &str) -> bool {
        let start = paragraph.min(self.own.len());
        if !line.ends_with(':') || self.own.len() - start >= ATTRIBUTION {
            return false;
        }
        let words = || {
            let lines = self.own[start..].iter().map(|(_, line)| *line).chain([line]);
            lines.flat_map(|line| line.split([' ', ',', '\u{A0}', '\u{202F}']))
        };
        let is_attribution = words().any(|word| word.contains('@')) && words().any(is_clock);
        if is_attribution {
            self.own.truncate(start);
        }
        is_attribution
    }

    /// Drops the attribution before a quote, a paragraph that ends with a colon: `On ... wrote:`.
    fn leave_out_attribution(&mut self, paragraph: usize) {
        let start = if paragraph < self.own.len() { paragraph } else { self.own.len().saturating_sub(1) };
        let lines = &self.own[start..];
        let names = lines.len() <= ATTRIBUTION
            && lines.last().is_some_and(|(_, line)| line.ends_with(':'))
            && lines.iter().any(|(_, line)| line.contains(|c: char| c.is_ascii_digit() || c == '@'));
        if names {
            self.own.truncate(start);
        }
    }
}

/// Counts the bytes of invisible characters, which make no text above a footer longer.
#[derive(Debug, Default)]
struct Unseen {
    own: usize,
    quoted: usize,
    bytes: usize,
}

impl Unseen {
    /// Those in the lines that were sorted so far. Each is looked at once.
    fn above(&mut self, sorted: &Lines<'_>) -> usize {
        let new = |lines: &[Line<'_>], from| {
            let lines = lines.iter().skip(from).filter(|(_, line)| !line.is_ascii());
            let invisible = |c: &char| is_blank(*c) && !c.is_whitespace();
            lines.flat_map(|(_, line)| line.chars().filter(invisible).map(char::len_utf8)).sum::<usize>()
        };
        self.bytes += new(&sorted.own, self.own) + new(&sorted.quoted, self.quoted);
        (self.own, self.quoted) = (sorted.own.len(), sorted.quoted.len());
        self.bytes
    }
}

/// Whether a line that explains how to leave a list and the `rest` below it are small enough for a footer, with `before` bytes up to the
/// line's end. At least two fifths of the text stand above a long line: below that much new text, it would not count as known anyway.
fn is_small(rest: usize, before: usize, line: &str) -> bool {
    let is_below =
        line.len() <= LEAVE || rest + line.len() <= FOOTER.min(3 * before.saturating_sub(line.len()) / 2);
    is_below && rest <= FOOTER.min(before / 2)
}

/// The own lines of a message that consists of these lines alone: its own, and if these are too few also its quoted ones, or else its
/// footer.
pub(super) fn unfold(mut lines: Vec<Line<'_>>) -> Vec<Line<'_>> {
    let mut own = Vec::new();
    for _ in 0..LEVELS {
        let length = lines.iter().map(|(_, line)| line.len()).sum();
        // A copy of this iterator is made for each line, so it borrows the lines.
        let whole = std::mem::take(&mut lines);
        let mut sorted = Lines::sort(whole.iter().copied(), length);
        own.append(&mut sorted.own);
        lines = if sorted.quoted.is_empty() { sorted.footer } else { sorted.quoted };
        if lines.is_empty() || !have_fewer(&own, TOO_FEW) {
            break;
        }
    }
    own
}

fn full((number, line): Line<'_>) -> Option<Line<'_>> {
    let line = line.trim();
    (!line.is_empty()).then_some((number, line))
}

fn words_of<'a>(lines: &[Line<'a>]) -> impl Iterator<Item = &'a str> {
    lines.iter().flat_map(|(_, line)| line.split_whitespace())
}

/// Whether lines have fewer words than this.
fn have_fewer(lines: &[Line<'_>], words: usize) -> bool {
    words_of(lines).take(words).count() < words
}

/// The lines of an answered message, without the header fields at its top. A longer line is text of a form: `Message: ...`.
fn without_fields<'a>(lines: impl Iterator<Item = Line<'a>>) -> impl Iterator<Item = Line<'a>> {
    let mut fields = 0;
    lines.filter_map(full).skip_while(move |(_, line)| {
        fields += 1;
        fields <= FIELDS && line.len() <= FIELD_LINE && is_field(line)
    })
}

/// The text behind the quote mark of a line: `> text`, `Tim> text`.
fn quoted(line: &str) -> Option<&str> {
    if is_group_wise(line) {
        return None;
    }
    let rest = line.trim_start_matches(char::is_alphanumeric);
    let rest = if line.len() - rest.len() <= QUOTED_BY { rest.strip_prefix('>') } else { None };
    rest.map(str::trim_start)
}

/// Whether a line separates a footer from the text: RFC 3676's `-- `, or a line mostly of dashes or the like.
fn is_rule(line: &str) -> bool {
    if line.len() < RULE {
        return line == "--";
    }
    let dashes = |b| {
        (b == b'-')
            | (b == b'_')
            | (b == b'=')
            | (b == b'*')
            | (b == b'~')
            | (b == b'#')
            | (b == b'<')
            | (b == b'>')
    };
    let (marks, blanks) = (count(line, dashes), count(line, |b| b == b' '));
    marks >= RULE && 2 * marks >= line.len() - blanks
}

/// Whether a line explains how to stop such mail, in the languages of much mail.
fn leaves_list(line: &str) -> bool {
    const ASCII: [&str; 6] =
        ["unsubscribe", "abbestellen", "abmelden", "darse de baja", "disiscriver", "uitschrijven"];
    /// Parts of the first three of the others, the last of which begins with the byte `CYRILLIC`.
    const PARTS: [&str; 3] = ["abonner", "inscrire", "cancelar"];
    const OTHERS: [&str; 4] = ["désabonner", "désinscrire", "cancelar a inscrição", "отписаться"];
    const CYRILLIC: u8 = 0xD0;
    // Built once: building costs more than searching.
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let kind = Some(AhoCorasickKind::DFA);
        let words = ASCII.iter().chain(&PARTS);
        AhoCorasick::builder().ascii_case_insensitive(true).kind(kind).build(words).ok()
    });
    let mut has_part = false;
    for word in WORDS.as_ref().into_iter().flat_map(|words| words.find_iter(line)) {
        if word.pattern().as_usize() < ASCII.len() {
            return true;
        }
        has_part = true;
    }
    // Few lines are lowercased, which takes long.
    let may_have_other = has_part || memchr::memchr(CYRILLIC, line.as_bytes()).is_some();
    may_have_other && !line.is_ascii() && {
        let line = line.to_lowercase();
        OTHERS.iter().any(|word| line.contains(word))
    }
}

/// Whether the answered or forwarded message begins with this line and continues in full below it.
fn begins_answered<'a>(line: &str, rest: impl Iterator<Item = Line<'a>>) -> bool {
    let mut rest = rest.filter_map(full);
    if is_group_wise(line) {
        return true;
    }
    if line.starts_with("---") {
        let bare = line.trim_matches(['-', ' ']).to_ascii_lowercase();
        let is_named = bare == "original message" || bare.starts_with("forwarded");
        // In other languages, the next line decides.
        return is_named
            || !bare.is_empty()
                && line.ends_with("---")
                && rest.next().is_some_and(|(_, next)| is_from(next));
    }
    // Outlook's form: some header fields of the other message.
    is_from(line) && rest.next().is_some_and(|(_, next)| is_field(next) && !next.ends_with(':'))
}

/// `12:30`, perhaps with seconds.
fn is_clock(word: &str) -> bool {
    word.split_once(':').is_some_and(|(hour, minute)| {
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        matches!(hour.len(), 1 | 2) && is_number(hour) && minute.get(..2).is_some_and(is_number)
    })
}

/// GroupWise's line above an answered message: `>>> Tim <tim@...> 05/05/26 12:30 >>>`.
fn is_group_wise(line: &str) -> bool {
    line.len() > 6 && line.starts_with(">>>") && line.ends_with(">>>")
}

/// The number of lines at the end that name the author: short ones, behind a longer one. If they have more words than a name and an address,
/// or than half of the lines above, they are text: a list, a form.
fn sign_off(lines: &[Line<'_>]) -> usize {
    let is_short = |(_, line): &&Line<'_>| line.split_whitespace().nth(SHORT).is_none();
    let run = lines.iter().rev().take_while(is_short).count();
    if run > SIGN_OFF || run == lines.len() {
        return 0;
    }
    let (above, names) = lines.split_at(lines.len() - run);
    let words = words_of(names).count();
    if words > NAMES || have_fewer(above, 2 * words) { 0 } else { run }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> String {
        Lines::of(text).own.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("|")
    }

    const LONG: &str = "This line has more words than those of a name.";

    #[test]
    fn quotes_are_not_own() {
        assert_eq!(own(&format!("{LONG}\n> no\nTim> no\n>> no\n")), LONG);
        assert_eq!(own(&format!("{LONG}\n-----Original Message-----\nno no no no no no no\n")), LONG);
        assert_eq!(own(&format!("{LONG}\nFrom: Tim\n\nSent: today\nno no no no no no no\n")), LONG);
        assert_eq!(own("a longer line with a > b in it\n"), "a longer line with a > b in it");
    }

    #[test]
    fn footers_are_not_own() {
        for rule in
            ["-- ", "_______________________________________________", "---------- Groups Sponsor ----------"]
        {
            assert_eq!(own(&format!("{LONG}\n{rule}\nno no no no no no no no\n")), LONG, "{rule}");
        }
        let text = format!("{LONG}\n{LONG}\n");
        assert_eq!(
            own(&format!("{text}To unsubscribe, write to\nno@example.org\n")),
            format!("{LONG}|{LONG}")
        );
        // A rule is no footer of itself.
        let one = format!("{}To unsubscribe, write to us.", format!("{LONG} ").repeat(5));
        assert_eq!(own(&one), one);
        assert_eq!(own(&format!("{LONG}\n{one}\n")), format!("{LONG}|{one}"));
        // A long text is no footer.
        let content = format!("{LONG}\n").repeat(50);
        assert_eq!(Lines::of(&format!("{LONG}\n-- \n{content}")).own.len(), 52);
    }

    /// A filled-in form, a forwarded note: it stands below a rule and is most of the message.
    #[test]
    fn most_of_a_message_is_no_footer() {
        let rule = "-".repeat(40);
        let filled = format!("Somebody wrote:\n{rule}\n{LONG}\n{LONG}\n");
        assert_eq!(Lines::of(&filled).own.len(), 4);
        let signed = format!("{LONG}\n{rule}\n{LONG}\n");
        assert_eq!(own(&signed), LONG, "no longer than what it stands below");
        let ticket = format!("A ticket was opened:\n{rule}\nMail: tim@tim.example\n{LONG}\n");
        assert_eq!(Lines::of(&ticket).own.len(), 4, "though it has an address");
        assert_eq!(own(&format!("Thanks!\n-- \n{LONG}\n")), "Thanks!");
        let advert = format!("{LONG}\n").repeat(11);
        assert_eq!(
            Lines::of(&format!("Read below!\n-- \n{advert}")).own.len(),
            13,
            "no signature is so long"
        );
        assert_eq!(Lines::of(&format!("{advert}{LONG}\n-- \n{advert}")).own.len(), 12, "a disclaimer is");
    }

    #[test]
    fn an_answered_message_begins_with_its_header_in_any_language() {
        let text = "no no no no no no no";
        for header in [
            "From: Tim\nSent: today\n",
            "Von: Tim\nGesendet: heute\n",
            "De : Tim\nEnvoyé : aujourd'hui\n",
            "*De:* Tim\n*Enviado:* hoy\n",
            "-----Oorspronkelijk bericht-----\nVan: Tim\nVerzonden: vandaag\n",
            "-----Ursprüngliche Nachricht-----\nVon: Tim\n",
            "보낸 사람: Tim\n날짜: 오늘\n",
            "寄件者：Tim\n日期：今天\n",
            "De la: Tim\nTrimis: azi\n",
            "On Tue, 5 May 2026 at 12:30, Tim <tim@tim.example>\nwrote:\n",
            "Le mar. 5 mai 2026 à 9:05, Tim <tim@tim.example> a écrit :\n",
            ">>> Tim <tim@tim.example> 05/05/26 12:30 >>>\n",
        ] {
            assert_eq!(own(&format!("{LONG}\n\n{header}\n{text}\n")), LONG, "{header}");
        }
        for text in [
            "De: la\nand so on it goes with more words",
            "From: here to there\nwe went:\nfar away, all of us",
            "\nWrite to tim@tim.example on 5 May:\nhe knows it",
            "\nBy 12:30 it is:\nall of us at the lake",
        ] {
            assert_eq!(Lines::of(&format!("{LONG}\n{text}\n")).quoted.len(), 0, "{text}");
        }
    }

    #[test]
    fn names_of_authors_are_not_own() {
        let letter = format!("{LONG}\n{LONG}\n");
        assert_eq!(
            own(&format!("{letter}Regards\n\nTim Tester\nPhone 555 1234\n")),
            format!("{LONG}|{LONG}")
        );
        // If all lines are short, they are a text of short lines.
        assert_eq!(own("Buy now\nCheap pills\nClick here\n"), "Buy now|Cheap pills|Click here");
        assert_eq!(Lines::of(&format!("{LONG}\n{}", "item\n".repeat(11))).own.len(), 12);
        let list = "two of an item\n".repeat(5);
        assert_eq!(Lines::of(&format!("{letter}{list}")).own.len(), 7, "a list below sentences");
        let letter = letter.repeat(3);
        assert_eq!(Lines::of(&format!("{letter}{list}")).own.len(), 6, "an address below a letter");
        assert_eq!(
            Lines::of(&format!("{letter}{letter}{list}{list}")).own.len(),
            22,
            "no address has 40 words"
        );
    }

    #[test]
    fn numbers_are_those_of_the_text() {
        assert_eq!(Lines::of("> no\n\n  yes\nyes").own.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [3, 4]);
    }
}
