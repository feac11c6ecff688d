//! The list of boards: as many as wanted, each with a place and a name of its own.

use super::board::Board;
use crate::error::Error;
use crate::mig;

/// The largest server that is simulated.
pub(crate) const GPUS_MAX: usize = 16;

/// The first so many of the boards; more are made in the image of the last, at addresses after all others.
pub(super) fn resized(mut boards: Vec<Board>, count: Option<usize>) -> Result<Vec<Board>, Error> {
    let Some(count) = count else {
        return Ok(boards);
    };
    if !(1..=GPUS_MAX).contains(&count) {
        return Err(Error::invalid(format!("gpus: {count} is not between 1 and {GPUS_MAX}")));
    }
    boards.truncate(count);
    while boards.len() < count {
        let Some(last) = boards.last() else {
            return Err(Error::invalid("no boards"));
        };
        let highest = boards.iter().map(|board| board.pci.bus).max().unwrap_or(0);
        let mut next = last.clone();
        // Past the last bus of a domain there is the next domain.
        (next.pci.domain, next.pci.bus) = match highest + 4 {
            bus @ ..=0xff => (last.pci.domain, bus),
            _ => (last.pci.domain + 1, 0x1b + u32::try_from(boards.len()).unwrap_or(0)),
        };
        next.uuid = counted_on(&last.uuid);
        next.serial = counted_on(&last.serial);
        boards.push(next);
    }
    Ok(boards)
}

/// The same text with its last digits one higher.
fn counted_on(text: &str) -> String {
    let start = text
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_ascii_digit())
        .take(9)
        .last()
        .map_or(text.len(), |(at, _)| at);
    let (head, digits) = text.split_at(start);
    let next = digits.parse::<u64>().unwrap_or(0) + 1;
    let mut counted = format!("{next:0width$}", width = digits.len().max(1));
    // The length stays: a UUID has 36 characters.
    while counted.len() > digits.len().max(1) {
        counted.remove(0);
    }
    format!("{head}{counted}")
}

pub(super) fn check(boards: &[Board]) -> Result<(), Error> {
    if boards.is_empty() {
        return Err(Error::invalid("no boards"));
    }
    if boards.len() > GPUS_MAX {
        return Err(Error::invalid(format!("more than {GPUS_MAX} boards")));
    }
    for (index, board) in boards.iter().enumerate() {
        if boards[..index]
            .iter()
            .any(|other| other.uuid == board.uuid || other.pci == board.pci)
        {
            return Err(Error::invalid(format!(
                "board {index}: UUID or PCI address is used twice"
            )));
        }
        mig::check(&board.mig)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_on_and_keep_their_length() {
        assert_eq!(counted_on("GPU-3f0c8a11-b208"), "GPU-3f0c8a11-b209");
        assert_eq!(counted_on("1650124000199"), "1650124000200");
        assert_eq!(counted_on("a9"), "a0");
        assert_eq!(counted_on("abc"), "abc1");
    }
}
