// SPDX-License-Identifier: GPL-3.0-or-later
//! Letters of schools, clinics and associations, answers to a circular, and letters signed by PGP.

use super::kind::Spread::{Each, Few, One};
use super::kind::{Kind, forms, letters};
use crate::draft::{Draft, Part};
use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, Person, SPANISH, Writer, escaped, marked, page, wrapped};

pub(super) const KINDS: &[Kind] = &[
    forms("school_notice_en", &ENGLISH, One, One, school),
    forms("school_notice_nl", &DUTCH, One, One, school),
    forms("school_software", &GERMAN, Few(4), Each, school_software),
    forms("clinic_notice", &GERMAN, One, One, clinic),
    forms("clinic_result_es", &SPANISH, One, One, clinic_result),
    forms("landlord_notice", &ENGLISH, One, One, landlord),
    letters("association_letter", &FRENCH, One, One, association),
    letters("association_own_address", &SPANISH, Each, Each, association_motto),
    letters("parish_letter", &DUTCH, One, One, parish),
    letters("pgp_signed_en", &ENGLISH, Each, Each, pgp),
    letters("pgp_signed_de", &GERMAN, One, One, pgp),
    letters("pgp_signed_note", &FRENCH, Each, Each, pgp_note),
    letters("circular_answered_en", &ENGLISH, Each, Each, circular_quoted),
    letters("circular_answered_de", &GERMAN, Few(10), Each, circular_quoted),
    letters("circular_answered_unmarked_en", &ENGLISH, Each, Each, circular_unmarked),
    letters("circular_answered_unmarked_fr", &FRENCH, Few(10), Few(10), circular_unmarked),
    letters("circular_answered_html", &SPANISH, Each, Each, circular_html),
    letters("circular_ok", &DUTCH, Each, Each, circular_ok),
    letters("circular_answered_one_site", &ENGLISH, One, One, circular_unmarked),
    letters("own_thread_unmarked", &GERMAN, Each, Each, own_thread),
    letters("petition_own_words", &ENGLISH, Each, Each, petition),
];

fn school(d: &mut Draft) -> Part {
    let (about, child) = (d.w.paragraph(2..5), d.w.person());
    if d.w.language.code == "nl" {
        d.subject = format!("Bericht over {}", child.first);
        return Part::Plain(format!(
            "Beste ouders van {},\n\nVia deze weg houden wij u op de hoogte van de voortgang van uw kind in groep {}.\n\n{about}\n\nWilt u hierover in \
             gesprek, dan kunt u zich via het ouderportaal inschrijven voor een gesprek van tien minuten. Denkt u ook aan de ouderbijdrage en de \
             luizencontrole na de vakantie?\n\nMet vriendelijke groet,\n{}\nBasisschool De Wilgen\n",
            child.first,
            d.w.within(1..9),
            d.from.name()
        ));
    }
    d.subject = format!("{}: note home", child.first);
    Part::Plain(format!(
        "Dear parent or carer of {},\n\nWe are writing to let you know how your child is getting on in class {}.\n\n{about}\n\nPlease sign this note \
         through the parents' page so that we know you have read it. If you would like to talk to us, appointments can be made at the office \
         between half past eight and four. May we remind you that the school gates close at ten to nine.\n\n{}\nWillow Lane Primary School\n",
        child.name(),
        d.w.within(1..7),
        d.from.name()
    ))
}

/// The same program writes for many schools.
fn school_software(d: &mut Draft) -> Part {
    let (about, child) = (d.w.paragraph(1..5), d.w.person());
    d.subject = format!("Neue Nachricht zu {}", child.first);
    Part::Plain(format!(
        "Guten Tag,\n\nim Schulportal wartet eine neue Nachricht von {} zu {}, Klasse {}:\n\n{about}\n\nBitte antworten Sie nicht auf diese E-Mail, \
         sondern melden Sie sich im Portal an. Benachrichtigungen können Sie dort unter Einstellungen ändern. Haben Sie Ihr Kennwort vergessen, \
         hilft Ihnen das Sekretariat Ihrer Schule weiter.\n",
        d.from.name(),
        child.name(),
        d.w.within(1..11)
    ))
}

