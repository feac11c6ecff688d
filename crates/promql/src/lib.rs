//! PromQL: text in, tree out; tree and store in, values out.

pub mod ast;
pub mod function;
