use std::{io::Read as _, path::Path};

use flate2::read::ZlibDecoder;
use quick_xml::{Reader, events::Event};

use super::{
    drawing::FONT_SIZE,
    font::{self, Font},
    *,
};
use crate::text::Keep;

/// A file of PDF, as far as ours need it to be read.
struct Read {
    bytes: Vec<u8>,
    /// Each object's number with its text, up to the stream if it has one, and the stream.
    objects: Vec<(usize, String, Vec<u8>)>,
}

impl Read {
    fn of(drawing: &Drawing) -> Self {
        let bytes = drawing.plot(PlotFormat::Pdf).unwrap().bytes;
        let whole = lossy(&bytes);
        let start: usize = whole.lines().rev().nth(1).unwrap().parse().unwrap();
        let table = lossy(&bytes[start..]);
        assert!(table.starts_with("xref\n0 "), "{table}");
        let entries = table
            .lines()
            .skip(2)
            .take_while(|line| line.ends_with(" n") || line.ends_with(" f") || line.ends_with(' '));
        let used = entries.enumerate().filter(|(_, entry)| entry.contains(" n"));
        let objects = used.map(|(number, entry)| {
            let at: usize = entry[..10].parse().unwrap();
            let rest = &bytes[at..];
            let end = find(rest, b"endobj").unwrap();
            assert!(rest.starts_with(format!("{number} 0 obj").as_bytes()), "object {number} is where the table says");
            let (text, stream) = match find(&rest[..end], b"stream\n") {
                Some(at) => (&rest[..at], inflated(&rest[at + 7..])),
                None => (&rest[..end], Vec::new()),
            };
            (number, lossy(text), stream)
        });
        let objects = objects.collect();
        Self { bytes, objects }
    }

    /// The stream of the only object whose text has these words.
    fn stream(&self, words: &str) -> &[u8] {
        let mut found = self.objects.iter().filter(|(_, text, _)| text.contains(words));
        let (_, _, stream) = found.next().unwrap();
        assert!(found.next().is_none(), "{words}");
        stream
    }

    fn content(&self) -> &[u8] {
        let page = self.objects.iter().find(|(_, text, _)| text.contains("/Type /Page\n")).unwrap();
        let number = page.1.split("/Contents ").nth(1).unwrap().split(' ').next().unwrap().parse::<usize>().unwrap();
        &self.objects.iter().find(|(found, _, _)| *found == number).unwrap().2
    }

