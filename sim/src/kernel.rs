//! What the kernel and the driver write into the kernel log.
//!
//! Texts have the form of the real ones; the words are those that readers look for. Names,
//! numbers and addresses come from the scenario.

use crate::Offset;
use crate::scenario::{Fault, FaultKind, Job, OomKill, Scenario, Sxid, Xid};

/// A line of the kernel log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMessage {
    /// When, in milliseconds from the scenario's start.
    pub time_ms: i64,
    /// Facility and level as in `/dev/kmsg`: 3 error, 4 warning, 6 information.
    pub priority: u8,
    /// The line, without time and host.
    pub text: String,
}

const ERROR: u8 = 3;
const WARNING: u8 = 4;
const INFORMATION: u8 = 6;
/// How often a bad riser says so.
const AER_EVERY_MS: i64 = 7_000;
/// No more than this of one riser; the kernel has its own rate limit.
const AER_MAX: i64 = 500;

impl Scenario {
    /// The lines from a time (included) to another (excluded), in order of time.
    #[must_use]
    pub fn kernel_messages(&self, from_ms: i64, to_ms: i64) -> Vec<KernelMessage> {
        let mut lines: Vec<KernelMessage> = self
            .faults()
            .iter()
            .flat_map(|fault| self.fault_lines(fault, from_ms, to_ms))
            .chain(self.jobs().iter().flat_map(job_lines))
            .filter(|line| (from_ms..to_ms).contains(&line.time_ms))
            .collect();
        // Stable: lines of the same millisecond keep their order.
        lines.sort_by_key(|line| line.time_ms);
        lines
    }

    fn fault_lines(&self, fault: &Fault, from_ms: i64, to_ms: i64) -> Vec<KernelMessage> {
        let at = fault.at.ms();
        match &fault.kind {
            FaultKind::Xid(xid) if xid.is_logged() => self.xid_lines(fault, xid, from_ms, to_ms),
            FaultKind::Sxid(sxid) => sxid_lines(at, sxid),
            FaultKind::OomKill(kill) => self.oom_lines(at, kill),
            FaultKind::PcieWidth(width) => self.riser_lines(fault, *width, from_ms, to_ms),
            _ => Vec::new(),
        }
    }

