// SPDX-License-Identifier: GPL-3.0-or-later
//! Bank account numbers (IBAN, ISO 13616), by length and checksum.

/// Countries, and the length of their numbers (the registry of ISO 13616, release 98).
const COUNTRIES: &str = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18\
    FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20\
    MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22\
    VG24XK20YE30";

/// The length of a country's numbers.
fn length_of(country: [u8; 2]) -> Option<usize> {
    let (countries, _) = COUNTRIES.as_bytes().as_chunks::<4>();
    let [.., tens, ones] = countries.iter().find(|entry| entry[..2] == country)?;
    Some(usize::from(tens - b'0') * 10 + usize::from(ones - b'0'))
}

/// The account at the beginning of `text`, in capitals and without blanks, if there is one. A blank, a hyphen or a dot may separate groups.
///
/// Examines at most 67 bytes.
pub(super) fn iban(text: &str) -> Option<String> {
    let text = text.as_bytes();
    let [a, b, c, d, ..] = *text else { return None };
    let country = [a, b].map(|letter| letter.to_ascii_uppercase());
    let wanted = length_of(country).filter(|_| c.is_ascii_digit() && d.is_ascii_digit())?;
    let mut number = String::with_capacity(wanted);
    let mut at = 0;
    while number.len() < wanted {
        match text.get(at)? {
            b if b.is_ascii_alphanumeric() => number.push(char::from(b.to_ascii_uppercase())),
            b' ' | b'-' | b'.' if at > 0 && text[at - 1].is_ascii_alphanumeric() => (),
            _ => return None,
        }
        at += 1;
    }
    let ends = text.get(at).is_none_or(|b| !b.is_ascii_alphanumeric() && *b < 0x80);
    // At least half of an account is digits, which excludes words.
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    (ends && 2 * digits >= wanted && remainder(&number) == 1).then_some(number)
}

/// The remainder modulo 97, with the first four characters moved to the end and letters as 10 to 35 (ISO 7064).
fn remainder(number: &str) -> u32 {
    let (first, rest) = number.split_at(4);
    rest.chars().chain(first.chars()).filter_map(|c| c.to_digit(36)).fold(0, |sum, digit| {
        let shift = if digit < 10 { 10 } else { 100 };
        (sum * shift + digit) % 97
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the registry.
    const ACCOUNTS: [&str; 8] = [
        "DE89 3704 0044 0532 0130 00",
        "GB29NWBK60161331926819",
        "FR14 2004 1010 0505 0001 3M02 606",
        "NO93 8601 1117 947",
        "mt84-malt-0110-0001-2345-mtlc-ast0-01s",
        "SA03 8000 0000 6080 1016 7519",
        "BR97 0036 0305 0000 1000 9795 493P 1",
        "CH93.0076.2011.6238.5295.7",
    ];

    #[test]
    fn a_wrong_character_is_refused() {
        for text in ACCOUNTS {
            let form = iban(text).unwrap();
            assert!(form.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()));
            assert_eq!(iban(&form).as_ref(), Some(&form));
            assert_eq!(iban(&format!("{text}. Pay now")).as_ref(), Some(&form));
            for at in 0..form.len() {
                for other in ["1", "8", "X"] {
                    let wrong = format!("{}{other}{}", &form[..at], &form[at + 1..]);
                    assert!(wrong == form || iban(&wrong).is_none(), "{wrong}");
                }
            }
        }
    }

    #[test]
    fn other_text_is_no_account() {
        for text in [
            "",
            "DE",
            "DE89",
            "DE89 3704 0044 0532 0130 0",
            "DE89 3704 0044 0532 0130 001",
            "de20 people came to see the show",
        ] {
            assert_eq!(iban(text), None, "{text}");
        }
        // Two blanks end the number.
        assert_eq!(iban("DE89  370400440532013000"), None);
    }

    #[test]
    fn each_country_has_a_length() {
        let (countries, rest) = COUNTRIES.as_bytes().as_chunks::<4>();
        assert!(rest.is_empty() && countries.is_sorted());
        for [a, b, ..] in countries {
            assert!((15..=34).contains(&length_of([*a, *b]).unwrap()));
        }
        assert_eq!((length_of(*b"DE"), length_of(*b"US")), (Some(22), None));
    }
}
