//! `kubernetes_sd_configs`: judged in full, its selectors included.

use crate::http::HttpClientConfig;
use crate::url::Url;
use crate::yaml::{Fields, Node, Result};

pub(super) const KEY: &str = "kubernetes_sd_configs";

/// What can be discovered, with the selectors each allows.
const ROLES: [(&str, &[&str]); 6] = [
    ("pod", &["pod", "node"]),
    ("service", &["service"]),
    ("endpoints", &["pod", "service", "endpoints"]),
    ("endpointslice", &["pod", "service", "endpointslice"]),
    ("node", &["node"]),
    ("ingress", &["ingress"]),
];

/// Judges one section.
pub(super) fn check(node: &Node) -> Result<()> {
    let mut fields = node.fields()?;
    let role = role(&mut fields)?;
    let api_server: Option<Url> = fields.part("api_server").map(Node::read).transpose()?;
    let kubeconfig: String = fields.or_empty("kubeconfig_file")?;
    let own_namespace = namespaces(fields.part("namespaces"))?;
    let selectors = fields.list_of("selectors")?;
    metadata(fields.part("attach_metadata"))?;
    let http = HttpClientConfig::take(&mut fields)?;
    fields.finish()?;
    let Some(role) = role else {
        return Err(fields.fault("role missing (one of: pod, service, endpoints, endpointslice, node, ingress)"));
    };
    let custom = http != HttpClientConfig::default();
    let (api, file) = (api_server.is_some(), !kubeconfig.is_empty());
    let message = if api && file {
        "cannot use 'kubeconfig_file' and 'api_server' simultaneously"
    } else if file && custom {
        "cannot use a custom HTTP client configuration together with 'kubeconfig_file'"
    } else if !api && custom {
        "to use custom HTTP client configuration please provide the 'api_server' URL explicitly"
    } else if api && own_namespace {
        "cannot use 'api_server' and 'namespaces.own_namespace' simultaneously"
    } else if file && own_namespace {
        "cannot use 'kubeconfig_file' and 'namespaces.own_namespace' simultaneously"
    } else {
        return check_selectors(&role, selectors);
    };
    Err(fields.fault(message))
}

/// Takes `role`; `None` when not written or null.
fn role(fields: &mut Fields<'_>) -> Result<Option<String>> {
    let Some(node) = fields.part("role") else {
        return Ok(None);
    };
    let role: String = node.read()?;
    if ROLES.iter().any(|(name, _)| *name == role) {
        Ok(Some(role))
    } else {
        Err(node.fault(format!("unknown Kubernetes SD role {role:?}")))
    }
}

/// Judges `namespaces` and tells whether our own is among them.
fn namespaces(node: Option<&Node>) -> Result<bool> {
    let Some(node) = node else { return Ok(false) };
    let mut fields = node.fields()?;
    let own = fields.or_empty("own_namespace")?;
    let _: Vec<String> = fields.or_empty("names")?;
    fields.finish()?;
    Ok(own)
}

fn metadata(node: Option<&Node>) -> Result<()> {
    let Some(node) = node else { return Ok(()) };
    let mut fields = node.fields()?;
    for key in ["node", "namespace"] {
        let _: Option<bool> = fields.get(key)?;
    }
    for key in ["deployment", "job", "cronjob"] {
        let _: Option<bool> = fields.get(key)?;
    }
    fields.finish()
}

fn check_selectors(role: &str, nodes: &[Node]) -> Result<()> {
    let allowed = ROLES.iter().find(|(name, _)| *name == role).map_or(&[][..], |(_, a)| a);
    let mut seen = Vec::new();
    for node in nodes {
        let mut fields = node.fields()?;
        let own = self::role(&mut fields)?.unwrap_or_default();
        let label: String = fields.or_empty("label")?;
        let field: String = fields.or_empty("field")?;
        fields.finish()?;
        if seen.contains(&own) {
            return Err(node.fault(format!("duplicated selector role: {own}")));
        }
        if !allowed.contains(&own.as_str()) {
            let message = format!("{role} role supports only {} selectors", allowed.join(", "));
            return Err(node.fault(message));
        }
        check_fields(&field).map_err(|m| fields.fault_at("field", m))?;
        check_labels(&label).map_err(|m| fields.fault_at("label", m))?;
        seen.push(own);
    }
    Ok(())
}

/// `a=b,c!=d`.
fn check_fields(selector: &str) -> std::result::Result<(), String> {
    for term in selector.split(',').filter(|t| !t.is_empty()) {
        if !term.contains('=') {
            return Err(format!("invalid selector: '{selector}'; can't understand '{term}'"));
        }
    }
    Ok(())
}

/// `a=b, c in (d,e), !f`.
fn check_labels(selector: &str) -> std::result::Result<(), String> {
    let bad = || Err(format!("unable to parse requirement: {selector:?}"));
    if selector.trim().is_empty() {
        return Ok(());
    }
    let mut rest = selector.trim();
    while !rest.is_empty() {
        let end = match (rest.find('('), rest.find(',')) {
            (Some(open), Some(comma)) if open < comma => match rest.find(')') {
                Some(close) => close + 1,
                None => return bad(),
            },
            (Some(_), None) => rest.len(),
            (_, Some(comma)) => comma,
            (None, None) => rest.len(),
        };
        if !good_requirement(rest[..end].trim()) {
            return bad();
        }
        rest = rest[end..].trim_start();
        match rest.strip_prefix(',') {
            Some(after) if !after.trim().is_empty() => rest = after.trim_start(),
            None if rest.is_empty() => {}
            _ => return bad(),
        }
    }
    Ok(())
}

fn good_requirement(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.len() <= 317 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
    };
    if let Some(name) = text.strip_prefix('!') {
        return is_name(name.trim());
    }
    for operator in ["!=", "==", "=", ">", "<"] {
        if let Some((name, value)) = text.split_once(operator) {
            let value = value.trim();
            return is_name(name.trim()) && (value.is_empty() || is_name(value));
        }
    }
    if let Some(open) = text.find('(') {
        let mut words = text[..open].split_whitespace();
        let (name, operator) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let closed = text.ends_with(')') && words.next().is_none();
        let values = text[open + 1..].trim_end_matches(')');
        return closed
            && is_name(name)
            && matches!(operator, "in" | "notin")
            && values.split(',').all(|v| v.trim().is_empty() || is_name(v.trim()));
    }
    is_name(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_follow_the_grammar() {
        for good in [
            "",
            "a=b",
            "a==b,c!=d",
            "foo in (bar,baz)",
            "a notin (b), !c, d",
            "a.b/c-d",
        ] {
            assert_eq!(check_labels(good), Ok(()), "{good}");
        }
        for bad in ["a=b,", "a in b", "a in (b", "a b", "=b", "!", "a=b c"] {
            assert!(check_labels(bad).is_err(), "{bad}");
        }
    }
}
