//! Killed without mercy while 500 alerts are told: after the next start nothing is lost, and what is told again is a
//! message that was on its way at the kill, under the same key.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alerts::manager::Options;
use alerts::{Alert, Manager};
use config::alertmanager::Config;
use model::labels::Labels;
use model::{Clock, SystemClock};

const ALERTS: usize = 500;
/// The most messages through one sender that are on their way or not written down, and so the most that a kill cuts off.
const ON_THE_WAY_MAX: usize = 8;
/// Where the child finds its folder and its receiver.
const FOLDER: &str = "WATCHFIRE_TEST_KILLED_FOLDER";
const URL: &str = "WATCHFIRE_TEST_KILLED_URL";

/// The child: tells 500 alerts, each a message of its own, until it is killed. Without its surroundings it is no test.
#[test]
fn child() {
    let (Ok(folder), Ok(url)) = (std::env::var(FOLDER), std::env::var(URL)) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let text = format!(
            "route: {{receiver: r, group_by: [gpu], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}\n\
             receivers: [{{name: r, webhook_configs: [{{url: '{url}'}}]}}]"
        );
        let options = Options {
            clock: Arc::new(SystemClock),
            data_dir: Some(folder.into()),
            external_url: String::new(),
            alerts_max: 1_000,
        };
        let config = Config::parse("test", &text).expect("a configuration");
        let manager = Manager::start(&config, options).expect("started");
        loop {
            // As rules do: again and again, each time with an end a little later.
            let now = SystemClock.now();
            let alert = |n: usize| Alert {
                ends_at: Some(now + 60_000),
                ..Alert::new(Labels::from_pairs([("alertname", "A"), ("gpu", &n.to_string())]), 1)
            };
            manager.send((0..ALERTS).map(alert).collect());
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
}

/// Which alerts came how often, under which keys.
#[derive(Default)]
struct Came {
    of: HashMap<String, Vec<String>>,
}

impl Came {
    fn messages(&self) -> usize {
        self.of.values().map(Vec::len).sum()
    }
}

fn receiver() -> (String, Arc<Mutex<Came>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let came = Arc::new(Mutex::new(Came::default()));
    let kept = Arc::clone(&came);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || serve(&stream, &kept));
        }
    });
    (url, came)
}

fn serve(stream: &TcpStream, came: &Mutex<Came>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut key) = (0, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line == "\r\n" {
                    break;
                }
                continue;
            };
            match name.to_lowercase().as_str() {
                "content-length" => length = value.parse().expect("a length"),
                "idempotency-key" => value.clone_into(&mut key),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let gpu = body["groupLabels"]["gpu"].as_str().expect("a label").to_owned();
        came.lock().expect("no panic").of.entry(gpu).or_default().push(key);
        let mut out = stream;
        if out
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .is_err()
        {
            return;
        }
    }
}

fn start(folder: &Path, url: &str) -> Child {
    let own = std::env::current_exe().expect("this program");
    Command::new(own)
        .args(["--exact", "child", "--nocapture"])
        .env(FOLDER, folder)
        .env(URL, url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

fn kill(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("gone");
}

#[track_caller]
fn wait(came: &Mutex<Came>, what: &str, done: impl Fn(&Came) -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if done(&came.lock().expect("no panic")) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let came = came.lock().expect("no panic");
    panic!("{what}: {} alerts in {} messages came", came.of.len(), came.messages());
}

#[test]
fn nothing_is_lost_and_nothing_told_twice_over_kills() {
    let folder = tempfile::tempdir().expect("a folder");
    let (url, came) = receiver();
    let kills = [60, 200, 380];
    for at in kills {
        let child = start(folder.path(), &url);
        wait(&came, "before a kill", |came| came.of.len() >= at);
        kill(child);
    }
    let child = start(folder.path(), &url);
    wait(&came, "after the kills", |came| came.of.len() == ALERTS);
    // Time enough to tell again what is not known to be told.
    std::thread::sleep(Duration::from_secs(3));
    kill(child);
    let came = came.lock().expect("no panic");
    let twice: Vec<&Vec<String>> = came.of.values().filter(|keys| keys.len() > 1).collect();
    println!(
        "{} messages for {ALERTS} alerts, {} told again after a kill",
        came.messages(),
        twice.len()
    );
    assert!(
        twice.len() <= kills.len() * ON_THE_WAY_MAX,
        "{} were told again",
        twice.len()
    );
    for keys in twice {
        let different: HashSet<&String> = keys.iter().collect();
        assert_eq!(different.len(), 1, "a message told again has its key again");
    }
}
