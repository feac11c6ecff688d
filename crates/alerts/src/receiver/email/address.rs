//! Mail addresses as people write them: `Name <a@b.example>, c@d.example`.

/// One address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The address alone, as the server is told it.
    pub path: String,
}

impl Address {
    /// Reads a list.
    ///
    /// # Errors
    ///
    /// A sentence: a part of it is no address, or there is none.
    pub fn read_list(text: &str) -> Result<Vec<Self>, String> {
        let parts = split(text);
        let all: Result<Vec<Self>, String> = parts.iter().map(|part| Self::read(part)).collect();
        let all = all?;
        if all.is_empty() {
            return Err("no address".to_owned());
        }
        Ok(all)
    }

    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let path = match text.rsplit_once('<') {
            Some((_, rest)) => rest.strip_suffix('>').unwrap_or(""),
            None => text,
        };
        let bad = || format!("{text:?} is no mail address");
        if text.contains(char::is_control) {
            return Err(bad());
        }
        let (user, domain) = path.rsplit_once('@').ok_or_else(bad)?;
        // What would end the line or the command is no part of an address.
        let clean = |part: &str| {
            !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control() || "<>".contains(c))
        };
        if !clean(user) || !clean(domain) || domain.contains('@') {
            return Err(bad());
        }
        Ok(Self { path: path.to_owned() })
    }

    /// What stands behind the `@`.
    pub fn domain(&self) -> &str {
        self.path.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

/// Splits at commas outside of quotes and brackets.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quoted, mut inside) = (false, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '<' if !quoted => inside = true,
            '>' if !quoted => inside = false,
            _ => {}
        }
        if c == ',' && !quoted && !inside {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        let got = Address::read_list(text).map(|all| all.into_iter().map(|a| a.path).collect::<Vec<_>>());
        assert_eq!(got.unwrap_or_default(), want, "{text:?}");
    }

    #[test]
    fn addresses_stand_alone_with_names_and_in_lists() {
        check("a@b.example", &["a@b.example"]);
        check("On call <a+x@b.example>", &["a+x@b.example"]);
        check("\"Last, First\" <a@b>, c@d ,", &["a@b", "c@d"]);
        for bad in ["", "a", "a@", "@b", "a b@c", "a@b\r\nRCPT TO:<x@y>", "<a@b", "a@b@c d"] {
            check(bad, &[]);
        }
    }
}
