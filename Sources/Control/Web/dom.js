// Elements made of nodes and text alone. Names of files, texts of servers and tags of recordings are hostile:
// nothing here, and nothing that uses it, ever turns text into markup.

const SVG = "http://www.w3.org/2000/svg";

/** Sets attributes, properties and listeners (`onclick: handler`). `null`, `undefined` and `false` are left out. */
export function assign(node, attributes = {}) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") node[name] = value;
    else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  return node;
}

/** Makes an element. Children are nodes, texts or lists of them; `null`, `undefined` and `false` are left out. */
export function element(tag, attributes, ...children) {
  const node = assign(document.createElement(tag), attributes);
  node.append(...present(children));
  return node;
}

/** The same for an element of a drawing. */
export function drawn(tag, attributes, ...children) {
  const node = assign(document.createElementNS(SVG, tag), attributes);
  node.append(...present(children));
  return node;
}

function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Text of others: isolated, so that control characters in it cannot reorder its surroundings. */
export function foreign(text, attributes) {
  return element("bdi", attributes, visibly(text));
}

/** Shows characters that reorder or hide text as their code points, so that a name cannot look like another one. */
export function visibly(text) {
  return String(text ?? "").replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Replaces the text of a node, only if it is another one. */
export function setText(node, text) {
  const value = text ?? "";
  if (node.textContent !== value) node.textContent = value;
}

/** Sets or removes an attribute, only if it changes. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** The address of a view: `#/queue?folder=door`. */
export function link(view, params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value)).toString();
  return `#/${view}${query && `?${query}`}`;
}

/** Pixels of a `rem`: the size of text that the viewer wants. */
export const rootSize = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

/** Replaces all children. */
export function fill(node, ...children) {
  node.replaceChildren(...present(children));
  return node;
}

/**
 * Makes the children of `parent` those of `items`, in order. A child of the same key is kept and updated, so that
 * focus, selection and hover stay where they are. Items with equal keys are told apart by their order.
 *
 * @param make Makes a child: an object with `node`, `update(item)` and perhaps `gone()`.
 */
export function keyed(parent, items, keyOf, make) {
  const old = parent.keyedChildren ?? new Map();
  const times = new Map();
  const keys = items.map((item) => {
    const key = keyOf(item);
    const time = times.get(key) ?? 0;
    times.set(key, time + 1);
    return time ? `${key}\n${time}` : key;
  });
  const children = new Map(keys.map((key) => [key, null]));
  // First those that go, so that none of those that stay has to move: moving takes the focus away.
  for (const [key, child] of old) {
    if (children.has(key)) continue;
    child.node.remove();
    child.gone?.();
  }
  let next = parent.firstChild;
  for (const [index, item] of items.entries()) {
    const key = keys[index];
    const child = old.get(key) ?? make(item);
    child.update(item);
    children.set(key, child);
    if (child.node === next) next = next.nextSibling;
    else parent.insertBefore(child.node, next);
  }
  parent.keyedChildren = children;
}

/** A part of a view with its heading. */
export function panel(title, ...children) {
  return element("section", { class: "panel" }, element("h2", {}, title), children);
}

/**
 * A table in a region that scrolls by itself.
 *
 * @param heads The words over the columns. Those in `figures` are set to the right.
 * @param rows Lists of cells: nodes, texts or lists of them. The one at the place `key` names its row.
 */
export function dataTable(label, heads, rows, { figures = [], key = 0, kind = "" } = {}) {
  const style = (index) => (figures.includes(heads[index]) ? "number" : "");
  const cell = (content, index) => (index === key ? element("th", { scope: "row" }, content)
    : element("td", { class: style(index) }, content));
  return element("div", { class: `scroll ${kind}`, tabindex: "0", role: "region", "aria-label": label },
    element("table", {},
      element("thead", {}, element("tr", {}, heads.map((head, index) =>
        element("th", { scope: "col", class: style(index) }, head)))),
      element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map(cell))))));
}

/** Makes the content of `root` again, and leaves focus and scrolled regions where they were, found by their labels. */
export function remake(root, ...children) {
  const regions = () => [...root.querySelectorAll("[aria-label]")];
  const labelOf = (node) => node.getAttribute("aria-label");
  const places = new Map(regions().map((node) => [labelOf(node), [node.scrollLeft, node.scrollTop]]));
  const focused = root.contains(document.activeElement) && labelOf(document.activeElement);
  fill(root, children);
  for (const node of regions()) {
    const [left, top] = places.get(labelOf(node)) ?? [0, 0];
    if (left || top) node.scrollTo(left, top);
    if (focused && labelOf(node) === focused) node.focus({ preventScroll: true });
  }
}

