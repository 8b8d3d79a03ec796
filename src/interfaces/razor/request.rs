// SPDX-License-Identifier: GPL-3.0-or-later
//! A request line of Razor's protocol: `key=value`, joined by `&`, with bytes escaped as in URIs.

use bulkmark_types::Foreign;
use std::borrow::Cow;

/// The most bytes of a written signature, and of the seeds and separator beside one of engine 4.
const LONGEST_SIGNATURE: usize = 64;
const LONGEST_SEEDS: usize = 31;

/// The most bytes of a user's name or password: clients use no longer password to authenticate.
pub(super) const LONGEST_NAME: usize = 64;

/// The seeds and separator that clients must use with engine 4.
pub(super) const SEEDS: &str = "7542-10";

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// User reports of a signature.
    Check(Digest),
    /// A report as spam.
    Report(Digest),
    /// A report as not spam.
    Revoke(Digest),
    /// A report with the mail itself, which was not kept.
    Mail,
    /// The server's state: engines, bounds of batches.
    State,
    /// The servers for checks.
    Catalogues,
    /// The servers for reports.
    Nominations,
    /// A new account; a missing name or password is random.
    Register {
        /// Its name.
        user: Option<String>,
        /// Its password.
        password: Option<String>,
    },
    /// The user's name.
    Identify(String),
    /// The answer to the challenge.
    Prove(String),
    /// The name of the client program, without an answer.
    Introduction,
    /// The end of the session.
    Quit,
    /// An invalid or unknown request.
    Unknown,
}

/// A signature as its client made it, with all its parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    engine: Foreign,
    length: u8,
    bytes: [u8; LONGEST_SEEDS + 1 + LONGEST_SIGNATURE],
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}", self.engine, String::from_utf8_lossy(self.content()))
    }
}

impl Digest {
    /// The engine that made it.
    #[must_use]
    pub const fn engine(&self) -> Foreign {
        self.engine
    }

    /// The counted bytes: `SEEDS:SIGNATURE` for engine 4, else the signature.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    fn new(engine: &str, seeds: Option<&str>, signature: &str) -> Option<Self> {
        let is_letter = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let is_good = (1..=LONGEST_SIGNATURE).contains(&signature.len()) && signature.bytes().all(is_letter);
        // A revocation has no seeds: they are those of the greeting.
        let seeds = seeds.unwrap_or(SEEDS);
        let is_seed = |b: u8| b.is_ascii_digit() || b == b'-';
        let are_good = (1..=LONGEST_SEEDS).contains(&seeds.len()) && seeds.bytes().all(is_seed);
        let (engine, parts) = match engine {
            "4" if are_good => (Foreign::Razor4, [seeds, ":", signature]),
            "8" => (Foreign::Razor8, ["", "", signature]),
            _ => return None,
        };
        let mut digest = Self { engine, length: 0, bytes: [0; _] };
        for byte in parts.into_iter().flat_map(str::bytes).filter(|_| is_good) {
            *digest.bytes.get_mut(usize::from(digest.length))? = byte;
            digest.length += 1;
        }
        is_good.then_some(digest)
    }
}

/// The relevant values of one line.
#[derive(Default)]
struct Fields<'a> {
    action: Cow<'a, str>,
    engine: Cow<'a, str>,
    seeds: Option<Cow<'a, str>>,
    signature: Cow<'a, str>,
    parameter: Cow<'a, str>,
    user: Option<Cow<'a, str>>,
    password: Option<Cow<'a, str>>,
    proof: Cow<'a, str>,
    has_message: bool,
    has_client: bool,
}

impl<'a> Fields<'a> {
    fn set(&mut self, key: &str, value: Cow<'a, str>) {
        match key {
            "a" => self.action = value,
            "e" => self.engine = value,
            "ep4" => self.seeds = Some(value),
            "s" => self.signature = value,
            "pm" => self.parameter = value,
            "user" => self.user = Some(value),
            "pass" => self.password = Some(value),
            "aresp" => self.proof = value,
            "message" => self.has_message = true,
            "cn" => self.has_client = true,
            _ => (),
        }
    }

