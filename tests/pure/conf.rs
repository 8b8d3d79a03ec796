// SPDX-License-Identifier: GPL-3.0-or-later
//! The example configuration and the documents against the types that read configurations.

use bulkmark::config::{self, ConfigError, MilterFile, ServerFile};
use bulkmark_testing::repository;
use std::fs;
use std::path::Path;

/// A name that no table has.
const NOBODY: &str = "0";

/// A configuration file, and the function that reads it.
struct File {
    name: &'static str,
    /// The most keys; docs/decisions/keys.md has the reasons.
    most_keys: usize,
    load: fn(&Path) -> Result<(), ConfigError>,
}

const FILES: [File; 2] = [
    File { name: "milter.toml", most_keys: 89, load: |path| config::load(path).map(drop) },
    File { name: "server.toml", most_keys: 34, load: |path| config::load_server(path).map(drop) },
];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

impl File {
    fn example(&self) -> String {
        read(&repository().join("conf").join(self.name))
    }

    /// The reference version of the file.
    fn reference(&self) -> String {
        read(&repository().join("conf/reference").join(self.name))
    }

    /// The known keys of the place in `text` that sets an unknown one; none if that place has no keys.
    fn ask(&self, text: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(self.name);
        fs::write(&path, text).unwrap();
        let error = (self.load)(&path).expect_err("an unknown key was taken").to_string();
        let first_line = error.lines().next().unwrap_or_default();
        let Some((_, names)) = first_line.split_once(": unknown key, expected ") else { return Vec::new() };
        names.trim_start_matches("one of ").split(", ").map(str::to_owned).collect()
    }

    /// All keys that the types know, with their tables: `ledger.window`. Each table is asked for an unknown key: the error lists the known
    /// ones.
    fn known_keys(&self) -> Vec<String> {
        let (mut keys, shown) = (Vec::new(), self.example_keys());
        let mut waiting = self.ask(&format!("{NOBODY} = 0\n"));
        while let Some(key) = waiting.pop() {
            let below = self.ask(&format!("[{key}]\n{NOBODY} = 0\n"));
            // A key that may be a table, and has a name as its default, is one key.
            if below.is_empty() || shown.contains(&key) {
                keys.push(key);
            } else {
                waiting.extend(below.iter().map(|name| format!("{key}.{name}")));
            }
        }
        keys.sort();
        assert!(
            keys.contains(&"listen".to_owned()) && keys.contains(&"ledger.window".to_owned()),
            "{keys:?}"
        );
        keys
    }

    /// The keys of the example; a key without a default follows a # without a blank, and so does its table.
    fn example_keys(&self) -> Vec<String> {
        let text = self.example();
        let lines = text.lines().map(|line| {
            let commented = line.strip_prefix('#').filter(|rest| {
                let name = rest.split_once(" = ").map_or(*rest, |(key, _)| key);
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b"-[]".contains(&b))
            });
            format!("{}\n", commented.unwrap_or(line))
        });
        let mut keys = Vec::new();
        add_keys(&lines.collect::<String>().parse().unwrap(), "", &mut keys);
        keys.sort();
        keys
    }
}

fn add_keys(table: &toml::Table, prefix: &str, keys: &mut Vec<String>) {
    for (name, value) in table {
        match value.as_table() {
            Some(inner) => add_keys(inner, &format!("{prefix}{name}."), keys),
            None => keys.push(format!("{prefix}{name}")),
        }
    }
}

