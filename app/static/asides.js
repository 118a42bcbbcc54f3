// Texts that were not kept where two tabs, or two devices, saved different ones: at hand until they are forgotten.
const MOST = 5;

export class Asides {
  /** @param {string} key names them among what the browser keeps */
  constructor(key) {
    this.key = key;
    /** @type {string[]} the newest last */
    this.texts = [];
    try {
      const found = JSON.parse(localStorage.getItem(key) ?? "[]");
      if (Array.isArray(found)) this.texts = found.filter((each) => typeof each === "string");
    } catch {
      // a browser that keeps nothing: they last as long as the page
    }
  }

  get newest() {
    return this.texts.at(-1);
  }

  /** @param {string} text */
  put(text) {
    this.texts = [...this.texts.filter((each) => each !== text), text].slice(-MOST);
    this.#keep();
  }

  /** @param {string} text */
  drop(text) {
    this.texts = this.texts.filter((each) => each !== text);
    this.#keep();
  }

  #keep() {
    try {
      if (this.texts.length) localStorage.setItem(this.key, JSON.stringify(this.texts));
      else localStorage.removeItem(this.key);
    } catch {
      // as above
    }
  }
}
