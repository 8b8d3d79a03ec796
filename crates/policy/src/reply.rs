// SPDX-License-Identifier: GPL-3.0-or-later
//! The SMTP replies that refuse a message.

use serde::Deserialize;

/// The longest text of a reply: an SMTP line of 512 bytes less codes and line end (RFC 5321, 4.5.3.1.5), with room for expanded fields.
const MAX_TEXT: usize = 300;

/// `actions.reject-reply`, of class 5, and `actions.tempfail-reply`, of class 4: as an MTA writes it, `550 5.7.1 text`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct RefusalReply<const CLASS: u8> {
    /// An SMTP code of 500 to 559, or of 400 to 459.
    pub code: String,
    /// An enhanced status code (RFC 3463) of the same class.
    pub status: String,
    /// The text after the codes.
    pub text: Text,
}

impl<const CLASS: u8> RefusalReply<CLASS> {
    fn new(code: &str, status: &str, text: &str) -> Self {
        Self { code: code.to_owned(), status: status.to_owned(), text: Text(text.to_owned()) }
    }
}

impl Default for RefusalReply<5> {
    fn default() -> Self {
        Self::new("550", "5.7.1", "{reason} refused (id {id})")
    }
}

impl Default for RefusalReply<4> {
    fn default() -> Self {
        Self::new("451", "4.7.1", "{reason}, try again later (id {id})")
    }
}

impl<const CLASS: u8> TryFrom<String> for RefusalReply<CLASS> {
    type Error = String;

    fn try_from(reply: String) -> Result<Self, String> {
        let mut fields = reply.splitn(3, ' ');
        let (code, status, text) = (
            fields.next().unwrap_or_default(),
            fields.next().unwrap_or_default(),
            fields.next().unwrap_or_default(),
        );
        let digits = code.bytes().all(|b| b.is_ascii_digit()).then(|| code.parse().ok()).flatten();
        let first = u16::from(CLASS) * 100;
        if !digits.is_some_and(|code: u16| (first..first + 60).contains(&code)) {
            return Err(format!(
                "found \"{code}\", expected a code of {first} to {} first, as in \"{CLASS}50 {CLASS}.7.1 text\"",
                first + 59
            ));
        }
        if !is_status(status, CLASS) {
            return Err(format!(
                "found \"{status}\", expected an enhanced status code such as \"{CLASS}.7.1\" behind the code"
            ));
        }
        Ok(Self { code: code.to_owned(), status: status.to_owned(), text: text.to_owned().try_into()? })
    }
}

/// Whether it is an enhanced status code of the class, `class.subject.detail`.
fn is_status(status: &str, class: u8) -> bool {
    let number = |s: &str| {
        matches!(s.len(), 1..=3) && s.bytes().all(|b| b.is_ascii_digit()) && (s == "0" || !s.starts_with('0'))
    };
    let mut fields = status.split('.');
    fields.next() == Some(&class.to_string())
        && fields.next().is_some_and(number)
        && fields.next().is_some_and(number)
        && fields.next().is_none()
}

/// The text of a reply, with fields in braces.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Text(String);

/// The values of the fields.
#[derive(Debug, Clone, Copy)]
pub struct ReplyFields<'a> {
    /// `{count}`
    pub count: u32,
    /// `{threshold}`
    pub threshold: u32,
    /// `{id}`, the MTA's queue id.
    pub id: &'a str,
    /// `{host}`, this mail server.
    pub host: &'a str,
    /// `{signature}`
    pub signature: &'a str,
    /// `{reason}`: the kind of mail that is refused.
    pub reason: &'a str,
}

impl ReplyFields<'_> {
    fn get(&self, name: &str) -> Option<String> {
        Some(match name {
            "count" => self.count.to_string(),
            "threshold" => self.threshold.to_string(),
            "id" => self.id.to_owned(),
            "host" => self.host.to_owned(),
            "signature" => self.signature.to_owned(),
            "reason" => self.reason.to_owned(),
            _ => return None,
        })
    }
}

impl Text {
    /// The text with its fields filled in.
    #[must_use]
    pub fn fill(&self, fields: &ReplyFields<'_>) -> String {
        self.expand(fields).unwrap_or_else(|_| self.0.clone())
    }

    /// Fills in the fields. The error is the name of the first unknown one.
    fn expand(&self, fields: &ReplyFields<'_>) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = &*self.0;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(|| after.to_owned())?;
            filled.push_str(before);
            filled.push_str(&fields.get(name).ok_or_else(|| name.to_owned())?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() || text.len() > MAX_TEXT {
            return Err(format!("found a text of {} bytes, expected 1 to {MAX_TEXT}", text.len()));
        }
        // Sendmail reads % as the beginning of a format and drops the text.
        if let Some(bad) = text.chars().find(|c| !matches!(c, ' '..='~') || *c == '%') {
            return Err(format!("found {bad:?}, expected printable ASCII without %"));
        }
        let text = Self(text);
        let probe = ReplyFields { count: 0, threshold: 0, id: "", host: "", signature: "", reason: "" };
        if let Err(name) = text.expand(&probe) {
            return Err(format!(
                "found the field {{{name}}}, expected {{count}}, {{threshold}}, {{id}}, {{host}}, {{signature}} or {{reason}}"
            ));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_status_keep_their_class() {
        let reply = RefusalReply::<5>::try_from("554 5.7.99 no bulk, please".to_owned()).unwrap();
        assert_eq!((&*reply.code, &*reply.status, &*reply.text.0), ("554", "5.7.99", "no bulk, please"));
        assert!(RefusalReply::<4>::try_from("421 4.7.1 later".to_owned()).is_ok());
        for bad in ["450", "560", "600", "-1", "55", "+50", "", "bulk"] {
            assert!(RefusalReply::<5>::try_from(format!("{bad} 5.7.1 text")).is_err(), "{bad}");
        }
        for bad in ["4.7.1", "5.7", "5.7.1.2", "5.07.1", "5.7.x", "5..1", "5.7.1000", "", "text"] {
            assert!(RefusalReply::<5>::try_from(format!("550 {bad} text")).is_err(), "{bad}");
        }
        assert!(RefusalReply::<5>::try_from("550 5.7.1".to_owned()).is_err(), "no text");
    }

    #[test]
    fn texts_are_filled_and_checked() {
        let (id, host, signature, reason) = ("4ABC", "mx.example.org", "00ff", "bulk mail");
        let fields = ReplyFields { count: 27, threshold: 20, id, host, signature, reason };
        let text =
            Text::try_from("{count}/{threshold} {id} {host} {signature}: {reason}.".to_owned()).unwrap();
        assert_eq!(text.fill(&fields), "27/20 4ABC mx.example.org 00ff: bulk mail.");
        for bad in ["", "100 %", "two\nlines", "{nonsense}", "{count", &"x".repeat(301)] {
            assert!(Text::try_from((*bad).to_owned()).is_err(), "{bad}");
        }
    }
}
