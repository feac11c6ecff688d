use super::*;

fn read_text(text: &str) -> std::result::Result<Config, Error> {
    Config::parse("watchfire.yml", text, Path::new("."))
}

#[track_caller]
fn refused(text: &str, want: &str) {
    let error = read_text(text).expect_err("refused");
    assert!(error.to_string().contains(want), "{text}: {error}");
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(read_text("").expect("valid"), Config::default());
    assert_eq!(Config::default().prometheus.global.scrape_interval, 15_000);
}

#[test]
fn our_keys_stand_beside_the_ecosystems() {
    let text = "listen: 9901\nretention: {metrics: {time: 7d, size: 5GB}}\nglobal: {scrape_interval: 5s}\ncollect: {kernel: false, gpu: {interval: 2s}}\nprometheus:\n  scrape_configs:\n  - job_name: a\nalertmanager:\n  route: {receiver: x}\n  receivers: [{name: x}]\n";
    let config = read_text(text).expect("valid");
    assert_eq!(config.listen.as_deref(), Some("127.0.0.1:9901"));
    assert_eq!(
        config.retention,
        Retention {
            time: 7 * DAY,
            bytes: 5 << 30
        }
    );
    assert_eq!(config.prometheus.scrape_configs[0].scrape_interval, 5_000);
    assert_eq!(config.prometheus.global.evaluation_interval, 15_000);
    assert!(!config.collect.kernel.enabled && config.collect.node.enabled);
    assert_eq!(config.collect.gpu.interval, Some(2_000));
    assert_eq!(config.alertmanager.expect("one").route.receiver, "x");
}

#[test]
fn a_fault_inside_an_inline_part_has_its_place_in_our_file() {
    refused(
        "prometheus:\n  scrape_configs:\n  - job_nam: a\n",
        "watchfire.yml:3:5: field job_nam not found here; did you mean job_name?",
    );
    refused("alertmanager: {receivers: []}", "no routes provided");
}

#[test]
fn what_is_planned_is_refused_by_name() {
    refused("auth: {users: []}", "watchfire.yml:1:7: auth is not supported yet");
    refused("tls: {}", "tls is not supported yet");
    refused("logs: {}", "logs is not supported yet");
    refused("storage: {metrics: remote}", "not supported yet");
    refused("retention: {logs: {time: 1d}}", "not supported yet");
    refused("collect: {ipmi: true}", "the collector ipmi is not supported yet");
    assert!(read_text("collect: {ipmi: false}\nstorage: {metrics: local}").is_ok());
}

#[test]
fn nonsense_is_refused() {
    refused("lissten: a", "did you mean listen?");
    refused("listen: here", "is not an address to listen on");
    refused("retention: {metrics: {size: 20}}", "unknown unit");
    refused("retention: {metrics: {time: 0s}}", "time must be above 0");
    refused("gpu: {names: dcgm-5}", "write dcgm-4.8, dcgm-4.9 or both");
    refused(
        "gpu: {sample_interval: 10ms}",
        "sample_interval must be from 100ms to 1m",
    );
    refused("gpu: {hostname_label: host}", "write Hostname or hostname");
    refused("gpu: {processes: 5000}", "at most 1000");
    refused("gpu: {counter_file: x}", "counters_file");
    refused("limits: {series: 0}", "series must be above 0");
    refused("external_url: nowhere", "unsupported scheme");
    refused("prometheus: ./not-there.yml", "not-there.yml");
}

#[test]
fn a_file_of_prometheus_keeps_its_own_minute() {
    let path = std::env::temp_dir().join(format!("watchfire-minute-{}.yml", std::process::id()));
    std::fs::write(&path, "scrape_configs: [{job_name: a}]\n").expect("a file");
    let mut config = Config::default();
    let used = config.use_prometheus(&path);
    std::fs::remove_file(&path).expect("it was there");
    used.expect("valid");
    assert_eq!(config.prometheus.scrape_configs[0].scrape_interval, 60_000);
    assert_eq!(config.prometheus.global.evaluation_interval, 60_000);
}
