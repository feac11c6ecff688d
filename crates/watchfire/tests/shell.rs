//! Commands behave in a shell as its other tools do: pipes close, input streams, exit codes tell apart "no" and "cannot".

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};

use support::{answer, stderr, stdout, watchfire};

/// A line that means something, and the class of what it means.
const EVENT: &str = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.\n";

/// Runs `watchfire ARGS` and expects this exit code and these words in what it writes to either side.
#[track_caller]
fn check(args: &[&str], code: i32, words: &[&str]) {
    judge(&answer(args), &format!("{args:?}"), code, words);
}

#[track_caller]
fn judge(output: &Output, what: &str, code: i32, words: &[&str]) {
    let text = stdout(output) + &stderr(output);
    assert_eq!(output.status.code(), Some(code), "{what} gave:\n{text}");
    for word in words {
        assert!(text.contains(word), "{what} should say {word:?} and says:\n{text}");
    }
    assert!(!text.contains("panicked"), "{what}: {text}");
}

/// Runs `watchfire ARGS` in `folder` with this standard input.
fn fed(args: &[&str], input: &[u8], folder: &std::path::Path) -> Output {
    let mut child = watchfire()
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    // It may end without having read all.
    let _ = pipe.write_all(input);
    drop(pipe);
    child.wait_with_output().expect("it ends")
}

fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

/// Runs the command with pipes that nobody reads from, and gives its exit code.
#[track_caller]
fn check_closed(args: &[&str], input: &[u8], code: i32) {
    let mut child = watchfire()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop((child.stdout.take(), child.stderr.take()));
    let mut pipe = child.stdin.take().expect("a pipe");
    let _ = pipe.write_all(input);
    drop(pipe);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(code), "{args:?} with closed pipes");
}

/// A server that gives every request this answer, once for each connection.
fn server(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that went away needs no answer.
            let _ = serve(stream, answer);
        }
    });
    address
}

fn serve(mut stream: TcpStream, answer: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(told) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = told.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    )
}

const UP: &str =
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up"},"value":[1,"1"]}]}}"#;

#[test]
fn a_closed_pipe_leaves_the_verdict_as_it_is() {
    check_closed(&["check", "metrics", "-"], b"up 1\n", 0);
    check_closed(&["check", "metrics", "-", "--json"], b"up 1\n", 0);
    check_closed(&["check", "metrics", "-"], b"up one\n", 1);
    check_closed(&["check", "metrics", "/nonexistent", "-"], b"up 1\n", 2);
    check_closed(&["format", "promql", "-"], b"up", 0);
    check_closed(&["format", "promql", "-"], b"up(", 1);
    check_closed(&["test", "promql", "-"], b"eval instant at 0s 1\n  1\n", 0);
    check_closed(&["test", "promql", "-"], b"eval instant at 0s 1\n  2\n", 1);
    check_closed(&["collect", "node"], b"", 0);
    check_closed(&["collect", "kernel", "--from", "-"], EVENT.as_bytes(), 0);
    let address = server(UP);
    check_closed(&["query", "up", "--url", &address], b"", 0);
    check_closed(&["query", "up", "--url", &address, "--csv"], b"", 0);
    check_closed(&["query", "up(", "--url", &address], b"", 1);
}

#[test]
fn a_full_disk_is_told() {
    let address = server(UP);
    for args in [
        &["check", "metrics", "-"][..],
        &["format", "promql", "up"],
        &["test", "promql", "-"],
        &["collect", "node"],
        &["query", "up", "--url", &address],
        &["query", "up", "--json", "--url", &address],
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("the device");
        let output = watchfire()
            .args(args)
            .stdin(Stdio::null())
            .stdout(full)
            .output()
            .expect("the binary runs");
        judge(
            &output,
            &format!("{args:?}"),
            2,
            &["cannot write to standard output", "space"],
        );
    }
}

