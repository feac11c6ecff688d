//! A talk with a mail server (RFC 5321): greeting, privacy, login, one mail.
//!
//! An answer 4xx passes, 5xx does not; a connection that fails may come up later. Lines of answers are bounded.

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use config::http::TlsConfig;
use md5::Md5;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::super::call::hex;
use super::super::failure::Failure;
use super::super::mac::hmac;
use super::mime::Mail;
use super::tls;
use crate::delivery::Reason;

/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Whom to hand mails to.
#[derive(Debug)]
pub struct Server {
    /// The host's name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What we call ourselves.
    pub hello: String,
    /// How the connection becomes private.
    pub security: Security,
    /// Whom to trust.
    pub tls: TlsConfig,
    /// Who we are.
    pub login: Login,
}

/// How a connection becomes private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// It does not.
    None,
    /// By a command; a server that does not know it is not told anything.
    StartTls,
    /// It is from the first byte.
    Implicit,
}

/// Who we are.
pub struct Login {
    /// The user; empty for nobody.
    pub user: String,
    /// On whose behalf; mostly empty.
    pub identity: String,
    /// The password for `PLAIN` and `LOGIN`.
    pub password: String,
    /// The secret for `CRAM-MD5`.
    pub secret: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<secret>")
    }
}

/// Anything that bytes go in and out of.
trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// Hands a mail over.
pub async fn deliver(server: &Server, mail: &Mail) -> Result<(), Failure> {
    let stream = TcpStream::connect((server.host.as_str(), server.port)).await;
    let stream = stream.map_err(|e| Failure::passing(format!("cannot connect to the mail server: {e}")))?;
    let mut talk = Talk::new(stream, server);
    if server.security == Security::Implicit {
        talk = talk.secured(server).await?;
    }
    talk.answer("the greeting").await?.success("the greeting")?;
    let mut offers = talk.hello(server).await?;
    if server.security == Security::StartTls {
        if !offers.has("STARTTLS") {
            let message = "require_tls is true (the default), but the mail server does not offer STARTTLS";
            return Err(Failure::passing(message));
        }
        talk.command("STARTTLS").await?.success("STARTTLS")?;
        talk = talk.secured(server).await?;
        offers = talk.hello(server).await?;
    }
    if !server.login.user.is_empty() {
        talk.login(server, &offers).await?;
    }
    talk.hand_over(mail).await?;
    // The mail is taken; how the server says good-bye changes nothing.
    drop(talk.command("QUIT").await);
    Ok(())
}

struct Talk {
    wire: Box<dyn Wire>,
    buffer: Vec<u8>,
    is_private: bool,
}

/// What a server says it can do.
struct Offers(String);

impl Offers {
    fn has(&self, word: &str) -> bool {
        self.0.lines().any(|line| {
            line.split_whitespace()
                .next()
                .is_some_and(|w| w.eq_ignore_ascii_case(word))
        })
    }

    /// The ways to log in.
    fn ways(&self) -> Vec<String> {
        let line = self
            .0
            .lines()
            .find(|line| line.get(..4).is_some_and(|w| w.eq_ignore_ascii_case("AUTH")));
        let words = line.map_or("", |line| &line[4..]);
        words
            .split([' ', '='])
            .filter(|w| !w.is_empty())
            .map(str::to_uppercase)
            .collect()
    }
}

struct Answer {
    code: u16,
    text: String,
}

impl Answer {
    /// The text, where the code tells of success or asks for more.
    fn success(self, what: &str) -> Result<String, Failure> {
        let line = self.text.lines().collect::<Vec<_>>().join(" ");
        match self.code {
            200..400 => Ok(self.text),
            code @ 400..500 => Err(Failure::passing(format!("{what}: {code} {line}")).because(Reason::Server)),
            code @ (530 | 534 | 535) => Err(Failure::last(format!("{what}: {code} {line}")).because(Reason::Auth)),
            code => Err(Failure::last(format!("{what}: {code} {line}")).because(Reason::Client)),
        }
    }
}

impl Talk {
    fn new(wire: impl Wire + 'static, server: &Server) -> Self {
        let address = server.host.parse::<IpAddr>();
        let is_local = server.host == "localhost" || address.is_ok_and(|a| a.is_loopback());
        Self {
            wire: Box::new(wire),
            buffer: Vec::new(),
            // Nobody listens between two programs of one machine.
            is_private: is_local,
        }
    }

    /// The same talk, private.
    async fn secured(self, server: &Server) -> Result<Self, Failure> {
        // What stands in the buffer came before privacy and could be anybody's.
        if !self.buffer.is_empty() {
            return Err(Failure::last("the mail server spoke before TLS began"));
        }
        let config = tls::client(&server.tls).map_err(|e| Failure::passing(format!("TLS: {e}")))?;
        let told = &server.tls.server_name;
        let name = if told.is_empty() { &server.host } else { told };
        let name = ServerName::try_from(name.clone()).map_err(|e| Failure::last(format!("TLS: {e}")))?;
        let connected = TlsConnector::from(Arc::new(config)).connect(name, self.wire).await;
        let wire = connected.map_err(|e| Failure::passing(format!("TLS with the mail server: {e}")))?;
        Ok(Self {
            wire: Box::new(wire),
            buffer: Vec::new(),
            is_private: true,
        })
    }

