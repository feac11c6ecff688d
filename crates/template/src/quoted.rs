//! Quoted texts and characters as Go writes them.

use std::str::Chars;

/// What `"…"` or `` `…` `` means; bytes that are no UTF-8 become U+FFFD. `None` for a wrong escape.
pub(crate) fn unquote(quoted: &str) -> Option<String> {
    let quote = quoted.chars().next()?;
    let inner = quoted.get(1..quoted.len().checked_sub(1)?)?;
    if quote == '`' {
        return Some(inner.replace('\r', ""));
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match escape(&mut chars, quote)? {
                Meant::Byte(byte) => out.push(byte),
                Meant::Char(c) => push(&mut out, c),
            },
            c => push(&mut out, c),
        }
    }
    Some(String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// The character that `'…'` means.
pub(crate) fn unquote_char(quoted: &str) -> Option<char> {
    let inner = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut chars = inner.chars();
    let c = match chars.next()? {
        '\\' => match escape(&mut chars, '\'')? {
            Meant::Byte(byte) => char::from(byte),
            Meant::Char(c) => c,
        },
        c => c,
    };
    chars.next().is_none().then_some(c)
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

enum Meant {
    Char(char),
    Byte(u8),
}

fn escape(chars: &mut Chars<'_>, quote: char) -> Option<Meant> {
    let c = match chars.next()? {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        'x' => return Some(Meant::Byte(u8::try_from(digits(chars, 0, 2, 16)?).ok()?)),
        'u' => char::from_u32(digits(chars, 0, 4, 16)?)?,
        'U' => char::from_u32(digits(chars, 0, 8, 16)?)?,
        c if c == quote => c,
        c => return Some(Meant::Byte(u8::try_from(digits(chars, c.to_digit(8)?, 2, 8)?).ok()?)),
    };
    Some(Meant::Char(c))
}

fn digits(chars: &mut Chars<'_>, first: u32, count: usize, base: u32) -> Option<u32> {
    (0..count).try_fold(first, |value, _| {
        let digit = chars.next()?.to_digit(base)?;
        value.checked_mul(base)?.checked_add(digit)
    })
}
