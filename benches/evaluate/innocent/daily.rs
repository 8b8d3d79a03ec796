// SPDX-License-Identifier: GPL-3.0-or-later
//! Short letters of every day: below a line of a mailer, a club or a scanner, above a signature with a number, and forwarded without a word.

use super::kind::Spread::{Each, Few, One};
use super::kind::{Kind, letters};
use crate::draft::{Draft, Part};
use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, SPANISH, Writer, page};

pub(super) const KINDS: &[Kind] = &[
    letters("scanner_line", &ENGLISH, Each, Each, scanner_line),
    letters("encrypted_notice", &FRENCH, Each, Each, encrypted),
    letters("banner_html_note", &ENGLISH, One, Each, banner),
    letters("phone_line_short", &SPANISH, Each, Each, phone_line),
    letters("class_list", &DUTCH, One, Each, class_list),
    letters("club_number", &GERMAN, Each, Each, club),
    letters("lawyers_note", &FRENCH, Few(3), One, lawyers),
    letters("bank_note_disclaimer", &DUTCH, Few(6), One, bank_note),
    letters("tax_adviser", &GERMAN, One, One, tax_adviser),
    letters("translator", &ENGLISH, One, One, translator),
    letters("donation_thanks", &FRENCH, One, One, donation),
    letters("ok_signature_number", &ENGLISH, Few(4), One, ok_signature),
    letters("circular_forwarded", &ENGLISH, Each, Each, circular_forwarded),
];

fn scanner_line(d: &mut Draft) -> Part {
    let note = d.note();
    Part::Plain(format!(
        "{note}\nVirus-free. Scanned by Shieldwell Free Antivirus, https://shieldwell.example/free\n"
    ))
}

fn encrypted(d: &mut Draft) -> Part {
    let note = d.note();
    Part::Plain(format!(
        "{note}\nCe message a été transmis par une liaison chiffrée et déposé sur un serveur situé en France. Son contenu n'engage que son \
         auteur. Pensez à l'environnement avant d'imprimer ce courriel.\n"
    ))
}

fn banner(d: &mut Draft) -> Part {
    let note = d.note();
    let table = "<body>\n<table width=\"100%\"><tr><td bgcolor=\"#d9534f\">EXTERNAL SENDER</td><td>This message came from the Internet. Be \
                 careful with links and attachments, and never enter your password. Use the button above to report \
                 it.</td></tr></table>\n";
    Part::Html(page(&note).replacen("<body>\n", table, 1))
}

fn phone_line(d: &mut Draft) -> Part {
    let text = d.w.sentence();
    Part::Plain(format!(
        "{text}\n\n{}\n\nEnviado desde mi teléfono móvil, disculpe la brevedad del mensaje.\n",
        d.from.first
    ))
}

fn class_list(d: &mut Draft) -> Part {
    let note = d.note();
    d.subject = format!("[groep 5b] {}", d.subject);
    Part::Plain(format!(
        "{note}\nDit bericht ging naar alle ouders van groep 5b. Antwoord alleen aan de afzender, tenzij het voor iedereen van belang is. \
         De klassenouders beheren de lijst; wijzigingen graag doorgeven aan de juf.\n"
    ))
}

/// All members write from home.
fn club(d: &mut Draft) -> Part {
    let note = d.note();
    Part::Plain(format!(
        "{note}\nTurn- und Sportverein Lindenau von 1897. Geschäftsstelle: dienstags 17 bis 19 Uhr, Telefon 0421 0004177. Unterstützen Sie \
         den Neubau der Sporthalle mit einer Spende und werben Sie ein neues Mitglied!\n"
    ))
}

fn lawyers(d: &mut Draft) -> Part {
    let note = d.w.paragraph(1..3);
    Part::Plain(format!(
        "{note}\n\n{}\nAvocat au barreau de Rochebelle\n14, quai des Tanneurs, tél. 04 90 00 41 77\nhttps://tanneurs-avocats.example\n\n{}\n",
        d.from.name(),
        d.disclaimer()
    ))
}

fn bank_note(d: &mut Draft) -> Part {
    let note = d.w.sentence();
    Part::Plain(format!("{note}\n\n{}\nSpaarbank Lindenveen\n\n{}\n", d.from.name(), d.disclaimer()))
}

fn tax_adviser(d: &mut Draft) -> Part {
    let papers: String = (0..d.w.within(2..7)).map(|_| format!("- {}\n", d.w.topic())).collect();
    d.subject = "Fehlende Unterlagen".to_owned();
    Part::Plain(format!(
        "Guten Tag {},\n\nfür Ihre Steuererklärung fehlen uns noch diese Unterlagen:\n\n{papers}\nBitte laden Sie sie bis zum {} in unser \
         Portal hoch oder bringen Sie sie vorbei. Ohne diese Unterlagen müssen wir eine Fristverlängerung beantragen, für die eine \
         Gebühr anfällt.\n\nMit freundlichen Grüßen\n{}\nSteuerkanzlei am Markt\n",
        d.to.name(),
        d.date,
        d.from.name()
    ))
}

fn translator(d: &mut Draft) -> Part {
    let (text, words) = (d.w.paragraph(1..4), d.w.within(200..9000));
    d.subject = format!("Your translation: {}", d.subject);
    Part::Plain(format!(
        "Dear {},\n\nPlease find attached the translation of your document ({words} words). {text}\n\nIt was proofread by a second translator. \
         Passages that the original leaves open are marked in yellow. Corrections are free of charge for thirty days; certified copies \
         come by post.\n\n{}\nHarbour Translations\n",
        d.to.first,
        d.from.name()
    ))
}

fn donation(d: &mut Draft) -> Part {
    let text = d.w.paragraph(2..4);
    Part::Plain(format!(
        "Bonjour {},\n\nNous avons bien reçu votre don de {} euros et vous en remercions chaleureusement. {text}\n\nVotre reçu fiscal vous \
         parviendra en janvier : 66 % du montant de votre don est déductible de vos impôts. Rejoignez-nous à la fête des bénévoles, le premier \
         samedi de juin.\n\n{}\nLes Amis du Marais\n",
        d.to.first,
        d.w.money(),
        d.from.name()
    ))
}

/// An approval above the signature of a department, without a rule between them.
fn ok_signature(d: &mut Draft) -> Part {
    let language = d.w.language;
    let short = d.w.pick(language.short);
    d.subject = format!("Re: {}", d.subject);
    Part::Plain(format!(
        "{short}\n\n{}\nPurchasing Department\nRiverside Ceramics Limited, Kiln Lane 9, Bristol\nTelephone +44 117 000 4177\nOffice hours Monday to \
         Thursday, half past eight to five\nRegistered in England under number 00041772, place of registration as above\n",
        d.from.name()
    ))
}

/// The same letter to all neighbours, passed on without a word.
fn circular_forwarded(d: &mut Draft) -> Part {
    let mut w = Writer::new(d.w.language, &[7004]);
    let (author, topic, text) = (w.person(), w.topic(), w.paragraphs(3..4));
    d.subject = format!("FW: {topic}");
    let (to, subject) = (d.from.clone(), d.subject.clone());
    let block = d.original(&author, &to, &subject);
    Part::Plain(format!("{block}\n{text}\n\n{}\n", w.closing()))
}