    /// Each text, as a reader of the file copies it.
    fn texts(&self) -> Vec<String> {
        let table = lossy(self.stream("/Type /CMap"));
        let pairs: Vec<(u16, char)> = table
            .lines()
            .filter_map(|line| line.strip_prefix('<')?.strip_suffix('>')?.split_once("> <"))
            .filter(|(glyph, _)| *glyph != "0000")
            .map(|(glyph, c)| (u16::from_str_radix(glyph, 16).unwrap(), u32::from_str_radix(c, 16).unwrap()))
            .map(|(glyph, c)| (glyph, char::from_u32(c).unwrap()))
            .collect();
        let character = |glyph: &[u8]| {
            let glyph = u16::from_be_bytes(glyph.try_into().unwrap());
            pairs.iter().find(|(known, _)| *known == glyph).unwrap().1
        };
        let shown = strings(self.content());
        shown.iter().map(|bytes| bytes.chunks(2).map(character).collect()).collect()
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

fn inflated(bytes: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    ZlibDecoder::new(bytes).read_to_end(&mut found).unwrap();
    found
}

/// The strings of a page's content.
fn strings(content: &[u8]) -> Vec<Vec<u8>> {
    let (mut found, mut bytes) = (Vec::new(), content.iter().copied().peekable());
    while let Some(byte) = bytes.next() {
        let mut string = Vec::new();
        match byte {
            b'<' => {
                let digits: String = bytes.by_ref().take_while(|byte| *byte != b'>').map(char::from).collect();
                string.extend(
                    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()),
                );
            }
            b'(' => {
                let mut depth = 1;
                while let Some(byte) = bytes.next() {
                    match byte {
                        b')' if depth == 1 => break,
                        b'\\' => string.push(match bytes.next().unwrap() {
                            b'n' => b'\n',
                            b'r' => b'\r',
                            b't' => b'\t',
                            b'b' => 8,
                            b'f' => 12,
                            digit @ b'0'..=b'7' => {
                                let (second, third) = (bytes.next().unwrap(), bytes.next().unwrap());
                                (digit - b'0') * 64 + (second - b'0') * 8 + third - b'0'
                            }
                            other => other,
                        }),
                        other => {
                            depth += i32::from(other == b'(') - i32::from(other == b')');
                            string.push(other);
                        }
                    }
                }
            }
            _ => continue,
        }
        found.push(string);
    }
    found
}

fn of(shapes: Vec<Shape>) -> Drawing {
    let panels = vec![Panel { at: (10.0, 20.0), title: Some("<a> & \"b\"".to_owned()), shapes }];
    Drawing { size: (400.0, 200.0), label: "a \"label\" & more".to_owned(), panels }
}

fn text(text: &str) -> Shape {
    Shape::text((5.0, 6.0), Anchor::Start, text)
}

#[test]
fn the_format_is_what_the_name_ends_in() {
    for (path, expected) in [
        ("plot.svg", PlotFormat::Svg),
        ("a.b/PLOT.SVG", PlotFormat::Svg),
        ("plot.pdf", PlotFormat::Pdf),
        ("plot.svg.Pdf", PlotFormat::Pdf),
        ("-", PlotFormat::Svg),
    ] {
        assert_eq!(PlotFormat::of(Path::new(path)).unwrap(), expected, "{path}");
    }
    for path in ["plot.png", "plot", "svg", ".pdf", "plot.pdf.gz", "", "a\u{1b}[2J.eps"] {
        let refused = PlotFormat::of(Path::new(path)).unwrap_err().to_string();
        assert!(
            refused.ends_with("ends in neither .svg nor .pdf: name a file such as plot.svg or plot.pdf"),
            "{refused}"
        );
        assert!(!refused.contains('\u{1b}'));
    }
}

#[test]
fn svg_is_well_formed_and_no_text_of_it_is_markup() {
    let hostile = "</text><script>alert(1)</script>\"'&amp;]]>";
    let drawn = of(vec![text(hostile), Shape::line([(0.0, 0.0), (1.25, 2.0)], Ink::Blue)]).svg();
    let mut reader = Reader::from_str(&drawn);
    let (mut texts, mut elements) = (String::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => break,
            Event::Start(start) => elements.push(lossy(start.name().as_ref())),
            Event::Text(text) => texts.push_str(&text.decode().unwrap()),
            Event::GeneralRef(_) => texts.push('?'),
            _ => {}
        }
    }
    assert_eq!(elements, ["svg", "g", "title", "text"], "{drawn}");
    assert!(!drawn.contains("<script") && texts.contains("script"), "{drawn}");
    assert!(drawn.contains("aria-label=\"a &quot;label&quot; &amp; more\""), "{drawn}");
}

