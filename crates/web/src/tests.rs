//! A hub on a free loopback port, asked over real HTTP.

mod alertmanager;
mod api;
mod corpus;
mod http;
mod stage;
mod ways;
