//! One real server among scripted ones.
