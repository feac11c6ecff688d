//! `watchfire alert …`: alerts and silences of a running hub, or of any Alertmanager as far as it knows them.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use config::alertmanager::matchers::{parse_list, parse_one};
use model::{Clock as _, MatchOp, Matcher, Millis, SystemClock};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Outcome, output};
use crate::failure::Hinted;

mod show;

/// How long to wait for an answer: a test waits for receivers.
const TIMEOUT: Duration = Duration::from_secs(150);

/// Flags of `alert`.
#[derive(Debug, Args)]
pub struct AlertArgs {
    /// The hub, or an Alertmanager; `http://` may be left out.
    #[arg(long, global = true, value_name = "ADDRESS", default_value = "http://127.0.0.1:9900")]
    url: String,
    /// Print the answer as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the alerts that are not over.
    List {
        /// Only those that match, as `severity=critical` or `gpu=~"[0-3]"`.
        #[arg(value_name = "MATCHER")]
        matchers: Vec<String>,
        /// Leave out what is silenced or inhibited.
        #[arg(long)]
        active: bool,
    },
    /// List silences.
    Silences {
        /// Those that are over too.
        #[arg(long)]
        expired: bool,
    },
    /// Silence alerts that match, once or at times that come again.
    Silence(SilenceArgs),
    /// End silences now.
    Expire {
        /// Their names.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Send a test to every way of a receiver and say how it went.
    Test {
        /// The receiver's name in the configuration.
        receiver: String,
    },
    /// List the last deliveries: what was told, where, and how it went.
    Deliveries {
        /// Only those to this receiver.
        #[arg(long, value_name = "NAME")]
        receiver: Option<String>,
        /// Only those that are `sent`, `retrying` or `failed`.
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// List receivers with how they are.
    Receivers,
}

#[derive(Debug, Args)]
struct SilenceArgs {
    /// What an alert must match; all of them.
    #[arg(required = true, value_name = "MATCHER")]
    matchers: Vec<String>,
    /// How long, as `2h`.
    #[arg(long = "for", value_name = "DURATION", default_value = "1h")]
    duration: String,
    /// In how long it begins; at once where not given.
    #[arg(long = "in", value_name = "DURATION")]
    begin: Option<String>,
    /// Why; people will want to know.
    #[arg(long, short)]
    comment: String,
    /// Who; the user's name where not given.
    #[arg(long)]
    author: Option<String>,
    /// It comes again on these days: `monday:friday`, `saturday`.
    #[arg(long, value_name = "DAYS", value_delimiter = ',')]
    weekdays: Vec<String>,
    /// It comes again from this time of the day on, as `22:00`.
    #[arg(long, value_name = "HH:MM", requires = "to")]
    from: Option<String>,
    /// Until this time of the day; one before `--from` is that of the next day.
    #[arg(long, value_name = "HH:MM", requires = "from")]
    to: Option<String>,
    /// The time zone of days and times, as `Europe/Berlin`; UTC where not given.
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
}

/// Does what was asked.
pub fn alert(args: &AlertArgs) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(run(args))
}

async fn run(args: &AlertArgs) -> anyhow::Result<Outcome> {
    let hub = Hub::new(&args.url)?;
    let answer = match &args.what {
        What::List { matchers, active } => {
            let mut query: Vec<(&str, String)> = Vec::new();
            for matcher in all_matchers(matchers)? {
                query.push(("filter", config::alertmanager::matchers::show_one(&matcher)));
            }
            if *active {
                query.extend([("silenced", "false".to_owned()), ("inhibited", "false".to_owned())]);
            }
            hub.get("api/v2/alerts", &query).await?
        }
        What::Silences { expired } => {
            let query = [("expired", expired.to_string())];
            hub.get("api/v2/silences", &query).await?
        }
        What::Silence(silence) => hub.post("api/v2/silences", &body(silence, SystemClock.now())?).await?,
        What::Expire { ids } => return expire(&hub, ids, args.json).await,
        What::Test { receiver } => {
            let name: String = reqwest::Url::parse("http://x/")
                .map(|mut url| {
                    if let Ok(mut path) = url.path_segments_mut() {
                        path.clear().push(receiver);
                    }
                    url.path().trim_start_matches('/').to_owned()
                })
                .unwrap_or_default();
            hub.post(&format!("api/watchfire/v1/receivers/{name}/test"), &Value::Null)
                .await?
        }
        What::Deliveries {
            receiver,
            status,
            limit,
        } => {
            let mut query = vec![("limit", limit.to_string())];
            query.extend(receiver.iter().map(|name| ("receiver", name.clone())));
            query.extend(status.iter().map(|word| ("status", word.clone())));
            hub.get("api/watchfire/v1/deliveries", &query).await?
        }
        What::Receivers => hub.get("api/watchfire/v1/receivers", &[]).await?,
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(refusal) => {
            output::remark(refusal);
            return Ok(Outcome::No);
        }
    };
    if args.json {
        output::line(&answer)?;
    } else {
        output::write(|out| match &args.what {
            What::List { .. } => show::alerts(out, &answer),
            What::Silences { .. } => show::silences(out, &answer),
            What::Silence(_) | What::Expire { .. } => show::made(out, &answer),
            What::Test { .. } | What::Deliveries { .. } => show::deliveries(out, &answer["deliveries"]),
            What::Receivers => show::receivers(out, &answer["receivers"]),
        })?;
    }
    // A receiver that fails, and a test that was not received, are a "no".
    let is_fine = match &args.what {
        What::Test { .. } => answer["ok"] == true,
        What::Receivers => answer["receivers"]
            .as_array()
            .is_none_or(|all| all.iter().all(|r| r["failing"] != true)),
        _ => true,
    };
    Ok(Outcome::from(is_fine))
}

async fn expire(hub: &Hub, ids: &[String], as_json: bool) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::Yes;
    let mut ended = Vec::new();
    for id in ids {
        match hub
            .ask(Method::DELETE, &format!("api/v2/silence/{id}"), &[], None)
            .await?
        {
            Ok(_) => ended.push(id),
            Err(refusal) => {
                output::remark(format_args!("{id}: {refusal}"));
                outcome = Outcome::No;
            }
        }
    }
    if as_json {
        output::line(json!({"expired": ended}))?;
    } else {
        for id in ended {
            output::line(format_args!("{id} ended"))?;
        }
    }
    Ok(outcome)
}

