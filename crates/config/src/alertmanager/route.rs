//! The routing tree, every child knowing what it inherits.

use std::collections::{BTreeMap, HashSet};

use model::{Matcher, Millis};

use super::matchers::{self, Mode};
use super::{Receiver, TimeInterval};
use crate::relabel::NameScheme;
use crate::yaml::{Duration, Fault, Fields, Node, Result};

/// A node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Who is told, by name.
    pub receiver: String,
    /// Which labels make a group.
    pub group_by: GroupBy,
    /// How long a new group waits for company, in milliseconds.
    pub group_wait: Millis,
    /// How long until a changed group is told again, in milliseconds; not 0.
    pub group_interval: Millis,
    /// How long until an unchanged group is told again, in milliseconds; not 0.
    pub repeat_interval: Millis,
    /// What an alert must match to come here, sorted; all of them.
    pub matchers: Vec<Matcher>,
    /// Whether siblings after this one are tried too.
    pub continues: bool,
    /// Times of silence, by name. Not inherited.
    pub mute_time_intervals: Vec<String>,
    /// Times of speech, by name; empty for always. Not inherited.
    pub active_time_intervals: Vec<String>,
    /// Labels of the route itself.
    pub labels: BTreeMap<String, String>,
    /// Children, in order.
    pub routes: Vec<Route>,
}

/// Which labels make a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupBy {
    /// Every label (`...`).
    All,
    /// These, in the order written.
    Labels(Vec<String>),
}

const GROUP_WAIT: Millis = 30_000;
const GROUP_INTERVAL: Millis = 300_000;
const REPEAT_INTERVAL: Millis = 4 * 3_600_000;

impl Default for Route {
    /// What Alertmanager takes where nothing is told; the receiver is empty.
    fn default() -> Self {
        Self {
            receiver: String::new(),
            group_by: GroupBy::Labels(Vec::new()),
            group_wait: GROUP_WAIT,
            group_interval: GROUP_INTERVAL,
            repeat_interval: REPEAT_INTERVAL,
            matchers: Vec::new(),
            continues: false,
            mute_time_intervals: Vec::new(),
            active_time_intervals: Vec::new(),
            labels: BTreeMap::new(),
            routes: Vec::new(),
        }
    }
}

impl Route {
    /// Reads a whole tree, in the default mode of matchers, without asking what only a root must not have.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read_root(node: &Node) -> Result<Self> {
        Self::read_in(node, Mode::default())
    }

    /// The same in another mode of matchers.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read_in(node: &Node, mode: Mode) -> Result<Self> {
        Self::read(node, &Self::default(), mode)
    }

    fn read(node: &Node, parent: &Self, mode: Mode) -> Result<Self> {
        let mut fields = node.fields()?;
        let receiver: String = fields.or_empty("receiver")?;
        let mut route = Self {
            receiver: if receiver.is_empty() {
                parent.receiver.clone()
            } else {
                receiver
            },
            group_by: group_by(&mut fields, mode)?.unwrap_or_else(|| parent.group_by.clone()),
            group_wait: span(&mut fields, "group_wait")?.unwrap_or(parent.group_wait),
            group_interval: positive(&mut fields, "group_interval")?.unwrap_or(parent.group_interval),
            repeat_interval: positive(&mut fields, "repeat_interval")?.unwrap_or(parent.repeat_interval),
            matchers: matchers::take(&mut fields, ["match", "match_re", "matchers"], mode)?,
            continues: fields.or_empty("continue")?,
            mute_time_intervals: fields.or_empty("mute_time_intervals")?,
            active_time_intervals: fields.or_empty("active_time_intervals")?,
            labels: labels(&mut fields)?,
            routes: Vec::new(),
        };
        let children = fields.list_of("routes")?;
        fields.finish()?;
        route.routes = children
            .iter()
            .map(|child| Self::read(child, &route, mode))
            .collect::<Result<_>>()?;
        Ok(route)
    }
}

fn span(fields: &mut Fields<'_>, key: &'static str) -> Result<Option<Millis>> {
    let span = fields.part(key).map(Node::read).transpose()?;
    Ok(span.map(|Duration(millis)| millis))
}

fn positive(fields: &mut Fields<'_>, key: &'static str) -> Result<Option<Millis>> {
    let span = span(fields, key)?;
    if span == Some(0) {
        return Err(fields.fault_at(key, format!("{key} cannot be zero")));
    }
    Ok(span)
}

/// Takes `group_by`; `None` to inherit.
fn group_by(fields: &mut Fields<'_>, mode: Mode) -> Result<Option<GroupBy>> {
    let Some(node) = fields.part("group_by") else {
        return Ok(None);
    };
    let mut all = false;
    let mut names: Vec<String> = Vec::new();
    for place in node.list()? {
        let name: String = place.read()?;
        if name == "..." {
            all = true;
        } else if !mode.label_name(&name) {
            return Err(place.fault(format!("invalid label name {name:?} in group_by list")));
        } else if names.contains(&name) {
            return Err(place.fault(format!("duplicated label {name:?} in group_by")));
        } else {
            names.push(name);
        }
    }
    match (all, names.is_empty()) {
        (true, false) => Err(node.fault("cannot have wildcard group_by (`...`) and other labels at the same time")),
        (true, true) => Ok(Some(GroupBy::All)),
        (false, _) => Ok(Some(GroupBy::Labels(names))),
    }
}

fn labels(fields: &mut Fields<'_>) -> Result<BTreeMap<String, String>> {
    let pairs = fields.node_of("labels").map_or(Ok(&[][..]), Node::map)?;
    let mut out = BTreeMap::new();
    for (name, value) in pairs {
        if name.binary || !NameScheme::Utf8.label_name(&name.text) {
            return Err(Fault::new(
                name.at,
                format!("invalid label name {:?} in route labels", name.text),
            ));
        }
        out.insert(name.text.clone(), value.read()?);
    }
    Ok(out)
}

/// Refuses receivers and times that nobody defined, at the place that names them.
pub(super) fn check_names(node: &Node, receivers: &[Receiver], intervals: &[TimeInterval]) -> Result<()> {
    let receivers: HashSet<&str> = receivers.iter().map(|r| r.name.as_str()).collect();
    let intervals: HashSet<&str> = intervals.iter().map(|i| i.name.as_str()).collect();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let mut fields = node.fields()?;
        open.extend(fields.list_of("routes")?);
        let receiver: String = fields.or_empty("receiver")?;
        if !receiver.is_empty() && !receivers.contains(receiver.as_str()) {
            let message = format!("undefined receiver {receiver:?} used in route");
            return Err(fields.fault_at("receiver", message));
        }
        for key in ["active_time_intervals", "mute_time_intervals"] {
            for place in fields.list_of(key)? {
                let name: String = place.read()?;
                if !intervals.contains(name.as_str()) {
                    return Err(place.fault(format!("undefined time interval {name:?} used in route")));
                }
            }
        }
    }
    Ok(())
}
