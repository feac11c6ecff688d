//! The commands that answer and exit, and the way to those that stay.

pub mod alert;
mod api;
mod check;
mod collect;
pub mod drill;
pub mod export;
mod format;
mod history;
pub mod import;
mod input;
mod output;
pub mod prove;
mod query;
mod test;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::process;

/// The answer of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Fine.
    Yes,
    /// The answer is "no": a check failed, an expression does not parse.
    No,
    /// Some of what was asked about could not be read, which was said; the rest was judged.
    Unread,
}

impl Outcome {
    /// 0 for yes, 1 for no, 2 where the surroundings did not allow an answer to everything.
    pub fn exit_code(self) -> ExitCode {
        match self {
            Self::Yes => ExitCode::SUCCESS,
            Self::No => ExitCode::from(1),
            Self::Unread => ExitCode::from(2),
        }
    }
}

impl From<bool> for Outcome {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// Does what was asked.
///
/// # Errors
///
/// A mistake in the words typed, or the surroundings do not allow it: exit code 2.
pub fn dispatch(cli: Cli) -> anyhow::Result<Outcome> {
    match cli.command {
        Command::Run(args) => process::run(args),
        Command::Agent(args) => process::agent(args),
        Command::Hub(args) => process::hub(args),
        Command::Collect(args) => collect::collect(&args),
        Command::Check(args) => check::check(&args),
        Command::Query(args) => query::query(&args),
        Command::Import(args) => import::import(&args),
        Command::Export(args) => export::export(&args),
        Command::Format(args) => format::format(&args),
        Command::Test(args) => test::test(&args),
        Command::GpuHelper => process::gpu_helper(),
        Command::Rules(args) => prove::rules(&args),
        Command::Drill(args) => drill::drill(&args),
        Command::Alert(args) => alert::alert(&args),
    }
}
