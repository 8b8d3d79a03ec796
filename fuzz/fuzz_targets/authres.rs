// SPDX-License-Identifier: GPL-3.0-or-later
//! Any Authentication-Results field is read without a panic. If a field below a trusted one has a result of a method, no name is
//! verified by that method.

#![no_main]

use bulkmark_mail::{AuthenticationResults, RawMessage};
use bulkmark_policy::{Authenticate, Authentication, Method};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = str::from_utf8(data) else { return };
    if let Some(field) = AuthenticationResults::parse(value) {
        assert!(field.results.len() <= 15 && !field.server.is_empty());
    }
    let trusting = Authentication {
        authenticate: Authenticate::Header,
        authserv_ids: vec!["mx.test".to_owned().try_into().unwrap()],
        methods: vec![Method::Dkim, Method::Spf, Method::Dmarc],
        ..Authentication::default()
    };
    let mut message = RawMessage::new();
    let none: &[u8] = b"mx.test; dkim=none; spf=none; dmarc=none";
    message.header(b"Authentication-Results", none);
    message.header(b"Authentication-Results", data);
    message.header(b"DKIM-Signature", b"v=1; a=a; d=a.example; s=s; h=from; bh=AA==; b=AA==");
    message.header(b"From", b"a@a.example");
    let verified = trusting.judge(&message.fields(), &mut |_, _, _| ());
    assert!(verified.dkim.is_empty() && verified.spf.is_empty() && verified.dmarc.is_empty());
});
