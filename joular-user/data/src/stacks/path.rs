//! Turns raw addresses into a call path: the user part, then the kernel part, each root → leaf,
//! with a marker wherever something is missing.

use joular_ebpf::abi::FrameWord;

use super::intern::{FrameId, StackTable};
use crate::{
    events::RawStack,
    model::{
        frame::{Frame, FrameKind, Marker},
        quality::{PathQuality, StackQuality, WalkEnd},
        units::Address,
    },
};

/// The addresses to look up for a stack, leaf first. Every address but the leaf's is a return
/// address, which may already belong to the next function or line: the call itself is one byte
/// before it. A run-time system's frames say themselves which of the two they are.
pub fn lookup_addresses(stack: &RawStack) -> impl Iterator<Item = Address> + '_ {
    stack.frames.iter().enumerate().map(|(depth, frame)| {
        match FrameWord(frame.0).is_of_a_runtime() && !stack.is_kernel || depth == 0 {
            true => *frame,
            false => Address(frame.0.saturating_sub(1)),
        }
    })
}

/// One part of a sample's stack, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub enum StackPart<'a> {
    /// There is none: user code was interrupted, or a kernel thread runs.
    Absent,
    /// There is none any more: its thread ends, and the kernel has taken the thread's memory.
    Ended,
    /// There should be one, but it could not be read.
    Unreadable,
    /// It was read, but did not reach user space.
    Lost,
    Known(&'a RawStack),
}

/// Builds a call path root → leaf, and says how good it is. `resolve` gives the frames at an address
/// of the kernel (`true`) or the process, outermost first; none if unknown.
pub fn call_path<'a>(
    table: &mut StackTable,
    user: StackPart<'_>,
    kernel: StackPart<'_>,
    resolve: impl Fn(bool, Address) -> Option<&'a [FrameId]>,
) -> (Vec<FrameId>, PathQuality) {
    let mut path = Vec::new();
    for (is_kernel, part) in [(false, user), (true, kernel)] {
        match part {
            StackPart::Absent => {}
            StackPart::Ended => push_marker(table, &mut path, Marker::EndingThread),
            StackPart::Unreadable => push_marker(table, &mut path, Marker::NoStack),
            StackPart::Lost => push_marker(table, &mut path, Marker::LostStack),
            StackPart::Known(stack) => {
                if let Some(marker) = missing_root(stack.quality.end) {
                    push_marker(table, &mut path, marker);
                }
                let addresses: Vec<Address> = lookup_addresses(stack).collect();
                for address in addresses.into_iter().rev() {
                    match resolve(is_kernel, address) {
                        Some(frames) if !frames.is_empty() => path.extend_from_slice(frames),
                        _ => push_marker(table, &mut path, Marker::Unresolved),
                    }
                }
            }
        }
    }
    if path.is_empty() {
        push_marker(table, &mut path, Marker::NoStack);
        return (path, PathQuality::NoStack);
    }
    (path, quality(user, kernel))
}

/// The path of an object that was sampled, and its class: the leaf of its stack. The path ends with the Java method that
/// allocated the object, because what the JVM does below that is the same for all.
pub fn allocating_path<'a>(
    table: &mut StackTable,
    stack: StackPart<'_>,
    resolve: impl Fn(Address) -> Option<&'a [FrameId]>,
) -> (Vec<FrameId>, PathQuality, Option<FrameId>) {
    let (mut path, quality) = call_path(table, stack, StackPart::Absent, |_, address| resolve(address));
    let class = match stack {
        StackPart::Known(_) => path.pop().filter(|leaf| table.frame(*leaf).kind != FrameKind::Marker),
        _ => None,
    };
    if let Some(method) = path.iter().rposition(|frame| table.frame(*frame).kind.is_java()) {
        path.truncate(method + 1);
    }
    if path.is_empty() {
        push_marker(table, &mut path, Marker::NoStack);
        return (path, PathQuality::NoStack, class);
    }
    (path, quality, class)
}

/// The user part's quality, unless more is missing of the kernel's.
fn quality(user: StackPart<'_>, kernel: StackPart<'_>) -> PathQuality {
    let walked = match user {
        StackPart::Known(stack) => stack.quality,
        StackPart::Unreadable => return PathQuality::NoStack,
        StackPart::Lost => return PathQuality::LostStack,
        StackPart::Absent => return without_user_part(PathQuality::Kernel, kernel),
        StackPart::Ended => return without_user_part(PathQuality::Ended, kernel),
    };
    match kernel {
        StackPart::Lost => PathQuality::LostStack,
        StackPart::Unreadable | StackPart::Ended => PathQuality::NoStack,
        StackPart::Known(stack) if stack.quality.end == WalkEnd::Depth && walked.end.is_complete() != Some(false) => {
            PathQuality::Walked(StackQuality { end: WalkEnd::Depth, ..walked })
        }
        StackPart::Known(_) | StackPart::Absent => PathQuality::Walked(walked),
    }
}

/// The quality of a path that has nothing but its kernel part, unless more is missing of that.
fn without_user_part(whole: PathQuality, kernel: StackPart<'_>) -> PathQuality {
    match kernel {
        StackPart::Known(stack) if stack.quality.end == WalkEnd::Depth => PathQuality::Walked(stack.quality),
        StackPart::Known(_) | StackPart::Absent => whole,
        StackPart::Unreadable | StackPart::Ended => PathQuality::NoStack,
        StackPart::Lost => PathQuality::LostStack,
    }
}

