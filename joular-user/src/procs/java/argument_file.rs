//! Cuts a file of arguments (`java @FILE`) into words, as the launcher does:
//! <https://docs.oracle.com/en/java/javase/21/docs/specs/man/java.html#java-command-line-argument-files>.

/// Words kept of a file: the launcher's own options come first.
const MAX_WORDS: usize = 4096;

/// The words of a file's text, in its order.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next()
        && words.len() < MAX_WORDS
    {
        match (quote, character) {
            (Some(_), '\\') => match characters.next() {
                // The word goes on in the next line.
                Some('\n' | '\r') => while characters.next_if(|next| is_space(*next)).is_some() {},
                Some(escaped) => word.get_or_insert_default().push(unescaped(escaped)),
                None => {}
            },
            (Some(open), _) if character == open => quote = None,
            // A quote that is not closed ends with its line.
            (Some(_), '\n' | '\r') => {
                quote = None;
                words.extend(word.take());
            }
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#') => {
                words.extend(word.take());
                while characters.next_if(|next| !matches!(next, '\n' | '\r')).is_some() {}
            }
            (None, _) if is_space(character) => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

const fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\n' | '\r' | '\t' | '\u{c}')
}

const fn unescaped(character: char) -> char {
    match character {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'f' => '\u{c}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_is_cut_as_the_launcher_does_it() {
        for (text, expected) in [
            ("-Xmx1g -cp a:b\n  com.acme.Main arg\n", &["-Xmx1g", "-cp", "a:b", "com.acme.Main", "arg"][..]),
            ("# all of it\n-cp \"C:\\\\with space\" Main # the class\n", &["-cp", "C:\\with space", "Main"]),
            ("-cp \"a:\\\n    b\" Main", &["-cp", "a:b", "Main"]),
            ("-Da='one \"two\"' Main", &["-Da=one \"two\"", "Main"]),
            ("a\\b \"\" c#d", &["a\\b", "", "c"]),
            ("\"open\nMain", &["open", "Main"]),
            ("", &[]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_into_few_words(text in "[a-c\"'\\\\# \n]{0,60}") {
            prop_assert!(words(&text).iter().map(String::len).sum::<usize>() <= text.len());
        }
    }
}
