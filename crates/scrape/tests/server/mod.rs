//! A target on loopback that answers as it is told, well or badly.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// Reads the request and says nothing.
    Hang,
    /// A byte now and then, for ever.
    Drip,
    /// Samples without end.
    Endless,
}

impl Reply {
    pub fn raw(bytes: &str) -> Self {
        Self::Bytes(bytes.as_bytes().to_vec())
    }

    pub fn ok(headers: &str, body: &[u8]) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        Self::Bytes([head.as_bytes(), body].concat())
    }

    pub fn page(text: &str) -> Self {
        Self::ok("Content-Type: text/plain; version=0.0.4\r\n", text.as_bytes())
    }
}

/// Answers one request a connection; the last reply again and again.
pub struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
    replies: Arc<Mutex<Vec<Reply>>>,
}

impl Server {
    pub async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = Self {
            address: listener.local_addr().expect("bound").to_string(),
            requests: Arc::default(),
            replies: Arc::new(Mutex::new(replies)),
        };
        let (requests, replies) = (server.requests.clone(), server.replies.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let reply = {
                    let mut replies = replies.lock().expect("no panic");
                    if replies.len() > 1 {
                        replies.remove(0)
                    } else {
                        replies[0].clone()
                    }
                };
                tokio::spawn(answer(stream, reply, requests.clone()));
            }
        });
        server
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }

    /// From now on, this.
    pub fn reply(&self, reply: Reply) {
        *self.replies.lock().expect("no panic") = vec![reply];
    }
}

/// Whether head and body are there.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: "));
    length.is_none_or(|length| length.trim() == body.len().to_string())
}

async fn answer(mut stream: TcpStream, reply: Reply, requests: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !is_whole(&request) {
        match stream.read(&mut buffer).await {
            Ok(n) if n > 0 => request.extend_from_slice(&buffer[..n]),
            _ => return,
        }
    }
    requests
        .lock()
        .expect("no panic")
        .push(String::from_utf8_lossy(&request).into_owned());
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
    match reply {
        Reply::Bytes(bytes) => {
            let text = String::from_utf8_lossy(&bytes).replacen("\r\n", "\r\nConnection: close\r\n", 1);
            let bytes = if text.starts_with("HTTP") && !text.contains('\u{fffd}') {
                text.into_bytes()
            } else {
                bytes
            };
            let _ = stream.write_all(&bytes).await;
        }
        Reply::Hang => std::future::pending().await,
        Reply::Drip => {
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(b"1\r\n#\r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Reply::Endless => {
            let _ = stream.write_all(head.as_bytes()).await;
            let line = b"x_with_a_long_name{label=\"value\"} 123456789\n".repeat(2_000);
            let chunk = [format!("{:x}\r\n", line.len()).as_bytes(), &line, b"\r\n"].concat();
            while stream.write_all(&chunk).await.is_ok() {}
        }
    }
}
