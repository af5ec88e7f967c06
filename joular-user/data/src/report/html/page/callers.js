// Callers and callees: of a method, who called it and what it called, with what their call paths used.

/** Methods to choose from: those with most energy on their paths. */
const CHOICES = 500;

/** Of each method what its callers and callees used on paths through both. A path counts once, however often it recurs. */
function relationsOf(tree, isMethod) {
  const methods = new Map();
  const keys = new Array(tree.length);
  const open = { nodes: [], methods: new Map(), pairs: new Map() };
  const metrics = relatedOf(tree);
  const zeros = () => Object.fromEntries(metrics.map((metric) => [metric, 0]));
  const add = (sums, node) => {
    for (const metric of metrics) sums[metric] += tree.total[metric][node];
  };
  const related = (relations, key, node) => {
    if (!relations.has(key)) relations.set(key, { key, node, ...zeros() });
    return relations.get(key);
  };
  const raise = (counts, key, by) => counts.set(key, (counts.get(key) ?? 0) + by);
  const leave = (node) => {
    raise(open.methods, keys[node], -1);
    raise(open.pairs, pairOf(keys, tree.parent[node], node), -1);
  };
  for (let node = 0; node < tree.length; node++) {
    while (open.nodes.length > 0 && tree.depth[open.nodes.at(-1)] >= tree.depth[node]) leave(open.nodes.pop());
    keys[node] = isMethod(tree.kind[node]) ? `${tree.name[node]} ${tree.detail[node]}` : "";
    const [key, caller] = [keys[node], node === 0 ? "" : keys[tree.parent[node]]];
    const method = methods.get(key) ?? { node, all: zeros(), own: zeros(), callers: new Map(), callees: new Map() };
    methods.set(key, method);
    for (const metric of metrics) method.own[metric] += tree.own[metric][node];
    if (!open.methods.get(key)) add(method.all, node);
    const pair = pairOf(keys, tree.parent[node], node);
    if (node > 0 && !open.pairs.get(pair)) {
      add(related(method.callers, caller, tree.parent[node]), node);
      add(related(methods.get(caller).callees, key, node), node);
    }
    raise(open.methods, key, 1);
    raise(open.pairs, pair, 1);
    open.nodes.push(node);
  }
  methods.delete("");
  return methods;
}

function pairOf(keys, caller, node) {
  return caller < 0 ? "" : `${keys[caller]}|${keys[node]}`;
}

function relatedOf(tree) {
  return Object.keys(tree.own).filter((metric) => !["cpu", "inferred"].includes(metric));
}

class Callers {
  constructor(figures, tree, isMethod) {
    Object.assign(this, { figures, tree });
    this.methods = relationsOf(tree, isMethod);
    this.choice = byId("caller-method");
    const bySize = [...this.methods].sort(([, a], [, b]) => b.own.energy - a.own.energy || b.all.energy - a.all.energy);
    this.choice.replaceChildren(...bySize.slice(0, CHOICES).map(([key, method]) =>
      element("option", { value: key }, `${this.nameOf(method.node)} · ${joules(method.own.energy)} self`)));
    this.choice.addEventListener("change", () => this.show(this.choice.value));
    this.show(this.choice.value);
  }

  nameOf(node) {
    const { name, detail } = this.tree;
    return detail[node] < 0 ? this.figures.strings[name[node]] : `${this.figures.strings[name[node]]} ${this.figures.strings[detail[node]]}`;
  }

  show(key) {
    const method = this.methods.get(key);
    if (!method) return;
    const { all, own } = method;
    describe(byId("caller-sum"), this.nameOf(method.node), [
      `self ${joules(own.energy)}, ${count(own.samples)} samples`,
      `total ${joules(all.energy)}, ${count(all.samples)} samples`,
    ]);
    this.table("caller-table", "Called by", [...method.callers.values()], all);
    // Below a method there are also classes of what it allocated, which have no energy.
    this.table("callee-table", "Calls", [...method.callees.values()].filter((row) => row.key !== "" || row.energy > 0), all);
  }

  table(id, title, rows, all) {
    const name = (row) => (row.key === "" ? "[no method]" : this.nameOf(row.node));
    const go = (row) => {
      if (!this.methods.has(row.key)) return name(row);
      const button = element("button", { type: "button", class: "pick" }, name(row));
      button.addEventListener("click", () => {
        this.choice.value = row.key;
        this.show(row.key);
      });
      return button;
    };
    const columns = [
      { title, isText: true, class: "name", value: name, show: go },
      { title: "Energy", value: (row) => row.energy, show: (row) => shownJoules(row.energy) },
      { title: "Share", value: (row) => row.energy, show: (row) => share(row.energy, all.energy) },
      { title: "Samples", value: (row) => row.samples, show: (row) => count(row.samples) },
      ...this.figures.measures.map((measure) => (
        { title: capital(measure.title), value: (row) => row[measure.name], show: (row) => amountOf(measure, row[measure.name]) })),
    ];
    new SortableTable(byId(id), columns, rows, 1);
  }
}
