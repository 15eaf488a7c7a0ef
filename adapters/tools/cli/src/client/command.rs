//! What can be asked of the client: one grammar for the command line, the shell and the lines of a multi.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::error::ClientError;
use super::secret::Secret;
use super::words::words;

/// A command.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List a node's children.
    Ls {
        /// With the node's stat.
        #[arg(short)]
        stat: bool,
        path: String,
    },
    /// Print a node's data: as text, or in hexadecimal if they are none.
    Get {
        /// With the node's stat.
        #[arg(short)]
        stat: bool,
        path: String,
    },
    Create(Create),
    Set(Set),
    Delete(Delete),
    /// Delete a node with all below it, as `delete -r` does.
    Deleteall {
        path: String,
    },
    /// Print a node's stat.
    Stat {
        path: String,
    },
    /// Print what happens to a node, until interrupted.
    Watch {
        /// And to all nodes below it.
        #[arg(short)]
        recursive: bool,
        path: String,
    },
    /// Do the create, set, delete and check commands in a file, one a line: all or none.
    ///
    /// `check [-v VERSION] PATH` is for a multi only. Empty lines and those with # are skipped.
    Multi {
        /// "-" for stdin.
        file: PathBuf,
    },
    /// Print a node's access list.
    #[command(name = "getAcl", alias = "getacl")]
    GetAcl {
        /// With the node's stat.
        #[arg(short)]
        stat: bool,
        path: String,
    },
    /// Set a node's access list.
    #[command(name = "setAcl", alias = "setacl")]
    SetAcl {
        /// Only if the access list has this version.
        #[arg(short = 'v', value_name = "VERSION")]
        version: Option<i32>,
        path: String,
        /// SCHEME:ID:PERMISSIONS, such as world:anyone:cdrwa; more of them after commas.
        acl: String,
    },
    /// Prove an identity to the server.
    Addauth {
        /// Such as digest.
        scheme: String,
        /// USER:PASSWORD.
        // More than one are refused without a word of them.
        #[arg(required = true, num_args = 1.., allow_hyphen_values = true, value_name = "USER:PASSWORD")]
        identity: Vec<Secret>,
    },
    /// Wait until the server has all that was decided before.
    Sync {
        path: String,
    },
}

/// Create a node, and print its path.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// It goes when the session ends.
    #[arg(short)]
    pub(super) ephemeral: bool,
    /// A number, counted by the parent, is added to its name.
    #[arg(short)]
    pub(super) sequential: bool,
    /// It goes when its last child has gone.
    #[arg(short, conflicts_with_all = ["ephemeral", "sequential", "ttl"])]
    pub(super) container: bool,
    /// It goes when it was not changed for so long and has no children; not with every server.
    #[arg(short = 't', value_name = "MS", conflicts_with = "ephemeral",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) ttl: Option<u64>,
    /// First those above it that are missing.
    #[arg(short)]
    pub(super) parents: bool,
    /// The data are those of this file.
    #[arg(short, value_name = "FILE", conflicts_with = "data")]
    pub(super) file: Option<PathBuf>,
    pub(super) path: String,
    pub(super) data: Option<String>,
}

/// Set a node's data.
#[derive(Debug, Args)]
pub(super) struct Set {
    /// Only if the node has this version.
    #[arg(short = 'v', value_name = "VERSION")]
    pub(super) version: Option<i32>,
    /// The data are those of this file.
    #[arg(short, value_name = "FILE", conflicts_with = "data")]
    pub(super) file: Option<PathBuf>,
    pub(super) path: String,
    #[arg(required_unless_present = "file")]
    pub(super) data: Option<String>,
}

/// Delete a node.
#[derive(Debug, Args)]
pub(super) struct Delete {
    /// Only if the node has this version.
    #[arg(short = 'v', value_name = "VERSION", conflicts_with = "recursive")]
    pub(super) version: Option<i32>,
    /// With all below it; not all at once.
    #[arg(short)]
    pub(super) recursive: bool,
    pub(super) path: String,
}

/// A line of the shell.
#[derive(Debug, Parser)]
#[command(multicall = true, help_template = "{subcommands}")]
struct Typed {
    #[command(subcommand)]
    line: Line,
}

/// See [`Typed`].
#[derive(Debug, Subcommand)]
pub(super) enum Line {
    #[command(flatten)]
    Command(Command),
    /// End.
    #[command(alias = "exit")]
    Quit,
}

impl Line {
    /// Reads a line; none if it is empty.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, ClientError> {
        let words = words(text)?;
        if words.is_empty() {
            return Ok(None);
        }
        Ok(Some(Typed::try_parse_from(words)?.line))
    }

    /// The names of all commands.
    pub(super) fn names() -> Vec<String> {
        let all = <Typed as clap::CommandFactory>::command();
        let mut names: Vec<_> =
            all.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        names.push("help".to_owned());
        names
    }
}

/// A line of a multi.
#[derive(Debug, Parser)]
#[command(multicall = true, disable_help_subcommand = true)]
struct Together {
    #[command(subcommand)]
    part: Part,
}

/// See [`Together`].
#[derive(Debug, Subcommand)]
pub(super) enum Part {
    Create(Create),
    Set(Set),
    Delete(Delete),
    /// Do nothing of the multi unless the node has this version.
    Check {
        #[arg(short = 'v', value_name = "VERSION", default_value_t = -1, allow_negative_numbers = true)]
        version: i32,
        path: String,
    },
}

impl Part {
    /// Reads a line; none if it is empty or a comment.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, ClientError> {
        if text.trim_start().starts_with('#') {
            return Ok(None);
        }
        let words = words(text)?;
        if words.is_empty() {
            return Ok(None);
        }
        Ok(Some(Together::try_parse_from(words)?.part))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_grammars_are_sound() {
        Typed::command().debug_assert();
        Together::command().debug_assert();
    }

    #[test]
    fn lines() {
        let parsed = Line::parse("create -es -p /a 'b c'").unwrap();
        let Some(Line::Command(Command::Create(create))) = parsed else { panic!("{parsed:?}") };
        assert!(create.ephemeral && create.sequential && create.parents && !create.container);
        assert_eq!((create.path.as_str(), create.data.as_deref()), ("/a", Some("b c")));
        assert!(matches!(Line::parse(" \t"), Ok(None)));
        assert!(matches!(Line::parse("exit"), Ok(Some(Line::Quit))));
        for wrong in ["create", "set /a", "create -c -e /a", "delete -r -v 1 /a", "check /a", "lss"]
        {
            assert!(Line::parse(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(Part::parse("check -v 3 /a"), Ok(Some(Part::Check { version: 3, .. }))));
        assert!(matches!(Part::parse(" # nothing"), Ok(None)));
        assert!(Part::parse("ls /a").is_err());
        assert!(Line::names().contains(&"getAcl".to_owned()));
    }

    /// Whatever is wrong with the line, the complaint does not repeat the password.
    #[test]
    fn a_password_is_not_repeated() {
        for line in ["addauth digest ann:se same", "addauth digest ann:same --same"] {
            if let Err(error) = Line::parse(line) {
                assert!(!error.to_string().contains("same"), "{error}");
            }
        }
    }
}
