//! Which routes an alert takes. The tree is laid flat once; a route is then a number.

use config::alertmanager::{GroupBy, Route, matchers};
use model::labels::Labels;

use crate::alert::DRILL;

/// The tree laid flat, parents before children.
#[derive(Debug)]
pub struct Routes {
    nodes: Vec<Node>,
}

/// One route with its place in the tree.
#[derive(Debug)]
pub struct Node {
    /// The route; its own children are not used.
    pub route: Route,
    /// The matchers on the way here, as they stand in group keys: `{}/{a="b"}`.
    pub key: String,
    children: Vec<usize>,
}

impl Routes {
    /// Lays a tree flat.
    #[must_use]
    pub fn new(root: &Route) -> Self {
        let mut routes = Self { nodes: Vec::new() };
        routes.add(root, &matchers::show(&root.matchers));
        routes
    }

    fn add(&mut self, route: &Route, key: &str) -> usize {
        let at = self.nodes.len();
        let own = Route {
            routes: Vec::new(),
            ..route.clone()
        };
        self.nodes.push(Node {
            route: own,
            key: key.to_owned(),
            children: Vec::new(),
        });
        for child in &route.routes {
            let child_key = format!("{key}/{}", matchers::show(&child.matchers));
            let child_at = self.add(child, &child_key);
            self.nodes[at].children.push(child_at);
        }
        at
    }

    /// The route of a number.
    ///
    /// # Panics
    ///
    /// When the number did not come from [`Routes::matching`] of this tree.
    #[must_use]
    pub fn get(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// Adds a route that no alert takes by itself; for those that the tree leads nowhere useful.
    pub fn add_apart(&mut self, route: &Route) -> usize {
        let key = matchers::show(&route.matchers);
        self.add(route, &key)
    }

    /// The routes a label set takes, in order; at least one when the root matches everything.
    #[must_use]
    pub fn matching(&self, labels: &Labels) -> Vec<usize> {
        let mut found = Vec::new();
        self.collect(0, labels, &mut found);
        found
    }

    /// Adds the routes below `at` that match; tells whether any did.
    fn collect(&self, at: usize, labels: &Labels, found: &mut Vec<usize>) -> bool {
        let node = &self.nodes[at];
        if !node.route.matchers.iter().all(|m| m.matches_labels(labels)) {
            return false;
        }
        let before = found.len();
        for child in &node.children {
            if self.collect(*child, labels, found) && !self.nodes[*child].route.continues {
                break;
            }
        }
        if found.len() == before {
            found.push(at);
        }
        true
    }
}

impl Node {
    /// The labels that make an alert's group on this route. An alert of a drill is in a group of its drill's own, so
    /// that it never stands in a message about real ones.
    #[must_use]
    pub fn group_labels(&self, labels: &Labels) -> Labels {
        match &self.route.group_by {
            GroupBy::All => labels.clone(),
            GroupBy::Labels(names) if labels.get(DRILL).is_none() => labels.only(names),
            GroupBy::Labels(names) => labels.retain(|name| name == DRILL || names.iter().any(|n| n == name)),
        }
    }

    /// The key of a group on this route, as Alertmanager writes it.
    #[must_use]
    pub fn group_key(&self, group: &Labels) -> String {
        format!("{}:{group}", self.key)
    }
}
