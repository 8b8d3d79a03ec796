// SPDX-License-Identifier: GPL-3.0-or-later
//! Short texts that many people write are no proof of a copy, unless they name something to answer to.

use super::reading::{multi, near, plain, text_part};
use bulkmark_signature::near::Thing;

/// Twenty words.
const NOTE: &str = "Dear Anna, please find attached the invoice for May as we agreed on the telephone today, with best regards, Tim.";

/// A file that is large enough to be one.
fn file() -> String {
    format!(
        "Content-Type: application/pdf\nContent-Disposition: attachment\n\n{}",
        "bytes of a file\n".repeat(100)
    )
}

#[test]
fn a_formula_has_no_passages() {
    assert!(near(plain(NOTE)).is_empty());
    assert_eq!(near(plain(&format!("{NOTE} Thanks"))).slots.len(), 8, "a longer text is its author's");
    let asks = near(plain(&format!("{NOTE} https://pay.invoices.example/now")));
    assert!(asks.payload.is_some() && asks.slots.len() == 8, "it asks for an answer");
}

#[test]
fn what_is_attached_to_a_formula_is_the_message() {
    let with = |text: &str| near(multi("multipart/mixed", &[&text_part(text), &file()]));
    let note = with(NOTE);
    assert!(matches!(note.things[..], [(Thing::File(0), _)]) && note.slots.is_empty() && note.rest.is_some());
    let other = with(
        "Hello Bert, here is the list of all members that you wanted to have before the weekend. Greetings, Eve",
    );
    assert_eq!(other.things, note.things);
    assert_ne!(other.rest, note.rest, "other words are another letter");
    assert!(with(&format!("{NOTE} Thanks")).things.is_empty());
}
