//! The system's names.

use model::{Family, Kind, Millis};

use super::label;
use crate::source::Reader;
use crate::{Collector, Paths, Readings};

/// Collects `node_uname_info`.
pub struct Uname {
    paths: Paths,
    reader: Reader,
}

impl Uname {
    /// Reads `sys/kernel` below procfs, which answers as the system call does and can be set up by a fake.
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            reader: Reader::default(),
        }
    }
}

impl Collector for Uname {
    fn name(&self) -> &'static str {
        "uname"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let system = rustix::system::uname();
        let mut name = |file: &str, from_call: &std::ffi::CStr| {
            let path = self.paths.proc("sys/kernel").join(file);
            let word = self.reader.word(&path).map(str::to_owned);
            word.unwrap_or_else(|| from_call.to_string_lossy().into_owned())
        };
        let mut family = Family::new(
            "node_uname_info",
            Kind::Gauge,
            "Labeled system information as provided by the uname system call.",
        );
        family.push(
            vec![
                ("domainname", name("domainname", system.domainname())),
                label("machine", &system.machine().to_string_lossy()),
                ("nodename", name("hostname", system.nodename())),
                ("release", name("osrelease", system.release())),
                ("sysname", name("ostype", system.sysname())),
                ("version", name("version", system.version())),
            ],
            1.0,
        );
        Readings::of(vec![family])
    }
}
