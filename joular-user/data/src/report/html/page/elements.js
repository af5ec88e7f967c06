// Making elements. Texts go in as text nodes, whatever they hold: names come from
// processes that may be hostile.

function byId(id) {
  return document.getElementById(id);
}

/** An element with attributes and children; a child that is not a node is text. */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawing(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/** A square in a colour. Set as an attribute: the page's policy allows no inline styles. */
function swatch(color) {
  const square = drawing("rect", { width: 11, height: 11, rx: 2, fill: color });
  return drawing("svg", { width: 11, height: 11, "aria-hidden": "true" }, square);
}

/** The value of one of the style sheet's variables. */
function themed(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A canvas of this many CSS pixels, sharp on any screen; its context. */
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** A line of a name and figures below a picture. */
function describe(place, name, figures) {
  place.replaceChildren(element("b", {}, name), ...figures.filter(Boolean).map((figure) => element("span", {}, figure)));
}

/** Lines beside the pointer, within the window; none hides them. */
function placeTip(event, lines) {
  const tip = byId("tip");
  tip.hidden = lines.length === 0;
  tip.textContent = lines.join("\n");
  const [x, y] = [event.clientX + 14, event.clientY + 18];
  const left = x + tip.offsetWidth > window.innerWidth ? window.innerWidth - tip.offsetWidth - 8 : x;
  const top = y + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 12 : y;
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${Math.max(top, 4)}px`;
}
