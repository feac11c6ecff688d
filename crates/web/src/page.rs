//! The web page, embedded: files of `ui/dist`, and `index.html` for every address the page itself understands.

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
struct Dist;

/// Nothing from outside, no frame around us.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// Answers with a file of the page.
pub async fn page(uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    if let Some(file) = Dist::get(path) {
        return asset(path, file);
    }
    // A name with an extension is a file that is missing; anything else is an address inside the page.
    let last = path.rsplit('/').next().unwrap_or("");
    let is_file = path.starts_with("assets/") || (last.contains('.') && !path.contains('/'));
    match Dist::get("index.html") {
        Some(index) if !is_file => asset("index.html", index),
        _ => (StatusCode::NOT_FOUND, "no such file\n").into_response(),
    }
}

fn asset(path: &str, file: rust_embed::EmbeddedFile) -> Response {
    // Vite names assets by their content, so they never change under one address.
    let cache = if path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    (
        [
            (header::CONTENT_TYPE, content_type(path)),
            (header::CACHE_CONTROL, cache),
            (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
        ],
        file.data.into_owned(),
    )
        .into_response()
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
