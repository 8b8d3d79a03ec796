// SPDX-License-Identifier: GPL-3.0-or-later
//! The mail of one server in its original order, on one ledger, each message from its own client's network.

use crate::client::{From, domain, fields, is_public};
use crate::counts::{AT, Share};
use crate::figures::{Wish, both, mean};
use crate::labelled::Table;
use crate::runs::Bench;
use crate::stream::Message;
use bulkmark_mail::Received;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The size from which a group of messages is a mailing, also among ham.
const GROUP: usize = 10;

/// The table's data about a message.
#[derive(Debug)]
struct About {
    is_spam: bool,
    language: String,
    group: String,
    size: usize,
}

/// Whether a message belongs in a row, and counts in it; by its position in its group, starting with 1.
type Row = Box<dyn Fn(&About, usize) -> bool>;

pub(crate) fn measure(bench: &Bench) -> Result<(), String> {
    let (messages, about) = read(bench)?;
    let places = places(&about);
    let (counts, refused) = bench.highest(&bench.under_each_key(&messages));
    println!(
        "one server's stream of {} messages, one ledger; {} keys, mean and worst",
        messages.len(),
        bench.keys.len()
    );
    let networks: HashSet<_> = messages.iter().map(|message| network(message.from)).collect();
    println!("clients of {} networks; where no line tells, the domain of From is one", networks.len());
    println!("{:<44}{:>9}{:>10}{:>10}{:>10}{:>10}", "", "messages", "at 20", "worst", "refused", "worst");
    for (name, wish, row) in rows(&about) {
        let of_row = |counts: &Vec<u32>| {
            let judged =
                about.iter().zip(&places).zip(counts).filter(|((about, place), _)| row(about, **place));
            Share::counted(&judged.map(|(_, &count)| count).collect::<Vec<_>>(), AT)
        };
        let figure = |counts: &[Vec<u32>]| -> Vec<f64> {
            let shares = counts.iter().map(of_row);
            if matches!(wish, Wish::High) {
                shares.map(Share::percent).collect()
            } else {
                shares.map(|share| share.part as f64).collect()
            }
        };
        let whole = mean(&counts.iter().map(|counts| of_row(counts).whole as f64).collect::<Vec<_>>());
        println!(
            "{name:<44}{whole:>9.0}{}{}",
            both(&figure(&counts), wish, 1),
            both(&figure(&refused), wish, 1)
        );
    }
    Ok(())
}

/// First the recall, by language; then messages that should be below 20; and groups of ham separately.
fn rows(about: &[About]) -> Vec<(String, Wish, Row)> {
    let could = |about: &About, place: usize| about.is_spam && place >= AT as usize;
    let mut of_languages: BTreeMap<&str, usize> = BTreeMap::new();
    for (about, place) in about.iter().zip(places(about)) {
        *of_languages.entry(&about.language).or_default() += usize::from(could(about, place));
    }
    let mut languages: Vec<_> = of_languages.into_iter().filter(|(_, n)| *n > 0).collect();
    languages.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    let mut rows: Vec<(String, Wish, Row)> =
        vec![("recall: spam from the 20th of a group on, %".to_owned(), Wish::High, Box::new(could))];
    for (language, _) in languages {
        let language = language.to_owned();
        let name = format!("  language {language}, %");
        rows.push((name, Wish::High, Box::new(move |a, place| could(a, place) && a.language == language)));
    }
    let is_in = |about: &About| about.size >= GROUP;
    rows.push((
        format!("false: ham in no group of {GROUP}"),
        Wish::Low,
        Box::new(move |a, _| !a.is_spam && !is_in(a)),
    ));
    rows.push((format!("ham in groups of {GROUP}"), Wish::Low, Box::new(move |a, _| !a.is_spam && is_in(a))));
    rows.push((
        format!("spam in no group of {GROUP}"),
        Wish::Low,
        Box::new(move |a, _| a.is_spam && !is_in(a)),
    ));
    rows
}

