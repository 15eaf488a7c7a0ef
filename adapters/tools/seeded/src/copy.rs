//! The copy: the workspace with its seeded bugs, their switches and their hunts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;

use crate::bug::{Bug, Edit, FormatError};
use crate::edit::{EditError, edited};
use crate::tree::Tree;

/// Below a crate, what its module `seeded` begins with in place of what it usually does.
const MODULE: &str = "/seeded/module.rs";
/// What it usually begins with.
const USUAL: &str = include_str!("../switches.rs");
/// How a manifest declares a hunt.
const HUNT: &str = "[[package.metadata.seeded]]";
/// How it declares a program, and how none.
const PROGRAM: &str = "[[bin]]";
const NO_PROGRAM: &str = "[[package.metadata.program]]";
/// Where it begins.
const PACKAGE: &str = "[package]\n";
/// What stands before the version of all crates.
const VERSION: &str = "[workspace.package]\nversion = \"";

/// Why there is no copy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    /// A file describes no bug.
    #[error("{path}: {source}")]
    Format {
        /// The file.
        path: String,
        /// Why.
        source: FormatError,
    },
    /// Two files of a crate have the same name.
    #[error("{path}: its crate has another bug of this name")]
    Twice {
        /// One of them.
        path: String,
    },
    /// A bug changes a file that is not there.
    #[error("{bug}: there is no file {file}")]
    NoFile {
        /// The bug.
        bug: String,
        /// The file.
        file: String,
    },
    /// A bug cannot take effect.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A crate has bugs, and no modules beside which that of the switches could stand.
    #[error("{0} declares no module")]
    NoModules(String),
}

/// All that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedErrors(pub Vec<SeedError>);

impl fmt::Display for SeedErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} things are wrong with the seeded bugs:", self.0.len())?;
        self.0.iter().try_for_each(|error| writeln!(f, "{error}"))
    }
}

impl std::error::Error for SeedErrors {}

/// The bugs of each crate, by its folder.
pub fn bugs(tree: &Tree) -> Result<BTreeMap<String, Vec<Bug>>, SeedErrors> {
    let described = tree.files.keys().filter(|path| path.ends_with(".txt"));
    let crates: BTreeSet<_> = described
        .filter_map(|path| path.split_once("/seeded/"))
        .map(|(folder, _)| folder)
        .filter(|folder| tree.files.contains_key(&format!("{folder}/Cargo.toml")))
        .collect();
    let (mut all, mut errors) = (BTreeMap::new(), Vec::new());
    for folder in crates {
        let (mut bugs, mut names) = (Vec::new(), BTreeSet::new());
        let below = format!("{folder}/seeded/");
        for path in tree.files.keys().filter(|path| path.starts_with(&below)) {
            let file = path.rsplit('/').next().unwrap_or_default();
            let Some(name) = file.strip_suffix(".txt") else { continue };
            if !names.insert(name) {
                errors.push(SeedError::Twice { path: path.clone() });
            }
            match Bug::parse(name, tree.text(path).unwrap_or_default()) {
                Ok(bug) => bugs.push(bug),
                Err(source) => errors.push(SeedError::Format { path: path.clone(), source }),
            }
        }
        all.insert(folder.to_owned(), bugs);
    }
    if errors.is_empty() { Ok(all) } else { Err(SeedErrors(errors)) }
}

/// The workspace with all of its bugs.
pub fn seeded(tree: &Tree) -> Result<Tree, SeedErrors> {
    let bugs = bugs(tree)?;
    let (mut copy, mut errors) = (tree.clone(), Vec::new());
    let mut edits = BTreeMap::<&str, Vec<(&str, &Edit)>>::new();
    for bug in bugs.values().flatten() {
        for edit in &bug.edits {
            edits.entry(&edit.file).or_default().push((&bug.name, edit));
        }
    }
    for (file, edits) in edits {
        match tree.text(file).map(|text| edited(file, text, &edits)) {
            Some(Ok(text)) => drop(copy.files.insert(file.to_owned(), text.into_bytes())),
            Some(Err(wrong)) => errors.extend(wrong.into_iter().map(SeedError::from)),
            None => errors.extend(edits.iter().map(|(bug, _)| SeedError::NoFile {
                bug: (*bug).to_owned(),
                file: file.to_owned(),
            })),
        }
    }
    for (folder, bugs) in &bugs {
        if let Err(error) = add_module(&mut copy, folder, bugs) {
            errors.push(error);
        }
    }
    for (path, content) in &mut copy.files {
        if path.ends_with("Cargo.toml") {
            if let Ok(manifest) = std::str::from_utf8(content) {
                *content = versioned(&hunting(manifest)).into_bytes();
            }
        }
    }
    if errors.is_empty() { Ok(copy) } else { Err(SeedErrors(errors)) }
}

