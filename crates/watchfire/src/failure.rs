//! What went wrong, as a person reads it: the attempt, the causes below it, and a way out where there is one.

use std::fmt::Write as _;

/// An error with a hint for the way out.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Hinted {
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// The error, its causes and its hint, a line each.
pub fn render(error: &anyhow::Error) -> String {
    let mut out = format!("error: {error}\n");
    let mut last = error.to_string();
    for cause in error.chain().skip(1) {
        let text = cause.to_string();
        // A cause that its parent already spelled out says nothing new.
        if !last.contains(&text) {
            let _ = writeln!(out, "  because: {text}");
        }
        last = text;
    }
    if let Some(hinted) = error.chain().find_map(|cause| cause.downcast_ref::<Hinted>()) {
        let _ = writeln!(out, "  hint: {}", hinted.hint);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn causes_and_hints_stand_below_the_error() {
        let hinted = Hinted {
            message: "no permission".into(),
            hint: "run as root".into(),
        };
        let error = Err::<(), _>(anyhow::Error::new(hinted))
            .context("cannot open /dev/kmsg")
            .expect_err("an error");
        assert_eq!(
            render(&error),
            "error: cannot open /dev/kmsg\n  because: no permission\n  hint: run as root\n"
        );
    }
}
