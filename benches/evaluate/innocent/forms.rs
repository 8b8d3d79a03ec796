// SPDX-License-Identifier: GPL-3.0-or-later
//! Forms forwarded by web sites, and the mail of shops and accounts.

use super::kind::Spread::{Each, Few, One};
use super::kind::{Kind, forms, transactions};
use crate::draft::{Draft, Part};
use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, SPANISH, page};

pub(super) const KINDS: &[Kind] = &[
    forms("form_contact", &ENGLISH, One, One, contact),
    forms("form_contact_many_sites", &GERMAN, Each, Each, contact_software),
    forms("form_booking", &FRENCH, One, One, booking),
    forms("form_job", &DUTCH, One, One, job),
    forms("form_survey", &SPANISH, One, One, survey),
    forms("form_damage", &GERMAN, Few(3), One, damage),
    forms("form_blog_comment", &ENGLISH, Each, Each, blog_comment),
    forms("form_quotation_html", &FRENCH, One, One, quotation),
    transactions("order_confirmation", &ENGLISH, One, One, order),
    transactions("order_shop_software", &GERMAN, Each, Each, order_software),
    transactions("parcel_notice", &GERMAN, Few(4), One, parcel),
    transactions("password_mail", &FRENCH, One, One, password),
    transactions("login_notice", &DUTCH, Few(4), One, login),
    transactions("card_payment", &SPANISH, One, One, payment),
];

fn telephone(d: &mut Draft) -> String {
    format!("0{} {}", d.w.digits(3), d.w.digits(7))
}

fn contact(d: &mut Draft) -> Part {
    let (phone, message, to) = (telephone(d), d.w.paragraphs(1..3), d.w.person());
    d.subject = "New message from your website contact form".to_owned();
    Part::Plain(format!(
        "You have a new message from the contact form on your website.\n\nName: {}\nEmail: {}@example.net\nPhone: {phone}\nHow did you hear \
         about us? {}\nMessage:\n{message}\n\nI agree that my details are stored in order to answer my request: yes\n\nThis e-mail was sent \
         from a contact form on Riverside Ceramics (https://riverside.example)\n",
        to.name(),
        to.local(),
        d.w.word()
    ))
}

fn contact_software(d: &mut Draft) -> Part {
    let (phone, message, who, topic) = (telephone(d), d.w.paragraph(2..6), d.w.person(), d.w.topic());
    d.subject = format!("Kontaktanfrage: {topic}");
    Part::Plain(format!(
        "Über das Kontaktformular Ihrer Internetseite wurde folgende Anfrage gesendet:\n\nAnrede: {}\nVorname: {}\nNachname: {}\nE-Mail: \
         {}@example.net\nTelefon: {phone}\nBetreff: {topic}\nNachricht: {message}\n\nDer Absender hat die Datenschutzerklärung gelesen und ist mit \
         der Verarbeitung seiner Angaben zur Beantwortung der Anfrage einverstanden. Diese Nachricht wurde automatisch erzeugt; zum Antworten \
         verwenden Sie bitte die angegebene Adresse.\n",
        d.w.pick(&["Frau", "Herr"]),
        who.first,
        who.last,
        who.local()
    ))
}

fn booking(d: &mut Draft) -> Part {
    let (phone, wish, who) = (telephone(d), d.w.paragraph(1..4), d.w.person());
    d.subject = format!("Demande de réservation : {}", who.name());
    Part::Plain(format!(
        "Nouvelle demande de réservation reçue sur le site du gîte\n\nNom : {}\nTéléphone : {phone}\nArrivée : {}\nDépart : {}\nAdultes : \
         {}\nEnfants : {}\nFormule : {}\nSouhaits particuliers : {wish}\n\nCette demande n'est pas une réservation ferme : elle doit être \
         confirmée par vos soins sous quarante-huit heures.\n",
        who.name(),
        d.w.date(),
        d.w.date(),
        d.w.within(1..5),
        d.w.below(4),
        d.w.pick(&["nuitée", "demi-pension", "pension complète"])
    ))
}