/// Declares the hunts of a crate, which then has no program of its own. Cargo builds that for each test, in case it is run: none
/// is, and where it stands it would be taken for the one without bugs.
fn hunting(manifest: &str) -> String {
    if !manifest.contains(HUNT) {
        return manifest.to_owned();
    }
    let manifest = manifest.replace(HUNT, "[[test]]").replace(PROGRAM, NO_PROGRAM);
    manifest.replacen(PACKAGE, "[package]\nautobins = false\n", 1)
}

/// Gives all crates a version of their own. Cargo tells crates apart by their names, versions and places in their workspace,
/// and by nothing else: it would take a crate with seeded bugs for the one without, and run that, or the reverse.
fn versioned(manifest: &str) -> String {
    let at = manifest.find(VERSION).map(|at| at + VERSION.len());
    let end = at.and_then(|at| manifest[at..].find('"').map(|length| at + length));
    let Some((before, after)) = end.map(|end| manifest.split_at(end)) else {
        return manifest.to_owned();
    };
    format!("{before}+seeded{after}")
}

/// Gives a crate its module `seeded`, before all others: they use its macro.
fn add_module(copy: &mut Tree, folder: &str, bugs: &[Bug]) -> Result<(), SeedError> {
    let root = format!("{folder}/src/lib.rs");
    let missing = || SeedError::NoModules(root.clone());
    let lines: Vec<_> = copy.text(&root).ok_or_else(missing)?.lines().collect();
    let declares = |line: &&str| line.starts_with("pub mod ") || line.starts_with("mod ");
    let mut at = lines.iter().position(declares).ok_or_else(missing)?;
    while at > 0 && (lines[at - 1].starts_with("#[") || lines[at - 1].starts_with("///")) {
        at -= 1;
    }
    let (before, after) = lines.split_at(at);
    let lines = [before, &["#[macro_use]", "pub mod seeded;"], after].concat();
    let module = copy.text(&format!("{folder}{MODULE}")).unwrap_or(USUAL);
    let module = format!("{module}\n{}", declaration(bugs));
    copy.files.insert(root, (lines.join("\n") + "\n").into_bytes());
    copy.files.insert(format!("{folder}/src/seeded.rs"), module.into_bytes());
    Ok(())
}

