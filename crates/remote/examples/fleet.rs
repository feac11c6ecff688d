//! GPU servers made up, for benchmarks of whole processes.
//!
//! `fleet serve PORT TARGETS SERIES` serves their pages on `127.0.1.1:PORT`, `127.0.1.2:PORT`, … until killed;
//! `fleet write URL SERVERS SERIES START_SECONDS COUNT` pushes COUNT scrapes of 15 s each by remote write 1.0, one request
//! a server and scrape, and prints the samples sent and the seconds it took.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[path = "../../tsdb/examples/mix/mod.rs"]
mod mix;

use mix::{KINDS, Kind};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Names of the kinds of [`KINDS`], in order.
const NAMES: [&str; 12] = [
    "gpu_info",
    "gpu_clock",
    "gpu_memory",
    "gpu_temp",
    "gpu_power",
    "gpu_util",
    "gpu_active",
    "latency_sum",
    "violation_total",
    "bytes_total",
    "cpu_seconds_total",
    "latency_bucket",
];

const BOUNDS: [&str; 8] = ["0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "+Inf"];

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| -> Result<u64, Failure> { Ok(args.get(i).ok_or("an argument is missing")?.parse()?) };
    match args.first().map_or("", String::as_str) {
        "serve" => serve(u16::try_from(number(1)?)?, number(2)?, number(3)?),
        "write" => write(&args[1], number(2)?, number(3)?, number(4)?, number(5)?),
        _ => Err("usage: fleet serve PORT TARGETS SERIES | fleet write URL SERVERS SERIES START COUNT".into()),
    }
}

/// A series: what it is called, and where it stands.
struct Line {
    kind: &'static Kind,
    name: String,
    labels: Vec<(&'static str, String)>,
    value: f64,
    /// Buckets: their share of the first one's counts, so that they grow with their bound.
    below: Option<usize>,
}

/// A server: groups of eight series, one a GPU, in the shares of the mix.
struct Server {
    lines: Vec<Line>,
    rng: fastrand::Rng,
    round: i64,
}

impl Server {
    fn new(number: u64, series: u64) -> Self {
        let mut lines = Vec::new();
        let groups = series.div_ceil(8);
        for group in 0..groups {
            // By the group's place, so that each name has the same kind on every server.
            let mut at = u32::try_from(group * 97 % 100).unwrap_or(0);
            let kind = KINDS.iter().position(|kind| {
                let found = at < kind.share;
                at = at.saturating_sub(kind.share);
                found
            });
            let kind = kind.unwrap_or(0);
            for gpu in 0..8.min(series - group * 8) {
                let is_bucket = NAMES[kind] == "latency_bucket";
                let mut labels = vec![
                    ("Hostname", format!("gpu-node-{number:04}")),
                    ("UUID", format!("GPU-{gpu:08x}-4f3a-9d1e-0000-{number:012}")),
                    ("device", format!("nvidia{gpu}")),
                    ("gpu", gpu.to_string()),
                    ("modelName", "NVIDIA H100 80GB HBM3".to_owned()),
                    ("pci_bus_id", format!("00000000:{gpu:02X}:00.0")),
                ];
                if is_bucket {
                    let bound = BOUNDS[usize::try_from(gpu).unwrap_or(0)];
                    labels = vec![("Hostname", format!("gpu-node-{number:04}")), ("le", bound.to_owned())];
                }
                lines.push(Line {
                    kind: &KINDS[kind],
                    name: format!("{}_{}", NAMES[kind], group / 100)
                        .replace("_total_", "_")
                        .replace("_bucket_", "_")
                        + match NAMES[kind] {
                            name if name.ends_with("_total") => "_total",
                            "latency_bucket" => "_bucket",
                            _ => "",
                        },
                    labels,
                    value: 0.0,
                    below: (is_bucket && gpu > 0).then_some(lines.len().wrapping_sub(1)),
                });
                if let Some(line) = lines.last_mut() {
                    // Groups of one kind are told apart by number.
                    line.labels.push(("group", group.to_string()));
                    line.labels.sort();
                }
            }
        }
        Self {
            lines,
            rng: fastrand::Rng::with_seed(number + 1),
            round: 0,
        }
    }

    /// The next scrape.
    fn turn(&mut self) {
        let mut grown = 0.0;
        for i in 0..self.lines.len() {
            let line = &self.lines[i];
            let next = (line.kind.next)(&mut self.rng, line.value, self.round);
            let step = next - line.value;
            // A bucket holds what the ones below it hold.
            grown = if line.below.is_some() { grown + step } else { step };
            let is_bucket = line.name.ends_with("_bucket");
            self.lines[i].value = if is_bucket { line.value + grown } else { next };
        }
        self.round += 1;
    }

