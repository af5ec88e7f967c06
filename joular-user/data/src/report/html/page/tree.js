// The call tree: nodes depth first in columns, as the page has them.

/** What the nodes of a page's tree have themselves, by metric: energy and what goes with it, and the page's measures. */
function ownOf(columns, measures) {
  return {
    energy: columns.self_uj, cpu: columns.self_cpu_us, samples: columns.self_samples, inferred: columns.self_inferred_uj,
    ...Object.fromEntries(measures.map((measure, index) => [measure.name, columns.self_beside[index]])),
  };
}

/** Totals, parents and positions of nodes whose own figures, by metric, and depths are known. */
function treeOf(columns, own) {
  const length = columns.depth.length;
  const tree = {
    length,
    depth: columns.depth,
    name: columns.name,
    kind: columns.kind,
    // Of what ran in several ways: kinds, each with its part.
    mix: columns.mix,
    detail: columns.detail,
    own,
    total: {},
    parent: new Int32Array(length).fill(-1),
    // The node behind the last one below this one.
    end: new Int32Array(length),
  };
  const open = [];
  for (let node = 0; node < length; node++) {
    const depth = tree.depth[node];
    while (open.length > depth) tree.end[open.pop()] = node;
    if (depth > 0) tree.parent[node] = open[depth - 1];
    open.push(node);
  }
  while (open.length > 0) tree.end[open.pop()] = length;
  for (const metric of Object.keys(own)) tree.total[metric] = totals(tree, own[metric]);
  return tree;
}

function totals(tree, own) {
  const total = Float64Array.from(own);
  for (let node = tree.length - 1; node > 0; node--) total[tree.parent[node]] += total[node];
  return total;
}

/** Kinds of a node's code with their parts of its total, the largest first. */
function kindsOf(tree, node) {
  if (tree.mix[node].length > 0) return tree.mix[node];
  if (tree.total.energy === undefined) return [[tree.kind[node], 1]];
  const isOfEnergy = tree.total.energy[0] > 0;
  return [[tree.kind[node], (isOfEnergy ? tree.total.energy : tree.total.cpu)[node]]];
}

/** `compiled-c2 83 %, interpreted 17 %`, or the one kind. */
function kindText(kinds, tree, node) {
  const mixed = kindsOf(tree, node).filter((kind) => kind[1] > 0);
  if (mixed.length < 2) return kinds[tree.kind[node]][0];
  const whole = mixed.reduce((sum, kind) => sum + kind[1], 0);
  return mixed.map(([kind, part]) => `${kinds[kind][0]} ${share(part, whole)}`).join(", ");
}

/**
 * The same tree with what stands below levels merged across them. `identity` of a
 * node's kind tells nodes of one name apart.
 */
function mergedTree(tree, isLevel, identity) {
  const metrics = Object.keys(tree.own);
  const root = { children: new Map(), node: 0, own: metrics.map(() => 0) };
  const place = new Array(tree.length);
  for (let node = 0; node < tree.length; node++) {
    const parent = node === 0 ? root : place[tree.parent[node]];
    let at = parent;
    if (node > 0 && !isLevel(tree.kind[node])) {
      const key = `${tree.name[node]} ${identity(tree.kind[node])} ${tree.detail[node]}`;
      at = parent.children.get(key);
      if (!at) {
        at = { children: new Map(), node, own: metrics.map(() => 0), mix: new Map() };
        parent.children.set(key, at);
      }
    }
    place[node] = at;
    if (at !== parent) {
      for (const [kind, part] of kindsOf(tree, node)) at.mix.set(kind, (at.mix.get(kind) || 0) + part);
    }
    metrics.forEach((metric, index) => { at.own[index] += tree.own[metric][node]; });
  }
  const columns = { depth: [], name: [], kind: [], mix: [], detail: [] };
  const own = Object.fromEntries(metrics.map((metric) => [metric, []]));
  const stack = [[root, 0]];
  while (stack.length > 0) {
    const [at, depth] = stack.pop();
    columns.depth.push(depth);
    for (const column of ["name", "detail"]) columns[column].push(tree[column][at.node]);
    const mix = [...(at.mix || [])].sort((a, b) => b[1] - a[1]);
    columns.kind.push(mix.length > 0 ? mix[0][0] : tree.kind[at.node]);
    columns.mix.push(mix.length > 1 ? mix : []);
    metrics.forEach((metric, index) => own[metric].push(at.own[index]));
    for (const child of [...at.children.values()].reverse()) stack.push([child, depth + 1]);
  }
  return treeOf(columns, own);
}

/** Which nodes match, and how much they have together, each branch counted once. */
function searched(tree, metric, matches, within) {
  const found = new Uint8Array(tree.length);
  let sum = 0;
  let covered = -1;
  let number = 0;
  for (let node = within; node < tree.end[within]; node++) {
    if (!matches(tree.name[node])) continue;
    found[node] = 1;
    number += 1;
    if (node >= covered) {
      sum += tree.total[metric][node];
      covered = tree.end[node];
    }
  }
  return { found, sum, number };
}

/** `/pattern/` is a regular expression, anything else a part of a name in any case. */
function matcher(text, strings, isLiteral) {
  const pattern = !isLiteral && /^\/(.+)\/?$/.exec(text);
  let test = null;
  if (pattern) {
    try {
      const expression = new RegExp(pattern[1].replace(/\/$/, ""), "i");
      test = (name) => expression.test(name);
    } catch {
      return null;
    }
  } else {
    const part = text.toLowerCase();
    test = (name) => name.toLowerCase().includes(part);
  }
  const known = new Map();
  return (name) => {
    if (!known.has(name)) known.set(name, test(strings[name]));
    return known.get(name);
  };
}
