// SPDX-License-Identifier: GPL-3.0-or-later
//! Invitations and answers of calendars.

use super::kind::Spread::{Each, Few, One};
use super::kind::{Kind, forms, letters};
use crate::draft::{Draft, Part};
use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, SPANISH, page};

pub(super) const KINDS: &[Kind] = &[
    letters("invitation_meeting_link", &ENGLISH, One, One, meeting),
    letters("invitation_meeting_link_many", &ENGLISH, Each, Each, meeting),
    letters("invitation_meeting_link_pool", &GERMAN, Few(8), Each, meeting),
    forms("invitation_plain", &FRENCH, One, Each, plain),
    forms("invitation_answer", &GERMAN, Each, Each, answer),
    forms("invitation_cancelled", &SPANISH, One, One, cancelled),
    forms("appointment_reminder", &DUTCH, One, One, reminder),
];

/// The object of a calendar, with this method.
fn event(d: &mut Draft, method: &str, summary: &str, description: &str) -> Part {
    let (day, hour) = (d.w.within(10..29), d.w.within(10..17));
    let uid = d.w.token(24);
    let description = description.replace('\n', "\\n").replace(',', "\\,");
    Part::Raw(format!(
        "Content-Type: text/calendar; charset=utf-8; method={method}\nContent-Transfer-Encoding: 8bit\n\nBEGIN:VCALENDAR\nPRODID:-//Office//\
         Calendar//EN\nVERSION:2.0\nMETHOD:{method}\nBEGIN:VEVENT\nORGANIZER;CN={}:mailto:{}\nSUMMARY:{summary}\nDESCRIPTION:{description}\n\
         DTSTART:202603{day}T{hour}0000Z\nDTEND:202603{day}T{hour}4500Z\nUID:{uid}\nSEQUENCE:0\nSTATUS:CONFIRMED\nEND:VEVENT\nEND:VCALENDAR\n",
        d.from.name(),
        d.address()
    ))
}

fn meeting(d: &mut Draft) -> Part {
    let (text, summary) = (d.note(), d.subject.clone());
    let (id, code, link) = (d.w.digits(12), d.w.token(6), d.w.token(30));
    let join = if d.w.language.code == "de" {
        format!(
            "Besprechung in Runde\n\nNehmen Sie am Rechner, in der App oder im Konferenzraum teil\nKlicken Sie hier, um teilzunehmen: \
             https://runde.example/l/{link}\nBesprechungs-ID: {id}\nKennung: {code}\n\nOder einwählen (nur Audio)\n+49 421 0004177,,{id}# Bremen, \
             Deutschland\nEine lokale Nummer suchen | PIN zurücksetzen\n\nWeitere Informationen | Besprechungsoptionen | Rechtliche Hinweise"
        )
    } else {
        format!(
            "Roundtable meeting\n\nJoin on your computer, mobile app or room device\nClick here to join the meeting: \
             https://roundtable.example/l/{link}\nMeeting ID: {id}\nPasscode: {code}\n\nOr call in (audio only)\n+44 117 0004177,,{id}# United \
             Kingdom, Bristol\nFind a local number | Reset PIN\n\nLearn more | Meeting options | Privacy and security"
        )
    };
    let line = "_".repeat(70);
    let plain = format!("{text}\n{line}\n{join}\n{line}\n");
    let html = page(&format!("{text}\n\n{join}"));
    let event = event(d, "REQUEST", &summary, &plain);
    Part::Multipart("alternative", vec![Part::Plain(plain), Part::Html(html), event])
}

fn plain(d: &mut Draft) -> Part {
    let (text, place, summary) = (d.w.paragraph(1..4), d.w.word(), d.subject.clone());
    let plain = format!(
        "{} vous invite à l'événement « {summary} ».\n\nQuand : {} à {}\nOù : {place}\nDescription : {text}\n\nAcceptez-vous cette invitation \
         ? Répondez oui, non ou peut-être depuis votre agenda. Vous recevez ce courriel parce que vous êtes participant à cet événement.\n",
        d.from.name(),
        d.date,
        d.w.clock()
    );
    let event = event(d, "REQUEST", &summary, &text);
    Part::Multipart("alternative", vec![Part::Plain(plain), event])
}

fn answer(d: &mut Draft) -> Part {
    let (own, summary) = (if d.w.percent(60) { d.w.sentence() } else { String::new() }, d.subject.clone());
    d.subject = format!("Zugesagt: {summary}");
    let plain = format!(
        "{own}\n\n{} hat die Einladung zu diesem Termin angenommen.\n\n{summary}\n{} {}\n",
        d.from.name(),
        d.date,
        d.w.clock()
    );
    let event = event(d, "REPLY", &summary, &own);
    Part::Multipart("alternative", vec![Part::Plain(plain), event])
}

fn cancelled(d: &mut Draft) -> Part {
    let (why, summary) = (d.w.paragraph(1..3), d.subject.clone());
    d.subject = format!("Cancelado: {summary}");
    let plain = format!(
        "Esta reunión ha sido cancelada por su organizador y se eliminará de su calendario.\n\n{summary}\nFecha: {} {}\nMotivo: {why}\n",
        d.date,
        d.w.clock()
    );
    let event = event(d, "CANCEL", &summary, &why);
    Part::Multipart("alternative", vec![Part::Plain(plain), event])
}

fn reminder(d: &mut Draft) -> Part {
    let (note, with) = (d.w.paragraph(1..3), d.w.person());
    d.subject = format!("Herinnering: afspraak op {}", d.date);
    Part::Plain(format!(
        "Beste {},\n\nDit is een herinnering aan uw afspraak op {} om {} uur bij {}. Bent u verhinderd, meld dit dan ten minste \
         vierentwintig uur van tevoren, anders moeten wij de kosten in rekening brengen. Neem uw legitimatiebewijs en een overzicht van uw \
         medicijnen mee.\n\nOpmerking van de behandelaar: {note}\n\nPraktijk Lindenhof\n",
        d.to.name(),
        d.date,
        d.w.clock(),
        with.name()
    ))
}
