//! Assigns colours to what nodes stand for, the same in every picture.
//!
//! They are light enough for black text, whatever is around the picture. Hues are those of Okabe
//! and Ito, which people with any colour vision can tell apart. What is close in meaning is close
//! in hue (C2 and what it inlined). No colour is the only sign: names and legends say the kind too.

use super::NodeKind;
use crate::model::frame::FrameKind;

/// Red, green, blue.
pub const fn color(kind: NodeKind) -> [u8; 3] {
    match kind {
        NodeKind::All | NodeKind::Method => [0xce, 0xd4, 0xda],
        NodeKind::Process => [0xb4, 0xbf, 0xca],
        NodeKind::Thread => [0xc8, 0xd0, 0xd9],
        NodeKind::Class => [0xc9, 0xb8, 0xf0],
        NodeKind::Others => [0xdd, 0xdd, 0xdd],
        NodeKind::Frame(kind) => of_code(kind),
    }
}

const fn of_code(kind: FrameKind) -> [u8; 3] {
    match kind {
        FrameKind::Interpreted => [0xf0, 0xa8, 0x30],
        FrameKind::Compiled => [0x8f, 0xc9, 0x7a],
        FrameKind::CompiledC1 => [0xf2, 0xe2, 0x5c],
        FrameKind::CompiledC2 => [0x3f, 0xb8, 0x92],
        FrameKind::Inlined => [0x9b, 0xdc, 0xc4],
        FrameKind::NativeWrapper => [0xa9, 0xcf, 0xf0],
        FrameKind::Stub => [0xd8, 0xc3, 0x9a],
        FrameKind::Vm => [0xd9, 0x95, 0xbb],
        FrameKind::Native => [0x62, 0xb4, 0xe6],
        FrameKind::Kernel => [0xe8, 0x7d, 0x52],
        FrameKind::Marker => [0xb3, 0xb3, 0xb3],
    }
}

/// `#rrggbb`
pub fn hex(kind: NodeKind) -> String {
    let [red, green, blue] = color(kind);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Relative luminance as WCAG has it.
    fn luminance([red, green, blue]: [u8; 3]) -> f64 {
        let linear = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    #[test]
    fn black_text_can_be_read_on_every_colour_and_each_is_its_own() {
        for kind in NodeKind::ALL {
            let contrast = (luminance(color(kind)) + 0.05) / 0.05;
            assert!(contrast > 7.0, "{}: {contrast}", kind.name());
        }
        assert_eq!(NodeKind::ALL.map(hex).iter().collect::<HashSet<_>>().len(), NodeKind::ALL.len());
    }
}
