//! What must hold between the keys of a kind. Messages are worded so that a search for Prometheus' finds them.

use crate::shape::{Check, Found, all_given, fault, one_of};
use crate::url::Url;

/// A URL with `http` or `https` and a host.
fn web_url(found: &Found) -> Check {
    let text = found.text("url");
    if text.is_empty() {
        return fault("url", "URL is missing");
    }
    let url = Url::parse(text).map_err(|e| ("url", e))?;
    if !matches!(url.scheme(), "http" | "https") {
        return fault("url", "URL scheme must be 'http' or 'https'");
    }
    if url.host().is_empty() {
        return fault("url", "host is missing in URL");
    }
    Ok(())
}

fn basic(found: &Found) -> bool {
    found.http.as_ref().is_some_and(|http| http.basic_auth.is_some())
}

fn bearer(found: &Found) -> bool {
    found.http.as_ref().is_some_and(|http| http.authorization.is_some())
}

fn one_secret(found: &Found) -> Check {
    match (
        found.text("secret_key").is_empty(),
        found.text("secret_key_file").is_empty(),
    ) {
        (true, true) => fault("secret_key", "one of secret_key & secret_key_file must be configured"),
        (false, false) => fault(
            "secret_key_file",
            "at most one of secret_key & secret_key_file must be configured",
        ),
        _ => Ok(()),
    }
}

pub(super) fn file(found: &Found) -> Check {
    let files = found.list("files");
    if files.is_empty() {
        return fault(
            "files",
            "file service discovery config must contain at least one path name",
        );
    }
    let good = |path: &String| {
        let stem = [".json", ".yml", ".yaml", ".JSON", ".YML", ".YAML"]
            .iter()
            .find_map(|suffix| path.strip_suffix(suffix));
        stem.is_some_and(super::super::star_in_last_part)
    };
    match files.iter().find(|path| !good(path)) {
        Some(path) => fault("files", format!("path name {path:?} is not valid for file discovery")),
        None => Ok(()),
    }
}

pub(super) fn http(found: &Found) -> Check {
    web_url(found)
}

pub(super) fn dns(found: &Found) -> Check {
    if found.list("names").is_empty() {
        return fault("names", "DNS-SD config must contain at least one SRV record name");
    }
    let kind = found.text_or("type", "SRV");
    match kind.to_uppercase().as_str() {
        "SRV" => Ok(()),
        "A" | "AAAA" | "MX" | "NS" if found.number("port").unwrap_or(0) == 0 => fault(
            "type",
            "a port is required in DNS-SD configs for all record types except SRV",
        ),
        "A" | "AAAA" | "MX" | "NS" => Ok(()),
        _ => fault("type", format!("invalid DNS-SD records type {kind}")),
    }
}

pub(super) fn docker(found: &Found) -> Check {
    let host = found.text("host");
    if host.is_empty() {
        return fault("host", "host missing");
    }
    Url::parse(host).map(drop).map_err(|e| ("host", e))
}

pub(super) fn dockerswarm(found: &Found) -> Check {
    docker(found)?;
    match found.text("role") {
        "services" | "nodes" | "tasks" => Ok(()),
        "" => fault("role", "role missing (one of: tasks, services, nodes)"),
        role => fault(
            "role",
            format!("invalid role {role}, expected tasks, services, or nodes"),
        ),
    }
}

pub(super) fn aws(found: &Found) -> Check {
    let role = found.text("role");
    one_of(
        "role",
        role,
        &["ec2", "ecs", "elasticache", "lightsail", "msk", "rds"],
        &format!("unknown AWS SD role {role:?}"),
    )
}

pub(super) fn ec2(found: &Found) -> Check {
    let empty = found.sections("filters").any(|filter| filter.list("values").is_empty());
    if empty {
        return fault("filters", "EC2 SD configuration filter values cannot be empty");
    }
    Ok(())
}

pub(super) fn azure(found: &Found) -> Check {
    all_given(
        found,
        &[("subscription_id", "azure SD configuration requires a subscription_id")],
    )?;
    let method = found.text_or("authentication_method", "OAuth");
    if method == "OAuth" {
        return all_given(
            found,
            &[
                ("tenant_id", "azure SD configuration requires a tenant_id"),
                ("client_id", "azure SD configuration requires a client_id"),
                ("client_secret", "azure SD configuration requires a client_secret"),
            ],
        );
    }
    one_of(
        "authentication_method",
        method,
        &["ManagedIdentity", "SDK", "WorkloadIdentity"],
        &format!(
            "unknown authentication_type {method:?}. Supported types are \"OAuth\", \"ManagedIdentity\", \"SDK\" or \
             \"WorkloadIdentity\""
        ),
    )
}

