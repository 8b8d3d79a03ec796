// SPDX-License-Identifier: GPL-3.0-or-later
//! Sessions of the milter protocol with all kinds of MTAs, over the wire.

use bulkmark_testing::Site;
use bulkmark_testing::milter::*;
use indymilter_test::{Actions, MacroStage, ProtoOpts, SocketInfo, Status, TestConnection};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

const CLIENT: &str = "192.0.2.7";

fn verdict_of(client: &mut Client, text: &str) -> String {
    let answer = client.message(&Mail::text(text));
    assert_eq!(answer.reply, "c");
    answer.verdict().to_owned()
}

/// If configured, the header names the mailing as the log and `bulkmark allow` do.
#[test]
fn the_header_has_the_signature_where_it_is_wanted() {
    let header = |extra: &str| {
        let (site, mail) = (Site::new(extra), Mail::text("a letter"));
        session(&site.start()).message(&mail).header().to_owned()
    };
    let value = header("[signature]\nheader = true\n");
    let (_, signature) = value.split_once("; signature=").unwrap_or_else(|| panic!("{value}"));
    assert!(signature.len() == 32 && signature.bytes().all(|byte| byte.is_ascii_hexdigit()), "{value}");
    assert!(!header("").contains("signature="));
}

/// Whatever an MTA does not offer, mail is judged. Sendmail 8.13 uses version 2, Postfix up to 6.
#[test]
fn mtas_that_offer_little() {
    let site = Site::new("");
    let daemon = site.start();
    let cases = [
        (6, ALL_ACTIONS, ALL_OPTIONS),
        (6, ALL_ACTIONS & !REQUEST_MACROS, ALL_OPTIONS),
        (
            6,
            ALL_ACTIONS,
            ALL_OPTIONS & !(NOREPLY_CONNECT | NOREPLY_MAIL | NOREPLY_RCPT | NOREPLY_HEADER | NOREPLY_BODY),
        ),
        (6, ALL_ACTIONS, 0x7F),
        (6, ADD_HEADER, ALL_OPTIONS),
        (6, ALL_ACTIONS & !(CHANGE_HEADER | QUARANTINE), ALL_OPTIONS),
        (4, 0x3F, 0x3FF),
        (3, 0x3F, 0x1FF),
        (2, 0x1F, 0x7F),
        (2, 0, 0),
    ];
    for (i, (version, actions, options)) in cases.into_iter().enumerate() {
        let mut client = Client::open(&daemon);
        // An MTA that offers nothing is assumed to support the least, as by libmilter; so its answer is not held against it.
        if options == 0 {
            client.send(b'O', &[version, actions, options].map(u32::to_be_bytes).concat());
            let (kind, payload) = client.receive().unwrap();
            assert_eq!((kind, &payload[4..8]), (b'O', &ADD_HEADER.to_be_bytes()[..]), "case {i}");
            client.version = version;
            client.options = u32::from_be_bytes(payload[8..12].try_into().unwrap());
        } else {
            client.negotiate(version, actions, options);
            assert_eq!(client.version, version);
            assert_eq!(client.macros.is_empty(), actions & REQUEST_MACROS == 0, "case {i}");
        }
        client.client("client.example.org", CLIENT);
        let mut mail = Mail::text(&format!("case {i}"));
        mail.headers.push((b"x-bulkmark".to_vec(), b"bulk; body=99".to_vec()));
        for count in 1..=2 {
            let answer = client.message(&mail);
            assert_eq!(answer.reply, "c", "case {i}");
            assert_eq!(
                answer.verdict(),
                format!("clean; body={count}; threshold=20; host=mx.test"),
                "case {i}"
            );
            let may_remove = options != 0 && actions & CHANGE_HEADER != 0;
            assert_eq!(answer.removed.len(), usize::from(may_remove), "case {i}");
        }
    }
    // Without the right to add a header none is added, and mail passes.
    let mut client = Client::negotiated(&daemon, 6, CHANGE_HEADER, ALL_OPTIONS);
    client.client("client.example.org", CLIENT);
    assert_eq!(
        client.message(&Mail::text("no header")),
        Answer { reply: "c".to_owned(), ..Answer::default() }
    );
    daemon.log.wait_for(0, "the MTA does not let this milter add headers");
}

