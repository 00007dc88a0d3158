// A list of any length. The server gives it page by page, after a cursor; rows exist only near the visible part, and
// only the pages near it stay in memory. Pages that were dropped are read again by their cursor.

import { element, keyed, rootSize } from "./dom.js";

const PAGE = 100;
/** Pages that stay on each side of the visible ones. */
const NEAR = 2;
/** Rows beyond the edges of the window. */
const OVERSCAN = 6;
/** Browsers limit the height of an element. Filters lead to the uploads beyond. */
export const MOST_ROWS = 150_000;

export class VirtualList {
  /**
   * @param read Reads a page: `(after, limit) => Promise<{uploads, counts, next}>`.
   * @param makeRow Makes a row: `{node, update(upload)}`.
   * @param onchange Called when the number of known rows, the loading or the failure changes.
   */
  constructor({ label, read, makeRow, onchange }) {
    this.read = read;
    this.makeRow = makeRow;
    this.onchange = onchange;
    /** Rows that were scrolled away. */
    this.spare = [];
    this.node = element("div", { class: "rows", role: "list", "aria-label": label, onkeydown: (e) => this.move(e) });
    this.clear();
    this.onscroll = () => this.renderSoon();
    addEventListener("scroll", this.onscroll, { passive: true });
    this.observer = new ResizeObserver(this.onscroll);
    this.observer.observe(this.node);
  }

  close() {
    removeEventListener("scroll", this.onscroll);
    this.observer.disconnect();
    this.generation += 1;
  }

  clear() {
    this.generation = (this.generation ?? 0) + 1;
    /** `{after, uploads, count}`; `uploads` is null for one that was dropped. */
    this.pages = [];
    this.places = new Map();
    this.loading = new Map();
    this.failure = null;
    this.counts = null;
    /** The counts of the folder and destination among the filters. */
    this.selected = null;
    this.isComplete = false;
  }

  /** Rows that are not shown do not follow a change of the connection. */
  forgetSpare() {
    this.spare = [];
  }

  get length() {
    const last = this.pages.at(-1);
    return last ? (this.pages.length - 1) * PAGE + last.count : 0;
  }

  /** Reads everything again from the top. What is shown stays until the first page is here. */
  async reload() {
    const generation = (this.generation += 1);
    this.loading = new Map([[0, true]]);
    this.onchange();
    try {
      const page = await this.read(undefined, PAGE);
      if (generation !== this.generation) return;
      this.clear();
      this.place(0, undefined, page);
    } catch (failure) {
      if (generation !== this.generation) return;
      this.loading.clear();
      this.failure = failure;
    }
    this.onchange();
    this.render();
  }

  place(index, after, page) {
    this.loading.delete(index);
    this.failure = null;
    this.counts = page.counts;
    this.selected = page.selected ?? null;
    const known = this.pages[index];
    this.pages[index] = { after, uploads: page.uploads, count: page.uploads.length };
    page.uploads.forEach((upload, row) => this.places.set(upload.id, index * PAGE + row));
    if (index === this.pages.length - 1) {
      this.next = page.next;
      this.isComplete = !page.next;
    }
    return known;
  }

  async load(index) {
    if (this.loading.has(index)) return;
    const after = this.pages[index]?.after ?? this.next;
    const generation = this.generation;
    this.loading.set(index, true);
    try {
      const page = await this.read(index ? after : undefined, PAGE);
      if (generation !== this.generation) return;
      this.place(index, after, page);
    } catch (failure) {
      if (generation !== this.generation) return;
      this.failure = failure;
      // Kept in `loading`, so that scrolling does not ask again and again.
      setTimeout(() => this.loading.delete(index), 5000);
    }
    this.onchange();
    this.renderSoon();
  }

  /** The upload of a row; `null` while its page is not in memory. */
  at(row) {
    return this.pages[Math.floor(row / PAGE)]?.uploads?.[row % PAGE] ?? null;
  }

  find(id) {
    const row = this.places.get(id);
    return row === undefined ? null : this.at(row);
  }

  /** Shows the present state of an upload, if it is in the list. */
  apply(upload) {
    const row = this.places.get(upload.id);
    if (row === undefined || !this.at(row)) return false;
    this.pages[Math.floor(row / PAGE)].uploads[row % PAGE] = upload;
    this.node.keyedChildren?.get(upload.id)?.update({ upload, row });
    return true;
  }

  renderSoon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  render() {
    if (!this.node.isConnected) return;
    const height = parseFloat(getComputedStyle(this.node).getPropertyValue("--row")) * rootSize();
    const shown = Math.min(this.length, MOST_ROWS);
    this.node.style.height = `${shown * height}px`;
    const top = -this.node.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / height) - OVERSCAN);
    const last = Math.min(shown - 1, Math.ceil((top + innerHeight) / height) + OVERSCAN);
    const items = [];
    const focused = this.rowOfFocus();
    if (focused !== null && focused < first) items.push(this.item(focused));
    for (let row = first; row <= last; row += 1) items.push(this.item(row));
    if (focused !== null && focused > last) items.push(this.item(focused));
    keyed(this.node, items, (item) => item.key, () => this.row());
    for (const item of items) {
      this.node.keyedChildren.get(item.key).node.style.transform = `translateY(${item.row * height}px)`;
    }
    this.fetchAround(first, last);
  }

  item(row) {
    const upload = this.at(row);
    return { row, upload, key: upload?.id ?? row };
  }

  /** Rows are used again: making elements costs more than changing them. */
  row() {
    const inner = this.spare.pop() ?? this.makeRow();
    inner.node.setAttribute("role", "listitem");
    return {
      node: inner.node,
      gone: () => this.spare.push(inner),
      update: ({ upload, row }) => {
        inner.node.setAttribute("aria-posinset", row + 1);
        inner.node.setAttribute("aria-setsize", this.isComplete ? this.length : -1);
        inner.node.dataset.row = row;
        inner.update(upload);
      },
    };
  }

  /** The row with the focus is never taken away. */
  rowOfFocus() {
    const row = document.activeElement?.closest?.(".rows > [data-row]");
    return row && row.parentNode === this.node && this.at(Number(row.dataset.row)) ? Number(row.dataset.row) : null;
  }

  fetchAround(first, last) {
    const from = Math.floor(first / PAGE);
    const to = Math.floor(Math.max(first, last) / PAGE);
    for (let index = from; index <= Math.min(to, this.pages.length - 1); index += 1) {
      if (!this.pages[index].uploads) this.load(index);
    }
    const nearEnd = last >= this.length - PAGE / 2;
    if (nearEnd && !this.isComplete && this.pages.length && this.length < MOST_ROWS) this.load(this.pages.length);
    this.pages.forEach((page, index) => {
      if (!page.uploads || (index >= from - NEAR && index <= to + NEAR)) return;
      for (const upload of page.uploads) this.places.delete(upload.id);
      page.uploads = null;
    });
  }

  /** Gives the focus to a row, or to the last one before it. */
  focus(row) {
    const upload = this.at(Math.min(this.length - 1, Math.max(0, row)));
    const node = upload && this.node.keyedChildren?.get(upload.id)?.node;
    node?.querySelector("a[href]")?.focus({ preventScroll: true });
    node?.scrollIntoView({ block: "nearest" });
    return Boolean(node);
  }

  /** Arrow keys and page keys go from row to row. */
  move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    const row = this.rowOfFocus();
    if (!step || row === null || event.target.matches("select, input:not([type=checkbox])")) return;
    event.preventDefault();
    this.focus(row + step);
  }
}
