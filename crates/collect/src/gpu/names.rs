//! Which generation of dcgm-exporter's names a page speaks.

/// The generations on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// Those up to 4.8: `DCGM_FI_DEV_GPU_TEMP`.
    #[default]
    Dcgm48,
    /// Those from 4.9 on, in base units: `DCGM_FI_DEV_GPU_TEMP_CELSIUS`.
    Dcgm49,
    /// Both, each with its own labels.
    Both,
}

/// One generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Up to 4.8.
    Old,
    /// From 4.9 on.
    New,
}

/// What the host's name is called on DCGM's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostLabel {
    /// By generation: `Hostname` up to 4.8, `hostname` from 4.9 on.
    #[default]
    ByGeneration,
    /// `Hostname`: exporters up to early 2026.
    Upper,
    /// `hostname`: exporters since May 2026.
    Lower,
}

impl Generation {
    /// The label that tells the driver's version.
    pub const fn driver_label(self) -> &'static str {
        match self {
            Self::Old => "DCGM_FI_DRIVER_VERSION",
            Self::New => "DCGM_FI_SYSTEM_DRIVER_VERSION",
        }
    }
}

impl Names {
    /// The generations, in the order of the page.
    pub const fn generations(self) -> &'static [Generation] {
        match self {
            Self::Dcgm48 => &[Generation::Old],
            Self::Dcgm49 => &[Generation::New],
            Self::Both => &[Generation::Old, Generation::New],
        }
    }
}

impl HostLabel {
    /// The label's name on lines of this generation.
    pub const fn name(self, generation: Generation) -> &'static str {
        match (self, generation) {
            (Self::Upper, _) | (Self::ByGeneration, Generation::Old) => "Hostname",
            (Self::Lower, _) | (Self::ByGeneration, Generation::New) => "hostname",
        }
    }
}
