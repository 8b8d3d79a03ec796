// SPDX-License-Identifier: GPL-3.0-or-later
//! Answers of persons through ticket systems, trackers and forums.

use super::kind::Spread::{Few, One};
use super::kind::{Kind, forms, letters};
use crate::draft::{Draft, Part};
use crate::text::{DUTCH, ENGLISH, FRENCH, GERMAN, SPANISH, marked, page, wrapped};

pub(super) const KINDS: &[Kind] = &[
    letters("ticket_answer_quoted", &ENGLISH, One, One, answer_quoted),
    letters("ticket_answer_footer", &GERMAN, One, One, answer_footer),
    letters("ticket_answer_provider", &GERMAN, Few(5), Few(30), answer_footer),
    forms("ticket_received_quoted", &FRENCH, One, One, received),
    forms("ticket_received_unmarked", &DUTCH, One, One, received_unmarked),
    forms("ticket_closed_survey", &SPANISH, One, One, closed),
    letters("tracker_comment", &ENGLISH, One, One, tracker),
    letters("review_comment", &ENGLISH, One, One, review),
    letters("forum_answer_html", &FRENCH, One, One, forum),
    letters("marketplace_question", &DUTCH, One, One, marketplace),
];

fn answer_quoted(d: &mut Draft) -> Part {
    let (ticket, answer, request) = (d.w.digits(6), d.letter(1..3), d.w.paragraphs(1..3));
    d.subject = format!("[Ticket #{ticket}] Re: {}", d.subject);
    let quote = marked(&wrapped(&request, 70), "> ");
    Part::Plain(format!(
        "##- Please type your reply above this line -##\n\nYour request ({ticket}) has been updated. To add additional comments, reply \
         to this email or follow the link below:\nhttps://help.example/requests/{ticket}\n\n{answer}\nYou wrote:\n{quote}\nThis email is \
         a service from Harbour Housing. Delivered by Desklight.\n"
    ))
}

fn answer_footer(d: &mut Draft) -> Part {
    let (ticket, answer) = (d.w.digits(7), d.letter(1..3));
    d.subject = format!("AW: [Vorgang {ticket}] {}", d.subject);
    Part::Plain(format!(
        "{answer}\nBitte lassen Sie die Vorgangsnummer im Betreff stehen, damit wir Ihre Antwort zuordnen können. Unser Servicezentrum \
         erreichen Sie montags bis freitags von 8 bis 18 Uhr unter 0421 000 4177. Antworten auf häufige Fragen stehen auf unseren \
         Hilfeseiten; Störungen melden Sie bitte nur telefonisch, da E-Mails nachts nicht gelesen werden. Wie zufrieden waren Sie mit \
         unserer Antwort? Ihre Bewertung hilft uns: https://service.example/bewertung/{ticket}\n"
    ))
}

fn received(d: &mut Draft) -> Part {
    let (ticket, request) = (d.w.digits(6), d.w.paragraphs(1..3));
    d.subject = format!("Votre demande n° {ticket}");
    let quote = marked(&wrapped(&request, 70), "> ");
    Part::Plain(format!(
        "Bonjour,\n\nNous avons bien reçu votre demande, enregistrée sous le numéro {ticket}. Un conseiller vous répondra dans un délai de \
         deux jours ouvrés. Pour compléter votre demande, il suffit de répondre à ce message sans en modifier l'objet.\n\nVotre message \
         :\n{quote}\nLe service des relations avec les usagers\nMairie de Rochebelle\n"
    ))
}

fn received_unmarked(d: &mut Draft) -> Part {
    let (ticket, request) = (d.w.digits(6), d.w.paragraphs(1..3));
    d.subject = format!("Melding {ticket} ontvangen");
    Part::Plain(format!(
        "Geachte heer, mevrouw,\n\nWij hebben uw melding ontvangen en geregistreerd onder nummer {ticket}. U krijgt binnen vijf werkdagen \
         antwoord van een medewerker van de afdeling Openbare Ruimte. U schreef ons het volgende:\n\n{request}\n\nMet vriendelijke \
         groet,\nGemeente Lindenveen\n"
    ))
}