    fn page(&self, out: &mut String) {
        out.clear();
        let mut last = "";
        for line in &self.lines {
            if line.name != last {
                let kind = if line.name.ends_with("_total") {
                    "counter"
                } else {
                    "gauge"
                };
                let _ = writeln!(out, "# TYPE {} {kind}", line.name);
                last = &line.name;
            }
            let _ = write!(out, "{}{{", line.name);
            for (i, (name, value)) in line.labels.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                let _ = write!(out, "{comma}{name}=\"{value}\"");
            }
            let _ = writeln!(out, "}} {}", line.value);
        }
    }
}

fn serve(port: u16, targets: u64, series: u64) -> Result<(), Failure> {
    let mut threads = Vec::new();
    for number in 0..targets {
        let address = Ipv4Addr::new(127, 0, u8::try_from(1 + number / 250)?, u8::try_from(1 + number % 250)?);
        let listener = TcpListener::bind((address, port))?;
        let server = std::sync::Arc::new(std::sync::Mutex::new((Server::new(number, series), 0)));
        let work = move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = std::sync::Arc::clone(&server);
                let _ = std::thread::Builder::new().stack_size(128 << 10).spawn(move || {
                    let _ = answer(&stream, &server);
                });
            }
        };
        threads.push(std::thread::Builder::new().stack_size(64 << 10).spawn(work)?);
    }
    println!("ready");
    for thread in threads {
        let _ = thread.join();
    }
    Ok(())
}

fn answer(stream: &TcpStream, server: &std::sync::Mutex<(Server, u64)>) -> Result<(), Failure> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut page, mut out) = (String::new(), String::new(), Vec::new());
    loop {
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
        }
        {
            let mut guard = server.lock().map_err(|_| "a thread panicked")?;
            // All who scrape within one interval see the same values.
            let slot = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 15;
            if guard.1 != slot {
                guard.1 = slot;
                guard.0.turn();
            }
            guard.0.page(&mut page);
        }
        out.clear();
        write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n",
            page.len()
        )?;
        out.extend_from_slice(page.as_bytes());
        let mut stream = stream;
        stream.write_all(&out)?;
    }
}

fn write(url: &str, servers: u64, series: u64, start: u64, count: u64) -> Result<(), Failure> {
    let rest = url.strip_prefix("http://").ok_or("only http://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/api/v1/write" } else { path };
    let mut servers: Vec<Server> = (0..servers).map(|number| Server::new(number, series)).collect();
    let labels: Vec<Vec<Vec<u8>>> = servers
        .iter()
        .map(|server| server.lines.iter().map(encoded_labels).collect())
        .collect();
    let stream = TcpStream::connect(host)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let (mut body, mut encoder) = (Vec::new(), snap::raw::Encoder::new());
    let begun = Instant::now();
    let mut sent = 0u64;
    for scrape in 0..count {
        let time = (start + scrape * 15) * 1000;
        for (server, labels) in servers.iter_mut().zip(&labels) {
            server.turn();
            body.clear();
            for (line, labels) in server.lines.iter().zip(labels) {
                put_series(labels, line.value, time, &mut body);
            }
            sent += server.lines.len() as u64;
            let packed = encoder.compress_vec(&body)?;
            write!(
                stream,
                "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n\
                 X-Prometheus-Remote-Write-Version: 0.1.0\r\nContent-Length: {}\r\n\r\n",
                packed.len()
            )?;
            stream.write_all(&packed)?;
            read_answer(&mut reader)?;
        }
    }
    println!("{sent} samples in {:.2} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn read_answer(reader: &mut BufReader<TcpStream>) -> Result<(), Failure> {
    let mut status = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err("the connection was closed".into());
        }
        if status.is_empty() {
            line.trim().clone_into(&mut status);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if !status.contains(" 20") {
        return Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into());
    }
    Ok(())
}

/// The label fields of a `TimeSeries` message, sorted by name.
fn encoded_labels(line: &Line) -> Vec<u8> {
    let mut pairs: Vec<(&str, &str)> = line.labels.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let instance = line
        .labels
        .iter()
        .find(|(n, _)| *n == "Hostname")
        .map_or("", |(_, v)| v);
    pairs.extend([
        ("__name__", line.name.as_str()),
        ("instance", instance),
        ("job", "dcgm"),
    ]);
    pairs.sort_unstable();
    let mut out = Vec::new();
    for (name, value) in pairs {
        let mut pair = Vec::new();
        put_bytes(1, name.as_bytes(), &mut pair);
        put_bytes(2, value.as_bytes(), &mut pair);
        put_bytes(1, &pair, &mut out);
    }
    out
}

fn put_series(labels: &[u8], value: f64, time: u64, out: &mut Vec<u8>) {
    let mut sample = Vec::with_capacity(20);
    sample.push(1 << 3 | 1);
    sample.extend_from_slice(&value.to_le_bytes());
    sample.push(2 << 3);
    put_varint(time, &mut sample);
    let length = labels.len() + 2 + sample.len();
    out.push(1 << 3 | 2);
    put_varint(length as u64, out);
    out.extend_from_slice(labels);
    put_bytes(2, &sample, out);
}

fn put_bytes(field: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(field << 3 | 2);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
