// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail that scripts make.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a script of this folder by Python, with these lines on its standard input. Returns the lines that it wrote.
pub(crate) fn python(
    script: &str,
    arguments: &[&dyn AsRef<OsStr>],
    input: &str,
) -> Result<Vec<String>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{script}: {why}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/evaluate").join(script);
    let mut python = Command::new("python3")
        .arg(path)
        .args(arguments.iter().map(|argument| argument.as_ref()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| failed(&e))?;
    let mut stdin = python.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A script that ends early says so by its code.
        scope.spawn(move || drop(stdin.write_all(input.as_bytes())));
        python.wait_with_output()
    });
    let output = output.map_err(|e| failed(&e))?;
    if !output.status.success() {
        return Err(failed(&output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}
