"""Says what call paths are about: which methods are on each stack, and which one it ends in."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from joular.columns import append, derive, latest, numbered, sums

# Kinds of code that are Java.
JAVA = pa.array(["interpreted", "compiled", "compiled-c1", "compiled-c2", "inlined", "native-wrapper"])
METHOD = ["method", "class", "signature", "module"]


def methods(stacks: pa.Table, java: bool) -> tuple[pa.Table, pa.Table]:
    """Which methods are on each stack, each once, and what they are called.

    With `java`, only Java methods count, so that other code counts for the Java code that called it. Stacks without any
    stay as they are, and so do leaves that say what is not known.
    """
    stacks = latest(stacks, ["stack_id"], "window_start")
    frames = stacks.column("frames").combine_chunks()
    flat = pa.table(pc.list_flatten(frames).flatten(), [field.name for field in frames.type.value_type])
    flat = flat.select([*METHOD, "kind"])
    stack = stacks.column("stack_id").take(pc.list_parent_indices(frames))
    flat = append(flat, stack_id=stack, depth=pa.array(range(flat.num_rows), pa.int64()))
    flat = append(flat, group=numbered(derive(flat, marker=pc.field("kind") == "marker"), [*METHOD, "marker"]))
    if java:
        flat = _java_of(flat)
    leaves = _leaves(flat)
    ends = derive(flat.select(["stack_id", "group", "depth"]), leaf=pc.is_in(pc.field("depth"), leaves))
    on_paths = sums(ends, ["stack_id", "group"], leaf="max")
    named = derive(
        flat,
        method=pc.coalesce(pc.binary_join_element_wise(pc.field("class"), pc.field("method"), "."), pc.field("method")),
    )
    return on_paths, latest(named, ["group"], "depth").select(["group", *METHOD])


def branches(stacks: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Which branch each stack is of, and what they are called."""
    stacks = latest(stacks, ["stack_id"], "window_start")
    stacks = derive(stacks, group=pc.field("branch_id"), leaf=pc.scalar(True))
    named = latest(stacks, ["group"], "folded").select(["group", "branch_id", "depth", "folded"])
    return stacks.select(["stack_id", "group", "leaf"]), named


def _leaves(flat: pa.Table) -> pa.Array:
    return sums(flat, ["stack_id"], depth="max").column("depth").combine_chunks()


def _java_of(flat: pa.Table) -> pa.Table:
    is_java = pc.is_in(flat.column("kind"), JAVA)
    with_java = flat.filter(is_java).column("stack_id").combine_chunks()
    is_unknown = pc.and_(pc.is_in(flat.column("depth"), _leaves(flat)), pc.equal(flat.column("kind"), "marker"))
    has_none = pc.invert(pc.is_in(flat.column("stack_id"), with_java))
    return flat.filter(pc.or_(pc.or_(is_java, is_unknown), has_none))
