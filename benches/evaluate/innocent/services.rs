// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail of robots, banks, carriers, calendars, clinics and schools: a frame, and words that a person or a machine wrote for one reader.

use super::kind::Spread::{Each, Few, One};
use super::kind::{Kind, forms, letters, transactions};
use crate::draft::{Draft, Part};
use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, SPANISH, marked, wrapped};

pub(super) const KINDS: &[Kind] = &[
    forms("build_failed", &ENGLISH, One, One, build_failed),
    forms("dependency_update", &ENGLISH, One, One, dependency),
    forms("cron_output", &ENGLISH, Each, Each, cron),
    transactions("bank_statement", &FRENCH, Few(3), One, statement),
    forms("bank_adviser", &FRENCH, One, One, adviser),
    forms("driver_note", &GERMAN, Few(4), One, driver),
    letters("calendar_declined", &ENGLISH, Each, Each, declined),
    forms("calendar_booking", &ENGLISH, One, Each, booking),
    forms("school_absence", &SPANISH, One, One, absence),
    forms("clinic_referral", &GERMAN, Few(5), Few(5), referral),
    letters("clinic_answer", &ENGLISH, One, One, clinic_answer),
    forms("invoice_accountant", &SPANISH, One, One, accountant),
    forms("payment_reminder", &DUTCH, One, One, payment_reminder),
];

fn build_failed(d: &mut Draft) -> Part {
    let (build, commit, author) = (d.w.digits(5), d.w.token(8), d.from.name());
    let log: String = (0..d.w.within(4..14))
        .map(|_| {
            format!("error: {} {}:{}: {}\n", d.w.word(), d.w.token(7), d.w.within(1..900), d.w.sentence())
        })
        .collect();
    d.subject = format!("Build {build} failed: {}", d.subject);
    Part::Plain(format!(
        "Build {build} of weavers/loomkit failed.\n\nCommit: {commit} by {author}\nMessage: {}\nDuration: {} minutes {} seconds\n\nThe end of \
         the log:\n\n{log}\nYou receive this message because you broke the build or wrote the last commit. Change the addresses under \
         Settings, Notifications: https://builds.example/loomkit/{build}\n",
        d.w.sentence(),
        d.w.within(1..50),
        d.w.below(60)
    ))
}

fn dependency(d: &mut Draft) -> Part {
    let (package, old, new) = (d.w.token(9), d.w.within(1..30), d.w.within(1..9));
    let notes: String = (0..d.w.within(2..8)).map(|_| format!("- {}\n", d.w.sentence())).collect();
    d.subject = format!("[weavers/loomkit] Bump {package}");
    Part::Plain(format!(
        "Bumps {package} from {old}.{new} to {old}.{}.\n\nRelease notes:\n{notes}\nThe robot will resolve any conflicts with this change as long as \
         you do not alter it yourself. You can trigger a rebase manually by commenting \"rebase\". Compatibility score: {} of 100.\n",
        new + 1,
        d.w.below(101)
    ))
}

/// The output of a nightly job of each machine.
fn cron(d: &mut Draft) -> Part {
    let host = d.w.token(6);
    let lines: String = (0..d.w.within(3..12))
        .map(|_| format!("{} /srv/{}/{}: {}\n", d.w.clock(), d.w.word(), d.w.token(8), d.w.word()))
        .collect();
    d.subject = format!("Cron <root@{host}> nightly");
    Part::Plain(format!(
        "/etc/cron.daily/backup:\nStarting the nightly backup of all volumes, please wait.\n{lines}Backup finished, {} files, {} megabytes sent \
         to the remote store, 0 errors. Old archives were pruned according to the policy.\n",
        d.w.digits(4),
        d.w.digits(3)
    ))
}

fn statement(d: &mut Draft) -> Part {
    d.subject = "Votre relevé de compte est disponible".to_owned();
    Part::Plain(format!(
        "Bonjour {},\n\nLe relevé du compte terminant par {} est disponible depuis le {} dans votre espace client, rubrique Documents. Le solde \
         est de {} EUR. Pour votre sécurité, ce message ne contient aucun lien ; nous ne vous demanderons jamais votre code \
         secret.\n\nVotre Caisse du Littoral\n",
        d.to.name(),
        d.w.digits(4),
        d.date,
        d.w.money()
    ))
}

fn adviser(d: &mut Draft) -> Part {
    let text = d.w.paragraphs(1..3);
    d.subject = "Nouveau message de votre conseiller".to_owned();
    Part::Plain(format!(
        "Madame, Monsieur,\n\nVotre conseiller vous a adressé le message suivant dans votre messagerie sécurisée :\n\n{text}\n\n{}\n\nPour \
         répondre, connectez-vous à votre espace client et ouvrez la messagerie. Les réponses à ce courriel ne sont pas lues. \
         Caisse du Littoral, société coopérative à capital variable, intermédiaire en assurances.\n",
        d.from.name()
    ))
}

