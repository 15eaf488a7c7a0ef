//! How the pieces of a diagram look.
//!
//! Plain attributes on each piece: style sheets, and custom properties most of all, are drawn by browsers only. For
//! the same reason the paper is a rectangle of its own, and texts have no outline.

use quorate_core::vote::ServerState;

/// What all pieces have that say nothing else.
pub(super) const ALL: &str = "font-family=\"sans-serif\" font-size=\"11\" fill=\"#1b1f24\"";
pub(super) const PAPER: &str = "fill=\"#ffffff\"";
pub(super) const TITLE: &str = "font-size=\"15\" font-weight=\"600\"";
pub(super) const NAME: &str = "font-size=\"14\" font-weight=\"600\" text-anchor=\"middle\"";
/// The reason behind what happened.
pub(super) const WHY: &str = "fill=\"#6e7781\"";
pub(super) const TIME: &str = "fill=\"#6e7781\" text-anchor=\"end\"";
pub(super) const LABEL: &str = "fill=\"#57606a\" font-size=\"10\" text-anchor=\"middle\"";
pub(super) const TICK: &str = "stroke=\"#6e7781\" stroke-opacity=\"0.25\"";
pub(super) const ARROW: &str = "stroke=\"#57606a\" stroke-width=\"1.2\" fill=\"none\"";
pub(super) const HEAD: &str = "fill=\"#57606a\"";
pub(super) const LOST: &str = "stroke=\"#cf222e\" stroke-width=\"1.6\" fill=\"none\"";
pub(super) const CRASH: &str = "stroke=\"#cf222e\" stroke-width=\"3\" fill=\"none\"";

/// The line of a server in a state. The colours differ in lightness as well as in hue, the lines in width.
pub(super) fn lifeline(state: ServerState) -> &'static str {
    match state {
        ServerState::Looking => "stroke=\"#bf6a02\" stroke-width=\"3\" stroke-dasharray=\"5 4\"",
        ServerState::Following => "stroke=\"#0a66c2\" stroke-width=\"4\"",
        ServerState::Leading => "stroke=\"#1a7f37\" stroke-width=\"8\"",
        ServerState::Observing => "stroke=\"#8250df\" stroke-width=\"4\" stroke-dasharray=\"1 4\"",
    }
}

/// The room of one server.
pub(super) const COLUMN: i64 = 250;
/// The room for the times.
pub(super) const LEFT: i64 = 96;
/// The room for title, legend and names.
pub(super) const TOP: i64 = 96;
/// The height of a line of text.
pub(super) const LINE: i64 = 14;
/// The characters of a note that fit beside a line.
pub(super) const NOTE_CHARS: usize = 42;
/// The same on an arrow.
pub(super) const LABEL_CHARS: usize = 34;
/// What a note may need beyond its column.
pub(super) const NOTE_REST: i64 = 50;
