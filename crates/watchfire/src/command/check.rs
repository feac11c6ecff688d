//! `watchfire check KIND FILE…`: accept or reject as the program that reads the file would.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::{Outcome, input, output};
use crate::cli::{CheckArgs, CheckKind};
use crate::failure::Hinted;
use crate::process::gpu_page;

/// What is to be said of one file.
#[derive(Debug, Default)]
struct Verdict {
    /// Why it is rejected; nothing where it is accepted.
    errors: Vec<String>,
    /// What is legal but deserves a look; never a reason to reject.
    remarks: Vec<String>,
    /// Whether the file could not even be read; `errors` tells why.
    is_unread: bool,
}

impl Verdict {
    fn rejected(error: impl std::fmt::Display) -> Self {
        Self {
            errors: vec![error.to_string()],
            ..Self::default()
        }
    }

    fn of<E: std::fmt::Display>(result: Result<(), E>) -> Self {
        result.map_or_else(Self::rejected, |()| Self::default())
    }
}

/// Judges every file and says so; a file that cannot be read keeps none of the others from being judged.
pub fn check(args: &CheckArgs) -> anyhow::Result<Outcome> {
    if args.openmetrics && args.kind != CheckKind::Metrics {
        bail!(Hinted {
            message: "--openmetrics says how a page of metrics is judged, and these files are none".into(),
            hint: "leave it out, or use `watchfire check metrics`".into(),
        });
    }
    let mut outcome = Outcome::Yes;
    let mut verdicts = Vec::new();
    for file in &args.files {
        let verdict = judge(args, file).unwrap_or_else(|error| {
            outcome = Outcome::Unread;
            Verdict {
                is_unread: true,
                ..Verdict::rejected(format_args!("{error:#}"))
            }
        });
        let is_fine = verdict.errors.is_empty();
        if !is_fine && outcome == Outcome::Yes {
            outcome = Outcome::No;
        }
        if args.json {
            verdicts.push(json!({
                "file": file.display().to_string(),
                "ok": is_fine,
                "errors": verdict.errors,
                "remarks": verdict.remarks,
            }));
        } else {
            print(file, &verdict)?;
        }
    }
    if args.json {
        output::line(serde_json::Value::Array(verdicts))?;
    }
    Ok(outcome)
}

fn print(file: &Path, verdict: &Verdict) -> anyhow::Result<()> {
    for error in &verdict.errors {
        output::remark(error);
    }
    for remark in &verdict.remarks {
        output::remark(format_args!("{}: remark: {remark}", file.display()));
    }
    let word = match verdict {
        Verdict { is_unread: true, .. } => "not read",
        Verdict { errors, .. } if errors.is_empty() => "ok",
        _ => "rejected",
    };
    output::line(format_args!("{}: {word}", file.display()))
}

fn judge(args: &CheckArgs, file: &Path) -> anyhow::Result<Verdict> {
    let bytes = input::bytes(file)?;
    let name = file.display().to_string();
    if args.kind == CheckKind::Metrics {
        return Ok(metrics(&name, &bytes, args.openmetrics));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            return Ok(Verdict::rejected(format!("{name}: not valid UTF-8 at byte {at}")));
        }
    };
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    Ok(match args.kind {
        CheckKind::Rules => rule_file(&name, &text),
        CheckKind::Prometheus => prometheus(&name, &text, &folder),
        CheckKind::Config => own_config(&name, &text, &folder),
        CheckKind::Alertmanager => alertmanager(&name, &text, &folder),
        CheckKind::Metrics => unreachable!("BUG: pages are judged as bytes above"),
    })
}

/// Our own file, and the counter list that it names.
fn own_config(name: &str, text: &str, folder: &Path) -> Verdict {
    let config = match config::watchfire::Config::parse(name, text, folder) {
        Ok(config) => config,
        Err(error) => return Verdict::of(Err::<(), _>(error)),
    };
    let list = config.gpu.counters_file.as_deref();
    if let Some(list) = list.filter(|list| !list.exists()) {
        return Verdict {
            remarks: vec![format!("gpu.counters_file: {} is not there", list.display())],
            ..Verdict::default()
        };
    }
    match gpu_page::selection(&config.gpu) {
        Ok(selection) => Verdict {
            remarks: selection.remarks,
            ..Verdict::default()
        },
        Err(error) => Verdict::rejected(format!("{error:#}")),
    }
}

fn metrics(name: &str, page: &[u8], openmetrics: bool) -> Verdict {
    match exposition::check_page(page, openmetrics) {
        Ok(remarks) => Verdict {
            remarks: remarks
                .remarks
                .iter()
                .map(|r| format!("{}: {}", r.metric, r.text))
                .collect(),
            ..Verdict::default()
        },
        Err(error) => Verdict::rejected(format!("{name}:{error}")),
    }
}

fn rule_file(name: &str, text: &str) -> Verdict {
    match rules::check_text(name, text) {
        Ok(groups) => Verdict {
            remarks: repeated_rules(&groups),
            ..Verdict::default()
        },
        Err(errors) => Verdict {
            errors: errors.iter().map(ToString::to_string).collect(),
            ..Verdict::default()
        },
    }
}

/// Rules of the same name and labels: the second one's series collide with the first one's.
fn repeated_rules(groups: &[rules::LoadedGroup]) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let all = groups.iter().flat_map(|g| &g.rules);
    all.filter(|rule| rule.kind == rules::RuleKind::Recording && !seen.insert((&rule.name, &rule.labels)))
        .map(|rule| format!("{:?} is recorded twice with the same labels", rule.name))
        .collect()
}

fn alertmanager(name: &str, text: &str, folder: &Path) -> Verdict {
    let config = match config::alertmanager::Config::parse(name, text) {
        Ok(config) => config.within(folder),
        Err(error) => return Verdict::rejected(error),
    };
    let mut verdict = Verdict::default();
    match alerts::receiver::build(&config, "") {
        Ok(_) => {}
        // `amtool` refuses a broken template file too; what is only not built here is a remark.
        Err(error @ alerts::Error::Template { .. }) => verdict.errors.push(chain(&error)),
        Err(error) => verdict.remarks.push(chain(&error)),
    }
    let ours = ["ntfy", "gotify"];
    let all = config.receivers.iter().flat_map(|r| &r.integrations);
    let mut kinds = all.map(config::alertmanager::Integration::kind);
    if let Some(kind) = kinds.find(|kind| ours.contains(kind)) {
        verdict
            .remarks
            .push(format!("{kind}_configs is Watchfire's own: Alertmanager refuses it"));
    }
    verdict
}

/// An error with its causes in one line.
fn chain(error: &alerts::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn prometheus(name: &str, text: &str, folder: &Path) -> Verdict {
    let config = match config::prometheus::Config::parse(name, text).and_then(|c| c.with_scrape_files(folder)) {
        Ok(config) => config,
        Err(error) => return Verdict::rejected(error),
    };
    let mut verdict = Verdict::default();
    for pattern in &config.rule_files {
        for path in crate::process::files_of(folder, pattern) {
            match std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display())) {
                Ok(text) => {
                    let file = rule_file(&path.display().to_string(), &text);
                    verdict.errors.extend(file.errors);
                    verdict.remarks.extend(file.remarks);
                }
                Err(error) => verdict.remarks.push(format!("{error:#}")),
            }
        }
    }
    verdict
}
