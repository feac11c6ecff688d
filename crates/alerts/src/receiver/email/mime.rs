//! A mail as it goes over the wire (RFC 5322, 2045, 2047).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use model::Millis;

/// The most bytes of a line that is encoded, its end not counted.
const LINE_MAX: usize = 76;
/// The most bytes of text in one encoded word of a header.
const WORD_BYTES_MAX: usize = 45;

/// A mail.
#[derive(Debug, Clone)]
pub struct Mail {
    /// The sender's address for the server.
    pub sender: String,
    /// The receivers' addresses for the server.
    pub receivers: Vec<String>,
    /// Headers, in order.
    pub headers: Vec<(String, String)>,
    /// The plain part.
    pub text: Option<String>,
    /// The HTML part.
    pub html: Option<String>,
    /// What separates the parts; it stands in neither.
    pub boundary: String,
}

impl Mail {
    /// The whole message, every line ended by CR LF.
    pub fn write(&self) -> String {
        let mut out = String::new();
        for (name, value) in &self.headers {
            // A name that could end its line is no name.
            if name.chars().all(|c| c.is_ascii_graphic() && c != ':') && !name.is_empty() {
                out += &format!("{name}: {}\r\n", header_value(value));
            }
        }
        out += &format!(
            "MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary={}\r\n\r\n",
            self.boundary
        );
        for (kind, part) in [("plain", &self.text), ("html", &self.html)] {
            if let Some(part) = part {
                out += &format!(
                    "--{}\r\nContent-Type: text/{kind}; charset=UTF-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n",
                    self.boundary
                );
                out += &quoted_printable(part);
                out += "\r\n";
            }
        }
        out + &format!("--{}--\r\n", self.boundary)
    }
}

/// A value on one line; what is not ASCII is encoded.
fn header_value(text: &str) -> String {
    let line: String = text.split(['\r', '\n']).map(str::trim).collect::<Vec<_>>().join(" ");
    if line.chars().all(|c| c.is_ascii() && !c.is_ascii_control()) {
        return line.trim().to_owned();
    }
    // The address of `Ä <a@b>` must stay readable.
    if let Some((name, path)) = line
        .rsplit_once(" <")
        .filter(|(_, path)| path.ends_with('>') && path.is_ascii())
    {
        return format!("{} <{path}", encoded_words(name));
    }
    encoded_words(&line)
}

fn encoded_words(text: &str) -> String {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.floor_char_boundary(WORD_BYTES_MAX);
        if end == 0 {
            end = rest.len();
        }
        let (word, more) = rest.split_at(end);
        words.push(format!("=?utf-8?b?{}?=", BASE64_STANDARD.encode(word)));
        rest = more;
    }
    words.join("\r\n ")
}

fn quoted_printable(text: &str) -> String {
    let mut out = String::new();
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut width = 0;
        let bytes = line.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            let last = at + 1 == bytes.len();
            let plain = matches!(byte, b'!'..=b'~') && *byte != b'=' || matches!(byte, b' ' | b'\t') && !last;
            let size = if plain { 1 } else { 3 };
            if width + size > LINE_MAX - 1 {
                out.push_str("=\r\n");
                width = 0;
            }
            if plain {
                out.push(char::from(*byte));
            } else {
                out += &format!("={byte:02X}");
            }
            width += size;
        }
        out.push_str("\r\n");
    }
    out
}

/// A moment as mails write it.
pub fn date(at: Millis) -> String {
    civil(at).strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

/// The day of a moment.
pub fn day(at: Millis) -> String {
    civil(at).strftime("%Y-%m-%d").to_string()
}

/// A moment outside of the calendar is its beginning.
fn civil(at: Millis) -> DateTime {
    TimeZone::UTC.to_datetime(Timestamp::from_millisecond(at).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_stay_one_line_and_ascii() {
        assert_eq!(header_value("GPU 3 is hot"), "GPU 3 is hot");
        assert_eq!(header_value("a\r\nBcc: x@y"), "a  Bcc: x@y");
        assert_eq!(header_value("heiß"), "=?utf-8?b?aGVpw58=?=");
        assert_eq!(header_value("Wärter <a@b>"), "=?utf-8?b?V8OkcnRlcg==?= <a@b>");
        let long = "ä".repeat(40);
        assert!(header_value(&long).split("\r\n").all(|line| line.len() <= 76));
    }

    #[test]
    fn bodies_are_short_lines_of_ascii() {
        assert_eq!(quoted_printable("a = b\nü "), "a =3D b\r\n=C3=BC=20\r\n");
        let long = quoted_printable(&"x".repeat(200));
        assert!(long.lines().all(|line| line.len() <= LINE_MAX), "{long}");
        assert_eq!(long.replace("=\r\n", "").trim(), "x".repeat(200));
    }

    #[test]
    fn dates_are_those_of_mails() {
        assert_eq!(date(1_700_000_000_000), "Tue, 14 Nov 2023 22:13:20 +0000");
        assert_eq!(day(1_700_000_000_000), "2023-11-14");
    }
}
