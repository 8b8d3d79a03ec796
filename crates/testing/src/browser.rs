// SPDX-License-Identifier: GPL-3.0-or-later
//! Headless Chromium, controlled by its DevTools protocol over two pipes.

use super::{PATIENCE, skip, wait_until};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use tempfile::TempDir;

/// A browser with one page.
pub struct Browser {
    child: Child,
    input: File,
    answers: Receiver<Value>,
    session: Option<String>,
    number: u64,
    /// Errors of the page, and the addresses that it requested.
    events: VecDeque<Value>,
    _directory: TempDir,
}

/// The properties of the screen.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Whether dark colours are preferred.
    pub dark: bool,
    /// Whether it is a touch screen and shows pages as a phone does.
    pub phone: bool,
}

/// A usual screen.
pub const DESKTOP: Look = Look { width: 1280, height: 900, dark: false, phone: false };
/// A wide screen.
pub const WIDE: Look = Look { width: 1920, height: 1080, dark: false, phone: false };
/// A phone with dark colours.
pub const PHONE: Look = Look { width: 390, height: 844, dark: true, phone: true };

impl Browser {
    /// Starts a browser. None where there is no Chromium; a machine that tests every change must have it.
    pub fn start() -> Option<Self> {
        if Command::new("chromium").arg("--version").output().is_err() {
            skip("chromium is not installed");
            return None;
        }
        let directory = tempfile::Builder::new().prefix("bulkmark-browser-").tempdir().unwrap();
        let [commands, answers] = ["in", "out"].map(|name| directory.path().join(name));
        assert!(Command::new("mkfifo").args([&commands, &answers]).status().unwrap().success());
        let log = File::create(directory.path().join("log")).unwrap();
        // It reads commands from descriptor 3 and answers on 4.
        let child = Command::new("bash")
            .args(["-c", "exec 3<\"$1\" 4>\"$2\"; shift 2; exec chromium \"$@\"", "browser"])
            .args([&commands, &answers])
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--disable-background-networking", "--disable-extensions"])
            .arg(format!("--user-data-dir={}", directory.path().join("profile").display()))
            .env("HOME", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let input = File::options().write(true).open(&commands).unwrap();
        let output = File::open(&answers).unwrap();
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let events = VecDeque::new();
        Some(Self { child, input, answers, session: None, number: 0, events, _directory: directory })
    }

    /// Sends a command and returns its result.
    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "it is made for the call")]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut command = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = session.as_str().into();
        }
        self.input.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let message = self.answers.recv_timeout(PATIENCE).expect("the browser answers");
            if message["id"] == self.number {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push_back(message);
        }
    }

    /// Opens a page in a tab of its own.
    #[track_caller]
    pub fn open(&mut self, url: &str, look: Look) {
        self.session = None;
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.call("Target.attachToTarget", attach);
        self.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.look(look);
        self.call("Page.navigate", json!({ "url": url }));
        self.wait_for(&format!("location.href === {url:?} && document.readyState === 'complete'"));
    }

    /// Changes the window and the user's preferences.
    #[track_caller]
    pub fn look(&mut self, look: Look) {
        let size = json!({
            "width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": look.phone,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if look.dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// Returns the value of an expression on the page.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let result = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        wait_until(expression, || {
            if self.value(expression) == true {
                Ok(())
            } else {
                Err(self.value("document.body.innerText").to_string())
            }
        });
    }

    /// Presses a key, such as Tab or Enter.
    #[track_caller]
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, None),
            "Enter" => (13, Some("\r")),
            " " => (32, Some(" ")),
            _ => panic!("{key}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if let (Some(text), "keyDown") = (text, kind) {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Returns the content of the window, as a PNG.
    #[track_caller]
    pub fn picture(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        bulkmark_samples::encode::from_base64(shot["data"].as_str().unwrap())
    }

    /// Returns the whole page, however high it is, as a PNG.
    #[track_caller]
    pub fn whole(&mut self) -> Vec<u8> {
        let [width, height] =
            ["innerWidth", "document.documentElement.scrollHeight"].map(|size| self.value(size));
        let clip = json!({ "x": 0, "y": 0, "scale": 1, "width": width, "height": height });
        let how = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let shot = self.call("Page.captureScreenshot", how);
        bulkmark_samples::encode::from_base64(shot["data"].as_str().unwrap())
    }

    /// Returns the errors and warnings of the console.
    pub fn complaints(&mut self) -> Vec<String> {
        // Events that came before this answer have arrived by then.
        self.value("1");
        let is_complaint = |event: &&Value| match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => {
                ["error", "warning", "assert"].contains(&event["params"]["type"].as_str().unwrap())
            }
            "Log.entryAdded" => {
                ["error", "warning"].contains(&event["params"]["entry"]["level"].as_str().unwrap())
            }
            _ => false,
        };
        self.events.iter().filter(is_complaint).map(Value::to_string).collect()
    }

    /// Returns all requested addresses.
    pub fn requests(&mut self) -> Vec<String> {
        self.value("1");
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended; its children end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
