//! Counters of events the moment they change, for whoever cannot wait for the next page.
//!
//! A listener is rung when something was counted ([`Kernel::on_count`]) and then asks what changed since it last asked
//! ([`Kernel::changes`]). Invariant: a listener hears of every count, once; a series it never heard of begins at zero.

use std::collections::HashMap;
use std::sync::Arc;

use model::{Labels, Millis};

use super::Kernel;
use crate::page::Page;

/// Called with the moment of an event when it was counted.
pub type Bell = Arc<dyn Fn(Millis) + Send + Sync>;

/// A counter that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The page it stands on.
    pub page: Page,
    /// The series, its name among the labels.
    pub labels: Labels,
    /// Whether the listener never heard of it: it then begins at zero.
    pub is_new: bool,
    /// Its count now.
    pub to: f64,
}

/// What a listener has heard.
#[derive(Debug, Default)]
pub struct Heard(HashMap<Labels, f64>);

impl Kernel {
    /// Has `bell` rung at every event that a counter takes in, whichever source tells of it; it must not block.
    pub fn on_count(&self, bell: Bell) {
        self.xids.set_bell(bell);
    }

    /// The event counters that changed since this listener last asked. The pages need not begin a counter at zero once
    /// somebody listens who stores them: `stored` says so.
    pub fn changes(&self, heard: &mut Heard, stored: bool) -> Vec<Change> {
        let node = self.families(super::Look::Now { shown: stored });
        let gpu = self.xids.family_now(stored);
        let pages = [
            (Page::Node, node),
            (Page::Gpu, vec![gpu, self.sxids(super::Look::Now { shown: stored })]),
        ];
        let mut out = Vec::new();
        for (page, families) in pages {
            for family in &families {
                for metric in &family.metrics {
                    let labels = metric.series(&family.name);
                    let before = heard.0.insert(labels.clone(), metric.value);
                    let is_new = before.is_none();
                    if before != Some(metric.value) && !(is_new && metric.value == 0.0) {
                        out.push(Change {
                            page,
                            labels,
                            is_new,
                            to: metric.value,
                        });
                    }
                }
            }
        }
        out
    }
}
