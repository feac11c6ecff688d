//! Starts the real binary on a free port in a temporary folder, speaks to it, and ends what it started.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up; far above what it does take.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// The binary under test.
pub fn watchfire() -> Command {
    Command::new(env!("CARGO_BIN_EXE_watchfire"))
}

/// Runs the binary to its end.
pub fn answer(args: &[&str]) -> Output {
    watchfire()
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

/// Standard error of an ended process as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output of an ended process as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A port nobody listens on at present.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a free port")
        .port()
}

/// A running process of ours; ended without mercy when dropped.
pub struct Process {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Process {
    /// Starts `watchfire ARGS --listen 127.0.0.1:PORT` on a free port.
    pub fn start(args: &[&str]) -> Self {
        Self::start_on(free_port(), args)
    }

    /// The same on a port of choice.
    pub fn start_on(port: u16, args: &[&str]) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut child = watchfire()
            .args(args)
            .args(["--listen", &address.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (pipe, kept) = (child.stderr.take().expect("a pipe"), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                let mut kept = kept.lock().expect("the log");
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        Self { child, address, log }
    }

    /// Waits until `/-/ready` says yes.
    pub fn wait_ready(mut self) -> Self {
        let begun = Instant::now();
        loop {
            if self.get("/-/ready").is_some_and(|a| a.status == 200) {
                return self;
            }
            if let Some(status) = self.child.try_wait().expect("its state") {
                panic!("it ended with {status} before it was ready:\n{}", self.log());
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "not ready after {PATIENCE:?}:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("the log").clone()
    }

    /// Asks for a path; `None` while nobody answers.
    pub fn get(&self, path: &str) -> Option<Answer> {
        get(self.address, path)
    }

    /// The answer of a query API as JSON.
    pub fn json(&self, path: &str) -> serde_json::Value {
        let answer = self
            .get(path)
            .unwrap_or_else(|| panic!("no answer to {path}:\n{}", self.log()));
        serde_json::from_str(&answer.body).unwrap_or_else(|e| panic!("{path} gave no JSON ({e}): {}", answer.body))
    }

    /// The result of an instant query.
    pub fn query(&self, expr: &str) -> Vec<serde_json::Value> {
        let answer = self.json(&format!("/api/v1/query?query={}", escape(expr)));
        assert_eq!(answer["status"], "success", "{expr}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// Asks again and again until `ask` gives something.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, mut ask: impl FnMut(&Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = ask(self) {
                return found;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{what}: not within {PATIENCE:?}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Asks it to end (SIGTERM) and waits for that.
    pub fn stop(mut self) -> std::process::ExitStatus {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        self.child.wait().expect("it ends")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The head, status line included.
    pub head: String,
    /// The body as text.
    pub body: String,
}

/// `GET path`, plain and on one connection.
pub fn get(address: SocketAddr, path: &str) -> Option<Answer> {
    request(address, &format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n"))
}

/// `POST path` with an empty body.
pub fn post(address: SocketAddr, path: &str) -> Option<Answer> {
    request(
        address,
        &format!("POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n"),
    )
}

fn request(address: SocketAddr, text: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(text.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

/// Escapes a text for a query string.
pub fn escape(text: &str) -> String {
    text.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// A receiver of webhooks that keeps what it is sent.
pub struct Webhook {
    /// Where to send to.
    pub url: String,
    received: Arc<Mutex<Vec<(Instant, serde_json::Value)>>>,
}

impl Webhook {
    /// Listens on a free port until the process ends.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/alert", listener.local_addr().expect("its address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    while let Some(body) = serve_one(&stream) {
                        kept.lock().expect("the list").push((Instant::now(), body));
                    }
                });
            }
        });
        Self { url, received }
    }

    /// Every notification so far.
    pub fn notifications(&self) -> Vec<serde_json::Value> {
        self.received
            .lock()
            .expect("the list")
            .iter()
            .map(|(_, body)| body.clone())
            .collect()
    }

    /// Every alert told so far, a repeated one each time.
    pub fn alerts(&self) -> Vec<serde_json::Value> {
        self.notifications()
            .iter()
            .flat_map(|n| n["alerts"].as_array().cloned().unwrap_or_default())
            .collect()
    }

    /// Alerts told so far with this name and status.
    pub fn named(&self, name: &str, status: &str) -> Vec<serde_json::Value> {
        self.alerts()
            .into_iter()
            .filter(|a| a["labels"]["alertname"] == name && a["status"] == status)
            .collect()
    }
}

fn serve_one(stream: &TcpStream) -> Option<serde_json::Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut seen = false;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        seen |= line.starts_with("POST");
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() && seen {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
    serde_json::from_slice(&body).ok()
}

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program that `tests/prepare.sh` unpacked, or one on the path; `None` with a message where there is neither.
pub fn tool(name: &str) -> Option<PathBuf> {
    let unpacked = root().join("target/tools/bin").join(name);
    if unpacked.is_file() {
        return Some(unpacked);
    }
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|p| p.is_file());
    if found.is_none() {
        eprintln!("skipped: {name} is not installed (tests/prepare.sh brings it)");
    }
    found
}
