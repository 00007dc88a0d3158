// The queue and the history: one list with filters, rows that follow the events, and commands on the chosen ones.

import { get, mayChange } from "./api.js";
import { COMMANDS, commandButton, commandsFor, refreshCommands, resultPlace } from "./actions.js";
import { button, element, fill, foreign, icon, link, setAttribute, setText } from "./dom.js";
import { command, field, flushDialog, pauseDialog, scopeDialog } from "./dialogs.js";
import { bytes, count, files } from "./format.js";
import { MOST_ROWS, VirtualList } from "./list.js";
import { changesLists, changesWaits, state, subscribe } from "./store.js";
import { Thumbnail } from "./thumbnail.js";
import { badge, progressBar } from "./upload.js";
import { describe, prose, route, stateWords, whenOf } from "./words.js";

const LISTS = [["completed", "Completed"], ["failed", "Failed"], ["cancelled", "Cancelled"], ["history", "History"]];
const ONGOING_STATES = ["queued", "waiting", "paused", "uploading", "opening", "finishing", "staging", "settling"];
/** A list without focus, choice or pointer is read again at most this often. */
const REFRESH_INTERVAL = 5000;
/** Windows, networks and the ends of quotas have no event: the uploads in view are read again this often. */
const WAITS_INTERVAL = 10_000;

export const queue = {
  title: "Queue",
  mount: (root, params, go) => new UploadsView(root, params, go, false),
};

export const history = {
  title: "History",
  mount: (root, params, go) => new UploadsView(root, params, go, true),
};

class UploadsView {
  constructor(root, params, go, isHistory) {
    this.go = go;
    this.isHistory = isHistory;
    this.view = isHistory ? "history" : "queue";
    this.chosen = new Map();
    /** The number of the last event that may have changed which uploads are in the list. */
    this.movedSeq = 0;
    this.list = new VirtualList({
      label: isHistory ? "Uploads that are over" : "Uploads that are not over",
      read: (after, limit) => get("v1/uploads", { ...this.query(), after, limit }),
      makeRow: () => new Row(this),
      onchange: () => this.showState(),
      onother: () => this.becomeStale(),
    });
    this.build(root);
    this.unsubscribe = [
      subscribe("events", (events) => this.follow(events)),
      subscribe("stale", () => this.readMissed()),
      subscribe("status", () => {
        this.showCounts();
        if (!isHistory) this.list.refreshSoon(WAITS_INTERVAL);
      }),
      subscribe("connection", () => {
        refreshCommands(root);
        this.list.forgetSpare();
      }),
    ];
    this.update(params);
  }

  build(root) {
    const refresh = button("Show them", { onclick: async () => {
      scrollTo(0, 0);
      await this.reload();
      if (document.activeElement === document.body) this.list.focus(0);
    } });
    this.stale = element("p", { class: "notice", hidden: true, role: "status" }, icon("retry"),
      "Uploads were added or have ended. ", refresh);
    this.message = element("div", { class: "empty", hidden: true });
    this.counted = element("p", { class: "quiet", role: "status" });
    this.result = resultPlace();
    const group = { class: "selection", hidden: true, role: "group", "aria-label": "Chosen uploads" };
    this.selection = element("div", group);
    this.tools = element("div", { class: "buttons" });
    this.filters = this.buildFilters();
    const offers = element("div", { class: "offers" }, this.selection, this.stale);
    const title = element("h1", { tabindex: "-1" }, this.isHistory ? "History" : "Queue");
    fill(root, element("div", { class: "heading" }, title, this.counted, this.tools),
      this.isHistory && this.buildLists(), this.filters, offers, this.result, this.list.node, this.message);
    this.showTools();
  }

  buildLists() {
    this.tabs = LISTS.map(([name, label]) => {
      const number = element("span", { class: "number" });
      const node = element("a", {}, `${label} `, number);
      return { name, node, number };
    });
    return element("nav", { class: "tabs", "aria-label": "Lists" }, this.tabs.map((tab) => tab.node));
  }

