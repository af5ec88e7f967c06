//! Writes a drawing as PDF: one page of its size, vector graphics, with the font in the file.
//!
//! Text is of a composite font (ISO 32000-1, 9.7): two bytes for each letter, which are its glyph's number in the font
//! (`Identity-H`), and a table from glyphs to characters, so that text can be searched and copied.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
};

use flate2::{Compression, write::ZlibEncoder};
use pdf_writer::{
    Content, Filter, Finish as _, Name, Pdf, Rect, Ref, Str, TextStr,
    types::{CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, TextRenderingMode, UnicodeCmap},
    writers::ExtGraphicsState,
};
use ttf_parser::{FaceParsingError, GlyphId};

use super::{
    Plot,
    drawing::{Anchor, Drawing, FONT_SIZE, Ink, Panel, Place, Shape, Text},
    font::{self, Font, Metrics},
};

/// Points (1/72 inch) of a CSS pixel (1/96 inch).
const POINTS: f64 = 0.75;
/// Longest side of a page that readers must take (ISO 32000-1, annex C). What is larger is drawn smaller.
const MOST_POINTS: f64 = 14_400.0;

/// Nothing is farther away from a page's corner.
const FARTHEST: f64 = 1e6;

/// Of a circle's quarter as a Bézier curve: how far its control points are, in radii. It is off by 0.03 % at most.
const QUARTER: f64 = 0.552_285;
/// How wide bold letters are drawn around, in sizes of letters. The file has no second font for the few that there are.
const BOLD: f64 = 0.03;
/// How thick the upright lines of letters are, in thousandths of their size: only what has no font at hand asks for it.
const STEM: f32 = 88.0;

/// The letters in front say that it is a part of the font.
const FONT_NAME: Name<'_> = Name(b"JOULAR+Arimo");
const IDENTITY: SystemInfo<'_> = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };
/// Names within the page.
const FONT: Name<'_> = Name(b"F");

/// Objects of the file.
const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const INFO: Ref = Ref::new(5);
const TYPE0: Ref = Ref::new(6);
const CID_FONT: Ref = Ref::new(7);
const DESCRIPTOR: Ref = Ref::new(8);
const FONT_FILE: Ref = Ref::new(9);
const TO_UNICODE: Ref = Ref::new(10);

pub(super) fn written(drawing: &Drawing) -> Result<Plot, FaceParsingError> {
    let mut page = Page {
        font: Font::read()?,
        content: Content::new(),
        used: BTreeMap::new(),
        lacking: BTreeSet::new(),
        opacities: Vec::new(),
    };
    let scale = POINTS.min(MOST_POINTS / drawing.size.0.max(drawing.size.1).max(1.0));
    let (width, height) = (points(drawing.size.0 * scale), points(drawing.size.1 * scale));
    // From the top, and in pixels.
    page.content.transform([points(scale), 0.0, 0.0, points(-scale), 0.0, height]);
    page.content.set_line_cap(LineCapStyle::ButtCap).set_line_join(LineJoinStyle::MiterJoin);
    drawing.panels.iter().for_each(|panel| page.panel(panel));
    let Page { font, content, used, lacking, opacities } = page;

    let mut pdf = Pdf::new();
    pdf.catalog(CATALOG).pages(PAGES).lang(TextStr("en"));
    pdf.document_info(INFO).title(TextStr(&drawing.label)).producer(TextStr("joular-bpf"));
    pdf.pages(PAGES).kids([PAGE]).count(1);
    let mut leaf = pdf.page(PAGE);
    leaf.parent(PAGES).media_box(Rect::new(0.0, 0.0, width, height)).contents(CONTENT);
    let mut resources = leaf.resources();
    resources.fonts().pair(FONT, TYPE0);
    let mut states = resources.ext_g_states();
    for (at, opacity) in opacities.iter().enumerate() {
        states.insert(Name(&state_name(at))).start::<ExtGraphicsState<'_>>().non_stroking_alpha(*opacity);
    }
    states.finish();
    resources.finish();
    leaf.finish();
    let content = deflated(&content.finish());
    pdf.stream(CONTENT, &content).filter(Filter::FlateDecode);
    write_font(&mut pdf, &font, &used);
    Ok(Plot { bytes: pdf.finish(), spelled_out: lacking })
}

/// What is drawn, and what it needs.
struct Page {
    font: Font,
    content: Content,
    /// The letters that are there, each with the character that it stands for.
    used: BTreeMap<u16, char>,
    lacking: BTreeSet<char>,
    opacities: Vec<f32>,
}

