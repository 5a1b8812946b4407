// Documents: sent to `/v1/documents`, a few at a time, followed until they are done, fetched, and deleted
// there, where only so many of a caller are kept. Owns the list of them and the way of each; what a server without documents does with a file is main.js's.

import { ApiError, ask, askBlob, askJson } from "./api.js";
import { plainWords } from "./notices.js";
import { number, t } from "./strings.js";
import { Pauses, passes, passesForLooks, persist, Places } from "./waiting.js";

const MAX_AT_ONCE = 3;
const MAX_SENDS = 6;
const MAX_DELETIONS = 6;

export class Files {
  /**
   * `options()` are the fields that go with a file: `source` and `target` at least; `onKeyWanted(error)` is called
   * when the server wants another key; `opener` gets the focus of the last row that is removed.
   */
  constructor({ sheet, list, opener, options, announce, onKeyWanted }) {
    Object.assign(this, { sheet, list, opener, options, announce, onKeyWanted, places: new Places(MAX_AT_ONCE) });
    this.jobs = new Set();
    addEventListener("beforeunload", (event) => {
      if ([...this.jobs].some((job) => job.isUnsaved)) event.preventDefault();
    });
  }

  /** Translate a file as the fields are now, when its turn comes, and show how it goes. */
  async translate(file) {
    const options = this.options();
    const job = new Job(file.name, options.target);
    this.sheet.hidden = false;
    this.list.prepend(job.row);
    this.jobs.add(job);
    job.onRemove = (next) => {
      this.jobs.delete(job);
      this.sheet.hidden = this.jobs.size === 0;
      (next?.querySelector("button") ?? this.opener).focus();
    };
    try {
      await this.places.hold(() => job.run(file, options));
      this.announce(t("file_done", { name: file.name }));
    } catch (error) {
      if (error.name === "AbortError") return;
      job.failed(error);
      this.announce(plainWords(error));
      if (error.kind === "key_wanted" || error.kind === "key_wrong") this.onKeyWanted(error);
    }
  }
}

class Job {
  constructor(name, target) {
    this.controller = new AbortController();
    this.name = name;
    this.target = target;
    this.id = null;
    this.isUnsaved = true; // the page has it, or will have it, and nothing else does
    this.row = document.createElement("li");
    const title = element("span", "name", name);
    this.actions = element("span", "actions", "");
    this.state = element("span", "quiet", t("file_waiting"));
    this.remove = button("", () => this.#removed());
    this.#offer("file_cancel");
    this.actions.append(this.state, this.remove);
    this.progress = document.createElement("progress");
    this.progress.setAttribute("aria-label", t("file_progress", { name }));
    this.row.append(title, this.actions, this.progress);
  }

  async run(file, options) {
    const signal = this.controller.signal;
    signal.throwIfAborted();
    this.state.textContent = t("file_sending");
    await beReadable(file);
    const form = new FormData();
    for (const [name, value] of Object.entries(options)) form.append(name, value);
    form.append("file", file);
    const send = () => askJson("v1/documents", { method: "POST", body: form, signal });
    // A lost answer, or one that took too long, may be of a document that is there: it is not sent twice.
    const made = await this.#persist(send, { mayPass: (error) => passes(error) && error.kind !== "offline", maxTries: MAX_SENDS });
    this.id = String(made.id);
    const pauses = new Pauses(signal);
    let seen = made;
    while (seen.state !== "done") {
      if (seen.state === "failed") {
        this.#forget();
        throw new DocumentError(seen.error);
      }
      this.#show(seen);
      await pauses.next();
      seen = await this.#persist(() => askJson(this.#path(), { signal }));
    }
    const blob = await this.#persist(() => askBlob(`${this.#path()}/result`, { signal }));
    this.#forget();
    this.#done(blob, seen.num_flagged ?? 0);
  }

  /** What `action()` gives, however often it is done; meanwhile the row says what it waits for. */
  #persist(action, options = {}) {
    const onWait = (error) => {
      this.state.textContent = plainWords(error);
    };
    return persist(action, { signal: this.controller.signal, mayPass: passesForLooks, onWait, ...options });
  }

  failed(error) {
    this.isUnsaved = false;
    this.progress.remove();
    this.state.textContent = plainWords(error);
    this.#offer("file_remove");
  }

  /** What the button says, and of what for a reader of screens. */
  #offer(key) {
    this.remove.textContent = t(key);
    this.remove.setAttribute("aria-label", `${t(key)}: ${this.name}`);
  }

  #path() {
    return `v1/documents/${encodeURIComponent(this.id)}`;
  }

  #show(seen) {
    const isBegun = seen.state === "translating";
    if (isBegun) this.progress.value = seen.progress;
    else this.progress.removeAttribute("value");
    this.state.textContent = isBegun ? t("file_share", { percent: number(Math.round(seen.progress * 100)) }) : t("file_waiting");
  }

  #done(blob, numFlagged) {
    this.progress.remove();
    this.state.textContent = numFlagged ? t("file_flagged", { num: number(numFlagged) }) : t("file_ready");
    this.url = URL.createObjectURL(blob);
    const link = document.createElement("a");
    link.href = this.url;
    link.download = resultName(this.name, this.target);
    link.className = "button slim download";
    link.textContent = t("file_save");
    link.addEventListener("click", () => {
      this.isUnsaved = false;
    });
    this.remove.before(link);
    this.#offer("file_remove");
  }

  /** Stop, and take it off the list. */
  #removed() {
    this.controller.abort();
    if (this.url) URL.revokeObjectURL(this.url);
    this.#forget();
    const next = this.row.nextElementSibling ?? this.row.previousElementSibling;
    this.row.remove();
    this.onRemove(next);
  }

  /** Delete what the server has of it. */
  #forget() {
    if (this.id === null) return;
    const path = this.#path();
    this.id = null;
    persist(() => ask(path, { method: "DELETE" }), { mayPass: passesForLooks, maxTries: MAX_DELETIONS }).catch(() => {}); // it expires by itself
  }
}

/** Throw unless a file can be read: a folder is dropped as a file, and not known for one before. */
async function beReadable(file) {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    throw new ApiError("file_kind");
  }
}

class DocumentError extends Error {
  /** `message` is the server's. */
  constructor(message) {
    super(message);
    this.kind = "file";
  }
}

/** The name of a translated file: the language goes before the suffix. */
export function resultName(name, target) {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? `${name.slice(0, dot)}.${target}${name.slice(dot)}` : `${name}.${target}`;
}

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function button(text, action) {
  const made = element("button", "button slim", text);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}
