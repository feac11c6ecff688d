//! promtool rule unit tests.
