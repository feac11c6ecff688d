//! PromQL: text in, tree out; tree and store in, values out.

mod almost;
pub mod ast;
pub mod cache;
mod check;
pub mod engine;
pub mod error;
mod eval;
pub mod function;
mod lexer;
mod native;
pub mod parser;
mod plan;
pub mod pretty;
mod print;
pub mod testscript;
mod token;

pub use cache::{CacheStats, CachedEngine};
pub use engine::{Engine, EngineOptions};
pub use error::ParseError;
pub use parser::{parse, parse_selector};
