//! Who may ask on a loopback listener: programs and pages of this machine, not pages from elsewhere.
//!
//! A browser lets any page send requests to this machine. A page whose name points here (DNS rebinding) could even
//! read the answers, so the `Host` must be a loopback name or one that is configured; and what changes something is
//! refused when its `Origin` is another site.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

/// The routes behind the guard; `names` are answered to beside the loopback's own.
pub fn guarded(router: Router, names: Vec<String>) -> Router {
    router.layer(from_fn_with_state(Arc::new(names), check))
}

async fn check(State(names): State<Arc<Vec<String>>>, request: Request, next: Next) -> Response {
    match refusal(&names, request.method(), request.uri(), request.headers()) {
        None => next.run(request).await,
        Some(reason) => (StatusCode::FORBIDDEN, reason).into_response(),
    }
}

/// Why a request is not answered. One without a `Host` comes from no browser.
fn refusal(names: &[String], method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let host = uri
        .authority()
        .map(Authority::as_str)
        .or_else(|| text(headers, header::HOST.as_str()));
    if let Some(host) = host.filter(|host| !is_ours(names, host)) {
        return Some(format!(
            "this server listens on loopback and answers to loopback names only, not to {host:?}: \
             open it as http://127.0.0.1, or configure the name as its external address\n"
        ));
    }
    let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let origin = text(headers, header::ORIGIN.as_str()).filter(|_| !reads)?;
    let site = origin.split_once("://").map_or(origin, |(_, site)| site);
    (!is_ours(names, site)).then(|| format!("a page of {origin:?} may change nothing here\n"))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // What is no text is no name of ours.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

fn is_ours(names: &[String], host: &str) -> bool {
    let name = without_port(host).trim_end_matches('.').to_ascii_lowercase();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost"
        || name.ends_with(".localhost")
        || address.is_ok_and(|address| address.is_loopback())
        || names.iter().any(|known| known.eq_ignore_ascii_case(&name))
}

/// The name in `name:port`, `[::1]:port` or an address of the web.
fn without_port(host: &str) -> &str {
    let end = host.rfind(']').map_or(0, |at| at + 1);
    host[end..].find(':').map_or(host, |at| &host[..end + at])
}

/// The host name in an address such as `https://gpu.example:8443/watch`; `None` without one.
pub fn host_of(address: &str) -> Option<String> {
    let uri = address.parse::<Uri>().ok()?;
    uri.host()
        .map(|host| host.trim_matches(['[', ']']).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &Method, pairs: &[(&'static str, &str)], answered: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().expect("a header"));
        }
        let names = [host_of("https://watch.example:8443/x").expect("a host")];
        let refusal = refusal(&names, method, &Uri::from_static("/"), &headers);
        assert_eq!(refusal.is_none(), answered, "{method} {pairs:?}: {refusal:?}");
    }

    #[test]
    fn only_loopback_and_configured_names_are_answered() {
        for host in [
            "127.0.0.1:9900",
            "127.8.8.8",
            "localhost",
            "LOCALHOST:1",
            "a.localhost:9900",
            "[::1]:9900",
            "localhost.",
            "watch.example",
            "Watch.Example:443",
        ] {
            check(&Method::GET, &[("host", host)], true);
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:9900",
            "10.0.0.1:9900",
            "[2001:db8::1]",
            "",
            "notlocalhost",
            "127.0.0.1@evil.example",
        ] {
            check(&Method::GET, &[("host", host)], false);
        }
        check(&Method::GET, &[], true);
    }

    #[test]
    fn a_page_from_elsewhere_changes_nothing() {
        let host = ("host", "127.0.0.1:9900");
        check(&Method::POST, &[host, ("origin", "https://evil.example")], false);
        check(&Method::POST, &[host, ("origin", "null")], false);
        check(&Method::POST, &[host, ("origin", "http://127.0.0.1:9900")], true);
        check(&Method::POST, &[host, ("origin", "https://watch.example")], true);
        check(&Method::POST, &[host], true);
        check(&Method::GET, &[host, ("origin", "https://evil.example")], true);
    }
}
