//! OpenTelemetry's metrics as plain values, whichever encoding they came in.

/// Names with values; values that are no text are written as JSON.
pub(super) type Attributes = Vec<(String, String)>;

/// A metric with its points.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Metric {
    pub name: String,
    pub description: String,
    pub unit: String,
    pub data: Data,
}

/// The kinds of metric.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Data {
    /// No kind that this program knows.
    #[default]
    None,
    Gauge(Vec<Number>),
    Sum {
        points: Vec<Number>,
        temporality: u64,
        is_monotonic: bool,
    },
    Histogram {
        points: Vec<Explicit>,
        temporality: u64,
    },
    Exponential {
        points: Vec<Exponential>,
        temporality: u64,
    },
    Summary(Vec<Summary>),
}

/// Cumulative, as OpenTelemetry counts its temporalities; 1 is delta.
pub(super) const CUMULATIVE: u64 = 2;

/// What every point has.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Common {
    pub attributes: Attributes,
    /// Nanoseconds since the epoch; 0 for not told.
    pub start: u64,
    pub time: u64,
    /// Bit 0: nothing was recorded, the series has ended.
    pub flags: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Number {
    pub common: Common,
    pub value: f64,
    pub exemplars: Vec<Example>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Explicit {
    pub common: Common,
    pub count: u64,
    pub sum: Option<f64>,
    pub counts: Vec<u64>,
    pub bounds: Vec<f64>,
    pub exemplars: Vec<Example>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Exponential {
    pub common: Common,
    pub count: u64,
    pub sum: Option<f64>,
    pub scale: i64,
    pub zero_count: u64,
    pub zero_threshold: f64,
    pub positive: (i64, Vec<u64>),
    pub negative: (i64, Vec<u64>),
    pub exemplars: Vec<Example>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Summary {
    pub common: Common,
    pub count: u64,
    pub sum: f64,
    pub quantiles: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Example {
    pub attributes: Attributes,
    pub time: u64,
    pub value: f64,
    pub trace: String,
    pub span: String,
}

/// Hexadecimal digits of an id.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// What reads a request: resources come in order, each with its metrics behind it.
pub(super) trait Visit {
    fn resource(&mut self, attributes: Attributes) -> Result<(), crate::Error>;
    fn metric(&mut self, metric: Metric) -> Result<(), crate::Error>;
}
