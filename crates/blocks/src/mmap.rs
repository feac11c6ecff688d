//! Bytes of a file as a slice: mapped by the system, or owned where a test's file layer has no file.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// The bytes of a whole file. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Mapped {
    /// Pages of the file itself.
    Map(Arc<memmap2::Mmap>),
    /// A copy in memory.
    Owned(Arc<[u8]>),
}

impl Mapped {
    /// Maps all of `file` for reading.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn of_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            // An empty file cannot be mapped.
            return Ok(Self::Owned(Arc::from([])));
        }
        #[expect(unsafe_code, reason = "this module is the home of mapping")]
        // SAFETY: a mapping is unsound when the file shrinks or changes below it. The files mapped here lie in
        // a folder whose LOCK file this process holds. Those of a block never change after the rename that
        // published them and are unlinked, never truncated, which keeps a mapping valid. WAL segments are
        // mapped during replay only, before anything is appended; a torn one is truncated after its mapping
        // is dropped. Other programs writing there are outside what we can promise, as for any database.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Self::Map(Arc::new(map)))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Map(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
