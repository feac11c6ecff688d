//! `watchfire format promql EXPR`

use serde_json::json;

use super::{Outcome, input, output};
use crate::cli::{FormatArgs, Language};

/// Prints the expression in its canonical form, or says what is wrong with it.
pub fn format(args: &FormatArgs) -> anyhow::Result<Outcome> {
    let Language::Promql = args.language;
    let printed = input::argument(&args.expr)?.and_then(|text| print(&text, args.pretty));
    match &printed {
        Ok(text) if args.json => output::line(json!({"ok": true, "text": text}))?,
        Ok(text) => output::line(text)?,
        Err(error) if args.json => output::line(json!({"ok": false, "error": error}))?,
        Err(error) => output::remark(error),
    }
    Ok(Outcome::from(printed.is_ok()))
}

fn print(text: &str, pretty: bool) -> Result<String, String> {
    let expr = promql::parse(text).map_err(|error| error.render(text))?;
    Ok(if pretty {
        promql::pretty::pretty(&expr)
    } else {
        expr.to_string()
    })
}
