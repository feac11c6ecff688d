//! An API error: Prometheus' error types with their status codes.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::{QueryError, StoreError};

/// Why a request has no answer.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
}

impl ApiError {
    /// A wrong parameter or body.
    pub fn bad_data(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "bad_data",
            message: message.into(),
        }
    }

    /// A wrong parameter, named as Prometheus names it.
    pub fn parameter(name: &str, reason: impl std::fmt::Display) -> Self {
        Self::bad_data(format!("invalid parameter {name:?}: {reason}"))
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            kind: "not_found",
            message: message.into(),
        }
    }

    /// It is there, and nobody may use it.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::FORBIDDEN,
            kind: "unavailable",
            message: message.into(),
        }
    }

    /// There is such a thing, but not for this method.
    pub fn wrong_method(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::METHOD_NOT_ALLOWED,
            kind: "bad_data",
            message: message.into(),
        }
    }

    /// Not now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            kind: "unavailable",
            message: message.into(),
        }
    }

    /// A fault of this server.
    pub fn internal(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            kind: "internal",
            message: message.into(),
        }
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        let (status, kind) = match error {
            QueryError::BadData(_) => return Self::parameter("query", message),
            QueryError::Execution(_) => (StatusCode::UNPROCESSABLE_ENTITY, "execution"),
            QueryError::Timeout => (StatusCode::SERVICE_UNAVAILABLE, "timeout"),
            // 499 is what the field answers to a client that is no longer there.
            QueryError::Canceled => (StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST), "canceled"),
            QueryError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            QueryError::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        Self { status, kind, message }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotReady => Self::unavailable(error.to_string()),
            other => Self::internal(other.to_string()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = serde_json::json!({"status": "error", "errorType": self.kind, "error": self.message});
        (
            self.status,
            [(header::CONTENT_TYPE, "application/json")],
            body.to_string(),
        )
            .into_response()
    }
}