/// The position of each message in its group.
fn places(about: &[About]) -> Vec<usize> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut place = |group| {
        let place = seen.entry(group).or_default();
        *place += 1;
        *place
    };
    about.iter().map(|about| place(&*about.group)).collect()
}

/// The /24 or the /64.
fn network(from: From) -> Option<IpAddr> {
    match from {
        From::Address(IpAddr::V4(ip)) => Some(IpAddr::V4((u32::from(ip) & !0xFF).into())),
        From::Address(IpAddr::V6(ip)) => Some(IpAddr::V6((u128::from(ip) >> 64 << 64).into())),
        _ => None,
    }
}

/// The stream, with the client of each message.
fn read(bench: &Bench) -> Result<(Vec<Message>, Vec<About>), String> {
    let table = Table::read(bench.existing("site/site.tsv")?).map_err(|e| e.to_string())?;
    let directory = unpacked(bench)?;
    let (mut files, mut about) = (Vec::new(), Vec::new());
    for row in &table.rows {
        let field = |column| table.field(row, column).map_err(|e| e.to_string());
        files.push(directory.join(field("file")?));
        about.push(About {
            is_spam: field("label")? == "spam",
            language: field("lang")?.to_owned(),
            group: field("group")?.to_owned(),
            size: field("size")?.parse().unwrap_or(0),
        });
    }
    let hops = files.iter().map(|file| hops(file)).collect::<Result<Vec<_>, _>>()?;
    let own = own_networks(&hops);
    let message = |(file, hops): (PathBuf, &Vec<Hop>)| {
        let outside =
            hops.iter().find_map(|hop| hop.client.filter(|&ip| is_public(ip) && !own.contains(&wide(ip))));
        Message::file(file).from(outside.map_or(From::Message, From::Address))
    };
    Ok((files.into_iter().zip(&hops).map(message).collect(), about))
}

/// The path of the files: packed, or unpacked.
fn unpacked(bench: &Bench) -> Result<PathBuf, String> {
    let packed = bench.existing("site/site.tar.xz")?;
    let out = bench.work("site");
    std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
    let status = Command::new("tar")
        .args(["--extract", "--xz", "--file"])
        .arg(&packed)
        .arg("--directory")
        .arg(&out)
        .status();
    match status {
        Ok(status) if status.success() => Ok(out),
        Ok(status) => Err(format!("tar cannot unpack {}: {status}", packed.display())),
        Err(error) => Err(format!("tar: {error}")),
    }
}

/// One Received line.
struct Hop {
    client: Option<IpAddr>,
    /// Whether the server looked up the client's name and found it in its own domain.
    is_own: bool,
}

fn hops(file: &Path) -> Result<Vec<Hop>, String> {
    let raw = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let hop = |value: String| {
        let received = Received::of(&value);
        let name = looked_up(&value);
        let is_own =
            name.is_some_and(|name| !received.by.is_empty() && domain(&name) == domain(&received.by));
        Hop { client: received.client, is_own }
    };
    Ok(fields(&raw, "Received").map(hop).collect())
}

/// The name that the server found for its client's address: `(name [address])`. The HELO name proves nothing, and neither does
/// one that may be forged.
fn looked_up(value: &str) -> Option<String> {
    let (_, comment) = value.split_once('(')?;
    let (comment, _) = comment.split_once(')')?;
    let (name, rest) = comment.split_once(" [")?;
    let is_name = !name.is_empty() && !name.contains(' ') && !rest.contains("forged");
    is_name.then(|| name.trim_end_matches('.').to_lowercase())
}

/// The networks of clients in the server's own domain, by the top lines, which the server itself wrote.
fn own_networks(hops: &[Vec<Hop>]) -> HashSet<IpAddr> {
    let top = hops.iter().filter_map(|hops| hops.first());
    top.filter(|hop| hop.is_own).filter_map(|hop| hop.client).filter(|&ip| is_public(ip)).map(wide).collect()
}

/// The /16 or the /48: the address range of a site.
fn wide(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => IpAddr::V4((u32::from(ip) & !0xFFFF).into()),
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) >> 80 << 80).into()),
    }
}
