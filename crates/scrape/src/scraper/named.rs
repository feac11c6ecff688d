//! Servers whose certificate has another name than their address: `tls_config.server_name`.
//!
//! The name must stand in the TLS handshake and be what the certificate is checked against, while the connection goes
//! to the target's own address. So the request names that server, and the name is looked up as the target's host.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::HOST;
use reqwest::{RequestBuilder, Url};

use super::{build, built};
use crate::error::Error;
use crate::job::Job;

/// Hosts of one job whose clients are kept.
const HOSTS_MAX: usize = 4_096;

/// A client for each host of a job.
#[derive(Debug)]
pub(super) struct Named {
    job: Arc<Job>,
    clients: Mutex<HashMap<String, reqwest::Client>>,
}

impl Named {
    pub fn new(job: Arc<Job>) -> Self {
        Self {
            job,
            clients: Mutex::default(),
        }
    }

    /// A request to `url`'s address that names the configured server.
    pub fn get(&self, url: &str) -> Result<RequestBuilder, Error> {
        let wrong = |e: &dyn std::fmt::Display| Error::Target(format!("{url}: {e}"));
        let mut url_of_server = Url::parse(url).map_err(|e| wrong(&e))?;
        let host = url_of_server.host_str().unwrap_or("").to_owned();
        let shown = match url_of_server.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        };
        url_of_server
            .set_host(Some(&self.job.http.tls.server_name))
            .map_err(|e| wrong(&e))?;
        let client = self.client(&host)?;
        Ok(client.get(url_of_server).header(HOST, shown))
    }

    fn client(&self, host: &str) -> Result<reqwest::Client, Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(host) {
            return Ok(client.clone());
        }
        if clients.len() >= HOSTS_MAX {
            clients.clear();
        }
        // A proxy would look the name up itself, and find the wrong server.
        let builder = build(&self.job)?.dns_resolver(Arc::new(At(host.to_owned())));
        let client = built(builder)?;
        clients.insert(host.to_owned(), client.clone());
        Ok(client)
    }
}

/// Looks every name up as this host.
struct At(String);

impl Resolve for At {
    fn resolve(&self, _: Name) -> Resolving {
        let host = self.0.trim_matches(['[', ']']).to_owned();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
