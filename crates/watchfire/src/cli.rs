//! Every command and flag, defined once: help, parser and reference come from here.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Watches AI servers: GPUs, hosts, kernel messages; stores, queries, alerts and shows.
#[derive(Debug, Parser)]
#[command(name = "watchfire", version, about, max_term_width = 100)]
pub struct Cli {
    /// How much the program's own log tells.
    #[arg(long, global = true, value_enum, default_value_t = LogLevel::Info)]
    pub log_level: LogLevel,
    /// Write the program's own log as JSON lines.
    #[arg(long, global = true)]
    pub log_json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Levels of the program's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

impl LogLevel {
    /// The word of the level.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch this machine: collectors, store, rules, alerts and page in one process.
    Run(RunArgs),
    /// Serve this machine's metrics for a hub elsewhere.
    Agent(AgentArgs),
    /// Scrape, store, evaluate and show; watches no machine itself.
    Hub(HubArgs),
    /// Print one page of one collector and exit.
    Collect(CollectArgs),
    /// Judge files as the program that reads them would.
    Check(CheckArgs),
    /// Ask a running hub, or any Prometheus, a PromQL question.
    Query(QueryArgs),
    /// Bring history that was gathered elsewhere into the store of a hub that does not run.
    Import(crate::command::import::ImportArgs),
    /// Write history of the store of a hub that does not run, for other programs.
    Export(crate::command::export::ExportArgs),
    /// Parse an expression and print it in its canonical form.
    Format(FormatArgs),
    /// Run test files.
    Test(TestArgs),
    /// Speak to the GPU driver for the process that started this one. Not for people.
    #[command(hide = true)]
    GpuHelper,
    /// Say of every alert whether it can fire, and if not, why.
    Rules(crate::command::prove::RulesArgs),
    /// Bring in a fault at a hub, and follow it to the receiver's receipt.
    Drill(crate::command::drill::DrillArgs),
    /// See alerts and silences of a running hub, silence, and test a receiver.
    Alert(crate::command::alert::AlertArgs),
}

/// Where to listen and keep data: the same for every process that stays.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The configuration file; everything in it is optional, and so is the file.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub listen: Option<SocketAddr>,
    /// Allow an address that other machines reach, without authentication.
    #[arg(long)]
    pub insecure: bool,
}

/// The address of a host name or a number; where a name has several, one that only this machine reaches.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let found: Vec<SocketAddr> = match text.to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(error) => return Err(format!("{error}; give a host and a port, as 127.0.0.1:9900")),
    };
    let loopback = found.iter().find(|address| address.ip().is_loopback());
    let address = loopback.or(found.first()).copied();
    address.ok_or_else(|| "the name has no address".to_owned())
}

/// Where the hub keeps its data and whom it tells.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// The folder for all data.
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Send alerts to this address, as Alertmanager's webhook does: the shortest way to be told.
    #[arg(long, value_name = "URL")]
    pub webhook: Option<String>,
    /// Read the targets from this prometheus.yml.
    #[arg(long, value_name = "FILE")]
    pub prometheus: Option<PathBuf>,
    /// Read routes and receivers from this alertmanager.yml.
    #[arg(long, value_name = "FILE")]
    pub alertmanager: Option<PathBuf>,
    /// Leave the shipped rules out.
    #[arg(long)]
    pub no_shipped_rules: bool,
    /// Do not scrape this process itself: for benchmarks that write an older time.
    #[arg(long, hide = true)]
    pub no_own_metrics: bool,
    /// Allow samples to be deleted and snapshots to be taken over HTTP.
    #[arg(long)]
    pub admin_api: bool,
    /// Compute every query anew, for benchmarks.
    #[arg(long)]
    pub no_result_cache: bool,
}

