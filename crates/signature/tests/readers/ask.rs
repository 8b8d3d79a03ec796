// SPDX-License-Identifier: GPL-3.0-or-later
//! Runs bulkmark and other programs that read mail.

use super::rows::Row;
use bulkmark_mail::RawMessage;
use bulkmark_signature::near::positions;
use bulkmark_types::FederationKey;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The text that a reader shows for rows, by their numbers.
pub(super) type Texts = BTreeMap<usize, String>;

/// The scripts that other readers run.
const SEEN: &str = include_str!("seen.js");
const THUNDERBIRD: &str = include_str!("thunderbird.cfg");
const PARTS: &str = include_str!("parts.py");

/// The words of the near signatures.
pub(super) fn bulkmark(row: &Row) -> String {
    let message = RawMessage::from_bytes(&row.raw);
    let words = positions(&message, &FederationKey::public());
    words.iter().fold(String::new(), |mut text, at| {
        let _ = write!(text, "{} ", at.word);
        text
    })
}

/// Writes the rows into a directory, each into a file whose name begins with its number.
pub(super) fn lay_out(rows: &[Row], directory: &Path) {
    for (number, row) in rows.iter().enumerate() {
        let mark = if row.by_place { "@place" } else { "" };
        fs::write(directory.join(format!("{number:04}{mark}.eml")), &row.raw).unwrap();
    }
}

/// Python's `email`, or `gmime` by Python. `None` if it is not installed.
pub(super) fn parts(which: &str, rows: &Path) -> Option<Texts> {
    // Debian's own Python has Debian's bindings.
    let python = if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    let output = Command::new(python).args(["-c", PARTS, which]).arg(rows).output().ok()?;
    let lines = String::from_utf8(output.stdout).ok()?;
    Some(texts(&lines)).filter(|texts| output.status.success() && !texts.is_empty())
}

/// Lines of JSON, each a number and a text.
fn texts(lines: &str) -> Texts {
    lines.lines().filter_map(|line| serde_json::from_str::<(usize, String)>(line).ok()).collect()
}

/// A page that loads each row's page into a frame, then replaces itself by the texts. Pages run no script, as in mail programs.
fn frames(rows: &[Row]) -> String {
    let pages: Vec<(usize, &str, bool)> = rows
        .iter()
        .enumerate()
        .filter_map(|(number, row)| Some((number, row.page.as_deref()?, row.by_place)))
        .collect();
    let pages = serde_json::to_string(&pages).unwrap().replace("</", "<\\/").replace("<!--", "<\\u0021--");
    format!(
        r#"<!DOCTYPE html><meta charset=utf-8><body><script>{SEEN}
const all = async pages => {{
  let lines = "";
  for (const [number, page, byPlace] of pages) {{
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-same-origin";
    frame.width = 1000; frame.height = 900;
    document.body.append(frame);
    frame.contentDocument.open();
    const loaded = new Promise(done => {{ frame.onload = done; setTimeout(done, 3000); }});
    frame.contentDocument.write(page);
    frame.contentDocument.close();
    await loaded;
    let text;
    try {{ text = seen(frame.contentDocument, byPlace); }} catch (error) {{ text = "ERROR " + error; }}
    lines += JSON.stringify([number, text]) + "\n";
    frame.remove();
  }}
  document.body.textContent = "READ " + btoa(unescape(encodeURIComponent(lines))) + " READ";
}};
all({pages});
</script>"#
    )
}

/// Chromium without a window. `None` if it is not installed.
pub(super) fn chromium(rows: &[Row], directory: &Path) -> Option<Texts> {
    let page = directory.join("pages.html");
    fs::write(&page, frames(rows)).unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--virtual-time-budget=10000000",
            "--window-size=1100,1000",
        ])
        .arg(format!("--user-data-dir={}", directory.join("chromium").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .env("HOME", directory)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    let digits = page.split("READ ").nth(1)?.trim();
    let lines = bulkmark_samples::encode::from_base64(digits);
    Some(texts(&String::from_utf8_lossy(&lines)))
}

/// The preferences of a profile that prompts for nothing and reaches no network.
const PREFERENCES: &str = r#"user_pref("mail.provider.suppress_dialog_on_startup", true);
user_pref("mailnews.start_page.enabled", false);
user_pref("mail.rights.version", 1);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.donation.eoy.version.viewed", 100);
user_pref("mail.shell.checkDefaultClient", false);
user_pref("app.update.enabled", false);
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1"); user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1"); user_pref("network.proxy.ssl_port", 9);
"#;

/// Thunderbird without a window, about a second for each row. `None` if it is not installed.
///
/// It runs our script from its own directory only, so that is copied; files are hard links where possible.
pub(super) fn thunderbird(rows: &Path, directory: &Path) -> Option<Texts> {
    const INSTALLED: &str = "/usr/lib/thunderbird";
    if !Path::new(INSTALLED).exists() {
        return None;
    }
    let [program, profile, seen] = ["program", "profile", "seen"].map(|name| directory.join(name));
    let starter = program.join("thunderbird-bin");
    // A link of the package may lead nowhere (dictionaries), so the exit code says nothing.
    let copy =
        |how: &str| Command::new("cp").args([how, INSTALLED]).arg(&program).stderr(Stdio::null()).status();
    copy("-rlL").ok()?;
    if !starter.exists() {
        let _ = fs::remove_dir_all(&program);
        copy("-rL").ok()?;
        assert!(starter.exists(), "{INSTALLED} cannot be copied");
    }
    let starts = "pref(\"general.config.filename\", \"readers.cfg\");\npref(\"general.config.obscure_value\", 0);\n\
        pref(\"general.config.sandbox_enabled\", false);\n";
    fs::write(program.join("defaults/pref/readers.js"), starts).unwrap();
    fs::write(program.join("readers.cfg"), THUNDERBIRD).unwrap();
    fs::create_dir(&profile).unwrap();
    fs::write(profile.join("user.js"), PREFERENCES).unwrap();
    let function = SEEN.find("function seen").map(|at| &SEEN[at..]).unwrap();
    let status = Command::new(starter)
        .args(["--headless", "--no-remote", "--profile"])
        .arg(&profile)
        .env("HOME", directory)
        .env("READERS_ROWS", rows)
        .env("READERS_SEEN", &seen)
        .env("READERS_SCRIPT", function)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.ok()?;
    let lines = fs::read_to_string(seen).ok()?;
    Some(texts(&lines))
}