  buildFilters() {
    const onchange = () => this.submit();
    const choice = (name, options = []) => element("select", { name, onchange },
      element("option", { value: "" }, "All"), options);
    const date = (name) => element("input", { type: "date", name, onchange });
    const search = element("input", {
      type: "search", name: "text", placeholder: "Part of the path", autocomplete: "off", spellcheck: "false",
      oninput: () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(onchange, 300);
      },
    });
    const states = ONGOING_STATES.map((name) => element("option", { value: name },
      name === "paused" ? "Paused by a person" : stateWords(name)[0]));
    const grow = field("Search", search);
    grow.classList.add("grow");
    const form = element("form", { class: "filters", role: "search", "aria-label": "Filter the list" }, grow,
      field("Folder", choice("folder")), field("Destination", choice("destination")),
      this.isHistory ? [field("Added from", date("since")), field("Added before", date("until"))]
        : field("State", choice("state", states)));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    return form;
  }

  /** Offers the names of the configuration, and the one of the address, which may be gone from it. */
  fillNames() {
    for (const key of ["folder", "destination"]) {
      const control = this.filters.elements[key];
      const known = new Set([...control.options].map((option) => option.value));
      const names = [...(state.status?.[`${key}s`] ?? []).map((each) => each.name), this.params?.[key] ?? ""];
      const missing = names.filter((name) => !known.has(name));
      control.append(...missing.map((name) => element("option", { value: name }, name)));
    }
  }

  showTools() {
    if (!mayChange()) return;
    const list = this.params?.list ?? "completed";
    const loud = { class: "danger-quiet" };
    const retry = () => this.act(scopeDialog("retry", this.params));
    const clear = () => this.act(flushDialog(list, this.params));
    const cancel = () => this.act(scopeDialog("cancel", this.params));
    fill(this.tools, this.isHistory ? [
      list === "failed" && commandButton("Retry failed…", "retry", retry),
      list !== "history" && commandButton("Clear list…", "remove", clear, loud),
    ] : [
      commandButton("Pause…", "pause", () => pauseDialog(this.params)),
      commandButton("Cancel uploads…", "cancel", cancel, loud),
    ]);
  }

  query() {
    const { list, since, until, upload, ...rest } = this.params;
    const day = (text) => text && new Date(`${text}T00:00`).toISOString();
    return { ...rest, list: this.isHistory ? list ?? "completed" : "ongoing", since: day(since), until: day(until) };
  }

  submit() {
    const params = Object.fromEntries([...new FormData(this.filters)].filter(([, value]) => value));
    if (this.params.list) params.list = this.params.list;
    this.go(this.view, params, { replace: true });
  }

  /** Shows what the address says. */
  update(params) {
    const { upload, ...rest } = params;
    const key = JSON.stringify(rest);
    if (key === this.key) return;
    this.key = key;
    this.params = rest;
    this.fillNames();
    for (const control of this.filters.elements) {
      const value = rest[control.name] ?? "";
      if (control.value !== value) control.value = value;
    }
    for (const tab of this.tabs ?? []) {
      tab.node.href = link("history", { ...rest, list: tab.name });
      setAttribute(tab.node, "aria-current", tab.name === (rest.list ?? "completed") && "page");
    }
    this.choose(null);
    this.showTools();
    this.showCounts();
    this.list.clear();
    this.reload();
  }

  /** Reads the list again: from the top, or where it is after a command in the middle of it. */
  async reload({ inPlace = false } = {}) {
    clearTimeout(this.timer);
    this.timer = null;
    this.stale.hidden = true;
    this.reloadedAt = performance.now();
    await (inPlace && this.list.pages.length > 1 ? this.list.readAgain() : this.list.reload());
    // The event of the page's own command may have come meanwhile.
    if (this.movedSeq <= this.list.readSeq) this.stale.hidden = true;
  }

  follow(events) {
    const before = this.movedSeq;
    let waits = false;
    for (const event of events ?? []) {
      // An old event does not say how its upload is now.
      if (event.op && !event.isOld) this.list.apply(event);
      if (changesLists(event) && this.concerns(event)) this.movedSeq = event.seq;
      waits ||= event.isOld || changesWaits(event);
    }
    if (this.movedSeq > Math.max(before, this.list.readSeq)) this.becomeStale();
    if (waits) this.list.refreshSoon(REFRESH_INTERVAL);
  }

  concerns({ op, type }) {
    const { folder, destination, text } = this.params;
    if (!op) return true;
    if (type === "added" && this.isHistory) return false;
    return (!folder || op.folder === folder) && (!destination || op.destination === destination)
      && (!text || op.path.toLowerCase().includes(text.toLowerCase()));
  }

  isInUse() {
    const { node, length } = this.list;
    return length > 0
      && (scrollY > 200 || this.chosen.size > 0 || node.contains(document.activeElement) || node.matches(":hover"));
  }

  /** After missed events: whether they changed which uploads are in the list is not known before it is read. */
  readMissed() {
    this.movedSeq = 0;
    this.list.forgetEvents();
    if (this.isInUse()) this.list.refreshSoon(0);
    else this.reload();
  }

  /** Rows must not move under a pointer or the focus: then the page only offers to show the change. */
  becomeStale() {
    if (this.isInUse()) this.stale.hidden = false;
    else this.timer ??= setTimeout(() => {
      this.timer = null;
      if (this.isInUse()) this.stale.hidden = false;
      else this.reload();
    }, Math.max(500, this.reloadedAt + REFRESH_INTERVAL - performance.now()));
  }

  /** After a command that takes uploads out of the list, it follows at once, and the focus stays at its place. */
  async act(done, row = null) {
    if (!(await done)) return;
    await this.reload({ inPlace: row !== null });
    if (row !== null && !this.list.focus(row)) this.filters.elements.text.focus();
  }

  /** Those of the list or of the status: the newer ones. */
  counts() {
    const { list } = this;
    return list.counts && list.seq >= (state.status?.seq ?? 0) ? list.counts : state.status?.counts;
  }

  showCounts() {
    this.fillNames();
    const counts = this.counts();
    for (const tab of this.tabs ?? []) setText(tab.number, counts && tab.name in counts ? count(counts[tab.name]) : "");
  }

  showState() {
    const { list } = this;
    this.showCounts();
    const isFiltered = Object.keys(this.params).some((key) => key !== "list");
    const known = list.isComplete || list.length ? list.length : null;
    if (known === null) setText(this.counted, list.failure ? "" : "Reading…");
    else if (list.isComplete) setText(this.counted, files(known, "upload"));
    else {
      const isCounted = Object.keys(this.params).every((key) => ["list", "folder", "destination"].includes(key));
      const all = isCounted ? (list.selected ?? this.counts())?.[this.query().list] : null;
      setText(this.counted, all ? files(all, "upload") : `more than ${count(known - 1)} uploads`);
    }
    list.node.hidden = list.length === 0;
    this.message.hidden = list.length > 0 && !list.failure && list.length < MOST_ROWS;
    if (list.failure) {
      fill(this.message, icon("lost"), element("p", {}, "The list could not be read: ", foreign(list.failure.message)),
        button("Try again", { icon: "retry", onclick: () => this.reload() }));
    } else if (list.length >= MOST_ROWS) {
      fill(this.message,
        element("p", {}, `The list ends here after ${count(MOST_ROWS)} rows. Filters lead to the others.`));
    } else if (list.isComplete && list.length === 0) this.showEmpty(isFiltered);
    else this.message.hidden = true;
  }

  showEmpty(isFiltered) {
    const words = isFiltered ? "No upload matches these filters." : {
      completed: "Nothing was completed lately.", failed: "No upload has failed.",
      cancelled: "Nothing was cancelled lately.", history: "The history is empty.",
    }[this.isHistory ? this.params.list ?? "completed" : ""] ?? "The queue is empty: nothing waits.";
    fill(this.message, icon(isFiltered ? "file" : "ok"), element("p", {}, words),
      isFiltered && element("a", { class: "button", href: link(this.view, { list: this.params.list }) }, "Show all"));
  }

  /** Chooses an upload, or not any more; `null` for none at all. */
  choose(upload, isChosen) {
    if (!upload) this.chosen.clear();
    else if (isChosen) this.chosen.set(upload.id, upload);
    else this.chosen.delete(upload.id);
    this.selection.hidden = this.chosen.size === 0;
    if (this.selection.hidden) {
      fill(this.selection);
      return;
    }
    const uploads = [...this.chosen.values()].map((each) => this.list.find(each.id) ?? each);
    // Only commands that each of them takes.
    const names = uploads.map(commandsFor).reduce((all, some) => all.filter((name) => some.includes(name)),
      Object.keys(COMMANDS));
    fill(this.selection, element("strong", {}, `${count(uploads.length)} chosen`),
      names.map((name) => commandButton(COMMANDS[name].label, COMMANDS[name].icon, async () => {
        if (!(await command(name, uploads, this.result))) return;
        this.release();
        this.reload({ inPlace: true });
      }, { class: COMMANDS[name].danger ? "danger-quiet" : "" })),
      button("Choose none", { class: "plain", onclick: () => this.release() }));
  }

  release() {
    this.choose(null);
    for (const box of this.list.node.querySelectorAll("input:checked")) box.checked = false;
    this.filters.elements.text.focus({ preventScroll: true });
  }

  unmount() {
    clearTimeout(this.timer);
    clearTimeout(this.typing);
    for (const each of this.unsubscribe) each();
    this.list.close();
  }
}

