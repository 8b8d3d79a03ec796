// SPDX-License-Identifier: GPL-3.0-or-later
//! Letters through a list or a group: its notes above them, its footers directly below.

use super::kind::Spread::{Each, Few, One};
use super::kind::{Kind, letters};
use crate::draft::{Draft, Part};
use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, LANGUAGES, SPANISH, Writer, marked, page};

pub(super) const KINDS: &[Kind] = &[
    letters("list_footer_en", &ENGLISH, One, Each, footer),
    letters("list_footer_de", &GERMAN, One, Each, footer),
    letters("list_footer_fr", &FRENCH, Few(3), Each, footer),
    letters("list_footer_copied", &ENGLISH, Each, Each, footer),
    letters("list_note_above", &FRENCH, One, Each, note_above),
    letters("list_note_above_en", &ENGLISH, One, Each, note_above),
    letters("list_rules_below", &DUTCH, One, Each, rules),
    letters("list_footer_html", &SPANISH, One, Each, footer_html),
    letters("list_footer_short", &GERMAN, One, Each, footer_short),
    letters("list_digest", &ENGLISH, One, One, digest),
    letters("newsletter_answered", &ENGLISH, Each, Each, newsletter_answered),
    letters("newsletter_answered_unmarked", &GERMAN, Each, Each, newsletter_unmarked),
    letters("newsletter_answered_html", &FRENCH, Each, Each, newsletter_html),
];

fn list_footer(code: &str) -> &'static str {
    match code {
        "de" => {
            "Sie erhalten diese Nachricht, weil Sie die Liste Stadtteil-Nord abonniert haben. Beiträge an die Liste gehen an \
             stadtteil-nord@listen.example, Abmelden per Mail an stadtteil-nord-aus@listen.example. Das Archiv finden Sie unter \
             https://listen.example/archiv/stadtteil-nord"
        }
        "fr" => {
            "Vous recevez ce message car vous êtes abonné à la liste quartier-nord. Pour écrire à la liste : \
             quartier-nord@listes.example ; pour vous désabonner : quartier-nord-stop@listes.example. Les archives se trouvent \
             à l'adresse https://listes.example/archives/quartier-nord"
        }
        "es" => {
            "Recibe este mensaje porque está suscrito a la lista barrio-norte. Para escribir a la lista: \
             barrio-norte@listas.example; para darse de baja: barrio-norte-baja@listas.example. El archivo está en \
             https://listas.example/archivo/barrio-norte"
        }
        _ => {
            "You received this message because you are subscribed to the group North Quarter. To post to this group, send \
             email to north-quarter@groups.example. To unsubscribe from this group and stop receiving emails from it, send an \
             email to north-quarter+unsubscribe@groups.example. To view this discussion visit \
             https://groups.example/north-quarter"
        }
    }
}

fn of_list(d: &mut Draft) {
    d.subject = format!("[north-quarter] {}", d.subject);
    d.fields = "List-Id: <north-quarter.groups.example>\nPrecedence: list\n".to_owned();
}

fn footer(d: &mut Draft) -> Part {
    of_list(d);
    let letter = if d.w.percent(50) { d.note() } else { d.letter(1..4) };
    Part::Plain(format!("{letter}\n{}\n", list_footer(d.w.language.code)))
}

fn footer_short(d: &mut Draft) -> Part {
    of_list(d);
    let text = d.w.paragraph(1..3);
    Part::Plain(format!("{text}\n{}\n\n{}\n", d.from.first, list_footer("de")))
}

fn footer_html(d: &mut Draft) -> Part {
    of_list(d);
    let letter = d.letter(1..3);
    Part::Html(page(&format!("{letter}\n\n{}", list_footer("es"))))
}

