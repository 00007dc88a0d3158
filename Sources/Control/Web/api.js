// Requests to the daemon. The cookie of the session is enough to look. A change needs the session's token, which this
// module holds in memory and nothing else ever sees: it is in no storage, no address and no element.

/** An answer other than success, or no answer. */
export class Failure extends Error {
  /** @param status The HTTP status; 0: the daemon does not answer. */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The daemon sends a comment every 5 s into the stream of events: without a byte for this long, it is lost. */
export const SILENCE = 11_000;
/** For questions that the daemon answers from memory. */
export const soon = () => ({ signal: AbortSignal.timeout(SILENCE) });

let token = null;

/** The person who is signed in: `name`, `role`, `until`; `null` before signing in. */
export const session = { person: null, onlost: () => {} };

/** Whether changes can be made without asking for the token again. */
export const isUnlocked = () => token !== null;
export const mayChange = () => session.person?.role === "operate";

/** Paths are relative, so that the page also works below a path of a proxy. */
async function request(method, path, { body, headers = {}, signal } = {}) {
  let answer;
  try {
    answer = await fetch(path, { method, body, headers, signal, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "unreachable", "The daemon does not answer.");
  }
  return read(answer);
}

/** The JSON of an answer. */
async function read(answer) {
  const text = await answer.text().catch(() => {
    throw new Failure(0, "unreachable", "The connection broke before the answer was complete.");
  });
  let value = null;
  try {
    value = text ? JSON.parse(text) : {};
  } catch {
    // A proxy in front of the daemon may answer with a page of its own.
  }
  if (answer.ok && value) return value;
  throw failureOf(answer.status, value);
}

function failureOf(status, value) {
  // A refused reload (422) lists the mistakes in place of an error.
  const mistakes = value?.errors?.map((each) => `${each.place}: ${each.text}`).join("\n");
  const message = value?.error?.message ?? mistakes;
  if (message) return new Failure(status, value.error?.code ?? "refused", message);
  return new Failure(status, "invalid", `The answer (${status}) is not one of the daemon.`);
}

/** The query of an address. The daemon takes a plus as it is, and URLSearchParams writes one for a blank. */
const queryOf = (pairs) => new URLSearchParams(pairs).toString().replaceAll("+", "%20");

/** Reads `path` with the pairs of `query` that have a value. */
export async function get(path, query = {}, options = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const address = pairs.length ? `${path}?${queryOf(pairs)}` : path;
  try {
    return await request("GET", address, options);
  } catch (failure) {
    if (failure.status === 401) session.onlost(failure);
    throw failure;
  }
}

/** Makes a change. */
export async function post(path, body = {}) {
  const headers = { "Content-Type": "application/json", "X-Sluice-Token": token ?? "" };
  try {
    return await request("POST", path, { body: JSON.stringify(body), headers });
  } catch (failure) {
    if (failure.status === 401) {
      token = null;
      session.onlost(failure);
    }
    throw failure;
  }
}

/**
 * Sends a file. `fetch` does not report the progress of a request body, so this is an XMLHttpRequest.
 *
 * @throws A failure with `isUnknown` where the daemon has all bytes, and may add the file without the page.
 */
function send(file, query, { onprogress, signal }) {
  return new Promise((resolve, reject) => {
    const cancelled = () => new Failure(0, "cancelled", "Cancelled.");
    if (signal?.aborted) return reject(cancelled());
    const transfer = new XMLHttpRequest();
    transfer.open("POST", `v1/bytes?${queryOf(query)}`);
    transfer.setRequestHeader("Content-Type", "application/octet-stream");
    transfer.setRequestHeader("X-Sluice-Token", token ?? "");
    transfer.upload.addEventListener("progress", (event) => onprogress(event.loaded, event.total));
    let isWhole = false;
    transfer.upload.addEventListener("load", () => {
      isWhole = true;
    });
    const fail = (failure) => reject(Object.assign(failure, { isUnknown: isWhole }));
    transfer.addEventListener("error", () => fail(new Failure(0, "unreachable", "The connection broke.")));
    transfer.addEventListener("abort", () => fail(cancelled()));
    transfer.addEventListener("load", () => {
      let value = null;
      try {
        value = JSON.parse(transfer.responseText);
      } catch {
        // As in `read`.
      }
      if (transfer.status < 300 && value) return resolve(value);
      if (transfer.status === 401) {
        token = null;
        session.onlost(failureOf(401, value));
      }
      const failure = failureOf(transfer.status, value);
      // A proxy may give up while the daemon goes on.
      if (failure.code === "invalid") fail(failure);
      else reject(failure);
    });
    signal?.addEventListener("abort", () => transfer.abort());
    return transfer.send(file);
  });
}

/** 128 bits, also where the page is no secure context. */
const newKey = () => `web-${[...crypto.getRandomValues(new Uint8Array(16))]
  .map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;

/** The keys of files that were tried and not added as far as the page knows, also for when they are chosen again. */
const keys = new Map();

/**
 * Adds a file with a key of its own: an answer that is lost can be asked for, and a further try adds nothing twice.
 *
 * @throws A failure whose message says what became of the file.
 */
export async function add(file, to, options) {
  const same = JSON.stringify([file.name, file.size, file.lastModified, to]);
  if (!keys.has(same)) keys.set(same, newKey());
  else if (await wasAdded(keys.get(same))) return void keys.delete(same);
  await addWithKey(file, { name: file.name, to, key: keys.get(same), once: true }, options);
  keys.delete(same);
}

async function addWithKey(file, query, options) {
  // Without an answer the next question, or the next try, may have one.
  const isKnownByNow = () => isKnown(query.key).catch(() => false);
  try {
    await send(file, query, options);
  } catch (failure) {
    if (failure.status === 409 && (await isKnownByNow())) return;
    if (failure.isUnknown) {
      // The daemon examines and records a file for a while after its last byte.
      for (const delay of [0, 1000, 3000]) {
        await new Promise((resolve) => setTimeout(resolve, delay));
        if (await isKnownByNow()) return;
      }
      failure.message += " It is not known whether the file was added. A further try does not add it twice.";
    } else if (failure.status === 0) failure.message += " The file was not added.";
    throw failure;
  }
}

/** Whether an earlier try did more than its answer said. The bytes are not sent again before the daemon has said so. */
async function wasAdded(key) {
  try {
    return await isKnown(key);
  } catch (failure) {
    failure.isUnknown = true;
    failure.message += " It is not known whether the last try added the file, so it was not sent again.";
    throw failure;
  }
}

/** Whether an upload has this key, also one that ended, as long as the history has it. */
async function isKnown(key) {
  try {
    await get(`v1/uploads/${encodeURIComponent(key)}`, {}, soon());
    return true;
  } catch (failure) {
    if (failure.status === 404) return false;
    throw failure;
  }
}

function opened(answer) {
  token = answer.token;
  session.person = { name: answer.name, role: answer.role, until: answer.until };
  return session.person;
}

/** Signs in with a code of `sluice web`, which is good once. */
export async function signInWithCode(code) {
  const body = JSON.stringify({ code });
  return opened(await request("POST", "v1/session", { body, headers: { "Content-Type": "application/json" } }));
}

/** Signs in with a token of `control.tokens`, or unlocks changes again. */
export async function signInWithToken(typed) {
  const secret = typed.trim();
  // `fetch` refuses such a header as if the daemon did not answer.
  const place = secret.search(/[^\x20-\x7e]/);
  if (place >= 0) {
    throw new Failure(400, "bad_request", `Character ${place + 1} of the token is not ASCII and cannot be sent.`);
  }
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${secret}` };
  return opened(await request("POST", "v1/session", { body: "{}", headers }));
}

/** After a reload of the page: the cookie may still be valid. */
export async function resumeSession() {
  session.person = await request("GET", "v1/session", soon());
  return session.person;
}

/** Ends the session. After a reload the page has only the cookie, which is enough for this. */
export async function signOut() {
  try {
    await request("DELETE", "v1/session", { headers: token ? { "X-Sluice-Token": token } : {} });
  } catch (failure) {
    // It was over already.
    if (failure.status !== 401) throw failure;
  }
  token = null;
  session.person = null;
}

/** The address of the picture of an upload. */
export const thumbnailAddress = (id) => `v1/thumbnails/${encodeURIComponent(id)}`;