impl Page {
    fn panel(&mut self, panel: &Panel) {
        self.content.save_state().transform([1.0, 0.0, 0.0, 1.0, points(panel.at.0), points(panel.at.1)]);
        panel.shapes.iter().for_each(|shape| self.shape(shape));
        self.content.restore_state();
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { through, width, ink } => {
                self.stroke_in(*ink);
                self.content.set_line_width(points(*width));
                if self.path(through) {
                    self.content.stroke();
                }
            }
            Shape::Area { within, opacity, ink } => {
                self.content.save_state();
                let state = state_name(self.opacities.len());
                self.opacities.push(points(*opacity));
                self.content.set_parameters(Name(&state));
                self.fill_in(*ink);
                if self.path(within) {
                    self.content.close_path().fill_nonzero();
                }
                self.content.restore_state();
            }
            Shape::Dot { at, radius, ink } => self.dot(*at, *radius, *ink),
            Shape::Text(text) => self.text(text),
        }
    }

    /// Whether there was a place.
    fn path(&mut self, through: &[Place]) -> bool {
        let Some(((x, y), others)) = through.split_first() else { return false };
        self.content.move_to(points(*x), points(*y));
        for (x, y) in others {
            self.content.line_to(points(*x), points(*y));
        }
        true
    }

    fn dot(&mut self, (x, y): Place, radius: f64, ink: Ink) {
        self.fill_in(ink);
        let near = QUARTER * radius;
        self.content.move_to(points(x + radius), points(y));
        // Each quarter: two control points and its end, from the middle.
        for [ax, ay, bx, by, cx, cy] in [
            [radius, near, near, radius, 0.0, radius],
            [-near, radius, -radius, near, -radius, 0.0],
            [-radius, -near, -near, -radius, 0.0, -radius],
            [near, -radius, radius, -near, radius, 0.0],
        ] {
            let [ax, bx, cx] = [ax, bx, cx].map(|across| points(x + across));
            let [ay, by, cy] = [ay, by, cy].map(|down| points(y + down));
            self.content.cubic_to(ax, ay, bx, by, cx, cy);
        }
        self.content.fill_nonzero();
    }

    fn text(&mut self, text: &Text) {
        let shown = self.font.fitted(&text.text, text.room, &mut self.lacking);
        let before = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => self.font.width_of(&shown) / 2.0,
            Anchor::End => self.font.width_of(&shown),
        };
        let mut bytes = Vec::with_capacity(2 * shown.len());
        for (c, glyph) in shown.chars().filter_map(|c| Some((c, self.font.glyph(c)?))) {
            bytes.extend(glyph.0.to_be_bytes());
            self.used.entry(glyph.0).or_insert(c);
        }
        self.content.save_state();
        self.fill_in(Ink::Text);
        if text.is_bold {
            self.stroke_in(Ink::Text);
            self.content.set_line_width(points(BOLD * FONT_SIZE));
            self.content.set_text_rendering_mode(TextRenderingMode::FillStroke);
        }
        let (x, y) = (points(text.at.0 - before), points(text.at.1));
        self.content.begin_text().set_font(FONT, points(FONT_SIZE));
        // Letters stand upright although places count from the top.
        self.content.set_text_matrix([1.0, 0.0, 0.0, -1.0, x, y]).show(Str(&bytes)).end_text();
        self.content.restore_state();
    }

    fn fill_in(&mut self, ink: Ink) {
        let [red, green, blue] = rgb(ink);
        self.content.set_fill_rgb(red, green, blue);
    }

    fn stroke_in(&mut self, ink: Ink) {
        let [red, green, blue] = rgb(ink);
        self.content.set_stroke_rgb(red, green, blue);
    }
}

/// On paper.
fn rgb(ink: Ink) -> [f32; 3] {
    let bytes: [u8; 3] = match ink {
        Ink::Text => [0, 0, 0],
        Ink::Blue => [0x2e, 0x86, 0xab],
        Ink::Red => [0xd1, 0x49, 0x5b],
        Ink::Grey => [0xcf, 0xcf, 0xcf],
    };
    bytes.map(|byte| f32::from(byte) / 255.0)
}

fn state_name(at: usize) -> Vec<u8> {
    format!("S{at}").into_bytes()
}

/// A figure as PDF takes it. What is none is 0, and what is far outside any page stays there: drawings have places for
/// finite figures only.
#[allow(clippy::cast_possible_truncation, reason = "places on a page need no more digits")]
fn points(value: f64) -> f32 {
    let within = if value.is_nan() { 0.0 } else { value.clamp(-FARTHEST, FARTHEST) };
    ((within * 1e3).round() / 1e3) as f32
}

fn write_font(pdf: &mut Pdf, font: &Font, used: &BTreeMap<u16, char>) {
    let Metrics { ascent, descent, capitals, around: [left, lowest, right, highest] } = font.metrics();
    pdf.type0_font(TYPE0)
        .base_font(FONT_NAME)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(CID_FONT)
        .to_unicode(TO_UNICODE);
    let mut cid_font = pdf.cid_font(CID_FONT);
    cid_font.subtype(CidFontType::Type2).base_font(FONT_NAME).system_info(IDENTITY).font_descriptor(DESCRIPTOR);
    cid_font.default_width(0.0).cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid_font.widths();
    for glyph in used.keys() {
        widths.consecutive(*glyph, [font.width(GlyphId(*glyph))]);
    }
    widths.finish();
    cid_font.finish();
    pdf.font_descriptor(DESCRIPTOR)
        .name(FONT_NAME)
        .flags(FontFlags::SYMBOLIC)
        .bbox(Rect::new(left, lowest, right, highest))
        .italic_angle(0.0)
        .ascent(ascent)
        .descent(descent)
        .cap_height(capitals)
        .stem_v(STEM)
        .font_file2(FONT_FILE);
    let file = deflated(font::FILE);
    let length = i32::try_from(font::FILE.len()).unwrap_or(i32::MAX);
    pdf.stream(FONT_FILE, &file).filter(Filter::FlateDecode).pair(Name(b"Length1"), length);
    let mut characters = UnicodeCmap::<u16>::new(Name(b"Custom"), IDENTITY);
    used.iter().for_each(|(glyph, c)| characters.pair(*glyph, *c));
    let characters = deflated(&characters.finish());
    pdf.cmap(TO_UNICODE, &characters).filter(Filter::FlateDecode);
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // Writing to a Vec cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
