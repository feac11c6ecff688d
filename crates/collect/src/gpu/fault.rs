//! The driver's errors as plain data, so that they can cross from the helper process.

use std::fmt;

/// Why the driver, or its library, did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it means for whoever asked.
    pub kind: FaultKind,
    /// The sentence for people.
    pub text: String,
}

/// What an error of the driver means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// There is no library: normally a machine without a driver.
    NoLibrary,
    /// The library is there, the kernel module is not loaded.
    NotLoaded,
    /// Library and kernel module are of different releases.
    VersionMismatch,
    /// The user may not ask.
    Denied,
    /// The driver or its helper did not answer in time.
    Timeout,
    /// The GPU has fallen off the bus.
    GpuLost,
    /// The GPU answers no more until it is reset.
    ResetRequired,
    /// The driver does not know the GPU.
    NoSuchDevice,
    /// The library was shut down: the driver went from under it.
    Uninitialized,
    /// The helper process died.
    Crashed,
    /// The helper process has just been started.
    Starting,
    /// Anything else.
    Other,
}

impl FaultKind {
    const ALL: [Self; 12] = [
        Self::NoLibrary,
        Self::NotLoaded,
        Self::VersionMismatch,
        Self::Denied,
        Self::Timeout,
        Self::GpuLost,
        Self::ResetRequired,
        Self::NoSuchDevice,
        Self::Uninitialized,
        Self::Crashed,
        Self::Starting,
        Self::Other,
    ];

    /// The word in `watchfire_gpu_driver_state{state}`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoLibrary => "library_not_found",
            Self::NotLoaded => "driver_not_loaded",
            Self::VersionMismatch => "version_mismatch",
            Self::Denied => "no_permission",
            Self::Timeout => "hung",
            Self::GpuLost => "gpu_lost",
            Self::ResetRequired => "gpu_reset_required",
            Self::NoSuchDevice => "no_devices",
            Self::Uninitialized => "driver_unloaded",
            Self::Crashed => "helper_crashed",
            Self::Starting => "helper_starting",
            Self::Other => "driver_failed",
        }
    }

    /// Its number on the way from the helper.
    pub(super) fn code(self) -> u8 {
        let at = Self::ALL.iter().position(|kind| *kind == self);
        at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
    }

    /// The kind of this number; one that this program does not know is another error.
    pub(super) fn of_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Other)
    }

    /// Whether the driver as a whole went away, so that its library must be loaded anew.
    pub(super) const fn is_of_driver(self) -> bool {
        matches!(self, Self::NotLoaded | Self::VersionMismatch | Self::Uninitialized)
    }
}

impl Fault {
    /// A fault of this kind, in words.
    pub fn new(kind: FaultKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Fault {}

impl From<&nvml::Error> for Fault {
    fn from(error: &nvml::Error) -> Self {
        let kind = match error {
            nvml::Error::LibraryNotFound { .. } => FaultKind::NoLibrary,
            nvml::Error::DriverNotLoaded => FaultKind::NotLoaded,
            nvml::Error::VersionMismatch => FaultKind::VersionMismatch,
            nvml::Error::NoPermission { .. } => FaultKind::Denied,
            nvml::Error::Timeout { .. } => FaultKind::Timeout,
            nvml::Error::GpuLost => FaultKind::GpuLost,
            nvml::Error::ResetRequired => FaultKind::ResetRequired,
            nvml::Error::NoSuchDevice => FaultKind::NoSuchDevice,
            nvml::Error::Uninitialized => FaultKind::Uninitialized,
            _ => FaultKind::Other,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<nvml::Error> for Fault {
    fn from(error: nvml::Error) -> Self {
        Self::from(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_keeps_its_number() {
        for kind in FaultKind::ALL {
            assert_eq!(FaultKind::of_code(kind.code()), kind);
        }
        assert_eq!(FaultKind::of_code(200), FaultKind::Other);
    }
}
