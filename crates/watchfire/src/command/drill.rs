//! `watchfire drill`: has the hub bring in a fault, and tells how far it came on its way to a person.
//!
//! The drill runs in the hub. This command looks at it until it is over; interrupted, it ends the drill, and where it cannot even do
//! that, the hub notices that nobody looks any longer.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::api::Api;
use super::{Outcome, output};

/// How often to look.
const GLANCE: Duration = Duration::from_millis(300);

/// Flags of `drill`.
#[derive(Debug, Args)]
pub struct DrillArgs {
    /// The alerts to drill, by name.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub alerts: Vec<String>,
    /// Drill every alert that is loaded and has a scenario.
    #[arg(long)]
    pub all: bool,
    /// The hub that runs the drill.
    #[arg(long, value_name = "ADDRESS", default_value = "http://127.0.0.1:9900")]
    pub hub: String,
    /// Wait this long for a person to press the button behind the message's link.
    #[arg(long, value_name = "DURATION")]
    pub acknowledge: Option<String>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Waits, and hears when this process is asked to end.
struct Ears {
    interrupt: Signal,
    terminate: Signal,
}

impl Ears {
    /// Waits; whether this process was asked to end meanwhile.
    async fn pause(&mut self) -> bool {
        tokio::select! {
            () = tokio::time::sleep(GLANCE) => false,
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => true,
        }
    }
}

/// Runs a drill to its end.
pub fn drill(args: &DrillArgs) -> anyhow::Result<Outcome> {
    let seconds = match &args.acknowledge {
        Some(text) => model::time::parse_duration(text).with_context(|| format!("--acknowledge {text}"))? / 1000,
        None => 0,
    };
    let api = Api::new(&args.hub, true)?;
    let mut ears = api.within(async {
        Ok::<_, std::io::Error>(Ears {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    })?;
    let asked = json!({"alerts": args.alerts, "acknowledge_seconds": seconds});
    let begun = api.send(reqwest::Method::POST, "/api/watchfire/v1/drill", Some(&asked));
    let mut state = match begun {
        Ok(mut answer) => answer["data"].take(),
        // What was asked cannot be drilled, which is an answer.
        Err(error) if error.to_string().contains("400 Bad Request") => {
            output::remark(format_args!("{error:#}"));
            return Ok(Outcome::No);
        }
        Err(error) => return Err(error),
    };
    let id = state["id"].as_str().context("the hub's answer has no id")?.to_owned();
    let path = format!("/api/watchfire/v1/drill/{id}");
    let mut is_stopped = false;
    let mut told = 0;
    loop {
        if !args.json {
            told = tell(&state, told)?;
        }
        if state["state"] != "running" {
            break;
        }
        if api.within(ears.pause()) {
            if is_stopped {
                break;
            }
            is_stopped = true;
            output::remark("the drill is being ended and cleaned up; once more to leave at once");
            api.send(reqwest::Method::DELETE, &path, None)?;
        }
        state = api.send(reqwest::Method::GET, &path, None)?["data"].take();
    }
    if args.json {
        output::line(&state)?;
    } else {
        let alerts = state["alerts"].as_array().map_or(&[][..], Vec::as_slice);
        let passed = alerts.iter().filter(|alert| alert["state"] == "passed").count();
        output::line(format_args!("{passed} of {} drills received", alerts.len()))?;
    }
    Ok(Outcome::from(state["state"] == "passed"))
}

/// Prints the alerts that are done, from the one numbered `from` on; how many are told now.
fn tell(state: &Value, from: usize) -> anyhow::Result<usize> {
    let alerts = state["alerts"].as_array().map_or(&[][..], Vec::as_slice);
    let is_over = state["state"] != "running";
    let mut told = from;
    for alert in &alerts[from.min(alerts.len())..] {
        let word = alert["state"].as_str().unwrap_or("");
        if !is_over && !matches!(word, "passed" | "failed") {
            break;
        }
        told += 1;
        output::write(|out| print(out, alert))?;
    }
    Ok(told)
}

fn print(out: &mut impl std::io::Write, alert: &Value) -> std::io::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    writeln!(out, "{:<8} {}", text(&alert["state"]), text(&alert["alert"]))?;
    for stage in alert["stages"].as_array().into_iter().flatten() {
        let mark = if stage["ok"] == true { "ok" } else { "FAIL" };
        let seconds = stage["seconds"].as_f64().unwrap_or(0.0);
        writeln!(
            out,
            "  {mark:<4} {:<12} {seconds:>7.3} s  {}",
            text(&stage["stage"]),
            text(&stage["detail"])
        )?;
    }
    Ok(())
}
