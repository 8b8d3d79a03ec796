// SPDX-License-Identifier: GPL-3.0-or-later
//! Letters to which a gateway or a mailer has added its own lines.

use super::kind::Spread::{Each, Few, One};
use super::kind::{Kind, letters};
use crate::draft::{Draft, Part};
use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, SPANISH, escaped, page};

pub(super) const KINDS: &[Kind] = &[
    letters("gateway_above_en", &ENGLISH, One, Each, above),
    letters("gateway_above_en_many", &ENGLISH, Each, Each, above),
    letters("gateway_above_de", &GERMAN, One, Each, above),
    letters("gateway_above_de_many", &GERMAN, Each, Each, above),
    letters("gateway_above_fr", &FRENCH, One, Each, above),
    letters("gateway_above_es", &SPANISH, Few(4), Each, above),
    letters("gateway_above_nl", &DUTCH, Few(4), Each, above),
    letters("gateway_above_note", &ENGLISH, One, Each, above_note),
    letters("gateway_above_note_many", &SPANISH, Each, Each, above_note),
    letters("gateway_below_en", &ENGLISH, One, Each, below),
    letters("gateway_below_en_many", &ENGLISH, Each, Each, below),
    letters("gateway_below_de", &GERMAN, One, Each, below),
    letters("gateway_below_fr_many", &FRENCH, Each, Each, below),
    letters("gateway_below_nl_note", &DUTCH, Each, Each, below_note),
    letters("gateway_table_html", &FRENCH, One, Each, table),
    letters("gateway_table_html_many", &GERMAN, Each, Each, table),
    letters("gateway_stranger", &DUTCH, One, Each, stranger),
    letters("gateway_both_ends", &ENGLISH, One, Each, both_ends),
    letters("gateway_both_ends_many", &SPANISH, Each, Each, both_ends),
    letters("webmail_advert", &ENGLISH, Few(6), One, webmail),
    letters("webmail_advert_fr", &FRENCH, Few(6), One, webmail),
    letters("telephone_line", &GERMAN, Each, Each, telephone),
];

/// A note that a letter came from outside.
fn warning(code: &str) -> &'static str {
    match code {
        "de" => {
            "ACHTUNG: Diese E-Mail kommt von außerhalb unserer Organisation. Öffnen Sie Anhänge und Links nur, wenn Sie den \
             Absender kennen und den Inhalt erwarten. Melden Sie verdächtige Nachrichten bitte der IT-Abteilung."
        }
        "fr" => {
            "ATTENTION : ce courriel provient de l'extérieur de l'organisation. Ne cliquez sur aucun lien et n'ouvrez aucune \
             pièce jointe si vous ne connaissez pas l'expéditeur et si vous n'êtes pas certain que le contenu est sûr."
        }
        "es" => {
            "AVISO: este correo procede de fuera de la organización. No pulse enlaces ni abra archivos adjuntos salvo que \
             reconozca al remitente y sepa que el contenido es seguro. Si tiene dudas, consulte con el servicio de informática."
        }
        "nl" => {
            "LET OP: deze e-mail komt van buiten de organisatie. Klik niet op links en open geen bijlagen, tenzij u de afzender \
             herkent en weet dat de inhoud veilig is. Meld verdachte berichten bij de servicedesk."
        }
        _ => {
            "CAUTION: This email originated from outside of the organization. Do not click links or open attachments unless \
             you recognize the sender and know the content is safe. Report anything suspicious to the service desk."
        }
    }
}

/// A note that a letter was scanned.
fn scanned(code: &str) -> &'static str {
    match code {
        "de" => {
            "Diese Nachricht wurde auf Viren und gefährliche Inhalte untersucht und ist, soweit erkennbar, frei davon. Unser \
             Mailgateway entfernt ausführbare Anhänge; bitte verwenden Sie für große Dateien unseren Austauschdienst."
        }
        "fr" => {
            "Ce message a été vérifié par notre passerelle de messagerie et ne contient apparemment aucun virus ni contenu \
             dangereux. Les pièces jointes exécutables sont retirées ; pour les gros fichiers, utilisez notre service de dépôt."
        }
        "es" => {
            "Este mensaje ha sido analizado en busca de virus y otros contenidos peligrosos y se considera limpio. La pasarela \
             de correo elimina los archivos ejecutables; para archivos grandes utilice nuestro servicio de intercambio."
        }
        "nl" => {
            "Dit bericht is gescand op virussen en andere gevaarlijke inhoud en is vermoedelijk schoon. Uitvoerbare bijlagen \
             worden interface de gateway verwijderd; gebruik voor grote bestanden onze uitwisseldienst."
        }
        _ => {
            "This message has been scanned for viruses and dangerous content by the mail gateway and is believed to be clean. \
             Executable attachments are removed; please use our exchange service for large files."
        }
    }
}

fn above(d: &mut Draft) -> Part {
    let letter = d.letter(1..4);
    Part::Plain(format!("{}\n\n{letter}", warning(d.w.language.code)))
}

fn above_note(d: &mut Draft) -> Part {
    let note = d.note();
    Part::Plain(format!("{}\n\n{note}", warning(d.w.language.code)))
}

fn below(d: &mut Draft) -> Part {
    let letter = d.letter(1..4);
    Part::Plain(format!("{letter}\n{}\n", scanned(d.w.language.code)))
}

fn below_note(d: &mut Draft) -> Part {
    let note = d.note();
    Part::Plain(format!("{note}\n{}\n", scanned(d.w.language.code)))
}

fn both_ends(d: &mut Draft) -> Part {
    let (code, note) = (d.w.language.code, d.note());
    Part::Plain(format!("{}\n\n{note}\n{}\n", warning(code), scanned(code)))
}

fn table(d: &mut Draft) -> Part {
    let letter = d.letter(1..3);
    let warning = escaped(warning(d.w.language.code));
    let table = format!(
        "<body>\n<table border=\"0\" cellspacing=\"0\" width=\"100%\"><tr><td bgcolor=\"#ffeb9c\" style=\"padding:6px\">\
         <b>{warning}</b></td></tr></table>\n"
    );
    Part::Html(page(&letter).replacen("<body>\n", &table, 1))
}

/// The mailer's line about new senders.
fn stranger(d: &mut Draft) -> Part {
    let note = d.note();
    let line = format!(
        "U ontvangt niet vaak e-mail van {}. Ontdek waarom dit belangrijk is op https://aka.example/LearnAboutSender",
        d.address()
    );
    Part::Plain(format!("{line}\n\n{note}"))
}

fn webmail(d: &mut Draft) -> Part {
    let note = d.note();
    let advert = if d.w.language.code == "fr" {
        "Envoyé depuis ma boîte Postelle, gratuite et sans publicité : dix gigaoctets d'espace, un agenda partagé et des \
         serveurs en Europe. Ouvrez votre compte en deux minutes sur https://postelle.example/ouvrir"
    } else {
        "Sent from my Mailhaven account: ten gigabytes of free space, a shared calendar and no tracking, on servers in Europe. \
         Open an account of your own in two minutes at https://mailhaven.example/open"
    };
    Part::Plain(format!("{note}\n{advert}\n"))
}

fn telephone(d: &mut Draft) -> Part {
    let text = d.w.paragraph(1..3);
    Part::Plain(format!(
        "{text}\n\nVon meinem Telefon gesendet. Bitte entschuldigen Sie Kürze und Tippfehler; eine ausführliche Antwort folgt \
         vom Schreibtisch.\n"
    ))
}
