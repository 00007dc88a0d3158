// One upload in a drawer: why it waits, its progress, attempts, recording and remote, and its commands.

import { get, mayChange } from "./api.js";
import { COMMANDS, commandButton, commandsFor, reasonAgainst, resultPlace } from "./actions.js";
import { button, dataTable, element, fill, foreign, icon, remake, setAttribute, setText } from "./dom.js";
import { command } from "./dialogs.js";
import { bytes, clockLength, count, files, time } from "./format.js";
import { changesWaits, subscribe } from "./store.js";
import { Thumbnail } from "./thumbnail.js";
import { describe, holdFacts, holdWords, prose, route, whenOf } from "./words.js";

/** A bar for a fraction, with its words for screen readers. */
export function progressBar(label) {
  const bar = element("progress", { max: 1, "aria-label": label });
  return {
    node: bar,
    update(fraction) {
      setAttribute(bar, "value", fraction ?? 0);
    },
  };
}

/** A word with its picture and tone. */
export function badge(said) {
  return element("span", { class: `badge ${said.tone}` }, icon(said.icon), said.word);
}

/** The first line of a card: what it is about, and how it is. */
export function cardTitle(title, said) {
  return element("div", { class: "card-title" }, element("h3", {}, title), badge(said));
}

let drawer = null;

/** Shows an upload. `onclose` is called when the person closes it. */
export function openUpload(id, onclose) {
  if (drawer?.id === id) return;
  closeUpload();
  drawer = new Drawer(id, onclose);
}

export function closeUpload() {
  const open = drawer;
  drawer = null;
  open?.close();
}

class Drawer {
  constructor(id, onclose) {
    this.id = id;
    /** The numbers of the last question and of the last one that was answered. */
    this.asked = this.answered = 0;
    this.title = element("h2", { id: "drawer-title", tabindex: "-1" }, "Upload");
    this.head = element("div", { class: "drawer-head" });
    this.body = element("div", { class: "drawer-body" }, element("p", { class: "empty" }, "Reading…"));
    this.controls = element("div", { class: "buttons" });
    this.result = resultPlace("status");
    const shut = button("Close", { icon: "cancel", class: "plain", onclick: () => this.dialog.close() });
    this.dialog = element("dialog", { class: "drawer", "aria-labelledby": "drawer-title" },
      element("header", {}, this.title, shut), this.head, this.controls, this.result, this.body);
    this.dialog.addEventListener("close", () => {
      this.end();
      if (drawer === this) {
        drawer = null;
        onclose();
      }
    });
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    this.unsubscribe = [
      subscribe("events", (events) => this.follow(events)),
      subscribe("stale", () => this.refresh()),
      // Some holds begin and end without an event of the upload.
      subscribe("status", () => this.refreshSoon()),
      subscribe("connection", () => this.upload && this.showControls(this.upload)),
    ];
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.title.focus();
    this.refresh();
  }

  close() {
    this.dialog.close();
  }

  end() {
    for (const each of this.unsubscribe) each();
    clearTimeout(this.timer);
    this.dialog.remove();
  }

  follow(events) {
    for (const event of events ?? []) {
      if (event.type === "progress" && event.op?.id === this.id) this.show(event.op);
      else if (event.op?.id === this.id || changesWaits(event)) this.refreshSoon();
    }
  }

  refreshSoon() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.refresh();
    }, 500);
  }

  async refresh() {
    const mine = (this.asked += 1);
    try {
      const path = encodeURIComponent(this.id);
      const [detail, why] = await Promise.all([get(`v1/uploads/${path}`), get(`v1/why/${path}`)]);
      // The answer to a later question may have come before.
      if (drawer !== this || mine < this.answered) return;
      this.answered = mine;
      this.show(detail.upload);
      const answer = why.answers.find((each) => each.id === this.id) ?? why.answers[0];
      // Made again only if it differs, so that selection and focus stay.
      const key = JSON.stringify([{ ...detail, upload: { ...detail.upload, progress: null } }, answer]);
      if (key !== this.shownKey) remake(this.body, sections(detail, answer));
      this.shownKey = key;
    } catch (failure) {
      // What was read once stays until it can be read again.
      if (mine < this.answered || (this.shownKey && failure.status !== 404)) return;
      this.answered = mine;
      this.shownKey = null;
      const gone = failure.status === 404;
      const words = gone ? "The daemon does not know this upload any more." : failure.message;
      fill(this.body, element("p", { class: "empty" }, icon(gone ? "file" : "lost"), foreign(words)));
    }
  }

  show(upload) {
    this.upload = upload;
    fill(this.title, foreign(upload.name));
    this.showHead(upload);
    const key = `${commandsFor(upload)}`;
    if (this.shownCommands !== key) {
      this.shownCommands = key;
      this.showControls(upload);
    }
  }

  showHead(upload) {
    const said = describe(upload);
    if (!this.bar) {
      this.bar = progressBar("Progress");
      this.state = element("p", { class: "drawer-state" });
      this.text = element("p", { class: "drawer-text" });
      const picture = new Thumbnail("large");
      picture.update(upload);
      fill(this.head, picture.node,
        element("div", {}, element("p", {}, route(upload.folder, upload.destination)), this.state, this.bar.node,
          this.text));
    }
    fill(this.state, badge(said), " ", whenOf(upload));
    this.bar.update(upload.progress.fraction);
    const { acked, total } = upload.progress;
    setText(this.text, said.tone === "active" ? said.text : `${bytes(acked)} of ${bytes(total)} arrived`);
  }

  showControls(upload) {
    const reason = reasonAgainst();
    if (!mayChange()) {
      fill(this.controls, element("p", { class: "quiet" }, icon("lock"), reason));
      return;
    }
    // A button that was pressed keeps the focus when the buttons are made again.
    const focused = document.activeElement?.dataset?.name;
    fill(this.controls, commandsFor(upload).map((name) => {
      const { label, icon: picture, danger } = COMMANDS[name];
      return commandButton(label, picture, () => command(name, [this.upload], this.result),
        { class: danger ? "danger-quiet" : "", "data-name": name });
    }));
    if (!focused) return;
    const same = this.controls.querySelector(`[data-name="${focused}"]`);
    (same ?? this.controls.querySelector("button"))?.focus();
  }
}