fn job(d: &mut Draft) -> Part {
    let (why, who) = (d.w.paragraphs(1..3), d.w.person());
    d.subject = format!("Nieuwe sollicitatie via de website: {}", who.name());
    Part::Plain(format!(
        "Er is een sollicitatie binnengekomen via het formulier op de vacaturepagina.\n\nNaam: {}\nGeboortedatum: {}\nVacature: \
         {}\nBeschikbaar vanaf: {}\nUren per week: {}\nMotivatie:\n{why}\n\nHet cv van de kandidaat staat klaar in het wervingssysteem en \
         wordt vier weken na afloop van de procedure verwijderd.\n",
        who.name(),
        d.w.date(),
        d.w.word(),
        d.w.date(),
        d.w.within(8..41)
    ))
}

fn survey(d: &mut Draft) -> Part {
    let mut text = "Respuesta nueva a la encuesta del curso\n\n".to_owned();
    let asked = [
        "¿Qué le ha parecido lo mejor del curso?",
        "¿Qué mejoraría usted?",
        "¿Cómo valora a los profesores?",
        "Otros comentarios",
    ];
    for question in asked {
        let answer = d.w.paragraph(1..3);
        text += &format!("{question}\n{answer}\n\n");
    }
    d.subject = "Respuesta a la encuesta".to_owned();
    Part::Plain(
        text + &format!(
            "Valoración general: {} de 10\nEncuesta anónima, curso de primavera.\n",
            d.w.below(11)
        ),
    )
}

fn damage(d: &mut Draft) -> Part {
    let (what, who) = (d.w.paragraphs(1..3), d.w.person());
    d.subject = format!("Schadensmeldung Nr. {}", d.w.digits(6));
    Part::Plain(format!(
        "Schadensmeldung aus dem Kundenportal\n\nVersicherungsnehmer: {}\nVertragsnummer: {}\nSchadenstag: {}\nUhrzeit: {}\nArt des Schadens: \
         {}\nGeschätzte Höhe: {} EUR\nHergang:\n{what}\n\nDie Angaben wurden vom Versicherungsnehmer gemacht und noch nicht geprüft.\n",
        who.name(),
        d.w.digits(9),
        d.w.date(),
        d.w.clock(),
        d.w.pick(&["Wasser", "Sturm", "Glas", "Einbruch", "Haftpflicht"]),
        d.w.money()
    ))
}

fn blog_comment(d: &mut Draft) -> Part {
    let (comment, topic, who) = (d.w.paragraph(1..4), d.w.topic(), d.w.person());
    let (post, id) = (d.w.digits(4), d.w.digits(5));
    d.subject = format!("[{}] Please moderate: \"{topic}\"", d.domain);
    Part::Plain(format!(
        "A new comment on the post \"{topic}\" is waiting for your approval\nhttps://{}/?p={post}\n\nAuthor: {}\nEmail: \
         {}@example.net\nComment:\n{comment}\n\nApprove it: https://{}/admin/comment?action=approve&c={id}\nTrash it: \
         https://{}/admin/comment?action=trash&c={id}\nSpam it: https://{}/admin/comment?action=spam&c={id}\nCurrently one comment is waiting \
         for approval. Please visit the moderation panel.\n",
        d.domain,
        who.name(),
        who.local(),
        d.domain,
        d.domain,
        d.domain
    ))
}

fn quotation(d: &mut Draft) -> Part {
    let (wish, who) = (d.w.paragraph(2..5), d.w.person());
    d.subject = "Demande de devis en ligne".to_owned();
    Part::Html(page(&format!(
        "Une demande de devis a été déposée sur votre page.\n\nClient : {}\nTravaux : {}\nSurface : {} m²\nDate souhaitée : {}\n\nDescription \
         : {wish}\n\nRépondez dans les vingt-quatre heures pour augmenter vos chances d'être choisi. Votre abonnement comprend trente \
         demandes par mois.",
        who.name(),
        d.w.word(),
        d.w.within(9..300),
        d.w.date()
    )))
}

fn items(d: &mut Draft, currency: &str) -> String {
    let n = d.w.within(1..5);
    (0..n).map(|_| format!("{} x {}  {} {currency}\n", 1 + d.w.below(3), d.w.topic(), d.w.money())).collect()
}

