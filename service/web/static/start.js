// The start: what the server has. Owns that it is asked for again until it is known, one request at a time; what
// is done with it is main.js's.

import { description, languages } from "./api.js";
import { featuresOf } from "./features.js";

const AGAIN_MS = 3000;
const WANTS_KEY = ["key_wanted", "key_wrong"]; // another key is what helps, not another try

export class Start {
  /**
   * `onLanguages(known)` and `onFeatures(features)` are told what there is, the features first without any if the
   * description is late; `onFailure(error, secondsUntilNextTry)` is told why there are no languages yet.
   */
  constructor({ onLanguages, onFeatures, onFailure }) {
    Object.assign(this, { onLanguages, onFeatures, onFailure });
    this.hasLanguages = false;
    this.hasFeatures = false;
    this.isDone = false;
    this.isAsking = false;
    this.timer = 0;
  }

  /** Ask for what is not known yet. */
  async run() {
    clearTimeout(this.timer);
    if (this.isAsking || this.isDone) return;
    this.isAsking = true;
    try {
      await this.#learn();
    } finally {
      this.isAsking = false;
    }
  }

  async #learn() {
    try {
      if (!this.hasLanguages) this.onLanguages(await languages());
      this.hasLanguages = true;
    } catch (error) {
      this.onFailure(error, this.#again(error, WANTS_KEY));
      return;
    }
    let content = null; // without a description there are fewer features
    try {
      content = await description();
      this.isDone = true;
    } catch (error) {
      this.#again(error, [...WANTS_KEY, "missing"]);
    }
    if (this.isDone || !this.hasFeatures) this.onFeatures(featuresOf(content));
    this.hasFeatures = true;
  }

  /** Come back after a failure, if it is none of those; in how many seconds, or null. */
  #again(error, lasting) {
    if (!error.kind) throw error;
    if (lasting.includes(error.kind)) return null;
    this.timer = setTimeout(() => this.run(), AGAIN_MS);
    return AGAIN_MS / 1000;
  }
}
