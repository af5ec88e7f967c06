//! Drives Chromium without a window over its DevTools protocol, which it speaks on two pipes:
//! messages are JSON, each ended by a zero byte.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Longest wait for each answer: a browser starts in seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// What Chromium says of a call to a page that another one has replaced.
const REPLACED: &str = "Inspected target navigated or closed";

/// The browser's name; `None` if there is none.
pub fn program() -> Option<&'static str> {
    let exists = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
    PROGRAMS.into_iter().find(|name| exists(name))
}

/// A browser with one page; ended when dropped.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// Messages of the page on its console, and errors that nothing caught.
    pub complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    pub fn start(program: &str) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        // The protocol's descriptors are 3 and 4: a shell puts our pipes there.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh", program])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let to = child.stdin.take().context("the browser has no pipe")?;
        let from = messages(child.stdout.take().context("the browser has no pipe")?);
        let mut browser = Self { child, to, from, next: 0, session: None, complaints: Vec::new(), _profile: profile };
        browser.open_page()?;
        Ok(browser)
    }

    fn open_page(&mut self) -> Result<()> {
        let page = self.call("Target.createTarget", &json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", &attach)?;
        self.session = attached["sessionId"].as_str().map(ToOwned::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            self.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(())
    }

    /// Calls a method of the protocol; its result.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).with_context(|| format!("calling {method}"))?;
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self.from.recv_timeout(left).with_context(|| format!("waiting for {method}"))?;
            if answer["id"] == json!(self.next) {
                ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return Ok(answer["result"].clone());
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") => self.complaints.push(params["args"].to_string()),
            Some("Log.entryAdded") => self.complaints.push(params["entry"].to_string()),
            Some("Page.javascriptDialogOpening") => self.complaints.push(format!("a dialog: {params}")),
            _ => {}
        }
    }

    /// Shows a file, and waits until its script says that it is ready; how long that took.
    pub fn open(&mut self, file: &Path) -> Result<Duration> {
        self.open_url(&format!("file://{}", file.display()))
    }

    /// The same of a page that a server has.
    pub fn open_url(&mut self, url: &str) -> Result<Duration> {
        let before = Instant::now();
        self.call("Page.navigate", &json!({"url": url}))?;
        self.wait("document.documentElement?.dataset.ready === 'true'")?;
        Ok(before.elapsed())
    }

    /// Waits until an expression is true. A page that another one replaces meanwhile gives no answer.
    pub fn wait(&mut self, expression: &str) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            match self.eval(expression) {
                Ok(Value::Bool(true)) => return Ok(()),
                Err(error) if !error.to_string().contains(REPLACED) => return Err(error),
                _ => {}
            }
            ensure!(Instant::now() < deadline, "{expression} does not come true: {:?}", self.complaints);
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Result<Value> {
        let result = self.call("Runtime.evaluate", &json!({"expression": expression, "returnByValue": true}))?;
        if !result["exceptionDetails"].is_null() {
            bail!("{expression}: {}", result["exceptionDetails"]);
        }
        Ok(result["result"]["value"].clone())
    }

    /// The text of an expression.
    pub fn text(&mut self, expression: &str) -> Result<String> {
        let value = self.eval(expression)?;
        value.as_str().map(ToOwned::to_owned).with_context(|| format!("{expression} is not text but {value}"))
    }

    /// Presses and releases a key; of a printable one its text goes where the focus is.
    pub fn press(&mut self, key: &str) -> Result<()> {
        let (code, text) = match key {
            "Enter" => (13, Some("\r")),
            "Escape" => (27, None),
            "Tab" => (9, None),
            "ArrowLeft" => (37, None),
            "ArrowUp" => (38, None),
            "ArrowRight" => (39, None),
            "ArrowDown" => (40, None),
            text => (0, Some(text)),
        };
        let mut down = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if let Some(text) = text {
            down["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", &down)?;
        let up = json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", &up).map(drop)
    }

    /// Types into what has the focus.
    pub fn write(&mut self, text: &str) -> Result<()> {
        self.call("Input.insertText", &json!({"text": text})).map(drop)
    }

    /// Prefers light or dark, as the system would.
    pub fn prefer(&mut self, scheme: &str) -> Result<()> {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &features).map(drop)
    }

    /// Sets the size of the window in pixels, without scroll bars.
    pub fn resize(&mut self, width: u32, height: u32) -> Result<()> {
        self.call("Emulation.setScrollbarsHidden", &json!({"hidden": true}))?;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size).map(drop)
    }

    /// Writes what the window shows as a PNG.
    pub fn picture(&mut self, file: &Path) -> Result<()> {
        let shot = self.call("Page.captureScreenshot", &json!({"format": "png"}))?;
        let png = base64(shot["data"].as_str().context("no picture")?).context("the picture is not base64")?;
        fs::write(file, png).with_context(|| format!("writing {}", file.display()))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes of a base64 text; `None` if it is not one.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for digits in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut word = 0_u32;
        for (place, byte) in digits.iter().enumerate() {
            word |= u32::from(digit(*byte)?) << (26 - 6 * place);
        }
        bytes.extend(&word.to_be_bytes()[..digits.len() * 6 / 8]);
    }
    Some(bytes)
}

/// Messages as they come, read by a thread of their own.
fn messages(pipe: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for message in BufReader::new(pipe).split(0) {
            let Some(message) = message.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) else { return };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        for (text, expected) in [("", ""), ("TQ==", "M"), ("TWE=", "Ma"), ("TWFu", "Man"), ("bGlnaHQgdw==", "light w")]
        {
            assert_eq!(base64(text), Some(expected.as_bytes().to_vec()), "{text}");
        }
        assert_eq!(base64("+/+/"), Some(vec![0xfb, 0xff, 0xbf]));
        assert_eq!(base64("no base64"), None);
    }
}
