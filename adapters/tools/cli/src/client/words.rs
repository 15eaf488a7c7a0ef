//! A line as words, with quotes as shells have them.

use thiserror::Error;

/// Why a line has no words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum WordsError {
    #[error("a quotation mark {0} is not closed")]
    Open(char),
    #[error("nothing stands behind the last \\")]
    Escape,
}

/// The words of a line: `'…'` as it stands, in `"…"` and outside `\` before a character for that character itself.
pub(super) fn words(line: &str) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    // None between words: an empty pair of quotation marks is a word.
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match (quote, character) {
            (Some(mark), end) if mark == end => quote = None,
            (Some('"') | None, '\\') => {
                word.get_or_insert_default().push(rest.next().ok_or(WordsError::Escape)?);
            }
            (None, mark @ ('"' | '\'')) => {
                quote = Some(mark);
                word.get_or_insert_default();
            }
            (None, space) if space.is_whitespace() => words.extend(word.take()),
            (_, other) => word.get_or_insert_default().push(other),
        }
    }
    match quote {
        Some(mark) => Err(WordsError::Open(mark)),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes() {
        let table: [(&str, &[&str]); 6] = [
            ("", &[]),
            ("  ls  /a ", &["ls", "/a"]),
            (r#"set /a "two words" 'and "these"'"#, &["set", "/a", "two words", "and \"these\""]),
            (r#"set /a """#, &["set", "/a", ""]),
            (r#"set /a\ b "\"\\" '\'"#, &["set", "/a b", "\"\\", "\\"]),
            (r#"set /a b"c d"e"#, &["set", "/a", "bc de"]),
        ];
        for (line, expected) in table {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        assert_eq!(words("set /a 'b"), Err(WordsError::Open('\'')));
        assert_eq!(words("set /a\\"), Err(WordsError::Escape));
    }
}
