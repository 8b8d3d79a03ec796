// SPDX-License-Identifier: GPL-3.0-or-later
//! From bytes to requests: a line, or a batch that begins with `-` and ends with a line `.`.

use super::request::{Request, request};

/// The most bytes of a line. The lists of a batch have their own lines, so this is enough.
const LONGEST_LINE: usize = 1024;

/// The most requests of a batch, and the most bytes of their lines, since they are kept until its end.
const LARGEST_BATCH: usize = 1024;
const LONGEST_BATCH: usize = 128 << 10;

/// The most bytes of a mail that comes with a report without being asked for. It is not kept.
const LARGEST_MAIL: usize = 1 << 20;

/// The requests that are answered at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A line.
    One(Request),
    /// A batch.
    Batch(Vec<Request>),
}

/// The reason why nothing more can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// A line is too long.
    #[error("a line is longer than {LONGEST_LINE} bytes")]
    LongLine,
    /// A batch is too large.
    #[error("a batch has more than {LARGEST_BATCH} lines, or {LONGEST_BATCH} bytes")]
    LargeBatch,
    /// A mail is too large.
    #[error("a mail that came with a report is longer than {LARGEST_MAIL} bytes")]
    LargeMail,
}

/// The context of a line.
#[derive(Debug, Default)]
enum Inside {
    /// Nothing.
    #[default]
    Nothing,
    /// A batch, whose requests are lines.
    Batch(Vec<Request>),
    /// A batch whose lines have the values that the first line left open.
    Template(String, Vec<Request>),
    /// A mail, with the number of its bytes so far.
    Mail(usize),
}

/// The incoming lines.
#[derive(Debug, Default)]
pub struct Lines {
    /// The beginning of a line.
    line: Vec<u8>,
    inside: Inside,
    /// The bytes of this batch so far.
    batch: usize,
}

