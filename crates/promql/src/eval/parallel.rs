//! Work on many series, shared by a few threads; results stay in the order of the series.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use model::QueryError;

/// Series handed to a thread at a time.
const BATCH: usize = 32;

/// What `f` makes of `0..count`, in order and without the `None`s; `S` is each thread's own scratch space.
///
/// # Errors
///
/// The error of the lowest number that failed among those tried.
pub(crate) fn map<S: Default, T: Send>(
    threads: usize,
    count: usize,
    f: impl Fn(&mut S, usize) -> Result<Option<T>, QueryError> + Sync,
) -> Result<Vec<T>, QueryError> {
    let threads = threads.min(count.div_ceil(BATCH));
    if threads <= 1 {
        let mut scratch = S::default();
        return (0..count).filter_map(|i| f(&mut scratch, i).transpose()).collect();
    }
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let done = Mutex::new(Vec::with_capacity(count.div_ceil(BATCH)));
    let work = || {
        let mut scratch = S::default();
        while !failed.load(Ordering::Relaxed) {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            let range = batch * BATCH..count.min((batch + 1) * BATCH);
            if range.start >= count {
                break;
            }
            let results: Result<Vec<T>, QueryError> = range.filter_map(|i| f(&mut scratch, i).transpose()).collect();
            failed.fetch_or(results.is_err(), Ordering::Relaxed);
            lock(&done).push((batch, results));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let mut batches = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    batches.sort_unstable_by_key(|(batch, _)| *batch);
    let mut out = Vec::with_capacity(count);
    for (_, results) in batches {
        out.extend(results?);
    }
    Ok(out)
}

/// Locks, whatever a thread that held the lock has come to.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_their_series() {
        for threads in [1, 4] {
            let odd = map::<(), usize>(threads, 1000, |(), i| Ok((i % 2 == 1).then_some(i)));
            assert_eq!(odd, Ok((0..1000).filter(|i| i % 2 == 1).collect()));
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let failing = map::<(), ()>(
            4,
            1000,
            |(), i| if i == 500 { Err(QueryError::Timeout) } else { Ok(None) },
        );
        assert_eq!(failing, Err(QueryError::Timeout));
    }
}
