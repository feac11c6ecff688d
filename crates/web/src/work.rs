//! Work for the engine: on a thread that may block, within the bounds on time and number.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Deadline, QueryError};

use crate::error::ApiError;
use crate::hub::Hub;
use crate::params::Params;
use crate::queries::Asked;

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
    let deadline = deadline(hub, params)?;
    work(hub, &deadline, ask).await.map(|(outcome, _)| outcome)
}

/// Runs a query: it is listed while it does, and the parameters `stats` and `nocache` count. Returns what it cost
/// beside its outcome: how long it waited for its turn, and its meter by way of the deadline.
///
/// # Errors
///
/// As [`run`].
pub async fn run_query<T: Send + 'static>(
    hub: &Arc<Hub>,
    params: &Params,
    asked: Asked,
    ask: impl FnOnce(&Hub, &Deadline) -> Result<T, QueryError> + Send + 'static,
) -> Result<(T, Cost), ApiError> {
    let deadline = deadline(hub, params)?;
    if params.get("stats") == Some("all") {
        deadline.meter().want_steps();
    }
    if params.get("nocache").is_some_and(|v| v != "0" && v != "false") {
        deadline.meter().avoid_cache();
    }
    let began = Instant::now();
    let running = hub.queries.begin(asked, &deadline);
    let done = work(hub, &deadline, ask).await;
    drop(running);
    let (outcome, queued) = done?;
    let cost = Cost {
        queued,
        total: began.elapsed(),
        deadline,
    };
    Ok((outcome, cost))
}

/// What a query cost.
#[derive(Debug)]
pub struct Cost {
    /// How long it waited for its turn.
    pub queued: Duration,
    /// How long it took altogether.
    pub total: Duration,
    /// Whose meter counted the rest.
    pub deadline: Deadline,
}

fn deadline(hub: &Hub, params: &Params) -> Result<Deadline, ApiError> {
    hub.check_ready()?;
    let wanted = params
        .duration("timeout")?
        .and_then(|ms| u64::try_from(ms).ok())
        .map(Duration::from_millis);
    let timeout = wanted.map_or(hub.query_timeout, |wanted| wanted.min(hub.query_timeout));
    Ok(Deadline::at(Instant::now() + timeout))
}

async fn work<T: Send + 'static>(
    hub: &Arc<Hub>,
    deadline: &Deadline,
    ask: impl FnOnce(&Hub, &Deadline) -> Result<T, QueryError> + Send + 'static,
) -> Result<(T, Duration), ApiError> {
    let guard = CancelOnDrop(deadline.clone());
    let began = Instant::now();
    let timeout = deadline.left().unwrap_or(hub.query_timeout);
    let permit = tokio::time::timeout(timeout, Arc::clone(&hub.query_slots).acquire_owned())
        .await
        .map_err(|_| QueryError::Timeout)?
        .map_err(|_| ApiError::unavailable("this server is shutting down"))?;
    let queued = began.elapsed();
    let asked = Arc::clone(hub);
    let deadline = deadline.clone();
    let outcome = tokio::task::spawn_blocking(move || {
        // A query that was given up while it waited for its thread costs nothing more.
        let outcome = deadline.check().and_then(|()| ask(&asked, &deadline));
        drop(permit);
        outcome
    })
    .await
    .map_err(|e| ApiError::internal(format!("the query's thread ended early: {e}")))??;
    drop(guard);
    Ok((outcome, queued))
}
