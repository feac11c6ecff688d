//! Work on many series, shared by a few threads; results stay in the order of the series.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

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
    let mut batches = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    batches.sort_unstable_by_key(|(batch, _)| *batch);
    let mut out = Vec::with_capacity(count);
    for (_, results) in batches {
        out.extend(results?);
    }
    Ok(out)
}

/// Runs `compute` over blocks of `0..count` side by side, each into a thread's own space, and `consume` over the
/// results one at a time in order.
///
/// # Errors
///
/// The first error, in the order of the blocks.
pub(crate) fn in_order<S: Default>(
    threads: usize,
    count: usize,
    block: usize,
    compute: impl Fn(&mut S, Range<usize>) -> Result<(), QueryError> + Sync,
    mut consume: impl FnMut(&mut S) -> Result<(), QueryError> + Send,
) -> Result<(), QueryError> {
    let blocks = count.div_ceil(block);
    let bounds = |at: usize| at * block..count.min((at + 1) * block);
    if threads.min(blocks) <= 1 {
        let mut space = S::default();
        return (0..blocks).try_for_each(|at| {
            compute(&mut space, bounds(at))?;
            consume(&mut space)
        });
    }
    let taken = AtomicUsize::new(0);
    // Whose turn it is, and how it has ended so far.
    let turn = Mutex::new((0, Ok(()), consume));
    let moved = Condvar::new();
    let work = || {
        let mut space = S::default();
        let over = Over(&turn, &moved);
        loop {
            let at = taken.fetch_add(1, Ordering::Relaxed);
            if at >= blocks {
                break;
            }
            let computed = compute(&mut space, bounds(at));
            let mut now = lock(&turn);
            while now.0 != at && now.1.is_ok() {
                now = moved.wait(now).unwrap_or_else(PoisonError::into_inner);
            }
            if now.1.is_err() {
                break;
            }
            now.1 = computed.and_then(|()| (now.2)(&mut space));
            now.0 += 1;
            moved.notify_all();
        }
        std::mem::forget(over);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(blocks) {
            scope.spawn(work);
        }
        work();
    });
    turn.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

type Turn<F> = Mutex<(usize, Result<(), QueryError>, F)>;

/// Ends everybody's waiting when a thread ends early.
struct Over<'a, F>(&'a Turn<F>, &'a Condvar);

impl<F> Drop for Over<'_, F> {
    fn drop(&mut self) {
        lock(self.0).1 = Err(QueryError::Internal("a thread of the query ended early".to_owned()));
        self.1.notify_all();
    }
}

/// Locks, whatever a thread that held the lock has come to.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn blocks_are_consumed_in_order() {
        for threads in [1, 4] {
            let mut seen = Vec::new();
            let done = in_order::<Vec<usize>>(
                threads,
                1000,
                7,
                |space, range| {
                    space.clear();
                    space.extend(range);
                    Ok(())
                },
                |space| {
                    seen.extend_from_slice(space);
                    Ok(())
                },
            );
            assert_eq!((done, seen), (Ok(()), (0..1000).collect::<Vec<_>>()));
            let failed = in_order::<()>(
                threads,
                1000,
                1,
                |(), range| {
                    if range.start == 500 {
                        Err(QueryError::Timeout)
                    } else {
                        Ok(())
                    }
                },
                |()| Ok(()),
            );
            assert_eq!(failed, Err(QueryError::Timeout));
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
