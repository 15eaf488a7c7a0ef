//! Figures as words and as a page.

#![allow(clippy::unwrap_used, reason = "tests")]

mod figures;
mod promtool;
mod summary;
