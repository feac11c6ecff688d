//! Just enough YAML to find the values of one key: plain, quoted, and block texts.

/// The values of `key` in the order of the file.
pub fn values(text: &str, key: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mark = format!("{key}:");
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let body = line.trim_start().trim_start_matches("- ").trim_start();
        let Some(value) = body.strip_prefix(&mark) else {
            continue;
        };
        let column = line.len() - body.len();
        let more: Vec<&str> = lines[at + 1..]
            .iter()
            .copied()
            .take_while(|l| l.trim().is_empty() || l.len() - l.trim_start().len() > column)
            .collect();
        found.push(scalar(value.trim(), &more));
    }
    found
}

fn scalar(first: &str, more: &[&str]) -> String {
    if first.starts_with(['|', '>']) {
        return more.join("\n");
    }
    let whole = [&[first], more]
        .concat()
        .iter()
        .map(|l| l.trim())
        .collect::<Vec<_>>()
        .join(" ");
    let whole = whole.trim();
    if let Some(inner) = whole.strip_prefix('\'') {
        return inner.trim_end_matches('\'').replace("''", "'");
    }
    if whole.starts_with('"') {
        let end = whole.rfind('"').unwrap_or(whole.len());
        let json = whole[..=end].replace("\\ ", " ");
        return serde_json::from_str(&json).unwrap_or_else(|_| whole.to_owned());
    }
    whole.to_owned()
}
