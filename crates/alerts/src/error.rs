//! What can go wrong before an alert is on its way. Failed deliveries are no errors here: they are kept
//! as [`crate::delivery::Delivery`].

use std::path::PathBuf;

/// Why the crate refuses.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A receiver that uses something not built.
    #[error("receiver {receiver:?}: {what} is not built yet")]
    Feature {
        /// The receiver's name.
        receiver: String,
        /// What it uses.
        what: &'static str,
    },
    /// A text that is no address of a webhook.
    #[error("webhook {0:?} is no address: expected http://HOST/… or https://HOST/…")]
    Webhook(String),
    /// The file of notifications cannot be used.
    #[error("cannot use the notification log {path}")]
    Journal {
        /// The file.
        path: PathBuf,
        /// What the store said.
        source: Box<redb::Error>,
    },
    /// The folder for the file of notifications cannot be made.
    #[error("cannot make the folder {path}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A template file cannot be read.
    #[error("cannot read the template file {path}")]
    TemplateFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A template file is no template.
    #[error("template file {path}")]
    Template {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<template::Error>,
    },
    /// There is no such receiver.
    #[error("no receiver {0:?} in the configuration")]
    NoReceiver(String),
    /// A silence that makes no sense.
    #[error("silence invalid: {0}")]
    Silence(String),
    /// A silence of that name is not there.
    #[error("silence {0} not found")]
    NoSilence(String),
    /// A silence that is over cannot be ended.
    #[error("silence {0} already expired")]
    SilenceExpired(String),
}
