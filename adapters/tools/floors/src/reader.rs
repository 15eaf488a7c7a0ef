//! What a source uses of its own crate: every path that begins there.

use proc_macro2::{Delimiter, LexError, Spacing, TokenStream, TokenTree};

/// A module as a path from the root; the root is empty.
pub type Module = Vec<String>;

/// What is used, and by which line something would be hidden.
type Read = (Vec<Use>, Vec<(usize, &'static str)>);

/// One use of a module by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) line: usize,
    /// As written.
    pub(crate) text: String,
    /// As a path from the root.
    pub(crate) path: Vec<String>,
}

/// Every path of a source that begins with `crate`, `super` or `self`, and what would hide one.
pub(crate) fn uses(module: &[String], source: &str) -> Result<Read, LexError> {
    let tokens: TokenStream = source.parse()?;
    let mut reader = Reader { module: module.to_vec(), ..Reader::default() };
    reader.read(tokens);
    Ok((reader.uses, reader.tricks))
}

#[derive(Debug, Default)]
struct Reader {
    /// The file, and the modules inside it around the present token.
    module: Module,
    uses: Vec<Use>,
    tricks: Vec<(usize, &'static str)>,
}

impl Reader {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut i = 0;
        while i < tokens.len() {
            let rest = &tokens[i..];
            let line = rest[0].span().start().line;
            i += match rest {
                // Whom an item is visible to says nothing about what it uses.
                [TokenTree::Ident(word), TokenTree::Group(group), ..]
                    if word == "pub" && group.delimiter() == Delimiter::Parenthesis =>
                {
                    let names: Vec<_> = group.stream().into_iter().collect();
                    // `pub (crate::a::B)`, the field of a tuple, is a type like any other.
                    let restricts = names.len() == 1
                        || matches!(names.first(), Some(TokenTree::Ident(word)) if word == "in");
                    if restricts { 2 } else { 1 }
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Group(body), ..]
                    if word == "mod" && body.delimiter() == Delimiter::Brace =>
                {
                    self.module.push(name.to_string());
                    self.read(body.stream());
                    self.module.pop();
                    3
                }
                [TokenTree::Ident(word), TokenTree::Punct(bang), ..]
                    if word == "include" && bang.as_char() == '!' =>
                {
                    self.tricks.push((line, "`include!` hides what it names"));
                    2
                }
                [TokenTree::Ident(word), TokenTree::Ident(_), ..] if word == "extern" => 2,
                [TokenTree::Punct(hash), TokenTree::Group(group), ..]
                    if hash.as_char() == '#' && names_a_file(&group.stream()) =>
                {
                    self.tricks.push((line, "`#[path]` hides where a module stands"));
                    2
                }
                [TokenTree::Ident(first), ..] => match self.begin(&first.to_string()) {
                    Some(start) if is_path(&rest[1..]) => {
                        1 + self.path(line, first.to_string(), start, &rest[1..])
                    }
                    // `use crate as house` or `use super as upstairs`; `self` alone is a value.
                    Some(_) if first == "crate" || first == "super" => {
                        self.tricks.push((line, "a module under another name hides what it names"));
                        1
                    }
                    Some(_) if is_word(rest.get(1), "as") && is_item(&tokens[..i], "use") => {
                        self.tricks.push((line, "a module under another name hides what it names"));
                        1
                    }
                    Some(_) if is_item(&tokens[..i], "crate") => {
                        self.tricks.push((line, "a crate that names itself hides what it names"));
                        1
                    }
                    _ => 1,
                },
                [TokenTree::Group(group), ..] => {
                    self.read(group.stream());
                    1
                }
                _ => 1,
            };
        }
    }

    /// Where a path goes that begins with this word.
    fn begin(&self, word: &str) -> Option<Module> {
        match word {
            "crate" => Some(Module::new()),
            "self" => Some(self.module.clone()),
            "super" => Some(up(self.module.clone())),
            _ => None,
        }
    }

    /// Reads on after the beginning of a path, at its `::`; tells how many tokens it took.
    fn path(&mut self, line: usize, text: String, path: Module, tokens: &[TokenTree]) -> usize {
        let (mut text, mut path, mut taken) = (text, path, 0);
        while is_path(&tokens[taken..]) {
            text.push_str("::");
            match &tokens[taken + 2..] {
                [TokenTree::Ident(name), ..] => {
                    let name = name.to_string();
                    text.push_str(&name);
                    match &*name {
                        "super" => path = up(path),
                        "self" => {}
                        _ => path.push(name),
                    }
                    taken += 3;
                }
                [TokenTree::Group(branches), ..] if branches.delimiter() == Delimiter::Brace => {
                    let branches: Vec<_> = branches.stream().into_iter().collect();
                    for branch in branches.split(|token| is_punct(Some(token), ',')) {
                        let [first, rest @ ..] = branch else { continue };
                        let word = first.to_string();
                        let mut path = path.clone();
                        match &*word {
                            "self" | "*" => {}
                            "super" => path = up(path),
                            _ => path.push(word.clone()),
                        }
                        self.path(first.span().start().line, format!("{text}{word}"), path, rest);
                    }
                    return taken + 3;
                }
                // `*`, or generics of a macro's making: the path is known as far as it matters.
                _ => {
                    text.push('*');
                    taken += 2;
                    break;
                }
            }
        }
        self.uses.push(Use { line, text, path });
        taken
    }
}

/// The module above; above the root there is none, and the compiler says so.
fn up(mut module: Module) -> Module {
    module.pop();
    module
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_word(token: Option<&TokenTree>, wanted: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(word)) if word == wanted)
}

/// Whether the last token before this one is that keyword.
fn is_item(before: &[TokenTree], keyword: &str) -> bool {
    is_word(before.last(), keyword)
}

/// Whether `::` comes next.
fn is_path(tokens: &[TokenTree]) -> bool {
    matches!(
        tokens,
        [TokenTree::Punct(first), TokenTree::Punct(second), ..]
            if first.as_char() == ':' && first.spacing() == Spacing::Joint && second.as_char() == ':'
    )
}

fn names_a_file(attribute: &TokenStream) -> bool {
    let mut tokens = attribute.clone().into_iter();
    is_word(tokens.next().as_ref(), "path") && is_punct(tokens.next().as_ref(), '=')
}
