// Dialogs: confirmations with count and scope, and the questions that some commands ask first.

import { add } from "./api.js";
import { announce, button, element, fill, foreign, icon, setText, visibly } from "./dom.js";
import { bytes, count, files, percent } from "./format.js";
import { COMMANDS, clearResult, countIn, doneText, ensureUnlocked, run, runPlain, scopeOf, scopeText, scopeValue,
  showNotice, showOutcome, showResult, standpoint, uploadsIn } from "./actions.js";
import { refreshStatus, state } from "./store.js";
import { addedWords, failureWords, stoppedWords } from "./words.js";

let questions = 0;

/**
 * Opens a dialog with a form.
 *
 * @param confirm The word on its button. `submit(place)` resolves to whether the dialog may close. `onopen(end)` gets
 *   a function that closes it as done.
 * @returns Resolves when it is closed: whether `submit` was done.
 */
export function ask({ title, body, confirm, danger, submit, dismiss = "Cancel", kind = "", close, onopen }) {
  return new Promise((resolve) => {
    let isDone = false;
    const result = element("p", { class: "result", role: "alert" });
    const go = button(confirm, { type: "submit", class: danger ? "danger" : "primary" });
    const back = button(dismiss, { onclick: () => dialog.close() });
    // One question may lead to another over it.
    const id = `question-${(questions += 1)}`;
    const form = element("form", {}, element("h2", { id }, title), body, result,
      element("div", { class: "buttons" }, back, go));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      go.disabled = true;
      // Back must not end what goes on.
      dialog.dataset.busy = "";
      await clearResult(result);
      // It may have been closed meanwhile.
      if (dialog.open) isDone = Boolean(await submit(result));
      delete dialog.dataset.busy;
      go.disabled = false;
      if (isDone) {
        dialog.close();
        showOutcome(result);
      } else if (document.activeElement === document.body) go.focus();
    });
    const dialog = element("dialog", { class: `question ${kind}`, "aria-labelledby": id }, form);
    onopen?.(() => {
      isDone = true;
      dialog.close();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      close?.();
      resolve(isDone);
    });
    document.body.append(dialog);
    dialog.showModal();
    // The first field of a question; the harmless button of a confirmation.
    (form.querySelector("input, select") ?? back).focus();
  });
}

/** A field with its label. */
export function field(label, control, hint) {
  return element("label", { class: "field" }, element("span", {}, label), control, hint && element("small", {}, hint));
}

function checkbox(label, attributes, hint) {
  const words = element("span", {}, label, hint && element("small", {}, hint));
  return element("label", { class: "check" }, element("input", { type: "checkbox", ...attributes }), words);
}

function select(options, attributes) {
  return element("select", attributes, options.map(([value, label]) => element("option", { value }, label)));
}

const DURATIONS = [
  [900, "15 minutes"], [1800, "30 minutes"], [3600, "1 hour"], [7200, "2 hours"], [28800, "8 hours"], [86400, "1 day"],
];

/** A choice of everything, or one of the folders and destinations. */
export function scopeSelect(attributes) {
  return fillScopes(element("select", attributes));
}

/** Offers the folders and destinations of the present status, and keeps what is chosen. */
export function fillScopes(control) {
  const { value } = control;
  const group = (kind, label, list = []) => element("optgroup", { label },
    list.map((each) => element("option", { value: `${kind}:${each.name}` }, `${label.slice(0, -1)} ${each.name}`)));
  fill(control, element("option", { value: "all" }, "Everything"), group("folder", "Folders", state.status?.folders),
    group("destination", "Destinations", state.status?.destinations));
  control.value = value || "all";
  return control;
}

/** The same with a choice that the status may not list, such as a folder that was configured once. */
function scopeSelectWith(selection) {
  const control = scopeSelect();
  const wanted = scopeValue(selection);
  control.value = wanted;
  if (control.value !== wanted) {
    control.append(element("option", { value: wanted }, `Uploads ${scopeText(selection)}`));
    control.value = wanted;
  }
  return control;
}

