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
   * @param onother Called when other uploads belong in the list than those that it shows.
   */
  constructor({ label, read, makeRow, onchange, onother }) {
    this.onother = onother;
    this.read = read;
    this.makeRow = makeRow;
    this.onchange = onchange;
    /** Rows that were scrolled away. */
    this.spare = [];
    /** The newest events with an upload: they may come before the answer to a question that was asked earlier. */
    this.recent = new Map();
    /** When the pages in view are read again, by `performance.now()`. */
    this.due = Infinity;
    this.refreshed = Promise.resolve();
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
    clearTimeout(this.refreshing);
    this.generation += 1;
  }

  clear() {
    this.generation = (this.generation ?? 0) + 1;
    /**
     * `{after, uploads, count, start, seq, readSeq}`: from row `start` on; `uploads` is null for one that was dropped,
     * `seq` the number of the last event that its uploads know, `readSeq` that when their rows were chosen.
     */
    this.pages = [];
    /** The page of each upload, by its id. */
    this.places = new Map();
    this.loading = new Map();
    this.failure = null;
    this.counts = null;
    /** The counts of the folder and destination among the filters. */
    this.selected = null;
    /** The number of the last event that the counts know. */
    this.seq = 0;
    this.counted = this.countedBefore = null;
    this.isComplete = false;
  }

  /**
   * Events were missed, and their numbers may have begun again. Pages out of view are read again when they come into
   * view; those in view need `refreshSoon`, which also compares the counts.
   */
  forgetEvents() {
    this.recent.clear();
    this.dropBeyond(...this.inView());
    for (const page of this.pages) page.seq = page.readSeq = 0;
    this.seq = 0;
    this.countedBefore ??= this.counted;
  }

  /** Events up to this number have changed which uploads are in the pages in memory. */
  get readSeq() {
    return Math.min(this.seq, ...this.pages.filter((page) => page.uploads).map((page) => page.readSeq));
  }

  /** Rows that are not shown do not follow a change of the connection. */
  forgetSpare() {
    this.spare = [];
  }

  get length() {
    const last = this.pages.at(-1);
    return last ? last.start + last.count : 0;
  }

  /** Reads everything again from the top. What is shown stays until the first page is here. */
  async reload() {
    const generation = (this.generation += 1);
    this.loading = new Map([[0, true]]);
    this.refreshedAt = performance.now();
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

  /** Reads the pages in view again, in their places, and forgets the others: they are read when they come into view. */
  async readAgain() {
    const generation = (this.generation += 1);
    this.loading = new Map();
    const [from, to] = this.inView();
    this.pages.forEach((page, index) => (index < from || index > to) && this.drop(page));
    for (let index = from; index <= to && index < this.pages.length; index += 1) {
      // One after another: what is not in this page any more moves the next one.
      await this.load(index);
      if (generation !== this.generation) return;
    }
    this.render();
  }

  keepCounts({ counts, selected, seq }) {
    this.counts = counts;
    this.selected = selected ?? null;
    this.counted = JSON.stringify(selected ?? counts);
    this.seq = seq;
  }

  place(index, after, answer) {
    this.loading.delete(index);
    this.failure = null;
    this.keepCounts(answer);
    const [known, next] = [this.pages[index], this.pages[index + 1]];
    let uploads = answer.uploads.map((upload) => this.newest(upload, answer.seq));
    if (next) {
      // What was below the last row then belongs to the next page.
      uploads = uploads.filter((upload) => upload.id >= next.after);
      const hasMore = answer.next && uploads.length === answer.uploads.length;
      const isCut = hasMore && uploads.at(-1).id !== next.after;
      if (isCut) for (const page of this.pages.splice(index + 1)) this.drop(page);
    }
    if (known) this.drop(known);
    const page = { after, uploads, count: uploads.length, seq: answer.seq, readSeq: answer.seq };
    this.pages[index] = page;
    for (const upload of uploads) this.places.set(upload.id, page);
    let start = index ? this.pages[index - 1].start + this.pages[index - 1].count : 0;
    for (const each of this.pages.slice(index)) {
      each.start = start;
      start += each.count;
    }
    if (index === this.pages.length - 1) {
      this.next = answer.next;
      this.isComplete = !answer.next;
    }
    if (known && known.count !== page.count) this.stay(page, page.count - known.count);
  }

  /** Rows that come or go above the window do not move what is in it. */
  stay(page, more) {
    const top = -this.node.getBoundingClientRect().top;
    const end = page.start + page.count - more;
    if (this.node.isConnected && end * this.height <= top) scrollBy(0, more * this.height);
  }

  /** The upload as the newest event or answer has it. */
  newest(upload, seq) {
    const event = this.recent.get(upload.id);
    return event && event.seq > seq ? event.op : upload;
  }

  drop(page) {
    for (const upload of page.uploads ?? []) if (this.places.get(upload.id) === page) this.places.delete(upload.id);
    page.uploads = null;
  }

  async load(index) {
    if (this.loading.has(index)) return;
    const after = this.pages[index]?.after ?? this.next;
    const generation = this.generation;
    this.loading.set(index, true);
    try {
      const page = await this.read(index ? after : undefined, PAGE);
      if (generation !== this.generation) return;
      // The pages before it may have been read again meanwhile, and end elsewhere.
      if (index > this.pages.length || (index && (this.pages[index]?.after ?? this.next) !== after)) {
        this.loading.delete(index);
      } else this.place(index, after, page);
    } catch (failure) {
      if (generation !== this.generation) return;
      this.failure = failure;
      // Kept in `loading`, so that scrolling does not ask again and again.
      setTimeout(() => this.loading.delete(index), 5000);
    }
    this.onchange();
    this.renderSoon();
  }

  /**
   * Reads the pages in view again, and shows how their uploads are now. No row comes, goes or moves.
   *
   * @returns Whether other uploads belong there now.
   */
  async refresh() {
    const { generation } = this;
    const [from, to] = this.inView();
    let isOther = false;
    for (const page of this.pages.slice(from, to + 1)) {
      const answer = await this.read(page.after, PAGE);
      if (generation !== this.generation) return false;
      this.keepCounts(answer);
      isOther ||= (this.countedBefore ?? this.counted) !== this.counted;
      this.countedBefore = null;
      if (!page.uploads) continue;
      page.seq = answer.seq;
      const found = new Map(answer.uploads.map((upload) => [upload.id, this.newest(upload, answer.seq)]));
      const last = answer.next ? answer.uploads.at(-1).id : "";
      page.uploads.forEach(({ id }, index) => {
        if (found.has(id)) this.show(page, index, found.get(id));
        else isOther ||= id >= last;
      });
      const end = this.pages[this.pages.indexOf(page) + 1]?.after ?? this.next ?? "";
      isOther ||= answer.uploads.some(({ id }) => id >= end && this.places.get(id) !== page);
    }
    return isOther;
  }

  /** Does so soon, at most once in `interval`. The earliest of several wishes counts. */
  refreshSoon(interval) {
    const delay = Math.max(300, (this.refreshedAt ?? -Infinity) + interval - performance.now());
    if (performance.now() + delay >= this.due) return;
    clearTimeout(this.refreshing);
    this.due = performance.now() + delay;
    this.refreshing = setTimeout(async () => {
      this.due = Infinity;
      this.refreshedAt = performance.now();
      // One after another, so that no older answer comes last. Without an answer the rows stay as they are.
      this.refreshed = this.refreshed.then(() => this.refresh()).catch(() => false);
      const isOther = await this.refreshed;
      this.onchange();
      if (isOther) this.onother();
    }, delay);
  }

  /** The number of the page with this row. */
  pageOf(row) {
    let [low, high] = [0, this.pages.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.pages[middle].start <= row) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** The upload of a row; `null` while its page is not in memory. */
  at(row) {
    const page = this.pages[this.pageOf(row)];
    return page?.uploads?.[row - page.start] ?? null;
  }

  find(id) {
    return this.places.get(id)?.uploads?.find((upload) => upload.id === id) ?? null;
  }

  /** Shows how an event has its upload, if it is in the list and the event is not older than its page. */
  apply({ type, seq, op }) {
    if (type !== "progress") {
      this.recent.delete(op.id);
      this.recent.set(op.id, { seq, op });
      if (this.recent.size > 300) this.recent.delete(this.recent.keys().next().value);
    }
    const page = this.places.get(op.id);
    if (!page?.uploads || seq < page.seq) return;
    this.show(page, page.uploads.findIndex((upload) => upload.id === op.id), op);
  }

  show(page, index, upload) {
    page.uploads[index] = upload;
    this.node.keyedChildren?.get(upload.id)?.update({ upload, row: page.start + index });
  }

  renderSoon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  render() {
    if (!this.node.isConnected) return;
    const { height } = this;
    const shown = Math.min(this.length, MOST_ROWS);
    this.node.style.height = `${shown * height}px`;
    const [first, last] = this.rowsInView();
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

  /** The height of a row. */
  get height() {
    return parseFloat(getComputedStyle(this.node).getPropertyValue("--row")) * rootSize();
  }

  /** The first and the last row in the window or near it. */
  rowsInView() {
    const { height } = this;
    const top = -this.node.getBoundingClientRect().top;
    const last = Math.min(this.length, MOST_ROWS) - 1;
    return [Math.max(0, Math.floor(top / height) - OVERSCAN),
      Math.min(last, Math.ceil((top + innerHeight) / height) + OVERSCAN)];
  }

  /** The first and the last page of these rows. */
  inView() {
    const [first, last] = this.rowsInView();
    return [this.pageOf(first), this.pageOf(Math.max(first, last))];
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
        inner.node.dataset.id = upload?.id ?? "";
        inner.update(upload);
      },
    };
  }

  /** The row with the focus is never taken away. */
  rowOfFocus() {
    const row = document.activeElement?.closest?.(".rows > [data-row]");
    const page = row?.parentNode === this.node ? this.places.get(row.dataset.id) : null;
    return page?.uploads ? page.start + page.uploads.findIndex((upload) => upload.id === row.dataset.id) : null;
  }

  fetchAround(first, last) {
    const from = this.pageOf(first);
    const to = this.pageOf(Math.max(first, last));
    for (let index = from; index <= Math.min(to, this.pages.length - 1); index += 1) {
      if (!this.pages[index].uploads) this.load(index);
    }
    const nearEnd = last >= this.length - PAGE / 2;
    if (nearEnd && !this.isComplete && this.pages.length && this.length < MOST_ROWS) this.load(this.pages.length);
    this.dropBeyond(from - NEAR, to + NEAR);
  }

  /** Drops the pages before and after these, except for that of the row with the focus. */
  dropBeyond(from, to) {
    const focused = this.rowOfFocus();
    const held = focused === null ? -1 : this.pageOf(focused);
    this.pages.forEach((page, index) => {
      if (page.uploads && index !== held && (index < from || index > to)) this.drop(page);
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
