//! A server on loopback that remembers requests and gives the answers it was told, then 200.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// `POST /path?query`
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
}

impl Asked {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value)
    }

    /// The fields of a form.
    pub fn form(&self) -> Vec<(String, String)> {
        let url = reqwest::Url::parse(&format!("http://x/?{}", self.body)).expect("a form");
        url.query_pairs()
            .map(|(k, v)| (k.into_owned(), v.into_owned()))
            .collect()
    }
}

pub struct Fake {
    /// Where it is, without a slash at the end.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

type Answers = Arc<Mutex<VecDeque<(u16, String)>>>;

impl Fake {
    pub async fn start(answers: &[(u16, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: VecDeque<_> = answers.iter().map(|(code, body)| (*code, (*body).to_owned())).collect();
        let (kept, answers) = (Arc::clone(&asked), Arc::new(Mutex::new(answers)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&kept), Arc::clone(&answers)));
            }
        });
        Self { url, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

async fn serve(mut stream: TcpStream, kept: Arc<Mutex<Vec<Asked>>>, answers: Answers) {
    let mut buffer = Vec::new();
    loop {
        let (asked, size) = loop {
            if let Some(found) = request(&buffer) {
                break found;
            }
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        };
        buffer.drain(..size);
        kept.lock().expect("no panic").push(asked);
        let (code, body) = answers
            .lock()
            .expect("no panic")
            .pop_front()
            .unwrap_or((200, "ok".to_owned()));
        let kind = if body.starts_with(['{', '[']) {
            "application/json"
        } else {
            "text/plain"
        };
        let answer = format!(
            "HTTP/1.1 {code} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A whole request and its size, once it is there.
fn request(bytes: &[u8]) -> Option<(Asked, usize)> {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.lines();
    let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|l| l.split_once(": "))
        .map(|(n, v)| (n.to_lowercase(), v.to_owned()))
        .collect();
    let length = headers.iter().find(|(n, _)| n == "content-length");
    let length: usize = length.map_or(0, |(_, v)| v.parse().expect("a length"));
    let body = bytes.get(end + 4..end + 4 + length)?;
    let asked = Asked {
        line,
        headers,
        body: String::from_utf8_lossy(body).into_owned(),
    };
    Some((asked, end + 4 + length))
}