/** A sentence with the number of uploads that a command would apply to: it follows the choice of the scope. */
function countLine(where, list, sentence) {
  const line = element("p", { class: "count", role: "status" });
  let asked = 0;
  const refresh = async () => {
    const mine = (asked += 1);
    const selection = scopeOf(where.value);
    setText(line, "Counting…");
    const number = await countIn(selection, list).catch(() => null);
    if (mine === asked) setText(line, `${sentence} ${uploadsIn(number, list)} ${scopeText(selection)}.`);
  };
  where.addEventListener("change", refresh);
  refresh();
  return line;
}

/** Asks what to pause: a whole folder, a whole destination or everything. */
export function pauseDialog({ folder, destination } = {}) {
  const where = scopeSelectWith(folder ? { folder } : { destination });
  const limits = folder && destination
    && element("p", { class: "quiet" }, "A pause is for a whole folder or destination, not for one to the other.");
  const how = select([["", "until somebody resumes it"], ...DURATIONS]);
  const after = checkbox("Let parts in flight arrive first", {}, "No byte is sent twice later.");
  return ask({
    title: "Pause sending",
    body: [field("What", where), countLine(where, "ongoing", "Holds"), limits, field("How long", how), after],
    confirm: "Pause",
    submit(place) {
      const selection = scopeOf(where.value);
      const body = { ...selection, after_part: after.firstChild.checked };
      if (how.value) body.duration = Number(how.value);
      return run("pause", body, { place, done: () => `Paused: uploads ${scopeText(selection)}.` });
    },
  });
}

/** In bytes a second. */
const MAX_RATE = 1e12;

export function limitDialog() {
  const speed = element("input", { type: "number", min: "0", step: "any", inputmode: "decimal" });
  const how = select(DURATIONS);
  how.value = "3600";
  return ask({
    title: "Limit the rate of all transfers",
    body: [
      field("MB a second", speed, "0 holds everything. Empty takes a limit back."), field("How long", how),
      element("p", { class: "quiet" }, "It applies in addition to the bandwidth of the configuration."),
    ],
    confirm: "Set limit",
    submit(place) {
      if (speed.value === "") return run("limit", {}, { place, done: "The limit is taken back." });
      const rate = Number(speed.value) * 1e6;
      // What is rounded to 0 would hold everything.
      if (rate > 0 && !(rate >= 1 && rate <= MAX_RATE)) {
        showResult(place, "Give 0, or from 0.000001 to 1000000 MB a second.", "bad");
        return false;
      }
      const body = { rate: Math.round(rate), duration: Number(how.value) };
      return run("limit", body, { place, done: `Limited to ${bytes(body.rate)} a second.` });
    },
  });
}

const KINDS = [
  ["window", "Windows", "sends outside the times of the configuration"],
  ["metered", "Metered networks", "may cost money"],
  ["quota", "Quotas", "the bytes still count"],
  ["rule", "Other rules under pause", "may cost money"],
];

/** Asks from which rules an exception is to be made for uploads or a folder, whose ongoing uploads are counted. */
export function allowDialog(selection, subject, holds = []) {
  const wanted = new Set(holds.map((hold) => (hold.rule === "windows" ? "window" : hold.rule === "metered" ? "metered"
    : hold.kind)));
  const boxes = KINDS.map(([kind, label, hint]) => checkbox(label, { value: kind, checked: wanted.has(kind) }, hint));
  const how = select([...DURATIONS, [0, "end the exceptions now"]]);
  how.value = "3600";
  const counted = selection.folder && element("p", { class: "count", role: "status" }, "Counting…");
  if (counted) {
    countIn(selection, "ongoing").catch(() => null)
      .then((number) => setText(counted, `The folder has ${uploadsIn(number, "ongoing")}.`));
  }
  return ask({
    title: "Make an exception",
    body: [
      element("p", {}, "For ", foreign(subject), ": these rules do not hold it for a while."),
      counted,
      element("fieldset", {}, element("legend", {}, "Rules"), boxes), field("How long", how),
    ],
    confirm: "Allow",
    submit(place) {
      const kinds = boxes.map((box) => box.firstChild).filter((box) => box.checked).map((box) => box.value);
      if (!kinds.length) {
        showResult(place, "Choose at least one kind of rules.", "bad");
        return false;
      }
      return run("allow", { ...selection, kinds, duration: Number(how.value) }, { place, done: allowedText });
    },
  });
}

