//! A listener and the loop that answers on it.
//!
//! Bounded: connections, the time a client may take to ask, and the time a shutdown waits. What a request costs is
//! bounded where it is read.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::guard;

/// How long a shutdown waits for answers under way.
const DRAIN: Duration = Duration::from_secs(5);

/// Connections at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 1024;

/// How long a client may take for the head of a request, counted from its connection or from its last answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How long to wait after a failed accept: out of files, as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Off loopback, and nobody said that this is meant.
    #[error(
        "{address} can be reached from other machines and there is no authentication: listen on 127.0.0.1, \
         or set `insecure: true` (--insecure) if the network around it is trusted"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// Another process listens there.
    #[error("{address} is taken by another process: choose another with --listen")]
    Taken {
        /// The address.
        address: SocketAddr,
    },
    /// Anything else.
    #[error("cannot listen on {address}")]
    Io {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

/// Opens a listener; off loopback only where `insecure` says so.
///
/// # Errors
///
/// See [`ListenError`].
pub async fn listen(address: SocketAddr, insecure: bool) -> Result<TcpListener, ListenError> {
    if !address.ip().is_loopback() && !insecure {
        return Err(ListenError::Open { address });
    }
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => ListenError::Taken { address },
        _ => ListenError::Io { address, source },
    })
}

/// Routes, and the names that people reach them by beside the loopback's.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// The routes.
    pub router: Router,
    /// Host names that a request may name on a loopback listener: those a proxy in front goes by.
    pub names: Vec<String>,
}

impl From<Router> for Site {
    fn from(router: Router) -> Self {
        Self {
            router,
            names: Vec::new(),
        }
    }
}

/// Answers until `stop` is done, then finishes what is under way, for five seconds at most.
///
/// On loopback only requests to loopback names and to the site's own are answered: a page from elsewhere whose name
/// was pointed at this machine gets nothing.
///
/// # Errors
///
/// When the listener has no address: it is none.
pub async fn serve(
    listener: TcpListener,
    site: impl Into<Site> + Send,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let Site { router, names } = site.into();
    let router = if listener.local_addr()?.ip().is_loopback() {
        guard::guarded(router, names)
    } else {
        router
    };
    let service = TowerToHyperService::new(router);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let open = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let (stream, place) = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service.clone()));
        tokio::spawn(async move {
            // A client that breaks off is its own affair.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(DRAIN, open.shutdown()).await;
    Ok(())
}

async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    let place = Arc::clone(room)
        .acquire_owned()
        .await
        .expect("nobody closes the semaphore");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole; waiting for more would only delay them.
                let _ = stream.set_nodelay(true);
                return (stream, place);
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