/// The marker in the place of a root that a walk did not reach.
const fn missing_root(end: WalkEnd) -> Option<Marker> {
    match end {
        // Of a chain of frame pointers nobody knows; markers would be everywhere.
        WalkEnd::Root | WalkEnd::Chain => None,
        WalkEnd::Depth => Some(Marker::Truncated),
        WalkEnd::Frozen => Some(Marker::Frozen),
        WalkEnd::NoMapping
        | WalkEnd::NoRule
        | WalkEnd::Unreadable
        | WalkEnd::Implausible
        | WalkEnd::DeadCode
        | WalkEnd::Budget => Some(Marker::Broken),
    }
}

/// Merges neighbouring markers of a kind: a broken chain of frame pointers yields runs of nonsense
/// that would make every path unique.
fn push_marker(table: &mut StackTable, path: &mut Vec<FrameId>, marker: Marker) {
    let id = table.frame_id(Frame::marker(marker));
    if path.last() != Some(&id) {
        path.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::quality::StackQuality;

    fn raw(frames: &[u64], truncated: bool) -> RawStack {
        let quality = if truncated { StackQuality::TRUNCATED } else { StackQuality::default() };
        RawStack { id: 1, is_kernel: false, quality, frames: frames.iter().map(|f| Address(*f)).collect() }
    }

    /// Names address 100·k … 100·k+99 after k, inlines `in` into 2, knows nothing of 9.
    fn path_of(user: StackPart<'_>, kernel: StackPart<'_>) -> String {
        let mut table = StackTable::default();
        let mut names: Vec<Vec<FrameId>> = Vec::new();
        for index in 0..9 {
            let mut frames = vec![table.frame_id(Frame::new(FrameKind::Native, format!("f{index}")))];
            if index == 2 {
                frames.push(table.frame_id(Frame::new(FrameKind::Inlined, "in")));
            }
            names.push(frames);
        }
        let (path, quality) = call_path(&mut table, user, kernel, |is_kernel, address| {
            let index = usize::try_from(address.0 / 100).unwrap();
            names.get(if is_kernel { index + 5 } else { index }).map(Vec::as_slice)
        });
        let branch = table.branch_index(&path, quality);
        format!("{} ({})", table.folded(branch), quality.end_name())
    }

    #[test]
    fn the_path_of_an_allocation_ends_with_the_java_method_and_its_leaf_is_the_class() {
        let lost: &str = "[lost stack] of none";
        for (stack, expected) in [
            // Leaf first: the class, then the JVM's own functions.
            (Some(&[7, 350, 310, 250, 110][..]), "f1;f2;in of f7"),
            (Some(&[7, 350, 110]), "f1;f3 of f7"),
            (Some(&[9_999, 250]), "f2;in of none"),
            (Some(&[7]), "[no stack] of f7"),
            (None, lost),
        ] {
            let mut table = StackTable::default();
            let java = table.frame_id(Frame::new(FrameKind::Inlined, "in"));
            let names: Vec<Vec<FrameId>> = (0..9)
                .map(|index| {
                    let own = table.frame_id(Frame::new(FrameKind::Vm, format!("f{index}")));
                    if index == 2 { vec![own, java] } else { vec![own] }
                })
                .collect();
            let known = stack.map(|frames| raw(frames, false));
            let part = known.as_ref().map_or(StackPart::Lost, StackPart::Known);
            let of = |address: Address| match address.0 {
                7 => names.get(7),
                other => names.get(usize::try_from(other / 100).unwrap()),
            };
            let (path, quality, class) = allocating_path(&mut table, part, |address| of(address).map(Vec::as_slice));
            let branch = table.branch_index(&path, quality);
            let class = class.map_or("none", |class| table.frame(class).name.raw());
            assert_eq!(format!("{} of {class}", table.folded(branch)), expected);
        }
    }

    #[test]
    fn paths_run_from_the_root_to_the_leaf() {
        let truncated_kernel = RawStack { is_kernel: true, ..raw(&[5], true) };
        let cases = [
            // The return address 200 belongs to the call at 199, in f1.
            (StackPart::Known(&raw(&[250, 200], false)), StackPart::Absent, "f1;f2;in (chain)"),
            (StackPart::Known(&raw(&[250], true)), StackPart::Absent, "[truncated];f2;in (depth)"),
            (StackPart::Known(&raw(&[110, 901, 950], false)), StackPart::Absent, "[unresolved];f1 (chain)"),
            (StackPart::Known(&raw(&[110], false)), StackPart::Known(&raw(&[5], false)), "f1;f5 (chain)"),
            (StackPart::Known(&raw(&[110], false)), StackPart::Known(&truncated_kernel), "f1;[truncated];f5 (depth)"),
            (StackPart::Known(&raw(&[110], false)), StackPart::Lost, "f1;[lost stack] (lost-stack)"),
            (StackPart::Absent, StackPart::Known(&raw(&[5], false)), "f5 (kernel)"),
            (StackPart::Absent, StackPart::Known(&truncated_kernel), "[truncated];f5 (depth)"),
            (StackPart::Ended, StackPart::Known(&raw(&[5], false)), "[ending thread];f5 (ended)"),
            (StackPart::Ended, StackPart::Known(&truncated_kernel), "[ending thread];[truncated];f5 (depth)"),
            (StackPart::Ended, StackPart::Lost, "[ending thread];[lost stack] (lost-stack)"),
            (StackPart::Unreadable, StackPart::Known(&raw(&[5], false)), "[no stack];f5 (no-stack)"),
            (StackPart::Lost, StackPart::Absent, "[lost stack] (lost-stack)"),
            (StackPart::Absent, StackPart::Absent, "[no stack] (no-stack)"),
        ];
        for (user, kernel, expected) in cases {
            assert_eq!(path_of(user, kernel), expected);
        }
    }
}
