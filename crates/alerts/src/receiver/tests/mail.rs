//! Mail against a server that records the talk.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Mutex;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/localhost.crt");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/localhost.key");

/// How the server is.
#[derive(Clone, Copy, Default)]
struct Manner {
    /// What it offers beside its name.
    offers: &'static [&'static str],
    /// Whether it is private from the first byte.
    implicit: bool,
    /// A command's beginning, and what is answered in place of success.
    refuses: Option<(&'static str, &'static str)>,
}

struct Server {
    port: u16,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                tokio::spawn(async move {
                    if manner.implicit {
                        let stream = acceptor().accept(stream).await.expect("TLS");
                        talk(stream, manner, &kept, true).await;
                    } else if let Some(stream) = talk(stream, manner, &kept, true).await {
                        let stream = acceptor().accept(stream).await.expect("TLS");
                        kept.lock().expect("no panic").push("(private)".to_owned());
                        talk(stream, manner, &kept, false).await;
                    }
                });
            }
        });
        Self { port, lines }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").clone()
    }
}

fn acceptor() -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(CERTIFICATE).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(KEY).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a pair");
    TlsAcceptor::from(Arc::new(config))
}

/// Talks until the end, or until privacy is asked for: then the stream comes back.
async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    manner: Manner,
    kept: &Mutex<Vec<String>>,
    greets: bool,
) -> Option<S> {
    let mut stream = BufReader::new(stream);
    if greets {
        stream.write_all(b"220 mail.example ready\r\n").await.ok()?;
    }
    let (mut is_mail, mut words) = (false, 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return None;
        }
        let line = line.trim_end_matches("\r\n").to_owned();
        kept.lock().expect("no panic").push(line.clone());
        let refused = manner.refuses.filter(|(begin, _)| line.starts_with(begin));
        let answer = if let Some((_, answer)) = refused {
            answer.to_owned()
        } else if is_mail {
            if line != "." {
                continue;
            }
            is_mail = false;
            "250 taken".to_owned()
        } else if words > 0 {
            words -= 1;
            if words == 0 {
                "235 welcome".to_owned()
            } else {
                "334 UGFzc3dvcmQ6".to_owned()
            }
        } else if line.starts_with("EHLO") {
            let offers = manner.offers.iter().map(|o| format!("250-{o}\r\n")).collect::<String>();
            format!("250-mail.example\r\n{offers}250 8BITMIME")
        } else if line == "STARTTLS" {
            stream.write_all(b"220 go\r\n").await.ok()?;
            return Some(stream.into_inner());
        } else if line == "AUTH LOGIN" {
            words = 2;
            "334 VXNlcm5hbWU6".to_owned()
        } else if line == "AUTH CRAM-MD5" {
            words = 1;
            format!(
                "334 {}",
                BASE64_STANDARD.encode("<1896.697170952@postoffice.reston.mci.net>")
            )
        } else if line == "DATA" {
            is_mail = true;
            "354 go on".to_owned()
        } else if line.starts_with("AUTH PLAIN") {
            "235 welcome".to_owned()
        } else if line == "QUIT" {
            "221 bye".to_owned()
        } else {
            "250 ok".to_owned()
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await.ok()?;
    }
}

/// What is said to a server of this manner by a receiver with these settings.
async fn mailed(settings: &str, manner: Manner, notification: &Notification) -> (Vec<String>, Receipt) {
    let server = Server::start(manner).await;
    let told = format!(
        "email_configs: [{{to: 'On call <a@b.example>, c@d.example', from: watchfire@w.example, smarthost: 'localhost:{}', {settings}}}]",
        server.port
    );
    let receipt = sender(&told, "").send(notification).await;
    // The last line of the talk may still be on its way to the record; nothing below looks at it.
    (server.lines(), receipt)
}

fn decoded(lines: &[String]) -> String {
    lines
        .join("\n")
        .replace("=\n", "")
        .replace("=3D", "=")
        .replace("=C2=B0", "°")
}

