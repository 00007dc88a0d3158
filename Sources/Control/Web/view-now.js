// What happens at this moment: transfers, warnings, holds, destinations, folders, disks and hooks.

import { mayChange } from "./api.js";
import { ALLOWED, commandButton, refreshCommands, resultPlace, resumeAll, run } from "./actions.js";
import { element, fill, foreign, icon, keyed, link, panel, setText } from "./dom.js";
import { addDialog, allowDialog, command, limitDialog, pauseDialog } from "./dialogs.js";
import { ago, bytes, count, duration, files, percent, rate, time, until } from "./format.js";
import { state, subscribe } from "./store.js";
import { Thumbnail } from "./thumbnail.js";
import { badge, cardTitle, facts, progressBar, wayText } from "./upload.js";
import { describe, holdWords, prose, route, sentWords } from "./words.js";

export const now = {
  title: "Now",
  mount: (root, params, go) => new NowView(root, go),
};

class NowView {
  constructor(root, go) {
    this.go = go;
    this.result = resultPlace();
    this.headline = element("p", { class: "headline" });
    this.batch = progressBar("Progress of everything under way");
    this.batchText = element("p", { class: "quiet" });
    this.attention = list("attention");
    this.transfers = list("transfers");
    this.staging = list("transfers");
    this.holds = list("cards");
    this.destinations = list("cards");
    this.folders = list("cards");
    this.settling = list("settling");
    this.hooks = list("cards");
    this.disk = element("div", { class: "card" });
    this.controls = element("div", { class: "buttons" });
    this.noTransfers = element("p", { class: "empty" });
    this.noDestinations = element("p", { class: "empty" }, "No destination is configured.");
    this.noFolders = element("p", { class: "empty" }, "No folder is configured.");
    this.settlingTitle = element("h3", {}, "Not settled yet");
    this.attentionPanel = panel("Needs attention", this.attention);
    this.holdsPanel = panel("Holds", this.holds);
    this.hooksPanel = panel("Hooks", this.hooks);
    const left = [this.attentionPanel, panel("Transfers", this.transfers, this.noTransfers), this.holdsPanel,
      panel("Staging", this.disk, this.staging)];
    const right = [panel("Destinations", this.destinations, this.noDestinations),
      panel("Folders", this.folders, this.noFolders, this.settlingTitle, this.settling), this.hooksPanel];
    fill(root, element("div", { class: "heading" }, element("h1", { tabindex: "-1" }, "Now"), this.controls),
      this.result, element("section", { class: "summary", "aria-label": "Summary" }, this.headline, this.batch.node,
        this.batchText),
      element("div", { class: "panels" }, element("div", {}, left), element("div", {}, right)));
    this.unsubscribe = [
      subscribe("status", () => this.showStatus()),
      subscribe("transfers", () => this.showTransfers()),
      subscribe("connection", () => refreshCommands(root)),
    ];
    this.showControls();
    this.showStatus();
    this.showTransfers();
  }

  update() {}

  unmount() {
    for (const each of this.unsubscribe) each();
  }

  showControls() {
    if (!mayChange()) return;
    fill(this.controls, commandButton("Pause…", "pause", () => pauseDialog()),
      this.resume = commandButton("Resume everything", "resume", () => resumeAll({ all: true }, this.result)),
      commandButton("Limit rate…", "usage", limitDialog),
      commandButton("Rescan folders", "folder", () => run("rescan", {},
        { place: this.result, done: "The folders are being scanned." })),
      commandButton("Add files…", "add", () => addDialog(), { class: "primary" }));
  }

