//! Why a metric is not there.

use model::text::Span;

use super::Judge;
use crate::evidence::Origin;
use crate::facts::Maker;
use crate::verdict::Reason;

impl Judge<'_> {
    /// The likeliest reason that nobody shows a metric of this name, and the mend.
    pub(super) fn why_absent(&self, name: &str, span: Span) -> Reason {
        let place = match self.evidence.origin() {
            Origin::Pages => "on no page",
            Origin::Store | Origin::Hub => "in no series of this store",
        };
        let told = |code, why: &str, mend: &str| Reason::at(span, code, format!("`{name}` is {place}: {why}"), mend);
        if let Some((code, why, mend)) = self.renamed(name) {
            return told(code, &why, &mend);
        }
        if let Some(meant) = self.facts.meant(name) {
            let mend = format!("use `{meant}`");
            return told("metric_misnamed", "no exporter has a metric of this name", &mend);
        }
        let maker = self.facts.maker(name);
        if let Some(state) = maker.and_then(|maker| self.state_of(maker)) {
            let why = format!("the collector that makes it is {state}");
            return told(
                "collector_not_well",
                &why,
                "`watchfire doctor` and the agent's log name the cause",
            );
        }
        if let Some(fact) = self.facts.metric(name)
            && let Some(absent) = &fact.absent
        {
            let mend = fact
                .mend
                .as_deref()
                .unwrap_or("switch it on in the exporter, or use another metric");
            return told("metric_not_exported", absent, mend);
        }
        if let Some(near) = self.evidence.nearest(name) {
            return told(
                "metric_absent",
                "no target shows it",
                &format!("did you mean `{near}`?"),
            );
        }
        let Some(maker) = maker else {
            return told(
                "metric_absent",
                "no target shows it",
                "scrape the exporter that has it, or correct the name",
            );
        };
        if let Some(absent) = maker.absent {
            return told(
                "metric_not_exported",
                absent,
                maker.mend.unwrap_or("switch it on in the exporter"),
            );
        }
        let others = self
            .evidence
            .names()
            .any(|other| self.facts.maker(other).is_some_and(|m| m.exporter == maker.exporter));
        if others {
            let why = format!("{} is here and does not show it", maker.exporter);
            return told(
                "metric_absent",
                &why,
                "check the exporter's version and what it is told to collect",
            );
        }
        let why = format!("it is a metric of {}, and no such exporter is scraped", maker.exporter);
        told("exporter_absent", &why, &format!("scrape {}", maker.exporter))
    }

    /// The name that a metric has here.
    pub(super) fn renamed(&self, name: &str) -> Option<(&'static str, String, String)> {
        let has = |name: &str| self.evidence.has_now(name);
        let renames = self.facts.metric(name).map_or(&[][..], |fact| fact.renamed.as_slice());
        if let Some(rename) = renames.iter().find(|r| has(&r.to)) {
            let unit = if rename.change.is_empty() {
                String::new()
            } else {
                format!("; {}", rename.change)
            };
            let why = format!("it is called `{}` since {}", rename.to, rename.since);
            return Some(("metric_renamed", why, format!("use `{}`{unit}", rename.to)));
        }
        let former = self
            .facts
            .former(name)
            .filter(|(former, _)| has(former))
            .min_by(|a, b| a.0.cmp(b.0));
        if let Some((former, rename)) = former {
            let unit = if rename.change.is_empty() {
                String::new()
            } else {
                format!("; its unit is another one: the new name counts in {}", rename.change)
            };
            let why = format!("this name is known since {} only; here it is `{former}`", rename.since);
            return Some(("metric_renamed", why, format!("use `{former}`{unit}")));
        }
        None
    }

    /// The state of our own collector of these metrics, if it is not well.
    fn state_of(&self, maker: Maker<'_>) -> Option<&str> {
        let collector = maker.collector?;
        let sick = self.evidence.collectors.iter().find(|(name, _)| name == collector)?;
        Some(&sick.1)
    }
}
