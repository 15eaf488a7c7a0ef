//! How the pieces of a diagram look, on light and on dark.

/// The style sheet. The colours of the states differ in lightness as well as in hue.
pub(super) const STYLE: &str = "\
svg { --paper: #ffffff; --ink: #1b1f24; --faint: #6e7781; --looking: #bf6a02; --following: #0a66c2; \
--leading: #1a7f37; --observing: #8250df; --message: #57606a; --lost: #cf222e }
@media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --faint: #8d96a0; \
--looking: #f0a03c; --following: #6cb6ff; --leading: #57d977; --observing: #c297ff; --message: #9aa5b1; \
--lost: #ff7b72 } }
svg { background: var(--paper) }
text { font: 11px ui-sans-serif, system-ui, sans-serif; fill: var(--ink); paint-order: stroke; \
stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round }
.title { font-size: 15px; font-weight: 600 }
.name { font-size: 14px; font-weight: 600; text-anchor: middle }
.time, .why, .gap { fill: var(--faint) }
.time { text-anchor: end; font-variant-numeric: tabular-nums }
.label { fill: var(--message); font-size: 10px; text-anchor: middle }
.tick { stroke: var(--faint); stroke-opacity: .25 }
.looking { stroke: var(--looking); stroke-width: 3; stroke-dasharray: 5 4 }
.following { stroke: var(--following); stroke-width: 4 }
.leading { stroke: var(--leading); stroke-width: 8 }
.observing { stroke: var(--observing); stroke-width: 4; stroke-dasharray: 1 4 }
.dot { fill: var(--ink) }
.disk { fill: var(--ink) }
.arrow { stroke: var(--message); stroke-width: 1.2; fill: none }
.head { fill: var(--message) }
.lost { stroke: var(--lost); stroke-width: 1.6; fill: none }
.crash { stroke: var(--lost); stroke-width: 3; fill: none }
";

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
