//! The drills that were passed: kept over restarts, each for a while and for the expression it was passed with.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use model::Millis;
use serde_json::{Value, json};

use super::lock;

/// A drill counts for this long: receivers and people change.
const VALID: Millis = 30 * 86_400_000;

/// Passes kept.
const PASSES_MAX: usize = 10_000;

/// A drill that was passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The alert.
    pub alert: String,
    /// Its expression then.
    pub expr: String,
    /// Who was told.
    pub receiver: String,
    /// Where the fault went in.
    pub layer: String,
    /// When.
    pub at: Millis,
}

/// All of them.
pub struct Passed {
    path: PathBuf,
    list: Mutex<Vec<Pass>>,
}

impl Passed {
    /// Takes up what an earlier process kept; a file that cannot be read is as none, and said.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join("drills.json");
        let list = match std::fs::read(&path) {
            Ok(bytes) => match serde_json::from_slice::<Value>(&bytes) {
                Ok(value) => value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(read)
                    .take(PASSES_MAX)
                    .collect(),
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "passed drills cannot be read; they count no longer");
                    Vec::new()
                }
            },
            Err(_) => Vec::new(),
        };
        Self {
            path,
            list: Mutex::new(list),
        }
    }

    /// Adds one, in place of an earlier one of the same alert.
    pub fn add(&self, pass: Pass) {
        let mut list = lock(&self.list);
        list.retain(|old| old.alert != pass.alert || old.expr != pass.expr);
        if list.len() >= PASSES_MAX {
            list.remove(0);
        }
        list.push(pass);
        let text = Value::Array(list.iter().map(kept).collect()).to_string();
        let fresh = self.path.with_extension("json.new");
        let written = std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, &self.path));
        if let Err(error) = written {
            tracing::warn!(%error, path = %self.path.display(), "a passed drill could not be kept");
        }
    }

    /// Those that still count at `now`.
    pub fn json(&self, now: Millis) -> Value {
        let list = lock(&self.list);
        let valid = list.iter().filter(|pass| now - pass.at < VALID);
        valid
            .map(|pass| {
                let mut row = kept(pass);
                row["at"] = json!(moment(pass.at));
                row["until"] = json!(moment(pass.at + VALID));
                row
            })
            .collect()
    }
}

fn moment(time: Millis) -> String {
    jiff::Timestamp::from_millisecond(time).map_or_else(|_| time.to_string(), |stamp| stamp.to_string())
}

fn kept(pass: &Pass) -> Value {
    json!({"alert": pass.alert, "expr": pass.expr, "receiver": pass.receiver, "layer": pass.layer, "at": pass.at})
}

fn read(row: &Value) -> Option<Pass> {
    let text = |name: &str| row[name].as_str().map(str::to_owned);
    Some(Pass {
        alert: text("alert")?,
        expr: text("expr")?,
        receiver: text("receiver")?,
        layer: text("layer")?,
        at: row["at"].as_i64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_survive_a_restart_and_run_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let pass = Pass {
            alert: "A".into(),
            expr: "up == 0".into(),
            receiver: "oncall".into(),
            layer: "sample".into(),
            at: 1_000,
        };
        Passed::open(folder.path()).add(pass.clone());
        let again = Passed::open(folder.path());
        again.add(pass);
        let told = again.json(2_000);
        assert_eq!(told.as_array().map(Vec::len), Some(1));
        assert_eq!(told[0]["at"], "1970-01-01T00:00:01Z");
        assert_eq!(again.json(VALID + 1_000), json!([]));
    }
}