pub(super) fn consul(found: &Found) -> Check {
    if found.text_or("server", "localhost:8500").trim().is_empty() {
        return fault("server", "consul SD configuration requires a server address");
    }
    let user = !found.text("username").is_empty() || !found.text("password").is_empty();
    if user && basic(found) {
        return fault(
            "basic_auth",
            "at most one of consul SD configuration username and password and basic auth can be configured",
        );
    }
    let other = bearer(found) || found.http.as_ref().is_some_and(|http| http.oauth2.is_some());
    if !found.text("token").is_empty() && other {
        return fault(
            "token",
            "at most one of consul SD token, authorization, or oauth2 can be configured",
        );
    }
    if user && other {
        return fault(
            "username",
            "at most one of basic_auth, oauth2 & authorization must be configured",
        );
    }
    Ok(())
}

pub(super) fn digitalocean(found: &Found) -> Check {
    let role = found.text_or("role", "droplets");
    one_of(
        "role",
        role,
        &["droplets", "databases"],
        &format!("unknown DigitalOcean SD role {role:?}"),
    )
}

pub(super) fn eureka(found: &Found) -> Check {
    let server = found.text("server");
    if server.is_empty() {
        return fault("server", "eureka_sd: empty or null eureka server");
    }
    let url = Url::parse(server).map_err(|e| ("server", e))?;
    if url.scheme().is_empty() || url.host().is_empty() {
        return fault("server", "eureka_sd: invalid eureka server URL");
    }
    Ok(())
}

pub(super) fn gce(found: &Found) -> Check {
    all_given(
        found,
        &[
            ("project", "GCE SD configuration requires a project"),
            ("zone", "GCE SD configuration requires a zone"),
        ],
    )
}

pub(super) fn hetzner(found: &Found) -> Check {
    match found.text("role") {
        "" => fault("role", "role missing (one of: robot, hcloud)"),
        "robot" | "hcloud" => Ok(()),
        role => fault("role", format!("unknown role {role:?}")),
    }
}

pub(super) fn ionos(found: &Found) -> Check {
    all_given(found, &[("datacenter_id", "datacenter id can't be empty")])
}

pub(super) fn kuma(found: &Found) -> Check {
    let server = found.text("server");
    let url = Url::parse(server).map_err(|e| ("server", e))?;
    if url.scheme().is_empty() || url.host().is_empty() {
        return fault(
            "server",
            format!("kuma SD server must not be empty and have a scheme: {server}"),
        );
    }
    Ok(())
}

pub(super) fn marathon(found: &Found) -> Check {
    if found.list("servers").is_empty() {
        return fault("servers", "marathon_sd: must contain at least one Marathon server");
    }
    let (token, file) = (found.text("auth_token"), found.text("auth_token_file"));
    if !token.is_empty() && !file.is_empty() {
        return fault(
            "auth_token_file",
            "marathon_sd: at most one of auth_token & auth_token_file must be configured",
        );
    }
    if token.is_empty() && file.is_empty() {
        return Ok(());
    }
    if basic(found) {
        return fault(
            "basic_auth",
            "marathon_sd: at most one of basic_auth, auth_token & auth_token_file must be configured",
        );
    }
    if bearer(found) {
        // A bearer token has become an authorization by now, so one message speaks of both.
        return fault(
            "auth_token",
            "marathon_sd: at most one of bearer_token, bearer_token_file, auth_token & auth_token_file must be \
             configured, and none of them beside authorization",
        );
    }
    Ok(())
}

pub(super) fn zookeeper(name: &'static str, found: &Found) -> Check {
    if found.list("servers").is_empty() {
        return fault(
            "servers",
            format!("{name} SD config must contain at least one Zookeeper server"),
        );
    }
    if found.list("paths").is_empty() {
        return fault("paths", format!("{name} SD config must contain at least one path"));
    }
    match found.list("paths").iter().find(|path| !path.starts_with('/')) {
        Some(path) => fault("paths", format!("{name} SD config paths must begin with '/': {path}")),
        None => Ok(()),
    }
}

pub(super) fn nomad(found: &Found) -> Check {
    if found.text_or("server", "http://localhost:4646").trim().is_empty() {
        return fault("server", "nomad SD configuration requires a server address");
    }
    Ok(())
}

/// Keys that only a signing key needs.
const OCI_KEYS: [&str; 6] = [
    "tenancy",
    "user",
    "fingerprint",
    "key_file",
    "key_passphrase",
    "key_passphrase_file",
];

