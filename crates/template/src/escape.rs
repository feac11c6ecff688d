//! Texts made harmless for HTML, JavaScript and addresses.

use std::fmt::Write as _;

/// `<`, `>`, `&`, and quotes as HTML names or numbers them.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\0' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// For a text within quotes in JavaScript.
pub(crate) fn js(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' | '\0'..='\x1f' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// For the query part of an address: a space becomes `+`.
pub(crate) fn query(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b if is_unreserved(b) => out.push(char::from(b)),
            b => {
                let _ = write!(out, "%{b:02X}");
            }
        }
    }
    out
}

/// Letters, digits and the four marks that mean only themselves in an address.
pub(crate) const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Undoes [`query`].
///
/// # Errors
///
/// Go's message for a percent sign without two digits.
pub(crate) fn query_unescape(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, left)) = rest.split_first() {
        rest = left;
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let pair = left.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
                let value = pair
                    .filter(|p| !p.starts_with('+'))
                    .and_then(|p| u8::from_str_radix(p, 16).ok());
                let Some(value) = value else {
                    let shown = String::from_utf8_lossy(&left[..left.len().min(2)]);
                    return Err(format!(
                        "invalid URL escape {}",
                        model::text::quote(&format!("%{shown}"))
                    ));
                };
                out.push(value);
                rest = &left[2..];
            }
            b => out.push(b),
        }
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_made_harmless() {
        assert_eq!(html("<a href=\"x\">'&"), "&lt;a href=&#34;x&#34;&gt;&#39;&amp;");
        assert_eq!(js("a'b\"\\\n<"), "a\\'b\\\"\\\\\\u000A\\u003C");
        assert_eq!(query("a b/ü~"), "a+b%2F%C3%BC~");
        assert_eq!(
            query_unescape("find?name=gpu%203+x").as_deref(),
            Ok("find?name=gpu 3 x")
        );
        assert_eq!(query_unescape("%zz"), Err("invalid URL escape \"%zz\"".to_owned()));
        assert_eq!(query_unescape("%2"), Err("invalid URL escape \"%2\"".to_owned()));
    }
}
