//! Which targets and which parts of them are down, as the series about it say.

use model::{Deadline, Labels, METRIC_NAME, Millis, QueryEngine, QueryError, Value};

/// The series whose 0 says that other series are missing: a whole target, or a part of one.
const HEALTH: [(&str, Scope); 4] = [
    ("up", Scope::Target),
    ("watchfire_collector_up", Scope::Part),
    ("node_scrape_collector_success", Scope::Part),
    ("watchfire_gpu_up", Scope::Part),
];

/// The labels by which what is down is the same thing as what a series tells of.
const IDENTITY: [&str; 6] = ["job", "instance", "gpu", "UUID", "pci_bus_id", "GPU_I_ID"];

/// The most origins that are looked at; a fleet of which more is down has no need of details.
const AILING_MAX: usize = 256;

/// How much is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everything of the target.
    Target,
    /// Some of its series; which ones only their absence says.
    Part,
}

/// Something that is down.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// How much is missing.
    pub scope: Scope,
    /// The labels of the series that says so, its name among them, without those that change while it is down.
    pub labels: Labels,
}

/// Whether a metric speaks of health itself.
#[must_use]
pub fn is_health(name: &str) -> bool {
    HEALTH.iter().any(|(known, _)| *known == name)
}

/// What is down at a moment.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// The origins, sorted by labels.
    pub ailing: Vec<Origin>,
}

impl Health {
    /// Asks what is down at `time`.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn read(engine: &dyn QueryEngine, time: Millis, deadline: &Deadline) -> Result<Self, QueryError> {
        let names: Vec<&str> = HEALTH.iter().map(|(name, _)| *name).collect();
        let expr = format!("{{{METRIC_NAME}=~\"{}\"}} == 0", names.join("|"));
        let mut ailing: Vec<Origin> = vector(engine.instant(&expr, time, deadline)?.value)
            .iter()
            .filter_map(|labels| Origin::new(labels.get(METRIC_NAME)?, labels))
            .collect();
        ailing.sort_unstable_by(|a, b| a.labels.cmp(&b.labels));
        ailing.dedup();
        ailing.truncate(AILING_MAX);
        Ok(Self { ailing })
    }

    /// Asks what was down at any moment of the last `window`.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn within(
        engine: &dyn QueryEngine,
        time: Millis,
        window: Millis,
        deadline: &Deadline,
    ) -> Result<Self, QueryError> {
        let mut ailing = Vec::new();
        let window = model::time::DurationText(window.max(1));
        for (name, _) in HEALTH {
            let expr = format!("min_over_time({name}[{window}]) == 0");
            let found = vector(engine.instant(&expr, time, deadline)?.value);
            ailing.extend(found.iter().filter_map(|labels| Origin::new(name, labels)));
        }
        ailing.truncate(AILING_MAX);
        Ok(Self { ailing })
    }

    /// Whether this very thing is down.
    #[must_use]
    pub fn has(&self, origin: &Origin) -> bool {
        self.ailing.contains(origin)
    }
}

impl Origin {
    fn new(name: &str, labels: &Labels) -> Option<Self> {
        let (name, scope) = HEALTH.iter().find(|(known, _)| *known == name)?;
        let kept = labels.iter().filter(|(n, _)| IDENTITY.contains(n) || *n == "collector");
        let labels = Labels::from_pairs(kept.chain([(METRIC_NAME, *name)]));
        // Without an instance nothing can be said to come from it.
        labels.get("instance")?;
        Some(Self { scope: *scope, labels })
    }

    /// The instance it belongs to.
    #[must_use]
    pub fn instance(&self) -> &str {
        self.labels.get("instance").unwrap_or("")
    }

    /// Whether a series with these labels may come from it: no identifying label says otherwise.
    #[must_use]
    pub fn may_feed(&self, series: &Labels) -> bool {
        IDENTITY
            .iter()
            .all(|name| match (self.labels.get(name), series.get(name)) {
                (Some(own), Some(theirs)) => own == theirs,
                _ => true,
            })
    }

    /// The series that says whether it is down.
    #[must_use]
    pub fn selector(&self) -> String {
        let name = self.labels.get(METRIC_NAME).unwrap_or("");
        let pairs = self.labels.iter().filter(|(n, _)| *n != METRIC_NAME);
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={}", model::text::quote(value)))
            .collect();
        format!("{name}{{{}}}", pairs.join(","))
    }

    /// What is down, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let of = |name: &str| self.labels.get(name).unwrap_or("");
        let place = format!("{} of {}", of("job"), of("instance"));
        match (of("collector"), of("gpu"), self.scope) {
            ("", "", Scope::Target) => format!("target {place} is down"),
            ("", "", Scope::Part) => format!("a part of {place} is down"),
            ("", gpu, _) => format!("GPU {gpu} of {} does not answer", of("instance")),
            (collector, ..) => format!("collector {collector} of {place} is down"),
        }
    }
}

/// The label sets of a vector; nothing of any other value.
pub(super) fn vector(value: Value) -> Vec<Labels> {
    match value {
        Value::Vector(samples) => samples.into_iter().map(|(labels, _)| labels).collect(),
        _ => Vec::new(),
    }
}
