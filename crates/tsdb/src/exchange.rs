//! Prometheus' blocks, read and written: history comes from there and may go back.
//!
//! Reading order: [`bits`] is its bit stream with its ways to write integers, [`xor`] and [`distribution`] its
//! chunks, [`index`] its index, [`folder`] a block as a whole. The formats are Prometheus' own, described in its
//! `tsdb/docs/format`: integers are big-endian there.
//!
//! What is deliberately absent: its write-ahead log and head chunks (a snapshot of a running Prometheus turns them
//! into a block), and version 1 of its index, which Prometheus 2.0 wrote.
//!
//! Invariant: damaged files give errors, never a panic or a made-up sample that passed its checksum.

pub mod bits;
pub mod distribution;
pub mod folder;
pub mod index;
pub mod xor;