    fn into_request(self) -> Request {
        let digest = || Digest::new(&self.engine, self.seeds.as_deref(), &self.signature);
        let about = |make: fn(Digest) -> Request| digest().map_or(Request::Unknown, make);
        let text = |value: Option<Cow<'_, str>>| value.map(Cow::into_owned).filter(|value| !value.is_empty());
        match &*self.action {
            "c" => about(Request::Check),
            "r" | "revoke" if self.has_message => Request::Mail,
            "r" => about(Request::Report),
            "revoke" => about(Request::Revoke),
            "g" => match &*self.parameter {
                "state" => Request::State,
                "csl" => Request::Catalogues,
                "nsl" => Request::Nominations,
                _ => Request::Unknown,
            },
            "reg" => Request::Register { user: text(self.user), password: text(self.password) },
            "ai" => Request::Identify(text(self.user).unwrap_or_default()),
            "auth" => Request::Prove(self.proof.into_owned()),
            "q" => Request::Quit,
            "" if self.has_client => Request::Introduction,
            _ => Request::Unknown,
        }
    }
}

/// Reads a line. In a batch, `values` has the values for each `?` of the first line, separated by commas.
pub(super) fn request(line: &str, values: Option<&str>) -> Request {
    let mut fields = Fields::default();
    let mut values = values.map(|values| values.split(','));
    for pair in line.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = match (value, &mut values) {
            ("?", Some(values)) => values.next().unwrap_or_default(),
            _ => value,
        };
        match unescaped(value) {
            Some(value) => fields.set(key, value),
            None => return Request::Unknown,
        }
    }
    fields.into_request()
}

/// A value without escapes; `None` if it is no text.
fn unescaped(value: &str) -> Option<Cow<'_, str>> {
    if !value.contains('%') {
        return Some(Cow::Borrowed(value));
    }
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let (bytes, mut text, mut at) = (value.as_bytes(), Vec::with_capacity(value.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let escaped =
            if byte == b'%' { digit(bytes.get(at + 1)).zip(digit(bytes.get(at + 2))) } else { None };
        at += if escaped.is_some() { 3 } else { 1 };
        text.push(escaped.and_then(|(high, low)| u8::try_from(16 * high + low).ok()).unwrap_or(byte));
    }
    String::from_utf8(text).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(line: &str) -> (Foreign, String) {
        let Request::Check(digest) = request(line, None) else { panic!("{line}") };
        (digest.engine(), String::from_utf8_lossy(digest.content()).into_owned())
    }

    /// The lines that razor-agents 2.85 send.
    #[test]
    fn requests_of_known_clients_are_understood() {
        let engine_4 = digest("a=c&e=4&ep4=7542-10&s=I8JUBSeSnyqVeXe-VShaj-vrCFMA");
        assert_eq!(engine_4, (Foreign::Razor4, "7542-10:I8JUBSeSnyqVeXe-VShaj-vrCFMA".to_owned()));
        assert_eq!(digest("a=c&e=8&s=A1X0JdhQUlMA"), (Foreign::Razor8, "A1X0JdhQUlMA".to_owned()));
        let Request::Revoke(revoked) = request("a=revoke&e=4&s=x", None) else { panic!() };
        assert_eq!(revoked.content(), b"7542-10:x", "missing seeds are the usual ones");
        assert_eq!(request("cn=razor-agents&cv=2.84", None), Request::Introduction);
        assert_eq!(request("a=r&message=*", None), Request::Mail);
        let of = |user: &str, password: &str| Request::Register {
            user: Some(user.to_owned()),
            password: Some(password.to_owned()),
        };
        assert_eq!(
            request("a=reg&pass=a%26b&registrar=x&user=anna%40box.test", None),
            of("anna@box.test", "a&b")
        );
        assert_eq!(request("a=c&e=?&s=?", Some("8,abc")), request("a=c&e=8&s=abc", None));
    }

    #[test]
    fn invalid_requests_are_unknown() {
        let long = "x".repeat(65);
        let bad = [
            "",
            "a",
            "a=c",
            "a=c&e=4",
            "a=c&e=9&s=x",
            "a=c&e=8&s=%ff",
            "a=c&e=8&s=a+b",
            "a=g&pm=x",
            "\u{e9}=&&==",
        ];
        for line in
            bad.into_iter().chain([&*format!("a=c&e=8&s={long}"), &*format!("a=c&e=4&ep4={long}&s=x")])
        {
            assert_eq!(request(line, None), Request::Unknown, "{line}");
        }
        assert_eq!(request("a=ai&user=%4", None), Request::Identify("%4".to_owned()));
    }
}
