//! A browser that is driven: pages are opened, clicked, typed into and tabbed through as people do it, by the DevTools protocol
//! over two named pipes.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

/// A browser with one page.
pub struct Driver {
    child: Child,
    to: File,
    from: BufReader<File>,
    last: u64,
    session: String,
    /// Every request that the page made, but for the page itself.
    pub requests: Vec<String>,
    /// What scripts threw and what the browser complained about.
    pub complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Driver {
    /// Starts a browser that can reach nothing.
    pub fn start(browser: &str) -> Self {
        Self::start_mapped(browser, "MAP * ~NOTFOUND")
    }

    /// Starts a browser that can reach servers at 127.0.0.1 and nothing else.
    #[allow(dead_code, reason = "tests of files do not need it")]
    pub fn start_beside_loopback(browser: &str) -> Self {
        Self::start_mapped(browser, "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    }

    fn start_mapped(browser: &str, hosts: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let pipe = |name: &str| -> PathBuf {
            let path = profile.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        // The browser reads orders from descriptor 3 and writes answers to 4.
        let script = "exec \"$1\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                      --remote-debugging-pipe --host-resolver-rules=\"$3\" --user-data-dir=\"$2/profile\" \
                      about:blank 3<\"$2/to\" 4>\"$2/from\"";
        let child = Command::new("timeout")
            .args(["300", "bash", "-c", script, "bash", browser])
            .arg(profile.path())
            .arg(hosts)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Each waits for the browser's end.
        let to = File::options().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let (requests, complaints) = (Vec::new(), Vec::new());
        let mut driver =
            Self { child, to, from, last: 0, session: String::new(), requests, complaints, _profile: profile };
        let target = driver.order("Target.createTarget", json!({ "url": "about:blank" }));
        let target = target["targetId"].as_str().unwrap();
        let attached = driver.order("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        driver.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            driver.order(&format!("{domain}.enable"), json!({}));
        }
        driver
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(&[0]).unwrap();
        self.last
    }

    /// The next message; events are noted.
    fn receive(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser ended");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        match message["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                let url = message["params"]["request"]["url"].as_str().unwrap().to_owned();
                if message["params"]["type"] != "Document" {
                    self.requests.push(url);
                }
            }
            Some("Runtime.exceptionThrown") => self.complaints.push(message["params"].to_string()),
            Some("Log.entryAdded") if message["params"]["entry"]["level"] == "error" => {
                self.complaints.push(message["params"]["entry"]["text"].to_string());
            }
            _ => {}
        }
        message
    }

    /// Gives an order and waits for its answer.
    #[track_caller]
    pub fn order(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// How wide and high the window is, in CSS pixels; dark or light.
    pub fn window(&mut self, width: u32, height: u32, dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.order("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } });
        self.order("Emulation.setEmulatedMedia", json!({ "media": "", "features": [scheme] }));
    }

    /// Shows pages as they are printed, on paper of this size in CSS pixels.
    #[allow(dead_code, reason = "tests that print nothing do not need it")]
    pub fn paper(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.order("Emulation.setDeviceMetricsOverride", size);
        self.order("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    }

    /// Whether scripts of pages run.
    pub fn scripts(&mut self, on: bool) {
        self.order("Emulation.setScriptExecutionDisabled", json!({ "value": !on }));
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, page: &Path) {
        self.go(&format!("file://{}", page.display()));
    }

    /// Goes to an address and waits until its page is loaded.
    pub fn go(&mut self, url: &str) {
        let id = self.send("Page.navigate", json!({ "url": url }));
        let (mut answered, mut loaded) = (false, false);
        while !(answered && loaded) {
            let message = self.receive();
            answered |= message["id"] == id;
            loaded |= message["method"] == "Page.loadEventFired";
        }
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub fn ask(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.order("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Moves the pointer to the middle of what a selector finds, after scrolling it into view. Its place on the screen.
    #[track_caller]
    pub fn point(&mut self, selector: &str) -> (f64, f64) {
        let find = format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{ block: 'center' }}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        );
        let at = self.ask(&find);
        let (x, y) = (at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
        self.order("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
        (x, y)
    }

    /// Clicks what a selector finds with the pointer.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let (x, y) = self.point(selector);
        self.click_at(x, y);
    }

    /// Clicks a place of the window.
    pub fn click_at(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let click = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.order("Input.dispatchMouseEvent", click);
        }
    }

    /// Presses a key: `Tab`, `Enter`, `ArrowRight`.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            other => panic!("{other}"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.order("Input.dispatchKeyEvent", key);
        }
    }

    /// Types a text where the focus is.
    pub fn type_text(&mut self, text: &str) {
        self.order("Input.insertText", json!({ "text": text }));
    }

    /// Saves a picture of the window, or of the whole page.
    pub fn picture(&mut self, path: &Path, whole: bool) {
        let shot = self.order("Page.captureScreenshot", json!({ "captureBeyondViewport": whole }));
        fs::write(path, decoded(shot["data"].as_str().unwrap())).unwrap();
    }

    /// Saves the page as it is printed on A4.
    #[allow(dead_code, reason = "tests that print nothing do not need it")]
    pub fn print(&mut self, path: &Path) {
        let a4 =
            json!({ "paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true, "printBackground": true });
        let printed = self.order("Page.printToPDF", a4);
        fs::write(path, decoded(printed["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes of base64 (RFC 4648).
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let bits = four.iter().enumerate().fold(0, |bits, (at, digit)| bits | digit << (18 - 6 * at));
        bits.to_be_bytes().into_iter().skip(1).take(four.len() - 1).collect::<Vec<u8>>()
    });
    bytes.collect()
}
