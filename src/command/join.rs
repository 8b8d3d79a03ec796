// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark join`

use super::daemon_args::unit;
use super::output::{EX_ERROR, EX_TEMPFAIL, failed, print};
use crate::config::{self, DEFAULT_PATH, pieces_directory};
use crate::net::own_name;
use anyhow::{Context, bail};
use bulkmark_sync::{Code, Link, Parameters, Registration, Remote, RemoteError, Upstream};
use rustix::process::getuid;
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Join a federation: register this mail server at a signature server.
///
/// The server must allow it (registration in server.toml). The token goes to a file beside the configuration, and the upstream to a piece
/// of the configuration, /etc/bulkmark/milter.d/join-HOST.toml; restart the milter afterwards. To leave, remove both files and restart it
/// again. Until the server's operator approves this site, it reads counts; its reports wait here, or count together with those of all
/// sites that are not approved. All members need the same [ledger] window and federation key. Exit code 0: registered; 2: error; 75:
/// the server does not answer, or takes no more sites now; 78: the configuration cannot be used.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The server's address, such as https://counts.example.org:8721
    url: String,
    /// This site's name; the server adds four digits [default: the name of this machine]
    #[arg(long)]
    name: Option<String>,
    /// An address at which the server's operator can ask you.
    #[arg(long, value_name = "ADDRESS", default_value = "")]
    contact: String,
    /// The file with the federation's key, if the key is not public.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The authority that signed the server's certificate, if the system does not trust it.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// The milter's configuration.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH)]
    config: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Files that are removed if the registration fails.
struct Made(Vec<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        for path in &self.0 {
            // A file that stays cannot be helped, and the first error is the one to show.
            let _ = fs::remove_file(path);
        }
    }
}

impl Made {
    /// Creates a file that members of `like`'s group may read, too.
    fn file(&mut self, path: &Path, mode: u32, like: &Path) -> anyhow::Result<File> {
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
        let file = match file {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                bail!("{}: this site has joined already; to join again, remove it", path.display())
            }
            file => file.with_context(|| format!("cannot write {}", path.display()))?,
        };
        self.0.push(path.to_owned());
        if getuid().is_root()
            && let Ok(owner) = like.metadata()
        {
            fchown(&file, None, Some(owner.gid()))
                .with_context(|| format!("cannot chown {}", path.display()))?;
        }
        Ok(file)
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let url = args.url.trim_end_matches('/').to_owned();
    let before = config::load_parts(&args.config)?.file;
    if before.upstream.iter().any(|upstream| upstream.url.trim_end_matches('/') == url) {
        bail!("{}: {url} is an upstream already", args.config.display());
    }
    let absolute = |path: &Path| std::path::absolute(path).with_context(|| path.display().to_string());
    let host = file_name(&url);
    let config = absolute(&args.config)?;
    let (directory, pieces) = (config.parent().unwrap_or_else(|| Path::new("/")), pieces_directory(&config));
    let (token_file, piece) =
        (directory.join(format!("{host}.token")), pieces.join(format!("join-{host}.toml")));
    let upstream = Upstream {
        url,
        token_file: None,
        ca_file: args.ca_file.as_deref().map(absolute).transpose()?,
        plain_http_anywhere: false,
    };
    upstream.check().map_err(anyhow::Error::msg)?;
    let key_file = args.key_file.as_deref().map(absolute).transpose()?;
    fs::create_dir_all(&pieces).with_context(|| format!("cannot create {}", pieces.display()))?;
    let mut made = Made(Vec::new());
    let mut token = made.file(&token_file, 0o640, &before.state_dir)?;
    let text = piece_text(&upstream, &token_file, key_file.as_deref());
    made.file(&piece, 0o644, &before.state_dir)?.write_all(text.as_bytes())?;
    // With the piece, so that its key is compared.
    let parts = config::load_parts(&args.config)?;
    let parameters = Parameters::new(&parts.file.ledger, &parts.key?);
    let name = args.name.clone().unwrap_or_else(|| own_name(&before.hostname));
    let registered = match register(&upstream, parameters, &name, &args.contact) {
        Ok(registered) => registered,
        Err(e) => return Ok(refused(&upstream.url, e)),
    };
    writeln!(token, "{}", registered.token).and_then(|()| token.sync_all())?;
    made.0.clear();
    report(args, &registered, [&token_file, &piece])?;
    Ok(ExitCode::SUCCESS)
}

