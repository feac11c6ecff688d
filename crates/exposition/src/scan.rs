//! The grammar of a series and of braces: finds where things end, keeps nothing.

use crate::error::{Cause, Error};
use crate::format::Format;

/// Where the formats, and a scraper and a checker of the same format, differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Blanks and tabs may stand between any two tokens, and empty lines between lines.
    pub blanks: bool,
    /// Labels must be parted by commas.
    pub commas: bool,
    /// A comma may stand before the closing brace.
    pub trailing_comma: bool,
    /// A raw newline may stand inside a quoted text.
    pub raw_newline: bool,
    /// Escapes other than `\\`, `\"` and `\n` stand for themselves.
    pub any_escape: bool,
    /// The last line may lack its newline.
    pub open_end: bool,
    /// As the field's checker of the text format, which reads it with another parser than its scraper: a `HELP`
    /// or `TYPE` without name or text is a comment, escapes in help are judged, types may be in capitals, and
    /// no blank may end a line behind a value.
    pub checker: bool,
}

impl Rules {
    /// As a scraper reads: lenient where Prometheus is.
    pub(crate) const fn scrape(format: Format) -> Self {
        let text = matches!(format, Format::Text);
        Self {
            blanks: text,
            commas: !text,
            trailing_comma: true,
            raw_newline: text,
            any_escape: true,
            open_end: true,
            checker: false,
        }
    }

    /// As a checker reads.
    pub(crate) const fn check(format: Format) -> Self {
        let text = matches!(format, Format::Text);
        Self {
            blanks: text,
            commas: true,
            trailing_comma: text,
            raw_newline: false,
            any_escape: !text,
            open_end: !text,
            checker: text,
        }
    }
}

/// Past blanks and tabs.
#[inline]
pub(crate) fn skip_blanks(page: &[u8], mut at: usize) -> usize {
    while matches!(page.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// The end of the metric name at `at`; `at` itself where none begins.
#[inline]
pub(crate) fn metric_name_end(page: &[u8], at: usize) -> usize {
    name_end(page, at, true)
}

#[inline]
fn name_end(page: &[u8], at: usize, colons: bool) -> usize {
    let (first, later) = if colons {
        (FIRST | COLON, FIRST | COLON | LATER)
    } else {
        (FIRST, FIRST | LATER)
    };
    let class = |at: usize| page.get(at).map_or(0, |b| CLASS[*b as usize]);
    if class(at) & first == 0 {
        return at;
    }
    let mut end = at + 1;
    while class(end) & later != 0 {
        end += 1;
    }
    end
}

const FIRST: u8 = 1;
const COLON: u8 = 2;
const LATER: u8 = 4;

/// What a byte may be in a name.
static CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => FIRST,
            b':' => COLON,
            b'0'..=b'9' => LATER,
            _ => 0,
        };
        byte += 1;
    }
    table
};

/// The place of the closing quote of the text whose opening quote stands at `at`.
#[inline]
pub(crate) fn quoted_end(page: &[u8], at: usize, rules: Rules) -> Option<usize> {
    let mut end = at + 1;
    loop {
        let rest = page.get(end..)?;
        end += if rules.raw_newline {
            memchr::memchr2(b'"', b'\\', rest)?
        } else {
            memchr::memchr3(b'"', b'\\', b'\n', rest)?
        };
        match page[end] {
            b'"' => return Some(end),
            b'\\' => {
                let escaped = *page.get(end + 1)?;
                let known = matches!(escaped, b'\\' | b'"' | b'n');
                if !known && (!rules.any_escape || (escaped == b'\n' && !rules.raw_newline)) {
                    return None;
                }
                end += 2;
            }
            _ => return None,
        }
    }
}

/// The end of the series that begins at `at`: its name, its braces, or both.
#[inline]
pub(crate) fn series_end(page: &[u8], at: usize, rules: Rules) -> Result<usize, Error> {
    let name = metric_name_end(page, at);
    let named = name > at;
    if !named && page.get(at) != Some(&b'{') {
        return Err(Error::expected(page, at, "a valid start token"));
    }
    let open = if rules.blanks { skip_blanks(page, name) } else { name };
    let end = if page.get(open) == Some(&b'{') {
        braces_end(page, open, rules, Braces::Series { named })?
    } else {
        name
    };
    if std::str::from_utf8(&page[at..end]).is_err() {
        return Err(Error::at(page, at, Cause::Utf8));
    }
    Ok(end)
}

/// Whose braces are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Braces {
    /// A series', whose name may already stand before them.
    Series {
        /// Whether it does.
        named: bool,
    },
    /// An exemplar's, which has no name.
    Exemplar,
}

/// One past the closing brace of the braces opened at `at`.
pub(crate) fn braces_end(page: &[u8], at: usize, rules: Rules, whose: Braces) -> Result<usize, Error> {
    let blanks = |at| if rules.blanks { skip_blanks(page, at) } else { at };
    let mut named = whose != Braces::Series { named: false };
    let mut at = blanks(at + 1);
    let close = loop {
        let quoted = match page.get(at) {
            Some(b'}') => break at,
            Some(b'"') => true,
            _ => false,
        };
        let name = at;
        let end = if quoted {
            quoted_end(page, at, rules).map_or(at, |end| end + 1)
        } else {
            name_end(page, at, false)
        };
        if end == at {
            return Err(Error::expected(page, at, "label name"));
        }
        at = blanks(end);
        let next = page.get(at);
        if quoted && whose != Braces::Exemplar && matches!(next, Some(b',' | b'}')) {
            if named {
                return Err(Error::at(page, name, Cause::NameTwice));
            }
            named = true;
        } else {
            if next != Some(&b'=') {
                return Err(Error::expected(page, at, "equal"));
            }
            at = blanks(at + 1);
            let value = (page.get(at) == Some(&b'"'))
                .then(|| quoted_end(page, at, rules))
                .flatten();
            // The field's parsers refuse a NUL in an exemplar, and there alone.
            let value = value.filter(|&end| whose != Braces::Exemplar || !page[at..end].contains(&0));
            at = blanks(value.ok_or_else(|| Error::expected(page, at, "label value"))? + 1);
        }
        match page.get(at) {
            Some(b',') => {
                at = blanks(at + 1);
                if !rules.trailing_comma && page.get(at) == Some(&b'}') {
                    return Err(Error::expected(page, at, "label name"));
                }
            }
            Some(b'}') => break at,
            _ if rules.commas => return Err(Error::expected(page, at, "comma or closing brace")),
            _ => {}
        }
    };
    if named {
        Ok(close + 1)
    } else {
        Err(Error::at(page, close, Cause::NameMissing))
    }
}
