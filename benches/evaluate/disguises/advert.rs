// SPDX-License-Identifier: GPL-3.0-or-later
//! The texts for disguises: twelve advertisements of 80 to 400 words, in five languages.

use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, Language, SPANISH, Writer};

/// A text, in paragraphs of sentences, and its link.
#[derive(Debug, Clone)]
pub(crate) struct Advert {
    /// Its number.
    pub(crate) number: usize,
    pub(crate) language: &'static Language,
    pub(crate) subject: String,
    pub(crate) paragraphs: Vec<Vec<String>>,
    pub(crate) link: String,
    pub(crate) telephone: String,
    pub(crate) address: String,
}

/// The words, subject, host, and text of each. Texts are filled up with quotes of happy customers.
const TEXTS: [(&Language, usize, &str, &str, &str); 12] = [
    (
        &ENGLISH,
        80,
        "Your roof and the sun",
        "brightroof",
        "Most roofs in your street could earn money every day, and yours is one of \
     them. Our engineers fit twelve panels in a single morning, without scaffolding and without a penny up front. The state pays back a third \
     of the price, but only for contracts that are signed before the end of this quarter.\n\nFind out in one minute how much you would save. \
     There is no salesman at your interface, only an honest figure by email. Over nine thousand families have already stopped fearing their \
     electricity bill.",
    ),
    (
        &ENGLISH,
        100,
        "Lose the weight you gained",
        "slimleaf",
        "Doctors in three countries were surprised when they saw the results of this \
     little green leaf. It melts stubborn fat around the waist while you sleep, and you need neither a diet nor a gym. Hollywood has kept it \
     secret for years.\n\nOrder one bottle today and we send you a second one free of charge. If your trousers are not looser within twenty \
     days, simply return the empty bottle for a full refund. Stocks are running low because a famous programme talked about us last night. \
     Do not wait until summer is over.",
    ),
    (
        &ENGLISH,
        120,
        "Website visitors on the first page",
        "rankrocket",
        "I was looking at your website and noticed that it does not \
     appear on the first page for the searches that matter. Your competitors take the customers who should have found you. Our team of forty \
     specialists has lifted more than six hundred small firms to the top within ninety days.\n\nWe correct technical errors, write fresh \
     articles and earn links from trusted pages. The first report costs nothing and shows you exactly where you stand. Shall I send it along \
     with our price list? A short answer with your telephone number is enough.",
    ),
    (
        &ENGLISH,
        150,
        "Investment opportunity in lithium",
        "minevault",
        "A quiet mining company has just drilled into one of the largest \
     lithium deposits of the decade, and hardly anybody has noticed. Its shares still trade below forty cents. Analysts who found the last \
     two winners expect four dollars by Christmas.\n\nCar makers on three continents are already bidding for the first tonnes. Once the \
     drilling report is published, the cheap days are over. Insiders have bought steadily for six weeks.\n\nPut this symbol on your screen \
     first thing on Monday morning. Remember how you felt when you missed the last one.",
    ),
    (
        &ENGLISH,
        180,
        "Replica watches for gentlemen",
        "timecrown",
        "Why pay twelve thousand for a name on a dial when nobody can see the \
     difference? Our watchmakers copy every screw, every engraving and even the weight of the originals. Choose among four hundred models \
     in steel, gold and ceramic.\n\nEvery piece arrives in a velvet box with papers and a numbered card. Shipping is discreet and takes \
     eight days to any address in the world. Buy two and the cheaper one is half price.\n\nGentlemen who value their money have trusted \
     us since 2009.",
    ),
    (
        &ENGLISH,
        220,
        "Funds awaiting your claim",
        "trustclaims",
        "I am the auditor of a bank in a city that you may never have visited, and \
     I write to you in strict confidence. A customer who shared your family name died without heirs, leaving eleven million dollars in a \
     dormant account. Under our law the money falls to the treasury unless a relative steps forward this month.\n\nI can prepare every \
     certificate that the court requires. All I need is a trustworthy partner who will stand as next of kin and receive the transfer. For \
     your assistance you keep forty per cent, and the rest is mine.\n\nKindly treat this as private and answer only to my personal mailbox.",
    ),
    (
        &ENGLISH,
        280,
        "Business loans within a day",
        "quickcapital",
        "Banks say no, but we look at your business and not at your past. \
     Between five thousand and half a million can be on your account tomorrow afternoon. There is no collateral, no hidden fee and no \
     lengthy form.\n\nRepay from your daily card takings, a little more when trade is brisk and a little less when it is slow. Restaurants, \
     garages, salons and shops up and down the country already work with us. Nine of ten applications are approved.\n\nTell us your \
     monthly turnover and how much you need. An adviser rings you back within the hour.",
    ),
    (
        &ENGLISH,
        400,
        "Meet singles in your town",
        "heartlane",
        "Somebody within two miles of you is just as lonely this evening as you are. \
     On our pages eleven thousand men and women look for company, for romance or for something more serious. Joining is free for ladies and \
     costs gentlemen nothing during the first week.\n\nNobody sees your real name until you decide otherwise. Photographs are checked by \
     hand, so that you meet real people only. Last month alone four hundred couples wrote to thank us.\n\nPick a nickname, upload a \
     picture and say hello to the first three neighbours tonight.",
    ),
    (
        &GERMAN,
        200,
        "Krankenversicherung im Vergleich",
        "tarifretter",
        "Zahlen Sie immer noch mehr als dreihundert Euro im Monat für Ihre \
     Krankenversicherung? Unabhängige Fachleute haben alle Tarife neu gerechnet und sparen Ihnen bis zu vierzig Prozent bei besseren \
     Leistungen. Einbettzimmer, Chefarzt und freie Arztwahl gehören selbstverständlich dazu.\n\nDer Vergleich ist kostenlos und \
     verpflichtet Sie zu nichts. Geben Sie Alter und Beruf an, und Sie erhalten binnen zwei Stunden drei passende Angebote. Wer noch in \
     diesem Monat wechselt, bekommt den ersten Beitrag geschenkt.",
    ),
    (
        &FRENCH,
        250,
        "Isolation des combles pour un euro",
        "combleclair",
        "Le gouvernement prend en charge l'isolation de vos combles, et il \
     ne vous reste qu'un seul euro à payer. Propriétaires comme locataires peuvent en profiter, sans condition d'âge ni avance de frais. Nos \
     artisans agréés interviennent en une demi-journée dans toute la région.\n\nVous réduirez votre facture de chauffage d'un tiers dès le \
     premier hiver. Attention, le dispositif prend fin le mois prochain et les places sont comptées. Vérifiez votre éligibilité en trente \
     secondes, un conseiller vous rappellera aussitôt.",
    ),
    (
        &SPANISH,
        320,
        "Préstamo aprobado sin papeles",
        "dineroya",
        "Le hemos concedido un préstamo de hasta sesenta mil euros y solo falta su \
     firma. No pedimos nóminas, avales ni explicaciones, y aceptamos clientes que figuran en listas de morosos. El dinero llega a su cuenta \
     el mismo día.\n\nElija usted cuánto quiere pagar cada mes y durante cuántos años. Reúna todas sus deudas en una sola cuota y respire \
     tranquilo. Más de veinte mil familias ya han vuelto a dormir bien gracias a nosotros.\n\nLa oferta caduca el viernes a medianoche.",
    ),
    (
        &DUTCH,
        360,
        "Win een jaar gratis boodschappen",
        "winkeljackpot",
        "U bent uitgekozen uit alle klanten in uw postcodegebied en maakt kans \
     op een jaar lang gratis boodschappen. Het enige wat u hoeft te doen is drie korte vragen over uw favoriete supermarkt beantwoorden. \
     Duizend deelnemers ontvangen sowieso een waardebon van vijftig euro.\n\nDe actie duurt nog maar twee dagen, dus wacht niet te lang. \
     Uw persoonlijke code is al voor u ingevuld. Verzendkosten van de waardebon bedragen slechts twee euro per creditcard.\n\nVeel geluk \
     en eet smakelijk!",
    ),
];

