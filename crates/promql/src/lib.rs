//! PromQL: text in, tree out; tree and store in, values out.

pub mod ast;
mod check;
pub mod error;
pub mod function;
mod lexer;
pub mod parser;
pub mod pretty;
mod print;
mod token;

pub use error::ParseError;
pub use parser::{parse, parse_selector};
