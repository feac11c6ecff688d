//! A window of the ring of GPU samples, as JSON.

use std::path::Path;
use std::sync::Arc;

use collect::gpu::ring::{RingReader, SPAN_MS, Wanted};
use model::{Clock as _, SystemClock};
use web::{Ring, RingQuery, RingRefusal};

/// Samples in one answer: half an hour of eight GPUs at ten a second is 144,000.
const SAMPLES_MAX: usize = 150_000;

/// Answers from the ring at this path; without one there is none.
pub fn window(path: Option<&Path>) -> Ring {
    let reader = path.map(RingReader::new);
    Arc::new(move |query: &RingQuery| {
        let absent = || RingRefusal::Absent("no ring of GPU samples is kept here: give --data a folder".to_owned());
        answer(reader.as_ref().ok_or_else(absent)?, query)
    })
}

fn answer(reader: &RingReader, query: &RingQuery) -> Result<String, RingRefusal> {
    let now = SystemClock.now();
    let wanted = Wanted {
        from: query.from.unwrap_or(now - SPAN_MS).max(now - SPAN_MS),
        to: query.to.unwrap_or(now),
        gpus: query.gpus.clone(),
        max: SAMPLES_MAX,
    };
    let failed = |error: &dyn std::error::Error| {
        let cause = error.source().map(|cause| format!(": {cause}"));
        RingRefusal::Failed(format!("{error}{}", cause.unwrap_or_default()))
    };
    let history = reader.read(&wanted).map_err(|error| failed(&error))?;
    if history.is_cut {
        return Err(RingRefusal::TooLong(format!(
            "the window has more than {SAMPLES_MAX} samples: ask for a shorter one by from and to, or for some GPUs by gpu"
        )));
    }
    serde_json::to_string(&history).map_err(|error| failed(&error))
}
