//! What each XID means, from `data/xid.yml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Error;

const FILE: &str = "xid.yml";

/// What each XID means and what to do.
#[derive(Debug, Clone)]
pub struct XidCatalog {
    entries: BTreeMap<u32, XidEntry>,
}

/// One code.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XidEntry {
    /// The number in the message.
    pub code: u32,
    /// A few words.
    pub name: String,
    /// What lies behind it, the likeliest first.
    pub causes: String,
    /// How bad it is.
    pub severity: XidSeverity,
    /// Where published views disagree with that.
    pub views: Option<XidViews>,
    /// Whose fault it is, as a rule.
    pub side: Side,
    /// What to do.
    pub action: String,
    /// Whether a counter stands at zero for it from the start, because alerts ask for it.
    #[serde(default)]
    pub watch: bool,
    /// Where this is from: `catalog` (NVIDIA's published list), `driver` (names in the open driver), `practice`.
    pub source: String,
}

/// Published views of an XID that disagree with its severity here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XidViews {
    /// How a public watcher of GPUs grades it: `fatal`, `warning`, `info`.
    pub watcher: String,
    /// What the action in NVIDIA's catalogue is about: `application`, `gpu`, `node`, `info`, `none`.
    pub by_action: String,
}

/// How bad an XID is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum XidSeverity {
    /// Worth knowing.
    Info,
    /// Look at it in working hours.
    Warning,
    /// The GPU or its work is lost.
    Critical,
}

/// Whose fault an XID is, as a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The program on the GPU.
    Application,
    /// The GPU, its link or its power.
    Hardware,
    /// Driver or firmware.
    Driver,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    xids: Vec<XidEntry>,
}

impl XidCatalog {
    /// The table that comes with the program.
    ///
    /// # Errors
    ///
    /// None in a tested build.
    pub fn embedded() -> Result<Self, Error> {
        Self::new(include_str!("../../../../data/xid.yml"))
    }

    /// Reads a table.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] with place and cause.
    pub fn new(table: &str) -> Result<Self, Error> {
        let data = |message| Error::Data { file: FILE, message };
        let table: Table = serde_saphyr::from_str(table).map_err(|err| data(err.to_string()))?;
        let mut entries = BTreeMap::new();
        for entry in table.xids {
            let code = entry.code;
            if entries.insert(code, entry).is_some() {
                return Err(data(format!("code {code} is there twice")));
            }
        }
        Ok(Self { entries })
    }

    /// The entry of a code.
    #[must_use]
    pub fn get(&self, code: u32) -> Option<&XidEntry> {
        self.entries.get(&code)
    }

    /// All entries by code.
    pub fn iter(&self) -> impl Iterator<Item = &XidEntry> {
        self.entries.values()
    }

    /// Codes that have a counter from the start.
    pub fn watched(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.values().filter(|e| e.watch).map(|e| e.code)
    }
}