    fn xid_lines(&self, fault: &Fault, xid: &Xid, from_ms: i64, to_ms: i64) -> Vec<KernelMessage> {
        let code = xid.code;
        let Some((gpu, board)) = fault.gpu.and_then(|gpu| Some((gpu, self.boards().get(gpu)?))) else {
            return Vec::new();
        };
        let at = fault.at.ms();
        let pci = board.pci;
        let process = self
            .job_on(gpu, at - 1)
            .and_then(|job| Some((job.pid_on(gpu)?, job.process.as_str())));
        let mut lines = vec![
            line(at, WARNING, format!("NVRM: GPU at {}: {}", pci.xid(), board.uuid)),
            line(at, WARNING, format!("NVRM: GPU Board Serial Number: {}", board.serial)),
        ];
        let words = xid_text(code, process, xid.text.as_deref());
        // Of a storm only the part that was asked for is made.
        let every = xid.every.ms().max(0);
        let first = match (from_ms - at).checked_div(every) {
            Some(before) => u64::try_from(before).unwrap_or(0),
            None => 0,
        };
        for count in first..xid.count_after(to_ms - at) {
            let time = at.saturating_add(every.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX)));
            lines.push(line(
                time,
                WARNING,
                format!("NVRM: Xid ({}): {code}, {words}", pci.xid()),
            ));
        }
        if code == 79 {
            let lost = format!("NVRM: GPU {}: GPU has fallen off the bus.", pci.kernel());
            let serial = format!("NVRM: GPU {}: GPU serial number is {}.", pci.kernel(), board.serial);
            lines.push(line(at, WARNING, lost));
            lines.push(line(at, WARNING, serial));
        }
        lines
    }

    fn oom_lines(&self, at: i64, kill: &OomKill) -> Vec<KernelMessage> {
        let OomKill {
            process, pid, cgroup, ..
        } = kill;
        let scope = cgroup.rsplit('/').next().unwrap_or(cgroup);
        let rss_kib = kill.rss_gib * 1024 * 1024;
        let last_node = self.host().sockets.saturating_sub(1);
        let (constraint, which) = if kill.memcg {
            ("CONSTRAINT_MEMCG", format!("oom_memcg={cgroup}"))
        } else {
            ("CONSTRAINT_NONE", "global_oom".to_owned())
        };
        let detail = format!(
            "oom-kill:constraint={constraint},nodemask=(null),cpuset={scope},mems_allowed=0-{last_node},{which},\
             task_memcg={cgroup},task={process},pid={pid},uid=0"
        );
        let prefix = if kill.memcg {
            "Memory cgroup out of memory"
        } else {
            "Out of memory"
        };
        let killed = format!(
            "{prefix}: Killed process {pid} ({process}) total-vm:{}kB, anon-rss:{rss_kib}kB, file-rss:{}kB, \
             shmem-rss:0kB, UID:0 pgtables:{}kB oom_score_adj:0",
            rss_kib + rss_kib / 16,
            71_680,
            rss_kib / 510,
        );
        vec![
            line(
                at,
                WARNING,
                format!(
                    "{process} invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), \
                     order=0, oom_score_adj=0"
                ),
            ),
            line(
                at,
                WARNING,
                format!(
                    "CPU: 37 PID: {pid} Comm: {process} Tainted: P           OE      {}",
                    self.host().kernel
                ),
            ),
            line(at, INFORMATION, detail),
            line(at, ERROR, killed),
            line(
                at + 900,
                INFORMATION,
                format!(
                    "oom_reaper: reaped process {pid} ({process}), now anon-rss:0kB, file-rss:160kB, shmem-rss:0kB"
                ),
            ),
        ]
    }

    /// The port says that packets were damaged, ever again until the riser is mended or the GPU gone.
    fn riser_lines(&self, fault: &Fault, width: u32, from_ms: i64, to_ms: i64) -> Vec<KernelMessage> {
        let Some((gpu, board)) = fault.gpu.and_then(|gpu| Some((gpu, self.boards().get(gpu)?))) else {
            return Vec::new();
        };
        let device = board.pci.kernel();
        let port = format!("{:04x}:{:02x}:01.0", board.pci.domain, board.pci.bus.saturating_sub(1));
        let kind = self.kind_of(gpu);
        let device_id = kind.pci_device_id >> 16;
        let mut lines = vec![line(
            fault.at.ms(),
            INFORMATION,
            format!(
                "nvidia {device}: {} Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x{width} link at {port} \
                 (capable of {} Gb/s with 32.0 GT/s PCIe x{} link)",
                gigabits(width),
                gigabits(kind.pcie_width),
                kind.pcie_width
            ),
        )];
        for count in 0..AER_MAX {
            let at = fault.at.ms() + 1_000 + count * AER_EVERY_MS;
            if at >= to_ms || !fault.active_at(at) || self.is_lost(gpu, at) {
                break;
            }
            if at < from_ms {
                continue;
            }
            lines.push(line(
                at,
                WARNING,
                format!("pcieport {port}: AER: Corrected error message received from {device}"),
            ));
            lines.push(line(
                at,
                WARNING,
                format!("nvidia {device}: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)"),
            ));
            lines.push(line(
                at,
                WARNING,
                format!("nvidia {device}:   device [10de:{device_id:04x}] error status/mask=00001000/0000a000"),
            ));
            lines.push(line(
                at,
                WARNING,
                format!("nvidia {device}:    [12] Timeout               "),
            ));
        }
        lines
    }
}

/// PCIe 5.0 gives 31.504 Gb/s of payload for each lane.
fn gigabits(width: u32) -> String {
    format!("{:.3}", f64::from(width) * 31.507)
}

