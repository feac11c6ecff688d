//! What is collected on this machine, and from where.

use std::path::PathBuf;

use model::Millis;

use crate::yaml::{Duration, Node, Result};

/// Collectors of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collect {
    /// GPUs, through NVML.
    pub gpu: Collector,
    /// The host: node_exporter's families.
    pub node: Collector,
    /// Kernel messages.
    pub kernel: Collector,
    /// Where things lie; for containers and for tests.
    pub paths: Paths,
}

/// One collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collector {
    /// Whether it runs.
    pub enabled: bool,
    /// How often it reads the machine, in milliseconds; `None` for its own pace.
    pub interval: Option<Millis>,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            enabled: true,
            interval: None,
        }
    }
}

/// Where things lie; `None` for the usual place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths {
    /// `/proc`
    pub procfs: Option<PathBuf>,
    /// `/sys`
    pub sysfs: Option<PathBuf>,
    /// `/`
    pub rootfs: Option<PathBuf>,
    /// `/dev/kmsg`
    pub kmsg: Option<PathBuf>,
    /// The driver's library, `libnvidia-ml.so.1`.
    pub nvml_library: Option<PathBuf>,
}

/// How GPUs are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuConfig {
    /// Which generation of dcgm-exporter's names.
    pub names: GpuNames,
    /// What the host's name is called on the lines of DCGM; `None` for what the generation calls it.
    pub hostname_label: Option<HostnameLabel>,
    /// A counter list in dcgm-exporter's format; `None` for the usual fields.
    pub counters_file: Option<PathBuf>,
    /// The program that is asked where NVML cannot be loaded; `None` for nobody.
    pub nvidia_smi: Option<PathBuf>,
    /// Processes of one GPU that have lines of their own.
    pub processes: u64,
    /// How often power, clocks, utilisation and temperature are sampled, in milliseconds.
    pub sample_interval: Millis,
}

/// How often GPUs are sampled unless told.
const SAMPLE_INTERVAL: Millis = 1_000;

/// What the host's name is called on the lines of DCGM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostnameLabel {
    /// `Hostname`: exporters up to early 2026.
    Upper,
    /// `hostname`: exporters since May 2026.
    Lower,
}

impl Default for GpuConfig {
    fn default() -> Self {
        Self {
            names: GpuNames::default(),
            hostname_label: None,
            counters_file: None,
            nvidia_smi: Some(PathBuf::from("nvidia-smi")),
            processes: 10,
            sample_interval: SAMPLE_INTERVAL,
        }
    }
}

/// A generation of dcgm-exporter's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum GpuNames {
    /// `DCGM_FI_DEV_GPU_TEMP` and its like, up to 4.8.
    #[default]
    Dcgm48,
    /// The names with units, from 4.9 on.
    Dcgm49,
    /// Both.
    Both,
}

/// Collectors of the design that are not built yet.
const NOT_YET: [&str; 4] = ["ipmi", "smart", "containers", "serving"];

impl Collect {
    pub(super) fn read(node: Option<&Node>) -> Result<Self> {
        let Some(node) = node else { return Ok(Self::default()) };
        let mut fields = node.fields()?;
        let collect = Self {
            gpu: fields.part("gpu").map(Collector::read).transpose()?.unwrap_or_default(),
            node: fields
                .part("node")
                .map(Collector::read)
                .transpose()?
                .unwrap_or_default(),
            kernel: fields
                .part("kernel")
                .map(Collector::read)
                .transpose()?
                .unwrap_or_default(),
            paths: Paths::read(fields.part("paths"))?,
        };
        for key in NOT_YET {
            let Some(own) = fields.part(key) else { continue };
            if Collector::read(own)?.enabled {
                return Err(own.fault(format!("the collector {key} is not supported yet: leave it out")));
            }
        }
        fields.finish()?;
        Ok(collect)
    }
}

impl Collector {
    /// `true`, `false`, or a section.
    fn read(node: &Node) -> Result<Self> {
        if node.scalar().is_some() {
            return Ok(Self {
                enabled: node.read()?,
                interval: None,
            });
        }
        let mut fields = node.fields()?;
        let interval: Option<Duration> = fields.get("interval")?;
        let collector = Self {
            enabled: fields.or("enabled", true)?,
            interval: interval.map(|d| d.0),
        };
        fields.finish()?;
        if collector.interval.is_some_and(|millis| millis <= 0) {
            return Err(fields.fault_at("interval", "interval must be above 0"));
        }
        Ok(collector)
    }
}

impl Paths {
    fn read(node: Option<&Node>) -> Result<Self> {
        let Some(node) = node else { return Ok(Self::default()) };
        let mut fields = node.fields()?;
        let mut path = |key| -> Result<Option<PathBuf>> { Ok(fields.get::<String>(key)?.map(PathBuf::from)) };
        let paths = Self {
            procfs: path("procfs")?,
            sysfs: path("sysfs")?,
            rootfs: path("rootfs")?,
            kmsg: path("kmsg")?,
            nvml_library: path("nvml_library")?,
        };
        fields.finish()?;
        Ok(paths)
    }
}

/// More lines by process than this are a mistake.
const PROCESSES_MAX: u64 = 1000;

impl GpuConfig {
    pub(super) fn read(node: Option<&Node>) -> Result<Self> {
        let Some(node) = node else { return Ok(Self::default()) };
        let base = Self::default();
        let mut fields = node.fields()?;
        let names = fields.or("names", "dcgm-4.8".to_owned())?;
        let label: Option<String> = fields.get("hostname_label")?;
        let smi: Option<String> = fields.get("nvidia_smi")?;
        let config = Self {
            names: match names.as_str() {
                "dcgm-4.8" => GpuNames::Dcgm48,
                "dcgm-4.9" => GpuNames::Dcgm49,
                "both" => GpuNames::Both,
                _ => {
                    let message = format!("unknown names {names:?}: write dcgm-4.8, dcgm-4.9 or both");
                    return Err(fields.fault_at("names", message));
                }
            },
            hostname_label: match label.as_deref() {
                None => None,
                Some("Hostname") => Some(HostnameLabel::Upper),
                Some("hostname") => Some(HostnameLabel::Lower),
                Some(other) => {
                    let message = format!("unknown label {other:?}: write Hostname or hostname");
                    return Err(fields.fault_at("hostname_label", message));
                }
            },
            counters_file: fields.get::<String>("counters_file")?.map(PathBuf::from),
            nvidia_smi: match smi.as_deref() {
                None => base.nvidia_smi,
                Some("off" | "") => None,
                Some(program) => Some(PathBuf::from(program)),
            },
            processes: fields.or("processes", base.processes)?,
            sample_interval: fields
                .get::<Duration>("sample_interval")?
                .map_or(base.sample_interval, |d| d.0),
        };
        fields.finish()?;
        if !(100..=60_000).contains(&config.sample_interval) {
            return Err(fields.fault_at("sample_interval", "sample_interval must be from 100ms to 1m"));
        }
        if config.processes > PROCESSES_MAX {
            return Err(fields.fault_at("processes", format!("processes must be at most {PROCESSES_MAX}")));
        }
        Ok(config)
    }
}
