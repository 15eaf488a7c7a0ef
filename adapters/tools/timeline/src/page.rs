//! The page: words, measures, the picture, and the lines that show each claim; one HTML file that needs no script.

use std::fmt::Write as _;

use crate::order::Order;
use crate::picture::{draw, escaped};
use crate::report;
use crate::stamp::{clock, span};
use crate::view::View;
use crate::words::{story, thing};

/// Everything, as HTML.
pub(crate) fn page(view: &View<'_>, order: &Order, title: &str, beyond: usize) -> String {
    let shown = escaped(title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{shown}</title>\n<style>{STYLE}</style></head><body>\n<h1>{shown}</h1>\n<ul>\n"
    );
    for told in report::read(view, beyond) {
        let _ = writeln!(out, "<li>{}</li>", escaped(&told));
    }
    out += "</ul>\n";
    for (number, election) in &view.elections {
        let _ = write!(out, "<h2>Election {number}, {}</h2>\n<p>", clock(election.from));
        let claims: Vec<_> = story(view.lanes, order, election)
            .into_iter()
            .map(|claim| linked(&claim.text, claim.event))
            .collect();
        let _ = writeln!(out, "{}.</p>", claims.join("; "));
        if !election.phases.is_empty() {
            out += "<table><tr><th>phase</th><th>took</th><th>from</th><th>to</th></tr>\n";
            for phase in &election.phases {
                let (from, to) = (view.place(phase.from), view.place(phase.to));
                let _ = writeln!(
                    out,
                    "<tr><td>{}</td><td class=\"r\">{}</td><td>{}</td><td>{}</td></tr>",
                    phase.name,
                    span(phase.micros),
                    linked(&from, Some(phase.from)),
                    linked(&to, Some(phase.to))
                );
            }
            out += "</table>\n";
        }
        if !election.waits.is_empty() {
            out += "<table><tr><th>server</th><th>waited for</th><th>so long</th><th>then took</th><th>until</th></tr>\n";
            for wait in &election.waits {
                let until = linked(&view.place(wait.until), Some(wait.until));
                let whom =
                    linked(&format!("{} of {}", thing(wait.what), wait.whom), Some(wait.cause));
                let _ = writeln!(
                    out,
                    "<tr><td>{}</td><td>{whom}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td>{until}</td></tr>",
                    wait.who,
                    span(wait.micros),
                    span(wait.then)
                );
            }
            out += "</table>\n";
        }
    }
    let _ =
        writeln!(out, "<h2>Picture</h2>\n<div class=\"picture\">{}</div>", draw(view, title, true));
    lines(view, &mut out);
    out += "</body></html>\n";
    out
}

fn linked(text: &str, event: Option<usize>) -> String {
    let text = escaped(text);
    event.map_or_else(|| text.clone(), |at| format!("<a href=\"#e{at}\">{text}</a>"))
}

/// The lines of the events, in order: what every claim links to.
fn lines(view: &View<'_>, out: &mut String) {
    *out += "<h2>Lines</h2>\n<ol class=\"lines\">\n";
    for at in &view.events {
        let place = escaped(&view.place(*at));
        let text = escaped(&view.lanes.events[*at].text);
        let _ = writeln!(out, "<li id=\"e{at}\"><b>{place}</b> {text}</li>");
    }
    *out += "</ol>\n";
}

/// Light and dark as the reader's system says; the picture's attributes are overruled on dark paper.
const STYLE: &str = "
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--faint:#59636e;--line:#d1d9e0;--link:#0a66c2}
@media(prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--faint:#9198a1;--line:#3d444d;--link:#6cb6ff}}
body{background:var(--paper);color:var(--ink);font:14px/1.5 system-ui,sans-serif;margin:24px;max-width:1500px}
h1{font-size:20px}h2{font-size:16px;margin-top:28px}p{max-width:80ch}a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
table{border-collapse:collapse;margin:8px 0}th,td{text-align:left;padding:2px 14px 2px 0;border-bottom:1px solid var(--line)}th{color:var(--faint);font-weight:500}
.r{text-align:right;font-variant-numeric:tabular-nums}.picture{overflow-x:auto}.picture a:hover{text-decoration:none}
.lines{font:12px/1.5 ui-monospace,monospace;padding-left:0;list-style:none;overflow-wrap:anywhere}.lines b{color:var(--faint);font-weight:500}
.lines li:target{background:#f5d76e;color:#1b1f24}
svg .paper{fill:var(--paper)}svg .n,svg .n a text{fill:var(--ink)}svg .w{fill:var(--faint)}svg .arrow{stroke:var(--faint)}svg .head{fill:var(--faint)}
";

#[cfg(test)]
mod tests {
    use super::STYLE;

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for word in ["@import", "url(", "http"] {
            assert!(!STYLE.contains(word), "{word}");
        }
    }
}