fn following() -> Child {
    watchfire()
        .args(["collect", "kernel", "--from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

#[test]
fn kernel_events_come_while_the_input_stays_open() {
    let mut child = following();
    let mut input = child.stdin.take().expect("a pipe");
    let mut events = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for _ in 0..3 {
        input.write_all(EVENT.as_bytes()).expect("it reads");
        let event = events.next().expect("an event").expect("text");
        assert!(event.contains("\"xid\":79"), "{event}");
    }
    drop(input);
    assert!(events.next().is_none());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_reader_that_has_seen_enough_ends_an_endless_input() {
    let mut child = following();
    let mut input = child.stdin.take().expect("a pipe");
    drop(child.stdout.take());
    while input.write_all(EVENT.as_bytes()).is_ok() {}
    let output = child.wait_with_output().expect("it ends");
    judge(&output, "collect kernel", 0, &[]);
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_collectors_page_is_told_as_json() {
    let output = answer(&["collect", "node", "--json"]);
    judge(&output, "collect node --json", 0, &[]);
    let families: Vec<serde_json::Value> = serde_json::from_str(&stdout(&output)).expect("JSON");
    let named = |name: &str| families.iter().find(|f| f["name"] == name).expect("the family");
    let total = named("node_memory_MemTotal_bytes");
    assert_eq!(total["type"], "gauge");
    assert!(total["help"].is_string(), "{total}");
    assert!(
        total["samples"][0]["value"].as_f64().is_some_and(|v| v > 0.0),
        "{total}"
    );
    let cpu = named("node_cpu_seconds_total");
    assert_eq!(cpu["type"], "counter");
    assert!(cpu["samples"][0]["labels"]["mode"].is_string(), "{cpu}");
}

#[test]
fn an_input_that_cannot_be_read_is_named() {
    for kind in [
        &["collect", "kernel", "--from"][..],
        &["check", "rules"],
        &["check", "metrics"],
        &["test", "rules"],
        &["test", "promql"],
    ] {
        for path in ["/nonexistent/file", "/"] {
            check(&[kind, &[path]].concat(), 2, &[&format!("cannot read {path}")]);
        }
    }
}

#[test]
fn scripts_of_queries_run_as_they_are_meant() {
    let script = b"load 1m\n  a 1\n\neval instant at 1m sum by (__name__) (rate({__name__=\"a\"}[5m]))\n";
    let folder = folder_with(&[]);
    let output = fed(&["test", "promql", "-"], script, folder.path());
    judge(&output, "test promql", 0, &["1 passed, 0 failed"]);
    let Some(scripts) = corpus("prometheus/promqltest") else {
        return;
    };
    for name in ["histograms.test", "native_histograms.test", "type_and_unit.test"] {
        let path = scripts.join(name);
        check(&["test", "promql", path.to_str().expect("text")], 0, &[" 0 failed"]);
    }
}

#[test]
fn tests_of_rules_come_from_standard_input_too() {
    let folder = folder_with(&[(
        "rules.yml",
        "groups: [{name: g, rules: [{record: 'a:b', expr: vector(1)}]}]\n",
    )]);
    let tests = |want: u8| {
        format!(
            "rule_files: [rules.yml]\ntests:\n- promql_expr_test:\n  - expr: a:b\n    eval_time: 1m\n    exp_samples: \
             [{{labels: 'a:b', value: {want}}}]\n"
        )
    };
    let output = fed(&["test", "rules", "-"], tests(1).as_bytes(), folder.path());
    judge(&output, "test rules -", 0, &["1 passed, 0 failed"]);
    let output = fed(&["test", "rules", "-"], tests(2).as_bytes(), folder.path());
    judge(&output, "test rules -", 1, &["0 passed, 1 failed", "FAIL -:"]);
    let output = fed(
        &["test", "rules", "/nonexistent", "-", "--json"],
        tests(1).as_bytes(),
        folder.path(),
    );
    judge(&output, "test rules", 2, &["\"passed\":1", "cannot read /nonexistent"]);
    let output = fed(&["test", "rules", "-"], b"\xff", folder.path());
    judge(&output, "test rules -", 1, &["UTF-8"]);
}

#[test]
fn a_missing_file_keeps_none_of_the_others_from_being_judged() {
    let folder = folder_with(&[("good.prom", "up 1\n"), ("bad.prom", "up one\n")]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (good, bad, gone) = (path("good.prom"), path("bad.prom"), path("gone.prom"));
    let words = [
        format!("{good}: ok"),
        format!("{bad}: rejected"),
        format!("cannot read {gone}"),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    check(&["check", "metrics", &gone, &bad, &good], 2, &words);
    let output = answer(&["check", "metrics", "--json", &good, &gone, &bad]);
    assert_eq!(output.status.code(), Some(2));
    let verdicts: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let fine: Vec<bool> = verdicts
        .as_array()
        .expect("a list")
        .iter()
        .map(|v| v["ok"] == true)
        .collect();
    assert_eq!(fine, [true, false, false], "{verdicts}");
}

#[test]
fn a_question_is_checked_before_it_is_asked() {
    let address = server(UP);
    check(&["query", "up", "--time", "abc", "--url", &address], 2, &["--time abc"]);
    check(&["query", "up", "--time", "NaN", "--url", &address], 2, &["--time NaN"]);
    check(
        &["query", "up", "--time", "1e300", "--url", &address],
        2,
        &["--time 1e300"],
    );
    check(&["query", "up", "--range", "x", "--url", &address], 2, &["--range x"]);
    check(&["query", "up", "--time", "-5.5", "--url", &address], 0, &["up"]);
    let date = "2026-01-31T12:00:00Z";
    check(&["query", "up", "--time", date, "--url", &address], 0, &["up"]);
    check(
        &["query", "up", "--time", date, "--range", "1h", "--url", &address],
        0,
        &["up"],
    );
}

#[test]
fn a_hub_that_is_not_there_is_named_with_a_way_out() {
    let address = format!("127.0.0.1:{}", support::free_port());
    check(
        &["query", "up", "--url", &address],
        2,
        &[&format!("http://{address}/"), "refused", "hint:", "watchfire run"],
    );
}

#[test]
fn a_host_name_is_an_address_to_listen_on() {
    let port = support::free_port();
    let agent = watchfire()
        .args(["agent", "--listen", &format!("localhost:{port}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut agent = Ended(agent);
    let log = BufReader::new(agent.0.stderr.take().expect("a pipe"));
    let said = log
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains(&port.to_string()));
    let said = said.expect("it says where it listens");
    assert!(said.contains("127.0.0.1") || said.contains("[::1]"), "{said}");
    check(&["agent", "--listen", "9900"], 2, &["--listen", "127.0.0.1:9900"]);
    check(&["agent", "--listen", "no.such.host.invalid:1"], 2, &["--listen"]);
}

/// A process that is ended when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn flags_that_say_nothing_about_the_files_are_refused() {
    check(&["check", "rules", "--openmetrics", "/dev/null"], 2, &["--openmetrics"]);
    check(
        &["check", "prometheus", "--openmetrics", "/dev/null"],
        2,
        &["--openmetrics"],
    );
}

#[test]
fn bytes_that_are_no_text_are_no_expression() {
    let folder = folder_with(&[]);
    let output = fed(&["format", "promql", "-"], b"up\n+ \xff", folder.path());
    judge(&output, "format promql", 1, &["2:3: parse error: invalid UTF-8"]);
    let output = fed(&["format", "promql", "-", "--json"], b"\xc3", folder.path());
    judge(
        &output,
        "format promql",
        1,
        &["\"ok\":false", "1:1: parse error: invalid UTF-8"],
    );
    let output = fed(&["query", "-"], b"\xff", folder.path());
    judge(&output, "query", 1, &["invalid UTF-8"]);
}

#[test]
fn a_rule_recorded_twice_deserves_a_look() {
    let rule = "{record: 'a:b', expr: vector(1)}";
    let folder = folder_with(&[(
        "rules.yml",
        &format!("groups: [{{name: g, rules: [{rule}, {rule}]}}]\n"),
    )]);
    let path = folder.path().join("rules.yml");
    check(
        &["check", "rules", path.to_str().expect("text")],
        0,
        &["remark", "recorded twice", ": ok"],
    );
}

/// A folder of the corpora; `None` with a message where they are absent.
fn corpus(name: &str) -> Option<std::path::PathBuf> {
    let corpora =
        std::env::var_os("WATCHFIRE_CORPORA").map_or_else(|| support::root().join("../shared/corpora"), Into::into);
    let folder = corpora.join(name);
    if !folder.is_dir() {
        eprintln!("skipped: the corpus {name} is absent");
        return None;
    }
    Some(folder)
}