fn order(d: &mut Draft) -> Part {
    let (items, order) = (items(d, "GBP"), d.w.digits(8));
    d.subject = format!("Your order {order}");
    Part::Plain(format!(
        "Dear {},\n\nThank you for your order {order}, which we received on {}. We will send you another message as soon as it leaves our \
         warehouse.\n\n{items}\nPostage: 3.95 GBP\nDelivery address: {} {} Street\n\nYou may return goods within thirty days in their original \
         packaging. Questions about your order are answered at https://shop.example/orders/{order}\n\nMarigold Household Goods\n",
        d.to.name(),
        d.date,
        d.w.within(1..180),
        d.from.last
    ))
}

fn order_software(d: &mut Draft) -> Part {
    let (items, order) = (items(d, "EUR"), d.w.digits(5));
    d.subject = format!("Bestellbestätigung {order}");
    Part::Plain(format!(
        "Guten Tag {},\n\nvielen Dank für Ihre Bestellung bei {}. Ihre Bestellnummer lautet {order}. Wir haben Ihre Bestellung erhalten und \
         beginnen mit der Bearbeitung, sobald die Zahlung eingegangen ist.\n\n{items}\nVersandkosten: 4.90 EUR\nZahlungsart: {}\n\nDen Status Ihrer \
         Bestellung können Sie jederzeit in Ihrem Kundenkonto unter Meine Bestellungen einsehen. Diese Bestätigung ist noch keine Annahme \
         des Vertrags; es gelten unsere allgemeinen Geschäftsbedingungen.\n",
        d.to.name(),
        d.domain,
        d.w.pick(&["Rechnung", "Vorkasse", "Lastschrift", "Kreditkarte"])
    ))
}

fn parcel(d: &mut Draft) -> Part {
    let code = d.w.digits(14);
    d.subject = format!("Ihr Paket {code} kommt bald");
    Part::Plain(format!(
        "Hallo {},\n\nIhr Paket von {} ist unterwegs und wird voraussichtlich am {} zwischen {} und {} Uhr zugestellt. Sendungsnummer: \
         {code}\n\nSie sind nicht zu Hause? Wählen Sie einen Ablageort oder eine Filiale in Ihrer Nähe: https://paket.example/{code}\nBitte \
         antworten Sie nicht auf diese automatisch erzeugte Nachricht.\n",
        d.to.name(),
        d.from.last,
        d.date,
        d.w.clock(),
        d.w.clock()
    ))
}

fn password(d: &mut Draft) -> Part {
    let token = d.w.token(40);
    d.subject = "Réinitialisation de votre mot de passe".to_owned();
    Part::Plain(format!(
        "Bonjour {},\n\nVous avez demandé un nouveau mot de passe pour votre compte. Pour le choisir, suivez ce lien dans l'heure qui suit \
         :\nhttps://compte.example/nouveau/{token}\n\nSi vous n'êtes pas à l'origine de cette demande, vous pouvez ignorer ce message : votre \
         mot de passe reste inchangé. Ne transmettez ce lien à personne.\n\nL'équipe Médiathèque en ligne\n",
        d.to.first
    ))
}

fn login(d: &mut Draft) -> Part {
    d.subject = "Nieuwe aanmelding bij uw account".to_owned();
    Part::Plain(format!(
        "Beste {},\n\nEr is op {} om {} uur aangemeld bij uw account vanaf een nieuw apparaat ({}, IP-adres 192.0.2.{}). Was u dit zelf, dan \
         hoeft u niets te doen. Herkent u deze aanmelding niet, wijzig dan meteen uw wachtwoord en neem contact op met onze klantenservice. \
         Wij vragen u nooit per e-mail om inloggegevens.\n\nUw Energieloket\n",
        d.to.name(),
        d.date,
        d.w.clock(),
        d.w.pick(&["Windows", "Android", "iPhone", "Linux", "macOS"]),
        d.w.below(255)
    ))
}

fn payment(d: &mut Draft) -> Part {
    let (amount, shop) = (d.w.money(), d.w.person());
    d.subject = format!("Pago con su tarjeta: {amount} EUR");
    Part::Plain(format!(
        "Estimado cliente:\n\nLe informamos de que el {} a las {} se ha realizado un pago de {amount} EUR con su tarjeta terminada en {} en el \
         comercio {}. Si no reconoce esta operación, bloquee su tarjeta desde la aplicación o llame al número que figura en el reverso. Este \
         mensaje es informativo y no admite respuesta.\n\nCaja del Duero\n",
        d.date,
        d.w.clock(),
        d.w.digits(4),
        shop.last
    ))
}
