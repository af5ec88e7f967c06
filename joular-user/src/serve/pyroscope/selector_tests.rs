use proptest::prelude::*;

use super::*;

fn allows(selector: &str, value: &str) -> bool {
    let selector = Selector::parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
    selector.of("a").all(|matcher| matcher.allows(value))
}

#[test]
fn matchers_hold_for_whole_values() {
    for (selector, value, expected) in [
        ("", "x", true),
        ("{}", "x", true),
        (r#"{a="x"}"#, "x", true),
        (r#"{a="x"}"#, "xy", false),
        (r#" { a = "x" , b = "y" , } "#, "x", true),
        (r#"{a!="x"}"#, "x", false),
        (r#"{a!="x"}"#, "", true),
        (r#"{a=""}"#, "", true),
        (r#"{a=""}"#, "x", false),
        (r#"{a=~"x.*"}"#, "xyz", true),
        (r#"{a=~"x.*"}"#, "yx", false),
        (r#"{a=~"x|y"}"#, "xy", false),
        (r#"{a=~"x|y"}"#, "y", true),
        (r#"{a=~"x."}"#, "x\n", true),
        (r#"{a=~""}"#, "", true),
        (r#"{a=~".+"}"#, "", false),
        (r#"{a!~"x.*"}"#, "xyz", false),
        (r#"{a!~"x.*"}"#, "yx", true),
        (r#"{a=~"(?i)X"}"#, "x", true),
        (r#"{a=~"(?m)^x$"}"#, "x\ny", false),
        (r#"{a!="x",a!="y"}"#, "y", false),
        (r#"{a=~"x\\.y"}"#, "x.y", true),
        (r#"{a=~"x\\.y"}"#, "x-y", false),
        ("{a=~`x\\.y`}", "x.y", true),
        ("{a=`\"`}", "\"", true),
        (r#"{a="\"\\\n\t\x41\102\u00e9\U0001F600"}"#, "\"\\\n\tABé😀", true),
        (r#"{a="\xc3\xa9"}"#, "é", true),
        (r#"{a="}"}"#, "}", true),
        (r#"{a="é,b"}"#, "é,b", true),
    ] {
        assert_eq!(allows(selector, value), expected, "{selector} {value:?}");
    }
}

#[test]
fn what_is_no_selector_is_refused_with_its_place() {
    for (selector, at, words) in [
        ("x", 1, "there should be {"),
        ("{", 2, "name of a label"),
        (r#"{a="x""#, 7, "there should be }"),
        (r#"{a="x"} y"#, 9, "nothing may stand behind"),
        (r#"{a="x" b="y"}"#, 8, "there should be }"),
        (r#"{,}"#, 2, "name of a label"),
        (r#"{1a="x"}"#, 2, "name of a label"),
        (r#"{é="x"}"#, 2, "name of a label"),
        (r#"{a"x"}"#, 3, "one of =, !=, =~, !~"),
        (r#"{a=x}"#, 4, "there should be \""),
        (r#"{a="x}"#, 7, "the value has no end"),
        ("{a=`x}", 5, "the value has no end"),
        (r#"{a="\q"}"#, 7, "behind the backslash"),
        (r#"{a="\x4"}"#, 7, "there should be 2 digits"),
        (r#"{a="\777"}"#, 9, "behind the backslash"),
        (r#"{a="\ud800"}"#, 11, "behind the backslash"),
        (r#"{a="\xff"}"#, 10, "not UTF-8"),
        (r#"{a=~"("}"#, 5, "the regular expression cannot be used"),
        (r#"{a=~"x)|(y"}"#, 5, "the regular expression cannot be used"),
        (r#"{a=~"(?x)y#"}"#, 5, "the regular expression cannot be used"),
        (r#"{a=~"\\w{1000}{1000}"}"#, 5, "the regular expression cannot be used"),
    ] {
        let error = Selector::parse(selector).map(|_| ()).unwrap_err();
        assert!(error.what.contains(words), "{selector}: {error}");
        assert_eq!(error.at, at, "{selector}: {error}");
    }
    let many = format!("{{{}}}", r#"a="x","#.repeat(MOST_MATCHERS + 1));
    assert!(Selector::parse(&many).unwrap_err().what.contains("more than 64"));
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in ".{0,60}", inner in r#"[a-z=!~{}"\\`, ()*+.0-9uUx-]{0,40}"#) {
        for text in [text.clone(), format!("{{{text}}}"), format!("{{{inner}}}"), format!("{{a=~\"{inner}\"}}")] {
            if let Ok(selector) = Selector::parse(&text) {
                let _answer = selector.matchers().iter().all(|matcher| matcher.allows(&inner));
            }
        }
    }

    #[test]
    fn a_value_in_quotes_is_the_value(value in ".{0,30}") {
        let quoted = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        let selector = Selector::parse(&format!("{{a=\"{quoted}\"}}")).unwrap();
        prop_assert_eq!(selector.matchers()[0].only(), Some(value.as_str()));
        let longer = format!("{value}x");
        prop_assert!(selector.matchers()[0].allows(&value) && !selector.matchers()[0].allows(&longer));
    }
}