fn note_above(d: &mut Draft) -> Part {
    of_list(d);
    let (letter, address) = (d.letter(1..3), d.address());
    let note = if d.w.language.code == "fr" {
        format!(
            "[Message transmis par le modérateur. L'auteur, {address}, n'est pas abonné à la liste : merci de lui répondre \
             directement et de ne pas citer l'ensemble du message. Les annonces commerciales ne sont pas admises.]"
        )
    } else {
        format!(
            "[Passed on by the moderator. The author, {address}, is not subscribed to this list, so please answer to that \
             address and do not quote the whole message. Commercial notices are not welcome here.]"
        )
    };
    Part::Plain(format!("{note}\n\n{letter}"))
}

fn rules(d: &mut Draft) -> Part {
    of_list(d);
    let note = d.note();
    Part::Plain(format!(
        "{note}\nAfspraken in deze ruilgroep: zet in het onderwerp of u iets zoekt of aanbiedt, en in welke wijk. Alleen leden mogen \
         spullen aanbieden, en alles is gratis; handelaren worden zonder waarschuwing verwijderd. Reageer niet aan de hele groep maar \
         aan de afzender. Is het weg, meld het dan met het woord VERGEVEN. Dieren, medicijnen en vuurwerk mogen niet. De beheerders \
         lezen mee en zijn te bereiken op beheer@ruilgroep.example, maar zij bemiddelen niet bij ruzies.\n"
    ))
}

/// Several other people's letters below the same head.
fn digest(d: &mut Draft) -> Part {
    let number = d.number + 101;
    d.subject = format!("North Quarter Digest, Vol {}, Issue {number}", d.w.within(3..9));
    let mut text = "Send North Quarter mailing list submissions to north-quarter@lists.example. To subscribe or unsubscribe via the \
                    web, visit https://lists.example/info/north-quarter or, via email, send a message with subject or body \
                    \"help\" to north-quarter-request@lists.example. When replying, please edit your Subject line so it is more \
                    specific than \"Re: Contents of North Quarter digest...\"\n"
        .to_owned();
    for _ in 0..d.w.within(2..5) {
        let (topic, letter) = (d.w.topic(), d.letter(1..3));
        text += &format!(
            "\n----------------------------------------------------------------------\n\nSubject: {topic}\n\n{letter}"
        );
    }
    Part::Plain(text + "\nEnd of North Quarter Digest\n")
}

/// The publisher's mailing: the same for everybody who answers.
fn newsletter(code: &str) -> String {
    let language = LANGUAGES.into_iter().find(|language| language.code == code).unwrap_or(&ENGLISH);
    let mut w = Writer::new(language, &[7001]);
    (0..6).map(|_| format!("{}\n\n{}\n\n", w.topic(), w.paragraph(4..8))).collect()
}

fn answer(d: &mut Draft) -> String {
    let text = d.w.paragraph(1..4);
    format!("{text}\n\n{}\n", d.from.name())
}

fn newsletter_answered(d: &mut Draft) -> Part {
    let (answer, wrote) = (answer(d), format!("On {} Garden News wrote:", d.date));
    d.subject = "Re: Garden News, spring issue".to_owned();
    Part::Plain(format!("{answer}\n{wrote}\n{}", marked(&newsletter("en"), "> ")))
}

fn newsletter_unmarked(d: &mut Draft) -> Part {
    let answer = answer(d);
    let block = format!(
        "Von: Gartenpost <post@gartenpost.example>\nGesendet: {}\nAn: {}\nBetreff: Gartenpost, Frühjahr\n",
        d.date,
        d.from.name()
    );
    d.subject = "AW: Gartenpost, Frühjahr".to_owned();
    Part::Plain(format!("{answer}\n{block}\n{}", newsletter("de")))
}

fn newsletter_html(d: &mut Draft) -> Part {
    let answer = answer(d);
    d.subject = "RE: La lettre du jardin".to_owned();
    let quote = page(&newsletter("fr")).replace("<p>", "<p style=\"margin:0\">");
    let inner = quote.split_once("<body>").map_or("", |(_, rest)| rest).replace("</body></html>\n", "");
    let block = format!("<div><b>De :</b> La lettre du jardin<br><b>Envoyé :</b> {}</div>{inner}", d.date);
    Part::Html(page(&answer).replace("</body>", &format!("{block}</body>")))
}
