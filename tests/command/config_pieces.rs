// SPDX-License-Identifier: GPL-3.0-or-later
//! A configuration in pieces: which piece overrides which, what `bulkmark config show` prints, and that a reload reads them.

use bulkmark::config::{self, Kind};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::{Site, text_of};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn show(args: &[&str]) -> Output {
    Command::new(bulkmark_testing::program()).args(["config", "show"]).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn conf(name: &str) -> String {
    text_of(&format!("conf/{name}"))
}

/// The running milter applies a piece at a reload, refuses an invalid one by its own name, and goes back when it is removed.
#[test]
fn a_reload_reads_the_pieces() {
    let site = Site::new("[thresholds]\nnear = 5\n");
    fs::create_dir(site.path("milter.d")).unwrap();
    let piece = site.path("milter.d/50-thresholds.toml");
    fs::write(&piece, "[thresholds]\nbody = 2\n").unwrap();
    let daemon = site.start();
    let mut client = session(&daemon);
    let mail = Mail::text("A letter of more than eight words that is sent so often that it becomes bulk.\n");
    let mut verdict = || client.message(&mail).header().split("; host").next().unwrap().to_owned();
    assert!(verdict().contains("clean; body=1;"));
    assert!(verdict().contains("bulk; body=2;"));

    fs::write(&piece, "[thresholds]\nbody = 0\n").unwrap();
    let told = daemon.reload();
    let place = format!("{}:2:8: thresholds.body: ", piece.display());
    assert!(told.contains(&place) && told.contains("stays in force"), "{told}");
    drop(client);

    fs::remove_file(&piece).unwrap();
    assert!(daemon.reload().contains("read again"));
    let mut client = session(&daemon);
    assert!(client.message(&mail).header().contains("clean; body=3;"));
}

/// A configuration with one piece, in its own directory.
struct Case {
    directory: tempfile::TempDir,
    kind: Kind,
    name: &'static str,
}

impl Case {
    fn both() -> [Self; 2] {
        [(Kind::Milter, "milter.toml"), (Kind::Server, "server.toml")].map(|(kind, name)| {
            let case = Self { directory: tempfile::tempdir().unwrap(), kind, name };
            let first = if kind == Kind::Milter { "hostname = \"mx.example.org\"\n" } else { "\n" };
            fs::write(case.path(), format!("{first}[log]\nlevel = \"warn\"\n[ledger]\nwindow = \"6h\"\n"))
                .unwrap();
            fs::create_dir(config::pieces_directory(&case.path())).unwrap();
            fs::write(case.piece(), "[ledger]\ncapacity = 1_000_000\n\nwindow = \"12h\"\n").unwrap();
            case
        })
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(self.name)
    }

    fn piece(&self) -> PathBuf {
        config::pieces_directory(&self.path()).join("local.toml")
    }

    /// The output of `config show` with this option.
    fn shown(&self, option: &str) -> String {
        let path = self.path();
        let args: Vec<_> =
            [option, path.to_str().unwrap()].into_iter().filter(|arg| !arg.is_empty()).collect();
        let output = show(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    }
}

/// The output names the origin of each value, is a configuration itself, and that one is in force.
#[test]
fn what_is_shown_is_what_is_in_force() {
    for case in Case::both() {
        let (told, path, piece) = (case.shown(""), case.path(), case.piece());
        assert!(told.starts_with(&format!("# {}\n# and over it {}\n", path.display(), piece.display())));
        let of_ledger_and_below = &told[told.find("[ledger]").unwrap()..];
        let line = |key: &str| {
            let found =
                of_ledger_and_below.lines().find(|line| line.trim_start_matches("# ").starts_with(key));
            found
                .unwrap_or_else(|| panic!("no {key} in {told}"))
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(line("retention ="), "retention = \"7d\" # default");
        assert_eq!(line("level ="), format!("level = \"warn\" # {}:3", path.display()));
        assert_eq!(line("window ="), format!("window = \"12h\" # {}:4", piece.display()));
        assert_eq!(line("capacity ="), format!("capacity = 1000000 # {}:2", piece.display()));
        let replaced = format!("# replaces \"6h\" of {}:5\n", path.display());
        assert_eq!(told.matches(&replaced).count(), 1, "{told}");
        let key = "ledger.federation-key-file is not set";
        assert_eq!(line(key), format!("# {key}"));
        let shown = case.directory.path().join(format!("shown-{}", case.name));
        fs::write(&shown, &told).unwrap();
        match case.kind {
            Kind::Milter | Kind::Interfaces => {
                assert_eq!(config::load(&shown).unwrap().file, config::load(&path).unwrap().file);
            }
            Kind::Server => {
                assert_eq!(config::load_server(&shown).unwrap().0, config::load_server(&path).unwrap().0);
            }
        }
    }
}

#[test]
fn only_what_was_changed_is_shown() {
    for case in Case::both() {
        let told = case.shown("--changed");
        let lines = told.lines().filter(|line| !line.starts_with('#'));
        let keys: Vec<_> = lines.filter_map(|line| line.split_once(" = ")).map(|(key, _)| key).collect();
        let expected = match case.kind {
            Kind::Milter | Kind::Interfaces => &["hostname", "window", "level"][..],
            Kind::Server => &["window", "level"],
        };
        assert_eq!(keys, expected, "{told}");
    }
}

/// Every key of the example is there, set or not.
#[test]
fn all_keys_are_shown() {
    for case in Case::both() {
        let all: serde_json::Value = serde_json::from_str(&case.shown("--json")).unwrap();
        let settings = all["settings"].as_array().unwrap();
        let window = settings.iter().find(|setting| setting["key"] == "ledger.window").unwrap();
        let expected = serde_json::json!(
            { "key": "ledger.window", "value": "12h", "file": case.piece(), "line": 4, "default": false,
              "replaces": [{ "value": "6h", "file": case.path(), "line": 5 }] }
        );
        assert_eq!(*window, expected);
        let example = conf(case.name);
        // The keys of a policy are absent until there is one.
        let mut is_of_policy = false;
        let names = example.lines().filter_map(|line| {
            is_of_policy = line.starts_with("#[[") || is_of_policy && line.starts_with('#');
            let (key, _) = line.strip_prefix('#').unwrap_or(line).split_once(" = ")?;
            let is_key = key.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            (is_key && !is_of_policy).then_some(key)
        });
        let names: Vec<_> = names.collect();
        assert!(names.len() > 15, "{names:?}");
        let has = |name: &str| {
            settings
                .iter()
                .any(|setting| setting["key"].as_str().unwrap().split('.').any(|part| part == name))
        };
        let missing: Vec<_> = names.iter().filter(|name| !has(name)).collect();
        assert!(missing.is_empty(), "{missing:?} are not shown");
    }
}

/// Four guides, each of which sets `listen` or the white list's files in its own piece: all of it is in force, and if two set a key to
/// different values, `config check` names both files.
#[test]
fn pieces_of_several_guides_go_together() {
    let site = Site::new("[whitelist]\nfiles = []\n");
    let config = site.config();
    fs::create_dir(site.path("milter.d")).unwrap();
    let lists = ["a", "b"].map(|name| site.path(name));
    lists.iter().for_each(|list| fs::write(list, "from friend.example\n").unwrap());
    let of_list = |n: usize| format!("[whitelist]\nfiles = [\"{}\"]\n", lists[n].display());
    let piece = |name: &str, text: &str| {
        let path = site.path("milter.d").join(name);
        fs::write(&path, text).unwrap();
        path
    };
    piece("inside.toml", "[listen.inside]\nat = \"inet:127.0.0.1:1\"\n");
    let first = piece("local.toml", &format!("{}[actions]\nbulk = \"reject\"\n", of_list(0)));
    piece(
        "outbound.toml",
        "[listen.outbound]\nat = \"inet:127.0.0.1:2\"\n[outbound.match]\nlistener = \"outbound\"\n",
    );
    piece("traps.toml", &of_list(1));
    let check = || {
        let output = Command::new(bulkmark_testing::program())
            .args(["config", "check"])
            .arg(&config)
            .output()
            .unwrap();
        (output.status.code(), text(&output.stderr).to_owned())
    };
    let (code, told) = check();
    assert!(code == Some(0) && !told.contains("replaces"), "{told}");
    let file = config::load(&config).unwrap().file;
    assert_eq!((file.listen.0.len(), file.whitelist.files), (3, lists.to_vec()));
    let shown = show(&[config.to_str().unwrap()]);
    let from = format!("# {}:2, {}:2\n", first.display(), site.path("milter.d/traps.toml").display());
    assert!(text(&shown.stdout).contains(&from), "{}", text(&shown.stdout));
    let last = piece("policies.toml", "[actions]\nbulk = \"mark\"\n");
    let (code, told) = check();
    let expected = format!(
        "warning: {}:2:8: actions.bulk: this replaces \"reject\", which {}:4 says",
        last.display(),
        first.display()
    );
    assert!(code == Some(0) && told.contains(&expected), "{told}");
    fs::remove_file(last).unwrap();
}

#[test]
fn what_cannot_be_used_is_not_shown() {
    let site = Site::new("");
    let config = site.config();
    fs::create_dir(site.path("milter.d")).unwrap();
    fs::write(site.path("milter.d/a.toml"), "listn = 1\n").unwrap();
    let output = show(&[config.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(78), ""));
    let expected = format!("bulkmark: {}:1:1: listn: unknown key", site.path("milter.d/a.toml").display());
    assert!(text(&output.stderr).starts_with(&expected), "{}", text(&output.stderr));
    // A key that belongs with another one is reported at its place in the file.
    fs::write(site.path("milter.d/a.toml"), "\n[ledger]\nretention = \"5h\"\n").unwrap();
    let output = show(&[config.to_str().unwrap()]);
    let expected = format!("bulkmark: {}:3:13: ledger.retention: ", site.path("milter.d/a.toml").display());
    assert!(text(&output.stderr).starts_with(&expected), "{}", text(&output.stderr));
}

/// A second instance has its own file, with its own pieces beside it.
#[test]
fn another_file_has_other_pieces() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for (name, body) in [("milter.d", 5), ("outbound.d", 7)] {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("a.toml"), format!("thresholds.body = {body}\n")).unwrap();
    }
    for (name, body) in [("milter.toml", 5), ("outbound.toml", 7), ("other.toml", 20)] {
        fs::write(path(name), "").unwrap();
        assert_eq!(config::load(&path(name)).unwrap().file.thresholds.body.get(), body, "{name}");
    }
}