#[tokio::test]
async fn a_mail_has_two_parts_and_the_usual_headers() {
    let (lines, receipt) = mailed(
        "require_tls: false, headers: {X-Own: '{{ .Status }}'}",
        Manner::default(),
        &firing(),
    )
    .await;
    assert_eq!(receipt.outcome, Outcome::Sent, "{lines:?}");
    assert!(receipt.address.starts_with("smtp://localhost:"), "{}", receipt.address);
    assert_eq!(
        &lines[..5],
        [
            "EHLO localhost",
            "MAIL FROM:<watchfire@w.example>",
            "RCPT TO:<a@b.example>",
            "RCPT TO:<c@d.example>",
            "DATA"
        ]
    );
    for line in [
        "X-Own: firing",
        "From: watchfire@w.example",
        "To: On call <a@b.example>, c@d.example",
        "Subject: [FIRING:2] GpuHot (critical)",
        "Date: Tue, 14 Nov 2023 22:13:20 +0000",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Type: text/html; charset=UTF-8",
        ".",
    ] {
        assert!(lines.iter().any(|l| l == line), "{line} in {lines:#?}");
    }
    let id = lines.iter().find(|l| l.starts_with("Message-Id: <")).expect("a name");
    assert!(id.ends_with("@w.example>"), "{id}");
    let text = decoded(&lines);
    for part in [
        "It is at 91 °C.",
        "GPU <b>is</b> hot",
        "GPU &lt;b&gt;is&lt;/b&gt; hot",
        "<b>To do:</b> Look at the fans.",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(lines.iter().all(|l| l.len() <= 998 && l.is_ascii()));
}

#[tokio::test]
async fn privacy_begins_by_command_before_the_password_is_sent() {
    let manner = Manner {
        offers: &["STARTTLS", "AUTH LOGIN PLAIN"],
        ..Manner::default()
    };
    let settings = format!("auth_username: u, auth_password: hunter2, tls_config: {{ca_file: '{CERTIFICATE}'}}");
    let (lines, receipt) = mailed(&settings, manner, &firing()).await;
    assert_eq!(receipt.outcome, Outcome::Sent, "{lines:?}");
    assert_eq!(
        &lines[..7],
        [
            "EHLO localhost",
            "STARTTLS",
            "(private)",
            "EHLO localhost",
            "AUTH LOGIN",
            "dQ==",
            "aHVudGVyMg=="
        ]
    );
}

#[tokio::test]
async fn privacy_from_the_first_byte() {
    let manner = Manner {
        offers: &["AUTH PLAIN"],
        implicit: true,
        ..Manner::default()
    };
    let settings = format!(
        "force_implicit_tls: true, hello: me, auth_username: u, auth_password: p, auth_identity: i, tls_config: {{ca_file: '{CERTIFICATE}'}}"
    );
    let (lines, receipt) = mailed(&settings, manner, &firing()).await;
    assert_eq!(receipt.outcome, Outcome::Sent, "{lines:?}");
    assert_eq!(&lines[..2], ["EHLO me", "AUTH PLAIN aQB1AHA="]);
}

#[tokio::test]
async fn a_challenge_is_answered_with_a_code() {
    // The example of RFC 2195.
    let manner = Manner {
        offers: &["AUTH CRAM-MD5"],
        ..Manner::default()
    };
    let settings = "require_tls: false, auth_username: tim, auth_secret: tanstaaftanstaaf";
    let (lines, receipt) = mailed(settings, manner, &firing()).await;
    assert_eq!(receipt.outcome, Outcome::Sent, "{lines:?}");
    let reply = BASE64_STANDARD.decode(&lines[2]).expect("base64");
    assert_eq!(String::from_utf8_lossy(&reply), "tim b913a602c7eda7a495b4e6e7334d3890");
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let manner = Manner {
        offers: &["STARTTLS"],
        ..Manner::default()
    };
    let (_, receipt) = mailed("", manner, &firing()).await;
    assert!(
        matches!(&receipt.outcome, Outcome::Retry(p) if p.message.contains("certificate")),
        "{receipt:?}"
    );
    let (_, receipt) = mailed("tls_config: {insecure_skip_verify: true}", manner, &firing()).await;
    assert_eq!(receipt.outcome, Outcome::Sent);
}

#[tokio::test]
async fn what_a_server_refuses_is_final_or_passes() {
    let cases: [(&str, Manner, bool, Reason, &str); 5] = [
        ("", Manner::default(), true, Reason::Other, "does not offer STARTTLS"),
        (
            "require_tls: false",
            Manner {
                refuses: Some(("RCPT", "550 no such user")),
                ..Manner::default()
            },
            false,
            Reason::Client,
            "RCPT TO: 550 no such user",
        ),
        (
            "require_tls: false",
            Manner {
                refuses: Some(("MAIL", "451 later")),
                ..Manner::default()
            },
            true,
            Reason::Server,
            "MAIL FROM: 451 later",
        ),
        (
            "require_tls: false, auth_username: u, auth_password: hunter2",
            Manner {
                offers: &["AUTH PLAIN"],
                refuses: Some(("AUTH", "535 bad credentials")),
                ..Manner::default()
            },
            false,
            Reason::Auth,
            "535 bad credentials",
        ),
        (
            "require_tls: false, auth_username: u, auth_password: hunter2",
            Manner {
                offers: &["AUTH XOAUTH2"],
                ..Manner::default()
            },
            false,
            Reason::Auth,
            "no way to log in",
        ),
    ];
    for (settings, manner, retry, reason, message) in cases {
        let (_, receipt) = mailed(settings, manner, &firing()).await;
        let (problem, retried) = match &receipt.outcome {
            Outcome::Sent => panic!("{message}: sent"),
            Outcome::Retry(problem) => (problem, true),
            Outcome::Failed(problem) => (problem, false),
        };
        assert!(
            problem.message.contains(message) && !problem.message.contains("hunter2"),
            "{problem}"
        );
        assert_eq!((retried, problem.reason), (retry, reason), "{message}");
    }
}

#[tokio::test]
async fn a_thread_has_one_root_a_day() {
    let settings = "require_tls: false, threading: {enabled: true, thread_by_date: daily}";
    let (first, _) = mailed(settings, Manner::default(), &firing()).await;
    let (second, _) = mailed(settings, Manner::default(), &resolved()).await;
    let root = |lines: &[String]| lines.iter().find(|l| l.starts_with("References:")).cloned();
    assert!(
        root(&first).is_some_and(|r| r.ends_with("-2023-11-14@watchfire>")),
        "{:?}",
        root(&first)
    );
    assert_eq!(root(&first), root(&second));
}
