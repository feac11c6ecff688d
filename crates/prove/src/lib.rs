//! The proof: can an alert fire, given what exists?
//!
//! [`Evidence`] says what exists, from saved pages or from a store; [`Facts`] what is known of exporters; [`prove`] judges the rules of
//! some files against both and gives a [`Finding`] for each alert. The judgement is an evaluation of the expression on series whose
//! labels and values are known in part only.
//!
//! What is deliberately absent: HTTP, files, the clock, and drills: the caller turns `can fire` into `proven` where one was passed.
//!
//! Invariant: nothing is called dead for want of evidence. What is not known is possible.

mod error;
mod evidence;
mod facts;
mod interval;
mod judge;
mod line;
mod prove;
mod verdict;

pub use error::Error;
pub use evidence::{Evidence, Origin};
pub use facts::Facts;
pub use interval::Interval;
pub use prove::{RuleText, metrics_of, prove, remarks, rules_of};
pub use verdict::{Finding, Reason, Verdict};
