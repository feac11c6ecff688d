//! A listener and the loop that answers on it.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;

/// How long a shutdown waits for answers under way.
const DRAIN: Duration = Duration::from_secs(5);

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

/// Answers until `stop` is done, then finishes what is under way, for five seconds at most.
///
/// # Errors
///
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stopped, mut drained) = tokio::sync::watch::channel(false);
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
        stop.await;
        // The other side is this function: it waits as long as it needs.
        let _ = stopped.send(true);
    });
    tokio::select! {
        served = async { serving.await } => served,
        () = async {
            let _ = drained.wait_for(|stopped| *stopped).await;
            tokio::time::sleep(DRAIN).await;
        } => Ok(()),
    }
}
