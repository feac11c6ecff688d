//! `read`: Prometheus' remote read, as samples or as a stream of chunks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use remote::read::{Answer, ReadRequest, Stream, answer};
use tokio::sync::mpsc;

use super::push::{read as read_body, refusal, refuse};
use crate::hub::Hub;

/// Samples of an answer that is one body; the field's own bound.
const SAMPLES_MAX: usize = 50_000_000;

/// Messages made ahead of the client.
const AHEAD: usize = 2;

/// `POST /api/v1/read`
pub async fn read(State(hub): State<Arc<Hub>>, body: Body) -> Response {
    if let Err(error) = hub.check_ready() {
        return error.into_response();
    }
    let limits = *hub.data.write.limits();
    let body = match read_body(body, limits.compressed).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let Ok(place) = Arc::clone(&hub.query_slots).acquire_owned().await else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "this server is shutting down");
    };
    let asked = Arc::clone(&hub);
    let work = move || {
        let request = ReadRequest::read(&body, &limits)?;
        let external = (asked.data.config)().external_labels;
        let found = answer(&request, &*asked.data.store, &external, SAMPLES_MAX)?;
        Ok::<_, remote::Error>((found, place))
    };
    match tokio::task::spawn_blocking(work).await {
        Err(error) => refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            &format!("BUG: the request's thread ended early: {error}"),
        ),
        Ok(Err(error)) => refusal(&error),
        Ok(Ok((Answer::Samples(body), _place))) => {
            let headers = [
                (header::CONTENT_TYPE, "application/x-protobuf"),
                (header::CONTENT_ENCODING, "snappy"),
            ];
            (headers, body).into_response()
        }
        Ok(Ok((Answer::Stream(stream), place))) => {
            let content = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";
            let (frames, waiting) = mpsc::channel(AHEAD);
            tokio::task::spawn_blocking(move || {
                send(stream, &frames);
                drop(place);
            });
            ([(header::CONTENT_TYPE, content)], Body::new(Frames(waiting))).into_response()
        }
    }
}

/// Makes messages until the end, an error, or nobody listens.
fn send(mut stream: Stream, frames: &mpsc::Sender<Result<Bytes, remote::Error>>) {
    loop {
        let next = match stream.next_frame() {
            Ok(None) => return,
            Ok(Some(frame)) => Ok(Bytes::from(frame)),
            Err(error) => Err(error),
        };
        let is_last = next.is_err();
        if frames.blocking_send(next).is_err() || is_last {
            return;
        }
    }
}

/// A body of messages that come through a channel.
struct Frames(mpsc::Receiver<Result<Bytes, remote::Error>>);

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = remote::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, remote::Error>>> {
        self.0
            .poll_recv(cx)
            .map(|next| next.map(|frame| frame.map(Frame::data)))
    }
}
