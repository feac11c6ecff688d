//! To be written