/// Where the machine's facts are read from: fakes and containers use the same code as a host.
#[derive(Debug, Clone, Args)]
pub struct PathArgs {
    /// The proc file system.
    #[arg(long = "path.procfs", value_name = "FOLDER", default_value = "/proc")]
    pub procfs: PathBuf,
    /// The sys file system.
    #[arg(long = "path.sysfs", value_name = "FOLDER", default_value = "/sys")]
    pub sysfs: PathBuf,
    /// The root of the watched machine's file systems.
    #[arg(long = "path.rootfs", value_name = "FOLDER", default_value = "/")]
    pub rootfs: PathBuf,
    /// The kernel's message device.
    #[arg(long = "path.kmsg", value_name = "FILE", default_value = "/dev/kmsg")]
    pub kmsg: PathBuf,
    /// The GPU driver's management library; searched for where not given.
    #[arg(long, value_name = "FILE")]
    pub nvml_library: Option<PathBuf>,
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Watch a simulated 8-GPU server as well, in which faults happen on a schedule.
    #[arg(long)]
    pub demo: bool,
    /// Where to listen.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// What to keep.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Where to read.
    #[command(flatten)]
    pub paths: PathArgs,
}

/// Flags of `agent`.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Where to listen.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// The folder for what is kept: which GPUs there are, and the last half hour of their samples.
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Where to read.
    #[command(flatten)]
    pub paths: PathArgs,
}

/// Flags of `hub`.
#[derive(Debug, Args)]
pub struct HubArgs {
    /// Where to listen.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// What to keep.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// What `collect` can print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// GPUs, as dcgm-exporter's page.
    Gpu,
    /// The host, as node_exporter's page.
    Node,
    /// Kernel lines in, one JSON object per recognised event out.
    Kernel,
}

/// Flags of `collect`.
#[derive(Debug, Args)]
pub struct CollectArgs {
    /// The collector.
    pub source: Source,
    /// Read a capture in place of the machine: kernel lines, or what nvidia-smi printed; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Which moment of a GPU capture that holds several (`idle`, `load`); the last by default.
    #[arg(long, value_name = "WORD", requires = "from")]
    pub moment: Option<String>,
    /// The configuration file: what it says of the GPU page (`gpu:`) counts here too.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the families as JSON; kernel events always are.
    #[arg(long)]
    pub json: bool,
    /// Where to read.
    #[command(flatten)]
    pub paths: PathArgs,
}

/// What `check` can judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckKind {
    /// Our own watchfire.yml.
    Config,
    /// prometheus.yml.
    Prometheus,
    /// alertmanager.yml.
    Alertmanager,
    /// Rule files.
    Rules,
    /// A page of metrics.
    Metrics,
}

/// Flags of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// What the files are.
    pub kind: CheckKind,
    /// The files; `-` is standard input.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Judge a page of metrics as OpenMetrics.
    #[arg(long)]
    pub openmetrics: bool,
    /// Print the verdicts as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Flags of `query`.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// The expression; `-` reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    pub expr: String,
    /// The hub or Prometheus to ask; `http://` may be left out.
    #[arg(long, value_name = "ADDRESS", default_value = "http://127.0.0.1:9900")]
    pub url: String,
    /// The moment of an instant query: seconds since the epoch or RFC 3339; now where not given.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub time: Option<String>,
    /// Ask for a range that ends now (or at `--time`) and is this long, as `1h`.
    #[arg(long, value_name = "DURATION")]
    pub range: Option<String>,
    /// The step of a range; a 250th of it where not given.
    #[arg(long, value_name = "DURATION", requires = "range")]
    pub step: Option<String>,
    /// Print comma-separated values.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Languages that `format` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Prometheus' query language.
    Promql,
}

/// Flags of `format`.
#[derive(Debug, Args)]
pub struct FormatArgs {
    /// The language.
    pub language: Language,
    /// The expression; `-` reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    pub expr: String,
    /// Wrap long expressions over several lines.
    #[arg(long)]
    pub pretty: bool,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What `test` can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestKind {
    /// Unit tests of rules, in promtool's format.
    Rules,
    /// Prometheus' query test scripts.
    Promql,
}

/// Flags of `test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// What the files are.
    pub kind: TestKind,
    /// The files; `-` is standard input.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Print the results as JSON.
    #[arg(long)]
    pub json: bool,
}
