//! What a notification is about.

use std::sync::Arc;

use model::Labels;

use super::pairs::Kv;
use crate::moment::Moment;
use crate::value::{Object, Value};

/// A group of alerts for one receiver: the dot of a notification's templates.
#[derive(Debug, Clone, Default)]
pub struct Data {
    /// The receiver's name.
    pub receiver: String,
    /// `firing` or `resolved`.
    pub status: String,
    /// The alerts.
    pub alerts: Vec<Alert>,
    /// Why this notification is sent.
    pub notification_reason: String,
    /// The labels that the group is formed by.
    pub group_labels: Labels,
    /// The labels that all alerts share.
    pub common_labels: Labels,
    /// The annotations that all alerts share.
    pub common_annotations: Labels,
    /// The labels of the route; their values are templates.
    pub route_labels: Labels,
    /// Where this program's page is.
    pub external_url: String,
}

/// One alert.
#[derive(Debug, Clone)]
pub struct Alert {
    /// `firing` or `resolved`.
    pub status: String,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: Labels,
    /// Since when it fires.
    pub starts_at: Moment,
    /// Until when; [`Moment::zero`] while it fires.
    pub ends_at: Moment,
    /// The page about its rule.
    pub generator_url: String,
    /// The hash of its labels, in hexadecimal digits.
    pub fingerprint: String,
}

impl Data {
    /// The data as a value of templates.
    #[must_use]
    pub fn value(&self) -> Value {
        Value::Object(Arc::new(View::of(self)))
    }
}

/// The data with everything in the form that templates see.
#[derive(Debug)]
struct View {
    fields: Vec<(&'static str, &'static str, Value)>,
}

impl View {
    fn of(data: &Data) -> Self {
        let alerts: Vec<Value> = data.alerts.iter().map(alert).collect();
        Self {
            fields: vec![
                ("Receiver", "receiver", data.receiver.as_str().into()),
                ("Status", "status", data.status.as_str().into()),
                ("Alerts", "alerts", Value::Object(Arc::new(Alerts(alerts)))),
                (
                    "NotificationReason",
                    "notification_reason",
                    data.notification_reason.as_str().into(),
                ),
                ("GroupLabels", "groupLabels", Kv::value(&data.group_labels)),
                ("CommonLabels", "commonLabels", Kv::value(&data.common_labels)),
                (
                    "CommonAnnotations",
                    "commonAnnotations",
                    Kv::value(&data.common_annotations),
                ),
                ("RouteLabels", "routeLabels", Kv::value(&data.route_labels)),
                ("ExternalURL", "externalURL", data.external_url.as_str().into()),
            ],
        }
    }
}

impl Object for View {
    fn type_name(&self) -> &str {
        "*template.Data"
    }

    fn fields(&self) -> Vec<(&'static str, &'static str, Value)> {
        self.fields.clone()
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|f| f.0 == name).map(|f| f.2.clone())
    }
}

fn alert(alert: &Alert) -> Value {
    Value::Object(Arc::new(AlertView {
        fields: vec![
            ("Status", "status", alert.status.as_str().into()),
            ("Labels", "labels", Kv::value(&alert.labels)),
            ("Annotations", "annotations", Kv::value(&alert.annotations)),
            ("StartsAt", "startsAt", Value::Moment(alert.starts_at.clone())),
            ("EndsAt", "endsAt", Value::Moment(alert.ends_at.clone())),
            ("GeneratorURL", "generatorURL", alert.generator_url.as_str().into()),
            ("Fingerprint", "fingerprint", alert.fingerprint.as_str().into()),
        ],
    }))
}

#[derive(Debug)]
struct AlertView {
    fields: Vec<(&'static str, &'static str, Value)>,
}

impl Object for AlertView {
    fn type_name(&self) -> &str {
        "template.Alert"
    }

    fn fields(&self) -> Vec<(&'static str, &'static str, Value)> {
        self.fields.clone()
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|f| f.0 == name).map(|f| f.2.clone())
    }
}

/// The alerts, of which those of one status can be picked.
#[derive(Debug)]
struct Alerts(Vec<Value>);

impl Object for Alerts {
    fn type_name(&self) -> &str {
        "template.Alerts"
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::typed_list("[]template.Alert", self.0.clone()))
    }

    fn call(&self, method: &str, args: &[Value]) -> Option<Result<Value, String>> {
        let wanted = match method {
            "Firing" => "firing",
            "Resolved" => "resolved",
            _ => return None,
        };
        if !args.is_empty() {
            return Some(Err(format!(
                "wrong number of args for {method}: want 0 got {}",
                args.len()
            )));
        }
        let has_status = |alert: &&Value| match alert {
            Value::Object(object) => object.field("Status").is_some_and(|s| s.as_text() == Some(wanted)),
            _ => false,
        };
        let picked = self.0.iter().filter(has_status).cloned().collect();
        Some(Ok(Value::typed_list("[]template.Alert", picked)))
    }
}
