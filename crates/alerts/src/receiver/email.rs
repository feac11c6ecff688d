//! E-mail: a message with a plain and an HTML part, handed to a mail server.
//!
//! [`mime`] writes the message, [`smtp`] speaks with the server, [`tls`] makes the connection private. A password is
//! never sent over a connection that is not, unless the server is on this machine.

use std::time::Duration;

use config::alertmanager::Found;

use super::call::{Call, Form};
use super::client;
use super::failure::Failure;
use crate::delivery::Reason;

mod address;
mod mime;
mod smtp;
mod tls;

pub use mime::Mail;

use address::Address;
use smtp::{Login, Security, Server};

/// How long all of it may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The port on which a connection is private from its first byte.
const SECURE_PORT: u16 = 465;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let server = server(call).await?;
    call.line
        .memory_of_address(&format!("smtp://{}:{}", server.host, server.port));
    let mail = mail(call)?;
    let told = tokio::time::timeout(TIMEOUT, smtp::deliver(&server, &mail)).await;
    told.unwrap_or_else(|_| {
        let message = format!("the mail server did not finish within {} s", TIMEOUT.as_secs());
        Err(Failure::passing(message).because(Reason::Deadline))
    })
}

async fn server(call: &Call<'_>) -> Result<Server, Failure> {
    let settings = call.settings;
    let (host, port) = host_port(settings.text("smarthost"))?;
    let security = if settings.flag("force_implicit_tls", port == SECURE_PORT) {
        Security::Implicit
    } else if settings.flag("require_tls", true) {
        Security::StartTls
    } else {
        Security::None
    };
    let secret = async |key: &str, file: &str| {
        let told = client::secret(settings.text(key), settings.text(file)).await;
        told.map_err(Failure::passing)
    };
    Ok(Server {
        host,
        port,
        hello: settings.text_or("hello", "localhost").to_owned(),
        security,
        tls: settings.tls().cloned().unwrap_or_default(),
        login: Login {
            user: settings.text("auth_username").to_owned(),
            identity: settings.text("auth_identity").to_owned(),
            password: secret("auth_password", "auth_password_file").await?,
            secret: secret("auth_secret", "auth_secret_file").await?,
        },
    })
}

/// `host:port` or `[address]:port`.
fn host_port(text: &str) -> Result<(String, u16), Failure> {
    let bad = || Failure::last(format!("smarthost {text:?} is no host and port"));
    let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), port.parse().map_err(|_| bad())?))
}

/// The message with its headers; the settings' own go before ours.
fn mail(call: &Call<'_>) -> Result<Mail, Failure> {
    let settings = call.settings;
    let needed = |key: &str| call.needed(key, settings.text(key));
    let (from, to) = (needed("from")?, needed("to")?);
    let sender = Address::read_list(&from).map_err(|e| Failure::last(format!("from: {e}")))?;
    let receivers = Address::read_list(&to).map_err(|e| Failure::last(format!("to: {e}")))?;
    let [sender] = &sender[..] else {
        return Err(Failure::last("from: exactly one address must be given"));
    };
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, template) in settings.map("headers").into_iter().flatten() {
        let default = if name.eq_ignore_ascii_case("subject") {
            SUBJECT
        } else {
            ""
        };
        headers.push((name.clone(), call.fill(Form::Text, name, template, default)));
    }
    let mut put = |name: &str, value: &dyn Fn() -> String| {
        if !headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value()));
        }
    };
    put("From", &|| from.clone());
    put("To", &|| to.clone());
    put("Subject", &|| call.fill(Form::Text, "Subject", SUBJECT, SUBJECT));
    put("Date", &|| mime::date(call.notification.at));
    let domain = sender.domain().to_owned();
    put("Message-Id", &|| message_id(call, &domain));
    if let Some(thread) = thread(call, settings) {
        put("References", &|| thread.clone());
        put("In-Reply-To", &|| thread.clone());
    }
    let html = settings.text_or("html", HTML);
    let text = settings.text_or("text", TEXT);
    let part = |form, key, template: &str, default| {
        let written = !template.is_empty();
        written.then(|| call.body(form, key, default))
    };
    Ok(Mail {
        sender: sender.path.clone(),
        receivers: receivers.into_iter().map(|a| a.path).collect(),
        headers,
        text: part(Form::Text, "text", text, TEXT),
        html: part(Form::Html, "html", html, HTML),
        boundary: call.group_hash(),
    })
}

const SUBJECT: &str = r#"{{ template "email.default.subject" . }}"#;
const HTML: &str = r#"{{ template "email.default.html" . }}"#;
const TEXT: &str = r#"{{ template "email.default.text" . }}"#;

/// A name that no other message has: the group, the moment and the attempt.
fn message_id(call: &Call<'_>, domain: &str) -> String {
    let told = call.notification;
    format!("<{}.{}.{}@{domain}>", told.at, told.id, &call.group_hash()[..16])
}

/// What the messages of a group, or of a group's day, refer to, so that they are shown as one thread.
fn thread(call: &Call<'_>, settings: &Found) -> Option<String> {
    let threading = settings
        .sections("threading")
        .next()
        .filter(|t| t.flag("enabled", false))?;
    let day = match threading.text_or("thread_by_date", "daily") {
        "none" => String::new(),
        _ => format!("-{}", mime::day(call.notification.at)),
    };
    Some(format!("<alert-{}{day}@watchfire>", call.group_hash()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smarthost_is_a_host_and_a_port() {
        let read = |text| host_port(text).ok();
        assert_eq!(read("a.example:587"), Some(("a.example".into(), 587)));
        assert_eq!(read("[::1]:25"), Some(("::1".into(), 25)));
        assert_eq!((read("a.example"), read("a:b")), (None, None));
    }
}