#[test]
fn the_examples_are_the_defaults() {
    let load = |name| repository().join("conf").join(name);
    let milter = config::load(&load("milter.toml")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(milter.file, MilterFile::default());
    let (server, _) = config::load_server(&load("server.toml")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(server, ServerFile::default());
}

/// `interfaces.toml` is short: it has the differences from a milter's file, and then `[interfaces]`. All of its values are defaults, and its
/// sentences on other keys are true.
#[test]
fn the_example_of_interfaces_has_what_differs() {
    let interfaces = read(&repository().join("conf/interfaces.toml"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("interfaces.toml");
    let load = |text: &str| {
        fs::write(&path, text).unwrap();
        config::load(&path).map(|checked| checked.file).map_err(|e| e.to_string())
    };
    let error = load(&interfaces).expect_err("no interface was wanted");
    assert!(error.contains("interfaces: no interface is configured"), "{error}");
    let open = "listen = \"none\"\n[interfaces.dccifd]\nlisten = \"127.0.0.1:1\"\n";
    let mut shown: toml::Table = interfaces.parse().unwrap();
    shown["interfaces"]["dccifd"]["listen"] = "127.0.0.1:1".into();
    assert_eq!(load(&shown.to_string()), load(open), "what it shows is not the default");
    let default = load(open).unwrap();
    let expected = MilterFile {
        listen: default.listen.clone(),
        control: "/run/bulkmark/interfaces.sock".into(),
        state_dir: "/var/lib/bulkmark/interfaces".into(),
        interfaces: default.interfaces.clone(),
        ..MilterFile::default()
    };
    assert_eq!(default, expected);
    fs::write(&path, open).unwrap();
    let shown = config::settings(&path, config::Kind::Interfaces).unwrap().settings;
    let keys: Vec<_> = shown.iter().map(|setting| &*setting.key).collect();
    let all = FILES[0].known_keys();
    assert_eq!(keys.len(), all.len());
    assert!(all.iter().all(|key| keys.contains(&&**key)));
}

#[test]
fn examples_have_every_key() {
    for file in &FILES {
        assert_eq!(file.example_keys(), file.known_keys(), "conf/{}", file.name);
    }
}

/// A key that does not pay for the time of its readers goes; see docs/decisions/keys.md.
#[test]
fn keys_are_few() {
    let page = read(&repository().join("docs/decisions/keys.md"));
    for file in &FILES {
        let count = file.known_keys().len();
        println!("{}: {count} keys", file.name);
        assert!(count <= file.most_keys, "{}: {count} keys, above {}", file.name, file.most_keys);
        let sentence = format!("{count} in `{}`", file.name);
        assert!(page.contains(&sentence), "docs/decisions/keys.md does not say \"{sentence}\"");
    }
}

#[test]
fn a_key_that_is_gone_is_refused_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    let page = read(&repository().join("docs/decisions/keys.md"));
    let gone: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once(" | "))
        .flat_map(|(keys, _)| keys.split('`').step_by(2).filter(|key| !key.is_empty()))
        .collect();
    assert!(gone.len() > 40, "{gone:?}");
    for key in gone {
        let errors = FILES.each_ref().map(|file| {
            let path = directory.path().join(file.name);
            fs::write(&path, format!("{key} = 0\n")).unwrap();
            (file.load)(&path).expect_err("a key that is gone was taken").to_string()
        });
        let place = format!("toml:1:{}: {key}: unknown key: ", key.rfind('.').map_or(1, |at| at + 2));
        assert!(errors.iter().any(|error| error.contains(&place)), "{key}: {errors:?}");
    }
}

/// Lists of tables, such as `upstream`: the keys of their entries.
#[test]
fn examples_have_every_key_of_entries() {
    let mut found = 0;
    for file in &FILES {
        for key in file.known_keys() {
            for name in file.ask(&format!("{key} = [{{ {NOBODY} = 0 }}]\n")) {
                found += 1;
                let has = file.reference().contains(&format!("{name} = "));
                assert!(has, "conf/reference/{} has no {name}", file.name);
            }
        }
    }
    assert_eq!(
        found, 27,
        "four each of upstream, peer and twice fleet.aggregators, two of listen, six of policy, three of outbound.accounts"
    );
}

#[test]
fn the_white_list_example_is_valid() {
    let text = read(&repository().join("conf/whitelist.example"));
    assert!(
        text.lines().all(|line| line.is_empty() || line.starts_with('#')),
        "all entries are commented out"
    );
    // `#form value` is an entry, `# Text` a comment.
    let entries: String = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        })
        .map(|entry| format!("{entry}\n"))
        .collect();
    // The error of an unknown form names all of them.
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("milter.toml"), format!("[whitelist]\nfiles = [{:?}]\n", path("list"))).unwrap();
    fs::write(path("list"), "nonsense\n").unwrap();
    let error = config::load(&path("milter.toml")).expect_err("an unknown form was taken").to_string();
    let (_, forms) = error.split_once(", expected ").unwrap_or_else(|| panic!("{error}"));
    let forms: Vec<_> = forms.split(", ").flat_map(|form| form.split(" or ")).collect();
    assert!(forms.len() >= 8, "{forms:?}");
    let manual = read(&repository().join("man/bulkmark-whitelist.5"));
    for form in forms {
        assert!(entries.lines().any(|entry| entry.starts_with(&format!("{form} "))), "no example of {form}");
        assert!(manual.contains(&format!(".It Ic {form} ")), "bulkmark-whitelist.5 has no {form}");
    }
    fs::write(path("list"), entries).unwrap();
    fs::write(path("whitelist.local"), "").unwrap();
    config::load(&path("milter.toml")).unwrap_or_else(|e| panic!("{e}"));
}

/// A top-level key below a table by mistake is recognised, whichever it is.
#[test]
fn a_key_below_the_wrong_table_is_told_where_it_belongs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("milter.toml");
    for key in FILES[0].known_keys().iter().filter(|key| !key.contains('.')) {
        fs::write(&path, format!("[counting]\n{key} = 0\n")).unwrap();
        let error = config::load(&path).expect_err("a key in the wrong table was taken").to_string();
        assert!(error.contains(&format!("{key} belongs above the first [table]")), "{error}");
    }
}