fn driver(d: &mut Draft) -> Part {
    let (code, note) = (d.w.digits(12), d.w.sentence());
    d.subject = format!("Zustellung der Sendung {code}");
    Part::Plain(format!(
        "Guten Tag {},\n\nIhre Sendung {code} wurde am {} um {} Uhr abgelegt. Nachricht der Fahrerin oder des Fahrers: {note}\n\nFalls etwas fehlt \
         oder beschädigt ist, melden Sie es bitte innerhalb von sieben Tagen mit einem Foto unter https://fracht.example/{code}\n\nIhr \
         Frachtdienst Nordwest\n",
        d.to.name(),
        d.date,
        d.w.clock()
    ))
}

fn declined(d: &mut Draft) -> Part {
    let (note, summary) = (d.w.paragraph(1..3), d.subject.clone());
    d.subject = format!("Declined: {summary}");
    Part::Plain(format!(
        "{note}\n\n{} has declined this invitation and may have proposed another time.\n\nWhen: {} {}\nWhere: {}\nYou can see the proposals \
         of all guests in your calendar and accept one of them for everybody.\n",
        d.from.name(),
        d.date,
        d.w.clock(),
        d.w.word()
    ))
}

/// Many people use the same booking page.
fn booking(d: &mut Draft) -> Part {
    let (wish, who, link) = (d.w.paragraph(1..4), d.w.person(), d.w.token(26));
    d.subject = format!("New booking: {}", who.name());
    Part::Plain(format!(
        "Hi {},\n\nA new event has been scheduled with you.\n\nInvitee: {} <{}@example.net>\nTime: {} {}\nPlease share anything that will help \
         prepare for our meeting: {wish}\n\nView the event: https://slots.example/e/{link}\nNeed to make changes? Cancel or move it under the same \
         link. Pro tip: connect your calendar to avoid double bookings.\n",
        d.from.first,
        who.name(),
        who.local(),
        d.date,
        d.w.clock()
    ))
}

fn absence(d: &mut Draft) -> Part {
    let (why, child) = (d.w.paragraph(1..3), d.w.person());
    d.subject = format!("Ausencia de {}", child.first);
    Part::Plain(format!(
        "Se ha comunicado una ausencia desde la aplicación de familias.\n\nAlumno o alumna: {}\nCurso: {}\nFechas: {} a {}\nMotivo: {why}\n\nLa \
         familia declara que los datos son ciertos y que entregará el justificante al tutor el día de la reincorporación. Este \
         aviso se envía a la secretaría y al tutor.\n",
        child.name(),
        d.w.within(1..7),
        d.w.date(),
        d.w.date()
    ))
}

/// Several practices use the same program.
fn referral(d: &mut Draft) -> Part {
    let (findings, patient) = (d.w.paragraphs(1..3), d.w.person());
    d.subject = format!("Arztbrief {}", d.w.digits(6));
    Part::Plain(format!(
        "Sehr geehrte Kolleginnen und Kollegen,\n\nwir berichten über die Vorstellung von {}, geboren am {}, in unserer \
         Sprechstunde.\n\nBefund:\n{findings}\n\nWir empfehlen eine Verlaufskontrolle in {} Wochen und stehen für Rückfragen gern zur Verfügung. \
         Dieser Brief wurde elektronisch erstellt und ist ohne Unterschrift gültig.\n\nMit kollegialen Grüßen\n{}\n",
        patient.name(),
        d.w.date(),
        d.w.within(2..13),
        d.from.name()
    ))
}

/// The confidentiality notice stands above the answer.
fn clinic_answer(d: &mut Draft) -> Part {
    let (answer, question) = (d.note(), d.w.paragraph(1..4));
    let (reader, quote) = (d.to.clone(), marked(&wrapped(&question, 70), "> "));
    let wrote = d.wrote(&reader);
    Part::Plain(format!(
        "This message contains health information that is protected by law. If you are not the patient, delete it and tell the practice. \
         We answer on working days; in an emergency, do not write but ring the ambulance.\n\n{answer}\n{wrote}\n{quote}"
    ))
}

fn accountant(d: &mut Draft) -> Part {
    let (note, number) = (d.w.paragraph(1..3), d.w.digits(4));
    d.subject = format!("Factura {number}");
    Part::Plain(format!(
        "Buenos días, {}:\n\nLe adjunto la factura {number} por importe de {} EUR correspondiente a los servicios del mes. {note}\n\nLe recuerdo que \
         el plazo de presentación de los impuestos del trimestre termina el día veinte; envíeme por favor las facturas pendientes \
         antes del día diez.\n\nReciba un cordial saludo,\n{}\nGestoría Plaza Mayor\n",
        d.to.first,
        d.w.money(),
        d.from.name()
    ))
}

fn payment_reminder(d: &mut Draft) -> Part {
    let (note, number) = (d.w.sentence(), d.w.digits(6));
    d.subject = format!("Herinnering factuur {number}");
    Part::Plain(format!(
        "Geachte {},\n\nUit onze administratie blijkt dat factuur {number} van {} euro nog niet is voldaan. {note} Wij verzoeken u het bedrag \
         binnen acht dagen over te maken onder vermelding van het factuurnummer. Heeft uw betaling deze herinnering gekruist, dan kunt u dit \
         bericht als niet verzonden beschouwen.\n\nMet vriendelijke groet,\n{}\nDebiteurenbeheer Drukkerij Van Gelder\n",
        d.to.last,
        d.w.money(),
        d.from.name()
    ))
}
