use super::{
    lines::of,
    svg::{draw, merged},
    *,
};
use crate::{
    model::{frame::FrameKind, units::MicroJoules},
    report::{
        profile::Amounts,
        tree::{CallTree, Label, Mix, Node, NodeKind},
    },
};

/// The root, and a chain of frames below it, each with one microjoule of its own.
fn chain(names: &[&str]) -> CallTree {
    let node = |parent, label, left: usize| Node {
        parent,
        label,
        own: Amounts { energy: MicroJoules(u64::from(label > 0)), ..Amounts::default() },
        total: Amounts { energy: MicroJoules(left as u64), ..Amounts::default() },
        mix: Mix::default(),
        base_own: 2,
        base_total: 0,
    };
    let mut labels = vec![Label::new(NodeKind::All, "all")];
    let mut nodes = vec![node(None, 0, names.len())];
    for (index, name) in names.iter().enumerate() {
        labels.push(Label::new(NodeKind::Frame(FrameKind::CompiledC2), *name));
        nodes.push(node(Some(index), index + 1, names.len() - index));
    }
    CallTree { measure: Measure::Energy, labels, nodes, beside: Vec::new() }
}

fn drawing() -> Drawing {
    Drawing {
        data: "data".into(),
        base: None,
        filter: Filter::default(),
        app: None,
        shape: Shape::default(),
        measure: Measure::Energy,
        is_icicle: false,
        min_share: None,
        picture: Picture::Svg,
    }
}

fn drawn(tree: &CallTree, factor: Option<f64>) -> String {
    let svg = draw(&of(tree, factor), tree, &drawing(), "title".into(), "subtitle".into()).unwrap();
    String::from_utf8(finish::finish(&svg)).unwrap()
}

#[test]
fn a_drawing_says_how_much_is_too_narrow_for_it() {
    let tree = chain(&["a", "b", "c"]);
    assert_eq!(merged(&tree, &tree.pruned(1)), "");
    assert_eq!(merged(&tree, &tree.pruned(2)), "; 1 narrower box in [others]");
    assert_eq!(merged(&tree, &tree.pruned(3)), "; 2 narrower boxes in [others]");
}

#[test]
fn lines_are_paths_with_their_own_energy() {
    assert_eq!(of(&chain(&["a", "b"]), None), ["a [c2] 1", "a [c2];b [c2] 1"]);
    assert_eq!(of(&chain(&["a", "b"]), Some(1.5)), [" 3 0", "a [c2] 3 1", "a [c2];b [c2] 3 1"]);
}

#[test]
fn a_frame_says_its_joules_to_the_microjoule_and_has_its_kinds_colour() {
    let svg = drawn(&chain(&["com.acme.Shop.sell", "hash"]), None);
    assert!(svg.contains("<title>com.acme.Shop.sell [c2] (0.000002 J, 100.00%)</title>"), "{svg}");
    assert!(svg.contains("<title>hash [c2] (0.000001 J, 50.00%)</title>"), "{svg}");
    assert!(svg.contains("rgb(63,184,146)"), "{svg}");
    assert!(svg.contains("prefers-color-scheme: dark"));
}

#[test]
fn a_hostile_name_is_text_and_nothing_else() {
    let long = "x".repeat(65_536);
    let names = [
        "</title><script>alert(1)</script>",
        "a;b 5",
        "line\nbreak",
        "\"quoted\" & 'so'",
        "\u{1b}[2J\u{202e}",
        "fake (9 µJ, 1.00%)",
        &long,
    ];
    let tree = chain(&names);
    let svg = drawn(&tree, None);
    assert!(!svg.contains("<script>alert"), "{svg}");
    assert!(svg.contains("a:b 5 [c2] ("), "{svg}");
    assert!(svg.contains("line\\x0abreak") && svg.contains("\\x1b[2J"), "{svg}");
    assert!(svg.contains("fake (9 µJ, 1.00%) [c2] (0.00000"), "{svg}");
    // Every frame and the root.
    assert_eq!(svg.matches("<title>").count(), names.len() + 1);
    assert!(svg.len() < 60_000, "{}", svg.len());
}

#[test]
fn a_name_that_ends_in_a_number_has_one_figure() {
    let figures = |kind, name: &str| {
        let mut tree = chain(&[name]);
        tree.labels[1].kind = kind;
        let lines = of(&tree, None);
        let svg = drawn(&tree, None);
        assert!(!svg.contains("%; "), "drawn as a comparison: {lines:?}");
        lines
    };
    let marker = NodeKind::Frame(FrameKind::Marker);
    assert_eq!(figures(marker, "[x 9"), ["[x_9 1"]);
    assert_eq!(figures(marker, "f 1.2"), ["f_1.2 1"]);
    assert_eq!(figures(NodeKind::Thread, "pool 12"), ["pool_12 1"]);
    assert_eq!(figures(NodeKind::Thread, "9"), ["9 1"]);
    assert_eq!(figures(NodeKind::Frame(FrameKind::Native), "[x 9"), ["[x 9 [native] 1"]);
    assert_eq!(figures(NodeKind::Frame(FrameKind::Native), "f 12"), ["f 12 [native] 1"]);
}

#[test]
fn only_markers_go_without_their_kind() {
    let mut tree = chain(&["[I.clone", "[no sample]"]);
    tree.labels[2].kind = NodeKind::Frame(FrameKind::Marker);
    assert_eq!(of(&tree, None), ["[I.clone [c2] 1", "[I.clone [c2];[no sample] 1"]);
}

#[test]
fn a_comparison_says_what_changed() {
    let svg = drawn(&chain(&["a"]), Some(1.0));
    assert!(svg.contains("<title>a [c2] (0.000001 J, 100.00%; "), "{svg}");
}
