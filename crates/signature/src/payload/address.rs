// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail addresses in canonical form.

use super::host::Host;

/// Bytes of the two sides of an address (RFC 5321, 4.5.3.1).
const MAX_LOCAL: usize = 64;
const MAX_DOMAIN: usize = 253;

/// A provider that ignores dots in its users' names, with its other domain.
const WITHOUT_DOTS: [&str; 2] = ["gmail.com", "googlemail.com"];

/// Passes on the addresses of a text. `steps` grows by the bytes examined.
pub(super) fn addresses(text: &str, steps: &mut usize, emit: &mut impl FnMut(String)) {
    let bytes = text.as_bytes();
    let mut done = 0;
    for at in memchr::memchr_iter(b'@', bytes) {
        let before = bytes[done..at].iter().rev().take(MAX_LOCAL + 1).take_while(|b| is_local(**b)).count();
        let after = bytes[at + 1..].iter().take(MAX_DOMAIN + 1).take_while(|b| is_domain(**b)).count();
        *steps += before + after + 1;
        done = at + 1;
        if before > MAX_LOCAL || after > MAX_DOMAIN {
            continue;
        }
        if let Some(address) = canonical(&text[at - before..at], &text[at + 1..at + 1 + after]) {
            emit(address);
        }
    }
}

/// The canonical form of a whole address.
pub(super) fn form(address: &str) -> Option<String> {
    let (local, domain) = address.trim().rsplit_once('@')?;
    (local.len() <= MAX_LOCAL && domain.len() <= MAX_DOMAIN).then(|| canonical(local, domain)).flatten()
}

/// Small letters, without a tag behind `+`, without punctuation around the address.
fn canonical(local: &str, domain: &str) -> Option<String> {
    let is_mark = |c: char| !c.is_alphanumeric();
    let local = local.trim_start_matches(is_mark).to_lowercase();
    let name =
        local.split('+').next().map(|name| name.trim_end_matches(is_mark)).filter(|name| !name.is_empty())?;
    let domain = domain.trim_end_matches(|c: char| !c.is_alphanumeric());
    let host = Host::of_name(domain).filter(|host| !host.is_uninformative())?;
    if WITHOUT_DOTS.contains(&&*host.name) {
        return Some(format!("{}@{}", name.replace('.', ""), WITHOUT_DOTS[0]));
    }
    Some(format!("{name}@{}", host.name))
}

/// Other characters are allowed, but are more often no part of an address.
const fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'')
}

const fn is_domain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::fold::fold;
    use proptest::prelude::*;

    fn seen(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        addresses(&fold(text), &mut 0, &mut |address| all.push(address));
        all
    }

    #[test]
    fn one_address_in_many_forms() {
        for text in [
            "john.tester@mail.example",
            "<John.Tester@MAIL.example>,",
            "mailto:john.tester+news@mail.example?subject=x",
            "write to 'john.tester@mail.example'.",
            "john.tester＠mail．example",
            "john.tester [at] mail (dot) example",
            "john\u{200B}.tester@mail.example",
            "to=john.tester@mail.example",
        ] {
            assert_eq!(seen(text), ["john.tester@mail.example"], "{text}");
        }
        for text in ["j.o.h.n+x@gmail.com", "JOHN@googlemail.com"] {
            assert_eq!(seen(text), ["john@gmail.com"]);
        }
        assert_eq!(seen("a@bücher.example"), ["a@xn--bcher-kva.example"]);
        assert_eq!(seen("a@b.example;c@d.example"), ["a@b.example", "c@d.example"]);
        assert_eq!(form(" A+b@c.example ").as_deref(), Some("a@c.example"));
    }

    #[test]
    fn other_text_is_no_address() {
        for text in
            ["@", "a@", "@b.example", "a@b", "a@1.2.3.4", "you@example.com", "look @ this", "a@@b.example"]
        {
            assert!(seen(text).is_empty() || text == "a@@b.example", "{text}");
        }
        assert!(seen(&format!("{}@b.example", "a".repeat(65))).is_empty());
        assert!(seen(&format!("a@{}.example", "b".repeat(300))).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_panics_and_the_form_stays(text in "([a-zA-Z.+'@-]|\\PC){0,60}") {
            for address in seen(&text) {
                prop_assert_eq!(form(&address), Some(address));
            }
        }

        #[test]
        fn each_byte_is_examined_a_few_times(text in "(@|a|\\.){0,2000}") {
            let mut steps = 0;
            addresses(&text, &mut steps, &mut |_| ());
            prop_assert!(steps <= 3 * text.len());
        }
    }
}
