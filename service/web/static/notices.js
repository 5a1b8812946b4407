// Failures in plain words. Owns which words a failure gets, the bar that shows them, and what can be
// done about it there: give a key, try again.

import { number, t } from "./strings.js";

export class Notices {
  /** `elements` are of the bar; `onKey(key)` and `onRetry()` are what its controls do. */
  constructor({ elements, onKey, onRetry }) {
    Object.assign(this, elements);
    this.countdown = null;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      onKey(this.input.value);
    });
    this.action.addEventListener("click", () => {
      this.hide();
      onRetry();
    });
  }

  /** Tell a failure; `seconds` until it is tried again by itself, or null: then when the server wants to be asked. */
  tell(error, seconds = null) {
    clearInterval(this.countdown);
    const wantsKey = error.kind === "key_wanted" || (error.kind === "key_wrong" && error.code !== "detection_off");
    this.form.hidden = !wantsKey;
    this.action.hidden = wantsKey || ["too_long", "invalid", "file_kind"].includes(error.kind);
    this.action.textContent = t("try_again");
    this.bar.dataset.kind = error.kind;
    this.text.textContent = plainWords(error);
    this.bar.hidden = false;
    if (seconds !== null) this.#count("next_try", seconds);
    else if (error.retrySeconds) this.#count("wait", error.retrySeconds);
  }

  hide() {
    clearInterval(this.countdown);
    this.bar.hidden = true;
    this.form.hidden = true;
  }

  /** Add the seconds that are left; a reader of screens is told once. */
  #count(key, seconds) {
    const left = document.createElement("span");
    left.setAttribute("aria-hidden", "true");
    const said = document.createElement("span");
    said.className = "hidden-text";
    let remaining = Math.ceil(seconds);
    const draw = () => {
      left.textContent = ` ${t(key, { seconds: number(Math.max(0, remaining)) })}`;
      if (key === "wait" && remaining <= 0) {
        clearInterval(this.countdown);
        left.remove();
        said.remove();
      }
      remaining -= 1;
    };
    draw();
    said.textContent = left.textContent;
    this.text.append(left, said);
    this.countdown = setInterval(draw, 1000);
  }
}

/** What went wrong, in a sentence or two. */
export function plainWords(error) {
  const values = {};
  for (const name of ["value", "limit"]) {
    values[name] = typeof error[name] === "number" ? number(error[name]) : String(error[name] ?? "");
  }
  values.message = error.message;
  if (error.kind === "too_long" && typeof error.limit !== "number") return t("error_too_long_message", values);
  if (error.kind === "key_wrong" && error.code === "detection_off") return t("error_detection_off");
  const known = t(`error_${error.kind}`, values);
  return known === `error_${error.kind}` ? t("error_failed", values) : known;
}