/// What follows the code: process and words.
fn xid_text(code: u32, process: Option<(u32, &str)>, own: Option<&str>) -> String {
    let (pid, name) = match (code, process) {
        // Errors of a channel name the process that owned it.
        (13 | 31 | 43 | 45 | 94, Some((pid, name))) => (pid.to_string(), name.to_owned()),
        _ => ("'<unknown>'".to_owned(), "<unknown>".to_owned()),
    };
    let words = match code {
        _ if own.is_some() => own.unwrap_or_default().to_owned(),
        13 => "Graphics SM Warp Exception on (GPC 2, TPC 0, SM 1): Out Of Range Address".to_owned(),
        31 => "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_3 faulted @ 0x7f4c_1a200000. \
               Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
            .to_owned(),
        43 | 45 => "Ch 00000008".to_owned(),
        48 => "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at physAddr \
               0x12bac1c3e0 partition 2, subpartition 1."
            .to_owned(),
        63 => "Row Remapper: New row (0x00000012bac1c3e0) marked for remapping, reset gpu to activate.".to_owned(),
        64 => "Row Remapper: Failed to record row remapping.".to_owned(),
        74 => "NVLink: fatal error detected on link 3(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)".to_owned(),
        79 => "GPU has fallen off the bus.".to_owned(),
        94 => "Contained: SM (0x1). RST: No, D-RST: No".to_owned(),
        95 => "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No".to_owned(),
        119 => "Timeout after 6s of waiting for RPC response from GPU GSP! Expected function 76 (GSP_RM_CONTROL)."
            .to_owned(),
        _ => "unknown error".to_owned(),
    };
    format!("pid={pid}, name={name}, {words}")
}

/// In the words of the switch's driver, whose devices are numbered by the order of their addresses; here all are the first.
fn sxid_lines(at: i64, sxid: &Sxid) -> Vec<KernelMessage> {
    let severity = if sxid.fatal { "Fatal" } else { "Non-fatal" };
    let link = sxid.link.map(|link| format!("Link {link} ")).unwrap_or_default();
    let words = sxid.text.as_deref().unwrap_or("LTSSM Fault Up");
    let head = format!("nvidia-nvswitch0: SXid ({}.0): {}", sxid.switch.xid(), sxid.code);
    vec![
        line(at, ERROR, format!("{head}, {severity}, {link}{words}")),
        line(
            at,
            ERROR,
            format!(
                "{head}, Severity {} Engine instance 00 Sub-engine instance 00",
                u8::from(sxid.fatal)
            ),
        ),
    ]
}

/// A container that starts and stops is seen at its network.
fn job_lines(job: &Job) -> Vec<KernelMessage> {
    let veth = format!("veth{:07x}", job.pid.wrapping_mul(2_654_435_761) & 0x0fff_ffff);
    let mut lines = vec![
        line(
            job.from.ms(),
            INFORMATION,
            format!("docker0: port 1({veth}) entered blocking state"),
        ),
        line(
            job.from.ms() + 40,
            INFORMATION,
            format!("docker0: port 1({veth}) entered forwarding state"),
        ),
    ];
    if let Some(Offset(until)) = job.until {
        lines.push(line(
            until,
            INFORMATION,
            format!("docker0: port 1({veth}) entered disabled state"),
        ));
    }
    lines
}

fn line(time_ms: i64, priority: u8, text: String) -> KernelMessage {
    KernelMessage {
        time_ms,
        priority,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(from_ms: i64, to_ms: i64) -> Vec<String> {
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        demo.kernel_messages(from_ms, to_ms)
            .into_iter()
            .map(|line| line.text)
            .collect()
    }

    #[test]
    fn a_gpu_that_falls_off_the_bus_is_in_the_drivers_words() {
        let want = "NVRM: Xid (PCI:0000:43:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
        assert_eq!(texts(45_000, 45_001).iter().filter(|text| *text == want).count(), 1);
    }

    #[test]
    fn an_oom_kill_is_announced_and_done() {
        let lines = texts(25_000, 25_001);
        let detail = lines
            .iter()
            .position(|text| text.starts_with("oom-kill:constraint=CONSTRAINT_NONE,"))
            .unwrap();
        assert!(lines[detail + 1].starts_with("Out of memory: Killed process 4242 (python3) total-vm:"));
        assert!(lines[detail + 1].contains("anon-rss:1730150400kB"));
    }

    #[test]
    fn pieces_of_time_give_the_same_lines_as_the_whole() {
        let whole = texts(-70_000, 90_000);
        let pieces: Vec<String> = (-70_000..90_000)
            .step_by(500)
            .flat_map(|from| texts(from, from + 500))
            .collect();
        assert_eq!(whole, pieces);
    }

    #[test]
    fn nothing_bad_is_logged_before_the_start() {
        assert!(texts(-86_400_000, 0).iter().all(|text| text.starts_with("docker0: ")));
    }
}
