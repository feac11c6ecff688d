//! What came of the last reload: in the log, in the answer, and as metrics, so that a refused one is seen.

use std::sync::{Mutex, PoisonError};

use model::{Family, Kind, Millis};

/// The last reload, the start counted as the first.
pub struct Reloads {
    last: Mutex<Last>,
}

struct Last {
    was_successful: bool,
    /// When a configuration last came into force.
    success_at: Millis,
}

impl Reloads {
    /// The start was the first.
    pub fn begun(now: Millis) -> Self {
        let last = Last {
            was_successful: true,
            success_at: now,
        };
        Self { last: Mutex::new(last) }
    }

    /// Takes note of a reload, and gives its error as text.
    ///
    /// # Errors
    ///
    /// The reload's own.
    pub fn note(&self, outcome: anyhow::Result<()>, now: Millis) -> Result<(), String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.was_successful = outcome.is_ok();
        match outcome {
            Ok(()) => {
                last.success_at = now;
                tracing::info!("the configuration was taken anew");
                Ok(())
            }
            Err(error) => {
                let text = format!("{error:#}");
                tracing::error!("the configuration was not taken, the old one stays: {text}");
                Err(text)
            }
        }
    }

    /// Whether the last one came into force, and when one last did.
    pub fn last(&self) -> (bool, Millis) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        (last.was_successful, last.success_at)
    }

    /// The metrics.
    pub fn families(&self) -> Vec<Family> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut good = Family::new(
            "watchfire_config_last_reload_successful",
            Kind::Gauge,
            "Whether the last reload of the configuration came into force.",
        );
        good.push(Vec::new(), f64::from(u8::from(last.was_successful)));
        let mut when = Family::new(
            "watchfire_config_last_reload_success_timestamp_seconds",
            Kind::Gauge,
            "When a configuration last came into force, in seconds since the epoch.",
        );
        when.push(Vec::new(), last.success_at as f64 / 1000.0);
        vec![good, when]
    }
}
