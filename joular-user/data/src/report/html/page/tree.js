// The call tree: nodes depth first in columns, as the page has them.

const METRICS = ["energy", "cpu", "samples"];

/** Totals, parents and positions of nodes whose own figures and depths are known. */
function treeOf(columns) {
  const length = columns.depth.length;
  const tree = {
    length,
    depth: columns.depth,
    name: columns.name,
    kind: columns.kind,
    detail: columns.detail,
    own: { energy: columns.self_uj, cpu: columns.self_cpu_us, samples: columns.self_samples },
    total: {},
    parent: new Int32Array(length).fill(-1),
    // The node behind the last one below this one.
    end: new Int32Array(length),
    deepest: 0,
  };
  const open = [];
  for (let node = 0; node < length; node++) {
    const depth = tree.depth[node];
    while (open.length > depth) tree.end[open.pop()] = node;
    if (depth > 0) tree.parent[node] = open[depth - 1];
    open.push(node);
    tree.deepest = Math.max(tree.deepest, depth);
  }
  while (open.length > 0) tree.end[open.pop()] = length;
  for (const metric of METRICS) tree.total[metric] = totals(tree, tree.own[metric]);
  return tree;
}

function totals(tree, own) {
  const total = Float64Array.from(own);
  for (let node = tree.length - 1; node > 0; node--) total[tree.parent[node]] += total[node];
  return total;
}

/** The same tree with what stands below nodes of these kinds merged across them. */
function mergedTree(tree, isLevel) {
  const root = { children: new Map(), node: 0, own: METRICS.map(() => 0) };
  const place = new Array(tree.length);
  for (let node = 0; node < tree.length; node++) {
    const parent = node === 0 ? root : place[tree.parent[node]];
    let at = parent;
    if (node > 0 && !isLevel(tree.kind[node])) {
      const key = `${tree.name[node]} ${tree.kind[node]} ${tree.detail[node]}`;
      at = parent.children.get(key);
      if (!at) {
        at = { children: new Map(), node, own: METRICS.map(() => 0) };
        parent.children.set(key, at);
      }
    }
    place[node] = at;
    METRICS.forEach((metric, index) => { at.own[index] += tree.own[metric][node]; });
  }
  const columns = { depth: [], name: [], kind: [], detail: [], self_uj: [], self_cpu_us: [], self_samples: [] };
  const stack = [[root, 0]];
  while (stack.length > 0) {
    const [at, depth] = stack.pop();
    columns.depth.push(depth);
    for (const column of ["name", "kind", "detail"]) columns[column].push(tree[column][at.node]);
    columns.self_uj.push(at.own[0]);
    columns.self_cpu_us.push(at.own[1]);
    columns.self_samples.push(at.own[2]);
    for (const child of [...at.children.values()].reverse()) stack.push([child, depth + 1]);
  }
  return treeOf(columns);
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