pub(super) fn oci(found: &Found) -> Check {
    all_given(found, &[("region", "oci_sd: region is required")])?;
    match found.text_or("auth", "api_key") {
        "api_key" => {
            for key in &OCI_KEYS[..4] {
                if found.text(key).is_empty() {
                    return fault(key, format!("oci_sd: api_key auth requires {key}"));
                }
            }
            if OCI_KEYS[4..].iter().all(|key| !found.text(key).is_empty()) {
                return fault(
                    "key_passphrase_file",
                    "oci_sd: at most one of key_passphrase and key_passphrase_file must be configured",
                );
            }
        }
        "instance_principal" => {
            if let Some(key) = OCI_KEYS.iter().find(|key| !found.text(key).is_empty()) {
                return fault(key, format!("oci_sd: instance_principal auth must not have {key} set"));
            }
        }
        auth => {
            let message =
                format!("oci_sd: unknown auth method {auth:?}, expected \"api_key\" or \"instance_principal\"");
            return fault("auth", message);
        }
    }
    if found.list("compartments").iter().any(String::is_empty) {
        return fault("compartments", "oci_sd: compartments must not be empty");
    }
    positive_refresh(found, "oci_sd: refresh_interval must be positive")
}

fn positive_refresh(found: &Found, message: &str) -> Check {
    match found.number("refresh_interval") {
        Some(millis) if millis <= 0 => fault("refresh_interval", message),
        _ => Ok(()),
    }
}

pub(super) fn openstack(found: &Found) -> Check {
    let role = found.text("role");
    if !matches!(role, "" | "hypervisor" | "instance" | "loadbalancer") {
        return fault("role", format!("unknown OpenStack SD role {role:?}"));
    }
    let availability = found.text_or("availability", "public");
    one_of(
        "availability",
        availability,
        &["public", "internal", "admin"],
        &format!("unknown availability {availability}, must be one of admin, internal or public"),
    )?;
    all_given(
        found,
        &[
            ("role", "role missing (one of: instance, hypervisor, loadbalancer)"),
            ("region", "openstack SD configuration requires a region"),
        ],
    )
}

pub(super) fn outscale(found: &Found) -> Check {
    all_given(
        found,
        &[
            ("region", "outscale SD configuration requires a region"),
            ("access_key", "outscale SD configuration requires access_key"),
        ],
    )?;
    one_secret(found)
}

pub(super) fn ovhcloud(found: &Found) -> Check {
    if found.text_or("endpoint", "ovh-eu").is_empty() {
        return fault("endpoint", "endpoint can not be empty");
    }
    all_given(
        found,
        &[
            ("application_key", "application key can not be empty"),
            ("application_secret", "application secret can not be empty"),
            ("consumer_key", "consumer key can not be empty"),
        ],
    )?;
    let service = found.text("service");
    one_of(
        "service",
        service,
        &["dedicated_server", "vps"],
        &format!("unknown service: {service}"),
    )
}

pub(super) fn puppetdb(found: &Found) -> Check {
    web_url(found)?;
    all_given(found, &[("query", "query missing")])
}

pub(super) fn scaleway(found: &Found) -> Check {
    let role = found.text("role");
    if !matches!(role, "" | "instance" | "baremetal") {
        return fault("role", format!("unknown role {role:?}"));
    }
    all_given(
        found,
        &[
            ("role", "role missing (one of: instance, baremetal)"),
            ("project_id", "project_id is mandatory"),
        ],
    )?;
    one_secret(found)?;
    all_given(found, &[("access_key", "access_key is mandatory")])
}

pub(super) fn stackit(found: &Found) -> Check {
    let endpoint = found.text("endpoint");
    if endpoint.is_empty() && found.text_or("region", "eu01").is_empty() {
        return fault("endpoint", "stackit_sd: endpoint and region missing");
    }
    Url::parse(endpoint)
        .map(drop)
        .map_err(|e| ("endpoint", format!("stackit_sd: invalid endpoint {endpoint:?}: {e}")))
}

pub(super) fn triton(found: &Found) -> Check {
    if !matches!(found.text_or("role", "container"), "container" | "cn") {
        return fault(
            "role",
            "triton SD configuration requires role to be 'container' or 'cn'",
        );
    }
    all_given(
        found,
        &[
            ("account", "triton SD configuration requires an account"),
            ("dns_suffix", "triton SD configuration requires a dns_suffix"),
            ("endpoint", "triton SD configuration requires an endpoint"),
        ],
    )?;
    positive_refresh(
        found,
        "triton SD configuration requires RefreshInterval to be a positive integer",
    )
}

pub(super) fn uyuni(found: &Found) -> Check {
    all_given(found, &[("server", "Uyuni SD configuration requires server host")])?;
    Url::parse(found.text("server")).map_err(|e| ("server", format!("Uyuni Server URL is not valid: {e}")))?;
    all_given(
        found,
        &[
            ("username", "Uyuni SD configuration requires a username"),
            ("password", "Uyuni SD configuration requires a password"),
        ],
    )
}
