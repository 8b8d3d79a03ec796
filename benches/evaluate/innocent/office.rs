// SPDX-License-Identifier: GPL-3.0-or-later
//! Letters of companies: disclaimers, signatures, invoices with a short text, approvals, forwarded requests.

use super::kind::Spread::{Each, Few, One};
use super::kind::{Kind, forms, letters};
use crate::draft::{Draft, Part};
use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, SPANISH, page};

pub(super) const KINDS: &[Kind] = &[
    letters("firm_disclaimer_en", &ENGLISH, One, One, disclaimer),
    letters("firm_disclaimer_de", &GERMAN, One, One, disclaimer),
    letters("firm_disclaimer_pool_en", &ENGLISH, Few(8), One, disclaimer),
    letters("firm_disclaimer_pool_fr", &FRENCH, Few(30), One, disclaimer),
    letters("firm_disclaimer_domains", &SPANISH, Few(4), Few(4), disclaimer),
    letters("firm_disclaimer_home", &DUTCH, Each, One, disclaimer),
    letters("firm_note_disclaimer", &DUTCH, One, One, note_disclaimer),
    letters("firm_note_disclaimer_pool", &GERMAN, Few(12), Few(3), note_disclaimer),
    letters("firm_html_disclaimer", &FRENCH, Few(3), One, html_disclaimer),
    letters("ok_disclaimer_en", &ENGLISH, One, One, ok_disclaimer),
    letters("ok_disclaimer_pool", &GERMAN, Few(8), One, ok_disclaimer),
    letters("ok_disclaimer_domains", &FRENCH, Few(6), Few(6), ok_disclaimer),
    letters("same_line_requests_en", &ENGLISH, One, One, same_line),
    letters("same_line_requests_nl", &DUTCH, One, One, same_line),
    letters("same_line_requests_pool", &ENGLISH, Few(10), Few(5), same_line),
    letters("forwarded_requests", &FRENCH, One, One, forwarded),
    letters("forwarded_requests_bare", &GERMAN, One, One, forwarded_bare),
    letters("long_signature", &GERMAN, One, One, long_signature),
    letters("long_signature_colleagues", &SPANISH, Few(3), One, colleagues),
    letters("application", &SPANISH, Each, Each, application),
    letters("application_de", &GERMAN, Few(12), Each, application_german),
    letters("quotation_letter", &DUTCH, One, One, quotation),
    forms("invoice_note", &GERMAN, One, One, invoice),
    forms("invoice_provider", &ENGLISH, Few(6), Each, invoice_provider),
    forms("out_of_office_en", &ENGLISH, Each, Each, out_of_office),
    forms("out_of_office_de", &GERMAN, One, One, out_of_office_german),
    forms("minutes", &FRENCH, One, One, minutes),
];

fn disclaimer(d: &mut Draft) -> Part {
    let letter = d.letter(1..4);
    Part::Plain(format!("{letter}\n{}\n", d.disclaimer()))
}

fn note_disclaimer(d: &mut Draft) -> Part {
    let note = d.note();
    Part::Plain(format!("{note}\n{}\n", d.disclaimer()))
}

fn html_disclaimer(d: &mut Draft) -> Part {
    let (letter, disclaimer) = (d.letter(1..3), d.disclaimer());
    Part::both(format!("{letter}\n{disclaimer}\n"), page(&format!("{letter}\n\n{disclaimer}")))
}

/// Nothing but an approval.
fn ok_disclaimer(d: &mut Draft) -> Part {
    let language = d.w.language;
    let short = d.w.pick(language.short);
    d.subject = format!("Re: {}", d.subject);
    let name = if d.w.percent(50) { format!("{}\n", d.from.first) } else { String::new() };
    Part::Plain(format!("{short}\n{name}\n{}\n", d.disclaimer()))
}

/// The same text above different requests.
fn same_line(d: &mut Draft) -> Part {
    let line = if d.w.language.code == "nl" {
        "Beste collega's, kunnen jullie dit verzoek oppakken en de klant voor het einde van de week antwoorden? Alvast dank!"
    } else {
        "Dear all, please see the request below. Can you deal with it and answer the customer before the end of the week? Many thanks."
    };
    let customer = d.w.person();
    let request = d.letter_to_author(&customer, 1..3);
    let block = d.original(&customer, &d.from.clone(), &d.subject.clone());
    d.subject = format!("FW: {}", d.subject);
    Part::Plain(format!("{line}\n\n{block}\n{request}"))
}