const ICONS = {
  now: "M2 9h3l2-5 3 9 2-4h2",
  queue: "M2 4h12M2 8h12M2 12h7",
  plan: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 4.7V8l2.3 1.6",
  usage: "M3 14V8M8 14V3M13 14V6",
  history: "M2.6 5.6A6 6 0 1 1 2 8M2.4 2.4v3.4h3.4M8 5v3.2l2 1.3",
  check: "M2.5 8.5l3.5 3.5 7.5-8",
  ok: "M2.5 8.5l3.5 3.5 7.5-8",
  warning: "M8 2L1.6 13.4h12.8zM8 6.4v3.2M8 11.4v.2",
  failed: "M5.2 2h5.6L14 5.2v5.6L10.8 14H5.2L2 10.8V5.2zM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4",
  wait: "M4 2h8M4 14h8M5 2v2.4L8 8l3-3.6V2M5 14v-2.4L8 8l3 3.6V14",
  pause: "M5 3v10M11 3v10",
  resume: "M4.5 3l8 5-8 5z",
  retry: "M13.4 10.4A6 6 0 1 1 14 8M13.6 13.6v-3.4h-3.4",
  cancel: "M4 4l8 8M12 4l-8 8",
  remove: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9",
  up: "M8 13V3M4 7l4-4 4 4",
  allow: "M4 7V5a4 4 0 0 1 7.6-1.7M3 7h10v7H3z",
  lock: "M5 7V5a3 3 0 0 1 6 0v2M3 7h10v7H3z",
  add: "M8 3v10M3 8h10",
  video: "M2 4h8v8H2zM10 7l4-2.4v6.8L10 9",
  photo: "M2 3h12v10H2zM2 11l3.6-3.6 3 3 2-2L14 11.6M10.6 5.6v.2",
  audio: "M6 12.4a2 2 0 1 1-4 0 2 2 0 0 1 4 0zM6 12.4V3.4l7-1.4v8.6M13 10.6a2 2 0 1 1-4 0 2 2 0 0 1 4 0z",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  folder: "M2 4h4.4l1.4 1.6H14V13H2z",
  destination: "M2 3h12v4H2zM2 9h12v4H2zM4.4 5h.2M4.4 11h.2",
  disk: "M2 8h12v5H2zM3.6 3h8.8L14 8H2zM11.4 10.6h.2",
  hook: "M10 3.5v5.3A3 3 0 1 1 4 9V8M10 3.5a1 1 0 1 0 0-.2",
  settling: "M4.4 12.4h7.2a2.9 2.9 0 0 0 .2-5.8 4 4 0 0 0-7.6.6 2.6 2.6 0 0 0 .2 5.2z",
  lost: "M2 6a9 9 0 0 1 12 0M4.4 8.6a5.4 5.4 0 0 1 7.2 0M8 12v.2M2 2l12 12",
  more: "M6 3.5L10.5 8 6 12.5",
};

/** A small picture beside a word that says the same. */
export function icon(name, attributes = {}) {
  const shape = drawn("path", { d: ICONS[name] ?? ICONS.file });
  return drawn("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", ...attributes }, shape);
}

/** The icon for the kind of a file, by its name. */
export function kindOf(name) {
  const end = String(name).toLowerCase().split(".").pop();
  if (["mp4", "mkv", "mov", "avi", "ts", "m4v", "mts", "webm", "mpg"].includes(end)) return "video";
  if (["jpg", "jpeg", "png", "heic", "webp", "gif", "dng", "arw", "cr3", "nef"].includes(end)) return "photo";
  if (["mp3", "wav", "m4a", "flac", "ogg", "opus", "aac"].includes(end)) return "audio";
  return "file";
}

/** A button with a picture and a word. */
export function button(label, { icon: picture, ...attributes } = {}) {
  return element("button", { type: "button", ...attributes }, picture && icon(picture), element("span", {}, label));
}

let queued = "";
let speaking = 0;

/** Says a sentence to screen readers: politely, and not more often than every second. */
export function announce(text) {
  queued = queued && queued !== text ? `${queued} ${text}` : text;
  if (speaking) return;
  speaking = setTimeout(() => {
    speaking = 0;
    // The same sentence twice is spoken twice only if the text changes in between.
    const region = document.getElementById("announcements");
    region.textContent = region.textContent === queued ? `${queued}\u00a0` : queued;
    queued = "";
  }, 1000);
}
