//! Words in a text: titles.

/// The first letter of every word in upper case; the others in lower case if `lowers`.
///
/// A word goes on over digits and underscores, and over an apostrophe, a full stop or a colon between letters.
pub(crate) fn title(text: &str, lowers: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut previous = ' ';
    let mut is_begun = false;
    while let Some(c) = chars.next() {
        let joins = matches!(c, '\'' | '’' | '.' | ':' | '·')
            && previous.is_alphabetic()
            && chars.peek().is_some_and(|next| next.is_alphabetic());
        if !c.is_alphanumeric() && c != '_' && !joins {
            is_begun = false;
        }
        if !c.is_alphabetic() {
            out.push(c);
        } else if !is_begun {
            is_begun = true;
            out.extend(c.to_uppercase());
        } else if lowers {
            out.extend(c.to_lowercase());
        } else {
            out.push(c);
        }
        previous = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_in_upper_case() {
        for (text, kept, lowered) in [
            ("aa bb CC", "Aa Bb CC", "Aa Bb Cc"),
            ("don't STOP", "Don't STOP", "Don't Stop"),
            ("gpu_lost 3abc a-b", "Gpu_lost 3Abc A-B", "Gpu_lost 3Abc A-B"),
            ("éa", "Éa", "Éa"),
        ] {
            assert_eq!(title(text, false), kept);
            assert_eq!(title(text, true), lowered);
        }
    }
}