    async fn hello(&mut self, server: &Server) -> Result<Offers, Failure> {
        let answer = self.command(&format!("EHLO {}", server.hello)).await?;
        Ok(Offers(answer.success("EHLO")?))
    }

    /// Logs in the first way that both sides know, as the server ranks them.
    async fn login(&mut self, server: &Server, offers: &Offers) -> Result<(), Failure> {
        let login = &server.login;
        for way in offers.ways() {
            match way.as_str() {
                "CRAM-MD5" if !login.secret.is_empty() => return self.cram(login).await,
                "PLAIN" | "LOGIN" if !login.password.is_empty() => {
                    if !self.is_private {
                        return Err(Failure::last(
                            "the connection to the mail server is not private: the password is not sent over it",
                        )
                        .because(Reason::Auth));
                    }
                    return if way == "PLAIN" {
                        self.plain(login).await
                    } else {
                        self.words(login).await
                    };
                }
                _ => {}
            }
        }
        let message = "no way to log in that the mail server offers and the settings have a password or secret for";
        Err(Failure::last(message).because(Reason::Auth))
    }

    async fn plain(&mut self, login: &Login) -> Result<(), Failure> {
        let text = format!("{}\0{}\0{}", login.identity, login.user, login.password);
        let answer = self
            .command(&format!("AUTH PLAIN {}", BASE64_STANDARD.encode(text)))
            .await?;
        answer.success("AUTH PLAIN").map(drop)
    }

    async fn words(&mut self, login: &Login) -> Result<(), Failure> {
        self.command("AUTH LOGIN").await?.success("AUTH LOGIN")?;
        for word in [&login.user, &login.password] {
            self.command(&BASE64_STANDARD.encode(word))
                .await?
                .success("AUTH LOGIN")?;
        }
        Ok(())
    }

    async fn cram(&mut self, login: &Login) -> Result<(), Failure> {
        let challenge = self.command("AUTH CRAM-MD5").await?.success("AUTH CRAM-MD5")?;
        let challenge = BASE64_STANDARD.decode(challenge.trim());
        let challenge = challenge.map_err(|e| Failure::last(format!("AUTH CRAM-MD5: the challenge: {e}")))?;
        let code = hex(&hmac::<Md5>(login.secret.as_bytes(), &challenge));
        let reply = BASE64_STANDARD.encode(format!("{} {code}", login.user));
        self.command(&reply).await?.success("AUTH CRAM-MD5").map(drop)
    }

    async fn hand_over(&mut self, mail: &Mail) -> Result<(), Failure> {
        self.command(&format!("MAIL FROM:<{}>", mail.sender))
            .await?
            .success("MAIL FROM")?;
        for receiver in &mail.receivers {
            self.command(&format!("RCPT TO:<{receiver}>"))
                .await?
                .success("RCPT TO")?;
        }
        self.command("DATA").await?.success("DATA")?;
        let mut text = String::new();
        for line in mail.write().split_terminator("\r\n") {
            // A line that is a dot would end the mail.
            if line.starts_with('.') {
                text.push('.');
            }
            text.push_str(line);
            text.push_str("\r\n");
        }
        text.push('.');
        self.command(&text).await?.success("the mail").map(drop)
    }

    async fn command(&mut self, line: &str) -> Result<Answer, Failure> {
        let failed = |e: std::io::Error| Failure::passing(format!("the mail server went away: {e}"));
        self.wire
            .write_all(format!("{line}\r\n").as_bytes())
            .await
            .map_err(failed)?;
        self.wire.flush().await.map_err(failed)?;
        self.answer("an answer").await
    }

    /// Reads an answer of one or more lines.
    async fn answer(&mut self, what: &str) -> Result<Answer, Failure> {
        let mut text = String::new();
        let mut size = 0;
        loop {
            let line = self.line(what).await?;
            size += line.len();
            let (code, rest) = line.split_at_checked(3).unwrap_or((&line, ""));
            let code: u16 = code
                .parse()
                .map_err(|_| Failure::passing(format!("{what}: no mail server speaks here")))?;
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(rest.get(1..).unwrap_or(""));
            if !rest.starts_with('-') {
                return Ok(Answer { code, text });
            }
            if size > ANSWER_BYTES_MAX {
                return Err(Failure::passing(format!(
                    "{what}: the mail server does not come to an end"
                )));
            }
        }
    }

    async fn line(&mut self, what: &str) -> Result<String, Failure> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.buffer.len() > ANSWER_BYTES_MAX {
                return Err(Failure::passing(format!(
                    "{what}: a line of the mail server is too long"
                )));
            }
            let read = self.wire.read_buf(&mut self.buffer).await;
            let read = read.map_err(|e| Failure::passing(format!("{what}: the mail server went away: {e}")))?;
            if read == 0 {
                return Err(Failure::passing(format!("{what}: the mail server hung up")));
            }
        }
    }
}
