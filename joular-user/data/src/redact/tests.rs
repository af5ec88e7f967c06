use proptest::{collection::vec, prelude::*};

use super::*;

fn shown(words: &[&str]) -> Vec<String> {
    Redaction::default().words(words).words
}

fn one(word: &str) -> String {
    shown(&["java", word]).remove(1)
}

#[test]
fn values_under_names_that_tell_are_redacted_in_every_shape() {
    for (word, expected) in [
        ("-Dpassword=x", "-Dpassword=[redacted]"),
        ("-Djavax.net.ssl.keyStorePassword=a,b;c d", "-Djavax.net.ssl.keyStorePassword=[redacted]"),
        ("-J-Dtoken=x", "-J-Dtoken=[redacted]"),
        ("--password=x=y", "--password=[redacted]"),
        ("DB_PASSWORD=x y", "DB_PASSWORD=[redacted]"),
        ("--env=API_KEY=x", "--env=API_KEY=[redacted]"),
        ("--conf=spark.secret=x", "--conf=spark.secret=[redacted]"),
        ("-Dfarbe.schlüssel-key=x", "-Dfarbe.schlüssel-key=[redacted]"),
        ("https://h/p?user=u&token=a,b&x=y", "https://h/p?user=u&token=[redacted]&x=y"),
        ("https://h/#access_token=x", "https://h/#access_token=[redacted]"),
        ("https://h/?next=%2Fa%3Ftoken%3Dx", "https://h/?next=%2Fa%3Ftoken%3D[redacted]"),
        ("https://u:pw@h/p", "https://[redacted]@h/p"),
        ("mongodb+srv://u:p%40w@h1,h2/db", "mongodb+srv://[redacted]@h1,h2/db"),
        ("http://u:p@h/,http://v:q@i/", "http://[redacted]@h/,http://[redacted]@i/"),
        ("jdbc:mysql://u:pw@h/db?password=x&user=u", "jdbc:mysql://[redacted]@h/db?password=[redacted]&user=u"),
        ("jdbc:oracle:thin:u/pw@//h:1521/s", "jdbc:oracle:thin:[redacted]@//h:1521/s"),
        (
            "jdbc:sqlserver://h;user=u;password=a,b&c;encrypt=true;",
            "jdbc:sqlserver://h;user=u;password=[redacted];encrypt=true;",
        ),
        ("jdbc:sqlserver://h;password={a;b};encrypt=true", "jdbc:sqlserver://h;password=[redacted];encrypt=true"),
        ("jdbc:db2://h:50000/db:user=u;password=p;", "jdbc:db2://h:50000/db:user=u;password=[redacted];"),
        ("-javaagent:/opt/x.jar=token=a,b,host=h", "-javaagent:/opt/x.jar=token=[redacted],host=h"),
        ("Authorization: Bearer x.y", "Authorization: [redacted]"),
        ("Cookie: a=b; c=d", "Cookie: [redacted]"),
        (r#"{"user":"u","password":"a\"b","n":1}"#, r#"{"user":"u","password":"[redacted]","n":1}"#),
        (r#"{"api_key" : 12, "u":"v"}"#, r#"{"api_key" : [redacted], "u":"v"}"#),
        (r#"{"secrets":["a",{"b":"]"}],"u":"v"}"#, r#"{"secrets":[redacted],"u":"v"}"#),
        (r#"{\"password\":\"x\",\"u\":1}"#, r#"{\"password\":\"[redacted]\",\"u\":1}"#),
        ("{user: u, password: p}", "{user: u, password: [redacted]"),
        ("host=h user=u password='a b' dbname=d", "host=h user=u password='[redacted]' dbname=d"),
        ("a --password x --port 1 -Dtoken='y z' b", "a --password [redacted] --port 1 -Dtoken='[redacted]' b"),
        ("a --password \"x y\" b", "a --password [redacted] b"),
        ("password = x", "password = [redacted]"),
        ("PASSWORD=x java Main", "PASSWORD=[redacted]"),
        ("base=java -Dpassword=x -jar a.jar", "base=java -Dpassword=[redacted] -jar a.jar"),
        ("token=YWJj==", "token=[redacted]"),
        ("-HCookie:x", "-HCookie:[redacted]"),
    ] {
        assert_eq!(one(word), expected, "{word}");
        assert_eq!(one(expected), expected, "again: {word}");
    }
}

#[test]
fn values_in_the_next_word_are_redacted_whole() {
    for (words, expected) in [
        (&["--password", "a b", "c"][..], &["--password", "[redacted]", "c"][..]),
        (&["-storepass", "changeit"], &["-storepass", "[redacted]"]),
        (&["--token", "-x=y", "z"], &["--token", "[redacted]", "z"]),
        (&["--token", "--password", "p"], &["--token", "[redacted]", "[redacted]"]),
        (&["--token"], &["--token"]),
        (&["--token", "--", "java"], &["--token", "--", "java"]),
        (&["--token", ""], &["--token", ""]),
        (&["-H", "Cookie:x", "-H", "Accept: y"], &["-H", "Cookie:[redacted]", "-H", "Accept: y"]),
        (&["--header", "X-Api-Key: x"], &["--header", "X-Api-Key: [redacted]"]),
        (&["-e", "PASSWORD=x"], &["-e", "PASSWORD=[redacted]"]),
        (&["-Dpassword", "Main"], &["-Dpassword", "Main"]),
    ] {
        assert_eq!(shown(words), expected);
        assert_eq!(shown(&shown(words).iter().map(String::as_str).collect::<Vec<_>>()), expected, "again");
    }
}

#[test]
fn a_secret_that_stands_again_is_redacted_there_too() {
    let words = ["x", "--password=hunter2", "hunter2", "login:hunter2", "hunter22", "--auth", "yes", "yes"];
    let expected =
        ["x", "--password=[redacted]", "[redacted]", "login:[redacted]", "hunter22", "--auth", "[redacted]", "yes"];
    assert_eq!(shown(&words), expected);
    assert_eq!(shown(&["https://u:hunter2@h", "hunter2"]), ["https://[redacted]@h", "[redacted]"]);
    assert_eq!(shown(&["Authorization: Basic dTpwdw", "dTpwdw"]), ["Authorization: [redacted]", "[redacted]"]);
}

#[test]
fn what_tells_of_no_secret_stays_byte_for_byte() {
    let words = [
        "java",
        "-Xmx4g",
        "-Xlog:gc*:file=/var/log/gc.log:time",
        "-XX:+UseG1GC",
        "-XX:MaxRAMPercentage=75.0",
        "-cp",
        "a.jar:b.jar",
        "-Djava.security.manager",
        "-Duser.dir=/home/x",
        "--add-opens",
        "java.base/sun.security.tools.keytool=ALL-UNNAMED",
        "@args",
        "-javaagent:/opt/token-agent.jar",
        "-p",
        "mods",
        "https://h:8080/@u/p?q=1#f",
        "jdbc:postgresql://h:5432/db?ssl=true",
        "a@b.c",
        "{\"user\":\"u\",\"n\":[1,2]}",
        "a=b;c=d,e=f&g=h",
        "YKeyW==",
        "key",
        "password",
        "--",
        "",
        "\u{1b}[31m",
        "日本=x",
        "kafka-auth-1:9092,kafka-auth-2:9092",
        "com.acme.Main",
        "-jar",
        "/opt/session/app.jar",
        "--port",
        "80",
        "x:y:z",
    ];
    assert_eq!(shown(&words), words);
    assert!(matches!(Redaction::default().text(&words[..9].join(" ")), Cow::Borrowed(_)));
}

#[test]
fn rules_add_names_and_patterns() {
    let rules =
        vec![Rule::name("-p").unwrap(), Rule::pattern("^-p(.+)").unwrap(), Rule::pattern("AKIA[0-9A-Z]+").unwrap()];
    let redaction = Redaction::new(CommandLines::Redacted, rules);
    let words = redaction.words(&["mysql", "-p", "x", "-pxyz", "a=AKIA7,AKIA8", "-P", "y"]).words;
    assert_eq!(words, ["mysql", "-p", "[redacted]", "-p[redacted]", "a=[redacted],[redacted]", "-P", "[redacted]"]);
    assert_eq!(redaction.words(&words).words, words);
    for (rule, expected) in [
        (Rule::name("--"), RuleError::Empty),
        (Rule::pattern("x*"), RuleError::MatchesNothing),
        (Rule::pattern("(?i)"), RuleError::MatchesNothing),
    ] {
        assert_eq!(rule.unwrap_err(), expected);
    }
    assert!(matches!(Rule::name("[").unwrap_err(), RuleError::Name(_)));
    assert!(matches!(Rule::pattern("(").unwrap_err(), RuleError::Pattern(_)));
}

#[test]
fn a_joined_command_line_is_redacted_word_by_word() {
    let redaction = Redaction::default();
    for (text, expected) in [
        ("java -Dpassword=x -Xmx1g --token y Main", "java -Dpassword=[redacted] -Xmx1g --token [redacted] Main"),
        ("curl -H Authorization: Bearer x https://u:p@h/", "curl -H Authorization: [redacted] https://[redacted]@h/"),
        ("PASSWORD=x java Main", "PASSWORD=[redacted] java Main"),
    ] {
        assert_eq!(redaction.text(text), expected);
        assert_eq!(redaction.text(expected), expected);
    }
    assert_eq!(redaction.urls("token: no place http://u:p@h/"), "token: no place http://[redacted]@h/");
    assert_eq!(redaction.showing(CommandLines::Full).text("--token x"), "--token x");
}

#[test]
fn what_is_found_is_named() {
    let redacted =
        Redaction::default().words(&["x", "-Dpassword=hunter2", "https://u:p@h/", "--api-key", "k", "hunter2"]);
    let why: Vec<(usize, Why)> = redacted.secrets.into_iter().map(|secret| (secret.word, secret.why)).collect();
    let name = |name: &str| Why::Name(name.to_owned());
    assert_eq!(why, [(1, name("-Dpassword")), (2, Why::UserInfo), (4, name("--api-key")), (5, Why::Repeated)]);
    assert_eq!(redacted.hidden.len(), 4);
}

#[test]
fn a_command_line_of_nothing_but_secrets_is_gone_through_once() {
    let hostile = [
        "password=x;".repeat(12_000),
        "https://u:p@h,".repeat(9_000),
        "jdbc:".repeat(26_000),
        "--key \"x--key 'y--key `z ".repeat(5_000),
        (0..500).map(|n| format!("--key {}\"", "\\".repeat(n))).collect(),
        "{\"key\":[".repeat(16_000),
        "token=,".repeat(18_000),
        "key:".repeat(32_000),
        "=".repeat(128_000),
        "\"key\" ".repeat(21_000),
        "Authorization: ".repeat(9_000),
        "x%3D".repeat(32_000),
        "key,key;key&".repeat(10_000),
        "https://a:b".repeat(12_000),
    ];
    for text in &hostile {
        let eighth = &text[..text.len() / 8];
        // What takes the square of the length takes 64 times as long for eight times as much.
        let time = |text: &str| {
            let least = (0..3).map(|_| {
                let start = std::time::Instant::now();
                let words: Vec<&str> = text.split(' ').collect();
                let shown = [Redaction::default().words(&words).words, Redaction::default().words(&[text]).words];
                assert!(Redaction::default().text(text).len() <= 20 * text.len() && shown.len() == 2);
                start.elapsed()
            });
            least.min().unwrap_or_default()
        };
        let (part, all) = (time(eighth), time(text));
        assert!(all < part * 24 || all.as_millis() < 200, "{part:?}, eight times as much: {all:?}: {}", &text[..20]);
    }
}

const NAMES: [&str; 9] =
    ["db.passwd", "PWD", "clientSecret", "tokenId", "API_KEY", "credentials", "Authorization", "cookie", "SESSION"];

/// Command lines with a value under a name that tells, in one of the shapes.
fn planted() -> impl Strategy<Value = (Vec<String>, String)> {
    let value = "[A-Za-z0-9+/_.~-]{6,20}".prop_map(|value| format!("S{value}"));
    let name = (proptest::sample::select(&NAMES[..]), "[a-z.]{0,4}", "[a-z.]{0,4}");
    let name = name.prop_map(|(name, before, after)| format!("{before}{name}{after}").trim_matches('.').to_owned());
    let others = || vec("[ -~]{0,12}", 0..3);
    (others(), name, value, 0..16_usize, others()).prop_map(|(before, name, value, shape, after)| {
        let planted = match shape {
            0 => vec![format!("-D{name}={value}")],
            1 => vec![format!("--{name}={value}")],
            2 => vec![format!("--{name}"), value.clone()],
            3 => vec![format!("-{name}"), value.clone()],
            4 => vec![format!("{name}={value}")],
            5 => vec![format!("https://u:{}@h/p", value.replace('/', "%2F"))],
            6 => vec![format!("jdbc:x://h/d?a=b&{name}={value}&c=d")],
            7 => vec![format!("jdbc:sqlserver://h;a=b;{name}={value};c=d")],
            8 => vec![format!("-javaagent:x.jar=a=b,{name}={value},c=d")],
            9 => vec!["-H".to_owned(), format!("{name}: Bearer {value}")],
            10 => vec![format!("{{\"a\":\"b\",\"{name}\":\"{value}\"}}")],
            11 => vec![format!("sh -c 'x --{name} {value} y'")],
            12 => vec!["-Dx=y".to_owned(), format!("--{name}=a{value}"), format!("a{value}")],
            13 => vec![format!("jdbc:oracle:thin:u/{}@//h/s", value.replace('/', "%2F"))],
            14 => vec![format!("-D{name}=a {value}")],
            _ => vec![format!("--{name}"), format!("-{value}")],
        };
        let value = if matches!(shape, 5 | 13) { value.replace('/', "%2F") } else { value };
        (before.into_iter().chain(planted).chain(after).collect(), value)
    })
}

proptest! {
    #[test]
    fn no_planted_value_gets_through((words, value) in planted()) {
        let others: String = words.iter().filter(|word| !word.contains(&value)).cloned().collect();
        prop_assert!(words.iter().any(|word| word.contains(&value)));
        prop_assume!(!others.contains(&value));
        let shown = Redaction::default().words(&words).words;
        prop_assert_eq!(shown.len(), words.len());
        prop_assert!(!shown.join(" ").contains(&value), "{:?} of {:?}", shown, words);
    }

    #[test]
    fn redacting_again_changes_nothing((words, _) in planted()) {
        let once = Redaction::default().words(&words).words;
        prop_assert_eq!(&Redaction::default().words(&once).words, &once);
        let text = words.join(" ");
        let once = Redaction::default().text(&text).into_owned();
        prop_assert_eq!(Redaction::default().text(&once), once.as_str(), "of {}", text);
    }

    #[test]
    fn any_text_is_taken_and_redacting_it_again_changes_nothing(
        words in vec("([-=:;,&?@/\\\\\"'{}\\[\\] a]|key|://|jdbc:|\\PC|%3D|\\[redacted\\]){0,24}", 0..4)
    ) {
        let once = Redaction::default().words(&words).words;
        prop_assert_eq!(&Redaction::default().words(&once).words, &once, "of {:?}", words);
        let text = words.join(" ");
        let once = Redaction::default().text(&text).into_owned();
        prop_assert_eq!(Redaction::default().text(&once), once.as_str(), "of {:?}", text);
    }

    #[test]
    fn a_text_without_telling_words_and_urls_is_as_it_was(words in vec("[-=:;,&?/\\\\\"'{} 0-9bdfgjlm]{0,24}", 0..5)) {
        prop_assert_eq!(Redaction::default().words(&words).words, words);
    }
}