  showStatus() {
    const { status } = state;
    if (!status) return;
    const { headline, detail, fraction } = summary(status);
    fill(this.headline, headline);
    this.batch.update(fraction);
    this.batch.node.hidden = status.files_total === 0;
    fill(this.batchText, detail);
    if (this.resume) this.resume.hidden = !status.paused.some((each) => each.scope === "all");
    this.showAttention(status);
    keyed(this.holds, status.classes ?? [], (each) => `${each.folder}\n${each.destination}`, () => holdCard(this));
    this.holdsPanel.hidden = !status.classes?.length;
    keyed(this.destinations, status.destinations, (each) => each.name, () => destinationCard(this));
    keyed(this.folders, status.folders, (each) => each.name, () => folderCard(this));
    this.noDestinations.hidden = status.destinations.length > 0;
    this.noFolders.hidden = status.folders.length > 0;
    keyed(this.settling, status.settling, (each) => each.path, settlingLine);
    this.settlingTitle.hidden = status.settling.length === 0;
    keyed(this.staging, status.staging.running ?? [], (each) => each.path, copyLine);
    fill(this.disk, diskFacts(status));
    keyed(this.hooks, status.hooks ?? [], (each) => each.name, hookCard);
    this.hooksPanel.hidden = !status.hooks?.length;
    this.showNoTransfers();
  }

  showAttention(status) {
    const items = [
      ...status.paused.map((each) => ({ key: `pause ${each.scope} ${each.name ?? ""}`, pause: each })),
      ...status.warnings.map((text) => ({ key: `warning ${text}`, text })),
      ...(status.exceptions ?? []).map((each) => ({ key: `exception ${JSON.stringify(each)}`, exception: each })),
    ];
    if (status.counts.failed) items.push({ key: "failed", failed: status.counts.failed });
    if (status.overflows) items.push({ key: "overflows",
      text: `events were lost ${count(status.overflows)} times since the start` });
    keyed(this.attention, items, (each) => each.key, () => attentionLine(this));
    this.attentionPanel.hidden = items.length === 0;
  }

