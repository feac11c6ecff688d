//! A kernel line reaches a webhook without waiting for a scrape or for the rules' grid.

mod support;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use support::{Process, Webhook};

/// A source of kernel messages that the test writes.
struct Kmsg(std::fs::File);

impl Kmsg {
    fn at(path: &Path) -> Self {
        let status = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
        assert!(status.success(), "mkfifo {}", path.display());
        // Open for both, so that neither end waits for the other.
        let open = OpenOptions::new().read(true).write(true).open(path);
        Self(open.expect("the pipe"))
    }

    fn say(&mut self, sequence: u64, message: &str) {
        let uptime = std::fs::read_to_string("/proc/uptime").expect("the uptime");
        let seconds: f64 = uptime.split(' ').next().and_then(|s| s.parse().ok()).expect("seconds");
        let record = format!("4,{sequence},{},-;{message}\n", (seconds * 1e6) as u64);
        self.0.write_all(record.as_bytes()).expect("the pipe takes it");
    }
}

/// Everything on the grid is so slow that only events can bring an alert within a test's patience.
const SLOW: &str = "prometheus:\n  global: {scrape_interval: 10m, evaluation_interval: 10m, scrape_timeout: 5s}\n";

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path: PathBuf = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a path of text").to_owned()
}

const XID: &str = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1337, name=python3, GPU has fallen off the bus.";

#[test]
fn a_kernel_line_is_told_before_the_next_scrape() {
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Webhook::start();
    let path = folder.path().join("kmsg");
    let mut kmsg = Kmsg::at(&path);
    let config = file(folder.path(), "watchfire.yml", SLOW);
    let data = folder.path().join("data");
    let run = Process::start(&[
        "run",
        "--config",
        &config,
        "--data",
        data.to_str().expect("text"),
        "--path.kmsg",
        path.to_str().expect("text"),
        "--webhook",
        &webhook.url,
    ])
    .wait_ready();
    run.wait_for("the first page", |run| {
        (!run.query("watchfire_kernel_events_total{class=\"xid\"}").is_empty()).then_some(())
    });
    kmsg.say(1, XID);
    run.wait_for("the alert", |_| {
        (!webhook.named("GpuXidFatal", "firing").is_empty()).then_some(())
    });
    let alert = webhook.named("GpuXidFatal", "firing").remove(0);
    assert_eq!(alert["labels"]["xid"], "79", "{alert}");
    // Counted once, from zero.
    let increase = run.query("increase(watchfire_gpu_xid_errors_total{xid=\"79\"}[10m]) > 0");
    assert_eq!(increase.len(), 1, "{increase:?}");
    let counted = run.query("watchfire_gpu_xid_errors_total{xid=\"79\"}");
    assert_eq!(counted[0]["value"][1], "1");
}

#[test]
fn an_agents_event_reaches_the_hub_by_its_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Webhook::start();
    let path = folder.path().join("kmsg");
    let mut kmsg = Kmsg::at(&path);
    let agent = Process::start(&["agent", "--path.kmsg", path.to_str().expect("text")]).wait_ready();
    let scrape = format!(
        "prometheus:\n  global: {{scrape_interval: 10m, evaluation_interval: 10m, scrape_timeout: 5s}}\n  \
         scrape_configs: [{{job_name: gpu, scrape_interval: 2s, scrape_timeout: 1s, static_configs: [{{targets: ['{}']}}]}}]\n",
        agent.address
    );
    let config = file(folder.path(), "watchfire.yml", &scrape);
    let data = folder.path().join("data");
    let hub = Process::start(&[
        "hub",
        "--config",
        &config,
        "--data",
        data.to_str().expect("text"),
        "--webhook",
        &webhook.url,
    ])
    .wait_ready();
    hub.wait_for("the first page", |hub| {
        (!hub.query("watchfire_kernel_events_total{class=\"xid\"}").is_empty()).then_some(())
    });
    // The hub looks for agents every few seconds.
    agent.wait_for("the hub's stream", |agent| {
        (agent.get("/metrics")?.body.contains("watchfire_event_streams 1")).then_some(())
    });
    kmsg.say(1, XID);
    hub.wait_for("the alert", |_| {
        (!webhook.named("GpuXidFatal", "firing").is_empty()).then_some(())
    });
    let alert = webhook.named("GpuXidFatal", "firing").remove(0);
    assert_eq!(alert["labels"]["instance"], agent.address.to_string(), "{alert}");
    assert_eq!(alert["labels"]["job"], "gpu", "{alert}");
}
