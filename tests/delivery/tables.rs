// SPDX-License-Identifier: GPL-3.0-or-later
//! White lists from a site's existing data: files that change, tables of Postfix's own postmap, and lookup servers.

use crate::AT_ONCE;
use bulkmark_testing::mta::{Kind, free_port};
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::{skip, text_of, wait_for_some};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A site on which bulk is refused at once, unless `list` wants it; with more keys before all tables.
fn site(list: impl FnOnce(&Rig) -> String, more: &str) -> Option<Rig> {
    let mut site = Rig::tcp_site("");
    let file = site.path("list");
    std::fs::write(&file, "").unwrap();
    site.extra = format!(
        "{more}{AT_ONCE}[actions]\nbulk = \"reject\"\n[whitelist]\nfiles = [\"{}\"]\n",
        file.display()
    );
    let mut rig = Rig::start_with(Kind::Postfix, site, &[])?;
    let text = list(&rig);
    rig.write("list", &text);
    let extra = rig.site.extra.clone();
    rig.reload(&extra);
    Some(rig)
}

/// The reply code for a copy to this recipient.
fn code(rig: &Rig, sender: &str, recipient: &str) -> u16 {
    rig.outside().send(sender, &[recipient], &message("", NEWS)).code
}

#[test]
fn a_list_that_changes_is_read_again() {
    let with_include = |rig: &Rig| {
        rig.write("more", "sender b@x.example\n");
        "include more\n".to_owned()
    };
    let Some(rig) = site(with_include, "") else { return };
    assert_eq!(code(&rig, "b@x.example", "a@box.test"), 250);
    assert_eq!(code(&rig, "c@x.example", "a@box.test"), 550);
    rig.write("more", "sender c@x.example\n");
    wait_for_some("the new line", || (code(&rig, "c@x.example", "a@box.test") == 250).then_some(()));
    assert_eq!(code(&rig, "b@x.example", "a@box.test"), 550);
    let told = rig.daemon.log.lines().len();
    rig.write("more", "nonsense\n");
    rig.daemon.log.wait_for(told, "more:1: found \"nonsense\"");
    assert_eq!(code(&rig, "c@x.example", "a@box.test"), 250);
}

/// Whether Postfix has this type of table.
fn has(kind: &str) -> bool {
    let types = Command::new("postconf").arg("-m").output().map(|out| String::from_utf8(out.stdout).unwrap());
    let has = types.is_ok_and(|types| types.lines().any(|line| line == kind));
    if !has {
        skip(&format!("Postfix has no tables of type {kind}; run tests/mta/install as root"));
    }
    has
}

const TABLE: &str = "news@wanted.example OK\nwhole.example OK\n.below.example OK\neditor@ OK\nno@whole.example REJECT\nüber.example OK\n";

/// Makes the table `wanted` from `text`.
fn postmap(rig: &Rig, kind: &str, text: &str) -> String {
    let path = rig.write("wanted", text);
    let table = format!("{kind}:{path}");
    // This test's own Postfix: its main.cf mentions no tables.
    let made = Command::new("postmap").arg("-c").arg(rig.mta.path("etc")).arg(&table).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    table
}

fn postmaps_tables_are_read(kind: &str) {
    if !has(kind) {
        return;
    }
    // Enough for several pages, with branches above them.
    let many: String =
        (0..3000).map(|n| format!("user{n}@many.example OK with a value that takes some room\n")).collect();
    let punycode = TABLE.replace("über", "xn--ber-goa") + &many;
    let Some(rig) = site(|rig| format!("sender {}\n", postmap(rig, kind, &punycode)), "") else { return };
    let wanted = [
        "news@wanted.example",
        "News@Wanted.Example",
        "any@whole.example",
        "a@b.below.example",
        "editor@x.example",
    ];
    for sender in wanted.iter().chain(&[
        "user0@many.example",
        "user1500@many.example",
        "user2999@many.example",
        "a@xn--ber-goa.example",
    ]) {
        assert_eq!(code(&rig, sender, "a@box.test"), 250, "{sender}");
    }
    for sender in [
        "other@wanted.example",
        "no@whole.example",
        "a@b.whole.example",
        "user3000@many.example",
        "editor.example@x.example",
    ] {
        assert_eq!(code(&rig, sender, "a@box.test"), 550, "{sender}");
    }
    let told = rig.daemon.log.lines().len();
    postmap(&rig, kind, "other@wanted.example OK\n");
    rig.daemon.log.wait_for(told, "a white list was read again");
    // It may have been read while postmap was at work, and is then read once more.
    wait_for_some("the sender", || (code(&rig, "other@wanted.example", "a@box.test") == 250).then_some(()));
}

#[test]
fn cdb() {
    postmaps_tables_are_read("cdb");
}

#[test]
fn lmdb() {
    postmaps_tables_are_read("lmdb");
}

/// A server of a table with these keys, until the test ends; counts its requests.
fn serve(
    port: u16,
    answer: impl Fn(&mut BufReader<TcpStream>) -> Option<String> + Send + Sync + 'static,
) -> Arc<AtomicUsize> {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, answer) = (Arc::clone(&asked), Arc::new(answer));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (count, answer) = (Arc::clone(&count), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                while let Some(reply) = answer(&mut stream) {
                    count.fetch_add(1, Ordering::Relaxed);
                    stream.get_mut().write_all(reply.as_bytes()).unwrap();
                }
            });
        }
    });
    asked
}

