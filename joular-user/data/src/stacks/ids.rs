//! Computes ids of call paths. The same path has the same id in every process, on every host and in
//! every run, so data sets can be joined without its text.
//!
//! A branch id is XxHash64 with seed 0 over, for each frame from root to leaf: `class FE name FE
//! signature FE module FF`, where an absent part is empty. Kind, file and line are left out: a
//! method is the same method whether it is interpreted, compiled or inlined. A stack id tells those
//! apart too: before its FF each frame has `FE kind FE file FE line`, the line in decimal. After
//! the leaf it has how the stack was obtained and why it ends: `unwinder FE walk_end FF`. The bytes
//! FE and FF never occur in UTF-8, so no name can imitate a separator. The 64 bits are read as a
//! signed integer because not every Parquet reader has an unsigned one.

use std::hash::Hasher;

use twox_hash::XxHash64;

use crate::model::{
    frame::Frame,
    quality::{PathQuality, Unwinder},
    target_text::TargetText,
};

const SEED: u64 = 0;
const END_OF_PART: u8 = 0xfe;
const END_OF_FRAME: u8 = 0xff;

/// Id of the methods of a path.
pub fn branch_id<'a>(root_to_leaf: impl IntoIterator<Item = &'a Frame>) -> i64 {
    hasher(root_to_leaf, |_, _| {}).finish().cast_signed()
}

/// Id of a path with everything that is known of its frames and of its quality.
pub fn stack_id<'a>(root_to_leaf: impl IntoIterator<Item = &'a Frame>, quality: PathQuality) -> i64 {
    let mut hasher = hasher(root_to_leaf, |hasher, frame| {
        let line = frame.line.map(|line| line.to_string());
        for part in [frame.kind.name(), raw(&frame.file), line.as_deref().unwrap_or_default()] {
            hasher.write(&[END_OF_PART]);
            hasher.write(part.as_bytes());
        }
    });
    hasher.write(quality.unwinder().map_or("", Unwinder::name).as_bytes());
    hasher.write(&[END_OF_PART]);
    hasher.write(quality.end_name().as_bytes());
    hasher.write(&[END_OF_FRAME]);
    hasher.finish().cast_signed()
}

fn hasher<'a>(root_to_leaf: impl IntoIterator<Item = &'a Frame>, more: impl Fn(&mut XxHash64, &Frame)) -> XxHash64 {
    let mut hasher = XxHash64::with_seed(SEED);
    for frame in root_to_leaf {
        for part in [raw(&frame.class), frame.name.raw(), raw(&frame.signature)] {
            hasher.write(part.as_bytes());
            hasher.write(&[END_OF_PART]);
        }
        hasher.write(raw(&frame.module).as_bytes());
        more(&mut hasher, frame);
        hasher.write(&[END_OF_FRAME]);
    }
    hasher
}

fn raw(part: &Option<TargetText>) -> &str {
    part.as_ref().map_or("", TargetText::raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        frame::FrameKind,
        quality::{StackQuality, WalkEnd},
    };

    const WHOLE: PathQuality = PathQuality::Walked(StackQuality { unwinder: Unwinder::Tables, end: WalkEnd::Root });

    fn java(class: &str, name: &str) -> Frame {
        Frame { class: Some(class.into()), signature: Some("()V".into()), ..Frame::new(FrameKind::CompiledC2, name) }
    }

    #[test]
    fn the_id_is_that_of_the_documented_bytes() {
        let bytes = b"a.B\xferun\xfe()V\xfe\xffa.C\xfego\xfe()V\xfe\xff";
        let expected = XxHash64::oneshot(0, bytes).cast_signed();
        assert_eq!(branch_id(&[java("a.B", "run"), java("a.C", "go")]), expected);
        // Pinned: a change here breaks every comparison with older data sets.
        assert_eq!(expected, PINNED);
    }

    const PINNED: i64 = 2_921_803_792_381_861_977;

    #[test]
    fn kind_file_line_and_quality_matter_to_the_stack_only() {
        let plain = java("a.B", "run");
        let others = [
            Frame { kind: FrameKind::Inlined, ..plain.clone() },
            Frame { file: Some("B.java".into()), ..plain.clone() },
            Frame { line: Some(7), ..plain.clone() },
        ];
        let mut stacks =
            std::collections::HashSet::from([stack_id([&plain], WHOLE), stack_id([&plain], PathQuality::NoStack)]);
        assert_eq!(stacks.len(), 2);
        for other in &others {
            assert_eq!(branch_id([other]), branch_id([&plain]));
            assert!(stacks.insert(stack_id([other], WHOLE)), "{other:?}");
        }
    }

    #[test]
    fn the_stack_id_is_that_of_the_documented_bytes() {
        let frame = Frame { file: Some("B.java".into()), line: Some(7), ..java("a.B", "run") };
        let bytes = b"a.B\xferun\xfe()V\xfe\xfecompiled-c2\xfeB.java\xfe7\xfftables\xferoot\xff";
        assert_eq!(stack_id([&frame], WHOLE), XxHash64::oneshot(0, bytes).cast_signed());
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(branch_id(&[java("a", "bc")]), branch_id(&[java("ab", "c")]));
        assert_ne!(branch_id(&[java("a", "b"), java("c", "d")]), branch_id(&[java("c", "d"), java("a", "b")]));
    }
}
