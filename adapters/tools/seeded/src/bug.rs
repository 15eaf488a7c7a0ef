//! A seeded bug: what it is, and its places in the sources.

/// A seeded bug, as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    /// The name of its file, and of its switch.
    pub name: String,
    /// What is wrong, and where that is known from.
    pub about: String,
    /// Its places.
    pub edits: Vec<Edit>,
}

/// One place of a bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Which source, from the root of the workspace.
    pub file: String,
    /// The lines there.
    pub old: Vec<String>,
    /// The lines in their place, with the switch.
    pub new: Vec<String>,
}

/// Why a text describes no bug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The first lines do not say what is wrong.
    #[error("it does not begin with `# ` and what is wrong")]
    NoDescription,
    /// A line is neither of a section nor the start of one.
    #[error("line {0} is none of `file <path>`, `--- old` and `--- new` in turn")]
    Stray(usize),
    /// A section has no lines.
    #[error("the section before line {0} is empty")]
    Empty(usize),
    /// There is no place.
    #[error("it changes nothing")]
    NoEdit,
    /// Lines `new` do not ask for the switch.
    #[error("`new` for {file} does not contain `{switch}`")]
    NoSwitch {
        /// Where.
        file: String,
        /// The switch.
        switch: String,
    },
}

/// Which lines are being read.
enum Part {
    Between,
    Old,
    New,
}

impl Bug {
    /// Reads what the file of a bug says.
    pub fn parse(name: &str, text: &str) -> Result<Self, FormatError> {
        let about: Vec<_> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        if about.is_empty() {
            return Err(FormatError::NoDescription);
        }
        let (mut edits, mut file, mut part) = (Vec::<Edit>::new(), None, Part::Between);
        for (index, line) in text.lines().enumerate().skip(about.len()) {
            let stray = FormatError::Stray(index + 1);
            if let Some(path) = line.strip_prefix("file ") {
                finish(&mut edits, &part, index + 1)?;
                (file, part) = (Some(path.trim().to_owned()), Part::Between);
            } else if line == "--- old" {
                finish(&mut edits, &part, index + 1)?;
                let file = file.clone().ok_or(stray)?;
                edits.push(Edit { file, old: Vec::new(), new: Vec::new() });
                part = Part::Old;
            } else if line == "--- new" {
                if !matches!(part, Part::Old) {
                    return Err(stray);
                }
                part = Part::New;
            } else {
                match (&part, edits.last_mut()) {
                    (Part::Old, Some(edit)) => edit.old.push(line.to_owned()),
                    (Part::New, Some(edit)) => edit.new.push(line.to_owned()),
                    _ if line.trim().is_empty() => {}
                    _ => return Err(stray),
                }
            }
        }
        finish(&mut edits, &part, text.lines().count() + 1)?;
        let bug = Self { name: name.to_owned(), about: about.join("\n"), edits };
        bug.check()?;
        Ok(bug)
    }

    fn check(&self) -> Result<(), FormatError> {
        if self.edits.is_empty() {
            return Err(FormatError::NoEdit);
        }
        let switch = format!("seeded!({})", self.name);
        match self.edits.iter().find(|edit| !edit.new.join("\n").contains(&switch)) {
            Some(edit) => Err(FormatError::NoSwitch { file: edit.file.clone(), switch }),
            None => Ok(()),
        }
    }
}

/// A place has been read, if one was begun: it has both sections. Empty lines between sections belong to neither.
fn finish(edits: &mut [Edit], part: &Part, line: usize) -> Result<(), FormatError> {
    let Some(edit) = edits.last_mut() else { return Ok(()) };
    for lines in [&mut edit.old, &mut edit.new] {
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
    }
    let whole = !edit.old.is_empty() && !edit.new.is_empty() && !matches!(part, Part::Old);
    if whole { Ok(()) } else { Err(FormatError::Empty(line)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "# It forgets.\n# (ZOOKEEPER-1)\n\nfile a.rs\n--- old\nkeep();\n--- new\nif !seeded!(Forgets) \
                       {\n    keep();\n}\n";

    #[test]
    fn what_is_wrong_and_where() {
        let more = "\n--- old\nlet a = b;\n--- new\nlet a = seeded!(Forgets);\n\nfile b.rs\n--- old\nc\n--- new\n\
                    c || seeded!(Forgets)\n";
        let bug = Bug::parse("Forgets", &(ONE.to_owned() + more)).unwrap();
        assert_eq!(bug.about, "It forgets.\n(ZOOKEEPER-1)");
        let files: Vec<_> = bug.edits.iter().map(|edit| edit.file.as_str()).collect();
        assert_eq!(files, ["a.rs", "a.rs", "b.rs"]);
        assert_eq!(bug.edits[0].old, ["keep();"]);
        assert_eq!(bug.edits[0].new, ["if !seeded!(Forgets) {", "    keep();", "}"]);
        assert_eq!(bug.edits[1].new, ["let a = seeded!(Forgets);"]);
    }

    #[test]
    fn what_describes_no_bug_is_refused() {
        let refused = |text: &str| Bug::parse("Forgets", text).unwrap_err();
        assert_eq!(refused("file a.rs\n"), FormatError::NoDescription);
        assert_eq!(refused("# A.\n"), FormatError::NoEdit);
        assert_eq!(refused("# A.\n--- old\n"), FormatError::Stray(2));
        assert_eq!(refused("# A.\nfile a.rs\n--- new\n"), FormatError::Stray(3));
        assert_eq!(refused("# A.\nfile a.rs\nb\n"), FormatError::Stray(3));
        assert_eq!(refused("# A.\nfile a.rs\n--- old\n\n--- new\nc\n"), FormatError::Empty(7));
        assert_eq!(refused("# A.\nfile a.rs\n--- old\nb\n"), FormatError::Empty(5));
        let other = Bug::parse("Remembers", ONE).unwrap_err();
        let switch = "seeded!(Remembers)".to_owned();
        assert_eq!(other, FormatError::NoSwitch { file: "a.rs".to_owned(), switch });
    }
}