/// A request of a socketmap.
fn netstring(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = Vec::new();
    stream.read_until(b':', &mut length).ok().filter(|&read| read > 0)?;
    let length: usize = std::str::from_utf8(&length).unwrap().trim_end_matches(':').parse().unwrap();
    let mut text = vec![0; length + 1];
    stream.read_exact(&mut text).unwrap();
    Some(String::from_utf8(text).unwrap().trim_end_matches(',').to_owned())
}

#[test]
fn a_socketmap_is_asked_of_bulk() {
    let port = free_port();
    let asked = serve(port, |stream| {
        let reply = match &*netstring(stream)? {
            "wanted anna@box.test" => "OK yes",
            "wanted news@wanted.example" => "OK",
            "wanted gone@wanted.example" => "OK REJECT",
            _ => "NOTFOUND ",
        };
        Some(format!("{}:{reply},", reply.len()))
    });
    let table = format!("socketmap:inet:127.0.0.1:{port}:wanted");
    let Some(rig) = site(|_| format!("sender {table}\nrecipient {table}\n"), "") else { return };
    assert_eq!(code(&rig, "news@wanted.example", "b@box.test"), 250);
    assert_eq!(code(&rig, "gone@wanted.example", "b@box.test"), 550);
    assert_eq!(code(&rig, "news@other.example", "b@box.test"), 550);
    assert_eq!(code(&rig, "news@other.example", "Anna+news@box.test"), 250);
    let before = asked.load(Ordering::Relaxed);
    // For a message that is not bulk, no server is asked.
    rig.send("b@box.test", &message("", "thanks\n")).expect(250);
    assert_eq!(asked.load(Ordering::Relaxed), before);
}

/// Bulk is not refused while the table does not answer, unless configured.
#[test]
fn a_table_that_does_not_answer_refuses_nothing() {
    let port = free_port();
    let table = format!("tcp:127.0.0.1:{port}");
    let list = |_: &Rig| format!("sender {table}\n");
    let Some(mut rig) = site(list, "verdict-deadline = \"20s\"\n") else { return };
    assert_eq!(code(&rig, "a@x.example", "a@box.test"), 250);
    assert!(rig.mta.wait_for_mail("a@box.test", 1)[0].verdict().starts_with("bulk; body=1; "));
    rig.daemon.log.wait_for(
        0,
        &format!("bulk is only marked, since a table of the white list did not answer: {table}: "),
    );
    // A server that accepts connections and sends nothing.
    let silent = TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert_eq!(code(&rig, "a@x.example", "b@box.test"), 250);
    rig.daemon.log.wait_for(0, "no answer within 4 s");
    let extra = "act-despite = [\"stale\", \"unanswered\"]\n".to_owned() + &rig.site.extra;
    rig.reload(&extra);
    assert_eq!(code(&rig, "a@x.example", "c@box.test"), 550);
    drop(silent);
    // It returns, and answers.
    let extra = rig.site.extra.replace("20s", "4m");
    rig.reload(&extra);
    serve(port, |stream| {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|&read| read > 0)?;
        Some(if line == "get a@x.example\n" { "200 OK\n".to_owned() } else { "500 none\n".to_owned() })
    });
    assert_eq!(code(&rig, "a@x.example", "d@box.test"), 250);
    assert_eq!(code(&rig, "b@x.example", "d@box.test"), 550);
}

/// The script of docs/postfix.md, which Postfix runs for a table that only it can read.
#[test]
fn postfix_answers_for_its_own_tables() {
    let guide = text_of("docs/postfix.md");
    let script = guide.split_once("```sh\n").unwrap().1.split_once("```").unwrap().0;
    let line = guide.lines().find(|line| line.contains(" spawn ")).unwrap().trim();
    let port = free_port();
    let Some(rig) = site(|_| format!("sender tcp:127.0.0.1:{port}\n"), "") else {
        return;
    };
    let table = rig.write("wanted.txt", "news@wanted.example OK\nwhole.example OK\n");
    let script = script.replace("mysql:/etc/postfix/wanted.cf", &format!("texthash:{table}"));
    let program = rig.write(
        "wanted",
        &script.replace("postmap -q", &format!("postmap -c {} -q", rig.mta.path("etc").display())),
    );
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let service = line.replace("10040", &port.to_string()).replace("/usr/local/bin/wanted", &program);
    let etc = rig.mta.path("etc");
    let name = format!("127.0.0.1:{port}/inet={service}");
    for (program, arguments) in [("postconf", ["-M", &*name]), ("postfix", ["", "reload"])] {
        let arguments = arguments.iter().filter(|argument| !argument.is_empty());
        let done = Command::new(program).arg("-c").arg(&etc).args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    wait_for_some("the table", || TcpStream::connect(("127.0.0.1", port)).ok());
    assert_eq!(code(&rig, "news@wanted.example", "a@box.test"), 250);
    assert_eq!(code(&rig, "any@whole.example", "a@box.test"), 250);
    assert_eq!(code(&rig, "news@other.example", "a@box.test"), 550);
    // Postfix cannot read it any more, so its entries are unknown.
    std::fs::remove_file(&table).unwrap();
    assert_eq!(code(&rig, "news@other.example", "b@box.test"), 250);
    rig.daemon.log.wait_for(0, "400 the table does not answer");
}