fn forwarded(d: &mut Draft) -> Part {
    let (own, customer) = (d.w.sentence(), d.w.person());
    let request = d.letter_to_author(&customer, 1..4);
    let address = customer.local();
    d.subject = format!("TR: {}", d.subject);
    Part::Plain(format!(
        "{own}\n\n---------- Message transféré ----------\nDe : {} <{address}@example.net>\nDate : {}\nObjet : {}\nÀ : \
         accueil@rochebelle.example\n\n{request}",
        customer.name(),
        d.date,
        d.subject
    ))
}

/// Without text.
fn forwarded_bare(d: &mut Draft) -> Part {
    let customer = d.w.person();
    let request = d.letter_to_author(&customer, 1..4);
    let block = d.original(&customer, &d.from.clone(), &d.subject.clone());
    d.subject = format!("WG: {}", d.subject);
    Part::Plain(format!("{block}\n{request}"))
}

fn long_signature(d: &mut Draft) -> Part {
    let (note, phone) = (d.note(), d.w.digits(4));
    Part::Plain(format!(
        "{note}\n-- \n{}\nSachbearbeitung\nWohnungsbaugenossenschaft Am Deich eG\nDeichstraße 41, 28000 Bremen\nTelefon 0421 000 {phone}, Fax \
         0421 000 4199\nSprechzeiten: montags und donnerstags 9 bis 12 Uhr, dienstags 14 bis 18 Uhr und nach Vereinbarung\nVorstand: Elke Thiele \
         (Vorsitzende), Ralf Neumann; Aufsichtsrat: Petra Vogel (Vorsitzende)\nAmtsgericht Bremen, GnR 417; Gläubiger-ID \
         DE72ZZZ00000041772\nBesuchen Sie unser Sommerfest am ersten Samstag im Juli, mit Kinderflohmarkt und Musik!\n",
        d.from.name()
    ))
}

/// Without the line of two dashes, with a slogan and links.
fn colleagues(d: &mut Draft) -> Part {
    let (note, phone) = (d.note(), d.w.digits(4));
    Part::Plain(format!(
        "{note}\n{}\nDepartamento comercial\nT. 980 00 {phone} | https://aceites.example\nAceites del Duero, desde 1921 junto a los olivares de \
         la ribera\nSíganos en nuestras redes para conocer la cosecha, las catas abiertas y las visitas a la almazara de cada sábado\nPremio a la \
         mejor cooperativa de la comarca por tercer año consecutivo\n",
        d.from.name()
    ))
}

fn application(d: &mut Draft) -> Part {
    let (about, phone) = (d.w.paragraphs(1..3), d.w.digits(9));
    d.subject = "Candidatura espontánea".to_owned();
    Part::Plain(format!(
        "Estimados señores:\n\nMe dirijo a ustedes para presentar mi candidatura al puesto publicado en su página web. {about}\n\nQuedo a su \
         disposición para una entrevista personal en la que pueda ampliar la información que consideren oportuna. Adjunto mi currículum \
         vitae.\n\nAtentamente,\n{}\nTeléfono: {phone}\n",
        d.from.name()
    ))
}

fn application_german(d: &mut Draft) -> Part {
    let about = d.w.paragraphs(2..4);
    d.subject = "Bewerbung".to_owned();
    Part::Plain(format!(
        "Sehr geehrte Damen und Herren,\n\nmit großem Interesse habe ich Ihre Stellenanzeige gelesen und bewerbe mich hiermit um die \
         ausgeschriebene Stelle.\n\n{about}\n\nÜber die Einladung zu einem persönlichen Gespräch freue ich mich sehr.\n\nMit freundlichen \
         Grüßen\n{}\n\nAnlagen: Lebenslauf, Zeugnisse\n",
        d.from.name()
    ))
}

