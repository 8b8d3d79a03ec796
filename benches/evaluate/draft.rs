// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages of generators: a header, and parts.

use crate::client;
use crate::stream::Message;
use crate::text::{Language, Person, Writer, reworded, wrapped};
use bulkmark_samples::encode::base64_lines;
use std::fmt::Write as _;
use std::io;
use std::ops::Range;
use std::path::Path;

/// A part of a message, which knows its header.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Plain(String),
    Html(String),
    /// With its own header and an empty line, unchanged.
    Raw(String),
    /// The subtype, and the parts.
    Multipart(&'static str, Vec<Self>),
}

impl Part {
    /// Text, and the same as a page.
    pub(crate) fn both(plain: String, html: String) -> Self {
        Self::Multipart("alternative", vec![Self::Plain(plain), Self::Html(html)])
    }

    /// The part with its header. A boundary must not occur in other parts, so it contains the depth.
    pub(crate) fn write(&self, boundary: &str) -> String {
        let text = |kind: &str, text: &str| {
            let encoding = if text.is_ascii() { "7bit" } else { "8bit" };
            format!(
                "Content-Type: text/{kind}; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n{}\n",
                text.trim_end_matches('\n')
            )
        };
        match self {
            Self::Plain(plain) => text("plain", plain),
            Self::Html(html) => text("html", html),
            Self::Raw(raw) => raw.clone(),
            Self::Multipart(kind, parts) => {
                let mut out = format!("Content-Type: multipart/{kind}; boundary=\"{boundary}\"\n\n");
                for (number, part) in parts.iter().enumerate() {
                    let _ = write!(out, "--{boundary}\n{}\n", part.write(&format!("{boundary}.{number}")));
                }
                out + &format!("--{boundary}--\n")
            }
        }
    }
}

/// A message without its parts.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) w: Writer,
    /// Its number within its kind.
    pub(crate) number: usize,
    /// The number of its kind: kinds share no blocks.
    pub(crate) kind: u64,
    pub(crate) from: Person,
    /// The domain of its author's address.
    pub(crate) domain: String,
    pub(crate) to: Person,
    pub(crate) subject: String,
    pub(crate) date: String,
    /// Further fields, with their line ends.
    pub(crate) fields: String,
}

impl Draft {
    pub(crate) fn new(language: &'static Language, seed: &[u64], number: usize, domain: String) -> Self {
        let mut w = Writer::new(language, &[seed, &[number as u64]].concat());
        let (from, to, subject) = (w.person(), w.person(), w.topic());
        let date = w.date();
        let kind = seed.first().copied().unwrap_or_default();
        Self { w, number, kind, from, domain, to, subject, date, fields: String::new() }
    }

    pub(crate) fn address(&self) -> String {
        format!("{}@{}", self.from.local(), self.domain)
    }

    /// Breaks lines if this writer's mailer does.
    pub(crate) fn flowed(&mut self, text: &str) -> String {
        if self.w.percent(50) { wrapped(text, 72) } else { text.to_owned() }
    }

    /// A greeting, so many paragraphs, and a name below.
    pub(crate) fn letter(&mut self, paragraphs: Range<usize>) -> String {
        let text = self.w.paragraphs(paragraphs);
        self.signed(&text)
    }

    /// The same from another person to this author, before the answer or forward.
    pub(crate) fn letter_to_author(&mut self, author: &Person, paragraphs: Range<usize>) -> String {
        let (from, to) = (self.from.clone(), self.to.clone());
        (self.from, self.to) = (author.clone(), from.clone());
        let letter = self.letter(paragraphs);
        (self.from, self.to) = (from, to);
        letter
    }

    /// A greeting, one to three sentences, and a name below.
    pub(crate) fn note(&mut self) -> String {
        let text = self.w.paragraph(1..4);
        self.signed(&text)
    }

    fn signed(&mut self, text: &str) -> String {
        let (greeting, closing) = (self.w.greeting(&self.to), self.w.closing());
        let name = if self.w.percent(40) { self.from.first.to_owned() } else { self.from.name() };
        let text = self.flowed(text);
        format!("{greeting}\n\n{text}\n\n{closing}\n{name}\n")
    }

    /// The disclaimer of this kind's company: the usual text of its language, with a third of the words replaced.
    pub(crate) fn disclaimer(&self) -> String {
        reworded(self.w.language, self.w.language.disclaimer, 33, &[7003, self.kind])
    }

    /// The line above a quote of a person.
    pub(crate) fn wrote(&mut self, author: &Person) -> String {
        self.w.language.wrote.replace("{d}", &self.w.date()).replace("{n}", &author.name())
    }

    /// The block above a quote without marks.
    pub(crate) fn original(&mut self, author: &Person, to: &Person, subject: &str) -> String {
        let block = self.w.language.original.replace("{d}", &self.w.date());
        block.replace("{n}", &author.name()).replace("{t}", &to.name()).replace("{s}", subject)
    }

    /// The whole message.
    pub(crate) fn message(&mut self, part: &Part) -> Vec<u8> {
        let (id, boundary) = (self.w.token(14), format!("=_{}", self.w.token(20)));
        let hour = self.w.clock();
        let day = self.w.within(1..29);
        let body = part.write(&boundary);
        format!(
            "From: {} <{}>\nTo: {} <{}@example.org>\nSubject: {}\nDate: {day} Mar 2026 {hour}:00 +0000\n\
             Message-ID: <{id}@{}>\nMIME-Version: 1.0\n{}{body}",
            encoded(&self.from.name()),
            self.address(),
            encoded(&self.to.name()),
            self.to.local(),
            encoded(&self.subject),
            self.domain,
            self.fields,
        )
        .into_bytes()
    }
}

/// The text for a header field: unchanged, or as encoded words.
fn encoded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    // A word has at most 75 bytes and contains only whole characters: 15 of them have at most 60 bytes.
    let letters: Vec<char> = text.chars().collect();
    let word = |letters: &[char]| {
        let bytes = letters.iter().collect::<String>().into_bytes();
        format!("=?utf-8?B?{}?=", base64_lines(&bytes, 76).trim_end())
    };
    letters.chunks(12).map(word).collect::<Vec<_>>().join("\n ")
}

/// A generated message, and the network of its client.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) raw: Vec<u8>,
    pub(crate) from: client::From,
}

impl Made {
    pub(crate) fn into_message(self) -> Message {
        Message::made(self.raw).from(self.from)
    }
}

/// Writes messages as `NAME/NN.eml`, and the network and the class of each to `origins.tsv` beside them.
pub(crate) fn write_examples<'a>(
    directory: &Path,
    groups: impl Iterator<Item = (String, &'static str, &'a [Made])>,
) -> io::Result<()> {
    let mut origins = "file\tnetwork\tclass\n".to_owned();
    for (name, class, messages) in groups {
        std::fs::create_dir_all(directory.join(&name))?;
        for (number, message) in messages.iter().enumerate() {
            let file = format!("{name}/{number:02}.eml");
            std::fs::write(directory.join(&file), &message.raw)?;
            let _ = writeln!(origins, "{file}\t{}\t{class}", message.from.address(&message.raw));
        }
    }
    std::fs::write(directory.join("origins.tsv"), origins)
}