/// A server's usual port, which file names leave out.
const USUAL_PORT: &str = "8721";

/// Returns the part of an address that names files.
fn file_name(url: &str) -> String {
    let rest = url.split_once("://").map_or("server", |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
        _ => (host, ""),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let name: String = host.chars().filter(|&c| is_plain(c)).take(100).collect();
    let name = match name.trim_matches('.') {
        "" => "server",
        name => name,
    };
    // Another server may be on the same host.
    if ["", USUAL_PORT].contains(&port) { name.to_owned() } else { format!("{name}-{port}") }
}

fn piece_text(upstream: &Upstream, token_file: &Path, key_file: Option<&Path>) -> String {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let path = |path: &Path| text(&path.to_string_lossy());
    let ca = upstream.ca_file.as_deref().map(|file| format!(", ca-file = {}", path(file)));
    let key = key_file.map(|file| format!("\n[ledger]\nfederation-key-file = {}\n", path(file)));
    format!(
        "# Made by `bulkmark join`. To leave, remove this file and the token, and restart the milter.\nupstream = [{{ url = {}, token-file = {}{} }}]\n{}",
        text(&upstream.url),
        path(token_file),
        ca.unwrap_or_default(),
        key.unwrap_or_default()
    )
}

fn register(
    upstream: &Upstream,
    parameters: Parameters,
    name: &str,
    contact: &str,
) -> Result<Registration, RemoteError> {
    // An existing provider is sufficient.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| RemoteError::Setup(e.to_string()))?;
    runtime.block_on(async {
        let remote = Remote::new(upstream, Some(parameters), Arc::new(Link::new(&upstream.url)))?;
        remote.register(name, contact).await
    })
}

/// Prints the reason of a failed registration with advice; returns the exit code.
fn refused(url: &str, error: RemoteError) -> ExitCode {
    let (advice, exit) = match (&error, error.code()) {
        (RemoteError::Parameters(_), _) | (_, Some(Code::Parameters)) => (
            "ask its operator for the federation's key (--key-file), and use the same [ledger] window",
            EX_ERROR,
        ),
        (RemoteError::Refused { status, .. }, None) if status.as_u16() == 404 => {
            ("it has no registration; ask its operator for a token (bulkmark client add)", EX_ERROR)
        }
        (RemoteError::Transport(_), _) | (_, Some(Code::TooMany | Code::Unavailable)) => {
            ("nothing was changed; try again later", EX_TEMPFAIL)
        }
        _ => ("nothing was changed", EX_ERROR),
    };
    failed(&anyhow::Error::new(error).context(format!("{url} did not register this site; {advice}")), exit)
}

fn report(args: &Args, registered: &Registration, [token, piece]: [&PathBuf; 2]) -> io::Result<()> {
    let Registration { name, counts, .. } = registered;
    if args.json {
        return print(json!({
            "name": name, "approved": false, "counts": counts, "token-file": token, "piece": piece,
        }));
    }
    let reports = if *counts {
        "Its reports count together with those of all sites that are not approved"
    } else {
        "Its reports wait"
    };
    let unit = unit(&args.config, "milter");
    print(format_args!(
        "registered as {name}\nwritten: {} and {}\nNext: systemctl restart {unit}, and bulkmark status\n{reports} until the server's \
         operator approves it; tell them this name: bulkmark client approve {name}",
        token.display(),
        piece.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn files_have_the_name_of_the_host() {
        for (url, name) in [
            ("https://counts.example.org:8721", "counts.example.org"),
            ("https://counts.example.org/x/../y", "counts.example.org"),
            ("http://[::1]:8721", "1"),
            ("unix:/run/x.sock", "server"),
            ("https://counts.example.org", "counts.example.org"),
            ("https://counts.example.org:8731/", "counts.example.org-8731"),
            ("https://..", "server"),
        ] {
            assert_eq!(file_name(url), name, "{url}");
        }
    }
}
