//! The web page, embedded: files of `ui/dist`, and `index.html` for the addresses the page itself understands.

use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
struct Dist;

/// Nothing from outside, no frame around us.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// The addresses that the page itself understands, as `ui/src/app.tsx` has them; below the folders, any one.
const ADDRESSES: [&str; 3] = ["", "alerts", "targets"];
const FOLDERS: [&str; 3] = ["gpu/", "host/", "runbooks/"];

/// Answers with a file of the page.
pub async fn page(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().strip_prefix('/').unwrap_or("");
    let name = if is_address(path) { "index.html" } else { path };
    let Some(file) = Dist::get(name) else {
        return plain(StatusCode::NOT_FOUND, "there is nothing at this address\n");
    };
    if !matches!(method, Method::GET | Method::HEAD) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "pages are read only\n");
    }
    asset(name, file, &headers)
}

fn is_address(path: &str) -> bool {
    let below = |folder: &&str| path.strip_prefix(*folder).is_some_and(|name| !name.is_empty());
    ADDRESSES.contains(&path) || FOLDERS.iter().any(below)
}

fn plain(status: StatusCode, text: &'static str) -> Response {
    (status, SECURITY, text).into_response()
}

/// What a browser must keep to on every answer of the page.
const SECURITY: [(HeaderName, &str); 3] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

fn asset(path: &str, file: rust_embed::EmbeddedFile, asked: &HeaderMap) -> Response {
    // Vite names assets by their content, so they never change under one address.
    let cache = if path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let tag = tag(&file.metadata.sha256_hash());
    let kept = [(header::CACHE_CONTROL, cache.to_owned()), (header::ETAG, tag.clone())];
    if knows(asked, &tag) {
        return (StatusCode::NOT_MODIFIED, SECURITY, kept).into_response();
    }
    (
        SECURITY,
        kept,
        [(header::CONTENT_TYPE, content_type(path))],
        file.data.into_owned(),
    )
        .into_response()
}

/// Weak, because the answer may be compressed on its way.
fn tag(hash: &[u8; 32]) -> String {
    let hex: String = hash[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("W/\"{hex}\"")
}

fn knows(asked: &HeaderMap, tag: &str) -> bool {
    let lists = asked
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let strong = tag.trim_start_matches("W/");
    lists
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|one| one == "*" || one.trim_start_matches("W/") == strong)
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("json" | "map") => "application/json",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}