function sections({ upload, attempts, media, wasted, group }, why) {
  return [
    why && whySection(upload, why),
    attempts.length > 0 && section("Attempts that failed", attemptTable(attempts)),
    section("File", facts([
      ["Path", foreign(upload.path)],
      ["Size", `${bytes(upload.size)} (${count(upload.size)} bytes)`],
      ["Settled by", upload.settled_by],
      ["SHA-256", upload.sha256 && element("code", { class: "digest" }, upload.sha256)],
      ["Source", `${upload.source_action}: ${upload.source_state}`],
      ["Uploaded as", upload.keeping && foreign(upload.keeping)],
      ["Group", group && [foreign(group.name), `: ${files(group.files)}, ${bytes(group.bytes)}, `,
        `${count(group.verified)} verified`]],
    ])),
    media && section("Recording", facts([
      ["Recorded", media.recorded_at && time(media.recorded_at)],
      ["Length", media.duration && clockLength(media.duration)],
      ["Picture", media.width && `${media.width} × ${media.height}`],
      ["Camera", media.camera && foreign(media.camera)],
    ])),
    section("Upload", facts([
      ["Id", element("code", {}, upload.id)],
      ["Key", upload.key && foreign(upload.key)],
      ["Priority", String(upload.priority)],
      ["Attempt", String(upload.attempt)],
      ["Added", time(upload.created_at, { seconds: true })],
      ["Started", upload.started_at && time(upload.started_at, { seconds: true })],
      ["Ended", upload.finished_at && time(upload.finished_at, { seconds: true })],
      ["Leaves its list", upload.expires_at && time(upload.expires_at)],
      ["Sent in vain", wasted && bytes(wasted)],
      ["Name at the destination", upload.remote?.id && foreign(upload.remote.id)],
      ["Address", upload.remote?.url && foreign(upload.remote.url)],
      ["Verified by", upload.remote?.verified_by && foreign(upload.remote.verified_by)],
      ["Kept there until", upload.remote?.resumable && time(upload.remote.resumable.expires_at)],
      ["Removal there", upload.remote_delete],
      ...Object.entries(upload.context).map(([name, value]) => [foreign(name), foreign(value)]),
      ...upload.warnings.map((text) => ["Warning", prose(text)]),
    ])),
  ];
}

function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), children);
}

/** Names with their values; those without a value are left out. */
export function facts(pairs) {
  return element("dl", { class: "facts" }, pairs.filter(([, value]) => value).map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function whySection(upload, why) {
  const exceptions = why.exceptions ?? [];
  return section(upload.list === "ongoing" ? "Why it waits or runs" : "What became of it",
    why.holds.length === 0 && element("p", {}, prose(why.text)),
    why.holds.length > 0 && element("ul", { class: "holds" }, why.holds.map((hold) => element("li", {},
      badge(holdWords(hold)), element("p", {}, prose(hold.text)),
      element("p", { class: "quiet parts" }, holdFacts(hold))))),
    exceptions.length > 0 && element("ul", {}, exceptions.map((each) => element("li", {},
      "Exception from ", each.rule ? foreign(each.rule) : each.kind, " until ", time(each.until), ", by ",
        foreign(each.by)))),
    why.way && facts([["Way", wayText(why.way)], ...(why.other_ways ?? []).map((way) => ["Not by", wayText(way)])]));
}

/** `eth0 from 192.0.2.5: unmetered`. */
export function wayText(way) {
  const from = [way.interface, way.address && `from ${way.address}`].filter(Boolean).join(" ");
  return [from && foreign(`${from}: `), prose(way.text)];
}

function attemptTable(attempts) {
  return dataTable("Attempts", ["When", "Try", "Code", "Message"], attempts.map(({ generation, attempt, error }) => [
    time(error.at, { seconds: true }), generation > 1 ? `${generation}.${attempt}` : String(attempt),
    element("code", {}, error.code), prose(error.message),
  ]), { kind: "wide" });
}