/// The enum of a crate's bugs.
fn declaration(bugs: &[Bug]) -> String {
    let (mut variants, mut all) = (String::new(), String::new());
    for bug in bugs {
        for line in bug.about.lines() {
            let _ = writeln!(variants, "    /// {line}");
        }
        let _ = writeln!(variants, "    {},", bug.name);
        let _ = writeln!(all, "        Self::{},", bug.name);
    }
    format!(
        "/// A seeded bug.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum Bug {{\n{variants}}}\n\n\
         impl Bug {{\n    /// All of them.\n    pub const ALL: &[Self] = &[\n{all}    ];\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const BUG: &str = "# It forgets.\n\nfile a/src/b.rs\n--- old\nkeep();\n--- new\nif !seeded!(Forgets) { keep(); }\n";

    fn workspace(more: &[(&str, &str)]) -> Tree {
        let files = [
            ("a/Cargo.toml", "[package]\n\n[[package.metadata.seeded]]\nname = \"seeded\"\n"),
            ("a/src/lib.rs", "//! A.\n\n/// B.\npub mod b;\n"),
            ("a/src/b.rs", "fn b() {\n    keep();\n}\n"),
            ("a/seeded/module.rs", "// Switches.\n"),
            ("a/seeded/some/Forgets.txt", BUG),
        ];
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), text.as_bytes().to_vec());
        Tree { files: files.iter().chain(more).map(file).collect() }
    }

    #[test]
    fn a_crate_gets_its_bugs_its_switches_and_its_hunts() {
        let copy = seeded(&workspace(&[])).unwrap();
        let text = |path: &str| copy.text(path).unwrap();
        assert_eq!(text("a/src/b.rs"), "fn b() {\nif !seeded!(Forgets) { keep(); }\n}\n");
        assert_eq!(
            text("a/src/lib.rs"),
            "//! A.\n\n#[macro_use]\npub mod seeded;\n/// B.\npub mod b;\n"
        );
        let module = text("a/src/seeded.rs");
        assert!(module.starts_with("// Switches.\n"), "{module}");
        assert!(module.contains("    /// It forgets.\n    Forgets,\n"), "{module}");
        assert!(module.contains("= &[\n        Self::Forgets,\n    ];"), "{module}");
        assert!(text("a/Cargo.toml").contains("\n[[test]]\nname = \"seeded\"\n"));
    }

    /// Where the programs of the workspace are built, those of the copy would take their places.
    #[test]
    fn a_crate_with_hunts_has_no_program_and_another_keeps_its_own() {
        let program = "[package]\nname = \"x\"\n\n[[bin]]\nname = \"x\"\n";
        let with_hunts = format!("{program}\n[[package.metadata.seeded]]\nname = \"seeded\"\n");
        let more = [("b/Cargo.toml", program), ("c/Cargo.toml", &*with_hunts)];
        let copy = seeded(&workspace(&more)).unwrap();
        assert_eq!(copy.text("b/Cargo.toml"), Some(program));
        let hunting = copy.text("c/Cargo.toml").unwrap();
        assert!(hunting.starts_with("[package]\nautobins = false\n"), "{hunting}");
        assert!(!hunting.contains("[[bin]]") && hunting.contains("[[test]]"), "{hunting}");
    }

    #[test]
    fn no_crate_is_taken_for_the_one_without_bugs() {
        let copy = |manifest| seeded(&workspace(&[("Cargo.toml", manifest)])).unwrap();
        let of = |manifest| copy(manifest).text("Cargo.toml").unwrap().to_owned();
        let versions = of("[workspace.package]\nversion = \"1.2.3\"\nedition = \"2024\"\n");
        assert_eq!(
            versions,
            "[workspace.package]\nversion = \"1.2.3+seeded\"\nedition = \"2024\"\n"
        );
        let root = Tree::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))).unwrap();
        let copy = seeded(&root).unwrap();
        assert!(copy.text("Cargo.toml").unwrap().contains("+seeded\"\n"));
    }

    #[test]
    fn switches_that_a_crate_does_not_bring_itself_are_the_usual_ones() {
        let mut tree = workspace(&[]);
        tree.files.remove("a/seeded/module.rs");
        let copy = seeded(&tree).unwrap();
        let module = copy.text("a/src/seeded.rs").unwrap();
        assert!(module.starts_with(USUAL) && module.contains("    Forgets,\n"), "{module}");
    }

    #[test]
    fn errors_name_bug_and_file() {
        let twice = [("a/src/b.rs", "keep();\nkeep();\n")];
        let said = seeded(&workspace(&twice)).unwrap_err().to_string();
        assert!(said.contains("Forgets: a/src/b.rs has at lines [1, 2] each\nkeep();"), "{said}");
        let gone = [("a/src/b.rs", "\n")];
        let said = seeded(&workspace(&gone)).unwrap_err().to_string();
        assert!(said.contains("Forgets: a/src/b.rs has no lines\nkeep();"), "{said}");
        let elsewhere =
            [("a/seeded/Loses.txt", "# B.\nfile c.rs\n--- old\nd\n--- new\nseeded!(Loses)\n")];
        let said = seeded(&workspace(&elsewhere)).unwrap_err().to_string();
        assert!(said.contains("Loses: there is no file c.rs"), "{said}");
        let again = [("a/seeded/other/Forgets.txt", BUG)];
        let error = seeded(&workspace(&again)).unwrap_err();
        assert_eq!(error.0, [SeedError::Twice { path: "a/seeded/some/Forgets.txt".to_owned() }]);
        let overlap = BUG.replace("Forgets", "Loses");
        let said = seeded(&workspace(&[("a/seeded/Loses.txt", &overlap)])).unwrap_err().to_string();
        assert!(said.contains("Loses and Forgets both change line 2 of a/src/b.rs"), "{said}");
    }

    #[test]
    fn a_crate_without_modules_has_no_place_for_switches() {
        let error = seeded(&workspace(&[("a/src/lib.rs", "//! A.\n")])).unwrap_err();
        assert_eq!(error.0, [SeedError::NoModules("a/src/lib.rs".to_owned())]);
    }
}