/// Matchers as typed; a bare word is the name of an alert, as `amtool` has it.
fn all_matchers(texts: &[String]) -> anyhow::Result<Vec<Matcher>> {
    let mut all = Vec::new();
    for text in texts {
        let is_name = !text.contains(['=', '~', '{']);
        let read = if is_name {
            Ok(vec![Matcher::equal("alertname".to_owned(), text.clone())])
        } else {
            parse_one(text).map(|one| vec![one]).or_else(|_| parse_list(text))
        };
        all.extend(read.map_err(|why| anyhow::anyhow!("matcher {text:?}: {why}"))?);
    }
    Ok(all)
}

/// The silence asked for, as the API takes it.
fn body(args: &SilenceArgs, now: Millis) -> anyhow::Result<Value> {
    let span = |text: &str| model::time::parse_duration(text).with_context(|| format!("duration {text:?}"));
    let starts_at = now.saturating_add(args.begin.as_deref().map_or(Ok(0), span)?);
    let ends_at = starts_at.saturating_add(span(&args.duration)?);
    let matchers: Vec<Value> = all_matchers(&args.matchers)?
        .iter()
        .map(|m| {
            json!({
                "name": m.name,
                "value": m.value,
                "isRegex": matches!(m.op, MatchOp::Regex | MatchOp::NotRegex),
                "isEqual": matches!(m.op, MatchOp::Equal | MatchOp::Regex),
            })
        })
        .collect();
    let author = args.author.clone().or_else(|| std::env::var("USER").ok());
    let mut body = json!({
        "matchers": matchers,
        "startsAt": moment(starts_at),
        "endsAt": moment(ends_at),
        "createdBy": author.unwrap_or_else(|| "watchfire".to_owned()),
        "comment": args.comment,
    });
    if let Some(times) = times(args)? {
        body["timeIntervals"] = times;
    }
    Ok(body)
}

fn moment(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at).unwrap_or_default().to_string()
}

