//! Why a try to tell failed, and whether another one may go better.

use crate::delivery::{Outcome, Problem, Reason};

/// A failed try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whether another try may go better.
    pub retry: bool,
    /// Why.
    pub problem: Problem,
}

impl Failure {
    /// One that another try would not mend.
    pub fn last(message: impl Into<String>) -> Self {
        Self {
            retry: false,
            problem: Problem::from(message),
        }
    }

    /// One that may pass.
    pub fn passing(message: impl Into<String>) -> Self {
        Self {
            retry: true,
            problem: Problem::from(message),
        }
    }

    /// The same for another kind of reason.
    #[must_use]
    pub fn because(mut self, reason: Reason) -> Self {
        self.problem.reason = reason;
        self
    }

    /// The same with words before the sentence.
    #[must_use]
    pub fn of(mut self, what: &str) -> Self {
        self.problem.message = format!("{what}: {}", self.problem.message);
        self
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        if failure.retry {
            Self::Retry(failure.problem)
        } else {
            Self::Failed(failure.problem)
        }
    }
}
