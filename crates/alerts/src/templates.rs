//! The texts of messages: ours (`data/templates`), and those of the files that a configuration names.
//!
//! Names are the field's (`slack.default.text`, `__subject`), so that templates written for Alertmanager find what
//! they call; the texts are our own.

use std::path::Path;

use config::alertmanager::Config;
use config::glob;

use crate::error::Error;

/// Our own texts.
const OWN: [(&str, &str); 2] = [
    ("default.tmpl", include_str!("../../../data/templates/default.tmpl")),
    ("email.tmpl", include_str!("../../../data/templates/email.tmpl")),
];
/// The largest template file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The most template files.
const FILES_MAX: usize = 1_000;

/// The templates that messages are written with.
#[derive(Clone)]
pub struct Templates {
    /// Those of the configuration over ours.
    pub all: template::Notification,
    /// Ours alone: what stands in when the others fail.
    pub own: template::Notification,
}

impl std::fmt::Debug for Templates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all.text_set().names()).finish()
    }
}

impl Default for Templates {
    fn default() -> Self {
        let mut own = template::Notification::new();
        for (name, text) in OWN {
            let added = own.add(name, text);
            added.expect("BUG: our own templates are read by a test");
        }
        Self { all: own.clone(), own }
    }
}

impl Templates {
    /// Reads the files that a configuration names.
    ///
    /// # Errors
    ///
    /// [`Error::TemplateFile`] and [`Error::Template`]: a file that cannot be read, or is no template.
    pub fn load(config: &Config) -> Result<Self, Error> {
        let mut templates = Self::default();
        let files = config.templates.iter().flat_map(|p| glob::expand(&config.folder, p));
        for path in files.take(FILES_MAX) {
            templates.add(&path)?;
        }
        Ok(templates)
    }

    fn add(&mut self, path: &Path) -> Result<(), Error> {
        let failed = |source| Error::TemplateFile {
            path: path.to_owned(),
            source,
        };
        let size = std::fs::metadata(path).map_err(failed)?.len();
        if size > FILE_BYTES_MAX {
            return Err(failed(std::io::Error::other(format!(
                "{size} bytes, more than {FILE_BYTES_MAX}"
            ))));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.all.add(&name, &text).map_err(|source| Error::Template {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }
}
