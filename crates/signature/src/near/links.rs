// SPDX-License-Identifier: GPL-3.0-or-later
//! The part of a link or picture address that is common to all copies of a mailing and specific enough to belong to nobody else.

/// Letters and digits of a specific name; `watch`, `document` and `newsletter` are shorter.
const TELLING: usize = 12;

/// The same for a picture's name without extension and final digits; `header_background` is shorter.
const TELLING_PICTURE: usize = 18;

/// Digits of a number that a program gave to this picture alone; and the least hexadecimal digits.
const NUMBER: usize = 10;
const HEXADECIMAL: usize = 4;

/// Host and path of a link, the host in small letters. If the path is not specific, the query is included, since it then names the page
/// (`watch?v=`).
pub(super) fn page_of(link: &str) -> Option<String> {
    let (host, path, query) = split(link)?;
    let says_enough = path.split('/').any(|name| graphic(name) >= TELLING);
    let query = if says_enough { "" } else { query };
    Some(format!("{}{path}{query}", host.to_lowercase()))
}

/// The path of a picture on the web, without host and query; `None` if many pictures have such a path.
pub(super) fn picture_of(source: &str) -> Option<&str> {
    let (_, path, _) = split(source)?;
    let name = path.rsplit('/').next()?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    // `name@2x` is the same picture for finer screens.
    let chosen = stem.split('@').next()?.trim_end_matches(|c: char| c.is_ascii_digit());
    (graphic(chosen) >= TELLING_PICTURE || is_number_of_one(stem)).then_some(path)
}

/// Host, path and query of a web address; `None` for other schemes.
fn split(link: &str) -> Option<(&str, &str, &str)> {
    let rest = match link.split_once("://") {
        Some((scheme, rest)) => {
            let known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
            known.then_some(rest)?
        }
        // As in `src="//host/path"`.
        None => link.strip_prefix("//").or_else(|| link.starts_with("www.").then_some(link))?,
    };
    let rest = rest.split('#').next()?;
    let (place, query) = rest.find('?').map_or((rest, ""), |at| rest.split_at(at));
    let (host, path) = place.find('/').map_or((place, ""), |at| place.split_at(at));
    (!host.is_empty()).then_some((host, path, query))
}

fn graphic(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

/// Whether a program gave this number to one picture alone.
fn is_number_of_one(stem: &str) -> bool {
    let digits = stem.bytes().filter(u8::is_ascii_digit).count();
    digits >= NUMBER || digits >= HEXADECIMAL && graphic(stem) >= TELLING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_left_out_if_the_path_is_specific() {
        for (link, page) in [
            ("https://Shop.Example/Autumn-Prices-2031?u=73", Some("shop.example/Autumn-Prices-2031")),
            ("https://video.example/watch?v=a8Fe", Some("video.example/watch?v=a8Fe")),
            ("http://a.example", Some("a.example")),
            ("www.b.example/x#y", Some("www.b.example/x")),
            ("mailto:a@b.example", None),
            ("/relative", None),
        ] {
            assert_eq!(page_of(link).as_deref(), page, "{link}");
        }
    }

    #[test]
    fn common_picture_names_are_ignored() {
        for common in [
            "logo.png",
            "spacer.gif",
            "1.png",
            "img/header_600.jpg",
            "open",
            "open.php",
            "facebook@2x.png",
            "pixel.gif",
            "images/newsletter_header-600.png",
            "unnamed.jpg",
            "",
            "image001.png",
            "150x150.png",
        ] {
            assert_eq!(picture_of(&format!("https://a.example/{common}")), None, "{common}");
        }
        for own in ["/autumn-prices-at-the-harbour.jpg", "/i/5f0c9a4417be.png", "/x/20310401123456.jpg"] {
            assert_eq!(picture_of(&format!("https://a.example{own}?u=7")), Some(own));
        }
    }
}
