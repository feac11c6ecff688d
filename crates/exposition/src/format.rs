//! Which format: content types in and out.

/// A text format that this crate reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// The Prometheus text format, 0.0.4 (and 1.0.0, which differs in quoted names only).
    #[default]
    Text,
    /// OpenMetrics text, 0.0.1 and 1.0.0.
    OpenMetrics,
}

impl Format {
    /// What a server says of a page in this format.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The format of a page that a target may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageFormat {
    /// Lines of text.
    Lines(Format),
    /// Protobuf messages, each with its length before it.
    Protobuf,
}

impl From<Format> for PageFormat {
    fn from(format: Format) -> Self {
        Self::Lines(format)
    }
}

impl PageFormat {
    /// The format of a `Content-Type` header; `None` for anything else, the empty text included.
    #[must_use]
    pub fn from_content_type(header: &str) -> Option<Self> {
        let mut fields = header.split(';').map(str::trim);
        let media = fields.next().unwrap_or("");
        if media.eq_ignore_ascii_case("text/plain") {
            Some(Self::Lines(Format::Text))
        } else if media.eq_ignore_ascii_case("application/openmetrics-text") {
            Some(Self::Lines(Format::OpenMetrics))
        } else if media.eq_ignore_ascii_case("application/vnd.google.protobuf") {
            let fields: Vec<&str> = fields.collect();
            let told = |text: &str| fields.iter().any(|f| f.eq_ignore_ascii_case(text));
            let is_ours = told("proto=io.prometheus.client.MetricFamily") && told("encoding=delimited");
            is_ours.then_some(Self::Protobuf)
        } else {
            None
        }
    }
}

/// A format with its version, as `scrape_protocols` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `PrometheusProto`
    Protobuf,
    /// `OpenMetricsText1.0.0`
    OpenMetrics1,
    /// `OpenMetricsText0.0.1`
    OpenMetrics0,
    /// `PrometheusText1.0.0`
    Text1,
    /// `PrometheusText0.0.4`
    Text0,
}

impl Protocol {
    /// What a scraper asks for when nothing is configured, dearest first.
    pub const DEFAULT: [Self; 4] = [Self::OpenMetrics1, Self::OpenMetrics0, Self::Text1, Self::Text0];

    /// The same where native histograms are wanted: one format alone carries them.
    pub const PROTOBUF_FIRST: [Self; 5] = [
        Self::Protobuf,
        Self::OpenMetrics1,
        Self::OpenMetrics0,
        Self::Text1,
        Self::Text0,
    ];

    /// The protocol of a configuration's word; `None` for an unknown one.
    #[must_use]
    pub fn from_config(word: &str) -> Option<Self> {
        Some(match word {
            "PrometheusProto" => Self::Protobuf,
            "OpenMetricsText1.0.0" => Self::OpenMetrics1,
            "OpenMetricsText0.0.1" => Self::OpenMetrics0,
            "PrometheusText1.0.0" => Self::Text1,
            "PrometheusText0.0.4" => Self::Text0,
            _ => return None,
        })
    }

    /// The format that a page in this protocol has.
    #[must_use]
    pub const fn format(self) -> PageFormat {
        match self {
            Self::Protobuf => PageFormat::Protobuf,
            Self::OpenMetrics1 | Self::OpenMetrics0 => PageFormat::Lines(Format::OpenMetrics),
            Self::Text1 | Self::Text0 => PageFormat::Lines(Format::Text),
        }
    }

    const fn media(self) -> &'static str {
        match self {
            Self::Protobuf => {
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
            }
            Self::OpenMetrics1 => "application/openmetrics-text;version=1.0.0",
            Self::OpenMetrics0 => "application/openmetrics-text;version=0.0.1",
            Self::Text1 => "text/plain;version=1.0.0",
            Self::Text0 => "text/plain;version=0.0.4",
        }
    }

    /// Whether the format knows ways to write names outside the old alphabet.
    const fn escapes(self) -> bool {
        matches!(self, Self::OpenMetrics1 | Self::Text1)
    }
}

/// The `Accept` header for `protocols`, dearest first; any other answer is welcome last. `escaping` says how names
/// outside the old alphabet are to be written: `allow-utf-8` for "as they are".
#[must_use]
pub fn accept_header(protocols: &[Protocol], escaping: &str) -> String {
    let mut weight = 6;
    let mut out = String::new();
    for protocol in protocols.iter().take(5) {
        out.push_str(protocol.media());
        if protocol.escapes() {
            out.push_str(&format!(";escaping={escaping}"));
        }
        out.push_str(&format!(";q=0.{weight},"));
        weight -= 1;
    }
    out.push_str(&format!("*/*;q=0.{weight}"));
    out
}

/// The format to answer an `Accept` header with: OpenMetrics when it is asked for at least as dearly as text.
#[must_use]
pub fn negotiate(accept: &str) -> Format {
    let mut open_metrics = 0.0_f64;
    let mut text = 0.0_f64;
    for part in accept.split(',') {
        let mut fields = part.split(';').map(str::trim);
        let media = fields.next().unwrap_or("");
        let quality = fields
            .find_map(|f| f.strip_prefix("q="))
            .map_or(1.0, |q| q.parse::<f64>().unwrap_or(0.0));
        if media.eq_ignore_ascii_case("application/openmetrics-text") {
            open_metrics = open_metrics.max(quality);
        } else if media.eq_ignore_ascii_case("text/plain") {
            text = text.max(quality);
        }
    }
    if open_metrics > 0.0 && open_metrics >= text {
        Format::OpenMetrics
    } else {
        Format::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_asks_for_openmetrics_first() {
        let header = accept_header(&Protocol::DEFAULT, "allow-utf-8");
        assert_eq!(
            header,
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,\
             text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
        );
        assert_eq!(negotiate(&header), Format::OpenMetrics);
        assert_eq!(
            accept_header(&[Protocol::Protobuf, Protocol::Text1], "underscores"),
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,\
             text/plain;version=1.0.0;escaping=underscores;q=0.5,*/*;q=0.4"
        );
    }

    #[test]
    fn a_browser_gets_text() {
        assert_eq!(negotiate("text/html,*/*;q=0.8"), Format::Text);
        assert_eq!(negotiate(""), Format::Text);
        assert_eq!(
            negotiate("text/plain;q=0.9,application/openmetrics-text;q=0.1"),
            Format::Text
        );
    }

    #[test]
    fn content_types_are_known_by_their_media_type() {
        let of = PageFormat::from_content_type;
        assert_eq!(of("text/plain"), Some(Format::Text.into()));
        assert_eq!(of(Format::OpenMetrics.content_type()), Some(Format::OpenMetrics.into()));
        assert_eq!(of("text/html; charset=utf-8"), None);
        assert_eq!(of(""), None);
        let protobuf = Protocol::Protobuf.media();
        assert_eq!(of(protobuf), Some(PageFormat::Protobuf));
        assert_eq!(
            of(&protobuf.replace(";encoding", "; encoding")),
            Some(PageFormat::Protobuf)
        );
        assert_eq!(of("application/vnd.google.protobuf"), None);
    }
}
