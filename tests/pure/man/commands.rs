// SPDX-License-Identifier: GPL-3.0-or-later
//! The manuals' sections on commands, made from the definitions that `--help` shows.

use super::roff::{escaped, prose};
use clap::{Arg, Command};

/// Commands with their own page.
const DAEMONS: [&str; 3] = ["milter", "interfaces", "server"];

/// A command below the program, with its full name and the options of the commands above it that it accepts, too.
struct Below<'a> {
    name: String,
    command: &'a Command,
    from_above: Vec<&'a Arg>,
}

/// The sections on the program: its synopsis, the program, and each of its commands.
pub(crate) fn program(program: &Command) -> String {
    let mut all = Vec::new();
    add_below(&mut all, &Below { name: String::new(), command: program, from_above: Vec::new() });
    let synopsis: String = all.iter().map(Below::synopsis).collect();
    let sections: String = all.iter().map(Below::section).collect();
    let about = text(program);
    format!(".Sh SYNOPSIS\n{synopsis}.Sh DESCRIPTION\n{about}.Sh COMMANDS\n{sections}")
}

/// The sections on a daemon: its synopsis, and the beginning of its description.
pub(crate) fn daemon(program: &Command, name: &str) -> String {
    let command = program.find_subcommand(name).expect("a command");
    let synopsis = Below { name: name.to_owned(), command, from_above: Vec::new() }.synopsis();
    format!(".Sh SYNOPSIS\n{synopsis}.Sh DESCRIPTION\n{}{}", text(command), options(command))
}

/// Adds all commands below this one, at every level.
fn add_below<'a>(all: &mut Vec<Below<'a>>, above: &Below<'a>) {
    for command in above.command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = format!("{} {}", above.name, command.get_name()).trim_start().to_owned();
        let global = above.command.get_arguments().filter(|arg| arg.is_global_set());
        let below =
            Below { name, command, from_above: above.from_above.iter().copied().chain(global).collect() };
        let at = all.len();
        add_below(all, &below);
        all.insert(at, below);
    }
}

impl Below<'_> {
    /// Its synopsis; empty if only the commands below it can be called.
    fn synopsis(&self) -> String {
        if self.command.is_subcommand_required_set() {
            return String::new();
        }
        let mut all: Vec<_> = self.command.get_arguments().chain(self.from_above.iter().copied()).collect();
        // Options first.
        all.sort_by_key(|arg| arg.is_positional());
        let mut synopsis = format!(".Nm bulkmark\n.Cm {}\n", self.name);
        for arg in all {
            let brackets = if arg.is_required_set() { "" } else { "Op " };
            synopsis += &format!(".{brackets}{}\n", call(arg));
        }
        synopsis
    }

    fn section(&self) -> String {
        let title = format!(".Ss bulkmark {}\n", self.name);
        if DAEMONS.contains(&&*self.name) {
            let about = prose(&sentence(&self.command.get_about().expect("help").to_string()));
            return format!("{title}{about}See\n.Xr bulkmark-{} 8 .\n", self.name);
        }
        format!("{title}{}{}", text(self.command), options(self.command))
    }
}

/// The `--help` text of a command, without its options.
fn text(command: &Command) -> String {
    let text = command.get_long_about().or_else(|| command.get_about()).expect("help");
    prose(&sentence(&text.to_string()))
}

/// The list of a command's options and other arguments.
fn options(command: &Command) -> String {
    let items: String = command.get_arguments().map(item).collect();
    match (&*items, command.is_subcommand_required_set()) {
        ("", _) => String::new(),
        (items, true) => format!(".Pp\nOptions of the commands below:\n{}", list(items)),
        (items, false) => list(items),
    }
}

fn list(items: &str) -> String {
    format!(".Bl -tag -width Ds\n{items}.El\n")
}

/// An argument with its description, values and default.
fn item(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).expect("help").to_string();
    // If the default is no value, it is in the help as clap would write it.
    let (help, default) = match help.strip_suffix(']').and_then(|help| help.split_once(" [default: ")) {
        Some((help, default)) => (help, default.to_owned()),
        None => (&*help, defaults(arg)),
    };
    let default = if default.is_empty() { default } else { format!("Default: {}.", default) };
    let text = prose(&format!("{} {default}", sentence(help)));
    let values: String = arg
        .get_possible_values()
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|value| {
            let help = value.get_help().expect("help").to_string();
            format!(".It Cm {}\n{}", value.get_name(), prose(&sentence(&help)))
        })
        .collect();
    let values = if values.is_empty() { values } else { list(&values) };
    format!(".It {}\n{text}{values}", call(arg))
}

fn defaults(arg: &Arg) -> String {
    let all = arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    all.filter(|_| arg.get_action().takes_values()).collect::<Vec<_>>().join(", ")
}

/// An argument as it is typed: `Fl -config Ar FILE`.
fn call(arg: &Arg) -> String {
    let mut call = arg.get_long().map(|long| format!("Fl -{long} ")).unwrap_or_default();
    if arg.get_action().takes_values() {
        let name = arg.get_value_names().expect("a name")[0].to_string();
        call += &format!("Ar {}", escaped(&name));
        if arg.is_positional() && arg.get_num_args().is_some_and(|number| number.max_values() > 1) {
            call += " ...";
        }
    }
    call.trim_end().to_owned()
}

/// Help with the period that clap removes.
fn sentence(help: &str) -> String {
    format!("{help}{}", if help.ends_with(['.', ':']) { "" } else { "." })
}
