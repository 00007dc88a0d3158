// The small pictures of uploads: asked for once their place stays in view, few at a time, and not again too soon.

import { thumbnailAddress } from "./api.js";
import { element, fill, icon, kindOf } from "./dom.js";
import { subscribe } from "./store.js";

/** When there was no picture of an upload, by its id. */
const without = new Map();
/** How long it is not asked for again: a file without a picture stays so; a daemon that is busy may soon have one. */
const [ASK_AGAIN, TRY_AGAIN] = [600_000, 30_000];
/** Addresses whose answer was that there is no picture: an element does not tell the status of its answer. */
const missing = new Set();
new PerformanceObserver((list) => {
  for (const { name, responseStatus } of list.getEntries()) {
    if (responseStatus === 404 && name.includes("/v1/thumbnails/")) missing.add(name);
  }
}).observe({ type: "resource" });
/** Those whose place is in view. */
const seen = new Set();

function forget() {
  without.clear();
  missing.clear();
}

function mayAsk(id) {
  const isMissing = missing.has(new URL(thumbnailAddress(id), document.baseURI).href);
  return performance.now() >= (without.get(id) ?? -Infinity) + (isMissing ? ASK_AGAIN : TRY_AGAIN);
}

/** Asks for the pictures in view that may be asked for by now. */
function askAgain() {
  for (const thumbnail of seen) thumbnail.show(true);
  loadNext();
}

subscribe("stale", () => {
  forget();
  askAgain();
});
// A hidden tab asks for none.
document.addEventListener("visibilitychange", askAgain);
// Places may have more pixels when the window is larger or the page is zoomed.
addEventListener("resize", askAgain);
/** Pictures that are in view and not loaded, in the order in which they came there. */
const waiting = new Set();
/** The daemon may take seconds for each, one after another, and a browser has few connections for all that it asks. */
const MOST_LOADING = 2;
/** How long a place is in view before its picture is asked for, in ms. Rows that are scrolled past need none. */
const ASK_AFTER = 150;

/** Loads one picture at a time. A browser keeps the memory of elements that loaded one until the page rests. */
class Loader {
  constructor() {
    this.picture = new Image();
  }

  /** @param ended Called with the picture, or with `null` if there is none. */
  load(address, ended) {
    this.picture.onload = () => ended(this.picture);
    this.picture.onerror = () => ended(null);
    this.picture.src = address;
  }

  stop() {
    this.picture.onload = this.picture.onerror = null;
    this.picture.removeAttribute("src");
  }
}

const idle = Array.from({ length: MOST_LOADING }, () => new Loader());

const owners = new WeakMap();
const inView = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) owners.get(target)?.show(isIntersecting);
});

function loadNext() {
  for (const thumbnail of waiting) {
    if (document.hidden || idle.length === 0) return;
    waiting.delete(thumbnail);
    thumbnail.load(idle.pop());
  }
}

/** The size of a picture that covers its place, and no larger than it is: options for `createImageBitmap`. */
function scaled({ naturalWidth, naturalHeight }, place) {
  const [width, height] = [place.clientWidth * devicePixelRatio, place.clientHeight * devicePixelRatio];
  const scale = Math.min(1, Math.max(width / naturalWidth, height / naturalHeight));
  const size = (pixels) => Math.max(1, Math.round(pixels * scale));
  return { resizeWidth: size(naturalWidth), resizeHeight: size(naturalHeight), resizeQuality: "medium" };
}

/** The picture of an upload, or an icon of its kind of file. It can be used again for another upload. */
export class Thumbnail {
  constructor(kind = "") {
    // A browser keeps up to 128 MB of decoded pictures of the document. A canvas has the pixels that it shows.
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.node = element("span", { class: `thumbnail ${kind}` });
    owners.set(this.node, this);
    inView.observe(this.node);
  }

  update({ id, name }) {
    if (this.id === id) return;
    this.id = id;
    this.drop();
    const kind = kindOf(name);
    this.mayHave = kind === "video" || kind === "photo";
    if (kind !== this.kind) fill(this.node, icon(kind), this.canvas);
    this.kind = kind;
    this.show(this.isInView);
  }

  show(isInView) {
    this.isInView = isInView;
    if (isInView) seen.add(this);
    else seen.delete(this);
    if (isInView && this.isLoaded && this.lacksPixels()) this.isLoaded = false;
    const isWanted = isInView && this.mayHave && !this.loader && !this.isLoaded && mayAsk(this.id);
    if (!isWanted) this.forgo();
    else if (!waiting.has(this)) this.timer ??= setTimeout(() => this.wait(), ASK_AFTER);
  }

  wait() {
    this.timer = null;
    waiting.add(this);
    loadNext();
  }

  /** It does not wait for a picture any more. */
  forgo() {
    clearTimeout(this.timer);
    this.timer = null;
    waiting.delete(this);
  }

  load(loader) {
    const id = this.id;
    this.loader = loader;
    loader.load(thumbnailAddress(id), async (picture) => {
      // Its row was taken away, and may come back.
      if (picture && !this.node.clientWidth) return this.release();
      const bitmap = picture && await createImageBitmap(picture, scaled(picture, this.node)).catch(() => null);
      if (this.id !== id || this.loader !== loader) return bitmap?.close();
      this.natural = picture && { naturalWidth: picture.naturalWidth, naturalHeight: picture.naturalHeight };
      this.ended(bitmap);
    });
  }

  /** Whether its place would show more of the picture than was drawn. */
  lacksPixels() {
    return Boolean(this.node.clientWidth) && scaled(this.natural, this.node).resizeWidth > this.canvas.width;
  }

  ended(bitmap) {
    this.release();
    if (bitmap) return this.draw(bitmap);
    if (without.size > 2000) forget();
    without.set(this.id, performance.now());
    for (const wait of [TRY_AGAIN, ASK_AGAIN]) setTimeout(askAgain, wait + 100);
  }

  draw(bitmap) {
    Object.assign(this.canvas, { width: bitmap.width, height: bitmap.height });
    this.canvas.getContext("bitmaprenderer").transferFromImageBitmap(bitmap);
    this.isLoaded = true;
    this.node.classList.add("loaded");
  }

  /** The picture is not wanted any more: a request that is on its way is broken off. */
  drop() {
    this.forgo();
    this.isLoaded = false;
    this.node.classList.remove("loaded");
    this.release();
  }

  release() {
    if (!this.loader) return;
    this.loader.stop();
    idle.push(this.loader);
    this.loader = null;
    loadNext();
  }
}
