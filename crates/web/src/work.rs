//! Work for the engine: on a thread that may block, within the bounds on time and number.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Deadline, QueryError};

use crate::error::ApiError;
use crate::hub::Hub;
use crate::params::Params;

/// Cancels the query when the request is dropped: its client has gone.
struct CancelOnDrop(Deadline);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs `ask` when there is room for it, for the request's `timeout` at most.
///
/// # Errors
///
/// 503 before the store is ready or when time is over before there is room; else what `ask` says.
pub async fn run<T: Send + 'static>(
    hub: &Arc<Hub>,
    params: &Params,
    ask: impl FnOnce(&Hub, &Deadline) -> Result<T, QueryError> + Send + 'static,
) -> Result<T, ApiError> {
    hub.check_ready()?;
    let wanted = params
        .duration("timeout")?
        .and_then(|ms| u64::try_from(ms).ok())
        .map(Duration::from_millis);
    let timeout = wanted.map_or(hub.query_timeout, |wanted| wanted.min(hub.query_timeout));
    let deadline = Deadline::at(Instant::now() + timeout);
    let guard = CancelOnDrop(deadline.clone());
    let permit = tokio::time::timeout(timeout, Arc::clone(&hub.query_slots).acquire_owned())
        .await
        .map_err(|_| QueryError::Timeout)?
        .map_err(|_| ApiError::unavailable("this server is shutting down"))?;
    let asked = Arc::clone(hub);
    let outcome = tokio::task::spawn_blocking(move || {
        // A query that was given up while it waited for its thread costs nothing more.
        let outcome = deadline.check().and_then(|()| ask(&asked, &deadline));
        drop(permit);
        outcome
    })
    .await
    .map_err(|e| ApiError::internal(format!("the query's thread ended early: {e}")))??;
    drop(guard);
    Ok(outcome)
}