fn clinic(d: &mut Draft) -> Part {
    let note = d.w.paragraph(1..4);
    d.subject = "Ihr Termin in unserer Praxis".to_owned();
    Part::Plain(format!(
        "Sehr geehrte(r) {},\n\nwir bestätigen Ihren Termin am {} um {} Uhr bei {}.\n\n{note}\n\nBitte bringen Sie Ihre Versichertenkarte, Ihren \
         Medikamentenplan und vorhandene Befunde mit und erscheinen Sie nüchtern. Können Sie den Termin nicht wahrnehmen, sagen Sie ihn spätestens \
         am Vortag ab. Parkplätze finden Sie hinter dem Haus.\n\nIhr Praxisteam am Deich\n",
        d.to.last,
        d.date,
        d.w.clock(),
        d.w.person().name()
    ))
}

fn clinic_result(d: &mut Draft) -> Part {
    let note = d.w.paragraph(2..5);
    d.subject = "Informe disponible".to_owned();
    Part::Plain(format!(
        "Estimado/a {}:\n\nYa está disponible el informe de su consulta del {}. Comentario del profesional:\n\n{note}\n\nPuede descargarlo en el \
         portal del paciente con su certificado digital. Este comentario no sustituye a la consulta médica; ante cualquier duda o empeoramiento, pida \
         cita o acuda a urgencias.\n\nCentro de salud La Ribera\n",
        d.to.name(),
        d.date
    ))
}

fn landlord(d: &mut Draft) -> Part {
    let note = d.w.paragraph(1..4);
    d.subject = format!("Your flat, number {}", d.w.within(1..90));
    Part::Plain(format!(
        "Dear {},\n\nWe plan to visit your home on {} at about {}.\n\n{note}\n\nPlease make sure that somebody over eighteen is at home and that pets \
         are shut away. All our staff carry a card with a photograph. If the time does not suit you, ring us on 0117 000 4177, option two. Repairs \
         can be reported day and night.\n\n{}\nHarbour Housing\n",
        d.to.name(),
        d.date,
        d.w.clock(),
        d.from.name()
    ))
}

fn association(d: &mut Draft) -> Part {
    let note = d.w.paragraphs(1..3);
    Part::Plain(format!(
        "{} {},\n\n{note}\n\nL'équipe de l'Amicale des randonneurs vous rappelle que l'assemblée générale aura lieu à la salle des fêtes, que les \
         cotisations sont à régler avant la fin du mois et que les inscriptions aux sorties se font auprès de Mireille. Pensez à vos chaussures et au \
         pique-nique.\n\n{}\n",
        d.w.pick(&["Chère", "Cher", "Bonjour"]),
        d.to.first,
        d.from.name()
    ))
}

/// Members have the same motto below their own letters.
fn association_motto(d: &mut Draft) -> Part {
    let note = d.note();
    Part::Plain(format!(
        "{note}\nPor un río vivo: no a la presa de Valdeolmos. Firma la petición en https://riovivo.example, acude a la marcha del primer domingo \
         de cada mes y pide en tu ayuntamiento una moción en contra. El agua es de todos y quien calla, otorga.\n"
    ))
}

fn parish(d: &mut Draft) -> Part {
    let note = d.w.paragraphs(1..3);
    Part::Plain(format!(
        "Beste {},\n\n{note}\n\nWeet u welkom in onze diensten op zondag om tien uur, met koffie na afloop. Vervoer regelt de diaconie, tot \
         zaterdagavond te bellen. Giften voor de restauratie van het orgel zijn welkom op de rekening van de kerkrentmeesters.\n\n{}\nProtestantse \
         gemeente Lindenveen\n",
        d.to.first,
        d.from.name()
    ))
}

