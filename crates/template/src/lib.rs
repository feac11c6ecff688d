//! Go's text templates, as rules and notifications use them: text and data in, text out.
//!
//! [`rule`] has Prometheus' data and functions, [`notification`] Alertmanager's; both build on [`set`].
//! A template sees [`Value`]s and calls functions given when its set is made.
//!
//! Deliberately absent: files (texts are handed in), the clock ([`Env::now`]), the network, JSON libraries,
//! and everything of Go that a template cannot reach. No template can hang or exhaust this program:
//! text, steps, depth of calls and depth of values are bounded.

mod base64;
mod builtin;
pub mod error;
mod escape;
mod exec;
pub mod function;
mod html;
mod humanize;
mod lexer;
pub mod moment;
pub mod notification;
mod number;
mod parser;
mod pattern;
mod print;
mod printf;
mod quoted;
pub mod rule;
pub mod set;
mod tree;
pub mod value;
mod words;

pub use error::Error;
pub use exec::{CALLS_MAX, OUTPUT_MAX, STEPS_MAX};
pub use function::{Env, Function, Query};
pub use notification::Notification;
pub use parser::TEXT_MAX;
pub use rule::{RuleData, RuleTemplate};
pub use set::{Mode, Set};
pub use value::{Object, Value};
