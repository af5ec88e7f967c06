// The flame graph: frames of the zoomed node's width, drawn on one canvas. Only
// what is wider than a pixel is drawn, so the work is bounded by the screen.

const ROW = 19;
const NARROWEST = 0.6;

class FlameGraph {
  constructor(figures, tree, listeners) {
    this.figures = figures;
    this.listeners = listeners;
    this.stage = byId("stage");
    this.canvas = byId("canvas");
    this.metric = "energy";
    this.icicle = true;
    this.matches = null;
    this.setTree(tree);
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => { byId("tip").hidden = true; });
    this.canvas.addEventListener("click", (event) => {
      const node = this.nodeAt(event);
      if (node >= 0) this.zoom(node);
    });
    this.stage.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  setTree(tree) {
    this.tree = tree;
    this.focus = 0;
    this.cursor = 0;
    this.search(this.searchText || "", this.isLiteral);
  }

  /** Sets what is looked for, and says how much it has. What is literal is not a pattern. */
  search(text, isLiteral = false) {
    this.searchText = text;
    this.isLiteral = isLiteral;
    this.matches = text === "" ? null : matcher(text, this.figures.strings, isLiteral);
    const isWrong = text !== "" && this.matches === null;
    const result = this.matches ? searched(this.tree, this.metric, this.matches, this.focus) : null;
    this.found = result && result.found;
    this.listeners.searched(result, this.tree.total[this.metric][this.focus], this.metric, isWrong);
    this.draw();
  }

  zoom(node) {
    this.focus = node;
    this.cursor = node;
    this.search(this.searchText, this.isLiteral);
    this.listeners.zoomed(this.path(node));
    this.show(node);
  }

  path(node) {
    const path = [];
    for (let at = node; at >= 0; at = this.tree.parent[at]) path.unshift(at);
    return path;
  }

  nameOf(node) {
    return this.figures.strings[this.tree.name[node]];
  }

  draw() {
    const width = this.stage.clientWidth;
    if (width === 0) return;
    this.layout(width);
    const height = (this.rows + 1) * ROW;
    const context = sized(this.canvas, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const colors = this.figures.kinds.map((kind) => kind[1]);
    const mark = themed("--mark");
    const well = themed("--well");
    this.height = height;
    for (const box of this.boxes) {
      const y = this.yOf(box.row);
      const isDim = (this.found && !this.found[box.node]) || box.isAbove;
      context.globalAlpha = isDim ? 0.35 : 1;
      this.fill(context, box, y, colors);
      context.globalAlpha = 1;
      if (this.found && this.found[box.node]) {
        context.fillStyle = mark;
        context.fillRect(box.x, this.icicle ? y : y + ROW - 4, Math.max(box.width - 0.6, 0.5), 3);
      }
      if (box.width > 26) this.write(context, box, y, isDim);
      if (box.node === this.cursor && document.activeElement === this.stage) {
        context.lineWidth = 2;
        context.strokeStyle = themed("--ink");
        context.strokeRect(box.x + 1, y + 1, Math.max(box.width - 2.6, 1), ROW - 3);
      }
    }
    this.stage.dataset.boxes = this.boxes.length;
    context.fillStyle = well;
  }

  /** A box has the colour of its kind, or of its kinds as much of each as there is. */
  fill(context, box, y, colors) {
    const whole = Math.max(box.width - 0.6, 0.5);
    context.fillStyle = colors[this.tree.kind[box.node]];
    context.fillRect(box.x, y, whole, ROW - 1);
    const kinds = this.tree.mix[box.node];
    const sum = kinds.reduce((all, kind) => all + kind[1], 0);
    if (sum === 0) return;
    let at = box.x;
    for (const [kind, part] of kinds) {
      context.fillStyle = colors[kind];
      context.fillRect(at, y, (whole * part) / sum, ROW - 1);
      at += (whole * part) / sum;
    }
  }

  write(context, box, y, isDim) {
    context.fillStyle = isDim && document.documentElement.dataset.theme === "dark" ? "#e8e9ea" : "#16181a";
    context.fillText(fitted(context, this.nameOf(box.node), box.width - 7), box.x + 3, y + ROW / 2);
  }

  yOf(row) {
    return this.icicle ? row * ROW : this.height - (row + 1) * ROW;
  }

  /** Boxes of what is above the focus, the focus and all that is wide enough below it. */
  layout(width) {
    const { tree, focus } = this;
    const total = tree.total[this.metric];
    const path = this.path(focus);
    this.boxes = path.map((node, row) => ({ node, row, x: 0, width, isAbove: node !== focus }));
    const scale = total[focus] > 0 ? width / total[focus] : 0;
    const base = path.length - 1;
    this.rows = base + 1;
    const stack = [[focus, 0, base]];
    while (stack.length > 0) {
      const [node, x, row] = stack.pop();
      let at = x;
      for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
        const childWidth = total[child] * scale;
        if (childWidth >= NARROWEST) {
          this.boxes.push({ node: child, row: row + 1, x: at, width: childWidth, isAbove: false });
          this.rows = Math.max(this.rows, row + 2);
          stack.push([child, at, row + 1]);
        }
        at += childWidth;
      }
    }
  }

  boxAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    const row = this.icicle ? Math.floor(y / ROW) : Math.floor((this.height - y) / ROW);
    return this.boxes.find((box) => box.row === row && x >= box.x && x < box.x + box.width);
  }

  nodeAt(event) {
    const box = this.boxAt(event);
    return box ? box.node : -1;
  }

  point(event) {
    const node = this.nodeAt(event);
    const tip = byId("tip");
    tip.hidden = node < 0;
    if (node < 0) return;
    this.show(node);
    const kinds = kindText(this.figures, this.tree, node);
    tip.textContent = `${this.nameOf(node)} — ${this.amount(this.tree.total[this.metric][node])} — ${kinds}`;
    tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 330)}px`;
    tip.style.top = `${event.clientY + 18}px`;
  }

  amount(value) {
    if (this.metric === "energy") return joules(value);
    const measure = this.figures.measures.find((one) => one.name === this.metric);
    if (measure) return amountOf(measure, value);
    return this.metric === "cpu" ? seconds(value * 1000) : `${count(value)} samples`;
  }

  show(node) {
    const { tree, figures } = this;
    const energy = tree.total.energy[node];
    const detail = tree.detail[node] >= 0 ? figures.strings[tree.detail[node]] : "";
    describe(byId("details"), this.nameOf(node), [
      kindText(figures, tree, node),
      `${exactJoules(energy)} J`,
      `self ${joules(tree.own.energy[node])}`,
      `${watts(energy, figures.duration_ns)} over ${seconds(figures.duration_ns)}`,
      `${share(energy, tree.total.energy[0])} of all`,
      this.focus > 0 && `${share(energy, tree.total.energy[this.focus])} of the zoomed frame`,
      `CPU ${seconds(tree.total.cpu[node] * 1000)}`,
      `${count(tree.total.samples[node])} samples${interval(energy, tree.total.samples[node], tree.total.energy[0], tree.total.samples[0])}`,
      tree.total.inferred[node] > 0 && `${share(tree.total.inferred[node], energy)} by samples of other windows`,
      ...figures.measures.map((measure) => {
        const [part, whole] = [tree.total[measure.name][node], tree.total[measure.name][0]];
        return part > 0 && `${measure.title} ${amountOf(measure, part)} (${share(part, whole)})`;
      }),
      detail,
    ]);
    byId("details").dataset.uj = energy;
  }

  key(event) {
    const moves = {
      ArrowUp: () => (this.icicle ? this.parentOf() : this.childOf()),
      ArrowDown: () => (this.icicle ? this.childOf() : this.parentOf()),
      ArrowLeft: () => this.sibling(-1),
      ArrowRight: () => this.sibling(1),
      Home: () => this.focus,
    };
    if (event.key === "Enter" || event.key === " ") this.zoom(this.cursor);
    else if (event.key === "Escape" && this.focus > 0) this.zoom(this.tree.parent[this.focus]);
    else if (moves[event.key]) this.moveTo(moves[event.key]());
    else return;
    event.preventDefault();
  }

  moveTo(node) {
    const box = this.boxes.find((candidate) => candidate.node === node);
    if (!box) return;
    this.cursor = node;
    this.show(node);
    this.draw();
    const y = this.yOf(box.row);
    if (y < this.stage.scrollTop || y + ROW > this.stage.scrollTop + this.stage.clientHeight) {
      this.stage.scrollTop = y - this.stage.clientHeight / 2;
    }
  }

  parentOf() {
    return this.tree.parent[this.cursor];
  }

  /** The widest child that is drawn. */
  childOf() {
    const children = this.boxes.filter((box) => this.tree.parent[box.node] === this.cursor);
    if (children.length === 0) return -1;
    return children.reduce((widest, box) => (box.width > widest.width ? box : widest)).node;
  }

  sibling(step) {
    const here = this.boxes.find((box) => box.node === this.cursor);
    if (!here) return -1;
    const row = this.boxes.filter((box) => box.row === here.row).sort((a, b) => a.x - b.x);
    const next = row[row.indexOf(here) + step];
    return next ? next.node : -1;
  }
}

/**
 * The 95 % interval of a share, more roughly than in the method table: the whole selection
 * as one thread, of equal samples that hit or did not.
 */
function interval(part, samples, whole, allSamples) {
  if (samples === 0 || whole === 0 || part === whole) return "";
  return ` (95 % interval of the share: ${shareRange(Math.min(part / whole, 1), allSamples)})`;
}

/** As much of a text as fits, its end first: the class and method. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [least, most] = [0, text.length];
  while (least < most) {
    const middle = (least + most) >> 1;
    if (context.measureText(`…${text.slice(middle)}`).width <= width) most = middle;
    else least = middle + 1;
  }
  return text.length - least < 3 ? "" : `…${text.slice(least)}`;
}