/// An unknown protocol version ends the connection, and nothing else.
#[test]
fn an_impossible_version_is_refused() {
    let site = Site::new("");
    let daemon = site.start();
    let mut client = Client::open(&daemon);
    client.send(b'O', &[1, ALL_ACTIONS, ALL_OPTIONS].map(u32::to_be_bytes).concat());
    assert!(client.is_closed());
    assert!(verdict_of(&mut session(&daemon), "after").starts_with("clean; body=1"));
}

/// On a socket without record boundaries, bytes that arrive in one read were written at once or nearly so: header and final reply, and
/// the removal of a forged header, if any.
#[test]
fn the_answer_comes_in_one_write() {
    let site = Site::unix("");
    let daemon = site.start();
    let mut client = session(&daemon);
    for forged in [false, true] {
        let mut mail = Mail::text("one write");
        if forged {
            mail.headers.push((b"X-Bulkmark".to_vec(), b"clean".to_vec()));
        }
        client.begin(&mail);
        client.send(b'E', b"");
        let answer = client.read_once();
        let mut kinds = Vec::new();
        let mut rest = &answer[..];
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            kinds.push(char::from(after[0]));
            rest = &after[u32::from_be_bytes(*length) as usize..];
        }
        assert_eq!(kinds, if forged { vec!['m', 'h', 'c'] } else { vec!['h', 'c'] });
    }
}

/// Forged fields beyond the number that is removed stay below ours, and disable nothing: the message is counted and judged.
#[test]
fn more_forged_fields_than_are_removed() {
    let forged = |n: usize| {
        let mut mail = Mail::text("forged");
        mail.headers.extend((0..n).map(|_| (b"x-bulkmark".to_vec(), b"clean; body=1".to_vec())));
        mail
    };
    let ours = |text: &str| vec![("X-Bulkmark".to_owned(), format!("{text}; host=mx.test"))];
    let site = Site::new("exempt-networks = [\"198.51.100.0/24\"]\n");
    let daemon = site.start();
    let mut client = session(&daemon);
    let answer = client.message(&forged(1000));
    assert_eq!((answer.removed.len(), answer.inserted.len()), (1000, 0));
    assert!(answer.verdict().starts_with("clean; body=1;"));
    for (count, fields) in [(2, 1001), (3, 20_000)] {
        let answer = client.message(&forged(fields));
        assert!(answer.inserted[0].1.starts_with(&format!("clean; body={count};")), "{answer:?}");
        let removed: Vec<_> = answer.removed.iter().map(|(index, _)| *index).collect();
        assert_eq!(removed, (1..=1000).rev().collect::<Vec<_>>());
        assert_eq!((answer.added.len(), &*answer.reply), (0, "c"));
        daemon.log.wait_for(0, &format!("it came with {fields} header fields of the name X-Bulkmark"));
    }
    assert_eq!(client.message(&Mail::text("forged")).count(), Some(4));
    // A message that is not judged anyway is marked at the top, too; but a mark from our own network stays as it is.
    client.macros(b'C', &[("{auth_authen}", "somebody")]);
    assert_eq!(client.message(&forged(1001)).inserted, ours("exempt; reason=authenticated"));
    let mut own = Client::connect(&daemon);
    own.client("relay.example.org", "198.51.100.7");
    let answer = own.message(&forged(1001));
    assert_eq!((answer.added, answer.removed.len()), (ours("exempt; reason=network"), 0));
    drop(daemon);

    // Nor do they prevent a refusal of bulk.
    let site = Site::new("on-failure = \"tempfail\"\n[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n");
    let daemon = site.start();
    assert_eq!(session(&daemon).message(&forged(1001)).reply, "c");
    assert!(session(&daemon).message(&forged(1001)).reply.starts_with("550 "));
}

/// Twelve short messages with one picture, attached twice, count as twelve.
#[test]
fn one_file_attached_twice_is_reported_once() {
    let site = Site::new("");
    let daemon = site.start();
    let mut client = session(&daemon);
    let picture: String = (0..3000u32).map(|i| char::from(b'a' + (i * i / 7 % 26) as u8)).collect();
    let part = format!("--b\r\nContent-Type: image/gif\r\n\r\n{picture}\r\n");
    let raw = format!(
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nbuy now\r\n{part}{part}--b--\r\n"
    );
    let headers: Vec<_> =
        (0..12).map(|_| client.message(&Mail::raw(raw.as_bytes())).header().to_owned()).collect();
    assert_eq!(headers[11], "clean; body=12; near=12; threshold=20; host=mx.test", "{headers:?}");
}

