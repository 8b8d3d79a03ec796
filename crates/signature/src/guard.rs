// SPDX-License-Identifier: GPL-3.0-or-later
//! The low-information guard: whether a message has enough distinct words.

use super::near::{FOOTER, SIGNATURE};
use super::text::is_unspaced;
use bulkmark_types::LowInformation;
use std::collections::HashSet;

/// Counts distinct words up to the required number.
pub(super) struct Guard {
    wanted: usize,
    words: HashSet<String>,
    attachment: bool,
}

impl Guard {
    pub(super) fn new(wanted: usize) -> Self {
        Self { wanted, words: HashSet::new(), attachment: false }
    }

    /// Reads plain text up to a signature delimiter ("-- ", RFC 3676): the lines below it only name the author, unless they are more than
    /// a [footer](FOOTER), or more than a [signature](SIGNATURE) and than the text above.
    pub(super) fn text(&mut self, text: &str) {
        if self.is_satisfied() {
            return;
        }
        let mut rest = text;
        while let Some(line) = rest.split_inclusive('\n').next() {
            rest = &rest[line.len()..];
            let is_mark = matches!(line.trim_end_matches(['\r', '\n']), "-- " | "--");
            if is_mark && rest.len() <= FOOTER && (rest.len() <= SIGNATURE || rest.len() <= text.len() / 2) {
                return;
            }
            self.visible(line);
            if self.is_satisfied() {
                return;
            }
        }
    }

    /// Reads any other text. Words are runs of letters and digits, without case. A URL is one word; a mail address is none, since it only
    /// names somebody. In scripts without spaces each character is a word.
    pub(super) fn visible(&mut self, text: &str) {
        for token in text.split_whitespace() {
            if self.is_satisfied() {
                return;
            }
            if token.contains("://") || token.starts_with("www.") {
                self.target(token);
            } else if !is_address(token) {
                self.words_of(token);
            }
        }
    }

    fn words_of(&mut self, token: &str) {
        let mut word = String::new();
        for c in token.chars() {
            let alone = is_unspaced(c);
            if c.is_alphanumeric() && !alone {
                word.extend(c.to_lowercase());
                continue;
            }
            self.word(&mut word);
            if alone {
                word.push(c);
                self.word(&mut word);
            }
        }
        self.word(&mut word);
    }

    fn word(&mut self, word: &mut String) {
        if !word.is_empty() {
            self.words.insert(std::mem::take(word));
        }
    }

    /// Reads the target of a link, which counts as one word.
    pub(super) fn target(&mut self, target: &str) {
        if !self.is_satisfied() && !is_address(target) {
            self.words.insert(target.to_owned());
        }
    }

    /// Reads an attachment, which is enough information unless it is empty.
    pub(super) fn attachment(&mut self, bytes: &[u8]) {
        self.attachment |= !bytes.is_empty();
    }

    fn is_satisfied(&self) -> bool {
        self.attachment || self.words.len() >= self.wanted
    }

    pub(super) fn verdict(&self) -> Result<(), LowInformation> {
        if self.is_satisfied() {
            Ok(())
        } else {
            Err(LowInformation { words: self.words.len(), wanted: self.wanted })
        }
    }
}

/// Whether a token is a mail address.
fn is_address(token: &str) -> bool {
    !token.contains("://") && token.rsplit_once('@').is_some_and(|(_, domain)| domain.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> usize {
        let mut guard = Guard::new(100);
        guard.text(text);
        guard.words.len()
    }

    #[test]
    fn distinct_words() {
        assert_eq!(words(""), 0);
        assert_eq!(words("Thanks,\r\n\r\nthanks -- THANKS!"), 1);
        assert_eq!(words("Sent from my Samsung Galaxy smartphone"), 6);
        assert_eq!(words("谢谢您的帮助"), 5);
        assert_eq!(
            words("see http://www.example.org/a/long/path-of-many?words=here or www.example.net/x"),
            4
        );
        assert_eq!(words("Looks good: Tim Tester <tim.tester@mail.example.org>, mailto:tim@example.org"), 4);
        assert_eq!(words("https://example.org/@tim.tester tim@home"), 3);
        assert_eq!(words("one two\n-- \nJohn Smith, Sales Manager"), 2);
        let advert = (0..100).map(|n| format!("offer{n} ")).collect::<String>();
        assert_eq!(words(&format!("one two\n-- \n{advert}")), 100, "no signature is so long");
        assert_eq!(words(&format!("{}\n-- \n{advert}", "one two ".repeat(120))), 2, "a disclaimer");
        let long = (0..400).map(|n| format!("w{n} ")).collect::<String>();
        assert_eq!(words(&format!("one two\n-- \n{long}\n-- \nJohn")), 100, "no author has such a name");
    }
}