function allowedText(answer) {
  if (answer.ended) return `Ended: ${files(answer.ended.length, "exception")}.`;
  const rest = answer.remaining?.[0];
  return rest ? `Allowed, but this still holds: ${rest.text}` : "Allowed.";
}

function priorityDialog(uploads) {
  const number = element("input", {
    type: "number", min: "-1000", max: "1000", step: "1", required: true, value: uploads[0].priority,
  });
  return ask({
    title: `Priority of ${subjectOf(uploads)}`,
    body: field("Priority", number, "From -1000 to 1000. Higher goes first; folders have 0 unless configured."),
    confirm: "Set priority",
    submit: (place) => run("priority", { ids: uploads.map((each) => each.id), priority: Number(number.value) },
      { place, done: doneText(`Priority ${number.value}`) }),
  });
}

const subjectOf = (uploads) => (uploads.length === 1 ? "1 upload" : `${count(uploads.length)} uploads`);

const WARNINGS = {
  cancel: "Their unfinished data is removed at the destination. The sources stay, and are not picked up again.",
  remove: "They leave their list and stay in the history. Uploaded files and sources stay.",
};

/** Asks before a command that cannot be taken back, with the exact number and the names. */
function confirmUploads(name, uploads) {
  const { label } = COMMANDS[name];
  const word = label.replace("…", "");
  const names = uploads.slice(0, 5).map((each) => element("li", {}, foreign(each.name), " to ",
    foreign(each.destination)));
  const rest = uploads.length - names.length;
  return ask({
    title: `${word} ${subjectOf(uploads)}?`,
    body: [
      element("ul", { class: "names" }, names, rest > 0 && element("li", {}, `and ${count(rest)} more`)),
      element("p", { class: "quiet" }, WARNINGS[name]),
    ],
    confirm: `${word} ${subjectOf(uploads)}`,
    danger: true,
    dismiss: "Keep",
    submit: (place) => run(name, { ids: uploads.map((each) => each.id) },
      { place, done: doneText(name === "cancel" ? "Cancelled" : "Removed") }),
  });
}

/** Asks before everything of a scope is cancelled or retried: the number follows the scope. */
export function scopeDialog(name, { folder, destination }) {
  const list = name === "cancel" ? "ongoing" : "failed";
  const [word, verb, done] = name === "cancel" ? ["Cancel", "Cancels", "Cancelled"]
    : ["Retry", "Retries", "Begun again"];
  const where = scopeSelectWith({ folder, destination });
  return ask({
    title: `${word} uploads`,
    body: [field("What", where), countLine(where, list, verb),
      name === "cancel" && element("p", { class: "quiet" }, WARNINGS.cancel)],
    confirm: `${word} them`,
    danger: name === "cancel",
    dismiss: "Keep",
    submit: (place) => run(name, scopeOf(where.value), { place, done: doneText(done) }),
  });
}

/** Asks before a list is cleared, or the part of it that belongs to a folder or a destination. */
export async function flushDialog(list, { folder, destination }) {
  const selection = { folder, destination };
  const isHere = standpoint();
  const subject = uploadsIn(await countIn(selection, list).catch(() => null), list);
  if (!isHere()) return false;
  return ask({
    title: `Clear the list of ${list} uploads?`,
    body: [
      element("p", { class: "count" },
        foreign(`Takes all ${subject} ${scopeText(selection)} off the list.`)),
      element("p", { class: "quiet" }, WARNINGS.remove),
    ],
    confirm: `Clear ${subject}`,
    danger: true,
    dismiss: "Keep",
    submit: (place) => run("flush", { list, ...selection }, { place, done: doneText("Cleared") }),
  });
}