/// The times at which it comes again; `None` for a silence without.
fn times(args: &SilenceArgs) -> anyhow::Result<Option<Value>> {
    if args.weekdays.is_empty() && args.from.is_none() {
        if args.zone.is_some() {
            bail!(Hinted {
                message: "--zone says where days and times are, and none are given".into(),
                hint: "give --weekdays, or --from and --to".into(),
            });
        }
        return Ok(None);
    }
    let mut interval = json!({});
    if !args.weekdays.is_empty() {
        interval["weekdays"] = json!(args.weekdays);
    }
    if let (Some(from), Some(to)) = (&args.from, &args.to) {
        let part = |from: &str, to: &str| json!({"start_time": from, "end_time": to});
        interval["times"] = if from < to {
            json!([part(from, to)])
        } else {
            json!([part("00:00", to), part(from, "24:00")])
        };
    }
    if let Some(zone) = &args.zone {
        interval["location"] = json!(zone);
    }
    Ok(Some(json!([interval])))
}

/// Whom to ask.
struct Hub {
    client: reqwest::Client,
    base: String,
}

/// An answer, or why there is none in the words of the other side.
type Answer = anyhow::Result<Result<Value, String>>;

impl Hub {
    fn new(url: &str) -> anyhow::Result<Self> {
        crate::process::install_tls_provider();
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .build()
            .context("cannot make an HTTP client")?;
        let scheme = if url.contains("://") { "" } else { "http://" };
        let base = format!("{scheme}{}", url.trim_end_matches('/'));
        Ok(Self { client, base })
    }

    async fn get(&self, path: &str, query: &[(&str, String)]) -> Answer {
        self.ask(Method::GET, path, query, None).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::POST, path, &[], Some(body)).await
    }

    async fn ask(&self, method: Method, path: &str, query: &[(&str, String)], body: Option<&Value>) -> Answer {
        let address = format!("{}/{path}", self.base);
        let mut url = reqwest::Url::parse(&address).with_context(|| format!("{address} is no address"))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.client.request(method, url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| {
            anyhow::Error::new(error.without_url()).context(Hinted {
                message: format!("cannot ask {}", self.base),
                hint: "is the hub running, and is --url its address?".into(),
            })
        })?;
        let status = response.status();
        let text = response
            .text()
            .await
            .with_context(|| format!("cannot read the answer of {address}"))?;
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(Ok(value));
        }
        let told = value.as_str().or(value["error"].as_str()).unwrap_or(text.trim());
        Ok(Err(format!("{status}: {told}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(more: &[&str]) -> SilenceArgs {
        #[derive(Debug, clap::Parser)]
        struct Whole {
            #[command(flatten)]
            args: SilenceArgs,
        }
        let words = ["x", "GpuHot", "gpu=~\"[01]\"", "--comment", "why", "--author", "me"];
        let whole: Whole = clap::Parser::try_parse_from(words.iter().chain(more)).expect("flags");
        whole.args
    }

    #[test]
    fn a_silence_is_what_was_typed() {
        let body = body(&args(&["--for", "2h", "--in", "1m"]), 0).expect("a silence");
        assert_eq!(
            body,
            json!({
                "matchers": [
                    {"name": "alertname", "value": "GpuHot", "isRegex": false, "isEqual": true},
                    {"name": "gpu", "value": "[01]", "isRegex": true, "isEqual": true},
                ],
                "startsAt": "1970-01-01T00:01:00Z",
                "endsAt": "1970-01-01T02:01:00Z",
                "createdBy": "me",
                "comment": "why",
            })
        );
    }

    #[test]
    fn times_that_come_again_may_pass_midnight() {
        let flags = [
            "--weekdays",
            "monday:friday,sunday",
            "--from",
            "22:00",
            "--to",
            "06:00",
            "--zone",
            "Europe/Berlin",
        ];
        let body = body(&args(&flags), 0).expect("a silence");
        let times = body["timeIntervals"].clone();
        assert_eq!(
            times,
            json!([{
                "weekdays": ["monday:friday", "sunday"],
                "times": [{"start_time": "00:00", "end_time": "06:00"}, {"start_time": "22:00", "end_time": "24:00"}],
                "location": "Europe/Berlin",
            }])
        );
        alerts::Recurrence::read(&times.to_string()).expect("the hub reads them");
        assert!(super::body(&args(&["--zone", "UTC"]), 0).is_err());
    }
}
