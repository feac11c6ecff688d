//! Quoted texts: `"…"` and `'…'` with escapes, `` `…` `` without.

use std::str::Chars;

/// The length of the quoted text after its opening `quote`, closing quote included.
///
/// # Errors
///
/// The reason why it does not end or has an escape that is none.
pub(super) fn scan(text: &str, quote: char) -> Result<usize, String> {
    let mut chars = text.chars();
    loop {
        match chars.next() {
            Some(c) if c == quote => return Ok(text.len() - chars.as_str().len()),
            Some(char::REPLACEMENT_CHARACTER) => return Err("invalid UTF-8 rune".to_owned()),
            None if quote == '`' => return Err("unterminated raw string".to_owned()),
            None | Some('\n') if quote != '`' => return Err("unterminated quoted string".to_owned()),
            Some('\\') if quote != '`' => {
                escape(&mut chars, quote)?;
            }
            _ => {}
        }
    }
}

/// What a quoted text, already scanned, means. Bytes that are no UTF-8 become U+FFFD.
pub(crate) fn unquote(text: &str) -> String {
    let Some(quote) = text.chars().next() else {
        return String::new();
    };
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    if quote == '`' || !inner.contains('\\') {
        return inner.to_owned();
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let meant = if c == '\\' {
            escape(&mut chars, quote)
        } else {
            Ok(Escape::Char(c))
        };
        match meant {
            Ok(Escape::Byte(byte)) => out.push(byte),
            Ok(Escape::Char(c)) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(_) => break,
        }
    }
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

enum Escape {
    Char(char),
    /// `\xFF` and `\377` name bytes.
    Byte(u8),
}

/// Reads one escape; the backslash has been read.
fn escape(chars: &mut Chars<'_>, quote: char) -> Result<Escape, String> {
    let Some(kind) = chars.next() else {
        return Err("escape sequence not terminated".to_owned());
    };
    let simple = match kind {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        c if c == quote => c,
        'x' => return byte(digits(chars, 0, 2, 16)?),
        'u' => return code_point(digits(chars, 0, 4, 16)?),
        'U' => return code_point(digits(chars, 0, 8, 16)?),
        c => match c.to_digit(8) {
            Some(first) => return byte(digits(chars, first, 2, 8)?),
            None => return Err(format!("unknown escape sequence U+{:04X} '{c}'", c as u32)),
        },
    };
    Ok(Escape::Char(simple))
}

/// Reads `count` digits after the value `first`.
fn digits(chars: &mut Chars<'_>, first: u32, count: usize, base: u32) -> Result<u32, String> {
    let mut value = first;
    for _ in 0..count {
        let c = chars.next().ok_or("escape sequence not terminated")?;
        let digit = c
            .to_digit(base)
            .ok_or_else(|| format!("illegal character U+{:04X} '{c}' in escape sequence", c as u32))?;
        // Eight hexadecimal digits just fit.
        value = value.wrapping_mul(base) | digit;
    }
    Ok(value)
}

const NO_CODE_POINT: &str = "escape sequence is an invalid Unicode code point";

fn byte(value: u32) -> Result<Escape, String> {
    u8::try_from(value)
        .map(Escape::Byte)
        .map_err(|_| NO_CODE_POINT.to_owned())
}

fn code_point(value: u32) -> Result<Escape, String> {
    char::from_u32(value)
        .map(Escape::Char)
        .ok_or_else(|| NO_CODE_POINT.to_owned())
}