fn closed(d: &mut Draft) -> Part {
    let (ticket, answer) = (d.w.digits(6), d.w.paragraph(2..4));
    d.subject = format!("Su consulta {ticket} ha sido resuelta");
    Part::Plain(format!(
        "Estimado usuario:\n\nSu consulta {ticket} ha sido resuelta por {}. La respuesta fue la siguiente:\n\n{answer}\n\nSi la respuesta no le \
         parece satisfactoria, puede volver a abrir la consulta durante los próximos siete días respondiendo a este correo. Le \
         agradeceríamos que dedicara un minuto a valorar nuestra atención en https://ayuda.example/encuesta/{ticket}\n\nCentro de \
         atención al usuario\n",
        d.from.name()
    ))
}

fn tracker(d: &mut Draft) -> Part {
    let (issue, comment) = (d.w.digits(4), d.w.paragraphs(1..3));
    d.subject = format!("[loomkit] {} (#{issue})", d.subject);
    let author = d.from.local();
    Part::Plain(format!(
        "{author} left a comment (weavers/loomkit#{issue})\n\n{comment}\n\n-- \nReply to this email directly or view it on \
         Forgeline:\nhttps://forgeline.example/weavers/loomkit/issues/{issue}#comment-{}\nYou are receiving this because you are subscribed \
         to this thread.\n",
        d.w.digits(9)
    ))
}

fn review(d: &mut Draft) -> Part {
    let (change, comment) = (d.w.digits(5), d.w.paragraph(1..4));
    let (old, new) = (d.w.token(9), d.w.token(9));
    let file = format!("{}/{}.rs", d.w.token(6), d.w.token(8));
    d.subject = format!("Re: [weavers/loomkit] {} (PR #{change})", d.subject);
    Part::Plain(format!(
        "@{} commented on this pull request.\n\n________________________________\n\nIn {file}:\n\n> -    let {old} = {}({});\n> +    let \
         {new} = {}({})?;\n\n{comment}\n\n-- \nReply to this email directly, view it on Forgeline, or unsubscribe.\nYou are receiving this \
         because your review was requested.\n",
        d.from.local(),
        d.w.token(7),
        d.w.token(5),
        d.w.token(7),
        d.w.token(5)
    ))
}

fn forum(d: &mut Draft) -> Part {
    let (topic, answer) = (d.w.topic(), d.w.paragraphs(1..3));
    d.subject = format!("[Forum des jardiniers] Réponse à « {topic} »");
    Part::Html(page(&format!(
        "{} a répondu au sujet « {topic} » que vous suivez sur le forum des jardiniers.\n\n{answer}\n\nPour répondre, rendez-vous sur le \
         forum : les réponses à ce courriel ne sont pas lues. Vous recevez cet avis parce que vous avez choisi d'être prévenu des \
         nouvelles réponses ; vous pouvez changer ce choix dans vos préférences.",
        d.from.first
    )))
}

fn marketplace(d: &mut Draft) -> Part {
    let (thing, question) = (d.w.topic(), d.w.paragraph(1..4));
    d.subject = format!("Vraag over uw advertentie: {thing}");
    Part::Plain(format!(
        "Hallo,\n\nEr is een nieuwe reactie op uw advertentie \"{thing}\" van {}:\n\n{question}\n\nBeantwoord dit bericht interface op deze mail te \
         reageren of ga naar uw berichtenbox. Tips voor veilig handelen: betaal nooit vooraf aan onbekenden, open geen betaallinks en spreek \
         af op een openbare plek. Wij vragen u nooit om uw wachtwoord of bankgegevens.\n\nHet team van Zolderplein\n",
        d.from.first
    ))
}
