// Names of methods, which are long: the package can be left out.

const JAVA = ["interpreted", "compiled", "compiled-c1", "compiled-c2", "inlined", "native-wrapper", "method"];

/** Where the package of a Java method ends in its name: packages begin with small letters, and a class stays. */
function packageEnd(name, least = 2) {
  const parameters = name.indexOf("(");
  const segments = (parameters < 0 ? name : name.slice(0, parameters)).split(".");
  let end = 0;
  while (segments.length > least && /^[\p{Ll}_][\p{L}\p{N}_]*$/u.test(segments[0])) end += segments.shift().length + 1;
  return end;
}

/** Where the package ends in the name of a node of this kind; 0: there is none. */
function packageOf(kind, name) {
  if (kind === "allocated-class") return packageEnd(name, 1);
  return JAVA.includes(kind) ? packageEnd(name) : 0;
}

/** A name of which the package gives way first, and whose end stays whole as long as there is room. */
function nameCell(name, kind, detail) {
  const end = packageOf(kind, name);
  const parts = [element("span", { class: "package" }, name.slice(0, end)), element("span", { class: "short" }, name.slice(end))];
  if (detail) parts.push(element("small", {}, detail));
  return element("span", { class: "parts", title: detail ? `${name} ${detail}` : name }, ...parts);
}