/// The negotiation drops all answers but those to DATA and to the end of a message: a message waits for one round trip each.
#[test]
fn stages_are_not_answered_where_the_mta_can_do_without() {
    let site = Site::new("");
    let daemon = site.start();
    let client = Client::connect(&daemon);
    for option in [NOREPLY_CONNECT, NOREPLY_MAIL, NOREPLY_RCPT, NOREPLY_HEADER, NOREPLY_BODY] {
        assert_ne!(client.options & option, 0, "{option:#x}");
    }
}

#[test]
fn messages_of_one_connection_are_apart() {
    let site = Site::new("");
    let daemon = site.start();
    let mut client = session(&daemon);
    assert!(verdict_of(&mut client, "first").starts_with("clean; body=1;"));
    assert!(verdict_of(&mut client, "second").starts_with("clean; body=1;"));
    assert!(verdict_of(&mut client, "first").starts_with("clean; body=2;"));

    // An aborted message leaves no trace, at any stage.
    for stages in 1..=3 {
        client.send(b'M', b"<a@example.org>\0");
        client.send(b'R', b"<b@example.org>\0");
        if stages > 1 {
            client.stage(b'T', b"", 0);
            client.send(b'L', b"X-Bulkmark\0bulk\0");
        }
        if stages > 2 {
            client.stage(b'N', b"", client.options & 0x4_0000);
            client.send(b'B', &Mail::text("first").body);
        }
        client.send(b'A', b"");
        let answer = client.message(&Mail::text("first"));
        assert_eq!((answer.count(), answer.removed.len()), (Some(2 + stages), 0));
    }
}

/// MTAs report recipients that they refuse themselves only on request; recipients that were never reported do not count.
#[test]
fn each_accepted_recipient_is_one_report() {
    let site = Site::new("");
    let daemon = site.start();
    let mut client = session(&daemon);
    let mut mail = Mail::text("to three");
    mail.recipients = ["a", "b", "c"].map(|user| format!("{user}@example.net")).to_vec();
    assert_eq!(client.message(&mail).count(), Some(3));
    mail.recipients.truncate(1);
    assert_eq!(client.message(&mail).count(), Some(4));
    // A transaction begins and is aborted, with all recipients refused.
    client.send(b'M', b"<a@example.org>\0");
    client.send(b'A', b"");
    assert_eq!(client.message(&mail).count(), Some(5));
    assert_eq!(client.options & 0x800, 0, "refused recipients are not asked for");
}

/// Unrequested macros, in unknown stages, with odd values.
#[test]
fn unknown_macros_are_ignored() {
    let site = Site::new("");
    let daemon = site.start();
    let mut client = session(&daemon);
    client.macros(b'C', &[("j", "mx.elsewhere"), ("{daemon_name}", ""), ("", "")]);
    client.send(b'D', b"Mlonely\0");
    client.send(b'D', b"Zx\0y\0");
    client.macros(b'M', &[("{auth_type}", ""), ("{mail_addr}", "a%s\n\u{1b}[31m"), ("odd", "")]);
    client.macros(b'E', &[("i", "QUEUE%ID\r\nforged: line")]);
    assert!(verdict_of(&mut client, "macros").starts_with("clean; body=1;"));
    let line = daemon.log.wait_for(0, "verdict=clean");
    assert!(
        !line.contains('\u{1b}') && !daemon.log.lines().iter().any(|l| l.starts_with("forged")),
        "{line}"
    );
    // Macros of a stage replace earlier ones.
    client.send(b'D', b"Mi\x004TEST\0{auth_authen}\0somebody\0");
    client.send(b'M', b"<a@example.org>\0");
    client.macros(b'R', &[("{rcpt_addr}", "b")]);
    client.send(b'R', b"<b@example.org>\0");
    assert_eq!(client.end().verdict(), "exempt; reason=authenticated; host=mx.test");
    assert!(verdict_of(&mut client, "macros").starts_with("clean; body=2;"));
}

/// A message without a single header field, or without a body, is legal on the wire: anybody can send one to Postfix,
/// which then waits for the answer.
#[test]
fn messages_without_header_or_body_are_answered() {
    let site = Site::new("");
    let daemon = site.start();
    let body = Mail::text("no header fields at all");
    for options in [ALL_OPTIONS, ALL_OPTIONS & !0x40, ALL_OPTIONS & !0x4_0000] {
        let mut client = Client::negotiated(&daemon, 6, ALL_ACTIONS, options);
        client.client("client.example.org", CLIENT);
        let mut mail = body.clone();
        mail.body.clear();
        assert_eq!(client.message(&mail).verdict(), "exempt; reason=low-information; host=mx.test");
        mail.headers.clear();
        assert_eq!(client.message(&mail).verdict(), "exempt; reason=low-information; host=mx.test");
        mail.body.clone_from(&body.body);
        assert!(client.message(&mail).verdict().starts_with("clean; body="));
    }
}