/** One upload as a row. */
class Row {
  constructor(view) {
    this.view = view;
    this.box = element("input", { type: "checkbox", onchange: () => view.choose(this.upload, this.box.checked) });
    this.picture = new Thumbnail("row-picture");
    this.name = element("a", { class: "row-name" });
    this.from = element("p", { class: "row-from" });
    this.said = element("p", { class: "row-said" });
    this.text = element("p", { class: "row-text" });
    this.when = element("p", { class: "row-when" });
    this.bar = progressBar("Progress");
    this.commands = element("div", { class: "row-commands" });
    this.result = resultPlace();
    const choice = mayChange() && element("label", { class: "row-choice" }, this.box);
    this.node = element("div", { class: "row" }, choice, this.picture.node,
      element("div", { class: "row-main" }, this.name, this.from),
      element("div", { class: "row-state" }, this.said, this.text, this.bar.node), this.when, this.commands,
        this.result);
  }

  update(upload) {
    this.node.classList.toggle("unread", !upload);
    if (!upload) return;
    this.box.checked = this.view.chosen.has(upload.id);
    if (upload === this.upload) return;
    const isOther = this.upload?.id !== upload.id || this.upload.priority !== upload.priority;
    this.upload = upload;
    if (isOther) this.showFile(upload);
    const said = describe(upload);
    const key = `${said.word}|${said.text}|${said.until ?? said.next ?? upload.finished_at ?? ""}`;
    if (key !== this.key) {
      this.key = key;
      fill(this.said, badge(said));
      fill(this.text, said.text && prose(said.text));
      this.text.title = said.text;
      fill(this.when, whenOf(upload));
      this.bar.node.hidden = said.fraction === undefined;
    }
    if (said.fraction !== undefined) this.bar.update(said.fraction);
    const names = commandsFor(upload).slice(0, 2).filter((name) => ["pause", "resume", "retry", "now",
      "remove"].includes(name));
    if (this.shownCommands !== `${names}`) this.showCommands(names);
  }

  /** A row that was scrolled away shows another upload later. */
  showFile(upload) {
    this.picture.update(upload);
    this.shownCommands = null;
    fill(this.name, foreign(upload.name));
    this.name.href = link(this.view.view, { ...this.view.params, upload: upload.id });
    fill(this.from, route(upload.folder, upload.destination), ` · ${bytes(upload.size)}`,
      upload.priority !== 0 && ` · priority ${upload.priority}`);
    this.box.setAttribute("aria-label", `Choose ${upload.name}`);
    fill(this.result);
  }

  showCommands(names) {
    this.shownCommands = `${names}`;
    if (!mayChange()) return;
    const had = this.commands.contains(document.activeElement);
    fill(this.commands, names.map((name) => {
      const label = COMMANDS[name].label.replace("…", "");
      const moves = name === "remove" || name === "retry";
      const act = () => {
        const done = command(name, [this.upload], this.result);
        if (moves) this.view.act(done, Number(this.node.dataset.row));
      };
      return commandButton(label, COMMANDS[name].icon, act,
        { class: "small", "aria-label": `${label} ${this.upload.name}` });
    }));
    if (had) this.commands.querySelector("button")?.focus();
  }
}
