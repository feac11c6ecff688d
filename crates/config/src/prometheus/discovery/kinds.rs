//! The kinds of discovery: keys, types, and the check between them.

use super::checks;
use crate::shape::Type::{self, Flag, HttpInline, Int, List, Many, Map, Span, Text, Tls};
use crate::shape::{Shape, fine};

const REFRESH: (&str, Type) = ("refresh_interval", Span);
/// The keys of an HTTP client stand beside the kind's own.
const HTTP: (&str, Type) = ("", HttpInline);
const PORT: (&str, Type) = ("port", Int);

/// Keys that every kind of Amazon's has.
macro_rules! amazon {
    ($($more:expr),*) => {
        &[
            ("region", Text), ("endpoint", Text), ("access_key", Text), ("secret_key", Text), ("profile", Text),
            ("role_arn", Text), ("external_id", Text), HTTP, REFRESH, PORT, $($more),*
        ]
    };
}

/// Names with values.
const FILTER: Shape = Shape {
    key: "filters",
    keys: &[("name", Text), ("values", List)],
    check: fine,
};

pub(super) const KINDS: &[Shape] = &[
    Shape {
        key: "file_sd_configs",
        keys: &[("files", List), REFRESH],
        check: checks::file,
    },
    Shape {
        key: "http_sd_configs",
        keys: &[HTTP, ("url", Text), REFRESH],
        check: checks::http,
    },
    Shape {
        key: "dns_sd_configs",
        keys: &[("names", List), REFRESH, ("type", Text), PORT],
        check: checks::dns,
    },
    Shape {
        key: "docker_sd_configs",
        keys: &[
            HTTP,
            ("host", Text),
            PORT,
            ("filters", Many(&FILTER)),
            ("host_networking_host", Text),
            REFRESH,
            ("match_first_network", Flag),
        ],
        check: checks::docker,
    },
    Shape {
        key: "dockerswarm_sd_configs",
        keys: &[
            HTTP,
            ("host", Text),
            ("role", Text),
            PORT,
            ("filters", Many(&FILTER)),
            REFRESH,
        ],
        check: checks::dockerswarm,
    },
    Shape {
        key: "aws_sd_configs",
        keys: amazon![("role", Text), ("filters", Many(&FILTER)), ("clusters", List)],
        check: checks::aws,
    },
    Shape {
        key: "ec2_sd_configs",
        keys: amazon![("filters", Many(&FILTER))],
        check: checks::ec2,
    },
    Shape {
        key: "ecs_sd_configs",
        keys: amazon![("clusters", List), ("request_concurrency", Int)],
        check: fine,
    },
    Shape {
        key: "elasticache_sd_configs",
        keys: amazon![("clusters", List), ("request_concurrency", Int)],
        check: fine,
    },
    Shape {
        key: "lightsail_sd_configs",
        keys: amazon![],
        check: fine,
    },
    Shape {
        key: "msk_sd_configs",
        keys: amazon![("clusters", List), ("request_concurrency", Int)],
        check: fine,
    },
    Shape {
        key: "rds_sd_configs",
        keys: amazon![
            ("clusters", List),
            ("filters", Many(&FILTER)),
            ("request_concurrency", Int)
        ],
        check: fine,
    },
    Shape {
        key: "azure_sd_configs",
        keys: &[
            HTTP,
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
    Shape {
        key: "consul_sd_configs",
        keys: &[
            HTTP,
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
    Shape {
        key: "digitalocean_sd_configs",
        keys: &[HTTP, REFRESH, PORT, ("role", Text)],
        check: checks::digitalocean,
    },
    Shape {
        key: "eureka_sd_configs",
        keys: &[HTTP, ("server", Text), REFRESH],
        check: checks::eureka,
    },
    Shape {
        key: "gce_sd_configs",
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
    Shape {
        key: "hetzner_sd_configs",
        keys: &[HTTP, REFRESH, PORT, ("role", Text), ("label_selector", Text)],
        check: checks::hetzner,
    },
    Shape {
        key: "ionos_sd_configs",
        keys: &[HTTP, ("datacenter_id", Text), REFRESH, PORT],
        check: checks::ionos,
    },
    Shape {
        key: "kuma_sd_configs",
        keys: &[
            HTTP,
            REFRESH,
            ("fetch_timeout", Span),
            ("server", Text),
            ("client_id", Text),
        ],
        check: checks::kuma,
    },
    Shape {
        key: "linode_sd_configs",
        keys: &[HTTP, REFRESH, PORT, ("tag_separator", Text), ("region", Text)],
        check: fine,
    },
    Shape {
        key: "marathon_sd_configs",
        keys: &[
            HTTP,
            ("servers", List),
            REFRESH,
            ("auth_token", Text),
            ("auth_token_file", Text),
        ],
        check: checks::marathon,
    },
    Shape {
        key: "nerve_sd_configs",
        keys: &[("servers", List), ("paths", List), ("timeout", Span)],
        check: |found| checks::zookeeper("nerve", found),
    },
    Shape {
        key: "serverset_sd_configs",
        keys: &[("servers", List), ("paths", List), ("timeout", Span)],
        check: |found| checks::zookeeper("serverset", found),
    },
    Shape {
        key: "nomad_sd_configs",
        keys: &[
            HTTP,
            ("allow_stale", Flag),
            ("namespace", Text),
            REFRESH,
            ("region", Text),
            ("server", Text),
            ("tag_separator", Text),
        ],
        check: checks::nomad,
    },
    Shape {
        key: "oci_sd_configs",
        keys: &[
            HTTP,
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
    Shape {
        key: "openstack_sd_configs",
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
    Shape {
        key: "outscale_sd_configs",
        keys: &[
            HTTP,
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
    Shape {
        key: "ovhcloud_sd_configs",
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
    Shape {
        key: "puppetdb_sd_configs",
        keys: &[
            HTTP,
            ("url", Text),
            ("query", Text),
            ("include_parameters", Flag),
            PORT,
            REFRESH,
        ],
        check: checks::puppetdb,
    },
    Shape {
        key: "scaleway_sd_configs",
        keys: &[
            HTTP,
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
    Shape {
        key: "stackit_sd_configs",
        keys: &[
            HTTP,
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
    Shape {
        key: "triton_sd_configs",
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
    Shape {
        key: "uyuni_sd_configs",
        keys: &[
            HTTP,
            ("server", Text),
            ("username", Text),
            ("password", Text),
            ("entitlement", Text),
            ("separator", Text),
            REFRESH,
        ],
        check: checks::uyuni,
    },
    Shape {
        key: "vultr_sd_configs",
        keys: &[HTTP, REFRESH, PORT],
        check: fine,
    },
];
