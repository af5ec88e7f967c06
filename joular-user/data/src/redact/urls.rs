//! Finds who logs in, in URLs (`scheme://user:password@host`) and in JDBC strings without one
//! (`jdbc:oracle:thin:user/password@//host`).

use std::ops::Range;

const AUTHORITY: &str = "://";
const JDBC: &[u8] = b"jdbc:";
/// Names between `jdbc:` and who logs in: the database, and the kind of driver.
const MOST_JDBC_NAMES: usize = 2;

/// Adds the user information of every URL in a text.
pub(super) fn find(text: &str, mut add: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let mut starts = text.match_indices(AUTHORITY).map(|(at, _)| at + AUTHORITY.len()).peekable();
    while let Some(start) = starts.next() {
        let next = starts.peek().copied().unwrap_or(bytes.len());
        if let Some(end) = user_info(bytes, start, next) {
            add(start..end);
        }
    }
    let mut places = jdbc_places(bytes).peekable();
    while let Some(start) = places.next() {
        let next = places.peek().copied().unwrap_or(bytes.len());
        if let Some(range) = jdbc_user_info(bytes, start, next) {
            add(range);
        }
    }
}

/// Where the user information ends that begins at `start`. The next URL begins before `next`.
fn user_info(bytes: &[u8], start: usize, next: usize) -> Option<usize> {
    let is_end = |byte: &u8| is_outside(*byte) || matches!(byte, b'/' | b'?' | b'#');
    let end = bytes.get(start..)?.iter().position(is_end).map_or(bytes.len(), |length| start + length);
    let authority = bytes.get(start..end)?;
    if let Some(length) = authority.iter().rposition(|byte| *byte == b'@') {
        return Some(start + length);
    }
    // A password with a slash, a question mark or a hash, which should be written as %2F, %3F or %23.
    let colon = authority.iter().position(|byte| *byte == b':').filter(|_| !authority.starts_with(b"["))?;
    let port = authority.get(colon + 1..)?;
    if port.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let rest = bytes.get(start..next.max(end))?;
    let rest = rest.split(|byte| is_outside(*byte)).next()?;
    rest.iter().rposition(|byte| *byte == b'@').map(|length| start + length)
}

/// What no URL holds.
const fn is_outside(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
}

/// Where texts begin that follow `jdbc:`.
fn jdbc_places(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let windows = bytes.windows(JDBC.len()).enumerate();
    windows.filter(|(_, window)| window.eq_ignore_ascii_case(JDBC)).map(|(at, _)| at + JDBC.len())
}

fn jdbc_user_info(bytes: &[u8], start: usize, next: usize) -> Option<Range<usize>> {
    let part = bytes.get(start..next)?;
    let part = part.split(|byte| *byte <= b' ').next()?;
    let url = part.windows(AUTHORITY.len()).position(|window| window == AUTHORITY.as_bytes());
    let part = part.get(..url.unwrap_or(part.len()))?;
    let end = part.iter().rposition(|byte| *byte == b'@')?;
    let mut begin = 0;
    for _ in 0..MOST_JDBC_NAMES {
        let rest = part.get(begin..end)?;
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+');
        let length = rest.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len());
        if rest.get(length) != Some(&b':') {
            break;
        }
        begin += length + 1;
    }
    Some(start + begin..start + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let mut all = Vec::new();
        find(text, |range| all.push(&text[range]));
        all.retain(|part| !part.is_empty());
        all
    }

    #[test]
    fn who_logs_in_stands_before_the_host() {
        for (text, expected) in [
            ("https://u:pw@h:80/p?q=1", &["u:pw"][..]),
            ("ftp://anonymous@h/", &["anonymous"]),
            ("redis://:pw@h:6379/0", &[":pw"]),
            ("mongodb+srv://u:p%40w@h1,h2:27017/db", &["u:p%40w"]),
            ("amqp://u:p@w@h/vhost", &["u:p@w"]),
            ("mongodb://u:p@h1,v:q@h2/db", &["u:p@h1,v:q"]),
            ("http://u:p@h/a,http://v:q@i/b", &["u:p", "v:q"]),
            ("-Durl=jdbc:postgresql://u:p@h/db", &["u:p"]),
            ("redis://:pa/ss?w#d@h:6379/0", &[":pa/ss?w#d"]),
            ("jdbc:oracle:thin:scott/ti:g@er@//h:1521/s", &["scott/ti:g@er"]),
            ("JDBC:oracle:oci:scott/tiger@tcps://h:1521/s", &["scott/tiger"]),
            ("jdbc:oracle:thin:scott/tiger@(DESCRIPTION=(ADDRESS=(HOST=h)))", &["scott/tiger"]),
            ("jdbc:x:u:p:q@h", &["p:q"]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn a_host_a_port_and_a_path_are_no_secret() {
        for text in [
            "https://h:8080/@user/p@q",
            "http://[::1]:80/a",
            "https://h:${PORT}/x",
            "http://h",
            "://",
            "https://h?mail=a@b",
            "jdbc:oracle:thin:@h:1521:s",
            "jdbc:mysql://h:3306/db",
            "jdbc:h2:mem:db",
            "jdbc:",
            "a@b",
            "git@github.com:a/b",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