#[test]
fn pdf_has_its_font_and_its_texts_can_be_copied() {
    let texts = ["Energy, J", "n² · 2ⁿ ≥ 5 µJ … −1 ± 2 – 3", "a(b)\\c) <d>", "Ünïcode Žluťoučký Ω ж → π"];
    let read = Read::of(&of(texts.into_iter().map(text).collect()));
    assert_eq!(read.texts(), texts);
    assert_eq!(read.stream("/Length1"), font::FILE);
    assert!(read.bytes.starts_with(b"%PDF-1.7\n") && read.bytes.ends_with(b"\n%%EOF"));
    let all: String = read.objects.iter().map(|(_, text, _)| text.as_str()).collect();
    for expected in
        ["/MediaBox [0 0 300 150]", "/Subtype /CIDFontType2", "/Encoding /Identity-H", "/Title (a \"label\" & more)"]
    {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    assert!(!all.contains("/CreationDate"), "equal drawings are equal bytes: {all}");
    let again = of(texts.into_iter().map(text).collect());
    assert_eq!(again.plot(PlotFormat::Pdf).unwrap().bytes, read.bytes);
}

#[test]
fn pdf_spells_out_what_its_font_lacks_and_says_so() {
    let name = "de.例え.Sort⇒run";
    let plot = of(vec![text(name), text("例")]).plot(PlotFormat::Pdf).unwrap();
    assert_eq!(plot.spelled_out, BTreeSet::from(['例', 'え', '⇒']));
    assert_eq!(
        plot.remark().unwrap(),
        "the font of PDF lacks characters, which are spelled out (⇒ as \\u{21d2}, え as \\u{3048}, 例 as \\u{4f8b}): SVG has them"
    );
    let read = Read::of(&of(vec![text(name)]));
    assert_eq!(read.texts(), ["de.\\u{4f8b}\\u{3048}.Sort\\u{21d2}run"]);
    let svg = of(vec![text(name)]).plot(PlotFormat::Svg).unwrap();
    assert!(svg.remark().is_none() && lossy(&svg.bytes).contains(name));
    assert_eq!(of(vec![text("plain")]).plot(PlotFormat::Pdf).unwrap().remark(), None);
    let many: String = ('一'..).take(9).collect();
    assert!(of(vec![text(&many)]).plot(PlotFormat::Pdf).unwrap().remark().unwrap().contains("4e04} and 4 more): SVG"));
}

#[test]
fn names_are_cut_to_their_room() {
    let font = Font::read().unwrap();
    for name in ["W".repeat(200), "例".repeat(200), "com.acme.shop.Order.total".repeat(9), "x".to_owned()] {
        let fitted = font.fitted(&name, Some((50, Keep::Name)), &mut BTreeSet::new());
        assert!(!fitted.is_empty() && font.width_of(&fitted) <= 0.6 * 50.0 * FONT_SIZE, "{fitted}");
        assert_eq!(fitted.contains('…'), name.len() > 1, "{fitted}");
    }
    // Widths are those of Helvetica: 556 and 278 thousandths.
    assert!((font.width_of("0i.") - FONT_SIZE * (0.556 + 0.222 + 0.278)).abs() < 0.02);
}

#[test]
fn a_figure_that_is_none_is_not_in_a_file() {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300];
    let shapes = odd.into_iter().flat_map(|figure| {
        [
            Shape::Dot { at: (figure, 1.0), radius: figure, ink: Ink::Red },
            Shape::line([(1.0, figure), (figure, 2.0)], Ink::Grey),
            Shape::Area { within: vec![(figure, figure), (1.0, 2.0), (3.0, 4.0)], opacity: 0.5, ink: Ink::Blue },
        ]
    });
    let read = Read::of(&of(shapes.collect()));
    let content = lossy(read.content());
    assert!(!content.contains("NaN") && !content.contains("inf"), "{content}");
    let nothing = of(vec![
        Shape::line([], Ink::Text),
        Shape::Area { within: Vec::new(), opacity: 0.5, ink: Ink::Blue },
        text(""),
    ]);
    assert_eq!(Read::of(&nothing).texts(), [""]);
    assert_eq!(Read::of(&Drawing { panels: Vec::new(), ..of(Vec::new()) }).texts(), [""; 0]);
}

#[test]
fn what_is_too_large_for_a_page_is_drawn_smaller() {
    let read = Read::of(&Drawing { size: (480.0, 96_000.0), ..of(vec![text("a")]) });
    assert!(read.objects.iter().any(|(_, text, _)| text.contains("/MediaBox [0 0 72 14400]")));
}

#[test]
fn a_file_of_a_drawing_without_texts_is_whole() {
    let read = Read::of(&of(vec![Shape::Dot { at: (1.0, 2.0), radius: 3.0, ink: Ink::Red }]));
    assert_eq!(lossy(read.content()).matches(" c\n").count(), 4, "a circle has four quarters");
}
