//! Which blocks have had their time: by age and by size, whichever comes first.

use model::Millis;

/// What retention needs to know of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Latest sample.
    pub maxt: Millis,
    /// Size on disk in bytes.
    pub size_bytes: u64,
}

/// How much to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Blocks whose latest sample is older than this go; `None` keeps them.
    pub time: Option<Millis>,
    /// The oldest blocks go until all that remains fits; `None` keeps them.
    pub bytes: Option<u64>,
}

/// Says of each block whether it must go. `other_bytes` is what the store needs besides blocks (log, head).
#[must_use]
pub fn expired(blocks: &[Kept], other_bytes: u64, keep: Keep, now: Millis) -> Vec<bool> {
    let too_old = |b: &Kept| keep.time.is_some_and(|t| b.maxt < now.saturating_sub(t));
    let mut gone: Vec<bool> = blocks.iter().map(too_old).collect();
    let Some(limit) = keep.bytes else {
        return gone;
    };
    let left = blocks.iter().zip(&gone).filter(|(_, gone)| !**gone);
    let mut total = left.map(|(b, _)| b.size_bytes).sum::<u64>().saturating_add(other_bytes);
    let mut oldest_first: Vec<usize> = (0..blocks.len()).filter(|&i| !gone[i]).collect();
    oldest_first.sort_by_key(|&i| blocks[i].maxt);
    for i in oldest_first {
        if total <= limit {
            break;
        }
        gone[i] = true;
        total -= blocks[i].size_bytes;
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(time: Option<Millis>, bytes: Option<u64>, want: [bool; 3]) {
        let block = |maxt, size_bytes| Kept { maxt, size_bytes };
        let blocks = [block(100, 10), block(300, 30), block(200, 20)];
        assert_eq!(expired(&blocks, 5, Keep { time, bytes }, 1000), want);
    }

    #[test]
    fn without_limits_all_stays() {
        check(None, None, [false, false, false]);
    }

    #[test]
    fn age_counts_from_the_latest_sample() {
        check(Some(900), None, [false, false, false]);
        check(Some(899), None, [true, false, false]);
        check(Some(700), None, [true, false, true]);
        check(Some(0), None, [true, true, true]);
    }

    #[test]
    fn size_takes_the_oldest_first_and_counts_the_log() {
        check(None, Some(65), [false, false, false]);
        check(None, Some(64), [true, false, false]);
        check(None, Some(54), [true, false, true]);
        check(None, Some(0), [true, true, true]);
    }

    #[test]
    fn what_age_took_need_not_go_again() {
        check(Some(899), Some(55), [true, false, false]);
    }
}