/// A letter in the frame of an inline signature.
fn signed(d: &mut Draft, text: &str) -> Part {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut line = |n: usize| -> String { (0..n).map(|_| char::from(ALPHABET[d.w.below(64)])).collect() };
    let lines: String = (0..7).map(|_| line(64) + "\n").collect();
    let (rest, check) = (line(38), line(4));
    Part::Plain(format!(
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{text}\n-----BEGIN PGP SIGNATURE-----\nVersion: GnuPG v2\nComment: Using GnuPG with \
         Mozilla - https://www.enigmail.example/\n\n{lines}{rest}==\n={check}\n-----END PGP SIGNATURE-----\n"
    ))
}

fn pgp(d: &mut Draft) -> Part {
    let letter = d.letter(1..4);
    signed(d, &letter)
}

fn pgp_note(d: &mut Draft) -> Part {
    let note = d.note();
    signed(d, &note)
}

/// The message that everybody answers: its author and text, the same for all.
fn circular(d: &mut Draft) -> (Person, String) {
    let mut w = Writer::new(d.w.language, &[7002, d.kind]);
    let (author, topic) = (w.person(), w.topic());
    d.subject = format!("Re: {topic}");
    let text = w.paragraphs(3..4);
    (author, format!("{text}\n\n{}\n", w.closing()))
}

fn own_answer(d: &mut Draft) -> String {
    let language = d.w.language;
    let text = if d.w.percent(40) { d.w.pick(language.short).to_owned() } else { d.w.paragraph(1..4) };
    format!("{text}\n\n{}\n", d.from.first)
}

fn circular_quoted(d: &mut Draft) -> Part {
    let ((author, text), answer) = (circular(d), own_answer(d));
    let wrote = d.wrote(&author);
    Part::Plain(format!("{answer}\n{wrote}\n{}", marked(&wrapped(&text, 70), "> ")))
}

fn circular_unmarked(d: &mut Draft) -> Part {
    let ((author, text), answer) = (circular(d), own_answer(d));
    let block = d.original(&author, &d.from.clone(), &d.subject.clone());
    Part::Plain(format!("{answer}\n{block}\n{text}"))
}

fn circular_html(d: &mut Draft) -> Part {
    let ((author, text), answer) = (circular(d), own_answer(d));
    let wrote = d.wrote(&author);
    let quote =
        format!("<div>{wrote}</div><blockquote>{}</blockquote></body>", escaped(&text).replace('\n', "<br>"));
    Part::both(
        format!("{answer}\n{wrote}\n{}", marked(&text, "> ")),
        page(&answer).replace("</body>", &quote),
    )
}

/// One or two words, and the quote without marks.
fn circular_ok(d: &mut Draft) -> Part {
    let (author, text) = circular(d);
    let language = d.w.language;
    let (short, block) = (d.w.pick(language.short), d.original(&author, &d.from.clone(), &d.subject.clone()));
    Part::Plain(format!("{short}\n\n{block}\n{text}"))
}

/// A letter with its own answer above, no two the same.
fn own_thread(d: &mut Draft) -> Part {
    let (answer, author, me) = (d.note(), d.to.clone(), d.from.clone());
    let before = d.letter_to_author(&author, 1..3);
    let block = d.original(&author, &me, &d.subject.clone());
    Part::Plain(format!("{answer}\n{block}\n{before}"))
}

/// A text that an association proposes, with a personal introduction above it.
fn petition(d: &mut Draft) -> Part {
    let own = d.w.paragraphs(1..3);
    d.subject = "Planning application 26/00417".to_owned();
    Part::Plain(format!(
        "Dear Councillors,\n\n{own}\n\nI object to planning application 26/00417 for a car park on Quay Meadow. The meadow floods every winter, and \
         it is the only open space within a mile. The traffic survey was made in August, when the schools are closed. I ask the committee to refuse \
         the application and to consult the residents of the quarter.\n\nYours faithfully,\n{}\n{} {} Street\n",
        d.from.name(),
        d.w.within(1..200),
        d.to.last
    ))
}
