//! `watchfire format promql EXPR`

use serde_json::json;

use super::{Outcome, input};
use crate::cli::{FormatArgs, Language};

/// Prints the expression in its canonical form, or says what is wrong with it.
pub fn format(args: &FormatArgs) -> anyhow::Result<Outcome> {
    let Language::Promql = args.language;
    let text = input::argument(&args.expr)?;
    match promql::parse(&text) {
        Ok(expr) => {
            let printed = if args.pretty {
                promql::pretty::pretty(&expr)
            } else {
                expr.to_string()
            };
            if args.json {
                println!("{}", json!({"ok": true, "text": printed}));
            } else {
                println!("{printed}");
            }
            Ok(Outcome::Yes)
        }
        Err(error) => {
            if args.json {
                println!("{}", json!({"ok": false, "error": error.render(&text)}));
            } else {
                eprintln!("{}", error.render(&text));
            }
            Ok(Outcome::No)
        }
    }
}
