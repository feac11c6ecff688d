//! `write` and `otlp/v1/metrics`: what others push.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use remote::otlp::Encoding;
use remote::write::{Version, Written};

use crate::hub::Hub;

/// How long a sender may take to send its body, and how long a request waits for a place.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
const PLACE_TIMEOUT: Duration = Duration::from_secs(10);

/// `POST /api/v1/write`
pub async fn write(State(hub): State<Arc<Hub>>, headers: HeaderMap, body: Body) -> Response {
    let content = text(&headers, header::CONTENT_TYPE);
    let Some(version) = Version::from_content_type(content) else {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &format!("content type {content:?} is none of remote write's"),
        );
    };
    let encoding = text(&headers, header::CONTENT_ENCODING);
    if !encoding.eq_ignore_ascii_case("snappy") {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &format!("content encoding {encoding:?} is not supported, only snappy is"),
        );
    }
    let limit = hub.data.write.limits().compressed;
    let pushed = push(&hub, &headers, body, limit, move |hub, body| {
        hub.data.write.receive(body, version, hub.now())
    });
    let (written, result) = match pushed.await {
        Ok(done) => done,
        Err(response) => return response,
    };
    let mut response = match result {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => refusal(&error),
    };
    if version == Version::V2 {
        put_written(&mut response, written);
    }
    response
}

fn put_written(response: &mut Response, written: Written) {
    for (name, count) in [
        ("x-prometheus-remote-write-samples-written", written.samples),
        ("x-prometheus-remote-write-histograms-written", written.histograms),
        ("x-prometheus-remote-write-exemplars-written", written.exemplars),
    ] {
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), HeaderValue::from(count));
    }
}

/// `POST /api/v1/otlp/v1/metrics`
pub async fn otlp(State(hub): State<Arc<Hub>>, headers: HeaderMap, body: Body) -> Response {
    let content = text(&headers, header::CONTENT_TYPE);
    let Some(encoding) = Encoding::from_content_type(content) else {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &format!("content type {content:?} is neither application/x-protobuf nor application/json"),
        );
    };
    let packed = text(&headers, header::CONTENT_ENCODING).to_ascii_lowercase();
    if !matches!(packed.as_str(), "" | "identity" | "gzip") {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &format!("content encoding {packed:?} is not supported, only gzip is"),
        );
    }
    let limit = hub.data.otlp.limits().compressed;
    let pushed = push(&hub, &headers, body, limit, move |hub, body| {
        hub.data.otlp.receive(body, encoding, packed == "gzip", hub.now())
    });
    match pushed.await {
        Err(response) => response,
        Ok(Err(error)) => refusal(&error),
        Ok(Ok(answer)) => ([(header::CONTENT_TYPE, encoding.content_type())], answer).into_response(),
    }
}

/// Reads the body and does the work on a thread that may block, with a place for it.
async fn push<T: Send + 'static>(
    hub: &Arc<Hub>,
    headers: &HeaderMap,
    body: Body,
    limit: u64,
    work: impl FnOnce(&Hub, &[u8]) -> T + Send + 'static,
) -> Result<T, Response> {
    if let Err(error) = hub.check_ready() {
        return Err(error.into_response());
    }
    let told = text(headers, header::CONTENT_LENGTH).parse::<u64>().unwrap_or(0);
    if told > limit {
        let reason = format!("the body has {told} bytes, at most {limit} are taken");
        return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, &reason));
    }
    let place = tokio::time::timeout(PLACE_TIMEOUT, Arc::clone(&hub.data.pushes).acquire_owned()).await;
    let Ok(Ok(place)) = place else {
        return Err(later("too many requests push at once"));
    };
    let body = read(body, limit).await?;
    let hub = Arc::clone(hub);
    let done = tokio::task::spawn_blocking(move || {
        let done = work(&hub, &body);
        drop(place);
        done
    });
    done.await.map_err(|e| {
        refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            &format!("BUG: the request's thread ended early: {e}"),
        )
    })
}

/// A body within its bounds of size and time.
pub async fn read(body: Body, limit: u64) -> Result<Bytes, Response> {
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    match tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("cannot read the body (at most {limit} bytes): {error}"),
        )),
        Err(_) => Err(refuse(
            StatusCode::REQUEST_TIMEOUT,
            &format!("the body did not arrive within {BODY_TIMEOUT:?}"),
        )),
    }
}

/// The answer to what `remote` refuses, in the classes that senders act upon.
pub fn refusal(error: &remote::Error) -> Response {
    let reason = error.to_string();
    if error.is_temporary() {
        return later(&reason);
    }
    let status = match error {
        remote::Error::Size { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        remote::Error::Unsupported(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        _ => StatusCode::BAD_REQUEST,
    };
    refuse(status, &reason)
}

fn later(reason: &str) -> Response {
    let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, reason);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// A refusal in plain words: senders put it into their log as it is.
pub fn refuse(status: StatusCode, reason: &str) -> Response {
    (status, format!("{reason}\n")).into_response()
}

/// A header's text; empty where it is absent.
pub fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("").trim()
}