  showTransfers() {
    const uploads = [...state.transfers.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    keyed(this.transfers, uploads, (each) => each.id, () => transferLine(this));
    this.showNoTransfers();
  }

  showNoTransfers() {
    const { status, transfers, hasTransfers } = state;
    this.noTransfers.hidden = transfers.size > 0;
    const waiting = status?.counts.ongoing ?? 0;
    const words = waiting ? `Nothing is sent now; ${files(waiting, "upload")} ${waiting === 1 ? "waits" : "wait"}.`
      : "Nothing to send. New files of the watched folders appear here by themselves.";
    setText(this.noTransfers, status && hasTransfers ? words : "Reading…");
  }
}

const list = (kind) => element("ul", { class: `list ${kind}` });

function summary(status) {
  const total = status.paused.find((each) => each.scope === "all");
  const running = status.destinations.reduce((sum, each) => sum + each.running, 0);
  const left = status.counts.ongoing;
  const word = total ? ["Paused", "pause", "warn"]
    : status.starting ? ["Starting", "retry", "active"]
    : running ? ["Sending", "up", "active"]
    : left ? ["Waiting", "wait", "wait"] : ["Idle", "ok", "good"];
  const headline = [badge({ word: word[0], icon: word[1], tone: word[2] }),
    running > 0 && element("strong", { class: "figure" }, rate(status.rate)),
    element("span", {}, left ? `${files(left, "upload")} not over` : "nothing waits"),
    status.eta && running > 0 && element("span", {}, `about ${duration(status.eta)} left`),
    status.limit !== undefined && element("span", {}, `limited to ${rate(status.limit)}`),
    total?.until && until(total.until)];
  const fraction = status.bytes_total ? status.bytes_done / status.bytes_total : 0;
  const batch = status.files_total > 0 && `${count(status.files_done)} of ${files(status.files_total)}, `
    + `${bytes(status.bytes_done)} of ${bytes(status.bytes_total)} (${percent(fraction)})`;
  return { headline, fraction, detail: batch || "" };
}

function attentionLine(view) {
  return card(({ pause, text, exception, failed }) => {
    if (pause) return [icon("pause"), pauseWords(pause), resumeButton(view, pause)];
    if (exception) return [icon("allow"), exceptionWords(exception), endException(view, exception)];
    if (!failed) return [icon("warning"), prose(text)];
    const words = `${files(failed, "upload")} failed and ${failed === 1 ? "needs" : "need"} a person. `;
    const show = element("a", { href: link("history", { list: "failed" }), "data-name": "failed" }, "Show them");
    return [icon("failed"), element("span", {}, words, show)];
  }, "");
}

function pauseWords({ scope, name, since, until: end }) {
  const what = scope === "all" ? "Everything" : [scope === "folder" ? "Folder " : "Destination ", foreign(name)];
  return element("span", {}, what, " is paused since ", time(since), " ",
    end ? until(end) : "until somebody resumes it");
}

function resumeButton(view, { scope, name }) {
  if (!mayChange()) return null;
  const selection = scope === "all" ? { all: true } : { [scope]: name };
  return commandButton("Resume", "resume", () => resumeAll(selection, view.result),
    { class: "small", "data-name": "resume" });
}

function endException(view, { scope, name, kind, rule }) {
  if (!mayChange()) return null;
  const subject = scope === "folder" ? { folder: name } : { ids: [name] };
  const rules = rule ? { kinds: [], rules: [rule] } : { kinds: [kind] };
  const [path, body] = kind === "rate" ? ["limit", {}] : ["allow", { ...subject, ...rules, duration: 0 }];
  return commandButton("End", "cancel", () => run(path, body, { place: view.result, done: "Ended." }),
    { class: "small", "data-name": "end", "aria-label": `End the exception of ${scope} ${name ?? ""}` });
}

function exceptionWords(exception) {
  const subject = exception.scope === "all" ? "everything" : [`${exception.scope} `, foreign(exception.name)];
  const what = exception.kind === "rate" ? `Rate limited to ${rate(exception.rate)}`
    : ["Exception from ", exception.rule ? foreign(exception.rule) : exception.kind];
  return element("span", {}, what, " for ", subject, " ", until(exception.until), ", by ", foreign(exception.by));
}

function transferLine(view) {
  let upload = null;
  const name = element("a", { class: "row-name" });
  const from = element("p", { class: "row-from" });
  const figures = element("p", { class: "transfer-figures" });
  const bar = progressBar("Progress");
  const picture = new Thumbnail("row-picture");
  const speed = element("strong", { class: "figure" });
  const left = element("p", { class: "quiet" });
  const result = resultPlace();
  const controls = element("div", { class: "row-commands" });
  const node = element("li", { class: "transfer" }, picture.node, element("div", { class: "row-main" }, name, from),
    element("div", { class: "transfer-rate" }, speed, left), controls,
    element("div", { class: "transfer-progress" }, bar.node, figures), result);
  return {
    node,
    update(next) {
      if (!upload) {
        picture.update(next);
        fill(name, foreign(next.name));
        name.href = link("now", { upload: next.id });
        fill(from, route(next.folder, next.destination));
        bar.node.setAttribute("aria-label", `Progress of ${next.name}`);
        if (mayChange()) {
          fill(controls, commandButton("Pause", "pause", () => command("pause", [upload], result),
            { class: "small", "aria-label": `Pause ${next.name}` }));
        }
      }
      upload = next;
      const { progress } = next;
      bar.update(progress.fraction);
      setText(speed, next.state === "uploading" ? rate(progress.rate) || "starts" : describe(next).word);
      setText(left, progress.eta === undefined ? "" : `${duration(progress.eta)} left`);
      setText(figures, sentWords(progress));
    },
  };
}

function copyLine() {
  const bar = progressBar("Progress of the copy");
  const name = element("p", { class: "row-name" });
  const figures = element("p", { class: "transfer-figures" });
  return {
    node: element("li", { class: "transfer copy" }, icon("disk"), element("div", { class: "row-main" }, name),
      element("div", { class: "transfer-progress" }, bar.node, figures)),
    update(run) {
      fill(name, foreign(run.path));
      bar.update(run.fraction);
      const { work, fraction, done, total, rate: speed, eta } = run;
      setText(figures, [work, fraction !== undefined && percent(fraction), `${bytes(done)} of ${bytes(total)}`,
        rate(speed), eta !== undefined && `${duration(eta)} left`].filter(Boolean).join(", "));
    },
  };
}

/** An item whose content is made again only when its view differs. Controls with the same name keep the focus. */
function card(render, kind = "card") {
  const node = element("li", { class: kind });
  let shown = "";
  return {
    node,
    update(item) {
      const text = JSON.stringify(item);
      if (text === shown) return;
      shown = text;
      const focused = node.contains(document.activeElement) ? document.activeElement.dataset.name : null;
      fill(node, render(item));
      if (focused) node.querySelector(`[data-name="${focused}"]`)?.focus();
    },
  };
}

const holdCard = (view) => card(({ folder, destination, waiting, hold }) => {
  const uploads = element("a", { href: link("queue", { folder, destination }), "data-name": "queue" },
    `${files(waiting, "upload")} waiting`);
  const end = hold.until ? until(hold.until) : element("span", { class: "quiet" }, "no known end");
  const allow = () => allowDialog({ folder }, `folder ${folder}`, [hold]);
  return [
    cardTitle(route(folder, destination), holdWords(hold)),
    element("p", {}, prose(hold.text)),
    element("p", { class: "parts" }, uploads, end),
    mayChange() && ALLOWED.has(hold.kind) && commandButton("Allow…", "allow", allow,
      { class: "small", "data-name": "allow", "aria-label": `Allow folder ${folder}` }),
  ];
});

/** Pause or resume for a folder or a destination. */
function pauseControl(view, scope, { name, isPaused }) {
  if (!mayChange()) return null;
  const label = isPaused ? "Resume" : "Pause…";
  const act = () => (isPaused ? resumeAll({ [scope]: name }, view.result) : pauseDialog({ [scope]: name }));
  return commandButton(label, isPaused ? "resume" : "pause", act,
    { class: "small", "data-name": "pause", "aria-label": `${label.replace("…", "")} ${scope} ${name}` });
}

/** Adds what a card shows besides its own view: whether a person paused it, and its way. */
function withSurroundings(scope, each) {
  const isPaused = state.status.paused.some((pause) => pause.scope === scope && pause.name === each.name);
  return { ...each, isPaused, way: scope === "destination" && state.routes?.get(each.name)?.way };
}

function destinationCard(view) {
  const shown = card((each) => {
    const said = stateOf(each.hold, "Up");
    const { space } = each;
    const uploads = element("a", { href: link("queue", { destination: each.name }), "data-name": "queue" },
      `${count(each.running)} running, ${count(each.waiting)} waiting`);
    return [
      cardTitle([foreign(each.name), " ", element("small", {}, each.type)], said),
      each.hold && element("p", {}, prose(each.hold.text), " ", each.hold.until && until(each.hold.until)),
      facts([
        ["Uploads", uploads],
        ["Today", `${bytes(each.sent_today)} sent, ${bytes(each.received_today)} received`],
        ["Limit", each.limit !== undefined && rate(each.limit)],
        ["Space", space && [foreign(space.text), space.asked_at && [" (", ago(space.asked_at), ")"]]],
        ["Way", each.way && wayText(each.way)],
      ]),
      pauseControl(view, "destination", each),
    ];
  });
  return { node: shown.node, update: (each) => shown.update(withSurroundings("destination", each)) };
}

const FOLDER_STATES = { watching: ["Watching", "ok", "good"], scanning: ["Scanning", "retry", "active"] };

function folderWords(text) {
  const [word, picture, tone] = FOLDER_STATES[text] ?? (text.startsWith("failed") ? ["Failed", "failed", "bad"]
    : text.startsWith("absent") ? ["Absent", "disk", "warn"] : [text, "folder", "quiet"]);
  return { word, icon: picture, tone, reason: text.includes(": ") ? text.slice(text.indexOf(": ") + 2) : "" };
}

function folderCard(view) {
  const shown = card((each) => {
    const said = folderWords(each.state);
    const queue = element("a", { href: link("queue", { folder: each.name }), "data-name": "queue" }, "Queue");
    return [
      cardTitle(foreign(each.name), said),
      element("p", { class: "path" }, foreign(each.path)),
      said.reason && element("p", {}, prose(said.reason)),
      each.hold && element("p", {}, badge(holdWords(each.hold)), " ", prose(each.hold.text)),
      facts([
        ["Disk", each.card && cardWords(each.card)],
        ["Settling", each.settling > 0 && files(each.settling)],
        ["Gathering", each.gathering?.map(({ path, reason }) => element("p", {}, foreign(path), ": ", prose(reason)))],
        ["Polled", each.polled > 0 && polledWords(each)],
        ["Kept sources", each.retention && retentionWords(each.retention)],
        ["Limit", each.limit !== undefined && rate(each.limit)],
      ]),
      element("p", { class: "parts" }, queue, pauseControl(view, "folder", each)),
    ];
  });
  return { node: shown.node, update: (each) => shown.update(withSurroundings("folder", each)) };
}

function polledWords({ polled, unwatched }) {
  return `${count(polled)} directories${unwatched ? `, ${count(unwatched)} for want of watches` : ""}`;
}

function cardWords({ level, settling, unstaged, unverified }) {
  const continues = `${files(unverified, "upload")} continue without it`;
  if (level === "verified") return [icon("ok"), " safe to remove: every file is verified"];
  if (level === "staged") return [icon("ok"), ` safe to remove: every file is staged; ${continues}`];
  if (settling) return [icon("warning"), " do not remove: files on it are being examined"];
  return [icon("warning"), " do not remove: files without a copy: ", count(unstaged), unstaged < 1000 ? "" : "+"];
}

function retentionWords({ seconds, until_free: least, free, going_files: going }) {
  return [
    seconds && `for ${duration(seconds)}`,
    least && `until less than ${bytes(least)} is free`,
    free !== undefined && `${bytes(free)} free`,
    going > 0 && `${files(going)} go now`,
  ].filter(Boolean).join(", ");
}

const settlingLine = () => card((each) => [
  element("p", { class: "row-name" }, each.overdue && icon("warning"), foreign(each.path)),
  element("p", { class: "quiet" }, bytes(each.size), ", seen ", ago(each.since),
    each.rate > 0 && `, grows by ${rate(each.rate)}`, ". ", prose(each.reason)),
]);

/** The words of a hold, or that there is none. */
const stateOf = (hold, word = "In order") => (hold ? holdWords(hold) : { word, icon: "ok", tone: "good" });

function diskFacts({ staging: { path, used, free, cap, hold }, version, started_at: started }) {
  const range = { min: 0, max: cap, high: cap * 0.9, value: Math.min(used, cap), "aria-label": "Staging used" };
  return [
    cardTitle(foreign(path), stateOf(hold)),
    hold && element("p", {}, prose(hold.text)),
    cap && element("meter", range),
    facts([
      ["Used", cap ? `${bytes(used)} of ${bytes(cap)}` : bytes(used)],
      ["Free on the disk", bytes(free)],
      ["Daemon", [`version ${version}, started `, time(started)]],
    ]),
  ];
}

const hookCard = () => card(({ name, target, hold, delivered, waiting, given_up: lost, dropped, ...each }) => [
  cardTitle(foreign(name), stateOf(hold)),
  element("p", { class: "path" }, foreign(target)),
  hold && element("p", {}, prose(hold.text), " ", hold.until && until(hold.until, "next try")),
  facts([
    ["Notices", [`${count(delivered)} delivered`, waiting > 0 && `, ${count(waiting)} waiting`,
      lost > 0 && `, ${count(lost)} given up`, dropped > 0 && `, ${count(dropped)} dropped`]],
    ["Last delivered", each.last_delivered && ago(each.last_delivered)],
    ["Oldest waiting", each.oldest && ago(each.oldest)],
  ]),
]);