/// The last piece of a body may come with the end of the message.
#[test]
fn the_end_of_a_message_may_carry_body() {
    let site = Site::new("");
    let daemon = site.start();
    for options in [ALL_OPTIONS, ALL_OPTIONS & !NOREPLY_BODY] {
        let mut client = Client::negotiated(&daemon, 6, ALL_ACTIONS, options);
        client.client("client.example.org", CLIENT);
        let mail = Mail::text("all of it in the end");
        let whole = client.message(&mail).count().unwrap();
        client.begin(&Mail { body: Vec::new(), ..mail.clone() });
        client.send(b'E', &mail.body);
        let kinds: Vec<u8> = std::iter::from_fn(|| client.receive().map(|(kind, _)| kind))
            .take_while(|kind| *kind != b'c')
            .collect();
        assert_eq!(kinds, b"h");
        assert_eq!(client.message(&mail).count(), Some(whole + 2));
    }
}

/// Connections above the limit wait in the queue of the socket and are served when others end.
#[test]
fn connections_beyond_the_bound_wait() {
    let site = Site::new("max-connections = 2\nidle-timeout = \"1h\"\n");
    let daemon = site.start();
    let (mut first, second) = (session(&daemon), session(&daemon));
    let mut third = TcpStream::connect(daemon.tcp()).unwrap();
    let offer = [6, ALL_ACTIONS, ALL_OPTIONS].map(u32::to_be_bytes).concat();
    third.write_all(&[&[0, 0, 0, 13, b'O'][..], &offer].concat()).unwrap();
    // It waits in the queue, with its bytes, before these: once all of them have their answers, there was time for it.
    for n in 1..=100 {
        assert_eq!(first.message(&Mail::text("meanwhile")).count(), Some(n));
    }
    third.set_nonblocking(true).unwrap();
    let nothing = third.peek(&mut [0]).map_err(|e| e.kind());
    assert_eq!(nothing, Err(ErrorKind::WouldBlock), "a third connection was served");
    drop(second);
    third.set_nonblocking(false).unwrap();
    third.set_read_timeout(Some(bulkmark_testing::PATIENCE)).unwrap();
    let mut answer = [0; 5];
    third.read_exact(&mut answer).unwrap();
    assert_eq!(answer[4], b'O');
}

/// The same with a client from another project.
#[tokio::test]
async fn an_independent_client_agrees() {
    let site = Site::new("");
    let daemon = site.start();
    let mut connection = TestConnection::configure()
        .available_actions(Actions::all())
        .available_opts(ProtoOpts::all())
        .open_tcp(daemon.tcp())
        .await
        .unwrap();
    assert!(connection.negotiated_actions().contains(Actions::ADD_HEADER));
    assert!(connection.requested_macros().contains_key(&MacroStage::Mail));
    let socket: std::net::SocketAddr = "192.0.2.7:25".parse().unwrap();
    assert_eq!(
        connection.connect("client.example.org", SocketInfo::Inet(socket)).await.unwrap(),
        Status::Noreply
    );
    for count in 1..=2 {
        connection.macros(MacroStage::Mail, [("i", "4TEST")]).await.unwrap();
        assert_eq!(connection.mail(["<a@example.org>"]).await.unwrap(), Status::Noreply);
        assert_eq!(connection.rcpt(["<b@example.org>"]).await.unwrap(), Status::Noreply);
        assert_eq!(connection.data().await.unwrap(), Status::Continue);
        connection.header("Subject", "s").await.unwrap();
        if !connection.negotiated_opts().contains(ProtoOpts::NO_EOH) {
            connection.eoh().await.unwrap();
        }
        connection.body("A body of more than twenty words, so many that it is no formula that many people write, and none of them is odd or new.\r\n").await.unwrap();
        let (actions, status) = connection.eom().await.unwrap();
        assert_eq!(status, Status::Continue);
        let value = format!("clean; body={count}; near={count}; threshold=20; host=mx.test");
        assert!(actions.has_add_header("X-Bulkmark", value.as_str()), "{actions:?}");
    }
    connection.close().await.unwrap();
}
