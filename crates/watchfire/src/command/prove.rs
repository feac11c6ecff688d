//! `watchfire rules prove`: of every alert, whether it can fire here, and if not, why and what mends it.

mod backtest;
mod source;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use model::text::{caret, line_column};
use prove::{Facts, Finding, Reason, Verdict};
use serde_json::{Value, json};

use self::backtest::Firing;
use super::api::Api;
use super::{Outcome, output};

/// Flags of `rules`.
#[derive(Debug, Args)]
pub struct RulesArgs {
    /// What to do with rules.
    #[command(subcommand)]
    pub command: RulesCommand,
}

/// What can be done with rules.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// Judge whether every alert can fire.
    Prove(ProveArgs),
}

/// Flags of `rules prove`.
#[derive(Debug, Args)]
pub struct ProveArgs {
    /// Rule files; without any, the rules that the hub (or the Prometheus of --against) has loaded, and with --pages the shipped ones.
    pub files: Vec<PathBuf>,
    /// Judge against this Prometheus, or anything with its API; raw names.
    #[arg(long, value_name = "URL", conflicts_with = "pages")]
    pub against: Option<String>,
    /// Judge against saved pages of exporters: together they are everything there is.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub pages: Vec<PathBuf>,
    /// The hub whose data count where neither --against nor --pages is given.
    #[arg(long, value_name = "ADDRESS", default_value = "http://127.0.0.1:9900")]
    pub hub: String,
    /// How often targets are scraped; as their server says, else 15s.
    #[arg(long, value_name = "DURATION")]
    pub scrape_interval: Option<String>,
    /// Tell also when each alert would have fired in the time that lies behind, as `7d`.
    #[arg(long, value_name = "DURATION", conflicts_with = "pages")]
    pub backtest: Option<String>,
    /// Print the verdicts as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Does what was asked of rules.
pub fn rules(args: &RulesArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        RulesCommand::Prove(args) => prove(args),
    }
}

/// Judges and prints.
fn prove(args: &ProveArgs) -> anyhow::Result<Outcome> {
    let (files, pages) = sorted_out(args);
    let facts = Facts::shipped().context("the tables of exporters")?;
    let interval = args
        .scrape_interval
        .as_deref()
        .map(|text| model::time::parse_duration(text).with_context(|| format!("--scrape-interval {text}")))
        .transpose()?;
    let api = match (&args.against, pages.is_empty()) {
        (Some(url), _) => Some(Api::new(url, false)?),
        (None, true) => Some(Api::new(&args.hub, true)?),
        (None, false) => None,
    };
    let (rules, is_unread) = source::rules(&files, api.as_ref())?;
    let mut evidence = match &api {
        Some(api) => source::ask(api, &rules, &facts)?,
        None => source::read(&pages)?,
    };
    evidence.interval = interval.or(evidence.interval);
    let mut findings = prove::prove(&rules, &evidence, &facts);
    if let Some(api) = api.as_ref().filter(|api| api.is_hub) {
        source::add_drills(api, &mut findings);
    }
    let firings = match (&args.backtest, &api) {
        (Some(text), Some(api)) => {
            let back = model::time::parse_duration(text).with_context(|| format!("--backtest {text}"))?;
            Some(backtest::run(api, &rules, back)?)
        }
        _ => None,
    };
    if args.json {
        output::line(Value::Array(json_of(&findings, firings.as_ref())))?;
    } else {
        output::write(|out| print(out, &findings, firings.as_ref()))?;
    }
    if let Some(api) = &api {
        output::remark(api.note());
    }
    for remark in prove::remarks(&rules) {
        output::remark(format_args!("remark: {}; {}", remark.message, remark.mend));
    }
    let is_dead = findings.iter().any(|f| f.verdict == Verdict::CannotFire);
    Ok(if is_unread {
        Outcome::Unread
    } else {
        Outcome::from(!is_dead)
    })
}

/// Rule files that were typed behind `--pages` are rule files still.
fn sorted_out(args: &ProveArgs) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let is_rules = |path: &PathBuf| {
        path.extension()
            .is_some_and(|end| end == "yml" || end == "yaml" || end == "rules")
    };
    let (more, pages): (Vec<_>, Vec<_>) = args.pages.iter().cloned().partition(is_rules);
    (args.files.iter().cloned().chain(more).collect(), pages)
}

/// Firings of each alert, by file, group, name and expression.
type Firings = BTreeMap<(String, String, String, String), Vec<Firing>>;

fn key(finding: &Finding) -> (String, String, String, String) {
    (
        finding.file.clone(),
        finding.group.clone(),
        finding.alert.clone(),
        finding.expr.clone(),
    )
}

fn json_of(findings: &[Finding], firings: Option<&Firings>) -> Vec<Value> {
    let reason = |finding: &Finding, reason: &Reason| json!({"code": reason.code, "message": placed(finding, reason), "mend": reason.mend});
    findings
        .iter()
        .map(|finding| {
            let mut row = json!({
                "file": finding.file,
                "group": finding.group,
                "alert": finding.alert,
                "verdict": finding.verdict.as_str(),
                "reasons": finding.reasons.iter().map(|r| reason(finding, r)).collect::<Vec<_>>(),
            });
            if let Some(firings) = firings {
                let of_alert = firings.get(&key(finding)).map_or(&[][..], Vec::as_slice);
                row["backtest"] = of_alert.iter().map(Firing::json).collect();
            }
            row
        })
        .collect()
}

/// The message with its place in the expression.
fn placed(finding: &Finding, reason: &Reason) -> String {
    match reason.span {
        Some(span) => {
            let (line, column) = line_column(&finding.expr, span.start);
            format!("{} (at {line}:{column})", reason.message)
        }
        None => reason.message.clone(),
    }
}

fn print(out: &mut impl std::io::Write, findings: &[Finding], firings: Option<&Firings>) -> std::io::Result<()> {
    for finding in findings {
        writeln!(
            out,
            "{:<11}  {}  ({}, group {})",
            finding.verdict.words(),
            finding.alert,
            finding.file,
            finding.group
        )?;
        for (at, reason) in finding.reasons.iter().enumerate() {
            let is_first = at == 0;
            if let Some(span) = reason.span.filter(|_| is_first && finding.verdict != Verdict::CanFire) {
                writeln!(out, "{}", caret(&finding.expr, span))?;
            }
            writeln!(out, "    {}: {}", reason.code, placed(finding, reason))?;
            if !reason.mend.is_empty() {
                writeln!(out, "      mend: {}", reason.mend)?;
            }
        }
        if let Some(firings) = firings {
            let of_alert = firings.get(&key(finding)).map_or(&[][..], Vec::as_slice);
            if of_alert.is_empty() {
                writeln!(out, "    would not have fired")?;
            }
            for firing in of_alert {
                writeln!(out, "    would have fired {firing}")?;
            }
        }
    }
    let count = |verdict| findings.iter().filter(|f| f.verdict == verdict).count();
    writeln!(
        out,
        "{} alerts: {} proven, {} can fire, {} cannot fire, {} unknown",
        findings.len(),
        count(Verdict::Proven),
        count(Verdict::CanFire),
        count(Verdict::CannotFire),
        count(Verdict::Unknown)
    )
}
