//! Azure's way to sign remote write: judged, not spoken.

use crate::yaml::{Node, Result};

/// The ways to get a token, each with the keys it must have and those it may.
const WAYS: [(&str, &[&str], &[&str]); 5] = [
    ("managed_identity", &[], &["client_id"]),
    ("workload_identity", &["client_id", "tenant_id"], &["token_file_path"]),
    ("oauth", &["client_id", "client_secret", "tenant_id"], &[]),
    ("sdk", &[], &["tenant_id"]),
    (
        "certificate",
        &["client_id", "tenant_id", "certificate_path"],
        &["certificate_key_path", "certificate_password", "send_certificate_chain"],
    ),
];

pub(super) fn check(node: &Node) -> Result<()> {
    let mut fields = node.fields()?;
    let cloud = fields.or("cloud", "AzurePublic".to_owned())?;
    let _: Option<String> = fields.get("scope")?;
    let mut ways = 0;
    for (name, required, optional) in WAYS {
        if let Some(way) = fields.part(name) {
            check_way(way, name, required, optional)?;
            ways += 1;
        }
    }
    fields.finish()?;
    if !matches!(cloud.as_str(), "" | "AzurePublic" | "AzureChina" | "AzureGovernment") {
        return Err(fields.fault_at("cloud", "must provide a cloud in the Azure AD config"));
    }
    match ways {
        1 => Ok(()),
        0 => Err(node.fault("must provide an authentication method in the Azure AD config")),
        _ => Err(node.fault("cannot provide multiple authentication methods in the Azure AD config")),
    }
}

fn check_way(node: &Node, name: &str, required: &[&'static str], optional: &[&'static str]) -> Result<()> {
    let mut fields = node.fields()?;
    for key in required {
        if fields.or_empty::<String>(key)?.is_empty() {
            return Err(fields.fault(format!("must provide {key} in {name} of the Azure AD config")));
        }
    }
    for key in optional {
        let _: Option<String> = fields.get(key)?;
    }
    fields.finish()?;
    let id: String = fields.or_empty("client_id")?;
    if required.contains(&"client_id") && !is_uuid(&id) || !id.is_empty() && !is_uuid(&id) {
        return Err(fields.fault_at("client_id", format!("the client_id of {name} is not a UUID")));
    }
    Ok(())
}

fn is_uuid(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| *c != '-').collect();
    plain.len() == 32 && plain.bytes().all(|b| b.is_ascii_hexdigit())
}
