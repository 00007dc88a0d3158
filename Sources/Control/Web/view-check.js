// Runs the daemon's checks, and shows what each of them found.

import { mayChange } from "./api.js";
import { commandButton, refreshCommands, resultPlace, run, scopeOf } from "./actions.js";
import { element, fill, foreign, panel } from "./dom.js";
import { field, fillScopes, scopeSelect } from "./dialogs.js";
import { files, time } from "./format.js";
import { state, subscribe } from "./store.js";
import { badge, cardTitle } from "./upload.js";
import { prose } from "./words.js";

const VERDICTS = {
  ok: { word: "In order", icon: "ok", tone: "good" },
  warning: { word: "Warning", icon: "warning", tone: "warn" },
  failed: { word: "Failed", icon: "failed", tone: "bad" },
};
const verdict = (word) => VERDICTS[word] ?? { word, icon: "file", tone: "quiet" };
const ORDER = ["failed", "warning", "ok"];

/** The last report outlives the view: a check takes time and sends bytes. */
let last = null;

export const check = {
  title: "Check",
  mount: (root) => new CheckView(root),
};

class CheckView {
  constructor(root) {
    this.where = scopeSelect();
    this.result = resultPlace();
    this.report = element("div", { class: "stack" });
    this.warnings = element("div");
    this.changes = element("div");
    fill(root, element("div", { class: "heading" }, element("h1", { tabindex: "-1" }, "Check"), this.controls()),
      this.result, this.changes, this.warnings, this.report);
    this.unsubscribe = [
      subscribe("status", () => this.showWarnings()),
      subscribe("connection", () => refreshCommands(root)),
    ];
    this.showWarnings();
    this.show();
  }

  update() {}

  unmount() {
    for (const each of this.unsubscribe) each();
  }

  controls() {
    if (!mayChange()) {
      return element("p", { class: "quiet" }, "A check sends requests. The role view cannot start one.");
    }
    this.start = commandButton("Run check", "check", () => this.run(), { class: "primary" });
    return element("div", { class: "buttons" }, field("What", this.where), this.start,
      commandButton("Reload configuration", "retry", () => this.reload()));
  }

  async run() {
    const scope = scopeOf(this.where.value);
    const done = ({ ok, checks }) =>
      (ok ? `Nothing failed in ${files(checks.length, "check")}.` : "Something failed. The list says what.");
    this.start.disabled = true;
    fill(this.report, element("p", { class: "empty" }, "Checking. Servers that do not answer take a while."));
    const answer = await run("check", scope.all ? {} : scope, { place: this.result, done });
    this.start.disabled = false;
    // A disabled button loses the focus.
    if (document.activeElement === document.body) this.start.focus();
    if (answer) last = { at: new Date().toISOString(), ...answer };
    this.show();
  }

  async reload() {
    const done = ({ changes }) =>
      (changes.length ? "The configuration was read again." : "The configuration is the same as before.");
    const answer = await run("reload", {}, { place: this.result, done });
    fill(this.changes, answer && element("ul", { class: "notes" },
      answer.changes.map(({ what, name, change, keys }) => element("li", {}, `${what} `, foreign(name),
        ` ${change}`, keys.length > 0 && ` (${keys.join(", ")})`)),
      answer.warnings.map((each) => element("li", {}, foreign(each.place), ": ", prose(each.text)))));
  }

  showWarnings() {
    // The page may have been opened here, before the first status.
    if (state.status && this.where.options.length === 1) fillScopes(this.where);
    const warnings = (state.status?.warnings ?? []).map((text) => element("li", {}, prose(text)));
    fill(this.warnings, warnings.length > 0
      && panel("Warnings of the daemon", element("ul", { class: "notes" }, warnings)));
  }

  show() {
    if (!last) {
      fill(this.report, element("p", { class: "empty" }, "No check has run since this page was opened. It tests "
        + "folders, staging, hooks, networks and destinations with the daemon's own rights, and uploads nothing."));
      return;
    }
    const groups = ORDER.map((word) => [word, last.checks.filter((each) => each.verdict === word)]);
    fill(this.report, element("p", { class: "quiet" }, "Checked at ", time(last.at, { seconds: true })),
      groups.filter(([, found]) => found.length).map(([word, found]) =>
        panel(`${verdict(word).word}: ${files(found.length, "check")}`,
          element("ul", { class: "list cards findings" }, found.map(finding)))));
  }
}

function finding(each) {
  const title = [element("small", {}, `${each.about} `), foreign(each.name)];
  return element("li", { class: "card" },
    cardTitle(title, verdict(each.verdict)),
    element("p", {}, prose(each.detail)), each.space && element("p", {}, foreign(each.space.text)),
    each.steps && element("ol", { class: "steps" }, each.steps.map(stepLine)));
}

function stepLine({ step, verdict: word, detail }) {
  const trouble = word === "ok" ? "" : `${verdict(word).word}: `;
  return element("li", {}, badge({ ...verdict(word), word: step }), element("span", {}, trouble, prose(detail)));
}
