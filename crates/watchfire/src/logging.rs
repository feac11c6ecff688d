//! The program's own log: lines on standard error.

use tracing_subscriber::EnvFilter;

use crate::cli::LogLevel;

/// Starts the log; `WATCHFIRE_LOG` narrows it further, as `info,tsdb=debug`.
pub fn start(level: LogLevel, json: bool) {
    let filter = EnvFilter::try_from_env("WATCHFIRE_LOG").unwrap_or_else(|_| EnvFilter::new(level.as_str()));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Where nobody reads the log, there is nobody to tell about that either.
        .log_internal_errors(false)
        .with_target(false);
    // A second start, as in tests, keeps the first log.
    let _ = if json {
        builder.json().try_init()
    } else {
        builder.with_ansi(false).try_init()
    };
}
