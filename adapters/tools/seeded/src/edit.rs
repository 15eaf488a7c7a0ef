//! Bugs take effect in a source: lines give way to others.

use std::ops::Range;

use crate::bug::Edit;

/// Why bugs cannot take effect in a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The lines are not there.
    #[error("{bug}: {file} has no lines\n{old}")]
    NoMatch {
        /// The bug.
        bug: String,
        /// The source.
        file: String,
        /// The lines.
        old: String,
    },
    /// The lines are there more than once.
    #[error("{bug}: {file} has at lines {lines:?} each\n{old}")]
    Matches {
        /// The bug.
        bug: String,
        /// The source.
        file: String,
        /// The lines.
        old: String,
        /// Where they begin.
        lines: Vec<usize>,
    },
    /// Two places share a line.
    #[error("{bug} and {other} both change line {line} of {file}")]
    Overlap {
        /// A bug.
        bug: String,
        /// The other, or the same.
        other: String,
        /// The source.
        file: String,
        /// The first line that both change.
        line: usize,
    },
}

/// A place that was found.
struct Place<'a> {
    lines: Range<usize>,
    bug: &'a str,
    new: &'a [String],
}

/// The text of `file` with all `edits`, each of which comes with the name of its bug. All of them are looked for in
/// the text as it was: none sees what another has made of it.
pub fn edited(file: &str, text: &str, edits: &[(&str, &Edit)]) -> Result<String, Vec<EditError>> {
    let lines: Vec<_> = text.lines().collect();
    let (mut places, mut errors) = (Vec::new(), Vec::new());
    for (bug, edit) in edits {
        match find(&lines, &edit.old)[..] {
            [at] => places.push(Place { lines: at..at + edit.old.len(), bug, new: &edit.new }),
            [] => errors.push(EditError::NoMatch {
                bug: (*bug).to_owned(),
                file: file.to_owned(),
                old: edit.old.join("\n"),
            }),
            ref several => errors.push(EditError::Matches {
                bug: (*bug).to_owned(),
                file: file.to_owned(),
                old: edit.old.join("\n"),
                lines: several.iter().map(|at| at + 1).collect(),
            }),
        }
    }
    places.sort_by_key(|place| place.lines.start);
    for pair in places.windows(2) {
        if pair[1].lines.start < pair[0].lines.end {
            errors.push(EditError::Overlap {
                bug: pair[0].bug.to_owned(),
                other: pair[1].bug.to_owned(),
                file: file.to_owned(),
                line: pair[1].lines.start + 1,
            });
        }
    }
    if errors.is_empty() { Ok(replaced(&lines, &places)) } else { Err(errors) }
}

/// Where `old` begins.
fn find(lines: &[&str], old: &[String]) -> Vec<usize> {
    let same = |(line, old): (&&str, &String)| line.trim() == old.trim();
    let windows = lines.windows(old.len()).enumerate();
    windows.filter(|(_, window)| window.iter().zip(old).all(same)).map(|(at, _)| at).collect()
}

fn replaced(lines: &[&str], places: &[Place<'_>]) -> String {
    let (mut text, mut next) = (String::new(), 0);
    let mut push = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for place in places {
        lines[next..place.lines.start].iter().for_each(|line| push(line));
        place.new.iter().for_each(|line| push(line));
        next = place.lines.end;
    }
    lines[next..].iter().for_each(|line| push(line));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "fn a() {\n    keep();\n    sync();\n}\n\nfn b() {\n    keep();\n    tell();\n}\n";

    fn edit(old: &[&str], new: &[&str]) -> Edit {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        Edit { file: "a.rs".to_owned(), old: lines(old), new: lines(new) }
    }

    #[test]
    fn lines_give_way_to_others_whatever_their_indentation() {
        let one = edit(&["sync();"], &["if !seeded!(One) {", "    sync();", "}"]);
        let two = edit(&["    keep();", "        tell();"], &["tell();"]);
        let text = edited("a.rs", TEXT, &[("Two", &two), ("One", &one)]).unwrap();
        assert_eq!(
            text,
            "fn a() {\n    keep();\nif !seeded!(One) {\n    sync();\n}\n}\n\nfn b() {\ntell();\n}\n"
        );
    }

    #[test]
    fn lines_that_are_not_there_are_an_error() {
        let errors = edited("a.rs", TEXT, &[("One", &edit(&["sink();"], &["x"]))]).unwrap_err();
        let (bug, file, old) = ("One".to_owned(), "a.rs".to_owned(), "sink();".to_owned());
        assert_eq!(errors, [EditError::NoMatch { bug, file, old }]);
    }

    #[test]
    fn lines_that_are_there_twice_are_an_error() {
        let errors = edited("a.rs", TEXT, &[("One", &edit(&["keep();"], &["x"]))]).unwrap_err();
        let (bug, file, old) = ("One".to_owned(), "a.rs".to_owned(), "keep();".to_owned());
        assert_eq!(errors, [EditError::Matches { bug, file, old, lines: vec![2, 7] }]);
    }

    #[test]
    fn two_bugs_that_change_a_line_are_an_error_and_neighbours_are_none() {
        let one = edit(&["keep();", "sync();"], &["x"]);
        let two = edit(&["sync();", "}"], &["y"]);
        let errors = edited("a.rs", TEXT, &[("Two", &two), ("One", &one)]).unwrap_err();
        let (bug, other, file) = ("One".to_owned(), "Two".to_owned(), "a.rs".to_owned());
        assert_eq!(errors, [EditError::Overlap { bug, other, file, line: 3 }]);
        let three = edit(&["fn a() {"], &["z"]);
        let text = edited("a.rs", TEXT, &[("One", &one), ("Three", &three)]).unwrap();
        assert!(text.starts_with("z\nx\n}\n"));
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let wrong = [("One", &edit(&["sink();"], &["x"])), ("Two", &edit(&["keep();"], &["y"]))];
        assert_eq!(edited("a.rs", TEXT, &wrong).unwrap_err().len(), 2);
    }
}
