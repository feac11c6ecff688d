//! The kinds of discovery: keys, types, and the check between them.

use super::Found;
use super::checks;

/// A kind of discovery.
pub(super) struct Kind {
    /// The key in a job.
    pub(super) key: &'static str,
    /// Whether the keys of an HTTP client may stand beside its own.
    pub(super) http: bool,
    /// Its own keys.
    pub(super) keys: &'static [(&'static str, Type)],
    /// What must hold; the fault is placed at the key.
    pub(super) check: fn(&Found) -> Check,
}

/// Fine, or the key at fault with the message.
pub(super) type Check = Result<(), (&'static str, String)>;

/// The type of a key's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type {
    /// A text or a secret.
    Text,
    /// True or false.
    Flag,
    /// A whole number.
    Int,
    /// A duration.
    Span,
    /// Texts.
    List,
    /// Texts by name.
    Map,
    /// A TLS section.
    Tls,
    /// Names with values.
    Filters,
}

use Type::{Filters, Flag, Int, List, Map, Span, Text, Tls};

const REFRESH: (&str, Type) = ("refresh_interval", Span);
const PORT: (&str, Type) = ("port", Int);

/// Keys that every kind of Amazon's has.
macro_rules! amazon {
    ($($more:expr),*) => {
        &[
            ("region", Text), ("endpoint", Text), ("access_key", Text), ("secret_key", Text), ("profile", Text),
            ("role_arn", Text), ("external_id", Text), REFRESH, PORT, $($more),*
        ]
    };
}

fn fine(_: &Found) -> Check {
    Ok(())
}

