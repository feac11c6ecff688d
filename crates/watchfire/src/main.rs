//! The `watchfire` program: flags, wiring, signals. The only crate that knows all others.
//!
//! [`cli`] defines every flag once, [`command`] holds the commands that answer and exit, [`process`] those that stay:
//! an agent (collectors and a page of metrics), a hub (scrape, store, rules, alerts, page), or both in one.

mod cli;
mod command;
mod failure;
mod logging;
mod process;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    logging::start(cli.log_level, cli.log_json);
    match command::dispatch(cli) {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => {
            // A closed pipe takes no message; there is nobody left to tell.
            let _ = std::io::stderr().write_all(failure::render(&error).as_bytes());
            ExitCode::from(2)
        }
    }
}

/// Help and version are answers; anything else is a mistake in the words typed.
fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe takes no help text; there is nobody left to tell.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}
