use super::*;

#[track_caller]
fn refused(text: &str, want: &str) {
    let error = Config::parse("prometheus.yml", text).expect_err("refused");
    assert!(error.to_string().contains(want), "{text}: {error}");
}

fn job(rest: &str) -> String {
    format!("scrape_configs: [{{job_name: a, {rest}}}]")
}

#[test]
fn an_empty_file_has_the_defaults() {
    for text in ["", "global:", "{}"] {
        let config = Config::parse("x", text).expect("valid");
        assert_eq!(
            (config.global.scrape_interval, config.global.scrape_timeout),
            (60_000, 10_000)
        );
    }
}

#[test]
fn jobs_take_what_they_do_not_say_from_global() {
    let text = "global: {scrape_interval: 5s, sample_limit: 7, body_size_limit: 1MB}\nscrape_configs:\n- job_name: a\n  static_configs: [{targets: ['h:1']}]\n- job_name: b\n  scrape_interval: 1m\n  sample_limit: 8\n";
    let config = Config::parse("x", text).expect("valid");
    let [a, b] = &config.scrape_configs[..] else {
        panic!("two jobs")
    };
    assert_eq!(
        (a.scrape_interval, a.scrape_timeout, a.limits.samples),
        (5_000, 5_000, 7)
    );
    assert_eq!(
        (b.scrape_interval, b.scrape_timeout, b.limits.samples),
        (60_000, 5_000, 8)
    );
    assert_eq!(a.limits.body_size_bytes, 1 << 20);
    assert_eq!(
        (a.metrics_path.as_str(), a.scheme.as_str(), a.honor_timestamps),
        ("/metrics", "http", true)
    );
}

#[test]
fn a_fault_has_line_column_and_caret() {
    let text = "scrape_configs:\n- job_name: a\n  scrape_intervall: 5s\n";
    refused(
        text,
        "prometheus.yml:3:3: field scrape_intervall not found here; did you mean scrape_interval?\n    scrape_intervall: 5s\n    ^^^^^^^^^^^^^^^^",
    );
}

#[test]
fn kinds_of_discovery_know_their_keys() {
    refused(
        &job("file_sd_configs: [{files: [a.txt]}]"),
        "is not valid for file discovery",
    );
    refused(&job("dns_sd_configs: [{names: [a], type: A}]"), "a port is required");
    refused(&job("consul_sd_configs: [{servers: a}]"), "did you mean server?");
    refused(
        &job("consul_sd_config: [{server: a}]"),
        "did you mean consul_sd_configs?",
    );
    refused(
        &job("ec2_sd_configs: [null]"),
        "empty or null section in ec2_sd_configs",
    );
    refused(
        &job("static_configs: [{targets: ['http://a']}]"),
        "is not a valid hostname",
    );
    let config = Config::parse(
        "x",
        &job("http_sd_configs: [{url: 'http://a/b', refresh_interval: 5s}]"),
    )
    .expect("valid");
    let [Discovery::Http(http)] = &config.scrape_configs[0].discovery[..] else {
        panic!("one of HTTP")
    };
    assert_eq!((http.url.host(), http.refresh_interval), ("a", 5_000));
}

#[test]
fn a_star_stands_in_the_last_part_of_a_path() {
    refused("rule_files: ['a/*/b.yml']", "invalid rule file path");
    assert!(Config::parse("x", "rule_files: ['a/*.yml', 'b/c*d*.yml']").is_ok());
}
