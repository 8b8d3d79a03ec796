// SPDX-License-Identifier: GPL-3.0-or-later
//! The completions in each shell, which completes a command line as if somebody had pressed Tab.

use bulkmark_testing::{program, skip};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The beginning of a command line, and its completion.
const LINES: [(&str, &str); 5] = [
    ("bulkmark mil", "milter"),
    ("bulkmark client ro", "rotate"),
    ("bulkmark doctor --pos", "--postfix"),
    ("bulkmark report list --rep", "--reporter"),
    ("bulkmark report forget --rep", "--reporter"),
];

/// A directory with the completions for a shell, under the name that it expects.
fn completions(shell: &str, name: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(program()).args(["completions", shell]).output().unwrap();
    assert!(output.status.success());
    std::fs::write(directory.path().join(name), output.stdout).unwrap();
    directory
}

/// The output of a script; none if the shell is missing.
fn run(shell: &str, options: &[&str], script: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(shell);
    match command.args(options).args(["-c", script]).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && error.is_empty(), "{shell}: {error}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            skip(&format!("there is no {shell}; run tests/mta/install"));
            None
        }
        Err(e) => panic!("{shell}: {e}"),
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn bash() {
    const SCRIPT: &str = "
        . \"$0\"
        read -ra COMP_WORDS <<<\"$1\"
        COMP_LINE=$1 COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _bulkmark bulkmark \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"
        printf '<%s>' \"${COMPREPLY[@]}\"";
    let directory = completions("bash", "bulkmark");
    for (line, word) in LINES {
        let file = directory.path().join("bulkmark");
        let Some(told) = run("bash", &["--norc"], SCRIPT, &[path(&file), line]) else { return };
        assert_eq!(told, format!("<{word}>"), "{line}");
    }
}

/// In its own shell behind a terminal, since zsh completes nowhere else. The second key prints the line.
#[test]
fn zsh() {
    const SCRIPT: &str = r#"
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell "stty -echo; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D
            show() { print -r -- \"<\$BUFFER>\"; exit }; zle -N show
            bindkey '^I' complete-word; bindkey '^X' show"
        zpty -w -n shell "$2"$'\t\x18'
        while zpty -r shell line; do print -r -- "$line"; done"#;
    let directory = completions("zsh", "_bulkmark");
    for (line, word) in LINES {
        let Some(told) = run("zsh", &["-f"], SCRIPT, &["zsh", path(directory.path()), line]) else { return };
        let whole = format!("<{} {word}", line.rsplit_once(' ').unwrap().0);
        assert!(told.contains(&whole), "{line}: {told:?}");
    }
}

#[test]
fn fish() {
    let directory = completions("fish", "bulkmark.fish");
    let file = directory.path().join("bulkmark.fish");
    for (line, word) in LINES {
        let script = "source $argv[1]; complete -C $argv[2]";
        let Some(told) = run("fish", &["--no-config"], script, &[path(&file), line]) else { return };
        let words: Vec<_> = told.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(words, [word], "{line}");
    }
}