pub(super) const KINDS: &[Kind] = &[
    Kind {
        key: "file_sd_configs",
        http: false,
        keys: &[("files", List), REFRESH],
        check: checks::file,
    },
    Kind {
        key: "http_sd_configs",
        http: true,
        keys: &[("url", Text), REFRESH],
        check: checks::http,
    },
    Kind {
        key: "dns_sd_configs",
        http: false,
        keys: &[("names", List), REFRESH, ("type", Text), PORT],
        check: checks::dns,
    },
    Kind {
        key: "docker_sd_configs",
        http: true,
        keys: &[
            ("host", Text),
            PORT,
            ("filters", Filters),
            ("host_networking_host", Text),
            REFRESH,
            ("match_first_network", Flag),
        ],
        check: checks::docker,
    },
    Kind {
        key: "dockerswarm_sd_configs",
        http: true,
        keys: &[("host", Text), ("role", Text), PORT, ("filters", Filters), REFRESH],
        check: checks::dockerswarm,
    },
    Kind {
        key: "aws_sd_configs",
        http: true,
        keys: amazon![("role", Text), ("filters", Filters), ("clusters", List)],
        check: checks::aws,
    },
    Kind {
        key: "ec2_sd_configs",
        http: true,
        keys: amazon![("filters", Filters)],
        check: checks::ec2,
    },
    Kind {
        key: "ecs_sd_configs",
        http: true,
        keys: amazon![("clusters", List), ("request_concurrency", Int)],
        check: fine,
    },
    Kind {
        key: "elasticache_sd_configs",
        http: true,
        keys: amazon![("clusters", List), ("request_concurrency", Int)],
        check: fine,
    },
    Kind {
        key: "lightsail_sd_configs",
        http: true,
        keys: amazon![],
        check: fine,
    },
    Kind {
        key: "msk_sd_configs",
        http: true,
        keys: amazon![("clusters", List), ("request_concurrency", Int)],
        check: fine,
    },
    Kind {
        key: "rds_sd_configs",
        http: true,
        keys: amazon![("clusters", List), ("filters", Filters), ("request_concurrency", Int)],
        check: fine,
    },
    Kind {
        key: "azure_sd_configs",
        http: true,
        keys: &[
            ("environment", Text),
            PORT,
            ("subscription_id", Text),
            ("tenant_id", Text),
            ("client_id", Text),
            ("client_secret", Text),
            REFRESH,
            ("authentication_method", Text),
            ("resource_group", Text),
        ],
        check: checks::azure,
    },
    Kind {
        key: "consul_sd_configs",
        http: true,
        keys: &[
            ("server", Text),
            ("path_prefix", Text),
            ("token", Text),
            ("datacenter", Text),
            ("namespace", Text),
            ("partition", Text),
            ("tag_separator", Text),
            ("scheme", Text),
            ("username", Text),
            ("password", Text),
            ("allow_stale", Flag),
            REFRESH,
            ("services", List),
            ("tags", List),
            ("node_meta", Map),
            ("filter", Text),
            ("health_filter", Text),
        ],
        check: checks::consul,
    },
    Kind {
        key: "digitalocean_sd_configs",
        http: true,
        keys: &[REFRESH, PORT, ("role", Text)],
        check: checks::digitalocean,
    },
    Kind {
        key: "eureka_sd_configs",
        http: true,
        keys: &[("server", Text), REFRESH],
        check: checks::eureka,
    },
    Kind {
        key: "gce_sd_configs",
        http: false,
        keys: &[
            ("project", Text),
            ("zone", Text),
            ("filter", Text),
            REFRESH,
            PORT,
            ("tag_separator", Text),
        ],
        check: checks::gce,
    },
    Kind {
        key: "hetzner_sd_configs",
        http: true,
        keys: &[REFRESH, PORT, ("role", Text), ("label_selector", Text)],
        check: checks::hetzner,
    },
    Kind {
        key: "ionos_sd_configs",
        http: true,
        keys: &[("datacenter_id", Text), REFRESH, PORT],
        check: checks::ionos,
    },
    Kind {
        key: "kuma_sd_configs",
        http: true,
        keys: &[REFRESH, ("fetch_timeout", Span), ("server", Text), ("client_id", Text)],
        check: checks::kuma,
    },
    Kind {
        key: "linode_sd_configs",
        http: true,
        keys: &[REFRESH, PORT, ("tag_separator", Text), ("region", Text)],
        check: fine,
    },
    Kind {
        key: "marathon_sd_configs",
        http: true,
        keys: &[
            ("servers", List),
            REFRESH,
            ("auth_token", Text),
            ("auth_token_file", Text),
        ],
        check: checks::marathon,
    },
    Kind {
        key: "nerve_sd_configs",
        http: false,
        keys: &[("servers", List), ("paths", List), ("timeout", Span)],
        check: |found| checks::zookeeper("nerve", found),
    },
    Kind {
        key: "serverset_sd_configs",
        http: false,
        keys: &[("servers", List), ("paths", List), ("timeout", Span)],
        check: |found| checks::zookeeper("serverset", found),
    },
    Kind {
        key: "nomad_sd_configs",
        http: true,
        keys: &[
            ("allow_stale", Flag),
            ("namespace", Text),
            REFRESH,
            ("region", Text),
            ("server", Text),
            ("tag_separator", Text),
        ],
        check: checks::nomad,
    },
    Kind {
        key: "oci_sd_configs",
        http: true,
        keys: &[
            ("auth", Text),
            ("tenancy", Text),
            ("user", Text),
            ("fingerprint", Text),
            ("key_file", Text),
            ("key_passphrase", Text),
            ("key_passphrase_file", Text),
            ("region", Text),
            ("compartments", List),
            PORT,
            REFRESH,
        ],
        check: checks::oci,
    },
    Kind {
        key: "openstack_sd_configs",
        http: false,
        keys: &[
            ("identity_endpoint", Text),
            ("username", Text),
            ("userid", Text),
            ("password", Text),
            ("project_name", Text),
            ("project_id", Text),
            ("domain_name", Text),
            ("domain_id", Text),
            ("application_credential_name", Text),
            ("application_credential_id", Text),
            ("application_credential_secret", Text),
            ("role", Text),
            ("region", Text),
            REFRESH,
            PORT,
            ("all_tenants", Flag),
            ("tls_config", Tls),
            ("availability", Text),
        ],
        check: checks::openstack,
    },
    Kind {
        key: "outscale_sd_configs",
        http: true,
        keys: &[
            ("endpoint", Text),
            ("region", Text),
            ("access_key", Text),
            ("secret_key", Text),
            ("secret_key_file", Text),
            REFRESH,
            PORT,
        ],
        check: checks::outscale,
    },
    Kind {
        key: "ovhcloud_sd_configs",
        http: false,
        keys: &[
            ("endpoint", Text),
            ("application_key", Text),
            ("application_secret", Text),
            ("consumer_key", Text),
            REFRESH,
            ("service", Text),
        ],
        check: checks::ovhcloud,
    },
    Kind {
        key: "puppetdb_sd_configs",
        http: true,
        keys: &[
            ("url", Text),
            ("query", Text),
            ("include_parameters", Flag),
            PORT,
            REFRESH,
        ],
        check: checks::puppetdb,
    },
    Kind {
        key: "scaleway_sd_configs",
        http: true,
        keys: &[
            ("project_id", Text),
            ("api_url", Text),
            ("zone", Text),
            ("access_key", Text),
            ("secret_key", Text),
            ("secret_key_file", Text),
            ("name_filter", Text),
            ("tags_filter", List),
            REFRESH,
            PORT,
            ("role", Text),
        ],
        check: checks::scaleway,
    },
    Kind {
        key: "stackit_sd_configs",
        http: true,
        keys: &[
            ("project", Text),
            REFRESH,
            PORT,
            ("region", Text),
            ("endpoint", Text),
            ("service_account_key", Text),
            ("private_key", Text),
            ("service_account_key_path", Text),
            ("private_key_path", Text),
            ("credentials_file_path", Text),
        ],
        check: checks::stackit,
    },
    Kind {
        key: "triton_sd_configs",
        http: false,
        keys: &[
            ("account", Text),
            ("role", Text),
            ("dns_suffix", Text),
            ("endpoint", Text),
            ("groups", List),
            PORT,
            REFRESH,
            ("tls_config", Tls),
            ("version", Int),
        ],
        check: checks::triton,
    },
    Kind {
        key: "uyuni_sd_configs",
        http: true,
        keys: &[
            ("server", Text),
            ("username", Text),
            ("password", Text),
            ("entitlement", Text),
            ("separator", Text),
            REFRESH,
        ],
        check: checks::uyuni,
    },
    Kind {
        key: "vultr_sd_configs",
        http: true,
        keys: &[REFRESH, PORT],
        check: fine,
    },
];
