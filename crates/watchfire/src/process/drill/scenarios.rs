//! The scenarios of all alerts: shipped ones, and the user's files in their place or beside them.

use std::path::Path;

use super::Scenarios;
use crate::process::shipped::DRILL_FILES;

/// The end of the name of a file of scenarios.
const END: &str = "_drill.yml";

/// Every scenario; `folder/NAME` stands in for the shipped file of that name, and any other `*_drill.yml` there adds to them.
pub fn all(folder: &Path) -> Result<Scenarios, String> {
    let mut out = Scenarios::new();
    let mut add = |name: &str, text: &str| {
        let drills = rules::drill::read(name, text).map_err(|error| error.to_string())?;
        out.extend(drills.into_iter().map(|drill| (drill.alert.clone(), drill)));
        Ok::<(), String>(())
    };
    for (name, text) in DRILL_FILES {
        if !folder.join(name).is_file() {
            add(&format!("shipped:{name}"), text)?;
        }
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(out);
    };
    let mut own: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    own.retain(|path| path.to_string_lossy().ends_with(END));
    own.sort();
    for path in own {
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        add(&path.display().to_string(), &text)?;
    }
    Ok(out)
}
