//! Reads thread dumps, which JVMs print when they get SIGQUIT: their own idea of where their
//! threads are.

use super::Frame;

/// Java frames of the thread of a name, root first, from the last dump in a text.
pub fn thread_dump(text: &str, thread: &str) -> Option<Vec<Frame>> {
    let start = text.rfind(&format!("\n\"{thread}\" "))?;
    let lines = text[start + 1..].lines().skip(1).take_while(|line| !line.is_empty());
    let mut frames: Vec<Frame> = lines.filter_map(|line| frame(line.trim().strip_prefix("at ")?)).collect();
    frames.reverse();
    Some(frames)
}

/// `known.Recursion.leaf(Recursion.java:26)`, `…run(java.base@21/Unknown Source)`
fn frame(text: &str) -> Option<Frame> {
    let (method, place) = text.split_once('(')?;
    let (class, name) = method.rsplit_once('.')?;
    let (file, line) = place.trim_end_matches(')').rsplit_once(':').unzip();
    Some(Frame {
        kind: "interpreted".to_owned(),
        class: class.to_owned(),
        name: name.to_owned(),
        file: file.unwrap_or_default().to_owned(),
        line: line.and_then(|line| line.parse().ok()),
        ..Frame::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_dump_of_a_thread_is_read_from_its_root() {
        let text = "\n\"worker\" #1 old\n\tat a.Old.leaf(Old.java:1)\n\n\"worker\" #1 daemon\n   \
                    java.lang.Thread.State: RUNNABLE\n\tat known.R.leaf(R.java:26)\n\t- locked <0x1>\n\t\
                    at java.lang.Thread.run(java.base@21.0.8/Unknown Source)\n\n\"other\" #2\n";
        let frames = thread_dump(text, "worker").unwrap();
        let methods: Vec<String> = frames.iter().map(Frame::method).collect();
        assert_eq!(methods, ["java.lang.Thread.run", "known.R.leaf"]);
        assert_eq!((frames[1].line, frames[0].line), (Some(26), None));
        assert_eq!(thread_dump(text, "nobody"), None);
    }
}