impl Lines {
    /// Takes bytes, and adds their requests to `asked`.
    ///
    /// # Errors
    /// [`Bad`]; earlier requests are in `asked`.
    pub fn take(&mut self, bytes: &[u8], asked: &mut Vec<Asked>) -> Result<(), Bad> {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (head, tail) = rest.split_at(end);
            rest = tail.get(1..).unwrap_or_default();
            if self.line.is_empty() {
                self.end_line(head, asked)?;
            } else {
                self.add(head)?;
                let mut line = std::mem::take(&mut self.line);
                self.end_line(&line, asked)?;
                line.clear();
                self.line = line;
            }
        }
        self.add(rest)
    }

    /// Whether something is incomplete.
    #[must_use]
    pub const fn is_amid(&self) -> bool {
        !self.line.is_empty() || !matches!(self.inside, Inside::Nothing)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Bad> {
        let room = (LONGEST_LINE + 1).saturating_sub(self.line.len());
        if bytes.len() > room && !matches!(self.inside, Inside::Mail(_)) {
            return Err(Bad::LongLine);
        }
        if let Inside::Mail(size) = &mut self.inside {
            *size += bytes.len().saturating_sub(room);
            if *size > LARGEST_MAIL {
                return Err(Bad::LargeMail);
            }
        }
        // The beginning of a mail's long line shows that it is not the end.
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(())
    }

    fn end_line(&mut self, line: &[u8], asked: &mut Vec<Asked>) -> Result<(), Bad> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LONGEST_LINE && !matches!(self.inside, Inside::Mail(_)) {
            return Err(Bad::LongLine);
        }
        let text = String::from_utf8_lossy(line);
        self.batch += line.len();
        let is_long = self.batch > LONGEST_BATCH;
        match &mut self.inside {
            Inside::Nothing => self.begin(&text, asked),
            Inside::Batch(requests) | Inside::Template(_, requests) if line == b"." => {
                let requests = std::mem::take(requests);
                // A template without values has no requests, and clients cannot read an answer without a line.
                let is_empty = requests.is_empty();
                asked.push(if is_empty { Asked::One(Request::Unknown) } else { Asked::Batch(requests) });
                self.inside = Inside::Nothing;
            }
            Inside::Mail(_) if line == b"." => {
                asked.push(Asked::One(Request::Mail));
                self.inside = Inside::Nothing;
            }
            Inside::Batch(requests) | Inside::Template(_, requests)
                if is_long || requests.len() >= LARGEST_BATCH =>
            {
                return Err(Bad::LargeBatch);
            }
            Inside::Batch(requests) => requests.push(request(&text, None)),
            Inside::Template(template, requests) => {
                // Each request may have a copy of it.
                self.batch += template.len();
                requests.push(request(template, Some(&text)));
            }
            Inside::Mail(size) => {
                *size += line.len() + 2;
                if *size > LARGEST_MAIL {
                    return Err(Bad::LargeMail);
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, text: &str, asked: &mut Vec<Asked>) {
        let Some(first) = text.strip_prefix('-') else {
            // An empty line is no request.
            if !text.is_empty() {
                asked.push(Asked::One(request(text, None)));
            }
            return;
        };
        self.batch = first.len();
        let has = |what: &str| {
            first.split('&').any(|pair| pair.split_once('=').is_some_and(|(_, value)| value == what))
        };
        self.inside = if has("*") {
            Inside::Mail(0)
        } else if has("?") {
            Inside::Template(first.to_owned(), Vec::new())
        } else {
            Inside::Batch(vec![request(first, None)])
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests in these bytes, in chunks of several sizes.
    fn read(bytes: &[u8]) -> (Vec<Asked>, Result<bool, Bad>) {
        let of = |size: usize| {
            let (mut lines, mut asked) = (Lines::default(), Vec::new());
            let result = bytes.chunks(size).try_for_each(|chunk| lines.take(chunk, &mut asked));
            (asked, result.map(|()| lines.is_amid()))
        };
        let whole = of(bytes.len().max(1));
        assert!([1, 2, 3, 100].into_iter().all(|size| of(size) == whole));
        whole
    }

    #[test]
    fn lines_and_batches() {
        let check = |signature: &str| request(&format!("a=c&e=8&s={signature}"), None);
        let (asked, amid) =
            read(b"a=q\r\n\r\n-a=c&e=8&s=x\r\na=c&e=8&s=y\r\n.\r\n-a=c&e=8&s=?\nx\ny\n.\na=c");
        let both = Asked::Batch(vec![check("x"), check("y")]);
        assert_eq!(asked, [Asked::One(Request::Quit), both.clone(), both]);
        assert_eq!(amid, Ok(true));
        assert_eq!(read(b"a=q\n").1, Ok(false));
        assert_eq!(read(b"-a=c&e=8&s=?\n.\n").0, [Asked::One(Request::Unknown)]);
    }

    /// A mail is skipped, including lines that are longer than any other.
    #[test]
    fn a_mail_is_not_kept() {
        let mail = format!("-a=r&message=*\r\nA: b\r\n\r\n{}\r\n..\r\n.\r\na=q\r\n", "x".repeat(5000));
        assert_eq!(
            read(mail.as_bytes()),
            (vec![Asked::One(Request::Mail), Asked::One(Request::Quit)], Ok(false))
        );
    }

    #[test]
    fn all_is_bounded() {
        let long = "x".repeat(LONGEST_LINE + 1);
        assert_eq!(read(long.as_bytes()).1, Ok(true), "a carriage return may be its last");
        assert_eq!(read(format!("{long}x").as_bytes()).1, Err(Bad::LongLine));
        assert_eq!(read(format!("{long}\n").as_bytes()).1, Err(Bad::LongLine));
        let batch = format!("-a=c&e=8&s=?\n{}", "x\n".repeat(LARGEST_BATCH));
        assert_eq!(read(batch.as_bytes()).1, Ok(true));
        assert_eq!(read(format!("{batch}x\n").as_bytes()).1, Err(Bad::LargeBatch));
        let name = "x".repeat(1000);
        for (first, line) in
            [("-a=q", &*format!("a=ai&user={name}")), (&*format!("-a=ai&user={name}&s=?"), "y")]
        {
            let batch = |lines: usize| format!("{first}\n{}", format!("{line}\n").repeat(lines));
            assert_eq!(read(batch(100).as_bytes()).1, Ok(true));
            assert_eq!(read(batch(200).as_bytes()).1, Err(Bad::LargeBatch), "their names are kept");
        }
        let of_mail =
            |line: &str| format!("-a=r&message=*\n{}", line.repeat((LARGEST_MAIL + 2000) / line.len()));
        let take = |bytes: &str| Lines::default().take(bytes.as_bytes(), &mut Vec::new());
        assert_eq!(take(&of_mail("xxxxxxx\n")), Err(Bad::LargeMail));
        assert_eq!(take(&of_mail("x")), Err(Bad::LargeMail));
    }
}
