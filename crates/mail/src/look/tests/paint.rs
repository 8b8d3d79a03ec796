// SPDX-License-Identifier: GPL-3.0-or-later
//! Which paint of letters a reader can distinguish from what is behind it.

use super::{hides, shows};

/// A share of a little contrast is less than a reader sees.
#[test]
fn faint_letters_are_hidden() {
    hides(&[
        "<p style='color:rgba(0,0,0,.08)'>x</p>",
        "<p style='opacity:.09'>x</p>",
        "<p style='opacity:.3;color:#ddd'>x</p>",
        "<p style='color:#fff;-webkit-text-stroke:.01px #000'>x</p>",
        "<p style='color:#fff;text-shadow:0 0 60px #000'>x</p>",
        "<p style='color:#fff;text-shadow:0 0 2px rgba(0,0,0,.06)'>x</p>",
    ]);
    shows(&[
        "<p style='opacity:.12'>x</p>",
        "<p style='color:rgba(0,0,0,.2);opacity:7'>x</p>",
        "<p style='color:#fff;-webkit-text-stroke:1px #000'>x</p>",
        "<p style='color:#fff;text-shadow:0 0 60px #000,1px 1px red'>x</p>",
    ]);
}

/// Paint that is not known shows text; that which changes nothing does not.
#[test]
fn paint_without_an_effect_shows_nothing() {
    hides(&[
        "<p style='color:#fff;filter:contrast(1)'>x</p>",
        "<p style='color:#fff;box-shadow:inset 0 0 0 #000'>x</p>",
        "<p style='color:#fff;box-shadow:inset 0 0 9px 9px #fff'>x</p>",
        "<p style='color:#fff;background-clip:text'>x</p>",
        "<p style='-webkit-text-fill-color:transparent;background:#fff;-webkit-background-clip:text'>x</p>",
        "<p style='color:#fff;background:linear-gradient(#fff,transparent)'>x</p>",
        "<p style='color:#fff;background:linear-gradient(#fff,#fff) no-repeat;background-size:9px 9px'>x</p>",
        "<p style='color:#fff;mix-blend-mode:multiply'>x</p>",
        "<mark style='color:#ff0'>x</mark>",
        "<body link=white><a href=u:>x</a>",
    ]);
    shows(&[
        "<p style='color:#fff;filter:drop-shadow(0 0 1px #000)'>x</p>",
        "<p style='color:#fff;backdrop-filter:invert(1)'>x</p>",
        "<p style='filter:brightness(0) invert(1)'>x</p>",
        "<p style='color:#fff;mix-blend-mode:difference'>x</p>",
        "<p style='color:#fff;box-shadow:inset 0 0 0 99px #000'>x</p>",
        "<div style='background:#000'><p style='box-shadow:inset 0 0 0 99px #fff'>x</p></div>",
        "<p style='color:transparent;background:linear-gradient(red,blue);background-clip:text'>x</p>",
        "<p style='color:transparent;background:#123;background-clip:text'>x</p>",
        "<div style='background:#000;color:#fff'><p style='background:linear-gradient(#fff,transparent)'>x</p></div>",
        "<p style='color:#fff'><mark>x</mark>",
        "<p style='color:#fff'><dialog open>x</dialog>",
        "<body link=black><a href=u:>x</a>",
    ]);
}