/// All of them.
pub(crate) fn adverts() -> Vec<Advert> {
    TEXTS.iter().enumerate().map(|(number, text)| advert(number, *text)).collect()
}

fn advert(
    number: usize,
    (language, words, subject, host, text): (&'static Language, usize, &str, &str, &str),
) -> Advert {
    let mut w = Writer::new(language, &[8000, number as u64]);
    let mut paragraphs: Vec<Vec<String>> = text.split("\n\n").map(sentences).collect();
    let count = |all: &[Vec<String>]| all.iter().flatten().map(|s| s.split(' ').count()).sum::<usize>();
    while count(&paragraphs) + 12 < words {
        let n = w.within(2..5);
        paragraphs.insert(paragraphs.len() - 1, w.sentences(n));
    }
    let (link, telephone) =
        (format!("https://{host}.example/offer/start"), format!("+44 20 7946 {}", w.digits(4)));
    let address = format!("answers@{host}.example");
    paragraphs.push(vec![link.clone()]);
    Advert { number, language, subject: subject.to_owned(), paragraphs, link, telephone, address }
}

/// A paragraph's sentences, each with its mark at the end.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for word in paragraph.split(' ') {
        let last = all.len() - 1;
        if !all[last].is_empty() {
            all[last].push(' ');
        }
        all[last].push_str(word);
        if word.ends_with(['.', '?', '!']) {
            all.push(String::new());
        }
    }
    all.retain(|sentence| !sentence.is_empty());
    all
}

impl Advert {
    /// With empty lines between paragraphs.
    pub(crate) fn text(&self) -> String {
        joined(&self.paragraphs)
    }

    pub(crate) fn words(&self) -> usize {
        self.text().split_whitespace().count()
    }

    /// A random source for one copy.
    pub(crate) fn writer(&self, disguise: u64, copy: usize) -> Writer {
        Writer::new(self.language, &[8001, disguise, self.number as u64, copy as u64])
    }
}

/// Paragraphs of sentences as a text.
pub(crate) fn joined(paragraphs: &[Vec<String>]) -> String {
    paragraphs.iter().map(|sentences| sentences.join(" ")).collect::<Vec<_>>().join("\n\n")
}
