//! The connection-tracking table.

use model::{Family, Millis};

use super::gauge;
use crate::source::{Reader, to_f64};
use crate::{Collector, Error, Paths, Readings, State};

/// Columns of `/proc/net/stat/nf_conntrack` that are shown, with their helps.
const COLUMNS: [(&str, &str); 8] = [
    ("found", "Number of searched entries which were successful."),
    ("invalid", "Number of packets seen which can not be tracked."),
    (
        "ignore",
        "Number of packets seen which are already connected to a conntrack entry.",
    ),
    ("insert", "Number of entries inserted into the list."),
    (
        "insert_failed",
        "Number of entries for which list insertion was attempted but failed.",
    ),
    ("drop", "Number of packets dropped due to conntrack failure."),
    (
        "early_drop",
        "Number of dropped conntrack entries to make room for new ones, if maximum table size was reached.",
    ),
    (
        "search_restart",
        "Number of conntrack table lookups which had to be restarted due to hashtable resizes.",
    ),
];

/// Collects `node_nf_conntrack_*`.
pub struct Conntrack {
    paths: Paths,
    reader: Reader,
}

impl Conntrack {
    /// Reads below procfs; the files are there once the kernel tracks connections.
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            reader: Reader::default(),
        }
    }

    fn table(&mut self) -> Result<Vec<Family>, Error> {
        let entries = self.number("nf_conntrack_count")?;
        let limit = self.number("nf_conntrack_max")?;
        Ok(vec![
            gauge(
                "node_nf_conntrack_entries",
                "Number of currently allocated flow entries for connection tracking.",
                entries,
            ),
            gauge(
                "node_nf_conntrack_entries_limit",
                "Maximum size of connection tracking table.",
                limit,
            ),
        ])
    }

    fn number(&mut self, file: &str) -> Result<f64, Error> {
        let path = self.paths.proc("sys/net/netfilter").join(file);
        let text = self.reader.text(&path)?;
        text.trim().parse().map_err(|_| Error::form(&path, 1, "a count", text))
    }

    /// A heading, then one line of hexadecimal counts for each processor, which are summed.
    fn statistics(&mut self) -> Result<Vec<Family>, Error> {
        let path = self.paths.proc("net/stat/nf_conntrack");
        let text = self.reader.text(&path)?;
        let mut lines = text.lines();
        let heading: Vec<&str> = lines.next().unwrap_or("").split_ascii_whitespace().collect();
        let mut sums = vec![0_u64; heading.len()];
        for (i, line) in lines.enumerate() {
            for (sum, field) in sums.iter_mut().zip(line.split_ascii_whitespace()) {
                let count = u64::from_str_radix(field, 16);
                let count = count.map_err(|_| Error::form(&path, i + 2, "hexadecimal counts", line))?;
                *sum = sum.wrapping_add(count);
            }
        }
        let shown = COLUMNS.iter().filter_map(|(name, help)| {
            let at = heading.iter().position(|column| column == name)?;
            Some(gauge(format!("node_nf_conntrack_stat_{name}"), *help, to_f64(sums[at])))
        });
        Ok(shown.collect())
    }
}

impl Collector for Conntrack {
    fn name(&self) -> &'static str {
        "conntrack"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut readings = Readings::from(self.table());
        if readings.state == State::Present {
            match self.statistics() {
                Ok(families) => readings.families.extend(families),
                Err(error) => readings.errors.push(error),
            }
        }
        readings
    }
}