fn quotation(d: &mut Draft) -> Part {
    let (work, number) = (d.w.paragraphs(1..3), d.w.digits(5));
    d.subject = format!("Offerte {number}");
    Part::Plain(format!(
        "Geachte {},\n\nNaar aanleiding van uw aanvraag doen wij u hierbij vrijblijvend onze offerte {number} toekomen.\n\n{work}\n\nPrijs: {} \
         euro inclusief btw. Deze offerte is dertig dagen geldig; op al onze leveringen zijn onze algemene voorwaarden van toepassing. Wij \
         vertrouwen erop u hiermee een passende aanbieding te hebben gedaan en zien uw opdracht met belangstelling tegemoet.\n\n{}\nBouwbedrijf \
         Terpstra\n",
        d.to.last,
        d.w.money(),
        d.from.name()
    ))
}

fn invoice(d: &mut Draft) -> Part {
    let (note, number) = (d.w.paragraph(1..4), d.w.digits(6));
    d.subject = format!("Rechnung {number}");
    Part::Plain(format!(
        "Guten Tag {},\n\nanbei erhalten Sie unsere Rechnung {number} über {} EUR. Bitte überweisen Sie den Betrag ohne Abzug bis zum {} auf unser \
         unten genanntes Konto.\n\n{note}\n\nMit freundlichen Grüßen\n{}\nMalerbetrieb Winkler, Bankverbindung: Sparkasse Bremen, IBAN DE00 \
         0000 4177 2000 0000 00, Steuernummer 71/417/72000\n",
        d.to.name(),
        d.w.money(),
        d.date,
        d.from.name()
    ))
}

/// One provider writes for many companies.
fn invoice_provider(d: &mut Draft) -> Part {
    let (note, number) = (d.w.paragraph(1..4), d.w.digits(5));
    d.subject = format!("Invoice {number} from {}", d.from.last);
    Part::Plain(format!(
        "Hi {},\n\nHere is invoice INV-{number} for GBP {}.\n\n{note}\n\nView your bill online: https://books.example/{}\nFrom your online bill you \
         can print a PDF, export a CSV, or create a free login and view your outstanding bills. If you have any questions, please let us \
         know.\n\nThanks,\n{} & Sons\n",
        d.to.first,
        d.w.money(),
        d.w.token(22),
        d.from.last
    ))
}

fn out_of_office(d: &mut Draft) -> Part {
    let (stand_in, why) = (d.w.person(), d.w.sentence());
    d.subject = format!("Automatic reply: {}", d.subject);
    d.fields = "Auto-Submitted: auto-replied\n".to_owned();
    Part::Plain(format!(
        "Thank you for your message. I am out of the office until {} with limited access to email. {why} In urgent cases please contact {} on \
         extension {}. I will answer your message when I am back.\n\n{}\n",
        d.date,
        stand_in.name(),
        d.w.digits(4),
        d.from.name()
    ))
}

fn out_of_office_german(d: &mut Draft) -> Part {
    let stand_in = d.w.person();
    d.subject = format!("Abwesenheitsnotiz: {}", d.subject);
    d.fields = "Auto-Submitted: auto-replied\n".to_owned();
    Part::Plain(format!(
        "Vielen Dank für Ihre Nachricht. Ich bin bis einschließlich {} nicht im Hause; Ihre E-Mail wird nicht weitergeleitet. In dringenden \
         Fällen wenden Sie sich bitte an {}, Telefon 0421 000 {}.\n\nMit freundlichen Grüßen\n{}\n\n{}\n",
        d.date,
        stand_in.name(),
        d.w.digits(4),
        d.from.name(),
        d.disclaimer()
    ))
}

fn minutes(d: &mut Draft) -> Part {
    let mut text = format!(
        "Bonjour à tous,\n\nVeuillez trouver ci-dessous le compte rendu de la réunion du {}. Merci de signaler toute erreur avant vendredi.\n\n\
         Présents : {}, {}, {}\n\n",
        d.date,
        d.w.person().name(),
        d.w.person().name(),
        d.w.person().name()
    );
    for head in [
        "1. Approbation du dernier compte rendu",
        "2. Points en cours",
        "3. Questions diverses",
        "4. Prochaine réunion",
    ] {
        text += &format!("{head}\n{}\n\n", d.w.paragraph(1..4));
    }
    Part::Plain(text + &format!("{}\nSecrétaire de séance\n", d.from.name()))
}