/** Gives a command to uploads, after the question that belongs to it. */
export async function command(name, uploads, place) {
  const isHere = standpoint();
  if (!uploads.length || !(await ensureUnlocked()) || (COMMANDS[name].opens && !isHere())) return false;
  const ids = uploads.map((each) => each.id);
  if (name === "allow") {
    const subject = uploads.length === 1 ? uploads[0].name : subjectOf(uploads);
    return allowDialog({ ids }, subject, uploads.flatMap((each) => each.holds));
  }
  if (name === "priority") return priorityDialog(uploads);
  if (COMMANDS[name].danger) return confirmUploads(name, uploads);
  return Boolean(await runPlain(name, ids, place));
}

/** Asks where files go that were dropped or chosen, and sends them one after another. */
export async function addDialog(chosen = [], note = null) {
  const isHere = standpoint();
  if (!(await ensureUnlocked())) return false;
  const list = element("ul", { class: "names chosen" });
  const picker = element("input", { type: "file", multiple: true });
  // A page that was just opened may not know the destinations yet.
  if (!state.status) await refreshStatus();
  if (!isHere()) return false;
  const destinations = state.status?.destinations ?? [];
  const where = select(destinations.map((each) => [each.name, each.name]));
  const stop = new AbortController();
  let items = [];
  const take = (given) => {
    items = [...items.filter((item) => item.isDone), ...[...given].map((file) => makeItem(file, leaveOut))];
    fill(list, items.map((item) => item.node));
  };
  /** The focus goes to the same place in what is left. */
  const leaveOut = (item) => {
    const index = items.indexOf(item);
    items.splice(index, 1);
    item.node.remove();
    fill(list.closest("form").querySelector(".result"));
    announce(`Left out: ${item.file.name}.`);
    const rest = [...items.slice(index), ...items.slice(0, index).reverse()].find((each) => !each.isDone);
    (rest?.remove ?? picker).focus();
  };
  picker.addEventListener("change", () => take(picker.files));
  take(chosen);
  return ask({
    title: "Add files",
    body: [note && element("p", {}, foreign(note)), field(chosen.length ? "Other files" : "Files", picker), list,
      field("To", where),
      element("p", { class: "quiet" }, "The daemon copies them first. Close this only after that.")],
    confirm: "Add",
    close: () => stop.abort(),
    async submit(place) {
      if (!items.length) {
        showResult(place, "Choose a file.", "bad");
        return false;
      }
      const sent = items.filter((each) => !each.isDone);
      // What is chosen stays as it is until each of them was tried.
      const controls = [picker, where, ...sent.map((item) => item.remove)];
      for (const control of controls) control.disabled = true;
      for (const item of sent) {
        if (stop.signal.aborted) break;
        item.failure = null;
        try {
          await sendFile(item, where.value, stop.signal);
        } catch (failure) {
          // It does not keep the others back.
          item.failure = failure;
          fill(item.status, icon("failed"), " ", foreign(failure.message));
        }
      }
      for (const control of controls) control.disabled = false;
      if (stop.signal.aborted) {
        showNotice(stoppedWords(items), "warn");
        return false;
      }
      const failed = items.find((item) => item.failure);
      if (failed) {
        showResult(place, failureWords(failed), "bad");
        return false;
      }
      announce(addedWords(items));
      return true;
    },
  });
}

/** A file of the list, with a button that leaves it out. */
function makeItem(file, leaveOut) {
  const item = { file, status: element("span", { class: "quiet" }, bytes(file.size)) };
  const label = `Leave out ${visibly(file.name)}`;
  item.remove = button("Leave out", { class: "small", "aria-label": label, onclick: () => leaveOut(item) });
  item.node = element("li", {}, element("span", {}, foreign(file.name), " ", item.status), item.remove);
  return item;
}

async function sendFile(item, to, signal) {
  const onprogress = (sent, total) => setText(item.status, percent(total ? sent / total : 0));
  await add(item.file, to, { onprogress, signal });
  item.isDone = true;
  item.to = to;
  item.remove.remove();
  fill(item.status, icon("ok"), " added");
}
